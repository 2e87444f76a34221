//! BLPOP, BRPOP, BLMPOP, BLMOVE, BLMOVEM, BRPOPLPUSH: as LPOP and its like where there is something, waiting for it where there is not.
//!
//! Each tries, and wants to wait if nothing is there; it is run again, the same from its beginning, when one of its keys is ready. The log
//! gets what it did, so nobody who replays it waits.

use super::{End, HowMany, Several, log_pop, move_one, move_several, pop_first_of, pop_one};
use crate::blocking::{Awaits, Block, Null, deadline_of_seconds};
use crate::context::Context;
use crate::key_hash::Key;
use simurgh_protocol::{Args, CommandError};

/// `BLPOP key [key ...] timeout`: the key and its first element, or null when the time is over.
pub fn blpop(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    pop(cx, args, End::Front)
}

/// `BRPOP key [key ...] timeout`: the key and its last element, or null when the time is over.
pub fn brpop(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    pop(cx, args, End::Back)
}

fn pop(cx: &mut Context<'_>, args: &Args<'_>, end: End) -> Result<(), CommandError> {
    let last = args.len() - 1;
    let deadline_ms = deadline_of_seconds(args.at(last), cx.now_ms)?;
    for index in 1..last {
        let key = cx.key(args.at(index));
        let mark = cx.reply.len();
        cx.reply.array(2);
        cx.reply.bulk(key.bytes);
        if pop_one(cx, &key, end)? {
            log_pop(cx, &key, end, None);
            return Ok(());
        }
        cx.reply.truncate(mark);
    }
    wait(cx, args, 1..last, deadline_ms, Null::Array);
    Ok(())
}

/// Waits for a list at one of the keys at these arguments.
fn wait(cx: &mut Context<'_>, args: &Args<'_>, keys: std::ops::Range<usize>, deadline_ms: Option<i64>, null: Null) {
    let keys = keys.map(|index| args.at(index).into()).collect();
    cx.block(Block { keys, awaits: Awaits::List, deadline_ms, words: None }, null);
}

/// `BLMPOP timeout numkeys key [key ...] LEFT | RIGHT [COUNT count]`: LMPOP's answer, or null when the time is over.
pub fn blmpop(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let several = Several::parse(args, 2)?;
    let deadline_ms = deadline_of_seconds(args.at(1), cx.now_ms)?;
    let keys = 3..several.end_of_keys;
    if !pop_first_of(cx, args, keys.clone(), &several)? {
        wait(cx, args, keys, deadline_ms, Null::Array);
    }
    Ok(())
}

/// `BLMOVE source destination LEFT | RIGHT LEFT | RIGHT timeout`: the element, or null when the time is over.
pub fn blmove(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (from, to) = (End::parse(args, 3)?, End::parse(args, 4)?);
    let deadline_ms = deadline_of_seconds(args.at(5), cx.now_ms)?;
    if transfer(cx, args, from, to)? {
        let [source, destination] = [1, 2].map(|index| args.at(index));
        cx.log_instead(&[b"LMOVE", source, destination, args.at(3), args.at(4)]);
    } else {
        wait(cx, args, 1..2, deadline_ms, Null::Bulk);
    }
    Ok(())
}

/// `BLMOVEM source destination LEFT | RIGHT LEFT | RIGHT timeout [COUNT | EXACTLY number OBO | BULK]`: the elements, or null when the time
/// is over. With EXACTLY it waits until there are as many.
pub fn blmovem(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (from, to) = (End::parse(args, 3)?, End::parse(args, 4)?);
    let deadline_ms = deadline_of_seconds(args.at(5), cx.now_ms)?;
    let how_many = HowMany::parse(args, 6)?;
    let (source, destination) = (cx.key(args.at(1)), cx.key(args.at(2)));
    if !move_several(cx, [&source, &destination], [from, to], how_many)? {
        wait(cx, args, 1..2, deadline_ms, Null::Array);
    }
    Ok(())
}

/// `BRPOPLPUSH source destination timeout`: the element, or null when the time is over.
pub fn brpoplpush(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let deadline_ms = deadline_of_seconds(args.at(3), cx.now_ms)?;
    if transfer(cx, args, End::Back, End::Front)? {
        cx.log_instead(&[b"RPOPLPUSH", args.at(1), args.at(2)]);
    } else {
        wait(cx, args, 1..2, deadline_ms, Null::Bulk);
    }
    Ok(())
}

fn transfer(cx: &mut Context<'_>, args: &Args<'_>, from: End, to: End) -> Result<bool, CommandError> {
    let (source, destination): (Key<'_>, Key<'_>) = (cx.key(args.at(1)), cx.key(args.at(2)));
    move_one(cx, &source, &destination, from, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use crate::list::rpush;

    /// Redis 8.2.3 answers so, and has such records in its log.
    #[test]
    fn what_is_there_is_taken_at_once_and_recorded_as_what_it_was() {
        let mut fixture = Fixture::new();
        fixture.reply(rpush, &["RPUSH", "k", "a", "b", "c", "d", "e"]);
        let mut check = |handler, line: &str, reply: &str, log: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(fixture.run(handler, &words), (format!("{reply} "), vec![log.to_owned()]), "{line}");
        };
        check(blpop as crate::fixture::Handler, "BLPOP nokey k 0", "*2 $1 k $1 a", "LPOP k");
        check(brpop, "BRPOP k nokey 1", "*2 $1 k $1 e", "RPOP k");
        check(blmpop, "BLMPOP 0 2 nokey k LEFT COUNT 1", "*2 $1 k *1 $1 b", "LPOP k 1");
        check(blmove, "BLMOVE k j LEFT RIGHT 0", "$1 c", "LMOVE k j LEFT RIGHT");
        check(brpoplpush, "BRPOPLPUSH k j 0", "$1 d", "RPOPLPUSH k j");
    }

    #[test]
    fn nothing_there_is_waited_for() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.run(blpop, &["BLPOP", "k", "0"]), (String::new(), vec![]));
        let block = fixture.block.take().unwrap();
        assert_eq!((block.awaits, block.deadline_ms, block.keys), (Awaits::List, None, vec![b"k"[..].into()]));
        fixture.may_block = false;
        assert_eq!(fixture.reply(blpop, &["BLPOP", "k", "0"]), "*-1 ");
        assert_eq!(fixture.reply(blmove, &["BLMOVE", "k", "j", "LEFT", "LEFT", "0"]), "$-1 ");
        assert_eq!(fixture.reply(brpoplpush, &["BRPOPLPUSH", "k", "j", "0"]), "$-1 ");
        assert_eq!(fixture.reply(blmpop, &["BLMPOP", "0", "1", "k", "LEFT"]), "*-1 ");
    }
}

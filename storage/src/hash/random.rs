//! HRANDFIELD: fields picked at random, each live one as likely as any other.

use super::expired::forget_some_expired;
use super::{Hash, Row, field_clock};
use crate::context::Context;
use crate::pick::{Choice, REPEATED_MAX, parse_count_with};
use crate::random::Random;
use simurgh_protocol::resp::Protocol;
use simurgh_protocol::{Args, CommandError, Reply};
use std::collections::BTreeSet;

/// How often a pick may fall on a field whose time has come before the live ones are counted out.
const TRIES: usize = 64;
/// A call for more than one in so many of the fields strikes some out instead of picking.
const DENSE: usize = 3;

/// `HRANDFIELD key [count [WITHVALUES]]`: a field or null, or an array of some; a negative count allows repetition.
pub fn hrandfield(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, now_ms) = (cx.first_key(args), field_clock(cx));
    // Whatever was drawn for the answer, the source is at hand without the context.
    let mut random = Random::new(cx.random.next_u64());
    if args.len() == 2 {
        forget_some_expired(cx, &key);
        let (hash, reply) = cx.look::<Hash>(&key)?;
        match hash.as_deref().and_then(|hash| pick(hash, now_ms, &mut random)) {
            Some(row) => row.field.write_to(reply),
            None => reply.null(),
        }
        return Ok(());
    }
    let (count, has_values) = parse_count_with(args, "WITHVALUES")?;
    forget_some_expired(cx, &key);
    let (hash, reply) = cx.look::<Hash>(&key)?;
    let live = hash.as_deref().map_or(0, |hash| if count == 0 { 0 } else { hash.live_len(now_ms) });
    let Some(hash) = hash.filter(|_| live > 0) else {
        reply.array(0);
        return Ok(());
    };
    let mut writer = Writer { reply, has_values };
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count < 0 {
        if wanted > REPEATED_MAX {
            return Err(CommandError::Text("ERR value is out of range"));
        }
        writer.begin(wanted);
        for _ in 0..wanted {
            pick(&hash, now_ms, &mut random).into_iter().for_each(|row| writer.row(row));
        }
    } else if wanted >= live {
        writer.begin(live);
        hash.each_live(now_ms, |row| writer.row(row));
    } else {
        writer.begin(wanted);
        pick_different(&hash, now_ms, &mut random, wanted, live, |row| writer.row(row));
    }
    Ok(())
}

/// Writes fields and, where they are wanted, values: in RESP3 as pairs.
struct Writer<'a> {
    reply: &'a mut Reply,
    has_values: bool,
}

impl Writer<'_> {
    fn is_paired(&self) -> bool {
        self.has_values && self.reply.protocol() == Protocol::Resp3
    }

    fn begin(&mut self, rows: usize) {
        let is_flat = self.has_values && !self.is_paired();
        self.reply.array(if is_flat { rows * 2 } else { rows });
    }

    fn row(&mut self, row: Row<'_>) {
        if self.is_paired() {
            self.reply.array(2);
        }
        row.field.write_to(self.reply);
        if self.has_values {
            row.value.write_to(self.reply);
        }
    }
}

/// A live field, each as likely as any other.
fn pick<'a>(hash: &'a Hash, now_ms: i64, random: &mut Random) -> Option<Row<'a>> {
    let tries = if hash.is_due(now_ms) { TRIES } else { 1 };
    let picked = (0..tries).find_map(|_| hash.random(random).filter(|row| row.is_live(now_ms)));
    picked.or_else(|| {
        let live = hash.live_len(now_ms);
        let rank = (live > 0).then(|| random.below(live))?;
        hash.nth_live(rank, now_ms)
    })
}

/// `wanted` of `live` fields, fewer than all of them, in no particular order.
fn pick_different(
    hash: &Hash,
    now_ms: i64,
    random: &mut Random,
    wanted: usize,
    live: usize,
    mut with: impl FnMut(Row<'_>),
) {
    let is_packed = hash.as_packed().is_some();
    if is_packed || wanted.saturating_mul(DENSE) > live || hash.is_due(now_ms) {
        let mut chosen = Choice { left: live, wanted };
        hash.each_live(now_ms, |row| {
            if chosen.takes(random) {
                with(row);
            }
        });
        return;
    }
    let mut taken = BTreeSet::new();
    while taken.len() < wanted {
        let Some(row) = hash.random(random) else { return };
        if taken.insert(row.field.to_vec()) {
            with(row);
        }
    }
}

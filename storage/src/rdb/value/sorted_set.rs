//! Sorted sets: a listpack of members and scores, or members with their scores as eight bytes.

use super::{Loading, kind, read_listpack, read_ziplist};
use crate::listpack::Listpack;
use crate::rdb::cursor::{Cursor, Fault};
use crate::rdb::length::{read_length, write_length};
use crate::rdb::string::{Sink, read_string};
use crate::scored::{Scored, ScoredRef};
use crate::snapshot::{Form, Saved};
use crate::sorted_set::{Limits, SortedSet};
use simurgh_protocol::number::{format_f64, parse_f64};

/// Where the length of an old score's text would stand.
const NOT_A_NUMBER: u8 = 253;
const INFINITE: u8 = 254;
const MINUS_INFINITE: u8 = 255;

pub(super) fn read(kind: u8, cursor: &mut Cursor<'_>, loading: &Loading<'_>) -> Result<SortedSet, Fault> {
    let limits = Limits::new(loading.packing, loading.hasher);
    match kind {
        kind::ZSET_LISTPACK => of_listpack(read_listpack(cursor, loading)?, &limits),
        kind::ZSET_ZIPLIST => of_listpack(read_ziplist(cursor, loading)?, &limits),
        _ => {
            let mut set = SortedSet::default();
            for _ in 0..read_length(cursor)? {
                let member = read_string(cursor, loading.string_bytes_max)?;
                let score =
                    if kind == kind::ZSET_2 { f64::from_le_bytes(cursor.array()?) } else { read_old_score(cursor)? };
                add(&mut set, &member, score, &limits)?;
            }
            Ok(set)
        }
    }
}

fn add(set: &mut SortedSet, member: &[u8], score: f64, limits: &Limits<'_>) -> Result<(), Fault> {
    if score.is_nan() {
        return Err(Fault::Score);
    }
    if set.insert(member, score, limits).is_none() { Ok(()) } else { Err(Fault::Repeated) }
}

fn of_listpack(list: Listpack, limits: &Limits<'_>) -> Result<SortedSet, Fault> {
    let packed = SortedSet::from_listpack(list, limits)?;
    let (count, longest) = packed
        .members(0..usize::MAX)
        .fold((0, 0), |(count, longest), (member, _)| (count + 1, longest.max(member.text_length())));
    if limits.allow(count, longest) {
        return Ok(packed);
    }
    let mut set = SortedSet::default();
    for (member, score) in packed.members(0..usize::MAX) {
        member.with_text(|member| add(&mut set, member, score, limits))?;
    }
    Ok(set)
}

fn read_old_score(cursor: &mut Cursor<'_>) -> Result<f64, Fault> {
    match cursor.byte()? {
        NOT_A_NUMBER => Err(Fault::Score),
        INFINITE => Ok(f64::INFINITY),
        MINUS_INFINITE => Ok(f64::NEG_INFINITY),
        length => parse_f64(cursor.take(length.into())?).ok_or(Fault::Score),
    }
}

pub(super) fn kind_of(set: &SortedSet) -> u8 {
    match set.as_listpack() {
        Some(list) if list.is_portable() => kind::ZSET_LISTPACK,
        Some(_) | None => kind::ZSET_2,
    }
}

pub(super) fn write(out: &mut Sink<'_>, set: &SortedSet) {
    match set.as_listpack() {
        Some(list) if list.is_portable() => out.string(list.as_bytes()),
        Some(_) | None => {
            write_length(out, set.len() as u64);
            // From the greatest on, as Redis does: whoever inserts them in this order has the least to do.
            for (member, score) in set.members(0..usize::MAX).rev() {
                member.with_text(|member| write_member(out, member, score));
            }
        }
    }
}

fn write_member(out: &mut Sink<'_>, member: &[u8], score: f64) {
    out.string(member);
    out.extend_from_slice(&score.to_le_bytes());
}

impl Saved for Scored {
    const COMMAND: &'static [u8] = b"ZADD";

    fn save(found: ScoredRef<'_>, _form: &Form, out: &mut Sink<'_>) {
        write_member(out, found.member(), found.score());
    }

    fn words(found: ScoredRef<'_>, with: &mut dyn FnMut(&[u8])) {
        with(format_f64(found.score()).as_bytes());
        with(found.member());
    }

    fn is_passed(found: ScoredRef<'_>, form: &Form) -> bool {
        match &form.passed {
            Some((score, member)) => found.score() > *score || (found.score() == *score && found.member() >= &**member),
            None => false,
        }
    }
}

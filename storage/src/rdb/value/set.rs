//! Sets. A packed one is written member by member: listpacks of sets are younger than Redis 7.0.

use super::{Loading, kind, read_listpack};
use crate::intset::Intset;
use crate::listpack::Item;
use crate::member::Member;
use crate::rdb::cursor::{Cursor, Fault};
use crate::rdb::length::{read_length, write_length};
use crate::rdb::string::{Sink, read_string};
use crate::set::{Limits, Set, Shape};
use crate::snapshot::{Form, Saved};

pub(super) fn read(kind: u8, cursor: &mut Cursor<'_>, loading: &Loading<'_>) -> Result<Set, Fault> {
    let limits = Limits::new(loading.packing, loading.hasher);
    let mut set = Set::default();
    let mut add = |item: Item<'_>| set.insert(item, &limits).then_some(()).ok_or(Fault::Repeated);
    match kind {
        kind::SET_INTSET => {
            let bytes = read_string(cursor, loading.string_bytes_max)?;
            for number in Intset::from_bytes(&bytes)?.iter() {
                add(Item::Int(number))?;
            }
        }
        kind::SET_LISTPACK => {
            for item in read_listpack(cursor, loading)?.iter() {
                add(item)?;
            }
        }
        _ => {
            for _ in 0..read_length(cursor)? {
                add(Item::from(&*read_string(cursor, loading.string_bytes_max)?))?;
            }
        }
    }
    Ok(set)
}

pub(super) fn kind_of(set: &Set) -> u8 {
    match set.shape() {
        Shape::Ints(_) => kind::SET_INTSET,
        Shape::Packed(_) | Shape::Table(_) => kind::SET,
    }
}

pub(super) fn write(out: &mut Sink<'_>, set: &Set) {
    if let Shape::Ints(set) = set.shape() {
        return out.string(set.as_bytes());
    }
    write_length(out, set.len() as u64);
    set.for_each(&mut |parts| out.string(parts[0]));
}

impl Saved for Member {
    const COMMAND: &'static [u8] = b"SADD";

    fn save(member: &[u8], _form: &Form, out: &mut Sink<'_>) {
        out.string(member);
    }

    fn words(member: &[u8], with: &mut dyn FnMut(&[u8])) {
        with(member);
    }
}

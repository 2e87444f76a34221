//! What one writer did, what was acknowledged, and which contents of its keys that allows after a crash.
//!
//! A writer owns its keys and sends in order on one connection, so a log that keeps order may hold what was
//! acknowledged and any number of the first writes behind it that were not: nothing less, and nothing else.

use crate::random::Random;
use crate::resp::{Value, write_request};
use std::collections::BTreeMap;

/// The counter that every writer counts up.
pub const SHARED_COUNTER: &str = "shared";

/// Keys of one writer.
const KEYS: u64 = 12;

/// The contents of a writer's keys: value, and the instant of expiry if there is one.
pub type Contents = BTreeMap<String, (String, Option<u64>)>;

/// One write, or several as one.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// SET, with PXAT or without.
    Set(String, String, Option<u64>),
    /// APPEND.
    Append(String, String),
    /// INCR of one of its own counters.
    Count(String),
    /// DEL.
    Delete(String),
    /// MSET.
    SetAll(Vec<(String, String)>),
    /// INCR of [`SHARED_COUNTER`].
    CountShared,
    /// MULTI ... EXEC.
    Together(Vec<Write>),
}

impl Write {
    /// A random write to the keys of `writer`.
    pub fn random(random: &mut Random, writer: usize) -> Self {
        if random.one_in(8) {
            return Write::Together((0..=random.below(4)).map(|_| Write::single(random, writer)).collect());
        }
        Write::single(random, writer)
    }

    fn single(random: &mut Random, writer: usize) -> Self {
        let key = format!("{writer}:{}", random.below(KEYS));
        let length = if random.one_in(20) { 5000 } else { random.below(60) };
        let value: String = format!("{:x}-", random.bits()) + &"v".repeat(length as usize);
        match random.below(9) {
            0..3 => Write::Set(key, value, None),
            3 => Write::Set(key, value, Some(99_999_999_999_000 + random.below(1000))),
            4 => Write::Append(key, value[..4].to_owned()),
            5 => Write::Count(format!("{writer}:n{}", random.below(3))),
            6 => Write::Delete(key),
            7 => Write::SetAll((0..=random.below(5)).map(|n| (format!("{writer}:{n}"), value.clone())).collect()),
            _ => Write::CountShared,
        }
    }

    /// Writes the request, or the requests, and gives how many replies come.
    pub fn request(&self, out: &mut Vec<u8>) -> usize {
        match self {
            Write::Set(key, value, None) => write_request(out, &["SET", key, value]),
            Write::Set(key, value, Some(at)) => write_request(out, &["SET", key, value, "PXAT", &at.to_string()]),
            Write::Append(key, value) => write_request(out, &["APPEND", key, value]),
            Write::Count(key) => write_request(out, &["INCR", key]),
            Write::Delete(key) => write_request(out, &["DEL", key]),
            Write::CountShared => write_request(out, &["INCR", SHARED_COUNTER]),
            Write::SetAll(pairs) => {
                let pairs = pairs.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]);
                write_request(out, &["MSET"].into_iter().chain(pairs).collect::<Vec<_>>());
            }
            Write::Together(writes) => {
                write_request(out, &["MULTI"]);
                let replies: usize = writes.iter().map(|write| write.request(out)).sum();
                write_request(out, &["EXEC"]);
                return replies + 2;
            }
        }
        1
    }

    /// Does to `contents` what the server does.
    pub fn apply(&self, contents: &mut Contents) {
        match self {
            Write::Set(key, value, at) => drop(contents.insert(key.clone(), (value.clone(), *at))),
            Write::Append(key, value) => contents.entry(key.clone()).or_default().0.push_str(value),
            Write::Delete(key) => drop(contents.remove(key)),
            Write::SetAll(pairs) => {
                contents.extend(pairs.iter().map(|(key, value)| (key.clone(), (value.clone(), None))));
            }
            Write::Count(key) => {
                let entry = contents.entry(key.clone()).or_insert_with(|| ("0".into(), None));
                entry.0 = (entry.0.parse::<u64>().unwrap_or(0) + 1).to_string();
            }
            Write::CountShared => {}
            Write::Together(writes) => writes.iter().for_each(|write| write.apply(contents)),
        }
    }

    /// How often it counts the shared counter up.
    pub fn shared_counts(&self) -> u64 {
        match self {
            Write::CountShared => 1,
            Write::Together(writes) => writes.iter().map(Write::shared_counts).sum(),
            Write::Set(..) | Write::Append(..) | Write::Count(_) | Write::Delete(_) | Write::SetAll(_) => 0,
        }
    }

    /// Whether `reply`, the last one of this write, says that it was done.
    pub fn is_done(&self, reply: &Value) -> bool {
        match self {
            Write::Together(writes) => matches!(reply, Value::Array(replies) if replies.len() == writes.len()),
            Write::Set(..) | Write::SetAll(_) => matches!(reply, Value::Simple(text) if text == b"OK"),
            Write::Append(..) | Write::Count(_) | Write::Delete(_) | Write::CountShared => {
                matches!(reply, Value::Integer(_))
            }
        }
    }
}

/// Which number of unacknowledged writes explains `found`, if one does.
pub fn explain(acknowledged: &Contents, unacknowledged: &[Write], found: &Contents) -> Option<usize> {
    let mut contents = acknowledged.clone();
    if contents == *found {
        return Some(0);
    }
    for (at, write) in unacknowledged.iter().enumerate() {
        write.apply(&mut contents);
        if contents == *found {
            return Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_beginning_of_what_was_not_acknowledged_explains() {
        let set = |key: &str| Write::Set(key.into(), "v".into(), None);
        let contents = |keys: &[&str]| keys.iter().map(|key| ((*key).to_owned(), ("v".to_owned(), None))).collect();
        let acknowledged: Contents = contents(&["a"]);
        let unacknowledged = [set("b"), set("c")];
        assert_eq!(explain(&acknowledged, &unacknowledged, &contents(&["a"])), Some(0));
        assert_eq!(explain(&acknowledged, &unacknowledged, &contents(&["a", "b"])), Some(1));
        assert_eq!(explain(&acknowledged, &unacknowledged, &contents(&["a", "c"])), None, "out of order");
        assert_eq!(explain(&acknowledged, &unacknowledged, &contents(&["b"])), None, "acknowledged and lost");
        assert_eq!(explain(&acknowledged, &unacknowledged, &contents(&["a", "x"])), None, "made up");
    }
}

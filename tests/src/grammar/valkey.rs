//! Where Valkey 9.1 and Redis 8.2 differ: we answer as Redis does, so the streams for Valkey leave these out.
//!
//! Beside these, errors are worded otherwise and found in another order, and doubles are written with more digits; the comparison
//! looks away there. `docs/compatibility.md` has what a user would notice.

use super::Words;

/// Names and words that Valkey does not know, or takes otherwise.
const UNKNOWN: &[&str] = &[
    "XDELEX",
    "XACKDEL",
    "ENTRIESREAD",
    "DIFF",
    "DIFF1",
    "ANDOR",
    "ONE",
    "KEEPREF",
    "DELREF",
    "ACKED",
    // ENTRIESREAD it takes beyond what was ever added. It reads no hexadecimal numbers.
    "0x10",
    "0x1",
    "(0x10",
    "(0x1",
    // A score of this it keeps and tells as it came.
    "-0",
    "-0.0",
];

/// Words of requests that may set a time that is over: it tells of `expired` then, and Redis of `del`.
const EXPIRIES: &[&str] = &["EX", "PX", "EXAT", "PXAT"];

/// Keys that hold no hash, of which one with expiring fields has other encodings, and no sorted set, which is unpacked for a long
/// member that is not added.
const NEVER_HASHES: &[&str] = &["s1", "s2", "s3", "set", "lst", "num", "bits", "hll", "geo", "x1", "x2", "x3"];

/// Moments of fields beyond this, in milliseconds, are refused by Redis.
const FIELD_EXPIRY_MAX: i64 = 1 << 46;

/// Whether the two do the same with a request, in a transaction or not.
pub(super) fn agrees(words: &Words, queueing: bool) -> bool {
    let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    if words.iter().any(|word| UNKNOWN.iter().any(|name| is(word, name))) {
        return false;
    }
    let number = |word: &Vec<u8>| {
        let text = std::str::from_utf8(word).ok()?;
        text.parse::<i64>().ok().filter(|number| number.to_string() == text)
    };
    let numbers = || words.iter().skip(2).filter_map(number);
    match words[0].to_ascii_uppercase().as_slice() {
        // The end of the range may be left out.
        b"BITCOUNT" => words.len() != 3,
        // They spoil the transaction.
        b"WATCH" | b"MULTI" => !queueing,
        b"HEXPIRE" | b"HPEXPIRE" => numbers().all(|number| number < FIELD_EXPIRY_MAX / 1000),
        b"HEXPIREAT" | b"HPEXPIREAT" | b"HSETEX" | b"HGETEX" => {
            // NX and XX ask for the key, and what is said twice counts once.
            let expiries = words
                .iter()
                .filter(|word| ["EX", "PX", "EXAT", "PXAT", "KEEPTTL", "FNX", "FXX"].iter().any(|name| is(word, name)));
            expiries.count() < 2
                && numbers().all(|number| number < FIELD_EXPIRY_MAX / 1000)
                && !words.iter().any(|word| is(word, "NX"))
        }
        // It looks at a time before it looks at the key.
        b"GETEX" => words.len() < 4 || numbers().any(|number| (1..i64::MAX / 1000).contains(&number)),
        b"OBJECT" if words.len() > 2 && is(&words[1], "ENCODING") => {
            NEVER_HASHES.iter().any(|name| words[2].starts_with(name.as_bytes()))
        }
        // A negative offset is taken for none in some sorted sets.
        b"ZRANGE" | b"ZRANGEBYSCORE" | b"ZREVRANGEBYSCORE" | b"ZRANGEBYLEX" | b"ZREVRANGEBYLEX" | b"ZRANGESTORE" => {
            let at = words.iter().position(|word| is(word, "LIMIT")).and_then(|at| words.get(at + 1));
            at.is_none_or(|offset| !offset.starts_with(b"-"))
        }
        // Each has commands that the other has not, and flags of users.
        b"ACL" => !["CAT", "LIST", "GETUSER"].iter().any(|name| is(&words[1], name)),
        // There is a moment more for each consumer, and the lag behind a trimmed end is another.
        b"XINFO" => (words.len() < 4 || !is(&words[3], "FULL")) && !is(&words[1], "GROUPS"),
        // The order of a map in Lua follows from how its table was made.
        b"EVAL" | b"EVAL_RO"
            if words.get(1).is_some_and(|script| script.starts_with(b"redis.setresp(3) return redis.call")) =>
        {
            false
        }
        // They run a command that comes as arguments behind these.
        b"EVAL" | b"EVAL_RO" | b"EVALSHA" | b"EVALSHA_RO" | b"FCALL" | b"FCALL_RO" => {
            (3..6).all(|at| words.len() <= at || agrees(&words[at..].to_vec(), queueing))
        }
        b"COMMAND"
            if ["INFO", "GETKEYSANDFLAGS"].iter().any(|name| words.get(1).is_some_and(|word| is(word, name))) =>
        {
            false
        }
        b"COMMAND" => words.len() < 3 || agrees(&words[2..].to_vec(), queueing),
        _ => true,
    }
}

/// Whether the two tell of the same events when this runs. LTRIM that takes nothing off, a group
/// that is made and PFDEBUG are no changes to Valkey.
pub(super) fn notifies_alike(words: &Words) -> bool {
    let is_expiry = |word: &Vec<u8>| EXPIRIES.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()));
    let names_expiry = |word: &Vec<u8>| word.to_ascii_uppercase().windows(6).any(|six| six == b"EXPIRE");
    !words.iter().any(|word| {
        is_expiry(word)
            || names_expiry(word)
            || [&b"LTRIM"[..], b"XGROUP", b"PFDEBUG"].iter().any(|name| word.eq_ignore_ascii_case(name))
    })
}

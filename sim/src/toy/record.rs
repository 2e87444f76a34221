//! The toy's log records.
//!
//! ```text
//!   length: u32 | check: u64 | RESP array of keys and values
//! ```

use std::collections::BTreeMap;

use simurgh_protocol::resp::decode::{Value, decode};
use simurgh_protocol::resp::encode_command;

const HEADER: usize = 12;

/// Appends one record.
pub fn encode(out: &mut Vec<u8>, changes: &[(Vec<u8>, Vec<u8>)]) {
    let mut payload = Vec::new();
    let words: Vec<&[u8]> = changes.iter().flat_map(|(key, value)| [key.as_slice(), value.as_slice()]).collect();
    encode_command(&mut payload, words.into_iter());
    out.extend(u32::try_from(payload.len()).expect("a toy's record is small").to_le_bytes());
    out.extend(check(&payload).to_le_bytes());
    out.extend(payload);
}

/// Replays records up to the first that is damaged; `trusting` searches for good ones behind it, which is a mistake.
pub fn replay(log: &[u8], trusting: bool) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (mut values, mut at) = (BTreeMap::new(), 0);
    while at < log.len() {
        match read(&log[at..]) {
            Some((changes, length)) => {
                values.extend(changes);
                at += length;
            }
            None if trusting => at += 1,
            None => break,
        }
    }
    values
}

type Changes = Vec<(Vec<u8>, Vec<u8>)>;

fn read(bytes: &[u8]) -> Option<(Changes, usize)> {
    let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
    let stored = u64::from_le_bytes(bytes.get(4..HEADER)?.try_into().ok()?);
    let end = HEADER + usize::try_from(length).ok()?;
    let payload = bytes.get(HEADER..end).filter(|payload| !payload.is_empty() && check(payload) == stored)?;
    let Ok(Some((Value::Array(words), _))) = decode(payload) else { return None };
    let mut words = words.into_iter().map(|word| if let Value::Bulk(bytes) = word { bytes } else { Vec::new() });
    let mut changes = Vec::new();
    while let (Some(key), Some(value)) = (words.next(), words.next()) {
        changes.push((key, value));
    }
    Some((changes, end))
}

/// FNV-1a.
fn check(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

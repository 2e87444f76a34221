//! Reads replies as a client does: for tests, the simulator, the harnesses and, later, replication.

use std::fmt;

/// A decoded reply.
#[derive(Clone, PartialEq)]
#[expect(missing_docs, reason = "the variants are the RESP types")]
pub enum Value {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    /// `$-1`, `*-1` or `_`.
    Null,
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Set(Vec<Value>),
    Push(Vec<Value>),
    /// As text, so that equality is that of the bytes sent.
    Double(Vec<u8>),
    Boolean(bool),
    BigNumber(Vec<u8>),
    /// Format and text.
    Verbatim(Vec<u8>, Vec<u8>),
}

/// With text as text: what most logs of replies are read for, and a tenth of the time of bytes as numbers.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simple(text) => write!(f, "Simple({})", Text(text)),
            Self::Error(text) => write!(f, "Error({})", Text(text)),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Bulk(text) => write!(f, "{}", Text(text)),
            Self::Null => f.write_str("Null"),
            Self::Array(values) => f.debug_list().entries(values).finish(),
            Self::Map(entries) => f.debug_map().entries(entries.iter().map(|(key, value)| (key, value))).finish(),
            Self::Set(values) => f.debug_set().entries(values).finish(),
            Self::Push(values) => f.debug_tuple("Push").field(values).finish(),
            Self::Double(text) => write!(f, "Double({})", Text(text)),
            Self::Boolean(is_true) => write!(f, "{is_true}"),
            Self::BigNumber(text) => write!(f, "BigNumber({})", Text(text)),
            Self::Verbatim(format, text) => write!(f, "Verbatim({}, {})", Text(format), Text(text)),
        }
    }
}

/// Bytes in quotes.
struct Text<'a>(&'a [u8]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
        match std::str::from_utf8(self.0) {
            Ok(text) if self.0.iter().all(is_plain) => {
                f.write_str("\"")?;
                f.write_str(text)?;
                f.write_str("\"")
            }
            Ok(_) | Err(_) => write!(f, "\"{}\"", self.0.escape_ascii()),
        }
    }
}

/// Bytes that are no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a RESP reply at byte {offset}: {reason}")]
pub struct DecodeError {
    /// Offset of the offending byte.
    pub offset: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

/// How deep aggregates may nest.
const DEPTH_MAX: usize = 64;
/// The longest string that is believed.
const LENGTH_MAX: i64 = 1 << 32;

/// Decodes the first reply of `bytes`: the value and the number of bytes it took, or `None` when it is incomplete.
///
/// # Errors
/// [`DecodeError`] when the bytes cannot begin a reply.
pub fn decode(bytes: &[u8]) -> Result<Option<(Value, usize)>, DecodeError> {
    let mut reader = Reader { bytes, at: 0 };
    Ok(reader.value(0)?.map(|value| (value, reader.at)))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, reason: &'static str) -> Result<T, DecodeError> {
        Err(DecodeError { offset: self.at, reason })
    }

    fn line(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        let rest = &self.bytes[self.at..];
        let Some(end) = memchr::memchr(b'\r', rest) else { return Ok(None) };
        match rest.get(end + 1) {
            None => Ok(None),
            Some(b'\n') => {
                self.at += end + 2;
                Ok(Some(&rest[..end]))
            }
            Some(_) => self.fail("a line must end in CR LF"),
        }
    }

    fn length(&mut self) -> Result<Option<i64>, DecodeError> {
        let Some(line) = self.line()? else { return Ok(None) };
        match crate::number::parse_i64(line) {
            Some(length) if (-1..=LENGTH_MAX).contains(&length) => Ok(Some(length)),
            _ => self.fail("bad length"),
        }
    }

    fn string(&mut self) -> Result<Option<Option<Vec<u8>>>, DecodeError> {
        let Some(length) = self.length()? else { return Ok(None) };
        let Ok(length) = usize::try_from(length) else { return Ok(Some(None)) };
        let Some(end) = self.bytes.get(self.at..).and_then(|rest| rest.get(length..length + 2)) else {
            return Ok(None);
        };
        if end != b"\r\n" {
            return self.fail("a string must end in CR LF");
        }
        let text = self.bytes[self.at..self.at + length].to_vec();
        self.at += length + 2;
        Ok(Some(Some(text)))
    }

    fn many(&mut self, depth: usize, each: usize) -> Result<Option<Option<Vec<Value>>>, DecodeError> {
        let Some(count) = self.length()? else { return Ok(None) };
        let Ok(count) = usize::try_from(count) else { return Ok(Some(None)) };
        let mut values = Vec::new();
        for _ in 0..count.saturating_mul(each) {
            match self.value(depth + 1)? {
                Some(value) => values.push(value),
                None => return Ok(None),
            }
        }
        Ok(Some(Some(values)))
    }

    fn value(&mut self, depth: usize) -> Result<Option<Value>, DecodeError> {
        if depth > DEPTH_MAX {
            return self.fail("nested too deep");
        }
        let Some(kind) = self.bytes.get(self.at).copied() else { return Ok(None) };
        self.at += 1;
        let value = match kind {
            b'+' => self.line()?.map(|text| Value::Simple(text.to_vec())),
            b'-' => self.line()?.map(|text| Value::Error(text.to_vec())),
            b',' => self.line()?.map(|text| Value::Double(text.to_vec())),
            b'(' => self.line()?.map(|text| Value::BigNumber(text.to_vec())),
            b'_' => self.line()?.map(|_| Value::Null),
            b'#' => match self.line()? {
                None => None,
                Some(b"t") => Some(Value::Boolean(true)),
                Some(b"f") => Some(Value::Boolean(false)),
                Some(_) => return self.fail("bad boolean"),
            },
            b':' => match self.line()?.map(crate::number::parse_i64) {
                None => None,
                Some(Some(number)) => Some(Value::Integer(number)),
                Some(None) => return self.fail("bad integer"),
            },
            b'$' | b'!' => self
                .string()?
                .map(|text| text.map_or(Value::Null, if kind == b'$' { Value::Bulk } else { Value::Error })),
            b'=' => match self.string()? {
                None => None,
                Some(Some(text)) if text.get(3) == Some(&b':') => {
                    Some(Value::Verbatim(text[..3].to_vec(), text[4..].to_vec()))
                }
                Some(_) => return self.fail("bad verbatim string"),
            },
            b'*' => self.many(depth, 1)?.map(|values| values.map_or(Value::Null, Value::Array)),
            b'~' => self.many(depth, 1)?.map(|values| Value::Set(values.unwrap_or_default())),
            b'>' => self.many(depth, 1)?.map(|values| Value::Push(values.unwrap_or_default())),
            b'%' => self.many(depth, 2)?.map(|values| Value::Map(pairs(values.unwrap_or_default()))),
            _ => return self.fail("unknown kind"),
        };
        Ok(value)
    }
}

fn pairs(values: Vec<Value>) -> Vec<(Value, Value)> {
    let mut pairs = Vec::with_capacity(values.len() / 2);
    let mut values = values.into_iter();
    while let (Some(key), Some(value)) = (values.next(), values.next()) {
        pairs.push((key, value));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_replies_are_read_and_cut_ones_wait() {
        let bytes = b"%1\r\n+a\r\n*3\r\n:1\r\n$2\r\nxy\r\n_\r\n";
        let expected = Value::Map(vec![(
            Value::Simple(b"a".to_vec()),
            Value::Array(vec![Value::Integer(1), Value::Bulk(b"xy".to_vec()), Value::Null]),
        )]);
        assert_eq!(decode(bytes), Ok(Some((expected, bytes.len()))));
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), Ok(None), "cut at {cut}");
        }
    }

    #[test]
    fn replies_are_shown_as_text() {
        let map = Value::Map(vec![(Value::Simple(b"a".to_vec()), Value::Integer(-1))]);
        let all = Value::Array(vec![Value::Bulk(b"x y".to_vec()), Value::Bulk(b"\"\r\xff".to_vec()), Value::Null, map]);
        assert_eq!(format!("{all:?}"), r#"["x y", "\"\r\xff", Null, {Simple("a"): -1}]"#);
    }

    #[test]
    fn depth_and_garbage_are_refused() {
        let deep = b"*1\r\n".repeat(1000);
        assert!(decode(&deep).is_err());
        assert!(decode(b"?\r\n").is_err());
        assert!(decode(b"$3\r\nabcd\r\n").is_err());
    }
}

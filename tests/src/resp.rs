//! RESP2 and RESP3 as a client sees them: requests out, replies in. Strict, and independent of the server's own
//! code (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).

use anyhow::{Context, Result, bail};

/// One reply, with its type as it was on the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `+OK`
    Simple(Vec<u8>),
    /// `-ERR ...`
    Error(Vec<u8>),
    /// `:1`
    Integer(i64),
    /// `$3`
    Bulk(Vec<u8>),
    /// `$-1` in RESP2, `_` in RESP3: the same thing to a reader.
    Nil,
    /// `*-1`, RESP2 only.
    NilArray,
    /// `*2`
    Array(Vec<Value>),
    /// `%1`, in the order of the wire.
    Map(Vec<(Value, Value)>),
    /// `~2`
    Set(Vec<Value>),
    /// `>2`
    Push(Vec<Value>),
    /// `,1.5`, as it was written.
    Double(String),
    /// `#t`
    Boolean(bool),
    /// `(123`
    BigNumber(String),
    /// `=7\r\ntxt:abc`, with its prefix.
    Verbatim(Vec<u8>),
    /// `!5`
    BulkError(Vec<u8>),
}

/// Writes one request as an array of bulk strings.
pub fn write_request<A: AsRef<[u8]>>(out: &mut Vec<u8>, arguments: &[A]) {
    out.extend_from_slice(format!("*{}\r\n", arguments.len()).as_bytes());
    for argument in arguments {
        let argument = argument.as_ref();
        out.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
}

/// Reads one reply from the front of `bytes`: the value and its length, or nothing when bytes are missing.
pub fn read_value(bytes: &[u8]) -> Result<Option<(Value, usize)>> {
    let Some(line_end) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
        return Ok(None);
    };
    let (kind, line) = (bytes[0], &bytes[1..line_end]);
    let start = line_end + 2;
    let whole = |value| Ok(Some((value, start)));
    match kind {
        b'+' => whole(Value::Simple(line.to_vec())),
        b'-' => whole(Value::Error(line.to_vec())),
        b':' => whole(Value::Integer(number(line)?)),
        b'_' if line.is_empty() => whole(Value::Nil),
        b',' => whole(Value::Double(text(line)?)),
        b'(' => whole(Value::BigNumber(text(line)?)),
        b'#' if line == b"t" || line == b"f" => whole(Value::Boolean(line == b"t")),
        b'$' | b'=' | b'!' => read_blob(kind, number(line)?, bytes, start),
        b'*' if number(line)? == -1 => whole(Value::NilArray),
        b'*' | b'~' | b'>' | b'%' => read_aggregate(kind, number(line)?, bytes, start),
        _ => bail!("not a RESP type: {:?}", String::from_utf8_lossy(&bytes[..line_end])),
    }
}

fn read_blob(kind: u8, length: i64, bytes: &[u8], start: usize) -> Result<Option<(Value, usize)>> {
    if length == -1 && kind == b'$' {
        return Ok(Some((Value::Nil, start)));
    }
    let end = start + usize::try_from(length).context("a negative length")?;
    if bytes.len() < end + 2 {
        return Ok(None);
    }
    if &bytes[end..end + 2] != b"\r\n" {
        bail!("a string of {length} bytes does not end in CRLF");
    }
    let body = bytes[start..end].to_vec();
    let value = match kind {
        b'=' => Value::Verbatim(body),
        b'!' => Value::BulkError(body),
        _ => Value::Bulk(body),
    };
    Ok(Some((value, end + 2)))
}

fn read_aggregate(kind: u8, count: i64, bytes: &[u8], start: usize) -> Result<Option<(Value, usize)>> {
    let count = usize::try_from(count).context("a negative count")?;
    let values = if kind == b'%' { count * 2 } else { count };
    let mut items = Vec::new();
    let mut at = start;
    for _ in 0..values {
        let Some((value, length)) = read_value(&bytes[at..])? else {
            return Ok(None);
        };
        items.push(value);
        at += length;
    }
    Ok(Some((aggregate(kind, items), at)))
}

fn aggregate(kind: u8, items: Vec<Value>) -> Value {
    match kind {
        b'~' => Value::Set(items),
        b'>' => Value::Push(items),
        b'%' => Value::Map(items.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()),
        _ => Value::Array(items),
    }
}

fn text(line: &[u8]) -> Result<String> {
    Ok(String::from_utf8(line.to_vec())?)
}

fn number(line: &[u8]) -> Result<i64> {
    let text = std::str::from_utf8(line)?;
    text.parse().with_context(|| format!("not a number: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_read_whole_or_not_at_all() {
        let wire = b"*9\r\n+OK\r\n-ERR no\r\n:-5\r\n$3\r\na\r\n\r\n$-1\r\n_\r\n%1\r\n:1\r\n#t\r\n~1\r\n,1.5\r\n=5\r\ntxt:x\r\n";
        for cut in 0..wire.len() {
            assert_eq!(read_value(&wire[..cut]).unwrap(), None, "cut at {cut}");
        }
        let (value, length) = read_value(wire).unwrap().unwrap();
        assert_eq!(length, wire.len());
        let Value::Array(items) = value else { panic!("an array") };
        assert_eq!(items[3], Value::Bulk(b"a\r\n".to_vec()));
        assert_eq!(items[6], Value::Map(vec![(Value::Integer(1), Value::Boolean(true))]));
    }

    #[test]
    fn what_is_not_resp_is_refused() {
        for wire in [&b"?\r\n"[..], b":x\r\n", b"$1\r\nabc", b"#x\r\n", b"$-2\r\n"] {
            assert!(read_value(wire).is_err(), "{:?}", String::from_utf8_lossy(wire));
        }
    }
}

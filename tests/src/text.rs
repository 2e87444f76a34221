//! Replies as text that shows their RESP types: what a case file says and a mismatch prints.
//!
//! ```text
//! +OK               simple string          "a\r\n\x00"       bulk string       nil, nil-array
//! -ERR no           error                  ["a", :1]         array             #t #f
//! :1                integer                {"a" => :1}       map               ,1.5    double
//! (123              big number             ~["a"]  >["a"]    set, push         ="txt:a" verbatim
//! ```

use crate::resp::Value;
use anyhow::{Context, Result, bail};

/// The longest text of an aggregate that stays on one line.
const LINE_WIDTH: usize = 110;

/// The shortest run of one byte that is written as `"x"*100`.
const RUN_LENGTH_MIN: usize = 64;

/// `bytes` in quotes, with what is not plain ASCII escaped; a long run of one byte alone as `"x"*100`.
pub fn quote(bytes: &[u8]) -> String {
    if bytes.len() >= RUN_LENGTH_MIN && bytes.iter().all(|byte| *byte == bytes[0]) {
        return format!("{}*{}", quote(&bytes[..1]), bytes.len());
    }
    let mut text = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

/// Reads what [`quote`] wrote from the front of `text`: the bytes and the length of what was read.
pub fn unquote(text: &str) -> Result<(Vec<u8>, usize)> {
    let source = text.as_bytes();
    if source.first() != Some(&b'"') {
        bail!("a quoted string is missing at {text:?}");
    }
    let (mut bytes, mut at) = (Vec::new(), 1);
    loop {
        match source.get(at).context("a quote is not closed")? {
            b'"' => break,
            b'\\' => at += unescape(&source[at..], &mut bytes)?,
            byte => {
                bytes.push(*byte);
                at += 1;
            }
        }
    }
    at += 1;
    let digits = text[at..].strip_prefix('*').map_or("", |rest| &rest[..digits_at_front(rest)]);
    if digits.is_empty() {
        return Ok((bytes, at));
    }
    Ok((bytes.repeat(digits.parse()?), at + 1 + digits.len()))
}

fn digits_at_front(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn unescape(source: &[u8], bytes: &mut Vec<u8>) -> Result<usize> {
    let plain = match source.get(1).context("an escape is cut")? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'x' => {
            let digits = source.get(2..4).context("an escape is cut")?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits)?, 16)?);
            return Ok(4);
        }
        other => *other,
    };
    bytes.push(plain);
    Ok(2)
}

/// `value` as text, on several lines when it is long.
pub fn show(value: &Value) -> String {
    match value {
        Value::Error(text) if is_plain(text) => format!("-{}", String::from_utf8_lossy(text)),
        _ => show_nested(value, 0),
    }
}

fn is_plain(text: &[u8]) -> bool {
    !text.ends_with(b" ") && text.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

fn show_nested(value: &Value, depth: usize) -> String {
    match value {
        Value::Simple(text) if text.iter().all(u8::is_ascii_alphanumeric) && !text.is_empty() => {
            format!("+{}", String::from_utf8_lossy(text))
        }
        Value::Simple(text) => format!("+{}", quote(text)),
        Value::Error(text) => format!("-{}", quote(text)),
        Value::BulkError(text) => format!("!{}", quote(text)),
        Value::Integer(number) => format!(":{number}"),
        Value::Bulk(text) => quote(text),
        Value::Verbatim(text) => format!("={}", quote(text)),
        Value::Nil => "nil".into(),
        Value::NilArray => "nil-array".into(),
        Value::Double(text) => format!(",{text}"),
        Value::Boolean(true) => "#t".into(),
        Value::Boolean(false) => "#f".into(),
        Value::BigNumber(text) => format!("({text}"),
        Value::Array(items) => show_items("[", items, "]", depth),
        Value::Set(items) => show_items("~[", items, "]", depth),
        Value::Push(items) => show_items(">[", items, "]", depth),
        Value::Map(pairs) => show_map(pairs, depth),
    }
}

fn show_items(open: &str, items: &[Value], close: &str, depth: usize) -> String {
    lay_out(open, items.iter().map(|item| show_nested(item, depth + 1)).collect(), close, depth)
}

fn show_map(pairs: &[(Value, Value)], depth: usize) -> String {
    let show_pair =
        |(key, value): &(Value, Value)| format!("{} => {}", show_nested(key, depth + 1), show_nested(value, depth + 1));
    lay_out("{", pairs.iter().map(show_pair).collect(), "}", depth)
}

fn lay_out(open: &str, items: Vec<String>, close: &str, depth: usize) -> String {
    let line = format!("{open}{}{close}", items.join(", "));
    if line.len() + 2 * depth <= LINE_WIDTH && !line.contains('\n') {
        return line;
    }
    let indent = "  ".repeat(depth);
    let items: String = items.iter().map(|item| format!("{indent}  {item},\n")).collect();
    format!("{open}\n{items}{indent}{close}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_is_undone_by_unquoting() {
        let every_byte: Vec<u8> = (0..=255).collect();
        let text = quote(&every_byte);
        assert_eq!(unquote(&text).unwrap(), (every_byte, text.len()));
        assert_eq!(quote(&[b'a'; 1000]), "\"a\"*1000");
        assert_eq!(unquote("\"ab\"*3 rest").unwrap(), (b"ababab".to_vec(), 6));
        assert!(unquote("\"open").is_err());
    }

    #[test]
    fn types_show() {
        let value = Value::Array(vec![Value::Nil, Value::Error(b"ERR a".to_vec()), Value::Double("1.5".into())]);
        assert_eq!(show(&value), r#"[nil, -"ERR a", ,1.5]"#);
        assert_eq!(show(&Value::Error(b"ERR a".to_vec())), "-ERR a");
    }
}

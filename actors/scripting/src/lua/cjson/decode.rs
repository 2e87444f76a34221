//! JSON to values. The parser goes as deep as `decode_max_depth`, and its faults are worded and placed as lua-cjson's.

use super::super::number::read_f64;
use super::super::raise::fault;
use super::{DEPTH_MAX, Settings};
use mlua::{Lua, Value};

/// A JSON text as a value.
pub(super) fn decode(lua: &Lua, text: &[u8], settings: &Settings) -> mlua::Result<Value> {
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err(fault(lua, "JSON parser does not support UTF-16 or UTF-32"));
    }
    let mut reader = Reader { lua, text, at: 0, settings, depth: 0 };
    let first = reader.next();
    let value = reader.value(first)?;
    let last = reader.next();
    if matches!(last.kind, Kind::End) { Ok(value) } else { reader.expected("the end", &last) }
}

enum Kind {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Text(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::Text(_) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Error(text) => text,
        }
    }
}

struct Token {
    kind: Kind,
    at: usize,
}

struct Reader<'a> {
    lua: &'a Lua,
    text: &'a [u8],
    at: usize,
    settings: &'a Settings,
    depth: i64,
}

impl Reader<'_> {
    fn expected<T>(&self, what: &str, found: &Token) -> mlua::Result<T> {
        let text = format!("Expected {what} but found {} at character {}", found.kind.name(), found.at + 1);
        Err(fault(self.lua, &text))
    }

    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn next(&mut self) -> Token {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        let at = self.at;
        let single = match self.peek() {
            b'{' => Kind::ObjectBegin,
            b'}' => Kind::ObjectEnd,
            b'[' => Kind::ArrayBegin,
            b']' => Kind::ArrayEnd,
            b':' => Kind::Colon,
            b',' => Kind::Comma,
            // A zero byte ends the text too.
            0 => return Token { kind: Kind::End, at },
            b'"' => return self.string(),
            _ => return Token { kind: self.word(), at },
        };
        self.at += 1;
        Token { kind: single, at }
    }

    /// A number or a name.
    fn word(&mut self) -> Kind {
        let rest = &self.text[self.at..];
        if matches!(rest[0], b'-' | b'0'..=b'9') {
            if !self.settings.decode_invalid && is_invalid_number(rest) {
                return Kind::Error("invalid number");
            }
            return self.number();
        }
        for (name, kind) in [("true", Kind::Boolean(true)), ("false", Kind::Boolean(false)), ("null", Kind::Null)] {
            if rest.starts_with(name.as_bytes()) {
                self.at += name.len();
                return kind;
            }
        }
        if self.settings.decode_invalid && is_invalid_number(rest) {
            return self.number();
        }
        Kind::Error("invalid token")
    }

    fn number(&mut self) -> Kind {
        match read_f64(&self.text[self.at..]) {
            Some((number, length)) => {
                self.at += length;
                Kind::Number(number)
            }
            None => Kind::Error("invalid number"),
        }
    }

    fn string(&mut self) -> Token {
        let start = self.at;
        self.at += 1;
        let mut text = Vec::new();
        loop {
            match self.peek() {
                b'"' => {
                    self.at += 1;
                    return Token { kind: Kind::Text(text), at: start };
                }
                0 => return Token { kind: Kind::Error("unexpected end of string"), at: self.at },
                b'\\' => {
                    if let Err(error) = self.escape(&mut text) {
                        return Token { kind: Kind::Error(error), at: self.at };
                    }
                }
                byte => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), &'static str> {
        let byte = match self.text.get(self.at + 1) {
            Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode(text),
            _ => return Err("invalid escape code"),
        };
        text.push(byte);
        self.at += 2;
        Ok(())
    }

    fn unicode(&mut self, text: &mut Vec<u8>) -> Result<(), &'static str> {
        const BAD: &str = "invalid unicode escape code";
        let mut code = self.four_digits(self.at + 2).ok_or(BAD)?;
        let mut length = 6;
        if code & 0xF800 == 0xD800 {
            if code & 0x400 != 0 || self.text.get(self.at + 6..self.at + 8) != Some(b"\\u") {
                return Err(BAD);
            }
            let low = self.four_digits(self.at + 8).filter(|low| low & 0xFC00 == 0xDC00).ok_or(BAD)?;
            code = ((code & 0x3FF) << 10 | (low & 0x3FF)) + 0x1_0000;
            length = 12;
        }
        let letter = char::from_u32(code).ok_or(BAD)?;
        text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        self.at += length;
        Ok(())
    }

    fn four_digits(&self, from: usize) -> Option<u32> {
        let digits = self.text.get(from..from + 4)?;
        digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))
    }

    fn value(&mut self, token: Token) -> mlua::Result<Value> {
        match token.kind {
            Kind::Text(text) => self.lua.create_string(text).map(Value::String),
            Kind::Number(number) => Ok(Value::Number(number)),
            Kind::Boolean(value) => Ok(Value::Boolean(value)),
            Kind::Null => Ok(Value::NULL),
            Kind::ObjectBegin => self.nested(Self::object),
            Kind::ArrayBegin => self.nested(Self::array),
            Kind::ObjectEnd | Kind::ArrayEnd | Kind::Colon | Kind::Comma | Kind::End | Kind::Error(_) => {
                self.expected("value", &token)
            }
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> mlua::Result<Value>) -> mlua::Result<Value> {
        self.depth += 1;
        if self.depth > self.settings.decode_depth_max.min(DEPTH_MAX) {
            let text = format!("Found too many nested data structures ({}) at character {}", self.depth, self.at);
            return Err(fault(self.lua, &text));
        }
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> mlua::Result<Value> {
        let table = self.lua.create_table()?;
        let mut token = self.next();
        if matches!(token.kind, Kind::ObjectEnd) {
            return Ok(Value::Table(table));
        }
        loop {
            let Kind::Text(key) = token.kind else { return self.expected("object key string", &token) };
            let colon = self.next();
            if !matches!(colon.kind, Kind::Colon) {
                return self.expected("colon", &colon);
            }
            let first = self.next();
            let value = self.value(first)?;
            table.raw_set(self.lua.create_string(key)?, value)?;
            let after = self.next();
            if matches!(after.kind, Kind::ObjectEnd) {
                return Ok(Value::Table(table));
            }
            if !matches!(after.kind, Kind::Comma) {
                return self.expected("comma or object end", &after);
            }
            token = self.next();
        }
    }

    fn array(&mut self) -> mlua::Result<Value> {
        let table = self.lua.create_table()?;
        let mut token = self.next();
        if matches!(token.kind, Kind::ArrayEnd) {
            return Ok(Value::Table(table));
        }
        for index in 1.. {
            let value = self.value(token)?;
            table.raw_set(index, value)?;
            let after = self.next();
            if matches!(after.kind, Kind::ArrayEnd) {
                break;
            }
            if !matches!(after.kind, Kind::Comma) {
                return self.expected("comma or array end", &after);
            }
            token = self.next();
        }
        Ok(Value::Table(table))
    }
}

/// What `strtod` reads but JSON does not allow: hexadecimal, leading zeros, infinities, NaN.
fn is_invalid_number(text: &[u8]) -> bool {
    if text.starts_with(b"+") {
        return true;
    }
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let starts = |name: &str| digits.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()));
    match digits.first() {
        Some(b'0') => matches!(digits.get(1), Some(b'x' | b'X' | b'0'..=b'9')),
        Some(b'1'..=b'9') => false,
        _ => starts("inf") || starts("nan"),
    }
}

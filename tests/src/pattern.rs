//! What a case expects: replies as [`crate::text`] writes them, and patterns for what differs between runs.
//!
//! ```text
//! *                 anything               glob "id=* addr=*"    a string, status or error
//! :*  :95..100      some integer           any-order [:1, :2]    the same members, in any order
//! [:1, ...]         these, then whatever
//! ```

use crate::resp::Value;
use crate::text::unquote;
use anyhow::{Context, Result, bail};

/// An expected reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Exactly this.
    Exactly(Value),
    /// Whatever it is.
    Anything,
    /// An integer between the two, both included.
    Between(i64, i64),
    /// A text that the glob matches: `*` stands for any bytes.
    Glob(Vec<u8>),
    /// An aggregate of this kind with these members.
    Members(Kind, Vec<Pattern>),
    /// Whatever is left of an aggregate; only at its end.
    Rest,
    /// The same, in any order.
    AnyOrder(Kind, Vec<Pattern>),
}

/// Which aggregate. A map's members are its keys and values by turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `[...]`
    Array,
    /// `~[...]`
    Set,
    /// `>[...]`
    Push,
    /// `{...}`
    Map,
}

impl Pattern {
    /// Reads a whole text.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if let Some(error) = text.strip_prefix('-').filter(|rest| !rest.starts_with('"')) {
            return Ok(Pattern::Exactly(Value::Error(error.as_bytes().to_vec())));
        }
        let mut reader = Reader { text };
        let pattern = reader.pattern().with_context(|| format!("in the expectation {text:?}"))?;
        match reader.text.trim() {
            "" => Ok(pattern),
            rest => bail!("{rest:?} follows the expectation {text:?}"),
        }
    }

    /// Whether `value` is what was expected.
    pub fn matches(&self, value: &Value) -> bool {
        match self {
            Pattern::Exactly(expected) => expected == value,
            Pattern::Anything => true,
            Pattern::Between(low, high) => {
                matches!(value, Value::Integer(n) if (low..=high).contains(&n))
            }
            Pattern::Glob(glob) => text_of(value).is_some_and(|text| glob_matches(glob, text)),
            Pattern::Rest => false,
            Pattern::Members(kind, patterns) => {
                members_of(*kind, value).is_some_and(|members| match_in_order(patterns, &members))
            }
            Pattern::AnyOrder(kind, patterns) => {
                members_of(*kind, value).is_some_and(|members| match_in_any_order(*kind, patterns, &members))
            }
        }
    }
}

fn text_of(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Simple(text) | Value::Error(text) | Value::Bulk(text) | Value::BulkError(text) => Some(text),
        // After `txt:`, so that one glob serves both protocols.
        Value::Verbatim(text) => text.get(4..),
        Value::Double(text) | Value::BigNumber(text) => Some(text.as_bytes()),
        Value::Integer(_) | Value::Nil | Value::NilArray | Value::Boolean(_) => None,
        Value::Array(_) | Value::Map(_) | Value::Set(_) | Value::Push(_) => None,
    }
}

fn members_of(kind: Kind, value: &Value) -> Option<Vec<&Value>> {
    match (kind, value) {
        (Kind::Array, Value::Array(items)) | (Kind::Set, Value::Set(items)) | (Kind::Push, Value::Push(items)) => {
            Some(items.iter().collect())
        }
        (Kind::Map, Value::Map(pairs)) => Some(pairs.iter().flat_map(|(key, value)| [key, value]).collect()),
        _ => None,
    }
}

fn match_in_order(patterns: &[Pattern], members: &[&Value]) -> bool {
    let (patterns, members) = match patterns.split_last() {
        Some((Pattern::Rest, begin)) if begin.len() <= members.len() => (begin, &members[..begin.len()]),
        _ => (patterns, members),
    };
    members.len() == patterns.len() && patterns.iter().zip(members).all(|(p, v)| p.matches(v))
}

fn match_in_any_order(kind: Kind, patterns: &[Pattern], members: &[&Value]) -> bool {
    let width = if kind == Kind::Map { 2 } else { 1 };
    let mut left: Vec<&[&Value]> = members.chunks(width).collect();
    if patterns.len() != members.len() {
        return false;
    }
    patterns.chunks(width).all(|wanted| {
        let found = left.iter().position(|given| wanted.iter().zip(*given).all(|(p, v)| p.matches(v)));
        found.map(|index| left.swap_remove(index)).is_some()
    })
}

fn glob_matches(glob: &[u8], text: &[u8]) -> bool {
    let mut parts = glob.split(|byte| *byte == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&[u8]> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match (0..=rest.len()).find(|at| rest[*at..].starts_with(part)) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

struct Reader<'a> {
    text: &'a str,
}

impl<'a> Reader<'a> {
    fn pattern(&mut self) -> Result<Pattern> {
        self.text = self.text.trim_start();
        for (word, then) in [("glob", Reader::glob as fn(&mut Self) -> _), ("any-order", Reader::any_order)] {
            if let Some(rest) = self.text.strip_prefix(word) {
                self.text = rest.trim_start();
                return then(self);
            }
        }
        for (word, pattern) in [
            ("...", Pattern::Rest),
            ("nil-array", Pattern::Exactly(Value::NilArray)),
            ("nil", Pattern::Exactly(Value::Nil)),
            ("#t", Pattern::Exactly(Value::Boolean(true))),
            ("#f", Pattern::Exactly(Value::Boolean(false))),
            ("*", Pattern::Anything),
            (":*", Pattern::Between(i64::MIN, i64::MAX)),
        ] {
            if let Some(rest) = self.text.strip_prefix(word) {
                self.text = rest;
                return Ok(pattern);
            }
        }
        self.by_first_byte()
    }

    fn by_first_byte(&mut self) -> Result<Pattern> {
        let first = self.text.chars().next().context("an expectation is missing")?;
        if first == '"' {
            return Ok(Pattern::Exactly(Value::Bulk(self.quoted()?)));
        }
        if "[~>{".contains(first) {
            let (kind, members) = self.aggregate()?;
            return Ok(Pattern::Members(kind, members));
        }
        self.text = self.text.get(1..).context("not ASCII")?;
        Ok(Pattern::Exactly(match first {
            '+' if self.text.starts_with('"') => Value::Simple(self.quoted()?),
            '+' => Value::Simple(self.word().as_bytes().to_vec()),
            '-' => Value::Error(self.quoted()?),
            '!' => Value::BulkError(self.quoted()?),
            '=' => Value::Verbatim(self.quoted()?),
            ',' => Value::Double(self.word().to_owned()),
            '(' => Value::BigNumber(self.word().to_owned()),
            ':' => return self.integer(),
            _ => bail!("{first:?} begins no reply"),
        }))
    }

    fn integer(&mut self) -> Result<Pattern> {
        let word = self.word();
        match word.split_once("..") {
            Some((low, high)) => Ok(Pattern::Between(low.parse()?, high.parse()?)),
            None => Ok(Pattern::Exactly(Value::Integer(word.parse()?))),
        }
    }

    fn glob(&mut self) -> Result<Pattern> {
        Ok(Pattern::Glob(self.quoted()?))
    }

    fn any_order(&mut self) -> Result<Pattern> {
        let (kind, members) = self.aggregate()?;
        Ok(Pattern::AnyOrder(kind, members))
    }

    fn quoted(&mut self) -> Result<Vec<u8>> {
        let (bytes, length) = unquote(self.text)?;
        self.text = &self.text[length..];
        Ok(bytes)
    }

    fn word(&mut self) -> &'a str {
        let end = self.text.find([',', ']', '}', ' ', '\n']).unwrap_or(self.text.len());
        let (word, rest) = self.text.split_at(end);
        self.text = rest;
        word
    }

    fn aggregate(&mut self) -> Result<(Kind, Vec<Pattern>)> {
        let opens = [("[", Kind::Array, ']'), ("~[", Kind::Set, ']'), (">[", Kind::Push, ']'), ("{", Kind::Map, '}')];
        let (open, kind, close) =
            opens.into_iter().find(|(open, ..)| self.text.starts_with(open)).context("no aggregate begins here")?;
        self.text = &self.text[open.len()..];
        let mut members = Vec::new();
        loop {
            self.text = self.text.trim_start();
            if let Some(rest) = self.text.strip_prefix(close) {
                self.text = rest;
                return Ok((kind, members));
            }
            members.push(self.pattern()?);
            self.separator(kind, members.len(), close)?;
        }
    }

    fn separator(&mut self, kind: Kind, members: usize, close: char) -> Result<()> {
        self.text = self.text.trim_start();
        let separator = if kind == Kind::Map && members % 2 == 1 { "=>" } else { "," };
        match self.text.strip_prefix(separator) {
            Some(rest) => self.text = rest,
            None if self.text.starts_with(close) => {}
            None => bail!("{separator:?} or {close:?} is missing at {:?}", self.text),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::show;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn what_is_shown_is_what_is_expected() {
        let long = Value::Array((0..100).map(Value::Integer).collect());
        let map = Value::Map(vec![(bulk("a"), long.clone()), (bulk("b"), Value::Set(vec![]))]);
        let values = [
            Value::Simple(b"OK".to_vec()),
            Value::Simple(b"a b".to_vec()),
            Value::Error(b"ERR a, [b]".to_vec()),
            Value::Array(vec![Value::Error(b"ERR a".to_vec()), Value::Double("-1.5e3".into()), Value::NilArray]),
            Value::Push(vec![bulk("a"), Value::Nil]),
            Value::BigNumber("12".into()),
            map,
            long,
        ];
        for value in values {
            let text = show(&value);
            let pattern = Pattern::parse(&text).unwrap();
            assert!(pattern.matches(&value), "{text}");
            assert!(!pattern.matches(&Value::Integer(7)), "{text}");
        }
    }

    #[test]
    fn patterns_match_what_they_say_and_no_more() {
        for (pattern, yes, no) in [
            ("*", bulk("x"), None),
            (":*", Value::Integer(-3), Some(bulk("3"))),
            (":1..3", Value::Integer(3), Some(Value::Integer(4))),
            ("glob \"a*c*\"", bulk("abcd"), Some(bulk("bac"))),
            ("glob \"a*a\"", bulk("aa"), Some(bulk("a"))),
            ("[:1, ...]", Value::Array(vec![Value::Integer(1), Value::Nil]), Some(Value::Array(vec![]))),
            (
                "any-order [:1, :2]",
                Value::Array(vec![Value::Integer(2), Value::Integer(1)]),
                Some(Value::Array(vec![])),
            ),
        ] {
            let pattern = Pattern::parse(pattern).unwrap();
            assert!(pattern.matches(&yes), "{pattern:?}");
            assert!(no.is_none_or(|value| !pattern.matches(&value)), "{pattern:?}");
        }
        for wrong in ["", "[", "[:1", ":x", "word", "{:1 => :2", "[:1 :2]", ":1 :2"] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}

//! A library of functions: its text, what its first line says (`#!lua name=mylib`), and the functions that it registers
//! when it is loaded (<https://redis.io/docs/latest/develop/programmability/functions-intro/>).

use crate::ScriptFlags;
use simurgh_protocol::quoted::split_quoted;

/// A text that is no library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant is its text")]
pub enum HeaderError {
    #[error("ERR Missing library metadata")]
    Missing,
    #[error("ERR Invalid library metadata")]
    Invalid,
    #[error("ERR Invalid metadata value, name argument was given multiple times")]
    NameTwice,
    #[error("ERR Invalid metadata value given: {0}")]
    Unknown(String),
    #[error("ERR Library name was not given")]
    NoName,
    #[error(
        "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
    )]
    Name,
    #[error("ERR Engine '{0}' not found")]
    Engine(String),
}

/// A function, as its library has registered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, as it was written; letters of either size are the same.
    pub name: Box<str>,
    /// What it is said to do.
    pub description: Option<Box<[u8]>>,
    /// What it promises, and what it may do.
    pub flags: ScriptFlags,
}

/// A library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Tells it from every other that this node has loaded, also from older ones of its name.
    pub id: u64,
    /// Its name.
    pub name: Box<str>,
    /// The text as it was sent.
    pub source: Box<[u8]>,
    /// Its functions, by name.
    pub functions: Vec<Function>,
    body: usize,
}

/// Whether a library or function may be called so.
#[must_use]
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

impl Library {
    /// Reads the first line of `source`; nothing is registered yet.
    ///
    /// # Errors
    /// [`HeaderError`].
    pub fn new(id: u64, source: &[u8]) -> Result<Self, HeaderError> {
        if !source.starts_with(b"#!") {
            return Err(HeaderError::Missing);
        }
        let body = source.iter().position(|byte| *byte == b'\n').ok_or(HeaderError::Invalid)?;
        let words = split_quoted(&source[..body]).map_err(|_| HeaderError::Invalid)?;
        let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
        let (engine, options) = words.split_first().ok_or(HeaderError::Invalid)?;
        let mut name = None;
        for word in options {
            let given = word.split_at_checked(5).filter(|(key, _)| key.eq_ignore_ascii_case(b"name="));
            let Some((_, value)) = given else { return Err(HeaderError::Unknown(text(word))) };
            if name.replace(value).is_some() {
                return Err(HeaderError::NameTwice);
            }
        }
        let name = name.ok_or(HeaderError::NoName)?;
        if !is_name(name) {
            return Err(HeaderError::Name);
        }
        if !engine.eq_ignore_ascii_case(b"#!lua") {
            return Err(HeaderError::Engine(text(engine.get(2..).unwrap_or_default())));
        }
        Ok(Self { id, name: text(name).into(), source: source.into(), functions: Vec::new(), body })
    }

    /// What the language reads: all behind the first line, whose end stays so that lines keep their numbers.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.source[self.body..]
    }

    /// Bytes that it takes on the node, compiled forms aside.
    #[must_use]
    pub fn memory(&self) -> usize {
        let functions = self.functions.iter().map(|function| {
            size_of::<Function>() + function.name.len() + function.description.as_ref().map_or(0, |text| text.len())
        });
        size_of::<Self>() + self.name.len() + self.source.len() + functions.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_it() {
        for source in ["#!lua name=my_lib\nx", "#!LUA   NAME=my_lib \r\nx", "#!lua name=\"my_lib\"\nx"] {
            let library = Library::new(1, source.as_bytes()).expect("a library");
            assert_eq!((&*library.name, library.body(), &*library.source), ("my_lib", &b"\nx"[..], source.as_bytes()));
        }
    }

    #[test]
    fn faults_are_as_redis_words_them() {
        for (source, text) in [
            ("return 1", "ERR Missing library metadata"),
            ("#!lua name=a", "ERR Invalid library metadata"),
            ("#!lua name='a\n", "ERR Invalid library metadata"),
            ("#!lua\n", "ERR Library name was not given"),
            ("#!\n", "ERR Library name was not given"),
            ("#! name=x\n", "ERR Engine '' not found"),
            ("#!lux name=x\n", "ERR Engine 'lux' not found"),
            ("#!lua name=a name=b\n", "ERR Invalid metadata value, name argument was given multiple times"),
            ("#!lua name=a foo=b\n", "ERR Invalid metadata value given: foo=b"),
        ] {
            let found = Library::new(1, source.as_bytes()).map_err(|error| error.to_string());
            assert_eq!(found.map(|library| library.name), Err(text.into()), "{source}");
        }
        for name in ["", "a-b", "\u{e4}"] {
            let source = format!("#!lua name={name}\n");
            assert_eq!(Library::new(1, source.as_bytes()).map(|library| library.name), Err(HeaderError::Name));
        }
    }
}

//! What a command can answer besides its result, with the exact text that a client sees.
//!
//! The texts are the contract of Redis 8.2.3. Errors of the command table (unknown command, arity) are in `command`, those of
//! the wire in `resp::request`.

use crate::resp::Reply;

/// A command's error; its `Display` is the line after the `-`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant is its text")]
pub enum CommandError {
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    #[error("ERR syntax error")]
    Syntax,
    #[error("ERR value is not an integer or out of range")]
    NotAnInteger,
    #[error("ERR value is not a valid float")]
    NotAFloat,
    #[error("ERR increment or decrement would overflow")]
    IncrementOverflow,
    #[error("ERR increment would produce NaN or Infinity")]
    IncrementNotFinite,
    #[error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")]
    StringTooLong,
    #[error("ERR offset is out of range")]
    OffsetOutOfRange,
    #[error("ERR no such key")]
    NoSuchKey,
    #[error("ERR invalid expire time in '{0}' command")]
    InvalidExpire(&'static str),
    #[error("ERR wrong number of arguments for '{0}' command")]
    WrongArity(&'static str),
    #[error("ERR DB index is out of range")]
    DatabaseOutOfRange,
    #[error("ERR invalid DB index")]
    InvalidDatabase,
    #[error("ERR source and destination objects are the same")]
    SameObject,
    #[error("ERR invalid cursor")]
    InvalidCursor,
    #[error("BUSYKEY Target key name already exists.")]
    BusyKey,
    #[error("OOM command not allowed when used memory > 'maxmemory'.")]
    OutOfMemory,
    #[error("ERR {0} is not an integer or out of range")]
    ArgumentNotAnInteger(&'static str),
    /// A text that one command alone has, complete with its code.
    #[error("{0}")]
    Text(&'static str),
    /// As `Text`, with parts that come from the request.
    #[error("{0}")]
    Owned(String),
    /// The whole text, which repeats what the client sent and may be no UTF-8; see [`CommandError::repeats`].
    #[error("{}", String::from_utf8_lossy(.0))]
    Repeats(Box<[u8]>),
}

impl CommandError {
    /// An error that repeats a word of the client, byte for byte up to the first zero byte, as C prints it.
    #[cold]
    #[must_use]
    pub fn repeats(before: &str, word: &[u8], after: &str) -> Self {
        let word = word.split(|byte| *byte == 0).next().unwrap_or(word);
        Self::Repeats([before.as_bytes(), word, after.as_bytes()].concat().into())
    }

    /// Answers with the error.
    #[cold]
    pub fn reply(&self, reply: &mut Reply) {
        if let Self::Repeats(text) = self {
            reply.error_bytes(text);
        } else {
            reply.error(self);
        }
    }
}

//! What is wrong with a request before its command runs: no such command, no such subcommand, not so many words.
//!
//! The texts are those of Redis 8.2.3, byte for byte. Two habits of C show in them: what the client sent is cut off at
//! 128 bytes and at the first zero byte. Line breaks become blanks, since the error is one line.

use super::spec::CommandSpec;
use crate::resp::{Args, Reply};

/// Bytes of a name, and of all arguments together, that an error repeats.
const SHOWN_MAX: usize = 128;

/// Why a request names no command that could run. The texts are bytes, for they repeat what the client sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Too few or too many words for the command of this name.
    #[error("ERR wrong number of arguments for '{0}' command")]
    Arity(&'static str),
    /// No such command or subcommand; the whole text, which may be no UTF-8.
    #[error("{}", String::from_utf8_lossy(.0))]
    Unknown(Box<[u8]>),
}

impl TableError {
    /// No command has the request's name.
    #[cold]
    pub(super) fn unknown_command(args: &Args<'_>) -> Self {
        let mut shown = Vec::new();
        for argument in args.from(1) {
            if shown.len() >= SHOWN_MAX {
                break;
            }
            let room = SHOWN_MAX - shown.len();
            shown.extend([b"'", c_string(argument, room), b"' "].concat());
        }
        let name = c_string(args.at(0), SHOWN_MAX);
        Self::unknown([b"ERR unknown command '", name, b"', with args beginning with: ", &shown].concat())
    }

    /// The container has no such subcommand.
    #[cold]
    pub(super) fn unknown_subcommand(container: &CommandSpec, word: &[u8]) -> Self {
        let (word, name) = (c_string(word, SHOWN_MAX), container.name.to_uppercase());
        Self::unknown([b"ERR unknown subcommand '", word, b"'. Try ", name.as_bytes(), b" HELP."].concat())
    }

    fn unknown(mut text: Vec<u8>) -> Self {
        for byte in &mut text {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        TableError::Unknown(text.into())
    }

    /// Answers with the error, its bytes as they are.
    #[cold]
    pub fn reply(&self, reply: &mut Reply) {
        match self {
            TableError::Arity(_) => reply.error(self),
            TableError::Unknown(text) => reply.buffer().extend([b"-", &text[..], b"\r\n"].concat()),
        }
    }
}

/// What C prints of these bytes: up to a zero byte, and no more than so many.
fn c_string(bytes: &[u8], length_max: usize) -> &[u8] {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    &bytes[..end.min(length_max)]
}

/// Whether a request of `count` words (the name among them) has as many as the command takes.
#[inline]
pub fn check_arity(spec: &CommandSpec, count: usize) -> Result<(), TableError> {
    let (wanted, count) = (i64::from(spec.arity), count as i64);
    let right = if wanted < 0 { count >= -wanted } else { count == wanted };
    if right { Ok(()) } else { Err(TableError::Arity(spec.name)) }
}

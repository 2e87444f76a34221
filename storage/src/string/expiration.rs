//! The options EX, PX, EXAT and PXAT that several commands share.
//!
//! What was typed is kept until the other options have been read, since a misspelt option is reported before a wrong number.

use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// In which words the expiry was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `EX`: seconds from now.
    Seconds,
    /// `PX`: milliseconds from now.
    Milliseconds,
    /// `EXAT`: seconds of Unix time.
    AtSeconds,
    /// `PXAT`: milliseconds of Unix time.
    AtMilliseconds,
}

/// An expiry as it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expiration<'a> {
    pub form: Form,
    pub amount: &'a [u8],
}

impl<'a> Expiration<'a> {
    /// The expiry given by arguments `index` and `index + 1`, if they are one.
    pub fn read(args: &Args<'a>, index: usize) -> Option<Self> {
        let amount = args.get(index + 1)?;
        let forms = [
            ("EX", Form::Seconds),
            ("PX", Form::Milliseconds),
            ("EXAT", Form::AtSeconds),
            ("PXAT", Form::AtMilliseconds),
        ];
        let (_, form) = forms.into_iter().find(|(word, _)| args.is(index, word))?;
        Some(Self { form, amount })
    }

    /// The instant it falls at, in milliseconds of Unix time.
    pub fn instant(&self, now_ms: i64, command: &'static str) -> Result<i64, CommandError> {
        let amount = parse_i64(self.amount).ok_or(CommandError::NotAnInteger)?;
        let invalid = CommandError::InvalidExpire(command);
        if amount <= 0 {
            return Err(invalid);
        }
        let instant = match self.form {
            Form::Seconds => amount.checked_mul(1000).and_then(|amount| amount.checked_add(now_ms)),
            Form::Milliseconds => amount.checked_add(now_ms),
            Form::AtSeconds => amount.checked_mul(1000),
            Form::AtMilliseconds => Some(amount),
        };
        instant.ok_or(invalid)
    }
}

/// What a writing command was told about the expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Lifetime<'a> {
    /// Nothing: a new value lives for good.
    #[default]
    Unsaid,
    /// `KEEPTTL`.
    Keep,
    /// A new one.
    Expires(Expiration<'a>),
}

impl<'a> Lifetime<'a> {
    /// Reads the option at `index`, if it is one of these: how many arguments it takes. Two that disagree are a syntax error.
    pub fn read(&mut self, args: &Args<'a>, index: usize) -> Result<Option<usize>, CommandError> {
        let (said, width) = if args.is(index, "KEEPTTL") {
            (Self::Keep, 1)
        } else if let Some(expiration) = Expiration::read(args, index) {
            (Self::Expires(expiration), 2)
        } else {
            return Ok(None);
        };
        if !self.agrees_with(&said) {
            return Err(CommandError::Syntax);
        }
        *self = said;
        Ok(Some(width))
    }

    /// Whether the option may be said once more: `EX 10 EX 20` is allowed, `EX 10 PX 20` is not.
    fn agrees_with(&self, said: &Self) -> bool {
        match (self, said) {
            (Self::Unsaid, _) | (Self::Keep, Self::Keep) => true,
            (Self::Expires(before), Self::Expires(said)) => before.form == said.form,
            (Self::Keep | Self::Expires(_), _) => false,
        }
    }
}

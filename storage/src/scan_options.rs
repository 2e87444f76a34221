//! The options that SCAN, HSCAN, SSCAN and ZSCAN share.

use simurgh_protocol::glob::Glob;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// Elements visited by a call that does not say how many.
const COUNT: u64 = 10;

/// What a call asks for.
#[derive(Debug)]
pub(crate) struct ScanOptions {
    /// How many elements to visit, about.
    pub count: u64,
    /// What the names must match.
    pub pattern: Option<Glob>,
}

impl ScanOptions {
    /// Reads the options from argument `index` on. `own` takes those that one command has alone: how many arguments that were, 0 if the
    /// option is none of its own.
    pub fn parse(
        args: &Args<'_>,
        mut index: usize,
        mut own: impl FnMut(usize) -> Result<usize, CommandError>,
    ) -> Result<Self, CommandError> {
        let mut options = Self { count: COUNT, pattern: None };
        while index < args.len() {
            let taken = own(index)?;
            if taken > 0 {
                index += taken;
                continue;
            }
            let value = args.get(index + 1).ok_or(CommandError::Syntax)?;
            if args.is(index, "COUNT") {
                let count = parse_i64(value).ok_or(CommandError::NotAnInteger)?;
                options.count = u64::try_from(count).ok().filter(|count| *count > 0).ok_or(CommandError::Syntax)?;
            } else if args.is(index, "MATCH") {
                options.pattern = Some(Glob::new(value)).filter(|pattern| !pattern.matches_everything());
            } else {
                return Err(CommandError::Syntax);
            }
            index += 2;
        }
        Ok(options)
    }

    /// Refuses NOVALUES: for the commands that have no values to leave out.
    pub fn without_values(args: &Args<'_>, index: usize) -> Result<usize, CommandError> {
        if args.is(index, "NOVALUES") {
            return Err(CommandError::Text("ERR NOVALUES option can only be used in HSCAN"));
        }
        Ok(0)
    }

    /// Whether a name matches.
    pub fn wants(&self, name: &[u8]) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| pattern.matches(name))
    }
}

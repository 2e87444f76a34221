//! What the files before one of the log say about how it must begin.

use super::seal::Sealer;
use super::verdict::{End, ReplayError};

/// What comes before a file of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Before {
    /// No increment: a base does not tell where its log goes on.
    #[default]
    Unknown,
    /// Increments without seals of ours: if we went on behind them, we began a log.
    Foreign,
    /// Increments of ours, which end here.
    At(Sealer),
}

impl Before {
    /// Where the log stands, if that is known.
    #[must_use]
    pub fn sealer(self) -> Option<Sealer> {
        match self {
            Self::Unknown | Self::Foreign => None,
            Self::At(sealer) => Some(sealer),
        }
    }

    /// What comes before the next file, after an increment that was found to be so. An empty one changes nothing: of a log of ours
    /// it is what is left of a file that began with a start line, and the next does not go on from the one before it.
    #[must_use]
    pub fn then(self, end: &End) -> Self {
        match (end.sealer, self) {
            (Some(sealer), _) => Self::At(sealer),
            (None, Self::At(sealer)) if end.keep == 0 => Self::At(sealer),
            (None, Self::Unknown | Self::Foreign | Self::At(_)) => Self::Foreign,
        }
    }

    /// What is wrong with a file that begins so.
    pub(super) fn misplaces(self, start: &Sealer) -> Option<ReplayError> {
        match self {
            Self::Foreign if start.position() > 0 => Some(ReplayError::Orphaned { found: start.position() }),
            Self::At(wanted) if wanted != *start => Some(ReplayError::Misplaced {
                found: start.position(),
                found_chain: start.chain(),
                wanted: wanted.position(),
                wanted_chain: wanted.chain(),
            }),
            Self::Unknown | Self::Foreign | Self::At(_) => None,
        }
    }
}

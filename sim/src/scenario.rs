//! What a timeline runs: a whole node, the toy server, or one of them with a mistake planted in it.

use std::fmt;
use std::str::FromStr;

use simurgh_kernel::rehearsal;

/// What the server under test is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// A whole node.
    Node,
    /// A node with one planted mistake, which the judges must find.
    Mutant(rehearsal::Mistake),
    /// A node that makes a mistake with its files, which the judges must find.
    Flawed(Flaw),
    /// A node that the real world gets into, which comparing two runs of a seed must show.
    Leaking(rehearsal::Leak),
    /// A small server inside the simulator, without mistakes: the judges must pass it.
    Toy,
    /// The toy, with one planted mistake that the judges must find.
    Canary(Mistake),
}

/// A mistake that a node makes with its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// The manifest gets its name before what it says is on the disk.
    UnsyncedManifest,
    /// The same of a rewrite's base.
    UnsyncedBase,
    /// Directories are never synced.
    ForgottenRename,
    /// What a rewrite replaces is deleted before the manifest says so.
    EarlyTidying,
}

/// Every flaw, with the word that names it.
pub const FLAWS: [(Flaw, &str); 4] = [
    (Flaw::UnsyncedManifest, "unsynced-manifest"),
    (Flaw::UnsyncedBase, "unsynced-base"),
    (Flaw::ForgottenRename, "forgotten-rename"),
    (Flaw::EarlyTidying, "early-tidying"),
];

/// A mistake planted in the toy server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// Answers before the sync.
    EarlyReply,
    /// Never syncs the directory of a new log.
    ForgottenDirectory,
    /// Writes each command of a transaction as a record of its own.
    SplitTransaction,
    /// Replays what lies behind a damaged record.
    TrustingReplay,
    /// Answers reads with what is not yet safe.
    PhantomRead,
    /// Goes on after a failed sync.
    RetriedSync,
    /// Answers who waited for an item before it is safe that the item was taken.
    HastyServing,
    /// Does not log that who waited took an item.
    UnloggedServing,
    /// Serves who came last first.
    Overtaking,
    /// Forgets at a restart when fields expire.
    ImmortalFields,
    /// Serves no more than one of those who wait when several items come.
    ForgottenWaiter,
}

/// Every mistake of the toy, with the word that names it.
pub const MISTAKES: [(Mistake, &str); 11] = [
    (Mistake::EarlyReply, "early-reply"),
    (Mistake::ForgottenDirectory, "forgotten-directory"),
    (Mistake::SplitTransaction, "split-transaction"),
    (Mistake::TrustingReplay, "trusting-replay"),
    (Mistake::PhantomRead, "phantom-read"),
    (Mistake::RetriedSync, "retried-sync"),
    (Mistake::HastyServing, "hasty-serving"),
    (Mistake::UnloggedServing, "unlogged-serving"),
    (Mistake::Overtaking, "overtaking"),
    (Mistake::ImmortalFields, "immortal-fields"),
    (Mistake::ForgottenWaiter, "forgotten-waiter"),
];

impl Scenario {
    /// Every scenario with a planted mistake.
    pub fn with_mistakes() -> impl Iterator<Item = Self> {
        let mutants = rehearsal::Mistake::ALL.iter().map(|(mistake, _)| Self::Mutant(*mistake));
        let flawed = FLAWS.iter().map(|(flaw, _)| Self::Flawed(*flaw));
        mutants.chain(flawed).chain(MISTAKES.iter().map(|(mistake, _)| Self::Canary(*mistake)))
    }

    /// Every scenario that the real world gets into.
    pub fn leaking() -> impl Iterator<Item = Self> {
        rehearsal::Leak::ALL.iter().map(|(leak, _)| Self::Leaking(*leak))
    }

    /// Whether a whole node runs.
    pub fn is_node(self) -> bool {
        match self {
            Self::Node | Self::Mutant(_) | Self::Flawed(_) | Self::Leaking(_) => true,
            Self::Toy | Self::Canary(_) => false,
        }
    }
}

impl FromStr for Scenario {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> anyhow::Result<Self> {
        let known = [Self::Node, Self::Toy].into_iter().chain(Self::with_mistakes()).chain(Self::leaking());
        known
            .into_iter()
            .find(|scenario| scenario.to_string() == word)
            .ok_or_else(|| anyhow::anyhow!("no scenario {word:?}"))
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node => f.write_str("node"),
            Self::Toy => f.write_str("toy"),
            Self::Mutant(mistake) => {
                let named = rehearsal::Mistake::ALL.iter().find(|(known, _)| known == mistake);
                write!(f, "mutant-{}", named.map_or("", |(_, name)| name))
            }
            Self::Flawed(flaw) => {
                let named = FLAWS.iter().find(|(known, _)| known == flaw);
                write!(f, "flawed-{}", named.map_or("", |(_, name)| name))
            }
            Self::Leaking(leak) => {
                let named = rehearsal::Leak::ALL.iter().find(|(known, _)| known == leak);
                write!(f, "leak-{}", named.map_or("", |(_, name)| name))
            }
            Self::Canary(mistake) => {
                let named = MISTAKES.iter().find(|(known, _)| known == mistake);
                write!(f, "canary-{}", named.map_or("", |(_, name)| name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_read_back_as_written_and_none_has_the_name_of_another() {
        let leaking = Scenario::leaking();
        let all: Vec<Scenario> =
            Scenario::with_mistakes().chain(leaking).chain([Scenario::Node, Scenario::Toy]).collect();
        for scenario in &all {
            assert_eq!(scenario.to_string().parse::<Scenario>().unwrap(), *scenario);
        }
        assert!("canary-none".parse::<Scenario>().is_err());
    }
}

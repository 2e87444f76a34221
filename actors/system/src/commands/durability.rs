//! What a client is promised of the log beyond the mode in force: CLIENT DURABILITY, WAIT and WAITAOF
//! (<https://redis.io/docs/latest/commands/waitaof/>).
//!
//! `CLIENT DURABILITY always` on one connection of a server with `appendfsync everysec` gives that connection the promise of `always`:
//! its replies are held until the disk has what they tell of, and a sync is asked for at once. Others wait for nothing. A choice that
//! is weaker than the mode in force changes nothing.

use crate::client::Client;
use crate::clients::ClientShared;
use crate::log::Mode;
use crate::node::Node;
use crate::wait::Wait;
use simurgh_kernel::time;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError, Reply};
use simurgh_storage::Shards;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const MODES: [(&str, Option<Mode>); 5] = [
    ("default", None),
    ("no", Some(Mode::No)),
    ("everysec", Some(Mode::EverySecond)),
    ("write", Some(Mode::Write)),
    ("always", Some(Mode::Always)),
];

/// What a client has chosen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Durability {
    /// For all that it does.
    lasting: Option<Mode>,
    /// For its next command or transaction that changes anything.
    next: Option<Mode>,
    /// The position of the log behind its last change.
    last_change: u64,
}

impl Durability {
    /// What counts now.
    #[must_use]
    pub fn in_force(self) -> Option<Mode> {
        self.next.or(self.lasting)
    }

    /// As before anything was chosen.
    pub fn reset(&mut self) {
        (self.lasting, self.next) = (None, None);
    }

    /// Something was logged in the middle of a hold, up to this position: WAITAOF waits for it.
    pub fn logged(&mut self, position: u64) {
        self.last_change = position;
    }

    /// Something was changed, up to this position of the log; what was chosen for that is over, unless a transaction goes on.
    pub fn changed(&mut self, position: u64, in_transaction: bool) {
        self.logged(position);
        if !in_transaction {
            self.next = None;
        }
    }
}

fn name_of(mode: Option<Mode>) -> &'static str {
    MODES.iter().find(|(_, of)| *of == mode).map_or("default", |(name, _)| name)
}

fn mode_named(args: &Args<'_>, index: usize) -> Result<Option<Mode>, CommandError> {
    let found = MODES.iter().find(|(name, _)| args.is(index, &name.to_ascii_uppercase()));
    let (_, mode) = found.ok_or(CommandError::Text("ERR durability must be always, write, everysec, no or default"))?;
    Ok(*mode)
}

/// CLIENT DURABILITY [[NEXT] mode]: without a mode, the one chosen.
pub fn durability(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let chosen = match args.len() {
        2 => {
            client.reply.bulk(name_of(client.durability.in_force()).as_bytes());
            return Ok(());
        }
        3 => Durability { lasting: mode_named(args, 2)?, next: None, ..client.durability },
        4 if args.is(2, "NEXT") => Durability { next: mode_named(args, 3)?, ..client.durability },
        _ => return Err(CommandError::Syntax),
    };
    if client.node.log.mode() == Mode::Off && matches!(chosen.in_force(), Some(Mode::Write | Mode::Always)) {
        return Err(CommandError::Text("ERR there is no log: appendonly is off"));
    }
    client.durability = chosen;
    client.reply.ok();
    Ok(())
}

/// How often a wait looks again: for the disk, and for replicas that do not exist.
const LOOK_OFTEN_MS: i64 = 1;
const LOOK_RARELY_MS: i64 = 20;

/// What WAIT and WAITAOF wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Whether the log here is asked about.
    is_aof: bool,
    /// Whether it must be on the disk here.
    pub local: bool,
    /// How many replicas must have it.
    replicas: i64,
    /// Up to where.
    pub position: u64,
    /// Until when it is waited for; none is for ever.
    pub deadline_ms: Option<i64>,
}

impl Acknowledged {
    /// Whether the disk has what is wanted of it.
    #[must_use]
    pub fn is_local_met(&self, node: &Node) -> bool {
        !self.local || node.log.synced() >= self.position
    }

    /// Whether nothing more is waited for. There are no replicas.
    #[must_use]
    pub fn is_met(&self, node: &Node) -> bool {
        self.replicas <= 0 && self.is_local_met(node)
    }

    /// Waits until the log is where it is wanted, the time is over, or nobody waits for the answer any more.
    pub(crate) async fn reached(&self, node: &Node, client: &ClientShared) {
        loop {
            let left = self.deadline_ms.map_or(i64::MAX, |deadline| deadline - time::wall_ms());
            let is_gone = client.close_asap.load(Relaxed) || node.shutdown.is_asked();
            if self.is_met(node) || left <= 0 || is_gone {
                return;
            }
            if self.local {
                node.log.want_synced(client.core, self.position);
            }
            let pause = if self.is_local_met(node) { LOOK_RARELY_MS } else { LOOK_OFTEN_MS };
            time::sleep(Duration::from_millis(left.clamp(1, pause) as u64)).await;
        }
    }

    /// Who has it now.
    pub fn reply(&self, node: &Node, reply: &mut Reply) {
        if self.is_aof {
            let has = node.log.mode() != Mode::Off && node.log.synced() >= self.position;
            reply.array(2);
            reply.integer(i64::from(has));
        }
        reply.integer(0);
    }
}

fn deadline(args: &Args<'_>, index: usize) -> Result<Option<i64>, CommandError> {
    let timeout =
        parse_i64(args.at(index)).ok_or(CommandError::Text("ERR timeout is not an integer or out of range"))?;
    match timeout {
        ..0 => Err(CommandError::Text("ERR timeout is negative")),
        0 => Ok(None),
        _ => {
            let deadline = time::wall_ms().checked_add(timeout);
            deadline.map(Some).ok_or(CommandError::Text("ERR timeout is out of range"))
        }
    }
}

/// Answers at once where that can be or nobody may wait, else has the connection wait.
fn wait_for(client: &mut Client, wanted: Acknowledged) {
    if wanted.is_met(&client.node) || client.executing.is_some() {
        wanted.reply(&client.node, &mut client.reply);
    } else {
        client.wait = Some(Wait::Acknowledged(wanted));
    }
}

/// WAIT numreplicas timeout.
pub fn wait(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let replicas = parse_i64(args.at(1)).ok_or(CommandError::NotAnInteger)?;
    let deadline_ms = deadline(args, 2)?;
    let position = client.durability.last_change;
    wait_for(client, Acknowledged { is_aof: false, local: false, replicas, position, deadline_ms });
    Ok(())
}

/// WAITAOF numlocal numreplicas timeout.
pub fn waitaof(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let local = parse_i64(args.at(1)).ok_or(CommandError::NotAnInteger)?;
    if !(0..=1).contains(&local) {
        return Err(CommandError::Text("ERR value is out of range, value must between 0 and 1"));
    }
    let replicas = parse_i64(args.at(2)).filter(|count| *count >= 0);
    let replicas = replicas.ok_or(CommandError::Text("ERR value is out of range, must be positive"))?;
    let deadline_ms = deadline(args, 3)?;
    if local > 0 && client.node.log.mode() == Mode::Off {
        return Err(CommandError::Text("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."));
    }
    let position = client.durability.last_change;
    wait_for(client, Acknowledged { is_aof: true, local: local > 0, replicas, position, deadline_ms });
    Ok(())
}

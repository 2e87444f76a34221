//! MONITOR: a client that is shown every command as it runs (<https://redis.io/docs/latest/commands/monitor/>).
//!
//! The line is made once and pushed into the inbox of each monitor; a monitor's own commands go straight behind their replies.
//! A monitor is sent what it did not ask for, so it is cut when more waits than the output limit of normal clients allows or,
//! where that is unlimited, that of subscribers.

use crate::client::Client;
use crate::clients::ClientShared;
use crate::node::Node;
use crate::push::Push;
use simurgh_kernel::time;
use simurgh_protocol::command::{Command, CommandFlags, ConnectionCommand};
use simurgh_protocol::quoted::quote;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;
use std::io::Write;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::{Arc, MutexGuard, PoisonError};

const REDACTED: &[u8] = b"(redacted)";

fn monitors(node: &Node) -> MutexGuard<'_, Vec<Arc<ClientShared>>> {
    node.monitors.lock().unwrap_or_else(PoisonError::into_inner)
}

/// MONITOR.
pub fn monitor(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    if client.executing.is_some() {
        return Err(CommandError::Text("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    // A second MONITOR is not answered.
    if client.is_monitor {
        return Ok(());
    }
    client.is_monitor = true;
    client.shared.is_monitor.store(true, Relaxed);
    let mut all = monitors(&client.node);
    all.push(client.shared.clone());
    client.node.monitor_count.store(all.len() as u64, Release);
    drop(all);
    client.reply.ok();
    Ok(())
}

/// The client is no monitor any more.
pub(crate) fn forget(node: &Node, shared: &Arc<ClientShared>) {
    let mut all = monitors(node);
    all.retain(|monitor| monitor.id != shared.id);
    node.monitor_count.store(all.len() as u64, Release);
    shared.is_monitor.store(false, Relaxed);
}

/// Shows the monitors a command that has just run.
#[cold]
pub(crate) fn tell(client: &mut Client, command: Command, args: &Args<'_>) {
    if command.spec().flags.intersects(CommandFlags::ADMIN | CommandFlags::SKIP_MONITOR) {
        return;
    }
    show(client, command, args);
}

/// The same for any command.
pub(crate) fn show(client: &mut Client, command: Command, args: &Args<'_>) {
    let address = if client.in_script { "lua".into() } else { client.shared.address.remote.to_string() };
    let line: Arc<[u8]> = line(time::wall_us(), client.database, &address, command, args).into();
    let live = client.live().clone();
    let node = client.node.clone();
    for monitor in monitors(&node).iter() {
        if monitor.id == client.shared.id {
            if client.close.is_none() {
                client.reply.buffer().extend_from_slice(&line);
            }
        } else {
            node.push(&live.config, monitor, Push::Line(line.clone()));
        }
    }
}

/// Whether a word is a secret.
fn is_secret(command: Command, args: &Args<'_>, index: usize) -> bool {
    if command == Command::Connection(ConnectionCommand::Auth) {
        return index > 0;
    }
    let is_hello = command == Command::Connection(ConnectionCommand::Hello);
    is_hello && index > 2 && (args.is(index - 1, "AUTH") || (index > 3 && args.is(index - 2, "AUTH")))
}

/// `+1339518083.107412 [0 127.0.0.1:60866] "keys" "*"`.
fn line(now_us: i64, database: usize, address: &str, command: Command, args: &Args<'_>) -> Vec<u8> {
    let mut line = Vec::with_capacity(64);
    let (seconds, micros) = (now_us / 1_000_000, now_us % 1_000_000);
    // Writing into memory does not fail.
    let _ = write!(line, "+{seconds}.{micros:06} [{database} {}]", Origin(address));
    for (index, word) in args.from(0).enumerate() {
        line.push(b' ');
        line.extend(quote(if is_secret(command, args, index) { REDACTED } else { word }));
    }
    line.extend(b"\r\n");
    line
}

/// Where a command came from; for Unix sockets Redis writes `unix:` and the path.
struct Origin<'a>(&'a str);

impl std::fmt::Display for Origin<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.strip_suffix(":0") {
            Some(path) => write!(formatter, "unix:{path}"),
            None => formatter.write_str(self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simurgh_protocol::command::{Lookup, lookup};
    use simurgh_protocol::resp::Range;

    fn shown(words: &[&[u8]]) -> String {
        let (mut buffer, mut ranges) = (Vec::new(), Vec::new());
        for word in words {
            ranges.push(Range { start: buffer.len() as u32, length: word.len() as u32 });
            buffer.extend_from_slice(word);
        }
        let args = Args::new(&buffer, &ranges);
        let Lookup::Found(command) = lookup(args.at(0), args.get(1)) else { panic!("{words:?} is no command") };
        let line = line(1_339_518_083_007_412, 3, "127.0.0.1:60866", command, &args);
        String::from_utf8(line).expect("text")
    }

    #[test]
    fn lines_are_as_redis_writes_them() {
        assert_eq!(
            shown(&[b"get", b"a\"b\\c\r\n\t\x07\x08\x00\x7f\xff '"]),
            "+1339518083.007412 [3 127.0.0.1:60866] \"get\" \"a\\\"b\\\\c\\r\\n\\t\\a\\b\\x00\\x7f\\xff '\"\r\n"
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        assert!(shown(&[b"AUTH", b"x"]).ends_with("\"AUTH\" \"(redacted)\"\r\n"));
        assert!(shown(&[b"AUTH", b"u", b"x"]).ends_with("\"AUTH\" \"(redacted)\" \"(redacted)\"\r\n"));
        assert!(
            shown(&[b"HELLO", b"3", b"auth", b"u", b"x", b"SETNAME", b"n"])
                .ends_with("\"HELLO\" \"3\" \"auth\" \"(redacted)\" \"(redacted)\" \"SETNAME\" \"n\"\r\n")
        );
    }

    #[test]
    fn unix_sockets_are_called_so() {
        assert_eq!(Origin("/run/simurgh.sock:0").to_string(), "unix:/run/simurgh.sock");
    }
}

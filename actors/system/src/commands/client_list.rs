//! CLIENT LIST and CLIENT INFO: a line for each connection, with the fields of Redis 8.2.
//!
//! Every value is this server's own. Where Redis has something that is not here, the field says so: `fd` is -1 (the kernel's
//! seam keeps descriptors to itself), `argv-mem` is 0 but for the caller (arguments lie in the query buffer), and a reply
//! buffer above 16 KiB shows its excess as `oll` and `omem`, where monitoring looks for clients that do not read.

use crate::client::Client;
use crate::clients::ClientShared;
use crate::commands::client_filter::Filter;
use crate::pubsub::Kind;
use crate::tracking::Mode;
use simurgh_kernel::net::Address;
use simurgh_protocol::command::Command;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What Redis keeps of a reply in the client itself; the rest is its output list.
const OUTPUT_OWN: u64 = 16 * 1024;

/// Types of clients. All are normal or subscribers here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientType {
    Normal,
    Replica,
    Pubsub,
    Master,
}

impl ClientType {
    /// A client's type.
    pub(crate) fn of(client: &ClientShared) -> Self {
        if client.subscriptions.any() { Self::Pubsub } else { Self::Normal }
    }

    /// The type with this name.
    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        let types = [
            ("normal", Self::Normal),
            ("slave", Self::Replica),
            ("replica", Self::Replica),
            ("pubsub", Self::Pubsub),
            ("master", Self::Master),
        ];
        types.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes())).map(|(_, found)| *found)
    }
}

/// The error for a type that does not exist.
pub(crate) fn unknown_type(name: &[u8]) -> CommandError {
    CommandError::repeats("ERR Unknown client type '", name, "'")
}

/// CLIENT LIST, of all clients or of those that filters apply to.
pub fn list(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.publish();
    let clients = chosen(client, args)?;
    let mut lines = Vec::with_capacity(clients.len() * 400);
    for other in clients {
        let argument_bytes = if other.id == client.shared.id { argument_bytes(args) } else { 0 };
        write_line(&mut lines, &other, argument_bytes, client.now_ms);
    }
    client.reply.verbatim("txt", &lines);
    Ok(())
}

/// CLIENT INFO.
pub fn info(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.publish();
    let mut line = Vec::with_capacity(400);
    write_line(&mut line, &client.shared, argument_bytes(args), client.now_ms);
    client.reply.verbatim("txt", &line);
    Ok(())
}

fn argument_bytes(args: &Args<'_>) -> usize {
    args.from(0).map(<[u8]>::len).sum()
}

fn chosen(client: &Client, args: &Args<'_>) -> Result<Vec<Arc<ClientShared>>, CommandError> {
    let clients = &client.node.clients;
    let begins_with_ids = args.len() > 3 && args.is(2, "ID");
    let ids: Vec<i64> = args.from(3).map_while(parse_i64).collect();
    if begins_with_ids && ids.len() == args.len() - 3 {
        // As many lines as numbers, and in their order.
        return Ok(ids.iter().filter_map(|id| u64::try_from(*id).ok().and_then(|id| clients.get(id))).collect());
    }
    let filter = Filter::of_list(args, client.node.layout.databases);
    let is_no_id = begins_with_ids && (ids.is_empty() || filter == Err(CommandError::Syntax));
    let filter = if is_no_id { Err(CommandError::Text("ERR Invalid client ID")) } else { filter }?;
    let mut all = clients.all();
    all.retain(|other| filter.applies_to(other, client.shared.id, client.now_ms));
    Ok(all)
}

pub(super) fn flags(client: &ClientShared) -> String {
    let flags: String = [
        ('O', client.is_monitor.load(Relaxed)),
        ('P', client.subscriptions.any()),
        ('x', client.multi.load(Relaxed) >= 0),
        ('b', client.waits()),
        ('t', client.tracking.get().has(Mode::ON)),
        ('R', client.tracking.get().has(Mode::BROKEN)),
        ('B', client.tracking.get().has(Mode::BCAST)),
        ('d', client.has_watched_in_vain()),
        ('A', client.close_asap.load(Relaxed)),
        ('U', matches!(client.address.remote, Address::Unix(_))),
        ('e', client.no_evict.load(Relaxed)),
        ('T', client.no_touch.load(Relaxed)),
    ]
    .iter()
    .filter(|(_, is_set)| *is_set)
    .map(|(flag, _)| *flag)
    .collect();
    if flags.is_empty() { "N".to_owned() } else { flags }
}

fn last_command(client: &ClientShared) -> &'static str {
    let index = (client.last_command.load(Relaxed) as usize).checked_sub(1);
    index.and_then(Command::spec_at).map_or("NULL", |spec| spec.name)
}

/// The line of a client, for the server's own log.
pub(crate) fn line(client: &ClientShared) -> String {
    let mut out = Vec::new();
    write_line(&mut out, client, 0, simurgh_kernel::time::wall_ms());
    String::from_utf8_lossy(&out).trim_end().to_owned()
}

/// Writes what is known of a client as one line.
fn write_line(out: &mut Vec<u8>, client: &ClientShared, argument_bytes: usize, now_ms: i64) {
    let texts = client.texts().clone();
    let pushed = client.inbox.pushed() as u64;
    let waiting = client.output.load(Relaxed) + pushed;
    let capacity = client.output_capacity.load(Relaxed);
    let excess = waiting.saturating_sub(OUTPUT_OWN);
    let (input, input_free) = (client.query_buffer.load(Relaxed), client.query_buffer_free.load(Relaxed));
    let multi_memory = client.multi_memory.load(Relaxed);
    let own = size_of::<Client>() + size_of::<ClientShared>() + client.memory_beside() + argument_bytes;
    let total = own as u64 + input + input_free + multi_memory + capacity + pushed;
    let mut field = |name: &str, value: &dyn std::fmt::Display| {
        // Writing into memory does not fail.
        let _ = write!(out, "{name}={value} ");
    };
    field("id", &client.id);
    field("addr", &client.address.remote);
    field("laddr", &client.address.local);
    field("fd", &-1);
    field("name", &String::from_utf8_lossy(&texts.name));
    field("age", &client.age_seconds(now_ms));
    field("idle", &client.idle_seconds(now_ms));
    field("flags", &flags(client));
    field("db", &client.database.load(Relaxed));
    field("sub", &client.subscriptions.count(Kind::Channel));
    field("psub", &client.subscriptions.count(Kind::Pattern));
    field("ssub", &client.subscriptions.count(Kind::ShardChannel));
    field("multi", &client.multi.load(Relaxed));
    // Once one has changed, there is nothing left to watch for.
    field("watch", &if client.has_watched_in_vain() { 0 } else { client.watch.load(Relaxed) });
    field("qbuf", &input);
    field("qbuf-free", &input_free);
    field("argv-mem", &argument_bytes);
    field("multi-mem", &multi_memory);
    field("rbs", &capacity);
    field("rbp", &client.output_peak.load(Relaxed));
    field("obl", &waiting.min(OUTPUT_OWN));
    field("oll", &excess.div_ceil(OUTPUT_OWN));
    field("omem", &excess);
    field("tot-mem", &total);
    field("events", if waiting > 0 { &"rw" } else { &"r" });
    field("cmd", &last_command(client));
    field("user", &"default");
    field("redir", &client.tracking.redirect_told());
    field("resp", &client.resp.load(Relaxed));
    field("lib-name", &String::from_utf8_lossy(&texts.lib_name));
    field("lib-ver", &String::from_utf8_lossy(&texts.lib_ver));
    field("io-thread", &client.core);
    field("tot-net-in", &client.net_input.load(Relaxed));
    field("tot-net-out", &client.net_output.load(Relaxed));
    field("tot-cmds", &client.commands.load(Relaxed));
    // The last field's blank is where the line ends.
    out.pop();
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use simurgh_kernel::net::PeerAddress;

    fn client() -> ClientShared {
        let address = |text: &str| Address::Tcp(text.parse().expect("an address"));
        let address = PeerAddress { remote: address("127.0.0.1:50000"), local: address("127.0.0.1:6379") };
        ClientShared::new(7, address, 1, 1_000)
    }

    #[test]
    fn a_line_has_the_fields_of_redis_in_their_order() {
        let client = client();
        client.texts().name = b"me".to_vec();
        client.output.store(OUTPUT_OWN + 5, Relaxed);
        let mut out = Vec::new();
        write_line(&mut out, &client, 10, 3_999);
        let line = String::from_utf8(out).expect("text");
        let names: Vec<&str> =
            line.split(' ').filter_map(|field| field.split_once('=')).map(|(name, _)| name).collect();
        assert_eq!(
            names.join(" "),
            "id addr laddr fd name age idle flags db sub psub ssub multi watch qbuf qbuf-free argv-mem multi-mem rbs rbp obl \
             oll omem tot-mem events cmd user redir resp lib-name lib-ver io-thread tot-net-in tot-net-out tot-cmds"
        );
        assert!(
            line.starts_with("id=7 addr=127.0.0.1:50000 laddr=127.0.0.1:6379 fd=-1 name=me age=2 idle=2 flags=N db=0 ")
        );
        assert!(line.contains(" obl=16384 oll=1 omem=5 "), "{line}");
        assert!(line.contains(" cmd=NULL user=default redir=-1 resp=2 lib-name= lib-ver= io-thread=1 "), "{line}");
        assert!(line.ends_with(" tot-cmds=0\n"));
    }

    #[test]
    fn flags_stand_in_the_order_of_redis() {
        let client = client();
        assert_eq!(flags(&client), "N");
        client.no_touch.store(true, Relaxed);
        client.no_evict.store(true, Relaxed);
        assert_eq!(flags(&client), "eT");
        client.is_monitor.store(true, Relaxed);
        client.multi.store(0, Relaxed);
        assert_eq!(flags(&client), "OxeT");
    }
}

//! SUBSCRIBE, PUBLISH and their like (<https://redis.io/docs/latest/commands/?group=pubsub>).
//!
//! A confirmation is no reply but a push: it is sent under CLIENT REPLY OFF too, and SUBSCRIBE to several channels gives several.
//! A message that was published before its receiver unsubscribed comes before that confirmation.

use crate::client::Client;
use crate::node::Node;
use crate::pubsub::{Kind, Published};
use simurgh_protocol::command::replies::help as write_help;
use simurgh_protocol::command::{Command, ConnectionCommand};
use simurgh_protocol::glob::Glob;
use simurgh_protocol::resp::Protocol;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;

/// What a confirmation begins with.
fn words(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Channel => ("subscribe", "unsubscribe"),
        Kind::Pattern => ("psubscribe", "punsubscribe"),
        Kind::ShardChannel => ("ssubscribe", "sunsubscribe"),
    }
}

/// Why a command may not run for a subscriber who speaks RESP2: its replies could not be told from messages.
pub(crate) fn refusal(client: &Client, command: Command) -> Option<CommandError> {
    use ConnectionCommand::{
        Ping, Psubscribe, Punsubscribe, Quit, Reset, Ssubscribe, Subscribe, Sunsubscribe, Unsubscribe,
    };
    if !client.is_subscriber || client.reply.protocol() == Protocol::Resp3 {
        return None;
    }
    let allowed = [Ping, Psubscribe, Punsubscribe, Quit, Reset, Ssubscribe, Subscribe, Sunsubscribe, Unsubscribe];
    if allowed.iter().any(|other| command == Command::Connection(*other)) {
        return None;
    }
    Some(CommandError::Owned(format!(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
        command.spec().name
    )))
}

fn confirm(client: &mut Client, word: &str, name: Option<&[u8]>, count: usize) {
    client.out_of_band(|reply| {
        reply.push(3);
        reply.bulk(word.as_bytes());
        match name {
            Some(name) => reply.bulk(name),
            None => reply.null(),
        }
        reply.count(count);
    });
}

fn begin(client: &mut Client, args: &Args<'_>, kind: Kind) -> Result<(), CommandError> {
    let node = client.node.clone();
    for name in args.from(1) {
        node.pubsub.subscribe(&node.layout.hasher, kind, name, &client.shared);
        client.is_subscriber = true;
        let count = client.shared.subscriptions.told(kind);
        confirm(client, words(kind).0, Some(name), count);
    }
    Ok(())
}

fn end(client: &mut Client, args: &Args<'_>, kind: Kind) -> Result<(), CommandError> {
    let node = client.node.clone();
    let all = client.shared.subscriptions.names(kind);
    let named: Vec<&[u8]> =
        if args.len() > 1 { args.from(1).collect() } else { all.iter().map(|name| &name[..]).collect() };
    for name in &named {
        if node.pubsub.unsubscribe(&node.layout.hasher, kind, name, &client.shared) {
            client.take_pushes_first();
        }
        let count = client.shared.subscriptions.told(kind);
        confirm(client, words(kind).1, Some(name), count);
    }
    if named.is_empty() {
        let count = client.shared.subscriptions.told(kind);
        confirm(client, words(kind).1, None, count);
    }
    client.is_subscriber = client.shared.subscriptions.any();
    Ok(())
}

/// Ends every subscription without a word, as RESET does.
pub(crate) fn reset(client: &mut Client) {
    if client.is_subscriber {
        client.node.pubsub.unsubscribe_all(&client.node.layout.hasher, &client.shared);
        client.is_subscriber = false;
        client.take_pushes_first();
    }
}

/// SUBSCRIBE channel \[channel ...\].
pub fn subscribe(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    begin(client, args, Kind::Channel)
}

/// UNSUBSCRIBE \[channel ...\].
pub fn unsubscribe(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    end(client, args, Kind::Channel)
}

/// PSUBSCRIBE pattern \[pattern ...\].
pub fn psubscribe(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    begin(client, args, Kind::Pattern)
}

/// PUNSUBSCRIBE \[pattern ...\].
pub fn punsubscribe(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    end(client, args, Kind::Pattern)
}

/// SSUBSCRIBE shardchannel \[shardchannel ...\].
pub fn ssubscribe(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    if client.executing.is_some() {
        return Err(CommandError::Text("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"));
    }
    begin(client, args, Kind::ShardChannel)
}

/// SUNSUBSCRIBE \[shardchannel ...\].
pub fn sunsubscribe(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    end(client, args, Kind::ShardChannel)
}

/// PUBLISH channel message: to how many subscriptions it went.
pub fn publish(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    send(client, args, Node::publish)
}

/// SPUBLISH shardchannel message.
pub fn spublish(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    send(client, args, Node::shard_publish)
}

type Send = fn(&Node, &simurgh_protocol::config::Config, &[u8], &[u8], u64) -> Published;

fn send(client: &mut Client, args: &Args<'_>, send: Send) -> Result<(), CommandError> {
    let published = send(&client.node, &client.live().config, args.at(1), args.at(2), client.shared.id);
    if published.to_sender {
        client.expect_pushes();
    }
    client.reply.count(published.receivers);
    Ok(())
}

fn list(client: &mut Client, args: &Args<'_>, kind: Kind) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(super::wrong_subcommand(args, "PUBSUB"));
    }
    let pattern = args.get(2).map(Glob::new);
    let names = client.node.pubsub.names(kind, pattern.as_ref());
    client.reply.array(names.len());
    names.iter().for_each(|name| client.reply.bulk(name));
    Ok(())
}

fn numbers(client: &mut Client, args: &Args<'_>, kind: Kind) -> Result<(), CommandError> {
    client.reply.array((args.len() - 2) * 2);
    for name in args.from(2) {
        let count = client.node.pubsub.subscribers(&client.node.layout.hasher, kind, name);
        client.reply.bulk(name);
        client.reply.count(count);
    }
    Ok(())
}

/// PUBSUB CHANNELS \[pattern\].
pub fn channels(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    list(client, args, Kind::Channel)
}

/// PUBSUB SHARDCHANNELS \[pattern\].
pub fn shardchannels(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    list(client, args, Kind::ShardChannel)
}

/// PUBSUB NUMSUB \[channel ...\].
pub fn numsub(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    numbers(client, args, Kind::Channel)
}

/// PUBSUB SHARDNUMSUB \[shardchannel ...\].
pub fn shardnumsub(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    numbers(client, args, Kind::ShardChannel)
}

/// PUBSUB NUMPAT: different patterns, however many listen to each.
pub fn numpat(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.reply.count(client.node.pubsub.count(Kind::Pattern));
    Ok(())
}

/// PUBSUB HELP.
pub fn help(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let lines = [
        "CHANNELS [<pattern>]",
        "    List the channels that somebody listens to, or those that match <pattern>.",
        "NUMPAT",
        "    Count the patterns that somebody listens to.",
        "NUMSUB [<channel> ...]",
        "    Count the subscribers of channels, those of patterns aside.",
        "SHARDCHANNELS [<pattern>]",
        "    List the shard channels that somebody listens to, or those that match <pattern>.",
        "SHARDNUMSUB [<shardchannel> ...]",
        "    Count the subscribers of shard channels.",
    ];
    write_help("PUBSUB", &lines, &mut client.reply);
    Ok(())
}

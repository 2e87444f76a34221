//! CONFIG: reads and changes the configuration.
//!
//! CONFIG SET is all or nothing: what would change is computed first, what cannot change while the server runs is refused, and
//! only then do the effects happen and the new configuration replace the old one.

use super::persistence::begin;
use crate::client::Client;
use crate::log::Mode;
use crate::node::{Node, mode_of};
use crate::persistence::Job;
use simurgh_kernel::process;
use simurgh_protocol::command::replies::help as write_help;
use simurgh_protocol::config::{Config, Key, SetError, rewrite as rewritten};
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;
use std::path::Path;
use std::sync::PoisonError;

/// CONFIG GET pattern \[pattern ...\].
pub fn get(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let patterns: Vec<&[u8]> = args.from(2).collect();
    let found = client.node.configuration.current().settings.get(&patterns);
    client.reply.map(found.len());
    for (name, value) in found {
        client.reply.bulk(&name);
        client.reply.bulk(&value);
    }
    Ok(())
}

/// CONFIG SET parameter value \[parameter value ...\]. All shards are held: the log begins between two commands.
pub fn set(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let words: Vec<&[u8]> = args.from(2).collect();
    let node = client.node.clone();
    let _alone = node.setting.lock().unwrap_or_else(PoisonError::into_inner);
    let is_local = client.shared.address.remote.is_local();
    let owned = |error: SetError| match &error {
        SetError::Unknown { name } => {
            CommandError::repeats("ERR Unknown option or number of arguments for CONFIG SET - '", name, "'")
        }
        SetError::Syntax | SetError::Failed { .. } => CommandError::Owned(error.to_string()),
    };
    let change = node.configuration.current().settings.change(&words, is_local).map_err(owned)?;
    for key in &change.changed {
        if let Some(reason) = why_not(*key) {
            return Err(owned(SetError::failed(*key, reason)));
        }
    }
    if let Some(key) = change.changed.iter().find(|key| matches!(key, Key::Port | Key::Bind)) {
        let reason = if *key == Key::Port {
            "Unable to listen on this port. Check server logs."
        } else {
            "Failed to bind to specified addresses."
        };
        node.listen_at(&change.settings.config()).map_err(|error| {
            tracing::warn!("{error}");
            owned(SetError::failed(*key, reason))
        })?;
    }
    let (changed, config) = (change.changed.clone(), change.settings.config());
    node.configuration.replace(change.settings);
    perform(client, &changed, &config, shards);
    client.refresh();
    client.reply.ok();
    Ok(())
}

/// Why this change cannot be made while the server runs.
fn why_not(key: Key) -> Option<&'static str> {
    if key == Key::Dir { Some("the data folder cannot change while the server runs; restart it") } else { None }
}

/// What a change does besides being read by those who look.
fn perform(client: &mut Client, changed: &[Key], config: &Config, shards: &mut dyn Shards) {
    let node = client.node.clone();
    if changed.contains(&Key::AppendOnly) {
        if config.append_only { start_log(client, shards) } else { stop_log(&node) }
    }
    if changed.contains(&Key::AppendFsync) && node.log.mode() != Mode::Off {
        node.log.set_mode(mode_of(config));
    }
    node.log.set_tells_time(config.aof_tells_time);
    if changed.contains(&Key::LogLevel)
        && let Some(set_log_level) = node.set_log_level
    {
        set_log_level(config.log_level);
    }
}

/// The log begins with a base of what there is now, and with every change from now on.
fn start_log(client: &mut Client, shards: &mut dyn Shards) {
    client.node.persistence.state().log_starts = true;
    // Half of a transaction must not be part of the base.
    if client.executing.is_some() || begin(client, shards, Job::Rewrite).is_none() {
        tracing::warn!("the log is to be started, but something else is under way: it begins when that has ended");
    }
    // What follows while these shards are held is recorded already.
    client.effects().recording = client.node.log.mode() != Mode::Off;
}

/// Nothing is recorded any more; what was, is written.
fn stop_log(node: &Node) {
    node.log.set_mode(Mode::Off);
    node.persistence.state().log_starts = false;
    node.cancel_snapshot(Job::Rewrite);
}

/// CONFIG REWRITE: the file brought up to date, in one step.
pub fn rewrite(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let Some(path) = client.node.config_file.as_deref().map(Path::new) else {
        return Err(CommandError::Text("ERR The server is running without a config file"));
    };
    let _alone = client.node.setting.lock().unwrap_or_else(PoisonError::into_inner);
    let old = match process::read_file(path) {
        Ok(old) => old,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(CommandError::Owned(format!("ERR Rewriting config file: {error}"))),
    };
    let new = rewritten(&old, &client.node.configuration.current().settings);
    process::replace_file(path, &new).map_err(|error| {
        tracing::warn!(%error, file = %path.display(), "CONFIG REWRITE failed");
        CommandError::Owned(format!("ERR Rewriting config file: {error}"))
    })?;
    tracing::info!(file = %path.display(), "CONFIG REWRITE executed with success");
    client.reply.ok();
    Ok(())
}

/// CONFIG RESETSTAT.
pub fn resetstat(client: &mut Client, _args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let node = &client.node;
    node.stats.reset();
    node.command_stats.reset();
    node.samples.reset();
    for index in 0..node.layout.shards {
        shards.shard(index).stats = simurgh_storage::ShardStats::default();
    }
    client.reply.ok();
    Ok(())
}

/// CONFIG HELP.
pub fn help(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let lines = [
        "GET <pattern>",
        "    List the parameters whose names match the glob-like <pattern>, with their values.",
        "SET <directive> <value>",
        "    Change parameters: all of those that are named, or none.",
        "RESETSTAT",
        "    Set the statistics of INFO back to zero.",
        "REWRITE",
        "    Write the configuration to its file.",
    ];
    write_help("CONFIG", &lines, &mut client.reply);
    Ok(())
}

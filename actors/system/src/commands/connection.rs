//! What a connection says about itself: PING, ECHO, HELLO, AUTH, SELECT, RESET, QUIT.

use crate::client::{Client, Close};
use crate::commands::transaction::end_watch;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::resp::Protocol;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;
use std::sync::atomic::Ordering::Relaxed;

const WRONG_PASSWORD: CommandError =
    CommandError::Text("WRONGPASS invalid username-password pair or user is disabled.");

/// PING \[message\].
pub fn ping(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    if args.len() > 2 {
        return Err(CommandError::WrongArity("ping"));
    }
    if client.is_subscriber && client.reply.protocol() == Protocol::Resp2 {
        client.reply.array(2);
        client.reply.bulk(b"pong");
        client.reply.bulk(args.get(1).unwrap_or_default());
        return Ok(());
    }
    match args.get(1) {
        Some(message) => client.reply.bulk(message),
        None => client.reply.simple("PONG"),
    }
    Ok(())
}

/// ECHO message.
pub fn echo(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.reply.bulk(args.at(1));
    Ok(())
}

/// QUIT: closes once the replies so far have been sent.
pub fn quit(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.reply.ok();
    client.close = Some(Close::AfterReply);
    Ok(())
}

/// SELECT index.
pub fn select(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let index = parse_i64(args.at(1)).ok_or(CommandError::NotAnInteger)?;
    if i32::try_from(index).is_err() {
        return Err(CommandError::Text("ERR value is out of range, value must between -2147483648 and 2147483647"));
    }
    match usize::try_from(index) {
        Ok(index) if index < client.node.layout.databases => client.database = index,
        _ => return Err(CommandError::DatabaseOutOfRange),
    }
    client.reply.ok();
    Ok(())
}

/// RESET: as a connection that has just been made.
pub fn reset(client: &mut Client, _args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.transaction = None;
    end_watch(client, shards);
    super::pubsub::reset(client);
    super::client_tracking::end(client);
    if client.is_monitor {
        let shared = client.shared.clone();
        crate::commands::monitor::forget(&client.node, &shared);
        client.is_monitor = false;
    }
    client.database = 0;
    client.reply_mode.reset(&mut client.reply);
    client.no_touch = false;
    client.durability.reset();
    client.shared.no_touch.store(false, Relaxed);
    client.shared.no_evict.store(false, Relaxed);
    client.shared.texts().name = Vec::new();
    client.reply.set_protocol(Protocol::Resp2);
    client.shared.resp.store(2, Relaxed);
    client.authenticated = client.live().config.require_pass.is_none();
    client.reply.simple("RESET");
    Ok(())
}

/// Compares in a time that does not depend on where the first difference is.
fn is_equal_in_constant_time(one: &[u8], other: &[u8]) -> bool {
    let mut difference = one.len() ^ other.len();
    for index in 0..one.len().max(other.len()) {
        let left = one.get(index).copied().unwrap_or(0);
        let right = other.get(index).copied().unwrap_or(0);
        difference |= usize::from(left ^ right);
    }
    std::hint::black_box(difference) == 0
}

/// Whether user and password are those of somebody; there is one user, `default`.
fn is_known(client: &Client, user: &[u8], password: &[u8]) -> bool {
    let is_right = match &client.live().config.require_pass {
        Some(expected) => is_equal_in_constant_time(password, expected),
        None => true,
    };
    if !(is_right && user == b"default") {
        client.node.stats.acl_access_denied_auth.add(1);
    }
    is_right && user == b"default"
}

/// AUTH \[username\] password.
pub fn auth(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let (user, password) = match args.len() {
        2 if client.live().config.require_pass.is_none() => {
            return Err(CommandError::Text(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
            ));
        }
        2 => (&b"default"[..], args.at(1)),
        3 => (args.at(1), args.at(2)),
        _ => return Err(CommandError::Syntax),
    };
    if !is_known(client, user, password) {
        return Err(WRONG_PASSWORD);
    }
    client.authenticated = true;
    client.reply.ok();
    Ok(())
}

/// HELLO \[protover \[AUTH username password\] \[SETNAME clientname\]\].
pub fn hello(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let protocol = match args.get(1).map(parse_i64) {
        None => None,
        Some(Some(2)) => Some(Protocol::Resp2),
        Some(Some(3)) => Some(Protocol::Resp3),
        Some(None) => return Err(CommandError::Text("ERR Protocol version is not an integer or out of range")),
        Some(Some(_)) => return Err(CommandError::Text("NOPROTO unsupported protocol version")),
    };
    let (mut credentials, mut name, mut index) = (None, None, 2);
    while index < args.len() {
        if args.is(index, "AUTH") && index + 2 < args.len() {
            credentials = Some((args.at(index + 1), args.at(index + 2)));
            index += 3;
        } else if args.is(index, "SETNAME") && index + 1 < args.len() {
            name = Some(args.at(index + 1));
            index += 2;
        } else {
            return Err(CommandError::repeats("ERR Syntax error in HELLO option '", args.at(index), "'"));
        }
    }
    if let Some((user, password)) = credentials {
        if !is_known(client, user, password) {
            return Err(WRONG_PASSWORD);
        }
        client.authenticated = true;
    }
    if !client.authenticated {
        return Err(CommandError::Text(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
             <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        super::client::set_name(client, name)?;
    }
    if let Some(protocol) = protocol {
        client.reply.set_protocol(protocol);
        client.shared.resp.store(if protocol == Protocol::Resp3 { 3 } else { 2 }, Relaxed);
    }
    greet(client);
    Ok(())
}

fn greet(client: &mut Client) {
    let version = client.live().config.advertised_version.clone();
    let id = i64::try_from(client.shared.id).unwrap_or(i64::MAX);
    let reply = &mut client.reply;
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(version.as_bytes());
    reply.bulk(b"proto");
    reply.integer(if reply.protocol() == Protocol::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(id);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_compared_whole() {
        assert!(is_equal_in_constant_time(b"secret", b"secret"));
        assert!(!is_equal_in_constant_time(b"secret", b"secre"));
        assert!(!is_equal_in_constant_time(b"secret", b"secret\0"));
        assert!(!is_equal_in_constant_time(b"", b"x"));
    }
}

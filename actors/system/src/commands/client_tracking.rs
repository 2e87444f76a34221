//! CLIENT TRACKING, CACHING, GETREDIR and TRACKINGINFO: what a client asks of client-side caching.

use crate::client::Client;
use crate::tracking::Mode;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;

/// The options of CLIENT TRACKING.
struct Options<'a> {
    is_on: bool,
    mode: Mode,
    redirect: u64,
    prefixes: Vec<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn read(client: &Client, args: &Args<'a>) -> Result<Self, CommandError> {
        let (mut mode, mut redirect, mut prefixes, mut index) = (Mode::ON, 0, Vec::new(), 3);
        let switches =
            [("BCAST", Mode::BCAST), ("OPTIN", Mode::OPTIN), ("OPTOUT", Mode::OPTOUT), ("NOLOOP", Mode::NOLOOP)];
        while index < args.len() {
            if args.is(index, "REDIRECT") && index + 1 < args.len() {
                if redirect != 0 {
                    return Err(CommandError::Text("ERR A client can only redirect to a single other client"));
                }
                index += 1;
                let id = parse_i64(args.at(index)).ok_or(CommandError::NotAnInteger)?;
                redirect = u64::try_from(id).unwrap_or(0);
                if client.node.clients.get(redirect).is_none() {
                    return Err(CommandError::Text("ERR The client ID you want redirect to does not exist"));
                }
            } else if args.is(index, "PREFIX") && index + 1 < args.len() {
                index += 1;
                prefixes.push(args.at(index));
            } else {
                let switch = switches.iter().find(|(word, _)| args.is(index, word));
                mode = mode.with(switch.ok_or(CommandError::Syntax)?.1);
            }
            index += 1;
        }
        let is_on = args.is(2, "ON");
        if !is_on && !args.is(2, "OFF") {
            return Err(CommandError::Syntax);
        }
        Ok(Self { is_on, mode, redirect, prefixes })
    }

    /// Whether these options go together, and with how the client tracks now.
    fn check(&self, before: Mode) -> Result<(), CommandError> {
        let (is_broadcast, is_tracking) = (self.mode.has(Mode::BCAST), before.has(Mode::ON));
        let (opts_in, opts_out) = (self.mode.has(Mode::OPTIN), self.mode.has(Mode::OPTOUT));
        let text = if !is_broadcast && !self.prefixes.is_empty() {
            "ERR PREFIX option requires BCAST mode to be enabled"
        } else if is_tracking && before.has(Mode::BCAST) != is_broadcast {
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a \
             different mode."
        } else if is_broadcast && (opts_in || opts_out) {
            "ERR OPTIN and OPTOUT are not compatible with BCAST"
        } else if opts_in && opts_out {
            "ERR You can't specify both OPTIN mode and OPTOUT mode"
        } else if (opts_in && before.has(Mode::OPTOUT)) || (opts_out && before.has(Mode::OPTIN)) {
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a \
             different mode."
        } else {
            return Ok(());
        };
        Err(CommandError::Text(text))
    }
}

/// CLIENT TRACKING (ON | OFF) \[REDIRECT client-id\] \[PREFIX prefix ...\] \[BCAST\] \[OPTIN\] \[OPTOUT\] \[NOLOOP\].
pub fn tracking(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let options = Options::read(client, args)?;
    if options.is_on {
        options.check(client.shared.tracking.get())?;
        let node = client.node.clone();
        if options.mode.has(Mode::BCAST) {
            node.tracking.check_prefixes(&client.shared, &options.prefixes)?;
        }
        node.tracking.begin(&client.shared, options.mode, options.redirect, &options.prefixes);
        client.tracks_reads = !options.mode.has(Mode::BCAST);
        client.effects().watching = true;
    } else {
        end(client);
    }
    client.reply.ok();
    Ok(())
}

/// The client tracks no longer.
pub(crate) fn end(client: &mut Client) {
    client.node.tracking.end(&client.shared);
    (client.tracks_reads, client.caching) = (false, false);
}

/// CLIENT CACHING (YES | NO): whether the next command's keys are tracked.
pub fn caching(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let mode = client.shared.tracking.get();
    if !mode.has(Mode::ON) {
        return Err(CommandError::Text(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    }
    match (args.is(2, "YES"), args.is(2, "NO")) {
        (true, _) if !mode.has(Mode::OPTIN) => {
            Err(CommandError::Text("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."))
        }
        (_, true) if !mode.has(Mode::OPTOUT) => {
            Err(CommandError::Text("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."))
        }
        (false, false) => Err(CommandError::Syntax),
        (true, _) | (_, true) => {
            client.caching = true;
            client.reply.ok();
            Ok(())
        }
    }
}

/// CLIENT GETREDIR.
pub fn getredir(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.reply.integer(client.shared.tracking.redirect_told());
    Ok(())
}

/// CLIENT TRACKINGINFO.
pub fn trackinginfo(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let mode = client.shared.tracking.get();
    let flags = [
        (if mode.has(Mode::ON) { "on" } else { "off" }, true),
        ("bcast", mode.has(Mode::BCAST)),
        ("optin", mode.has(Mode::OPTIN)),
        ("caching-yes", mode.has(Mode::OPTIN) && client.caching),
        ("optout", mode.has(Mode::OPTOUT)),
        ("caching-no", mode.has(Mode::OPTOUT) && client.caching),
        ("noloop", mode.has(Mode::NOLOOP)),
        ("broken_redirect", mode.has(Mode::BROKEN)),
    ];
    let prefixes = client.node.tracking.prefixes_of(&client.shared);
    let redirect = client.shared.tracking.redirect_told();
    let reply = &mut client.reply;
    reply.map(3);
    reply.bulk(b"flags");
    let set = flags.iter().filter(|(_, is_set)| *is_set);
    reply.set(set.clone().count());
    set.for_each(|(name, _)| reply.bulk(name.as_bytes()));
    reply.bulk(b"redirect");
    reply.integer(redirect);
    reply.bulk(b"prefixes");
    reply.array(prefixes.len());
    prefixes.iter().for_each(|prefix| reply.bulk(prefix));
    Ok(())
}

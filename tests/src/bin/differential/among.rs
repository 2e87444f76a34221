//! What happens among several clients: commands that wait and who wakes them, and what those are told who listen.
//!
//! Each is played on connections of its own and written down as a transcript; the two servers' transcripts are compared.

use super::{Words, in_common, show_words, without_moments};
use anyhow::{Context, Result, bail};
use simurgh_tests::client::Client;
use simurgh_tests::resp::{Value, write_request};
use simurgh_tests::text::show;
use std::net::SocketAddr;
use std::time::Duration;

/// How long an answer that need not come is waited for, between two looks at whether its client waits.
const GLANCE: Duration = Duration::from_millis(2);

/// Looks until a client that neither answers nor waits counts as lost.
const GLANCES_MAX: usize = 2000;

/// What ends the listening: everything before its echo was sent before.
const MARK: &str = "the end of what was told";

/// Who said what, in the order in which it was read.
pub type Transcript = Vec<(String, Option<Value>)>;

/// The first difference between what two servers said.
pub fn first_difference(ours: &Transcript, oracle: &Transcript, common_only: bool) -> Option<String> {
    let settled = |said: Option<&(String, Option<Value>)>| {
        let value = said.and_then(|(_, value)| value.as_ref());
        value.map(|value| without_moments(&if common_only { in_common(value) } else { value.clone() }))
    };
    let at = (0..ours.len().max(oracle.len())).find(|at| settled(ours.get(*at)) != settled(oracle.get(*at)))?;
    let line = |said: Option<&(String, Option<Value>)>| match said {
        Some((who, Some(value))) => format!("{who}: {}", show(value)),
        Some((who, None)) => format!("{who}: closed the connection"),
        None => "nothing more".into(),
    };
    Some(format!("among several clients, at {at}\n  oracle {}\n  ours   {}", line(oracle.get(at)), line(ours.get(at))))
}

/// Clients wait, in turn; another acts; those that wait still are unblocked.
pub fn wake(address: SocketAddr, resp: u8, waiting: &[Words], actions: &[Words]) -> Result<Transcript> {
    let mut actor = Client::connect_as(address, resp)?;
    let mut waiters = Vec::new();
    for words in waiting {
        let mut waiter = Client::connect_as(address, resp)?;
        let Value::Integer(id) = waiter.ask(&["CLIENT", "ID"])? else { bail!("CLIENT ID gives a number") };
        let mut request = Vec::new();
        write_request(&mut request, words);
        waiter.send(&request)?;
        until_it_waits(&mut actor, &mut waiter, id)?;
        waiters.push((waiter, id, show_words(words)));
    }
    let mut transcript = Transcript::new();
    for words in actions {
        transcript.push((show_words(words), Some(actor.ask(words)?)));
    }
    for (waiter, id, words) in &mut waiters {
        let unblocked = actor.ask(&["CLIENT", "UNBLOCK", &id.to_string()])?;
        transcript.push((format!("whether it waits: {words}"), Some(unblocked)));
        transcript.push((words.clone(), waiter.read()?.map(|reply| reply.value)));
    }
    Ok(transcript)
}

fn until_it_waits(actor: &mut Client, waiter: &mut Client, id: i64) -> Result<()> {
    for _ in 0..GLANCES_MAX {
        let list = match actor.ask(&["CLIENT", "LIST", "ID", &id.to_string()])? {
            Value::Bulk(text) | Value::Verbatim(text) => String::from_utf8_lossy(&text).into_owned(),
            other => bail!("CLIENT LIST answered {other:?}"),
        };
        let flags = list.split(' ').find_map(|field| field.strip_prefix("flags=")).unwrap_or_default();
        if flags.contains('b') || waiter.has_reply(GLANCE)? {
            return Ok(());
        }
    }
    bail!("a client neither waits nor is answered")
}

/// A client asks to be told, another acts, and all that the first is sent is written down.
pub fn listen(address: SocketAddr, resp: u8, listener: &[Words], actions: &[Words]) -> Result<Transcript> {
    let (mut ear, mut actor) = (Client::connect_as(address, resp)?, Client::connect_as(address, resp)?);
    let mut transcript = Transcript::new();
    let mut request = Vec::new();
    for words in listener {
        request.clear();
        write_request(&mut request, words);
        ear.send(&request)?;
    }
    // The listener has done all of it before anybody acts.
    hear(&mut ear, &mut transcript, "the listener")?;
    for words in actions {
        transcript.push((show_words(words), Some(actor.ask(words)?)));
    }
    hear(&mut ear, &mut transcript, "told")?;
    // Nobody shall find its subscriptions later.
    until_it_is_reset(&mut ear)?;
    forgotten_last(&mut transcript);
    Ok(transcript)
}

fn until_it_is_reset(ear: &mut Client) -> Result<()> {
    let mut request = Vec::new();
    write_request(&mut request, &["RESET"]);
    ear.send(&request)?;
    while let Some(reply) = ear.read()? {
        if reply.value == Value::Simple(b"RESET".to_vec()) {
            break;
        }
    }
    Ok(())
}

/// All that a client is sent until its mark comes back.
fn hear(ear: &mut Client, transcript: &mut Transcript, who: &str) -> Result<()> {
    let mut request = Vec::new();
    write_request(&mut request, &["PING", MARK]);
    ear.send(&request)?;
    loop {
        let Some(reply) = ear.read().context("a listener's mark does not come back")? else {
            transcript.push((who.to_owned(), None));
            return Ok(());
        };
        let is_mark = match &reply.value {
            Value::Bulk(text) => text == MARK.as_bytes(),
            Value::Array(parts) => parts.last() == Some(&Value::Bulk(MARK.into())),
            _ => false,
        };
        transcript.push((who.to_owned(), Some(reply.value)));
        if is_mark {
            return Ok(());
        }
    }
}

/// When a cache is told to forget keys, and in which order, is not fixed beside all else: so the keys, sorted and each once, stand at
/// the end.
fn forgotten_last(transcript: &mut Transcript) {
    let mut keys = Vec::new();
    transcript.retain(|(_, value)| match value {
        Some(Value::Push(parts)) if parts.first() == Some(&Value::Bulk(b"invalidate".to_vec())) => {
            keys.extend(parts.get(1).cloned());
            false
        }
        _ => true,
    });
    let names = |key: Value| if let Value::Array(names) = key { names } else { vec![key] };
    let mut keys: Vec<Value> = keys.into_iter().flat_map(names).collect();
    keys.sort_by_key(show);
    keys.dedup();
    transcript.extend(keys.into_iter().map(|key| ("forgotten".to_owned(), Some(key))));
}

//! The toy's lists, which clients wait for: a list is a value, its items joined by line ends. Who waits looks again and again, in the
//! order of arrival.

use std::collections::VecDeque;
use std::time::Duration;

use simurgh_kernel::time;
use simurgh_protocol::resp::{Protocol, Reply};

use super::{State, Toy};
use crate::options::Mistake;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// The items of a list.
pub fn items(value: Option<&[u8]>) -> Vec<&[u8]> {
    value
        .filter(|value| !value.is_empty())
        .map(|value| value.split(|byte| *byte == b'\n').collect())
        .unwrap_or_default()
}

/// The value of a list.
pub fn join(items: &[&[u8]]) -> Vec<u8> {
    items.join(&b'\n')
}

/// Those who wait.
#[derive(Debug, Default)]
pub struct Waiting {
    tickets: VecDeque<(u64, Vec<Vec<u8>>)>,
    next: u64,
    /// How many may be served since the last push, for who serves too few.
    pub served_left: u32,
}

impl Waiting {
    fn enter(&mut self, keys: &[&[u8]]) -> u64 {
        self.next += 1;
        self.tickets.push_back((self.next, keys.iter().map(|key| key.to_vec()).collect()));
        self.next
    }

    fn leave(&mut self, ticket: u64) {
        self.tickets.retain(|(other, _)| *other != ticket);
    }

    fn is_turn(&self, ticket: u64, key: &[u8], last_first: bool) -> bool {
        let mut those = self.tickets.iter().filter(|(_, keys)| keys.iter().any(|other| other == key));
        let next = if last_first { those.next_back() } else { those.next() };
        next.is_some_and(|(first, _)| *first == ticket)
    }
}

/// What a command wants that takes an item.
struct Wish<'a> {
    from: &'a [&'a [u8]],
    to: Option<&'a [u8]>,
    timeout: &'a [u8],
}

fn wish<'a>(words: &'a [&'a [u8]]) -> Option<Wish<'a>> {
    match words {
        [b"BLPOP", from @ .., timeout] => Some(Wish { from, to: None, timeout }),
        [b"BLMOVE", from, to, b"LEFT", b"RIGHT", timeout] => {
            Some(Wish { from: std::slice::from_ref(from), to: Some(to), timeout })
        }
        _ => None,
    }
}

impl Toy {
    /// Waits for an item, if that is what the command does: its reply, and the position that this waits for.
    pub(super) async fn take(&self, words: &[Vec<u8>]) -> Option<(Vec<u8>, u64)> {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let wish = wish(&words)?;
        let seconds: f64 = std::str::from_utf8(wish.timeout).ok()?.parse().ok()?;
        let deadline = time::monotonic_ns() + Duration::from_secs_f64(seconds).as_nanos() as u64;
        let ticket = self.state().waiting.enter(wish.from);
        let mut has_waited = false;
        loop {
            {
                let mut state = self.state();
                let taken = self.try_take(&mut state, &wish, ticket, has_waited);
                if taken.is_some() || time::monotonic_ns() >= deadline {
                    state.waiting.leave(ticket);
                    let is_hasty = self.mistake == Some(Mistake::HastyServing);
                    let position = if is_hasty { 0 } else { state.position };
                    return Some((taken.unwrap_or_else(|| b"*-1\r\n".to_vec()), position));
                }
            }
            has_waited = true;
            time::sleep(PAUSE).await;
        }
    }

    fn try_take(&self, state: &mut State, wish: &Wish<'_>, ticket: u64, has_waited: bool) -> Option<Vec<u8>> {
        let serves_few = has_waited && self.mistake == Some(Mistake::ForgottenWaiter);
        if serves_few && state.waiting.served_left == 0 {
            return None;
        }
        let last_first = self.mistake == Some(Mistake::Overtaking);
        for key in wish.from {
            let list = state.get(key).cloned().unwrap_or_default();
            let list = items(Some(&list));
            let Some((first, rest)) = list.split_first() else { continue };
            if !state.waiting.is_turn(ticket, key, last_first) {
                continue;
            }
            let mut changes = vec![(key.to_vec(), join(rest))];
            let mut reply = Reply::new(Protocol::Resp2);
            if let Some(to) = wish.to {
                let moved = state.get(to).cloned().unwrap_or_default();
                let mut moved = items(Some(&moved));
                moved.push(first);
                changes.push((to.to_vec(), join(&moved)));
            } else {
                reply.array(2);
                reply.bulk(key);
            }
            reply.bulk(first);
            state.waiting.served_left = state.waiting.served_left.saturating_sub(1);
            if self.mistake == Some(Mistake::UnloggedServing) {
                state.set_without_log(changes);
            } else {
                state.set(changes);
            }
            return Some(reply.bytes().to_vec());
        }
        None
    }
}

//! Transactions that append to shared lists and read them, by MULTI and EXEC, by a script, or as a single command: each element is
//! appended once in the whole timeline, so that reads tell the order of all of them. Lists are replaced often, so that they stay
//! short.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use simurgh_kernel::time;
use simurgh_protocol::resp::decode::Value;

use super::think;
use crate::client::Client;
use crate::judge::append::{Outcome, Step, Transaction};
use crate::random::Random;
use crate::tally;
use crate::world::{Finding, World};

/// So many lists are in use at a time,
const LISTS: u64 = 3;
/// until they have so many elements together.
const ELEMENTS_MAX: u64 = 60;

/// Carries out steps: `a` appends the argument that follows, `r` reads.
const SCRIPT: &[u8] = b"local replies = {} \
for place, key in ipairs(KEYS) do \
  if ARGV[2 * place - 1] == 'a' then replies[place] = redis.call('RPUSH', key, ARGV[2 * place]) \
  else replies[place] = redis.call('LRANGE', key, 0, -1) end \
end \
return replies";

/// What all clients did.
#[derive(Debug, Clone, Default)]
pub struct Book(Arc<Mutex<Pages>>);

#[derive(Debug, Default)]
struct Pages {
    history: Vec<Transaction>,
    elements: u64,
}

impl Book {
    /// Everything, in the order sent.
    pub fn history(&self) -> Vec<Transaction> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).history.clone()
    }

    /// Draws a transaction's steps and notes that it begins.
    fn begin(&self, random: &mut Random, count: u64) -> (usize, Vec<Step>) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut steps = Vec::new();
        for _ in 0..count {
            let key = pages.elements / ELEMENTS_MAX * LISTS + random.below(LISTS);
            steps.push(if random.chance(2) {
                pages.elements += 1;
                Step::Append { key, element: pages.elements, length: None }
            } else {
                Step::Read { key, list: None }
            });
        }
        (pages.push(steps.clone()), steps)
    }

    /// Notes that all lists are about to be read.
    fn begin_last(&self) -> (usize, Vec<Step>) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = 0..(pages.elements / ELEMENTS_MAX + 1) * LISTS;
        let steps: Vec<Step> = keys.map(|key| Step::Read { key, list: None }).collect();
        (pages.push(steps.clone()), steps)
    }

    fn end(&self, index: usize, outcome: Outcome, steps: Vec<Step>) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let one = &mut pages.history[index];
        (one.outcome, one.steps) = (outcome, steps);
        one.completed_ns = Some(time::monotonic_ns());
    }
}

impl Pages {
    fn push(&mut self, steps: Vec<Step>) -> usize {
        let invoked_ns = time::monotonic_ns();
        self.history.push(Transaction { steps, outcome: Outcome::Unknown, invoked_ns, completed_ns: None });
        self.history.len() - 1
    }
}

/// How a transaction is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// MULTI and EXEC.
    Queued,
    /// The same, and then DISCARD.
    Discarded,
    /// The same, with a command among them that nobody knows.
    Spoilt,
    /// EVAL.
    Script,
    /// The one step as it is.
    Plain,
}

/// Runs one client until the world stops.
pub async fn run(world: World, book: Book, index: u64) {
    let name = format!("append-{index}");
    let mut random = Random::of(world.options.seed, &name);
    let mut client = Client::new(world.address);
    while !world.is_stopping() {
        let done = if client.is_connected() {
            let way = *random.pick(&[
                Way::Queued,
                Way::Queued,
                Way::Script,
                Way::Script,
                Way::Plain,
                Way::Discarded,
                Way::Spoilt,
            ]);
            let count = if way == Way::Plain { 1 } else { random.between(1, 4) };
            let (place, steps) = book.begin(&mut random, count);
            transact(&world, &book, &name, &mut client, (place, way, steps)).await
        } else {
            client.connect().await
        };
        if let Err(error) = done {
            world.connection_failed(&name, &error);
        }
        think(&mut random).await;
    }
}

/// Reads all lists, as the last transaction.
pub async fn look(world: &World, book: &Book, client: &mut Client) -> io::Result<()> {
    let (place, steps) = book.begin_last();
    transact(world, book, "last look", client, (place, Way::Queued, steps)).await
}

async fn transact(
    world: &World,
    book: &Book,
    name: &str,
    client: &mut Client,
    (place, way, steps): (usize, Way, Vec<Step>),
) -> io::Result<()> {
    world.trace.note(name, format_args!("{way:?} {steps:?}"));
    let requests = requests(way, &steps);
    let slices: Vec<Vec<&[u8]>> = requests.iter().map(|words| words.iter().map(Vec::as_slice).collect()).collect();
    client.send(&slices.iter().map(Vec::as_slice).collect::<Vec<_>>()).await?;
    let mut reply = Value::Null;
    for _ in 0..requests.len() {
        reply = client.receive().await?;
    }
    world.trace.note(name, format_args!("{reply:?}"));
    let replies = match (way, reply) {
        (Way::Discarded, Value::Simple(_)) => {
            book.end(place, Outcome::Aborted, steps);
            return Ok(());
        }
        (Way::Spoilt, Value::Error(text)) if text.starts_with(b"EXECABORT") => {
            book.end(place, Outcome::Aborted, steps);
            return Ok(());
        }
        (Way::Queued | Way::Script, Value::Array(replies)) => replies,
        (Way::Plain, reply) => vec![reply],
        // It may have been refused, or have failed in the middle.
        (_, Value::Error(_)) => return Ok(()),
        (_, other) => {
            world.find(Finding::Broken, format!("{name} gets {other:?} for {way:?}"));
            return Ok(());
        }
    };
    if replies.iter().any(|reply| matches!(reply, Value::Error(_))) {
        return Ok(());
    }
    match told(&steps, &replies) {
        Some(told) => {
            tally::serialized(told.len());
            book.end(place, Outcome::Committed, told);
        }
        None => world.find(Finding::Broken, format!("{name} gets {replies:?} for {steps:?}")),
    }
    Ok(())
}

fn requests(way: Way, steps: &[Step]) -> Vec<Vec<Vec<u8>>> {
    let words = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    let commands = steps.iter().map(|step| match step {
        Step::Append { key, element, .. } => words(&["RPUSH", &name_of(*key), &element.to_string()]),
        Step::Read { key, .. } => words(&["LRANGE", &name_of(*key), "0", "-1"]),
    });
    match way {
        Way::Plain => commands.collect(),
        Way::Queued => [words(&["MULTI"])].into_iter().chain(commands).chain([words(&["EXEC"])]).collect(),
        Way::Discarded => [words(&["MULTI"])].into_iter().chain(commands).chain([words(&["DISCARD"])]).collect(),
        Way::Spoilt => {
            let spoils = [words(&["SPOIL", "it"]), words(&["EXEC"])];
            [words(&["MULTI"])].into_iter().chain(commands).chain(spoils).collect()
        }
        Way::Script => {
            let mut request = vec![b"EVAL".to_vec(), SCRIPT.to_vec(), steps.len().to_string().into_bytes()];
            request.extend(steps.iter().map(|step| match step {
                Step::Append { key, .. } | Step::Read { key, .. } => name_of(*key).into_bytes(),
            }));
            for step in steps {
                request.extend(match step {
                    Step::Append { element, .. } => words(&["a", &element.to_string()]),
                    Step::Read { .. } => words(&["r", ""]),
                });
            }
            vec![request]
        }
    }
}

fn name_of(key: u64) -> String {
    format!("append:{key}")
}

/// The steps with what the replies say, if they are of the right kind.
fn told(steps: &[Step], replies: &[Value]) -> Option<Vec<Step>> {
    if steps.len() != replies.len() {
        return None;
    }
    let told = steps.iter().zip(replies).map(|(step, reply)| match (step, reply) {
        (Step::Append { key, element, .. }, Value::Integer(length)) => {
            Some(Step::Append { key: *key, element: *element, length: Some(u64::try_from(*length).ok()?) })
        }
        (Step::Read { key, .. }, Value::Array(elements)) => {
            let list = elements.iter().map(|element| match element {
                Value::Bulk(text) => std::str::from_utf8(text).ok()?.parse().ok(),
                _ => None,
            });
            Some(Step::Read { key: *key, list: Some(list.collect::<Option<_>>()?) })
        }
        _ => None,
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_every_kind_are_understood_and_others_are_not() {
        let steps = [Step::Append { key: 1, element: 5, length: None }, Step::Read { key: 1, list: None }];
        let list = Value::Array(vec![Value::Bulk(b"5".to_vec())]);
        let told_steps =
            vec![Step::Append { key: 1, element: 5, length: Some(1) }, Step::Read { key: 1, list: Some(vec![5]) }];
        assert_eq!(told(&steps, &[Value::Integer(1), list.clone()]), Some(told_steps));
        assert_eq!(told(&steps, &[Value::Integer(1)]), None);
        assert_eq!(told(&steps, &[list, Value::Integer(1)]), None);
    }

    #[test]
    fn every_way_names_every_step() {
        let steps = [Step::Append { key: 1, element: 5, length: None }, Step::Read { key: 2, list: None }];
        for (way, count) in [(Way::Queued, 4), (Way::Discarded, 4), (Way::Spoilt, 5), (Way::Script, 1), (Way::Plain, 2)]
        {
            let requests = requests(way, &steps);
            assert_eq!(requests.len(), count);
            let words = requests.concat();
            for word in ["append:1", "append:2", "5"] {
                assert!(words.iter().any(|found| found == word.as_bytes()), "{way:?} {word}");
            }
        }
    }
}

//! Runs cases over sockets, in RESP2 and RESP3, and writes what a server answered into the file.

use crate::case_file::{Action, Argument, Case, CaseFile, Outcome, Step};
use crate::client::Client;
use crate::resp::{self, Value};
use crate::text::show;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What came back in a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Observed {
    /// A reply.
    Reply(Value),
    /// The connection was closed.
    Closed,
    /// Nothing was read, as the case says.
    Unread,
    /// The server has begun to wait.
    Waiting,
}

/// A step that did not go as expected.
#[derive(Debug)]
pub struct Difference {
    /// Line of the request.
    pub line: usize,
    /// What the file says and what came, for a person.
    pub text: String,
}

impl Observed {
    /// As a case file writes it.
    pub fn show(&self) -> String {
        match self {
            Observed::Reply(value) => show(value),
            Observed::Closed => "closed".into(),
            Observed::Unread => "none".into(),
            Observed::Waiting => "waits".into(),
        }
    }

    fn is(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Reply(pattern, _) => {
                matches!(self, Observed::Reply(value) if pattern.matches(value))
            }
            Outcome::None => *self == Observed::Unread,
            Outcome::Waits => *self == Observed::Waiting,
            Outcome::Closed => *self == Observed::Closed,
        }
    }
}

/// Runs one case against the server and gives the first step that differs.
pub fn check(address: SocketAddr, file: &CaseFile, case: &Case, resp: u8) -> Result<Option<Difference>> {
    let mut run = Run::begin(address, file, case, resp)?;
    for step in &case.steps {
        let observed = run.step(step)?;
        let Some(expected) = &step.expected else { bail!("line {}: nothing is recorded", step.line) };
        if !observed.is(expected.outcome(resp)) {
            let text = format!("expected {}\ncame     {}", shorten(&expected.text), shorten(&observed.show()));
            return Ok(Some(Difference { line: step.line, text }));
        }
    }
    Ok(None)
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(2000) {
        Some((at, _)) => format!("{} ...", &text[..at]),
        None => text.to_owned(),
    }
}

/// Runs every case against the server and gives the file's text with the replies that came. Expectations that hold
/// stay as they are written, so patterns survive.
pub fn record(address: SocketAddr, text: &str) -> Result<String> {
    let file = CaseFile::parse(text)?;
    let lines: Vec<&str> = text.lines().collect();
    let (mut out, mut at) = (String::new(), 0);
    for case in &file.cases {
        let observed2 = observe(address, &file, case, 2)?;
        let observed3 = observe(address, &file, case, 3)?;
        for (index, step) in case.steps.iter().enumerate() {
            let (from, to) = step.expected_lines;
            copy_lines(&mut out, &lines[at..from]);
            at = to;
            let second = observed2.as_ref().map(|all| &all[index]);
            let third = observed3.as_ref().map(|all| &all[index]);
            match &step.expected {
                Some(expected)
                    if second.is_none_or(|seen| seen.is(&expected.resp2))
                        && third.is_none_or(|seen| seen.is(&expected.resp3)) =>
                {
                    copy_lines(&mut out, &lines[from..to]);
                }
                _ => out.push_str(&recorded(second.or(third), third.or(second))?),
            }
        }
    }
    copy_lines(&mut out, &lines[at..]);
    Ok(out)
}

fn copy_lines(out: &mut String, lines: &[&str]) {
    for line in lines {
        out.push_str(line);
        out.push('\n');
    }
}

fn recorded(second: Option<&Observed>, third: Option<&Observed>) -> Result<String> {
    let second = second.context("a case that speaks no protocol")?.show();
    let third = third.context("a case that speaks no protocol")?.show();
    Ok(if second == third { format!("{second}\n") } else { format!("resp2: {second}\nresp3: {third}\n") })
}

fn observe(address: SocketAddr, file: &CaseFile, case: &Case, resp: u8) -> Result<Option<Vec<Observed>>> {
    if !case.speaks(resp) {
        return Ok(None);
    }
    let mut run = Run::begin(address, file, case, resp)?;
    let observed: Result<Vec<Observed>> = case.steps.iter().map(|step| run.step(step)).collect();
    Ok(Some(observed.with_context(|| format!("in the case {:?}", case.title))?))
}

/// How long a client is given to be blocked.
const BLOCKING_MAX: Duration = Duration::from_secs(10);

struct Run {
    resp: u8,
    /// A connection of its own for looking at the server.
    observer: Client,
    clients: BTreeMap<String, Client>,
    kept: BTreeMap<String, Vec<u8>>,
}

impl Run {
    /// Empties the server and connects every client of the case, so that no step has a connection as a side effect.
    fn begin(address: SocketAddr, file: &CaseFile, case: &Case, resp: u8) -> Result<Self> {
        let mut first = Client::connect(address)?;
        if let Some(password) = file.password() {
            first.ask(&["AUTH", password])?;
        }
        first.ask(&["FLUSHALL"])?;
        let mut clients = BTreeMap::new();
        for step in &case.steps {
            if !clients.contains_key(&step.client) {
                clients.insert(step.client.clone(), Client::connect_as(address, resp)?);
            }
        }
        Ok(Run { resp, observer: first, clients, kept: BTreeMap::new() })
    }

    /// How many clients wait for a key.
    fn blocked_clients(&mut self) -> Result<u64> {
        let info = text_of(&self.observer.ask(&["INFO", "clients"])?);
        let info = String::from_utf8_lossy(&info).into_owned();
        let line = info.lines().find_map(|line| line.strip_prefix("blocked_clients:"));
        Ok(line.context("INFO has no blocked_clients")?.trim().parse()?)
    }

    fn until_blocked(&mut self, wanted: u64) -> Result<()> {
        let began = Instant::now();
        while self.blocked_clients()? < wanted {
            if began.elapsed() > BLOCKING_MAX {
                bail!("the client is not blocked");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<Observed> {
        let bytes = self.bytes_of(&step.action)?;
        let outcome = step.expected.as_ref().map(|expected| expected.outcome(self.resp).clone());
        if outcome == Some(Outcome::Waits) {
            let blocked = self.blocked_clients()?;
            self.clients.get_mut(&step.client).expect("every client of the case is connected").send(&bytes)?;
            self.until_blocked(blocked + 1).with_context(|| format!("line {}", step.line))?;
            return Ok(Observed::Waiting);
        }
        let client = self.clients.get_mut(&step.client).expect("every client of the case is connected");
        // A server that closed the connection may refuse the bytes; reading says so.
        let _ = client.send(&bytes);
        if outcome == Some(Outcome::None) {
            return Ok(Observed::Unread);
        }
        let reply = client.read().with_context(|| format!("line {}", step.line))?;
        let Some(reply) = reply else {
            return Ok(Observed::Closed);
        };
        if let Some(Outcome::Reply(_, Some(name))) = outcome {
            self.kept.insert(name.clone(), text_of(&reply.value));
        }
        Ok(Observed::Reply(reply.value))
    }

    fn bytes_of(&self, action: &Action) -> Result<Vec<u8>> {
        let arguments = match action {
            Action::Read => return Ok(Vec::new()),
            Action::Raw(bytes) => return Ok(bytes.clone()),
            Action::Request(arguments) => arguments,
        };
        let mut words = Vec::new();
        for argument in arguments {
            words.push(match argument {
                Argument::Bytes(bytes) => bytes.clone(),
                Argument::Kept(name) => self.kept.get(name).with_context(|| format!("${name} was not kept"))?.clone(),
            });
        }
        let mut bytes = Vec::new();
        resp::write_request(&mut bytes, &words);
        Ok(bytes)
    }
}

fn text_of(value: &Value) -> Vec<u8> {
    match value {
        Value::Bulk(text) | Value::Simple(text) | Value::Verbatim(text) => text.clone(),
        Value::Integer(number) => number.to_string().into_bytes(),
        other => show(other).into_bytes(),
    }
}

//! Cases as text: requests and the replies that a real server gave (`tests/cases/*.case`).
//!
//! ```text
//! # GETSET: the old string out, the new one in.       a comment
//! @oracle redis-8.10                                  who was asked, when it is not redis-8.2
//! @options --maxclients 5                             how the server is started, when that matters
//!
//! == replaces a string                                a case: an empty server, new connections
//! > SET a 1                                           a request of the first client
//! +OK                                                 its reply
//! b> GETSET a "two words\r\n"                         a request of client b, with quotes and escapes
//! "1"
//! > HELLO 3                                           where RESP2 and RESP3 differ, both are given
//! resp2: ["server", "redis"]
//! resp3: {"server" => "redis"}
//! raw> "PING\r\nPING\r\n"                             bytes as they are
//! +PONG
//! <                                                   one more reply of the first client (`b<`: of b)
//! +PONG
//! > CLIENT ID
//! :* as id                                            a reply kept, for `$id` in later requests
//! > CLIENT REPLY OFF
//! none                                                nothing is read here
//! b> BLPOP a 0
//! waits                                               the server says that one more client is blocked; `b<` reads the reply
//! > QUIT
//! +OK
//! <
//! closed                                              the server has closed the connection
//! ```
//!
//! `[resp2]` or `[resp3]` at the end of a title keeps a case to that protocol; `[server]` says that it needs a whole
//! server (connections, time, configuration), so that a level without sockets leaves it out.
//! Patterns for replies that vary: [`crate::pattern`].

use crate::pattern::Pattern;
use crate::text::unquote;
use anyhow::{Context, Result, bail};

/// A file of cases.
#[derive(Debug)]
pub struct CaseFile {
    /// The server whose replies these are.
    pub oracle: String,
    /// Options it was started with.
    pub options: Vec<String>,
    /// The cases, in order.
    pub cases: Vec<Case>,
}

/// One case: a story that begins with an empty server.
#[derive(Debug)]
pub struct Case {
    /// What it shows.
    pub title: String,
    /// Where it begins.
    pub line: usize,
    /// What is sent and expected.
    pub steps: Vec<Step>,
}

/// One request and its reply.
#[derive(Debug)]
pub struct Step {
    /// Its line in the file.
    pub line: usize,
    /// Which client acts; the first one has the empty name.
    pub client: String,
    /// What is sent.
    pub action: Action,
    /// What comes back, by protocol; nothing when it has not been recorded yet.
    pub expected: Option<Expected>,
    /// The lines of the expectation, from and to (not included).
    pub expected_lines: (usize, usize),
}

/// What a step sends.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Arguments, written as an array of bulk strings.
    Request(Vec<Argument>),
    /// Bytes as they are.
    Raw(Vec<u8>),
    /// Nothing: one more reply is read.
    Read,
}

/// One argument of a request.
#[derive(Debug, PartialEq)]
pub enum Argument {
    /// Bytes.
    Bytes(Vec<u8>),
    /// The reply that was kept under this name.
    Kept(String),
}

/// The replies of a step, the same in both protocols or not.
#[derive(Debug)]
pub struct Expected {
    /// As the file says it.
    pub text: String,
    /// In RESP2.
    pub resp2: Outcome,
    /// In RESP3.
    pub resp3: Outcome,
}

/// What is expected to happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A reply, kept under a name or not.
    Reply(Pattern, Option<String>),
    /// Nothing is read.
    None,
    /// Nothing is read, but the server has begun to wait for a key.
    Waits,
    /// The connection is closed.
    Closed,
}

impl CaseFile {
    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<Self> {
        let lines: Vec<&str> = text.lines().collect();
        let mut file = CaseFile { oracle: "redis-8.2".into(), options: Vec::new(), cases: Vec::new() };
        let mut at = 0;
        while at < lines.len() {
            at = file.take(&lines, at).with_context(|| format!("line {}", at + 1))?;
        }
        Ok(file)
    }

    /// The password that the options set.
    pub fn password(&self) -> Option<&str> {
        let at = self.options.iter().position(|option| option == "--requirepass")?;
        self.options.get(at + 1).map(String::as_str)
    }

    fn take(&mut self, lines: &[&str], at: usize) -> Result<usize> {
        let line = lines[at];
        if line.is_empty() || line.starts_with("# ") || line == "#" {
            return Ok(at + 1);
        }
        if let Some(title) = line.strip_prefix("== ") {
            self.cases.push(Case { title: title.to_owned(), line: at + 1, steps: Vec::new() });
        } else if let Some(oracle) = line.strip_prefix("@oracle ") {
            self.oracle = oracle.to_owned();
        } else if let Some(options) = line.strip_prefix("@options ") {
            self.options = options.split(' ').map(str::to_owned).collect();
        } else {
            let (client, action) = parse_action(line)?;
            let end = at + 1 + lines[at + 1..].iter().take_while(|line| !begins_something(line)).count();
            let step = Step {
                line: at + 1,
                client,
                action,
                expected: parse_expected(&lines[at + 1..end])?,
                expected_lines: (at + 1, end),
            };
            self.cases.last_mut().context("a request stands before the first `== title`")?.steps.push(step);
            return Ok(end);
        }
        Ok(at + 1)
    }
}

impl Case {
    /// Whether it is meant for this protocol.
    pub fn speaks(&self, resp: u8) -> bool {
        let other = if resp == 2 { "[resp3]" } else { "[resp2]" };
        !self.title.contains(other)
    }

    /// Whether it needs a whole server.
    pub fn needs_server(&self) -> bool {
        self.title.contains("[server]")
    }
}

impl Expected {
    /// What is expected in `resp`, 2 or 3.
    pub fn outcome(&self, resp: u8) -> &Outcome {
        if resp == 2 { &self.resp2 } else { &self.resp3 }
    }
}

fn begins_something(line: &str) -> bool {
    line.is_empty() || ["# ", "== ", "@"].iter().any(|start| line.starts_with(start)) || parse_client(line).is_some()
}

/// Splits `b> rest` or `b<` into the client's name, the sign and the rest.
fn parse_client(line: &str) -> Option<(&str, char, &str)> {
    let end = line.find(|c: char| !c.is_ascii_lowercase())?;
    let (name, rest) = line.split_at(end);
    match rest.strip_prefix("> ") {
        Some(rest) => Some((name, '>', rest)),
        None if rest == "<" => Some((name, '<', "")),
        None => None,
    }
}

fn parse_action(line: &str) -> Result<(String, Action)> {
    let Some((name, sign, rest)) = parse_client(line) else {
        bail!("neither a request nor an expectation: {line:?}");
    };
    match (name, sign) {
        (_, '<') => Ok((name.to_owned(), Action::Read)),
        ("raw", _) => Ok((String::new(), Action::Raw(unquote_all(rest)?))),
        _ => Ok((name.to_owned(), Action::Request(parse_words(rest)?))),
    }
}

fn unquote_all(mut text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while !text.is_empty() {
        let (more, length) = unquote(text)?;
        bytes.extend(more);
        text = text[length..].trim_start();
    }
    Ok(bytes)
}

fn parse_words(mut text: &str) -> Result<Vec<Argument>> {
    let mut words = Vec::new();
    loop {
        text = text.trim_start();
        if text.is_empty() {
            return Ok(words);
        }
        if text.starts_with('"') {
            let (bytes, length) = unquote(text)?;
            words.push(Argument::Bytes(bytes));
            text = &text[length..];
            continue;
        }
        let (word, rest) = text.split_at(text.find(' ').unwrap_or(text.len()));
        words.push(match word.strip_prefix('$') {
            Some(name) if !name.is_empty() => Argument::Kept(name.to_owned()),
            _ => Argument::Bytes(word.as_bytes().to_vec()),
        });
        text = rest;
    }
}

fn parse_expected(lines: &[&str]) -> Result<Option<Expected>> {
    if lines.is_empty() {
        return Ok(None);
    }
    let text = lines.join("\n");
    let Some(both) = text.strip_prefix("resp2: ") else {
        let outcome = parse_outcome(&text)?;
        return Ok(Some(Expected { text, resp2: outcome.clone(), resp3: outcome }));
    };
    let (second, third) = both.split_once("\nresp3: ").context("`resp2:` stands without `resp3:`")?;
    let (resp2, resp3) = (parse_outcome(second)?, parse_outcome(third)?);
    Ok(Some(Expected { text, resp2, resp3 }))
}

fn parse_outcome(text: &str) -> Result<Outcome> {
    match text {
        "none" => return Ok(Outcome::None),
        "waits" => return Ok(Outcome::Waits),
        "closed" => return Ok(Outcome::Closed),
        _ => {}
    }
    let kept = text.rsplit_once(" as ").filter(|(_, name)| name.bytes().all(|byte| byte.is_ascii_lowercase()));
    match kept.filter(|_| !text.starts_with('-')) {
        Some((pattern, name)) => Ok(Outcome::Reply(Pattern::parse(pattern)?, Some(name.to_owned()))),
        None => Ok(Outcome::Reply(Pattern::parse(text)?, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reads_as_its_description_says() {
        let text = "# About\n@oracle valkey-9.1\n\n== one [resp2]\n> SET a \"b c\"\n+OK\nb> GET $id\nraw> \"PING\\r\\n\"\n\
                    +PONG\n<\nclosed\n> CLIENT ID\n:* as id\n> X\nresp2: nil-array\nresp3: nil\n";
        let file = CaseFile::parse(text).unwrap();
        assert_eq!(file.oracle, "valkey-9.1");
        let steps = &file.cases[0].steps;
        assert_eq!(steps.len(), 6);
        assert!(file.cases[0].speaks(2) && !file.cases[0].speaks(3));
        assert_eq!(steps[1].client, "b");
        assert_eq!(
            steps[1].action,
            Action::Request(vec![Argument::Bytes(b"GET".to_vec()), Argument::Kept("id".into())])
        );
        assert!(steps[1].expected.is_none());
        assert_eq!(steps[2].action, Action::Raw(b"PING\r\n".to_vec()));
        assert_eq!(*steps[3].expected.as_ref().unwrap().outcome(2), Outcome::Closed);
        let kept = steps[4].expected.as_ref().unwrap();
        assert_eq!(*kept.outcome(3), Outcome::Reply(Pattern::Between(i64::MIN, i64::MAX), Some("id".into())));
        assert_ne!(steps[5].expected.as_ref().unwrap().resp2, steps[5].expected.as_ref().unwrap().resp3);
    }

    #[test]
    fn what_is_not_a_case_is_refused() {
        for text in ["> GET a\n", "== a\nword\n", "== a\n> GET \"open\n", "== a\n> GET\nresp2: nil\n"] {
            assert!(CaseFile::parse(text).is_err(), "{text:?}");
        }
    }
}

//! The command line, in redis-server's grammar, and what it asks for. Nothing is read or checked here beyond the grammar:
//! `load.rs` gives the words their meaning.
//!
//! ```text
//! simurgh [FILE] [--NAME VALUE...]... [-]
//!
//! simurgh /etc/redis.conf --port 7000 --save 60 1 --save ""
//! simurgh --port=7000 "--bind 127.0.0.1 ::1" -        (the last "-" reads more configuration from standard input)
//! ```
//!
//! What follows an option up to the next `--` is its value. A `--` right after a name is a value too, so that a password
//! may begin with dashes; only `--save` may stand without one, as in redis-server.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::tool::Tool;

use simurgh_protocol::config::{Line, Origin, VARIABLE_PREFIX};
use simurgh_protocol::quoted::{quote, split_quoted};

/// What the person who started the program wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// A running server.
    Serve(Sources),
    /// Every value and where it came from.
    PrintConfig(Sources),
    /// A list of what in the configuration has no effect or stops the start.
    CheckConfig(Sources),
    /// Something done to files, without a server.
    Tool(Tool),
    /// How to use the program.
    Help,
    /// Which version it is.
    Version,
}

/// Where the configuration comes from; later ones win: the file, standard input, variables, options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// redis.conf.
    pub file: Option<PathBuf>,
    /// Whether standard input has more lines.
    pub stdin: bool,
    /// The environment variables that begin with `SIMURGH_`.
    pub variables: Vec<(String, Vec<u8>)>,
    /// One line for each option.
    pub options: Vec<Line>,
}

/// A command line that has no meaning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// A word stands where an option or nothing may stand.
    #[error("unexpected argument '{0}': options begin with --, and a file comes first (see --help)")]
    Unexpected(String),
    /// An option of redis-server that asks for another program.
    #[error("'{0}' is not an option of this server (see --help)")]
    Unsupported(&'static str),
    /// A quote was left open.
    #[error("unbalanced quotes in '{0}'")]
    Quotes(String),
    /// A tool that was asked for without what it needs.
    #[error("usage: simurgh {0}")]
    Usage(&'static str),
}

/// Reads the command line (with the program's name in front) and the environment.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Start, ArgumentsError> {
    let words: Vec<Vec<u8>> = arguments.into_iter().skip(1).map(OsStringExt::into_vec).collect();
    match words.split_first() {
        Some((first, rest)) if Tool::usage(first).is_some() => parse_tool(first, rest),
        Some((first, rest)) if first == b"check-config" => {
            let (start, sources) = parse_options(rest, ours(variables))?;
            Ok(start.unwrap_or(Asked::CheckConfig).with(sources))
        }
        Some(_) | None => {
            let (start, sources) = parse_options(&words, ours(variables))?;
            Ok(start.unwrap_or(Asked::Serve).with(sources))
        }
    }
}

fn parse_tool(name: &[u8], words: &[Vec<u8>]) -> Result<Start, ArgumentsError> {
    match words {
        [flag] if is_help(flag) => Ok(Start::Help),
        _ => {
            let usage = Tool::usage(name).unwrap_or_default();
            Tool::parse(name, words).map(Start::Tool).ok_or(ArgumentsError::Usage(usage))
        }
    }
}

/// What a flag asks for instead of a running server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Serve,
    PrintConfig,
    CheckConfig,
    Help,
    Version,
}

impl Asked {
    fn with(self, sources: Sources) -> Start {
        match self {
            Asked::Serve => Start::Serve(sources),
            Asked::PrintConfig => Start::PrintConfig(sources),
            Asked::CheckConfig => Start::CheckConfig(sources),
            Asked::Help => Start::Help,
            Asked::Version => Start::Version,
        }
    }
}

fn is_help(word: &[u8]) -> bool {
    word == b"--help" || word == b"-h"
}

fn flag(word: &[u8]) -> Result<Option<Asked>, ArgumentsError> {
    match word {
        b"--help" | b"-h" => Ok(Some(Asked::Help)),
        b"--version" | b"-v" => Ok(Some(Asked::Version)),
        b"--print-config" => Ok(Some(Asked::PrintConfig)),
        b"--check-config" => Ok(Some(Asked::CheckConfig)),
        b"--sentinel" => Err(ArgumentsError::Unsupported("--sentinel")),
        b"--test-memory" => Err(ArgumentsError::Unsupported("--test-memory")),
        b"--check-system" => Err(ArgumentsError::Unsupported("--check-system")),
        _ => Ok(None),
    }
}

fn ours(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(String, Vec<u8>)> {
    let ours = variables.into_iter().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(VARIABLE_PREFIX))?;
        Some((name, value.into_vec()))
    });
    let mut ours: Vec<_> = ours.collect();
    ours.sort();
    ours
}

/// `[FILE] [OPTION]... [-]`.
fn parse_options(
    words: &[Vec<u8>],
    variables: Vec<(String, Vec<u8>)>,
) -> Result<(Option<Asked>, Sources), ArgumentsError> {
    let mut sources = Sources { variables, ..Sources::default() };
    let mut asked = None;
    let mut words = words;
    if let [first, rest @ ..] = words
        && !first.starts_with(b"-")
    {
        sources.file = Some(OsString::from_vec(first.clone()).into());
        words = rest;
    }
    if let [rest @ .., last] = words
        && last == b"-"
    {
        sources.stdin = true;
        words = rest;
    }
    let mut open: Option<OpenOption> = None;
    for word in words {
        if let Some(option) = open.as_mut().filter(|option| option.takes(word)) {
            option.add(word.clone());
            continue;
        }
        sources.options.extend(open.take().map(OpenOption::close));
        match flag(word)? {
            Some(flag) => asked = asked.or(Some(flag)),
            None => open = Some(OpenOption::new(word)?),
        }
    }
    sources.options.extend(open.map(OpenOption::close));
    Ok((asked, sources))
}

/// An option whose values are still being read.
struct OpenOption {
    words: Vec<Vec<u8>>,
    text: Vec<u8>,
}

impl OpenOption {
    fn new(word: &[u8]) -> Result<OpenOption, ArgumentsError> {
        let shown = || String::from_utf8_lossy(word).into_owned();
        let text = word.strip_prefix(b"--").filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| ArgumentsError::Unexpected(shown()))?;
        let name = text.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)).count();
        if text.get(name) == Some(&b'=') {
            let mut option = OpenOption { words: vec![text[..name].to_vec()], text: text[..name].to_vec() };
            option.add(text[name + 1..].to_vec());
            return Ok(option);
        }
        let words = split_quoted(text).map_err(|_| ArgumentsError::Quotes(shown()))?;
        if words.is_empty() {
            return Err(ArgumentsError::Unexpected(shown()));
        }
        Ok(OpenOption { words, text: text.trim_ascii().to_vec() })
    }

    /// Whether `word` is one of this option's values and not the next option.
    fn takes(&self, word: &[u8]) -> bool {
        let without_value = self.words.len() == 1 && !self.words[0].eq_ignore_ascii_case(b"save");
        !word.starts_with(b"--") || (without_value && flag(word) == Ok(None))
    }

    fn add(&mut self, value: Vec<u8>) {
        self.text.push(b' ');
        self.text.extend(quote(&value));
        self.words.push(value);
    }

    fn close(self) -> Line {
        Line { origin: Origin::CommandLine, text: self.text, words: self.words }
    }
}

/// The name of a file as it is shown in messages.
pub fn shown(path: &std::path::Path) -> String {
    String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned()
}

/// What `--help` prints.
pub const HELP: &str = "\
Simurgh, a server that Redis clients speak to.

Usage: simurgh [FILE] [--NAME VALUE...]... [-]
       simurgh check-config [FILE] [--NAME VALUE...]...
       simurgh check-aof [--fix] FILE
       simurgh check-rdb FILE
       simurgh convert SOURCE TARGET
       simurgh backup FOLDER TARGET
       simurgh restore --to SECONDS|@POSITION FOLDER TARGET

FILE is a redis.conf. Every directive in it may also be an option, or a variable of the environment that begins
with SIMURGH_. Options win over variables, variables over standard input and that over the file.

Examples:
  simurgh                                          127.0.0.1:6379 and all other addresses, data in ./data
  simurgh /etc/redis/redis.conf                    with a file
  simurgh --port 7000 --appendfsync always         with options; --port=7000 means the same
  simurgh redis.conf --save \"\" --maxmemory 1gb     options win over the file
  echo 'maxmemory 128mb' | simurgh -               with lines from standard input
  SIMURGH_MAXMEMORY_POLICY=allkeys-lru simurgh     with a variable

Options:
      --print-config   Print every value with where it came from, and end
      --check-config   The same as check-config
  -h, --help           Print this help
  -v, --version        Print the version

Commands:
  check-config   List what in a configuration has no meaning here and what would stop the start
  check-aof      Check an append-only file, or all that a manifest names; with --fix, cut off a torn end
  check-rdb      Tell what is in an RDB file and whether it would load
  convert        Make the folder of a log from an RDB file, or an RDB file from the folder of a log
  backup         Copy the folder of a log, also of a server that runs, up to its last seal
  restore        Copy the folder of a log as it was at the end of a second since 1970 (aof-timestamp-enabled yes), or
                 when it was so many bytes long

Exit codes:
  0   The server was asked to end and kept all data; or the check found nothing that stops a start
  1   The arguments or the configuration are wrong, or the server could not start; or the check found an error
";

#[cfg(test)]
mod tests {
    use super::*;

    fn start(words: &[&str]) -> Result<Start, ArgumentsError> {
        let words = std::iter::once("simurgh").chain(words.iter().copied()).map(OsString::from);
        parse(words, [("SIMURGH_PORT".into(), "1".into()), ("HOME".into(), "/".into())])
    }

    fn sources(words: &[&str]) -> Sources {
        match start(words).unwrap() {
            Start::Serve(sources) | Start::PrintConfig(sources) | Start::CheckConfig(sources) => sources,
            other @ (Start::Tool(_) | Start::Help | Start::Version) => panic!("{other:?}"),
        }
    }

    /// The options as redis-server prints them in its errors.
    fn options(words: &[&str]) -> Vec<String> {
        sources(words).options.iter().map(|line| String::from_utf8(line.text.clone()).unwrap()).collect()
    }

    #[test]
    fn the_grammar_of_redis_server() {
        assert_eq!(options(&["--port", "7000", "--Save", "60", "1"]), ["port \"7000\"", "Save \"60\" \"1\""]);
        assert_eq!(options(&["--timeout 5", "--maxclients", "x"]), ["timeout 5", "maxclients \"x\""]);
        assert_eq!(options(&["--timeout 5 --maxclients x"]), ["timeout 5 --maxclients x"]);
        assert_eq!(options(&["--timeout", "5 6"]), ["timeout \"5 6\""]);
        assert_eq!(options(&["--timeout", "5", "foo"]), ["timeout \"5\" \"foo\""]);
        assert_eq!(options(&["--timeout", "a\"b"]), ["timeout \"a\\\"b\""]);
        assert_eq!(options(&["--timeout"]), ["timeout"]);
        assert_eq!(options(&["--timeout", "--5"]), ["timeout \"--5\""]);
        assert_eq!(options(&["--save", "", "--timeout", "x"]), ["save \"\"", "timeout \"x\""]);
        assert_eq!(options(&["--save", "--timeout", "x"]), ["save", "timeout \"x\""]);
        assert_eq!(options(&["--requirepass", "--abc", "--timeout", "x"]), ["requirepass \"--abc\"", "timeout \"x\""]);
        assert_eq!(options(&["--port", "-1"]), ["port \"-1\""]);
        // A dash is standard input only at the end.
        assert_eq!(options(&["--timeout", "5", "-", "--hz", "1"]), ["timeout \"5\" \"-\"", "hz \"1\""]);
    }

    #[test]
    fn an_equals_sign_works_too() {
        assert_eq!(
            options(&["--port=7000", "--requirepass=a=b c", "--save="]),
            ["port \"7000\"", "requirepass \"a=b c\"", "save \"\""]
        );
        assert_eq!(options(&["--requirepass", "a=b"]), ["requirepass \"a=b\""]);
    }

    #[test]
    fn file_standard_input_and_variables() {
        let all = sources(&["a.conf", "--hz", "1", "-"]);
        assert_eq!(all.file, Some("a.conf".into()));
        assert!(all.stdin);
        assert_eq!(all.variables, [("SIMURGH_PORT".to_owned(), b"1".to_vec())]);
        assert_eq!(all.options.len(), 1);
        let only = sources(&["-"]);
        assert!(only.stdin && only.file.is_none() && only.options.is_empty());
    }

    #[test]
    fn flags_ask_for_something_else() {
        for flag in ["-h", "--help"] {
            assert_eq!(start(&[flag]), Ok(Start::Help));
            assert_eq!(start(&[flag, "--port", "1"]), Ok(Start::Help));
        }
        assert_eq!(start(&["--port", "1", "--help"]), Ok(Start::Help));
        assert_eq!(start(&["-v"]), Ok(Start::Version));
        assert_eq!(start(&["a.conf", "--version"]), Ok(Start::Version));
        assert!(matches!(start(&["a.conf", "--port", "1", "--print-config"]), Ok(Start::PrintConfig(_))));
        assert!(
            matches!(start(&["--print-config", "--port", "1"]), Ok(Start::PrintConfig(sources)) if sources.options.len() == 1)
        );
        assert!(
            matches!(start(&["check-config", "a.conf", "--port", "1"]), Ok(Start::CheckConfig(sources)) if sources.file.is_some())
        );
        assert!(matches!(start(&["--check-config"]), Ok(Start::CheckConfig(_))));
    }

    #[test]
    fn check_aof_takes_one_file() {
        let check = |fix| Ok(Start::Tool(Tool::CheckAof { fix, file: "a.manifest".into() }));
        assert_eq!(start(&["check-aof", "a.manifest"]), check(false));
        assert_eq!(start(&["check-aof", "--fix", "a.manifest"]), check(true));
        assert_eq!(start(&["check-aof", "a.manifest", "--fix"]), check(true));
        assert_eq!(start(&["check-aof", "--help"]), Ok(Start::Help));
        for words in
            [&["check-aof"][..], &["check-aof", "a", "b"], &["check-aof", "--fox", "a"], &["check-aof", "--fix"]]
        {
            assert_eq!(start(words), Err(ArgumentsError::Usage("check-aof [--fix] FILE")));
        }
    }

    #[test]
    fn what_is_no_option_is_refused() {
        for words in [&["a.conf", "foo"][..], &["-x"], &["--"], &["--port", "1", "--"], &["--  "]] {
            assert!(matches!(start(words), Err(ArgumentsError::Unexpected(_))), "{words:?}");
        }
        assert_eq!(start(&["--port \"1"]), Err(ArgumentsError::Quotes("--port \"1".to_owned())));
        assert_eq!(start(&["a.conf", "--sentinel"]), Err(ArgumentsError::Unsupported("--sentinel")));
    }
}

//! The lines of redis.conf, of the command line and of environment variables, and how they are applied in order.
//!
//! ```text
//! # a comment
//! port 7000
//! include /etc/redis/*.conf
//! requirepass "a b\x00"
//! save 60 1 300 10
//! ```
//!
//! A line is split by the quoting of inline commands; its first word names a key or a directive, in any case. Files are
//! read by a closure of the caller, which also resolves the wildcards of `include`.

use std::fmt;
use std::sync::Arc;

use super::row::State;
use super::settings::{Given, Origin, Settings};
use super::table::{Directive, Key};
use crate::quoted::split_quoted;

/// How deep files may include each other: a file that includes itself ends with an error.
pub const INCLUDE_DEPTH_MAX: usize = 16;
/// How many lines all files together may have.
pub const LINES_MAX: usize = 1 << 20;

/// What the first letters of our environment variables are.
pub const VARIABLE_PREFIX: &str = "SIMURGH_";

const BAD_DIRECTIVE: &str = "Bad directive or wrong number of arguments";

/// A line with at least one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where it stands.
    pub origin: Origin,
    /// The line as it stands there, without blanks around it.
    pub text: Vec<u8>,
    /// Its words, unquoted.
    pub words: Vec<Vec<u8>>,
}

/// A line that stops the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineError {
    /// Where it stands.
    pub origin: Origin,
    /// The line as it stands there.
    pub text: Vec<u8>,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for LineError {
    /// In the shape of redis-server, which tools look for; the name of the file is ours.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "*** FATAL CONFIG FILE ERROR (Redis 8.2.3) ***")?;
        match &self.origin {
            Origin::File { file, line } => {
                writeln!(out, "Reading the configuration file, at line {line} of {file}")?;
            }
            Origin::Environment(variable) => writeln!(out, "Reading the environment variable {variable}")?,
            Origin::CommandLine => writeln!(out, "Reading the options on the command line")?,
            Origin::Default | Origin::Client => {}
        }
        writeln!(out, ">>> '{}'", String::from_utf8_lossy(&self.text))?;
        out.write_str(&self.reason)
    }
}

impl std::error::Error for LineError {}

/// The file or files behind the name in an `include`, with their contents; or why there is none.
pub type ReadFiles<'a> = dyn FnMut(&str) -> Result<Vec<(String, Vec<u8>)>, String> + 'a;

/// The lines of `text`, those of included files in their place. What cannot be a line stands among them as an error.
pub fn read_lines(file: &str, text: &[u8], read_files: &mut ReadFiles<'_>) -> Vec<Result<Line, LineError>> {
    let mut reader = Reader { lines: Vec::new(), read_files };
    reader.read(file, text, 0);
    reader.lines
}

struct Reader<'a, 'b> {
    lines: Vec<Result<Line, LineError>>,
    read_files: &'a mut ReadFiles<'b>,
}

impl Reader<'_, '_> {
    fn read(&mut self, file: &str, text: &[u8], depth: usize) {
        let file: Arc<str> = file.into();
        for (at, text) in text.split(|&byte| byte == b'\n').enumerate() {
            let text = text.trim_ascii();
            if text.is_empty() || text.starts_with(b"#") {
                continue;
            }
            let origin = Origin::File { file: Arc::clone(&file), line: at + 1 };
            if self.lines.len() >= LINES_MAX {
                self.lines.push(Err(error(origin, text, "too many lines of configuration")));
                return;
            }
            match line(origin, text) {
                Ok(Some(line)) if is_include(&line) => self.include(line, depth),
                Ok(Some(line)) => self.lines.push(Ok(line)),
                Ok(None) => {}
                Err(error) => self.lines.push(Err(error)),
            }
        }
    }

    fn include(&mut self, line: Line, depth: usize) {
        let [_, name] = line.words.as_slice() else {
            self.lines.push(Err(error(line.origin, &line.text, BAD_DIRECTIVE)));
            return;
        };
        if depth >= INCLUDE_DEPTH_MAX {
            self.lines.push(Err(error(line.origin, &line.text, "files include each other too deeply")));
            return;
        }
        match (self.read_files)(&String::from_utf8_lossy(name)) {
            Ok(files) => files.iter().for_each(|(name, text)| self.read(name, text, depth + 1)),
            Err(reason) => self.lines.push(Err(error(line.origin, &line.text, &reason))),
        }
    }
}

fn is_include(line: &Line) -> bool {
    line.words[0].eq_ignore_ascii_case(b"include")
}

fn error(origin: Origin, text: &[u8], reason: &str) -> LineError {
    LineError { origin, text: text.to_vec(), reason: reason.to_owned() }
}

/// Splits one line; a line of blanks or a NUL has no words.
fn line(origin: Origin, text: &[u8]) -> Result<Option<Line>, LineError> {
    match split_quoted(text) {
        Ok(words) if words.is_empty() => Ok(None),
        Ok(words) => Ok(Some(Line { origin, text: text.to_vec(), words })),
        Err(_) => Err(error(origin, text, "Unbalanced quotes in configuration line")),
    }
}

/// What a line did that somebody should know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It set a key or did what it says.
    Done,
    /// It is a directive that means nothing here, for this reason.
    WithoutMeaning(&'static str),
}

impl Settings {
    /// Does what a line of a file or an option says.
    pub fn apply(&mut self, line: &Line) -> Result<Applied, LineError> {
        let fail = |reason: &str| error(line.origin.clone(), &line.text, reason);
        let Some((name, values)) = line.words.split_first() else { return Ok(Applied::Done) };
        if let Some(key) = Key::named(name) {
            let put = self.put(key, Given::Words(values), line.origin.clone());
            return put.map(|()| Applied::Done).map_err(|reason| fail(&reason.to_string()));
        }
        match Directive::named(name) {
            Some(directive) if values.len() >= directive.least_words => match directive.state {
                State::Works => Err(fail("it may stand in a file only")),
                State::NoMeaning(reason) => Ok(Applied::WithoutMeaning(reason)),
                State::Refused(reason) => Err(fail(reason)),
            },
            Some(_) | None => Err(fail(BAD_DIRECTIVE)),
        }
    }

    /// Sets the key that the environment variable names: `SIMURGH_MAXMEMORY_POLICY` is `maxmemory-policy`.
    ///
    /// Other variables are passed over, also those that Docker and Kubernetes make for a service called simurgh.
    pub fn apply_variable(&mut self, variable: &str, value: &[u8]) -> Result<(), LineError> {
        let Some(name) = variable.strip_prefix(VARIABLE_PREFIX) else { return Ok(()) };
        if is_service_link(name, value) {
            return Ok(());
        }
        let text = [variable.as_bytes(), b"=", value].concat();
        let fail = |reason: &str| error(Origin::Environment(variable.to_owned()), &text, reason);
        let key = variable_key(name).ok_or_else(|| fail("no directive has this name"))?;
        let put = self.put(key, Given::Whole(value), Origin::Environment(variable.to_owned()));
        put.map_err(|reason| fail(&reason.to_string()))
    }
}

/// The key whose name or alias is `name` in capitals with underscores.
fn variable_key(name: &str) -> Option<Key> {
    // simurgh-advertised-version would be SIMURGH_SIMURGH_...: its prefix may be left out.
    let as_variable = |key: &str| key.replace('-', "_").to_ascii_uppercase();
    let same = |key: &str| {
        let key = as_variable(key);
        key == name || key.strip_prefix(VARIABLE_PREFIX) == Some(name)
    };
    Key::ALL.iter().copied().find(|key| key.row().names().any(same))
}

/// Docker links and Kubernetes services appear as `SIMURGH_PORT=tcp://10.0.0.1:6379`, `SIMURGH_PORT_6379_TCP_ADDR`,
/// `SIMURGH_SERVICE_HOST` and the like.
fn is_service_link(name: &str, value: &[u8]) -> bool {
    let after_port = name.split("PORT_").nth(1);
    value.starts_with(b"tcp://")
        || value.starts_with(b"udp://")
        || name.contains("SERVICE_HOST")
        || name.contains("SERVICE_PORT")
        || after_port.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn no_files(_: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
        Err("no files here".to_owned())
    }

    /// The settings of a file, or its first error.
    fn load(text: &str) -> Result<Settings, String> {
        let mut settings = Settings::default();
        for line in read_lines("a.conf", text.as_bytes(), &mut no_files) {
            settings.apply(&line.map_err(|error| error.to_string())?).map_err(|error| error.to_string())?;
        }
        Ok(settings)
    }

    #[test]
    fn a_file_in_every_form() {
        let text = "# comment\n\n  \t\n PORT 7000\r\nrequirepass \"a \\x41\"\nsave 60 1\nsave 300 10 900 1\n\
                    client-output-buffer-limit \"normal 1 2 3\"\nbind 127.0.0.1 ::1\nslave-priority 7\nreplicaof NO ONE\n\
                    list-max-ziplist-entries 5\nmaxmemory \"\"";
        let settings = load(text).unwrap();
        let config = settings.config();
        assert_eq!(config.port, 7000);
        assert_eq!(config.require_pass.as_deref(), Some(&b"a A"[..]));
        assert_eq!(config.bind, ["127.0.0.1", "::1"]);
        assert_eq!(config.client_output_buffer_limits.normal.soft_seconds, 3);
        assert_eq!(settings.text(Key::Save), b"60 1 300 10 900 1");
        assert_eq!(settings.origin(Key::Port).to_string(), "a.conf:4");
    }

    #[test]
    fn errors_in_the_shape_of_redis_server() {
        let shape = |line, text: &str, reason: &str| {
            format!(
                "*** FATAL CONFIG FILE ERROR (Redis 8.2.3) ***\n\
                 Reading the configuration file, at line {line} of a.conf\n>>> '{text}'\n{reason}"
            )
        };
        for (text, reason) in [
            ("foo bar", BAD_DIRECTIVE),
            ("port \"x", "Unbalanced quotes in configuration line"),
            ("port \"x\"y", "Unbalanced quotes in configuration line"),
            ("port 1 2", "wrong number of arguments"),
            ("timeout 5 # comment", "wrong number of arguments"),
            ("maxmemory 1zz", "argument must be a memory value"),
            ("rename-command", BAD_DIRECTIVE),
            ("user", BAD_DIRECTIVE),
            ("include a b", BAD_DIRECTIVE),
            ("include", BAD_DIRECTIVE),
            ("include a", "no files here"),
            ("loadmodule a.so", "there are no modules"),
            ("sentinel monitor x", "sentinel directive while not in sentinel mode"),
            ("supervised foo", "argument(s) must be one of the following: upstart, systemd, auto, no"),
            ("io-threads 0", "argument must be between 1 and 128 inclusive"),
            ("socket-mark-id -1", "argument must be greater or equal to 0"),
            ("cluster-enabled yes", "cluster mode is not built yet"),
            ("save 60", "Invalid save parameters"),
        ] {
            assert_eq!(load(&format!("port 1\n  {text}  \n")).unwrap_err(), shape(2, text, reason), "{text}");
        }
    }

    #[test]
    fn includes_stand_in_their_place_and_never_loop() {
        let mut asked = Vec::new();
        let mut files = |name: &str| {
            asked.push(name.to_owned());
            Ok(vec![("b.conf".to_owned(), b"port 2\ntimeout 2\n".to_vec()), ("c.conf".to_owned(), b"hz 20".to_vec())])
        };
        let lines = read_lines("a.conf", b"timeout 1\ninclude x*.conf\nport 3\n", &mut files);
        let texts: Vec<Vec<u8>> = lines.into_iter().map(|line| line.unwrap().text).collect();
        assert_eq!(texts, [&b"timeout 1"[..], b"port 2", b"timeout 2", b"hz 20", b"port 3"]);
        assert_eq!(asked, ["x*.conf"]);

        let mut itself = |_: &str| Ok(vec![("a.conf".to_owned(), b"include a.conf".to_vec())]);
        let lines = read_lines("a.conf", b"include a.conf", &mut itself);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].as_ref().unwrap_err().reason, "files include each other too deeply");
    }

    #[test]
    fn variables_name_keys() {
        let mut settings = Settings::default();
        for (variable, value) in [
            ("SIMURGH_PORT", "7000"),
            ("SIMURGH_MAXMEMORY_POLICY", "allkeys-lru"),
            ("SIMURGH_SAVE", "60 1 5 2"),
            ("SIMURGH_BIND", "127.0.0.1 ::1"),
            ("SIMURGH_ADVERTISED_VERSION", "7.4.0"),
            ("SIMURGH_SLAVE_PRIORITY", "7"),
            ("HOME", "/root"),
            ("SIMURGH_CACHE_PORT", "tcp://10.0.0.1:6379"),
            ("SIMURGH_SERVICE_HOST", "10.0.0.1"),
            ("SIMURGH_PORT_6379_TCP_ADDR", "10.0.0.1"),
        ] {
            settings.apply_variable(variable, value.as_bytes()).unwrap();
        }
        assert_eq!(settings.config().port, 7000);
        assert_eq!(settings.config().advertised_version, "7.4.0");
        assert_eq!(settings.text(Key::Save), b"60 1 5 2");
        assert_eq!(settings.origin(Key::Port).to_string(), "environment SIMURGH_PORT");
        let error = settings.apply_variable("SIMURGH_PRT", b"1").unwrap_err().to_string();
        assert!(error.ends_with(">>> 'SIMURGH_PRT=1'\nno directive has this name"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut settings = Settings::default();
            for line in read_lines("a.conf", &text, &mut no_files).into_iter().flatten() {
                let _ = settings.apply(&line);
            }
        }
    }
}

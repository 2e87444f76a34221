//! Turns the sources of the configuration into settings: reads the files, applies lines, variables and options in their
//! order, and gathers every error and every line without meaning instead of stopping at the first.

use std::io::Read;
use std::path::{Path, PathBuf};

use simurgh_protocol::config::{Applied, Key, Line, LineError, Origin, Settings, read_lines};
use simurgh_protocol::glob;

use crate::arguments::{Sources, shown};

/// How large a configuration file may be.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The configuration, and what somebody should know about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The values of all keys.
    pub settings: Settings,
    /// The absolute path of the file, which `CONFIG REWRITE` writes.
    pub file: Option<PathBuf>,
    /// What was set although it means nothing here.
    pub without_meaning: Vec<WithoutMeaning>,
}

/// A line, variable or option that was taken and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithoutMeaning {
    /// Where it stands.
    pub origin: Origin,
    /// The directive.
    pub name: String,
    /// Why it changes nothing.
    pub reason: &'static str,
}

impl std::fmt::Display for WithoutMeaning {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} has no effect: {} ({})", self.name, self.reason, self.origin)
    }
}

/// The configuration that `sources` make, or the first line that stops the start.
pub fn load(sources: &Sources) -> Result<Loaded, LineError> {
    let (loaded, errors) = load_all(sources);
    errors.into_iter().next().map_or(Ok(loaded), Err)
}

/// The same with every error.
pub fn load_all(sources: &Sources) -> (Loaded, Vec<LineError>) {
    let mut lines = Vec::new();
    if let Some(path) = &sources.file {
        lines.extend(read_file_lines(path));
    }
    if sources.stdin {
        lines.extend(read_stdin_lines());
    }
    let mut loading = Loading::default();
    lines.into_iter().for_each(|line| loading.line(line));
    for (variable, value) in &sources.variables {
        let applied = loading.settings.apply_variable(variable, value);
        loading.errors.extend(applied.err());
    }
    sources.options.iter().cloned().for_each(|line| loading.line(Ok(line)));
    loading.finish(sources.file.as_deref())
}

#[derive(Default)]
struct Loading {
    settings: Settings,
    errors: Vec<LineError>,
    without_meaning: Vec<WithoutMeaning>,
}

impl Loading {
    fn line(&mut self, line: Result<Line, LineError>) {
        let applied = line.and_then(|line| self.settings.apply(&line).map(|applied| (line, applied)));
        match applied {
            Ok((_, Applied::Done)) => {}
            Ok((line, Applied::WithoutMeaning(reason))) => {
                let name = line.words.first().map(|name| String::from_utf8_lossy(name).into_owned());
                let name = name.unwrap_or_default();
                self.without_meaning.push(WithoutMeaning { origin: line.origin, name, reason });
            }
            Err(error) => self.errors.push(error),
        }
    }

    fn finish(self, file: Option<&Path>) -> (Loaded, Vec<LineError>) {
        let Loading { settings, errors, mut without_meaning } = self;
        let of_key = |(key, reason): (Key, &'static str)| WithoutMeaning {
            origin: settings.origin(key).clone(),
            name: key.row().name.to_owned(),
            reason,
        };
        without_meaning.extend(settings.without_meaning().map(of_key));
        let file = file.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        (Loaded { settings, file, without_meaning }, errors)
    }
}

fn read_file_lines(path: &Path) -> Vec<Result<Line, LineError>> {
    let name = shown(path);
    match read_file(path) {
        Ok(text) => read_lines(&name, &text, &mut read_included),
        Err(reason) => {
            let origin = Origin::CommandLine;
            vec![Err(LineError { origin, text: name.into_bytes(), reason })]
        }
    }
}

fn read_stdin_lines() -> Vec<Result<Line, LineError>> {
    let mut text = Vec::new();
    match std::io::stdin().lock().take(FILE_BYTES_MAX).read_to_end(&mut text) {
        Ok(_) => read_lines("standard input", &text, &mut read_included),
        Err(error) => {
            let reason = format!("can't read standard input: {error}");
            vec![Err(LineError { origin: Origin::CommandLine, text: b"-".to_vec(), reason })]
        }
    }
}

/// The files that an `include` names. Wildcards may stand in the last part of the path; no match is no error, as in Redis.
fn read_included(name: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut files = Vec::new();
    for path in expand(Path::new(name))? {
        files.push((shown(&path), read_file(&path)?));
    }
    Ok(files)
}

fn expand(path: &Path) -> Result<Vec<PathBuf>, String> {
    let pattern = path.file_name().map(|name| name.as_encoded_bytes().to_vec()).unwrap_or_default();
    if !pattern.iter().any(|byte| b"*?[".contains(byte)) {
        return Ok(vec![path.to_owned()]);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let named = entries.filter_map(Result::ok).filter(|entry| {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        glob::matches(&pattern, name) && (pattern.starts_with(b".") || !name.starts_with(b"."))
    });
    let mut paths: Vec<PathBuf> = named.map(|entry| path.with_file_name(entry.file_name())).collect();
    paths.sort();
    Ok(paths)
}

#[expect(clippy::disallowed_methods, reason = "configuration is read before there is a node, from the real disk")]
fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let explain = |error: std::io::Error| {
        // The text of the system without Rust's "(os error 2)", as redis-server prints it.
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        format!("can't open config file '{}': {text}", shown(path))
    };
    let file = std::fs::File::open(path).map_err(explain)?;
    let mut text = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(explain)?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(format!("config file '{}' is larger than {FILE_BYTES_MAX} bytes", shown(path)));
    }
    Ok(text)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests make real files")]
mod tests {
    use super::*;
    use crate::arguments::{Start, parse};
    use std::ffi::OsString;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("simurgh-load-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn sources(words: &[&str], variables: &[(&str, &str)]) -> Sources {
        let words = std::iter::once("simurgh").chain(words.iter().copied()).map(OsString::from);
        let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let Ok(Start::Serve(sources)) = parse(words, variables) else { panic!("not a server") };
        sources
    }

    #[test]
    fn options_win_over_variables_and_variables_over_the_file() {
        let folder = folder("precedence");
        let file = folder.join("a.conf");
        std::fs::write(folder.join("b.inc"), "hz 33\nio-threads 4\n").unwrap();
        std::fs::write(folder.join("c.inc"), "timeout 9\n").unwrap();
        let include = folder.join("*.inc");
        std::fs::write(
            &file,
            format!("port 1\nhz 11\ntimeout 1\ninclude {}\nio-threads-do-reads yes\n", shown(&include)),
        )
        .unwrap();
        let loaded =
            load(&sources(&[&shown(&file), "--port", "3"], &[("SIMURGH_PORT", "2"), ("SIMURGH_TIMEOUT", "2")]))
                .unwrap();
        let config = loaded.settings.config();
        assert_eq!((config.port, config.timeout_seconds, config.hz), (3, 2, 33));
        assert_eq!(loaded.file, Some(file));
        let said: Vec<String> = loaded.without_meaning.iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("io-threads-do-reads has no effect: Redis 8 ignores it too ("), "{said:?}");
        assert!(said[1].ends_with("b.inc:2)"), "{said:?}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn every_error_is_gathered_in_order() {
        let folder = folder("errors");
        let file = folder.join("a.conf");
        std::fs::write(&file, "foo bar\nport 1\ninclude /nonexistent/x.conf\nport x\n").unwrap();
        let (loaded, errors) = load_all(&sources(&[&shown(&file), "--hz", "y"], &[("SIMURGH_NOPE", "1")]));
        assert_eq!(loaded.settings.config().port, 1);
        let reasons: Vec<&str> = errors.iter().map(|error| error.reason.as_str()).collect();
        assert_eq!(
            reasons,
            [
                "Bad directive or wrong number of arguments",
                "can't open config file '/nonexistent/x.conf': No such file or directory",
                "argument couldn't be parsed into an integer",
                "no directive has this name",
                "argument couldn't be parsed into an integer",
            ]
        );
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_missing_file_stops_the_start() {
        let error = load(&sources(&["/nonexistent.conf"], &[])).unwrap_err();
        assert_eq!(error.reason, "can't open config file '/nonexistent.conf': No such file or directory");
    }
}

//! `simurgh check-config`: what in a configuration would stop the start, and what means nothing here.
//!
//! ```text
//! error: redis.conf:3: 'foo bar': Bad directive or wrong number of arguments
//! no effect: redis.conf:7: io-threads: every thread serves its own connections; see threads
//! redis.conf: 1 error, 1 setting without effect
//! ```

use std::io::{self, Write};

use simurgh_protocol::config::LineError;

use crate::arguments::{Sources, shown};
use crate::load::{WithoutMeaning, load_all};

/// Writes the findings; whether a server would start with this configuration.
pub fn check_config(sources: &Sources, out: &mut impl Write) -> io::Result<bool> {
    let (loaded, errors) = load_all(sources);
    for LineError { origin, text, reason } in &errors {
        writeln!(out, "error: {origin}: '{}': {reason}", String::from_utf8_lossy(text))?;
    }
    for WithoutMeaning { origin, name, reason } in &loaded.without_meaning {
        writeln!(out, "no effect: {origin}: {name}: {reason}")?;
    }
    let refusal = crate::serve::why_not(&loaded.settings.config());
    if let Some(reason) = refusal {
        writeln!(out, "error: {reason}")?;
    }
    let name = sources.file.as_deref().map_or_else(|| "configuration".to_owned(), shown);
    let (errors, idle) = (errors.len() + usize::from(refusal.is_some()), loaded.without_meaning.len());
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    writeln!(out, "{name}: {errors} error{}, {idle} setting{} without effect", plural(errors), plural(idle))?;
    Ok(errors == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Start, parse};
    use std::ffi::OsString;

    fn check(words: &[&str]) -> (bool, String) {
        let words = ["simurgh", "check-config"].iter().chain(words).map(OsString::from);
        let Ok(Start::CheckConfig(sources)) = parse(words, []) else { panic!("not a check") };
        let mut out = Vec::new();
        let good = check_config(&sources, &mut out).unwrap();
        (good, String::from_utf8(out).unwrap())
    }

    #[test]
    fn findings_are_listed_and_errors_decide() {
        let (good, text) = check(&["--port", "7000", "--io-threads", "4"]);
        assert!(good);
        assert_eq!(
            text,
            "no effect: command line: io-threads: every thread serves its own connections; see threads\n\
             configuration: 0 errors, 1 setting without effect\n"
        );
        let (good, text) = check(&["--cluster-enabled", "yes", "--nope", "1"]);
        assert!(!good);
        assert_eq!(
            text,
            "error: command line: 'cluster-enabled \"yes\"': cluster mode is not built yet\n\
             error: command line: 'nope \"1\"': Bad directive or wrong number of arguments\n\
             configuration: 2 errors, 0 settings without effect\n"
        );
        let (good, text) = check(&["--supervised", "upstart"]);
        assert!(!good);
        assert_eq!(
            text,
            "error: supervised upstart: that service manager is not supported; use systemd, auto or no\n\
             configuration: 1 error, 0 settings without effect\n"
        );
    }
}

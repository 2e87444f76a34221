//! The server's own log: lines for people or JSON, to standard output or a file.

use simurgh_protocol::config::{Config, LogFormat, LogLevel};
use std::fs::OpenOptions;
use std::sync::Mutex;
use tracing_subscriber::filter::LevelFilter;

/// Begins to log as the configuration says.
#[expect(clippy::disallowed_methods, reason = "the log file of the process is not part of the simulated disk")]
pub fn start(config: &Config) -> anyhow::Result<()> {
    let level = match config.log_level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Verbose | LogLevel::Notice => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Nothing => LevelFilter::OFF,
    };
    let is_json = matches!(config.log_format, LogFormat::Json);
    let builder = tracing_subscriber::fmt().with_max_level(level).with_target(false).with_ansi(false);
    match &config.log_file {
        Some(path) => {
            let path = String::from_utf8_lossy(path).into_owned();
            let file = Mutex::new(OpenOptions::new().create(true).append(true).open(path)?);
            if is_json { builder.json().with_writer(file).init() } else { builder.with_writer(file).init() }
        }
        None if is_json => builder.json().init(),
        None => builder.init(),
    }
    Ok(())
}

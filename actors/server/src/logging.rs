//! The server's own log: lines for people or JSON, to standard output or a file.

use simurgh_protocol::config::{Config, LogFormat, LogLevel};
use std::fs::OpenOptions;
use std::sync::{Mutex, OnceLock};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;

/// By which the level is changed while the server runs.
static LEVEL: OnceLock<Handle<LevelFilter, Registry>> = OnceLock::new();

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Verbose | LogLevel::Notice => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Nothing => LevelFilter::OFF,
    }
}

/// Begins to log as the configuration says.
#[expect(clippy::disallowed_methods, reason = "the log file of the process is not part of the simulated disk")]
pub fn start(config: &Config) -> anyhow::Result<()> {
    let writer = match &config.log_file {
        Some(path) => {
            let path = String::from_utf8_lossy(path).into_owned();
            BoxMakeWriter::new(Mutex::new(OpenOptions::new().create(true).append(true).open(path)?))
        }
        None => BoxMakeWriter::new(std::io::stdout),
    };
    let (level, handle) = reload::Layer::new(filter(config.log_level));
    let lines = tracing_subscriber::fmt::layer().with_target(false).with_ansi(false).with_writer(writer);
    let registry = tracing_subscriber::registry().with(level);
    match config.log_format {
        LogFormat::Json => registry.with(lines.json()).init(),
        LogFormat::Text => registry.with(lines).init(),
    }
    let _ = LEVEL.set(handle);
    Ok(())
}

/// Changes how much is logged.
pub fn set_level(level: LogLevel) {
    if let Some(handle) = LEVEL.get() {
        let _ = handle.modify(|current| *current = filter(level));
    }
}

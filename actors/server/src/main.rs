//! The `simurgh` binary: reads what it was asked to do, then does that.

mod allocator;
mod arguments;
mod check_aof;
mod check_config;
mod check_rdb;
mod convert;
mod copy_log;
mod load;
mod logging;
mod print_config;
mod serve;
mod tool;

use std::io::{self, Write};
use std::process::ExitCode;

use arguments::Start;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "\n{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let start = arguments::parse(std::env::args_os(), std::env::vars_os())?;
    let mut out = io::stdout().lock();
    match start {
        Start::Help => out.write_all(arguments::HELP.as_bytes())?,
        Start::Version => writeln!(out, "Simurgh {} (Redis 8.2.3)", env!("CARGO_PKG_VERSION"))?,
        Start::PrintConfig(sources) => print_config::print_config(&load::load(&sources)?.settings, &mut out)?,
        Start::CheckConfig(sources) => {
            let starts = check_config::check_config(&sources, &mut out)?;
            return Ok(if starts { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Start::Tool(tool) => {
            let is_good = tool.run(&mut out)?;
            return Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Start::Serve(sources) => {
            drop(out);
            serve::serve(&sources)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

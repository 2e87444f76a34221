//! How the harnesses end: a line that `tests/run` counts, and an exit code.

use anyhow::Result;
use std::process::ExitCode;

/// Prints `N passed, N failed` for a finished run, or why it could not finish.
pub fn report(run: Result<(usize, usize)>) -> ExitCode {
    match run {
        Ok((passed, failed)) => {
            println!("{passed} passed, {failed} failed");
            if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            println!("stopped: {error:#}");
            ExitCode::from(2)
        }
    }
}

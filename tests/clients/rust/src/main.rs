//! The Rust clients redis-rs and fred as applications use them, over RESP2 and RESP3.
//!
//! usage: rust-clients PORT
//!
//! Prints what failed and `N passed, N failed`. The server is emptied before each test; tests run one after the other, as they
//! share its keys.

mod fred_client;
mod redis_rs;

use anyhow::{Context, Result};
use std::future::Future;
use std::time::Duration;

/// A test that takes longer hangs.
const SECONDS_MAX: u64 = 20;

/// Counts what passed.
pub struct Tests {
    /// Where the server listens.
    pub port: u16,
    passed: usize,
    failed: usize,
}

impl Tests {
    /// Runs one test; what it says when it fails is printed.
    pub async fn run(&mut self, name: &str, body: impl Future<Output = Result<()>>) {
        let outcome = match tokio::time::timeout(Duration::from_secs(SECONDS_MAX), body).await {
            Ok(outcome) => outcome,
            Err(_) => Err(anyhow::anyhow!("it takes more than {SECONDS_MAX} s")),
        };
        match outcome {
            Ok(()) => self.passed += 1,
            Err(error) => {
                self.failed += 1;
                println!("{name}: {error:#}");
            }
        }
    }
}

/// An error that says what was expected, with the line that did.
#[macro_export]
macro_rules! equal {
    ($came:expr, $expected:expr) => {{
        let (came, expected) = (&$came, &$expected);
        anyhow::ensure!(came == expected, "line {}: {came:?} came, not {expected:?}", line!());
    }};
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let port = std::env::args().nth(1).context("usage: rust-clients PORT")?.parse()?;
    let mut tests = Tests { port, passed: 0, failed: 0 };
    redis_rs::run(&mut tests).await;
    fred_client::run(&mut tests).await;
    println!("{} passed, {} failed", tests.passed, tests.failed);
    std::process::exit(i32::from(tests.failed > 0))
}

//! A disk that fails when a test says so, for real processes: a library that stands before libc, made by the C compiler that Rust's
//! linker comes with. File systems that fail for real need mounts, which not every machine permits.

use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The library; made once a process.
pub fn shim() -> Result<PathBuf> {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = MADE.get() {
        return Ok(path.clone());
    }
    let folder = std::env::temp_dir().join(format!("simurgh-failing-disk-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (source, library) = (folder.join("shim.c"), folder.join("shim.so"));
    std::fs::write(&source, include_str!("shim.c"))?;
    let mut compiler = Command::new("cc");
    let done = compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).arg("-ldl").output();
    let done = done.context("cc, which Rust's linker is, makes a library")?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Ok(MADE.get_or_init(|| library).clone())
}

//! `simurgh check-rdb FILE`: what is in an RDB file, and whether this server would load it.
#![expect(clippy::disallowed_methods, reason = "a tool that reads one file, not a part of the node")]

use anyhow::Context as _;
use simurgh_storage::rdb::check::Check;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// Reports on the file; whether it is good.
pub fn check_rdb(path: &Path, out: &mut impl Write) -> anyhow::Result<bool> {
    let mut file = File::open(path).with_context(|| format!("{}", path.display()))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let (mut check, mut piece) = (Check::new(i64::try_from(now)?), vec![0; PIECE]);
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            break;
        }
        check.feed(&piece[..count]);
    }
    let report = check.finish();
    writeln!(out, "{report}")?;
    Ok(report.is_good())
}

//! Begins the corpora of the fuzz targets that read files, with what real servers write.
//!
//! `fuzz_corpus FOLDER`: for every server that is installed, and ours if it is built, each value of the dataset that uses every type in
//! every encoding, as a payload of DUMP and as an RDB file of one key; and the files of a short log.

use anyhow::{Context as _, Result, bail};
use simurgh_tests::client::Client;
use simurgh_tests::everything::{Abilities, VARIANTS, ask, fill};
use simurgh_tests::resp::Value;
use simurgh_tests::server::{Program, Server};
use std::path::{Path, PathBuf};

const SERVERS: [&str; 5] = ["redis-7.0", "redis-8.2", "redis-8.10", "valkey-9.1", "ours"];
/// Longer inputs are cut by the fuzzer.
const BYTES_MAX: usize = 4096;
/// Version and sum behind a payload.
const FOOTER: usize = 10;

fn main() -> Result<()> {
    let folder: PathBuf = std::env::args_os().nth(1).context("usage: fuzz_corpus FOLDER")?.into();
    let mut count = 0;
    for name in SERVERS {
        for (index, variant) in VARIANTS.iter().enumerate() {
            let options = [&["--appendonly", "yes"], *variant].concat();
            let Ok(mut server) = Server::start(&Program::parse(name)?, &options) else {
                eprintln!("{name} is not installed");
                break;
            };
            count += values(&server, &format!("{name}-{index}"), name, &folder)?;
            server.shut_down()?;
            count += logs(&server, &format!("{name}-{index}"), &folder)?;
        }
    }
    println!("{count} files");
    if count == 0 { bail!("no server is installed") } else { Ok(()) }
}

fn write(folder: &Path, target: &str, name: &str, bytes: &[u8]) -> Result<usize> {
    if bytes.len() > BYTES_MAX {
        return Ok(0);
    }
    let folder = folder.join(target);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(name), bytes)?;
    Ok(1)
}

fn values(server: &Server, prefix: &str, name: &str, folder: &Path) -> Result<usize> {
    let mut client = Client::connect(server.address)?;
    let functions = name != "ours";
    fill(&mut client, Abilities { functions, ..Abilities::of(name) })?;
    let Value::Array(keys) = ask(&mut client, &["KEYS", "*"])? else { bail!("KEYS gives an array") };
    let mut count = 0;
    for (index, key) in keys.iter().enumerate() {
        let Value::Bulk(key) = key else { bail!("a key is a string") };
        let Value::Bulk(payload) = ask(&mut client, &[b"DUMP".as_slice(), key])? else { bail!("DUMP gives a string") };
        let body = &payload[..payload.len() - FOOTER];
        let name = format!("{prefix}-{index}");
        count += write(folder, "dump_restore", &name, body)?;
        // The first byte is the size of the pieces. Then a file of the newest version, with this value under the key `k`.
        let file = [b"\x10REDIS0012\xfe\x00", &body[..1], b"\x01k", &body[1..], b"\xff\0\0\0\0\0\0\0\0"].concat();
        count += write(folder, "rdb_file", &name, &file)?;
    }
    ask(&mut client, &["FLUSHALL"])?;
    Ok(count)
}

/// The end of each file of the log: there is the structure of records and seals.
fn logs(server: &Server, prefix: &str, folder: &Path) -> Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir(server.folder().join("appendonlydir"))? {
        let path = entry?.path();
        let bytes = std::fs::read(&path)?;
        let name = format!("{prefix}-{}", path.file_name().unwrap_or_default().to_string_lossy());
        if name.ends_with(".manifest") {
            count += write(folder, "manifest", &name, &bytes)?;
        } else if name.ends_with(".aof") {
            let front = &bytes[..bytes.len().min(BYTES_MAX - 1)];
            count += write(folder, "aof_replay", &name, &[b"\x10", front].concat())?;
        }
    }
    Ok(count)
}

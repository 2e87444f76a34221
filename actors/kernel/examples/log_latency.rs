//! How long an append takes on this machine's disk, by plain system calls and through io_uring:
//! `cargo run --example log_latency -p simurgh-kernel -- DIRECTORY`. The rounds alternate, because disks drift.
#![cfg_attr(madsim, allow(unused))]

#[cfg(not(madsim))]
fn main() -> std::io::Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    simurgh_kernel::core::run(measure(&directory))?
}

#[cfg(madsim)]
fn main() {}

#[cfg(not(madsim))]
async fn measure(directory: &str) -> std::io::Result<()> {
    use simurgh_kernel::disk::{Disk, PlainDisk, Sync};
    use simurgh_kernel::time;
    const APPENDS: usize = 400;
    for round in 0..5 {
        for (name, disk) in [("plain", PlainDisk::new(directory)), ("ring", PlainDisk::with_ring(directory))] {
            for (sync, length) in [(Sync::Data, 64), (Sync::Data, 16_384), (Sync::No, 64), (Sync::No, 16_384)] {
                let mut log = disk.create("log_latency.tmp").await?;
                let mut buffer = Vec::with_capacity(length);
                let mut taken = Vec::with_capacity(APPENDS);
                for _ in 0..APPENDS {
                    buffer.resize(length, b'x');
                    let start = time::monotonic_ns();
                    let done = log.append(buffer, sync).await;
                    taken.push(time::monotonic_ns() - start);
                    done.result.map_err(std::io::Error::other)?;
                    buffer = done.buffer;
                }
                taken.sort_unstable();
                let (median, p99) = (taken[APPENDS / 2], taken[APPENDS * 99 / 100]);
                println!("round {round} {name:5} {sync:?} {length:5} bytes: median {median} ns, p99 {p99} ns");
            }
        }
    }
    disk_cleanup(directory).await
}

#[cfg(not(madsim))]
async fn disk_cleanup(directory: &str) -> std::io::Result<()> {
    use simurgh_kernel::disk::{Disk, PlainDisk};
    PlainDisk::new(directory).unlink("log_latency.tmp").await
}

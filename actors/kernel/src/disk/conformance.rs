//! What every disk must do, however it does it: run against the plain disk, the ring and the simulated one. It says nothing
//! about power loss, which only the simulated disk can show.

use std::io::{self, ErrorKind};

use super::{Disk, Sync};

/// Runs the suite in the disk's root, which must be empty.
///
/// # Panics
/// When the disk breaks a rule.
pub async fn run(disk: &dyn Disk) -> io::Result<()> {
    appends_are_read_back(disk).await?;
    the_buffer_comes_back(disk).await?;
    files_can_be_cut(disk).await?;
    names_move_and_go(disk).await?;
    what_is_missing_is_not_found(disk).await;
    a_directory_has_one_owner(disk).await
}

async fn appends_are_read_back(disk: &dyn Disk) -> io::Result<()> {
    disk.create_directory("data/deep").await?;
    disk.create_directory("data/deep").await?;
    let mut log = disk.create("data/deep/log").await?;
    assert_eq!(log.length(), 0);
    log.append(b"one ".to_vec(), Sync::No).await.result.expect("append");
    log.append(b"two ".to_vec(), Sync::Data).await.result.expect("append and sync");
    log.append(Vec::new(), Sync::Data).await.result.expect("sync alone");
    log.append(Vec::new(), Sync::No).await.result.expect("nothing at all");
    assert_eq!(log.length(), 8);
    drop(log);
    let mut log = disk.append("data/deep/log").await?;
    assert_eq!(log.length(), 8, "an existing file is appended to at its end");
    log.append(b"three".to_vec(), Sync::Data).await.result.expect("append to the existing file");
    log.rewrite(4, b"two ".to_vec()).await.result.expect("write again what is there");
    log.append(Vec::new(), Sync::Data).await.result.expect("sync it");
    assert_eq!(log.length(), 13);
    assert_eq!(disk.read("data/deep/log").await?, b"one two three");
    assert_eq!(disk.length("data/deep/log").await?, 13);
    assert_eq!(disk.read_range("data/deep/log", 4, 3).await?, b"two");
    assert_eq!(disk.read_range("data/deep/log", 8, 100).await?, b"three", "fewer bytes where the file ends");
    assert_eq!(disk.read_range("data/deep/log", 100, 1).await?, b"");
    drop(disk.create("data/deep/log").await?);
    assert_eq!(disk.length("data/deep/log").await?, 0, "create empties what was there");
    disk.unlink("data/deep/log").await
}

async fn the_buffer_comes_back(disk: &dyn Disk) -> io::Result<()> {
    let mut log = disk.create("buffers").await?;
    let mut buffer = Vec::with_capacity(300_000);
    let start = buffer.as_ptr();
    let mut expected = Vec::new();
    for round in 0..20_u8 {
        buffer.extend(std::iter::repeat_n(round, 1 + 13_000 * usize::from(round)));
        expected.extend_from_slice(&buffer);
        let sync = if round % 3 == 0 { Sync::Data } else { Sync::No };
        let done = log.append(buffer, sync).await;
        done.result.expect("append");
        buffer = done.buffer;
        assert!(buffer.is_empty() && buffer.as_ptr() == start, "the same buffer, cleared");
    }
    assert_eq!(disk.read("buffers").await?, expected);
    disk.unlink("buffers").await
}

async fn files_can_be_cut(disk: &dyn Disk) -> io::Result<()> {
    let mut log = disk.create("cut").await?;
    log.append(b"0123456789".to_vec(), Sync::Data).await.result.expect("append");
    log.set_length(4).expect("cut");
    assert_eq!(log.length(), 4);
    log.append(b"abc".to_vec(), Sync::Data).await.result.expect("append after the cut");
    assert_eq!(disk.read("cut").await?, b"0123abc");
    drop(log);
    disk.truncate("cut", 2).await?;
    assert_eq!(disk.read("cut").await?, b"01");
    disk.truncate("cut", 4).await?;
    assert_eq!(disk.read("cut").await?, b"01\0\0", "extended with zeros");
    disk.unlink("cut").await
}

async fn names_move_and_go(disk: &dyn Disk) -> io::Result<()> {
    for (name, content) in [("b", "new"), ("a", "old"), ("c", "other")] {
        let mut log = disk.create(name).await?;
        log.append(content.into(), Sync::Data).await.result.expect("append");
    }
    assert_eq!(disk.list("").await?, ["a", "b", "c", "data"], "sorted");
    disk.rename("b", "a").await?;
    assert_eq!(disk.read("a").await?, b"new", "renamed over the other");
    disk.unlink("c").await?;
    disk.sync_directory("").await?;
    assert_eq!(disk.list("").await?, ["a", "data"]);
    assert_eq!(disk.list("data").await?, ["deep"]);
    disk.unlink("a").await
}

async fn what_is_missing_is_not_found(disk: &dyn Disk) {
    let errors = [
        disk.read("nothing").await.expect_err("read"),
        disk.read_range("nothing", 0, 1).await.expect_err("read a range"),
        disk.length("nothing").await.expect_err("length"),
        disk.append("nothing").await.expect_err("append"),
        disk.create("no/directory").await.expect_err("create"),
        disk.truncate("nothing", 0).await.expect_err("truncate"),
        disk.rename("nothing", "something").await.expect_err("rename"),
        disk.unlink("nothing").await.expect_err("unlink"),
        disk.list("nothing").await.expect_err("list"),
        disk.sync_directory("nothing").await.expect_err("sync a directory"),
        disk.lock_directory("nothing").await.expect_err("lock"),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
}

async fn a_directory_has_one_owner(disk: &dyn Disk) -> io::Result<()> {
    let held = disk.lock_directory("data").await?;
    let refused = disk.lock_directory("data").await.expect_err("a second owner");
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    let other = disk.lock_directory("data/deep").await?;
    drop(held);
    drop(other);
    drop(disk.lock_directory("data").await?);
    Ok(())
}

#[cfg(all(test, not(madsim)))]
mod tests {
    use super::super::{PlainDisk, uring_available};
    use super::*;

    #[test]
    fn the_plain_disk_conforms() {
        let folder = tempfile::tempdir().unwrap();
        crate::core::run(run(&PlainDisk::new(folder.path()))).unwrap().unwrap();
    }

    #[test]
    fn the_ring_conforms() {
        if !uring_available() {
            eprintln!("this kernel refuses io_uring: nothing to test");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        crate::core::run(run(&PlainDisk::with_ring(folder.path()))).unwrap().unwrap();
    }
}

//! What the operating system knows of this process, for INFO, and the one file outside the data folder that a running node
//! writes: its configuration. In the simulator there is no such process, so the numbers are zero and the file cannot be written.

use std::io;
use std::path::Path;

/// Processor time in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuTimes {
    /// Of the process, in its own code.
    pub user: f64,
    /// Of the process, in the kernel.
    pub system: f64,
    /// Of children that have ended, in their own code.
    pub children_user: f64,
    /// Of children that have ended, in the kernel.
    pub children_system: f64,
}

/// What the machine and the process are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Number of the process.
    pub id: u32,
    /// Path of the program.
    pub executable: String,
    /// Name and version of the operating system, and the processor's family.
    pub os: String,
    /// Memory of the machine, in bytes.
    pub machine_memory: u64,
}

/// Bytes of memory that the process occupies.
#[must_use]
pub fn resident_bytes() -> u64 {
    source::resident_bytes()
}

/// Processor time used so far, to a hundredth of a second.
#[must_use]
pub fn cpu_times() -> CpuTimes {
    source::cpu_times()
}

/// Processor time of the thread that the process began with.
#[must_use]
pub fn main_thread_cpu_times() -> CpuTimes {
    source::main_thread_cpu_times()
}

/// The process and its machine.
#[must_use]
pub fn about() -> About {
    source::about()
}

/// The whole of a file, by its absolute path.
///
/// # Errors
/// What the operating system says.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    source::read_file(path)
}

/// Replaces a file in one step: written and synced beside, renamed over, and the folder synced.
///
/// # Errors
/// What the operating system says; the file is then as it was.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    source::replace_file(path, bytes)
}

/// The fields of `/proc/self/stat` that count processor time, in ticks of a hundredth of a second.
#[cfg_attr(madsim, allow(dead_code, reason = "only a real process has one"))]
fn parse_stat(stat: &str) -> Option<CpuTimes> {
    // The name of the program stands in brackets and may contain anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let ticks: Vec<f64> = rest.split(' ').skip(11).take(4).filter_map(|field| field.parse().ok()).collect();
    let [user, system, children_user, children_system] = ticks[..] else { return None };
    Some(CpuTimes {
        user: user / 100.0,
        system: system / 100.0,
        children_user: children_user / 100.0,
        children_system: children_system / 100.0,
    })
}

/// The value of a line like `VmRSS:     8572 kB`, in bytes.
#[cfg_attr(madsim, allow(dead_code, reason = "only a real process has one"))]
fn parse_kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(not(madsim))]
mod source {
    //! Linux's `/proc` and file system.
    #![allow(clippy::disallowed_methods, reason = "this is the seam that the ban points to")]

    use super::{About, CpuTimes, parse_kilobytes, parse_stat};
    use std::fs::{self, File};
    use std::io::{self, Write};
    use std::path::Path;

    fn text(path: &str) -> String {
        fs::read_to_string(path).unwrap_or_default()
    }

    pub fn resident_bytes() -> u64 {
        parse_kilobytes(&text("/proc/self/status"), "VmRSS").unwrap_or(0)
    }

    pub fn cpu_times() -> CpuTimes {
        parse_stat(&text("/proc/self/stat")).unwrap_or_default()
    }

    pub fn main_thread_cpu_times() -> CpuTimes {
        // A process has the number of its first thread.
        parse_stat(&text(&format!("/proc/self/task/{}/stat", std::process::id()))).unwrap_or_default()
    }

    pub fn about() -> About {
        let executable = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default();
        let (kind, release) = (text("/proc/sys/kernel/ostype"), text("/proc/sys/kernel/osrelease"));
        About {
            id: std::process::id(),
            executable,
            os: format!("{} {} {}", kind.trim(), release.trim(), std::env::consts::ARCH),
            machine_memory: parse_kilobytes(&text("/proc/meminfo"), "MemTotal").unwrap_or(0),
        }
    }

    pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let temporary = path.with_file_name(format!("{name}.{}.tmp", std::process::id()));
        let written = write_and_rename(path, &temporary, bytes);
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    fn write_and_rename(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = File::create(temporary)?;
        if let Ok(metadata) = fs::metadata(path) {
            file.set_permissions(metadata.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(temporary, path)?;
        match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

#[cfg(madsim)]
mod source {
    //! A simulated node is no process of its own.

    use super::{About, CpuTimes};
    use std::io;
    use std::path::Path;

    pub fn resident_bytes() -> u64 {
        0
    }

    pub fn cpu_times() -> CpuTimes {
        CpuTimes::default()
    }

    pub fn main_thread_cpu_times() -> CpuTimes {
        CpuTimes::default()
    }

    pub fn about() -> About {
        About::default()
    }

    pub fn read_file(_path: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn replace_file(_path: &Path, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, not(madsim)))]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 3 4 20 0 1 0";
        let times = CpuTimes { user: 2.5, system: 0.5, children_user: 0.03, children_system: 0.04 };
        assert_eq!(parse_stat(stat), Some(times));
        assert_eq!(parse_stat("7 (a) S 1"), None);
    }

    #[test]
    fn sizes_are_read_by_their_whole_name() {
        let text = "VmPeak:\t  10 kB\nVmRSS:\t   8 kB\n";
        assert_eq!(parse_kilobytes(text, "VmRSS"), Some(8192));
        assert_eq!(parse_kilobytes(text, "Vm"), None);
        assert!(resident_bytes() > 100_000);
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("redis.conf");
        replace_file(&path, b"one").expect("written");
        replace_file(&path, b"two").expect("written");
        assert_eq!(read_file(&path).expect("it is there"), b"two");
        let missing = folder.path().join("none").join("redis.conf");
        assert!(replace_file(&missing, b"x").is_err());
        assert_eq!(folder.path().read_dir().expect("it is there").count(), 1);
    }
}

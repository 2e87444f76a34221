//! Servers under test: ours, or an oracle from `tests/oracles/install`, each in a folder of its own.

use crate::client::Client;
use crate::resp::Value;
use anyhow::{Context, Result, bail};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// How long a server may take to answer its first PING.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How many ports are tried.
const START_TRIES: usize = 5;

/// What the harnesses read from the environment. A server takes SIMURGH_* for configuration and refuses what it does
/// not know, so these do not reach it.
pub const HARNESS_VARIABLES: [&str; 3] = ["SIMURGH_BINARY", "SIMURGH_PORTS", "SIMURGH_ORACLES"];

/// Which program to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// The release binary of this repository.
    Ours,
    /// An oracle, by the name of its folder's beginning: `redis-8.2`, `redis-8.10`, `redis-7.0`, `valkey-9.1`.
    Oracle(String),
    /// A server that somebody else started.
    Running(SocketAddr),
}

impl Program {
    /// Reads `ours`, an oracle's name, or `HOST:PORT`.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "ours" => Ok(Program::Ours),
            _ if name.contains(':') => Ok(Program::Running(name.parse()?)),
            _ if name.starts_with("redis-") || name.starts_with("valkey-") => Ok(Program::Oracle(name.to_owned())),
            _ => bail!("no such server: {name} (ours, redis-8.2, redis-8.10, redis-7.0, valkey-9.1 or HOST:PORT)"),
        }
    }

    /// The name to print.
    pub fn name(&self) -> String {
        match self {
            Program::Ours => "ours".into(),
            Program::Oracle(name) => name.clone(),
            Program::Running(address) => address.to_string(),
        }
    }

    fn path(&self) -> Result<PathBuf> {
        match self {
            Program::Ours => match std::env::var_os("SIMURGH_BINARY") {
                Some(path) => Ok(path.into()),
                None => Ok(repository().join("target/release/simurgh")),
            },
            Program::Oracle(name) => oracle(name),
            Program::Running(address) => bail!("{address} is not ours to start"),
        }
    }
}

/// Whether there is a binary of ours to start: the one that `SIMURGH_BINARY` names, or the release build. A fresh checkout's
/// unit tests run before there is one; on CI, where it is built first, its absence is a failure and not a skip.
///
/// # Panics
/// On CI, without a binary.
#[must_use]
pub fn is_ours_built() -> bool {
    let named = std::env::var_os("SIMURGH_BINARY").is_some();
    let built = named || repository().join("target/release/simurgh").exists();
    assert!(built || std::env::var_os("CI").is_none(), "no release build of the server on CI");
    if !built {
        eprintln!("skipped: no release build");
    }
    built
}

/// Whether an oracle is installed. On CI its absence is a failure and not a skip.
///
/// # Panics
/// On CI, without it.
#[must_use]
pub fn is_oracle_installed(name: &str) -> bool {
    let installed = oracle(name).is_ok();
    assert!(installed || std::env::var_os("CI").is_none(), "{name} is not installed on CI");
    if !installed {
        eprintln!("skipped: no {name}");
    }
    installed
}

/// Runs a tool of our binary: whether it was content, and what it printed.
///
/// # Panics
/// If there is no binary.
#[must_use]
pub fn our_tool(words: &[&str]) -> (bool, String) {
    let path = Program::Ours.path().expect("ours has a path");
    let mut command = Command::new(path);
    for variable in HARNESS_VARIABLES {
        command.env_remove(variable);
    }
    let output = command.args(words).output().expect("the binary runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// The repository's top folder.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository").to_owned()
}

/// Where `tests/oracles/install` puts things.
pub fn oracles() -> PathBuf {
    std::env::var_os("SIMURGH_ORACLES").map_or_else(|| repository().join(".oracles"), PathBuf::from)
}

fn oracle(name: &str) -> Result<PathBuf> {
    let entries = std::fs::read_dir(oracles()).context("run tests/oracles/install first")?;
    for entry in entries {
        let entry = entry?;
        let folder = entry.file_name().to_string_lossy().into_owned();
        let program = entry.path().join(if name.starts_with("valkey") { "valkey-server" } else { "redis-server" });
        if folder.starts_with(&format!("{name}.")) && program.exists() {
            return Ok(program);
        }
    }
    bail!("{name} is not in {} (tests/oracles/install installs it)", oracles().display())
}

/// What a server has less of than others.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// Open files and sockets.
    Descriptors(u32),
    /// Bytes of each file.
    FileBytes(u64),
}

/// A started server; dropping it kills it and removes its folder.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    program: Program,
    folder: PathBuf,
    options: Vec<String>,
    limit: Option<Limit>,
    failing_disk: Option<PathBuf>,
    child: Option<Child>,
}

impl Server {
    /// Starts `program` in an empty folder and waits until it answers.
    pub fn start(program: &Program, options: &[&str]) -> Result<Self> {
        Self::start_with(program, options, None, None)
    }

    /// As [`Server::start`], with no more than `descriptors` open files and sockets.
    pub fn start_limited(program: &Program, options: &[&str], descriptors: u32) -> Result<Self> {
        Self::start_with(program, options, Some(Limit::Descriptors(descriptors)), None)
    }

    /// As [`Server::start`], with files that may not grow beyond `bytes`: a disk that is full, as far as one process can see.
    pub fn start_on_full_disk(program: &Program, options: &[&str], bytes: u64) -> Result<Self> {
        Self::start_with(program, options, Some(Limit::FileBytes(bytes)), None)
    }

    /// The disk of [`Server::start_on_full_disk`] has room again.
    pub fn make_room(&mut self) -> Result<()> {
        let id = self.child.as_ref().context("it does not run")?.id();
        let done = Command::new("prlimit").args(["--pid", &id.to_string(), "--fsize=unlimited:"]).status()?;
        anyhow::ensure!(done.success(), "the limit could not be lifted");
        self.limit = None;
        Ok(())
    }

    /// As [`Server::start`], on a disk that fails when [`Server::fail`] says so; `shim` is what [`crate::failing_disk::shim`] made.
    pub fn start_on_failing_disk(program: &Program, options: &[&str], shim: &Path) -> Result<Self> {
        Self::start_with(program, options, None, Some(shim))
    }

    /// From now on the disk fails so (`write 5`: with errno 5), or no longer (an empty text).
    pub fn fail(&self, how: &str) -> Result<()> {
        // In one step: who reads it meanwhile sees all of it or what was before.
        let beside = self.folder.join("failing.new");
        std::fs::write(&beside, how)?;
        Ok(std::fs::rename(beside, self.folder.join("failing"))?)
    }

    fn start_with(
        program: &Program,
        options: &[&str],
        limit: Option<Limit>,
        failing_disk: Option<&Path>,
    ) -> Result<Self> {
        if let Program::Running(address) = program {
            return Ok(Server::at(program, *address, PathBuf::new(), options));
        }
        let mut tries = START_TRIES;
        loop {
            let address = free_address()?;
            let folder = std::env::temp_dir().join(format!("simurgh-tests-{}-{}", std::process::id(), address.port()));
            std::fs::create_dir_all(&folder)?;
            let mut server = Server::at(program, address, folder, options);
            server.limit = limit;
            server.failing_disk = failing_disk.map(Path::to_owned);
            tries -= 1;
            match server.launch() {
                Ok(()) => return Ok(server),
                // Between the look for a free port and its use another process may take it, even for an outgoing connection.
                Err(_) if tries > 0 && server.has_logged("Address already in use") => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn at(program: &Program, address: SocketAddr, folder: PathBuf, options: &[&str]) -> Self {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        Server { address, program: program.clone(), folder, options, limit: None, failing_disk: None, child: None }
    }

    /// Starts the process (again) on the folder it has, and waits until it answers.
    pub fn launch(&mut self) -> Result<()> {
        self.spawn()?;
        self.wait_until_ready()
    }

    /// Starts the process on the folder it has, without waiting.
    pub fn spawn(&mut self) -> Result<()> {
        let path = self.program.path()?;
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.folder.join("server.log"))?;
        let port = self.address.port().to_string();
        let folder = self.folder.to_string_lossy().into_owned();
        let mut command = self.command(&path);
        for variable in HARNESS_VARIABLES {
            command.env_remove(variable);
        }
        if let Some(shim) = &self.failing_disk {
            command.env("LD_PRELOAD", shim).env("FAILING_DISK", self.folder.join("failing"));
        }
        let child = command
            .args(["--port", &port, "--bind", "127.0.0.1", "--dir", &folder, "--save", ""])
            .args(&self.options)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("{} does not start", path.display()))?;
        self.child = Some(child);
        Ok(())
    }

    fn command(&self, path: &Path) -> Command {
        let script = match self.limit {
            None => return Command::new(path),
            Some(Limit::Descriptors(count)) => format!("ulimit -n {count}; exec \"$0\" \"$@\""),
            // A write beyond it is to fail, not to end the process. The hard limit stays, so that there can be room again.
            Some(Limit::FileBytes(bytes)) => {
                format!("trap '' XFSZ; exec prlimit --fsize={bytes}: \"$0\" \"$@\"")
            }
        };
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(path);
        command
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < START_TIMEOUT {
            if let Some(status) = self.child.as_mut().and_then(|child| child.try_wait().transpose()) {
                bail!("{} ended at its start ({:?}):\n{}", self.program.name(), status?, self.log());
            }
            if self.answers_ping() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("{} does not answer after {START_TIMEOUT:?}:\n{}", self.program.name(), self.log())
    }

    fn answers_ping(&self) -> bool {
        match Client::connect(self.address).and_then(|mut client| client.ask(&["PING"])) {
            Ok(Value::Simple(text)) => text == b"PONG",
            // A password is set, which says the same: it is not loading any more.
            Ok(Value::Error(text)) => text.starts_with(b"NOAUTH"),
            _ => false,
        }
    }

    /// The data folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The end of what it logged.
    pub fn log(&self) -> String {
        let text = std::fs::read(self.folder.join("server.log")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// Whether it has logged `text`, however long ago.
    pub fn has_logged(&self, text: &str) -> bool {
        let log = std::fs::read(self.folder.join("server.log")).unwrap_or_default();
        String::from_utf8_lossy(&log).contains(text)
    }

    /// `kill -9`, and waits until the process is gone.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Asks it to end with SHUTDOWN, and waits until the process is gone.
    pub fn shut_down(&mut self) -> Result<()> {
        Client::connect(self.address)?.send(b"SHUTDOWN NOSAVE\r\n")?;
        let begin = Instant::now();
        while self.is_alive() {
            if begin.elapsed() > START_TIMEOUT {
                bail!("{} does not end {START_TIMEOUT:?} after SHUTDOWN:\n{}", self.program.name(), self.log());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
        Ok(())
    }

    /// SIGTERM, as a service manager sends it, and waits until the process is gone.
    pub fn terminate(&mut self) -> Result<std::process::ExitStatus> {
        let child = self.child.as_mut().context("it does not run")?;
        let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?;
        anyhow::ensure!(sent.success(), "SIGTERM could not be sent");
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.as_mut().context("it does not run")?.try_wait()? {
                self.child = None;
                return Ok(status);
            }
            if begin.elapsed() > START_TIMEOUT {
                bail!("{} does not end {START_TIMEOUT:?} after SIGTERM:\n{}", self.program.name(), self.log());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the process still runs.
    pub fn is_alive(&mut self) -> bool {
        match &mut self.child {
            Some(child) => matches!(child.try_wait(), Ok(None)),
            None => matches!(self.program, Program::Running(_)),
        }
    }

    /// Keeps the folder for a person to look at, and says where it is.
    pub fn keep_folder(&mut self) -> PathBuf {
        self.kill();
        std::mem::take(&mut self.folder)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if !self.folder.as_os_str().is_empty() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// An address nobody listens on: in `SIMURGH_PORTS` (`FIRST-LAST`) when that is set, else what the system gives.
fn free_address() -> Result<SocketAddr> {
    let Ok(range) = std::env::var("SIMURGH_PORTS") else {
        return Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?);
    };
    let (first, last) = range.split_once('-').context("SIMURGH_PORTS is FIRST-LAST")?;
    let (first, last) = (first.parse::<u16>()?, last.parse::<u16>()?);
    static STARTED: AtomicU16 = AtomicU16::new(0);
    // Begin at a place of this process's own, so that two harnesses do not race for the same port, and two threads neither.
    let count = last - first + 1;
    let offset =
        (std::process::id() as u16 % count).wrapping_mul(7).wrapping_add(STARTED.fetch_add(1, Ordering::Relaxed));
    for step in 0..count {
        let port = first + (offset.wrapping_add(step)) % count;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
        }
    }
    bail!("no free port in {range}")
}

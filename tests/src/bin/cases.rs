//! `cases record FILE...` asks the oracle and writes its replies into the files; `cases check SERVER FILE...` runs
//! them against a server: `ours`, `oracle` (each file's own), or one by name.

use anyhow::{Context, Result, bail};
use simurgh_tests::case_file::{Case, CaseFile};
use simurgh_tests::case_runner::{check, record};
use simurgh_tests::outcome::report;
use simurgh_tests::server::{Program, Server};
use std::net::SocketAddr;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    report(match words.as_slice() {
        ["record", files @ ..] if !files.is_empty() => record_files(files),
        ["check", server, files @ ..] if !files.is_empty() => check_files(server, files),
        _ => Err(anyhow::anyhow!("usage: cases record FILE... | cases check ours|oracle|SERVER FILE...")),
    })
}

fn read(path: &str) -> Result<(String, CaseFile)> {
    let text = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
    let file = CaseFile::parse(&text).with_context(|| path.to_owned())?;
    if file.cases.is_empty() {
        bail!("{path} has no cases");
    }
    Ok((text, file))
}

fn record_files(files: &[&str]) -> Result<(usize, usize)> {
    let mut servers = Servers::default();
    for path in files {
        let (text, file) = read(path)?;
        let address = servers.for_file(&file, Program::parse(&file.oracle)?)?;
        let recorded = record(address, &text).with_context(|| (*path).to_owned())?;
        if recorded != text {
            std::fs::write(path, recorded)?;
            println!("{path}: written");
        }
    }
    Ok((files.len(), 0))
}

fn check_files(server: &str, files: &[&str]) -> Result<(usize, usize)> {
    let mut servers = Servers::default();
    let (mut passed, mut failed) = (0, 0);
    for path in files {
        let (_, file) = read(path)?;
        let program = Program::parse(if server == "oracle" { &file.oracle } else { server })?;
        let address = servers.for_file(&file, program)?;
        for case in &file.cases {
            for resp in [2, 3].into_iter().filter(|resp| case.speaks(*resp)) {
                let held = check_case(path, address, &file, case, resp);
                *(if held { &mut passed } else { &mut failed }) += 1;
            }
        }
    }
    println!("cases of {} files on {server}", files.len());
    Ok((passed, failed))
}

fn check_case(path: &str, address: SocketAddr, file: &CaseFile, case: &Case, resp: u8) -> bool {
    let complaint = match check(address, file, case, resp) {
        Ok(None) => return true,
        Ok(Some(difference)) => format!("line {}\n{}", difference.line, difference.text),
        Err(error) => format!("{error:#}"),
    };
    println!("{path}:{}: {} (RESP{resp}), {complaint}\n", case.line, case.title);
    false
}

/// One server of each kind serves all files that ask for nothing special; one that asks has its own.
#[derive(Default)]
struct Servers {
    shared: Vec<(Program, Server)>,
    special: Option<Server>,
}

impl Servers {
    fn for_file(&mut self, file: &CaseFile, program: Program) -> Result<SocketAddr> {
        if !file.options.is_empty() {
            let server = self.special.insert(start(&program, file)?);
            return Ok(server.address);
        }
        if let Some((_, server)) = self.shared.iter_mut().find(|(other, _)| *other == program) {
            if !server.is_alive() {
                bail!("{} is gone:\n{}", program.name(), server.log());
            }
            return Ok(server.address);
        }
        let server = start(&program, file)?;
        let address = server.address;
        self.shared.push((program, server));
        Ok(address)
    }
}

fn start(program: &Program, file: &CaseFile) -> Result<Server> {
    let mut options = vec!["--enable-debug-command", "yes", "--appendonly", "no"];
    options.extend(file.options.iter().map(String::as_str));
    Server::start(program, &options)
}

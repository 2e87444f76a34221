//! Turns the rows of `commands/*.toml` into the command table: enums, specs, dispatch macros and the lookup hash.
//!
//! It stops the build with the file, the command and the fault when a row makes no sense, so that nothing
//! behind it (arity errors, routing, `COMMAND DOCS`) has to doubt a row again.

#[path = "build/check.rs"]
mod check;
#[path = "src/command/fold.rs"]
mod fold;
#[path = "build/generate.rs"]
mod generate;
#[path = "build/lookup.rs"]
mod lookup;
#[path = "build/row.rs"]
mod row;
#[path = "build/table.rs"]
mod table;

use std::path::Path;

#[expect(clippy::disallowed_methods, reason = "a build script writes on the real disk")]
fn main() {
    println!("cargo::rerun-if-changed=commands");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/command/fold.rs");
    let written = read("commands").and_then(|rows| table::Table::new(&rows).map(|table| generate::generate(&table)));
    let commands = match written {
        Ok(commands) => commands,
        Err(fault) => {
            // One message a line: cargo shows no more of it.
            fault.lines().for_each(|line| println!("cargo::error={line}"));
            return;
        }
    };
    let target = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    std::fs::write(Path::new(&target).join("commands.rs"), commands).expect("OUT_DIR is writable");
}

/// Every row of every file, files in the order of their names, each row checked.
fn read(folder: &str) -> Result<Vec<row::Row>, String> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .map_err(|fault| format!("{folder}: {fault}"))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    paths.sort();
    let mut rows = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).map_err(|fault| format!("{name}: {fault}"))?;
        let file: row::File = toml::from_str(&text).map_err(|fault| format!("{name}: {fault}"))?;
        for row in file.into_rows() {
            check::check(&row).map_err(|fault| format!("{name}: {}: {fault}", row.name))?;
            rows.push(row);
        }
    }
    Ok(rows)
}

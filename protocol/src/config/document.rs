//! `docs/configuration.md`, made from the table; a test fails when the file in the repository says something else.

use super::row::{Kind, Mutability, Row, State};
use super::table::{DIRECTIVES, TABLE};

const HEAD: &str = "\
# Configuration

<!-- Made from protocol/src/config/table.rs by `UPDATE_DOCS=1 cargo test -p simurgh-protocol document`. -->

A value comes from, the later ones winning:

1. the default below;
2. the redis.conf named first on the command line, with the files that it includes, and lines from standard input
   when the last argument is `-`;
3. a variable of the environment: `SIMURGH_` and the name in capitals with underscores, as `SIMURGH_MAXMEMORY_POLICY`;
4. an option: `--maxmemory-policy allkeys-lru`, or `--maxmemory-policy=allkeys-lru`;
5. `CONFIG SET`, which `CONFIG REWRITE` makes last.

`simurgh --print-config` shows every value and where it came from. `simurgh check-config redis.conf` lists what would
stop the start (exit code 1) and what has no effect. Sizes take units: `1k` is 1000 bytes and `1kb` is 1024. An unknown
directive stops the start. Defaults are those of Redis 8.2, but for three: `appendonly` is `yes`, `dir` is `./data` and
`save` is empty.

A name marked with \u{2020} is set at the start only; one marked with \u{2021} can be changed by `CONFIG SET` as far as
`enable-protected-configs` permits.
";

/// The whole page.
fn document() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n## What works\n\n| directive | values | default | |\n| --- | --- | --- | --- |\n");
    for row in TABLE.iter().filter(|row| row.state == State::Works) {
        page.push_str(&format!(
            "| {} | {} | {} | {} |\n",
            name(row),
            values(row.kind),
            code(row.default),
            row.summary.trim()
        ));
    }
    page.push_str(
        "\n`include FILE` reads other files in its place; the last part of the path may have wildcards.\n\n\
         ## What is refused\n\nAnother value than the default stops the start, because to ignore it would break what it asks for.\n\n\
         | directive | default | why |\n| --- | --- | --- |\n",
    );
    for row in TABLE {
        if let State::Refused(reason) = row.state {
            page.push_str(&format!("| {} | {} | {reason} |\n", name(row), code(row.default)));
        }
    }
    for directive in DIRECTIVES {
        if let State::Refused(reason) = directive.state {
            page.push_str(&format!("| `{}` | | {reason} |\n", directive.name));
        }
    }
    page.push_str(
        "\n## What has no effect\n\nThe value is checked, kept, and given back by `CONFIG GET` and `CONFIG REWRITE`. \
         The server says so once at its start.\n\n| directive | default | why |\n| --- | --- | --- |\n",
    );
    for row in TABLE {
        if let State::NoMeaning(reason) = row.state {
            page.push_str(&format!("| {} | {} | {reason} |\n", name(row), code(row.default)));
        }
    }
    for directive in DIRECTIVES {
        if let State::NoMeaning(reason) = directive.state {
            page.push_str(&format!("| `{}` | | {reason} |\n", directive.name));
        }
    }
    page
}

fn name(row: &Row) -> String {
    let mark = match row.mutability {
        Mutability::Runtime => "",
        Mutability::StartOnly => " \u{2020}",
        Mutability::Protected => " \u{2021}",
    };
    let aliases: String = row.aliases.iter().map(|alias| format!(", `{alias}`")).collect();
    format!("`{}`{mark}{aliases}", row.name)
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

fn values(kind: Kind) -> String {
    match kind {
        Kind::Bool => "`yes`, `no`".to_owned(),
        Kind::Integer(bounds) => format!("{} to {}", bound(bounds.least), bound(bounds.largest)),
        Kind::Octal(largest) => format!("octal, to {largest:o}"),
        Kind::Memory(_) => "bytes".to_owned(),
        Kind::Share => "bytes or percent".to_owned(),
        Kind::Choice(names) | Kind::Flags(names) => {
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        }
        Kind::Text(_) => "text".to_owned(),
        Kind::Words(most) => format!("up to {most} words"),
        Kind::Master => "host and port".to_owned(),
        Kind::SavePoints => "pairs of seconds and changes".to_owned(),
        Kind::OutputLimits => "class, hard, soft, seconds".to_owned(),
        Kind::OomScores => "three numbers".to_owned(),
        Kind::Percentiles => "numbers".to_owned(),
    }
}

fn bound(number: i64) -> String {
    if number == i64::MAX { "2^63-1".to_owned() } else { number.to_string() }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test compares a file of the repository")]
fn the_document_says_what_the_table_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
    let wanted = document();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }
    let found = std::fs::read(path).unwrap_or_default();
    assert!(
        found == wanted.as_bytes(),
        "docs/configuration.md is not what the table says: run UPDATE_DOCS=1 cargo test -p simurgh-protocol document"
    );
}

//! `docs/compatibility.md`, made from the command table, the known differences and the Tcl exclusions, so that it cannot
//! say anything else than they do. `UPDATE_DOCS=1 cargo test -p simurgh-tests --test compatibility` writes it anew.

use simurgh_protocol::command::{CommandSpec, top_level};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const HOW_TO_UPDATE: &str = "UPDATE_DOCS=1 cargo test -p simurgh-tests --test compatibility";

fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn read(path: &str) -> String {
    let path = tests_folder().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A command or subcommand of Redis or Valkey, as `compatibility/commands.txt` marks it.
#[derive(Debug)]
struct Known {
    name: String,
    is_new: bool,
    only_redis: bool,
    only_valkey: bool,
}

impl Known {
    fn parse(word: &str) -> Self {
        Self {
            name: word.trim_end_matches(['*', '-', '+']).to_owned(),
            is_new: word.contains('*'),
            only_redis: word.ends_with('-'),
            only_valkey: word.ends_with('+'),
        }
    }

    /// Where it comes from, when that is not Redis 8.2 and Valkey 9.1 both.
    fn origin(&self) -> &'static str {
        match (self.is_new, self.only_redis, self.only_valkey) {
            (_, _, true) => "Valkey 9.1",
            (true, true, _) => "Redis 8.10",
            (true, false, _) => "Redis 8.10, Valkey 9.1",
            (false, true, _) => "Redis",
            (false, false, false) => "",
        }
    }
}

/// A group of commands, and the subcommands of those that have some.
#[derive(Debug, Default)]
struct Group {
    name: String,
    commands: Vec<Known>,
    subcommands: BTreeMap<String, Vec<Known>>,
}

fn groups(text: &str) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("== ") {
            groups.push(Group { name: name.to_owned(), ..Group::default() });
            continue;
        }
        let group = groups.last_mut().expect("a command stands in a group");
        match line.split_once(": ") {
            Some((container, words)) => {
                let known = group.subcommands.entry(container.to_owned()).or_default();
                known.extend(words.split(' ').map(Known::parse));
            }
            None => group.commands.extend(line.split(' ').map(Known::parse)),
        }
    }
    groups
}

fn built<'a>(specs: &[&'a CommandSpec], name: &str) -> Option<&'a CommandSpec> {
    let own_name = |spec: &CommandSpec| spec.name.rsplit('|').next().map(str::to_owned);
    specs.iter().copied().find(|spec| own_name(spec).is_some_and(|own| own.eq_ignore_ascii_case(name)))
}

/// `built`, `built but for X Y`, or `not built`.
fn state(known: &Known, group: &Group) -> String {
    let Some(spec) = built(top_level(), &known.name) else { return "not built".into() };
    let none = Vec::new();
    let subcommands = group.subcommands.get(&known.name).unwrap_or(&none);
    let missing: Vec<&str> = subcommands
        .iter()
        .filter(|subcommand| built(spec.subcommands, &subcommand.name).is_none())
        .map(|subcommand| subcommand.name.as_str())
        .collect();
    if missing.is_empty() { "**built**".into() } else { format!("**built**, without {}", missing.join(", ")) }
}

fn command_tables(out: &mut String, groups: &[Group]) {
    let count = |known: &&Known| built(top_level(), &known.name).is_some();
    let total: usize = groups.iter().map(|group| group.commands.len()).sum();
    let have: usize = groups.iter().map(|group| group.commands.iter().filter(count).count()).sum();
    let _ = write!(
        out,
        "## Commands\n\n{have} of the {total} commands in the cores of Redis 8.10 and Valkey 9.1 are built. The last column\nnames where a command comes from, if not from Redis 8.2 and Valkey 9.1 both.\n\n"
    );
    let (mut whole, mut absent) = (Vec::new(), Vec::new());
    for group in groups {
        if group.commands.iter().any(|known| count(&known)) { whole.push(group) } else { absent.push(group) }
    }
    for group in whole {
        let have = group.commands.iter().filter(count).count();
        let _ = write!(
            out,
            "### {} ({have} of {})\n\n| command | state | from |\n| --- | --- | --- |\n",
            group.name,
            group.commands.len()
        );
        for known in &group.commands {
            let _ = writeln!(out, "| {} | {} | {} |", known.name, state(known, group), known.origin());
        }
        out.push('\n');
    }
    out.push_str("### Groups of which nothing is built yet\n\n| group | commands |\n| --- | --- |\n");
    for group in absent {
        let names: Vec<&str> = group.commands.iter().map(|known| known.name.as_str()).collect();
        let _ = writeln!(out, "| {} | {} |", group.name, names.join(" "));
    }
    out.push('\n');
}

fn differences(out: &mut String, text: &str) {
    out.push_str("## Known differences\n\n");
    for paragraph in text.split("\n\n").map(str::trim).filter(|text| !text.is_empty() && !text.starts_with('#')) {
        let (what, why) = paragraph.split_once('\n').expect("a difference has a line for what and one for why");
        let why: Vec<&str> = why.lines().map(str::trim).collect();
        let _ = writeln!(out, "* **{what}.** {}", why.join(" "));
    }
    out.push('\n');
}

fn exclusions(out: &mut String, suite: &str, text: &str) {
    let (mut reasons, mut count): (Vec<(&str, Vec<&str>)>, usize) = (Vec::new(), 0);
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("== ") {
            Some(reason) => reasons.push((reason, Vec::new())),
            None => {
                reasons.last_mut().expect("an exclusion stands under its reason").1.push(line);
                count += 1;
            }
        }
    }
    let _ = write!(out, "### The suite of {suite}: {count} exclusions\n\n");
    for (reason, tests) in reasons {
        let _ = write!(out, "{}{}:\n\n", reason[..1].to_uppercase(), &reason[1..]);
        for test in tests {
            let _ = writeln!(out, "* `{}`", test.replace('`', "'"));
        }
        out.push('\n');
    }
}

/// Who runs unchanged: `tests/clients` and the cases of handshakes.
const CLIENTS: &str = "\
## Clients and tools

These run unchanged in the tests (`tests/clients`): redis-py 8.1 with its own suite, valkey-py, coredis, valkey-glide, Django's
cache, node-redis 6 and redis-rs with client-side caching, fred, ioredis 6, connect-redis, ruby-redis, redis-cli with `--bigkeys`, `--memkeys`, `--hotkeys`,
`--stat`, `--latency`, `--scan` and `--pipe`, redis-benchmark, and prometheus-redis-exporter, which gets every metric that it
gets from Valkey. What Jedis, Lettuce, StackExchange.Redis and go-redis send
when they connect is replayed byte for byte (`tests/cases/handshake-*.case`).

";

fn document() -> String {
    let mut out = format!(
        "# Compatibility\n\n<!-- Made from the command table and tests/compatibility/ by `{HOW_TO_UPDATE}`. -->\n\n\
         The contract is Redis 8.2.3: replies, errors and side effects are compared with it byte for byte, by the cases in\n\
         `tests/cases`, by generated streams of commands, and by its own Tcl suite. Commands that only Redis 8.10 or Valkey 9.1\n\
         has are compared with those. A command that is not built is unknown, and says so.\n\n"
    );
    command_tables(&mut out, &groups(&read("compatibility/commands.txt")));
    differences(&mut out, &read("compatibility/differences.txt"));
    out.push_str(CLIENTS);
    out.push_str(
        "## Tests of the Tcl suites that are left out\n\nBy name, each with its reason. Every other test of the files that `tests/tcl/run` lists passes.\n\n",
    );
    exclusions(&mut out, "Redis 8.2", &read("tcl/excluded-redis-8.2.txt"));
    exclusions(&mut out, "Valkey", &read("tcl/excluded-valkey.txt"));
    out.push_str("## Tests of redis-py that are left out\n\n`tests/clients/redis_py_suite` runs the others in RESP2, RESP3 and asyncio.\n\n");
    exclusions(&mut out, "redis-py 8.1.0", &read("clients/redis_py_excluded.txt"));
    format!("{}\n", out.trim_end())
}

#[test]
fn the_document_says_what_the_table_and_the_lists_say() {
    let path = tests_folder().join("../docs/compatibility.md");
    let document = document();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &document).expect("docs/ can be written to");
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == document, "docs/compatibility.md is not what it is made from: run {HOW_TO_UPDATE}");
}

#[test]
fn every_command_of_the_table_is_known_to_redis_or_valkey() {
    let groups = groups(&read("compatibility/commands.txt"));
    let unknown: Vec<&str> = top_level()
        .iter()
        .map(|spec| spec.name)
        .filter(|name| {
            !groups.iter().any(|group| group.commands.iter().any(|known| known.name.eq_ignore_ascii_case(name)))
        })
        .collect();
    assert!(unknown.is_empty(), "{unknown:?} are missing in tests/compatibility/commands.txt, or are no commands");
}

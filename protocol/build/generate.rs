//! Writes the Rust text of the command table: what the rows say, in the types of `src/command/spec.rs`.

use crate::lookup::lay_out;
use crate::row::{Argument, Key, Place, Row, Shards};
use crate::table::Table;
use std::fmt::Write;

const PLACES: [(Place, &str, &str); 3] = [
    (Place::Data, "DataCommand", "dispatch_data"),
    (Place::Connection, "ConnectionCommand", "dispatch_connection"),
    (Place::Server, "ServerCommand", "dispatch_server"),
];

/// The whole file.
pub fn generate(table: &Table<'_>) -> String {
    let mut out = String::new();
    for (place, name, macro_name) in PLACES {
        enumeration(&mut out, table, place, name);
        dispatch(&mut out, table, place, name, macro_name);
    }
    specs(&mut out, "SPECS", "Every command that can run, at its number.", table, &table.commands);
    specs(&mut out, "CONTAINERS", "Names that only hold subcommands.", table, &table.containers);
    let top: Vec<String> = table.top.iter().map(|name| format!("&{}", reference(table, name))).collect();
    list(&mut out, "pub static TOP", "&CommandSpec", "Commands and containers of one word, by name.", &top);
    names(&mut out, table);
    out
}

fn enumeration(out: &mut String, table: &Table<'_>, place: Place, name: &str) {
    let rows: Vec<&Row> = table.at(place).collect();
    let first = table.commands.iter().take_while(|row| row.place < Some(place)).count();
    writeln!(out, "/// The commands that run in this place; generated from the rows.").expect("String");
    writeln!(
        out,
        "#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]\n#[repr(u8)]\npub enum {name} {{"
    )
    .expect("String");
    for row in &rows {
        writeln!(out, "/// {}: {}\n{},", row.name, row.summary, row.variant()).expect("String");
    }
    writeln!(
        out,
        "}}\nimpl {name} {{\n/// All of them, in the order of their numbers.\npub const ALL: [Self; {}] = [",
        rows.len()
    )
    .expect("String");
    for row in &rows {
        writeln!(out, "Self::{},", row.variant()).expect("String");
    }
    writeln!(out, "];\n/// The number of the first, counted over all places.\nconst FIRST: usize = {first};\n}}")
        .expect("String");
}

/// A match without a wildcard arm: a row whose handler is missing stops the build of the floor that calls this.
fn dispatch(out: &mut String, table: &Table<'_>, place: Place, name: &str, macro_name: &str) {
    writeln!(
        out,
        "/// Calls the handler that the command's row names, found under the given path:\n\
         /// `{macro_name}!(command, crate, (context, arguments))`, with `.await` behind the arguments if handlers are async.\n\
         #[macro_export]\nmacro_rules! {macro_name} {{\n\
         ($command:expr, $($path:ident)::+, ($($argument:expr),* $(,)?) $(.$await:tt)?) => {{\nmatch $command {{"
    )
    .expect("String");
    for row in table.at(place) {
        let handler = row.handler.as_deref().expect("rows of a place have handlers");
        writeln!(
            out,
            "$crate::command::{name}::{} => $($path)::+::{handler}($($argument),*)$(.$await)?,",
            row.variant()
        )
        .expect("String");
    }
    writeln!(out, "}}\n}};\n}}").expect("String");
}

fn specs(out: &mut String, name: &str, about: &str, table: &Table<'_>, rows: &[&Row]) {
    let items: Vec<String> = rows.iter().map(|row| spec(table, row)).collect();
    list(out, &format!("pub static {name}"), "CommandSpec", about, &items);
}

fn list(out: &mut String, declaration: &str, kind: &str, about: &str, items: &[String]) {
    writeln!(out, "/// {about}\n{declaration}: [{kind}; {}] = [", items.len()).expect("String");
    for item in items {
        writeln!(out, "{item},").expect("String");
    }
    writeln!(out, "];").expect("String");
}

/// `SPECS[12]` or `CONTAINERS[3]`.
fn reference(table: &Table<'_>, name: &str) -> String {
    let number = |rows: &[&Row]| rows.iter().position(|row| row.name == name);
    match (number(&table.commands), number(&table.containers)) {
        (Some(number), _) => format!("SPECS[{number}]"),
        (None, Some(number)) => format!("CONTAINERS[{number}]"),
        (None, None) => unreachable!("every name has a row"),
    }
}

fn command(row: &Row) -> Option<String> {
    row.handler.as_ref()?;
    let (_, name, _) = PLACES.iter().find(|(place, ..)| Some(*place) == row.place)?;
    let place = name.strip_suffix("Command").expect("the enums are named so");
    Some(format!("Command::{place}({name}::{})", row.variant()))
}

fn spec(table: &Table<'_>, row: &Row) -> String {
    let subcommands = table.subcommands.get(row.name.as_str()).map_or(&[][..], |rows| rows);
    let subcommands: Vec<String> = subcommands.iter().map(|row| format!("&{}", reference(table, &row.name))).collect();
    let shards = match (row.place, row.shards) {
        (_, Some(Shards::Keys)) | (Some(Place::Data), None) => "Keys",
        (_, Some(Shards::All)) => "All",
        (_, Some(Shards::None)) | (_, None) => "None",
    };
    let (first, last, step) = row.key_range();
    format!(
        "CommandSpec {{ command: {}, name: {:?}, arity: {}, flags: {}, categories: {}, shards: Shards::{shards}, \
         key_range: KeyRange {{ first: {first}, last: {last}, step: {step} }}, keys: &[{}], tips: &{:?}, \
         subcommands: &[{}], docs: {} }}",
        command(row).map_or("None".to_string(), |command| format!("Some({command})")),
        row.full_name(),
        row.arity,
        bits(
            "CommandFlags",
            row.flags.iter().map(String::as_str).chain(row.has_movable_keys().then_some("movablekeys"))
        ),
        bits("Categories", row.categories().into_iter()),
        row.keys.iter().map(key).collect::<Vec<_>>().join(", "),
        row.tips,
        subcommands.join(", "),
        docs(row),
    )
}

fn bits<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!(".union({kind}::{})", name.to_uppercase())).collect();
    format!("{kind}::empty(){}", names.concat())
}

fn key(key: &Key) -> String {
    let begin = match (&key.keyword, key.index) {
        (Some(keyword), _) => {
            format!("BeginSearch::Keyword {{ keyword: {keyword:?}, from: {} }}", key.from.unwrap_or(1))
        }
        (None, Some(index)) => format!("BeginSearch::Index({index})"),
        (None, None) => "BeginSearch::Unknown".to_string(),
    };
    let find = match (key.count, key.first) {
        _ if key.unknown => "FindKeys::Unknown".to_string(),
        (Some(count), Some(first)) => {
            format!("FindKeys::Counted {{ count: {count}, first: {first}, step: {} }}", key.step)
        }
        _ => format!("FindKeys::Range {{ last: {}, step: {}, limit: {} }}", key.last, key.step, key.limit),
    };
    let flags = bits("KeyFlags", key.flags.iter().map(String::as_str));
    format!("KeySpec {{ begin: {begin}, find: {find}, flags: {flags}, notes: {:?} }}", key.notes)
}

fn docs(row: &Row) -> String {
    format!(
        "&CommandDocs {{ summary: {:?}, since: {:?}, group: {:?}, complexity: {:?}, history: &{:?}, \
         flags: &{:?}, deprecated_since: {:?}, replaced_by: {:?}, arguments: &[{}] }}",
        row.summary,
        row.since,
        row.group.as_deref().unwrap_or_default(),
        row.complexity,
        row.history,
        row.doc_flags,
        row.deprecated_since,
        row.replaced_by,
        row.arguments.iter().map(argument).collect::<Vec<_>>().join(", "),
    )
}

fn argument(part: &Argument) -> String {
    let key_spec = part.key_spec();
    format!(
        "Argument {{ name: {:?}, kind: {:?}, token: {:?}, key_spec: {key_spec:?}, display: {:?}, optional: {}, multiple: {}, \
         multiple_token: {}, summary: {:?}, since: {:?}, deprecated_since: {:?}, of: &[{}] }}",
        part.name().expect("checked"),
        part.kind(),
        part.token,
        part.display,
        part.optional,
        part.multiple,
        part.multiple_token,
        part.summary,
        part.since,
        part.deprecated_since,
        part.of.iter().map(argument).collect::<Vec<_>>().join(", "),
    )
}

/// The lookup table: names of one word under container 0, subcommands under the number of their container.
fn names(out: &mut String, table: &Table<'_>) {
    let containers: Vec<&str> = table.subcommands.keys().copied().collect();
    let mut names = Vec::new();
    for name in &table.top {
        let spec = reference(table, name);
        let code = match containers.iter().position(|container| container == name) {
            Some(number) => format!("Entry::Container({}, &{spec})", number + 1),
            None => {
                let row = table.commands.iter().find(|row| row.name == *name).expect("not a container");
                format!("Entry::Command({})", command(row).expect("it has a handler"))
            }
        };
        names.push((0, name.to_string(), code));
    }
    for (number, container) in containers.iter().enumerate() {
        for row in &table.subcommands[container] {
            let word = row.name.split(' ').nth(1).expect("a subcommand has two words");
            let container = u8::try_from(number + 1).expect("fewer than 255 containers");
            names.push((
                container,
                word.to_string(),
                format!("Entry::Command({})", command(row).expect("it has a handler")),
            ));
        }
    }
    let layout = lay_out(&names);
    writeln!(out, "const SEED: u64 = {:#x};", layout.seed).expect("String");
    let slots: Vec<String> = layout
        .slots
        .iter()
        .map(|slot| match slot {
            Some((name, code)) => format!("Slot {{ name: {name:?}, entry: {code} }}"),
            None => "Slot::EMPTY".to_string(),
        })
        .collect();
    list(out, "static SLOTS", "Slot", "Where a folded name stands.", &slots);
}

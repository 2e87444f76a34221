//! The house rules that a machine can keep: floors, purity, names, headers, and how long files and functions are.
//!
//! Each rule is one test, and its message says what to do. The limits only tighten; a table that has to be long is
//! listed in [`LONG_TABLES`] with its reason.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Each crate, where it lives, and which of ours it may use. The order is that of the floors, from the ground up.
const FLOORS: &[(&str, &str, &[&str])] = &[
    ("simurgh-protocol", "protocol", &[]),
    ("simurgh-storage", "storage", &["simurgh-protocol"]),
    ("simurgh-cluster", "cluster", &["simurgh-protocol"]),
    ("simurgh-kernel", "actors/kernel", &["simurgh-protocol"]),
    ("simurgh-scripting", "actors/scripting", &["simurgh-protocol"]),
    (
        "simurgh-system",
        "actors/system",
        &["simurgh-protocol", "simurgh-storage", "simurgh-cluster", "simurgh-kernel", "simurgh-scripting"],
    ),
    (
        "simurgh",
        "actors/server",
        &[
            "simurgh-protocol",
            "simurgh-storage",
            "simurgh-cluster",
            "simurgh-kernel",
            "simurgh-scripting",
            "simurgh-system",
        ],
    ),
    (
        "simurgh-sim",
        "sim",
        &[
            "simurgh-protocol",
            "simurgh-storage",
            "simurgh-cluster",
            "simurgh-kernel",
            "simurgh-scripting",
            "simurgh-system",
            "simurgh",
        ],
    ),
    // The product from outside; cases run against the keyspace itself too.
    ("simurgh-tests", "tests", &["simurgh-protocol", "simurgh-storage"]),
];

/// Floors that are pure: time, random numbers and bytes come in as arguments.
const PURE: &[&str] = &["protocol", "storage", "cluster", "actors/scripting"];

/// What only the kernel names, and who else may: the simulator is what madsim is for.
const SEAM: &[(&str, &[&str])] = &[
    ("tokio", &["actors/kernel"]),
    ("io_uring", &["actors/kernel"]),
    ("madsim", &["actors/kernel", "sim"]),
    ("ractor", &["actors/kernel", "actors/system"]),
];

/// Parts of `std` that reach the world.
const WORLD: &[&str] = &["fs", "time", "net", "thread", "process", "env"];

/// Names that say nothing: a file has one subject and is named for it.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "helpers", "helper", "misc", "v2", "new", "stuff"];

/// The longest file, in lines.
const FILE_LINES_MAX: usize = 500;

/// Files that are tables and may be longer, with the reason.
const LONG_TABLES: &[(&str, &str)] = &[("protocol/src/config/table.rs", "one row for each configuration key")];

/// The functions of admired Rust (STYLE): median, ninth decile, and the share that may be longer than [`LONG_FUNCTION`].
const FUNCTION_LINES_MEDIAN_MAX: usize = 8;
const FUNCTION_LINES_P90_MAX: usize = 30;
const LONG_FUNCTION: usize = 70;
const LONG_FUNCTIONS_PER_MILLE_MAX: usize = 15;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every Rust file of the repository, by its path from the top.
fn sources() -> Vec<(String, String)> {
    let mut files = Vec::new();
    let roots = FLOORS.iter().map(|(_, folder, _)| *folder).chain(["fuzz"]);
    roots.for_each(|root| collect(&repository().join(root), &mut files));
    assert!(files.len() > FLOORS.len(), "only {} files were found", files.len());
    files.sort();
    files
}

fn collect(folder: &Path, files: &mut Vec<(String, String)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(repository()).unwrap().to_string_lossy().into_owned();
            files.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

fn parse(name: &str, text: &str) -> syn::File {
    syn::parse_file(text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn complain(what: &str, complaints: &[String]) {
    assert!(complaints.is_empty(), "{what}:\n  {}", complaints.join("\n  "));
}

#[test]
fn dependencies_only_go_down() {
    let mut complaints = Vec::new();
    for (name, folder, allowed) in FLOORS {
        let text = std::fs::read_to_string(repository().join(folder).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        assert_eq!(manifest["package"]["name"].as_str(), Some(*name));
        for dependency in dependencies(&manifest) {
            let ours = FLOORS.iter().any(|(other, ..)| *other == dependency);
            if ours && dependency != *name && !allowed.contains(&dependency.as_str()) {
                complaints.push(format!("{name} uses {dependency}"));
            }
        }
    }
    complain("a floor names one that is not below it", &complaints);
}

/// Dependencies of every kind, for every target.
fn dependencies(table: &toml::Table) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in table {
        let Some(inner) = value.as_table() else { continue };
        match key.as_str() {
            "dependencies" | "dev-dependencies" | "build-dependencies" => found.extend(inner.keys().cloned()),
            "target" => inner.values().for_each(|target| found.extend(dependencies(target.as_table().unwrap()))),
            _ => {}
        }
    }
    found
}

#[test]
fn pure_floors_reach_no_world() {
    let mut complaints = Vec::new();
    for (name, text) in sources() {
        if !PURE.iter().any(|floor| name.starts_with(&format!("{floor}/src/"))) {
            continue;
        }
        let words = words(product_tokens(&name, &text));
        for asynchronous in ["async", "await"] {
            if words.iter().any(|word| word == asynchronous) {
                complaints.push(format!("{name}: {asynchronous}"));
            }
        }
        for (at, word) in words.iter().enumerate() {
            if word == "std" {
                complaints.extend(world_after(&words[at + 1..]).map(|part| format!("{name}: std::{part}")));
            }
        }
    }
    complain("protocol, storage and cluster are pure; hand it in as an argument", &complaints);
}

/// What follows `std` in `std::fs` or `std::{collections::X, fs}`, when it is one of [`WORLD`].
fn world_after(words: &[String]) -> Option<&'static str> {
    let rest = words.strip_prefix(&[":".to_owned(), ":".to_owned()][..])?;
    let is_world = |word: &String| WORLD.iter().copied().find(|part| word == part);
    if rest.first()? != "{" {
        return is_world(&rest[0]);
    }
    let mut depth = 0;
    for (at, word) in rest.iter().enumerate() {
        match word.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ if depth == 1 && matches!(rest[at - 1].as_str(), "{" | ",") => {
                if let Some(part) = is_world(word) {
                    return Some(part);
                }
            }
            _ => {}
        }
        if depth == 0 {
            return None;
        }
    }
    None
}

#[test]
fn only_the_kernel_names_the_runtime() {
    let mut complaints = Vec::new();
    for (name, text) in sources() {
        if name.starts_with("tests/") || name.ends_with("build.rs") {
            continue;
        }
        let words = words(product_tokens(&name, &text));
        for (runtime, allowed) in SEAM {
            let may = allowed.iter().any(|folder| name.starts_with(&format!("{folder}/")));
            if !may && words.iter().any(|word| word == runtime) {
                complaints.push(format!("{name}: {runtime}"));
            }
        }
    }
    complain("above the seam nothing knows which runtime it runs on; go through simurgh_kernel", &complaints);
}

/// A file's tokens without what only its tests see.
fn product_tokens(name: &str, text: &str) -> TokenStream {
    let mut file = parse(name, text);
    file.items.retain(|item| !is_test(attributes(item)));
    file.items.into_iter().map(ToTokens::into_token_stream).collect()
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        _ => &[],
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.meta.to_token_stream().to_string();
        text == "test" || text.replace(' ', "").starts_with("cfg(test") || text.replace(' ', "").contains("(all(test")
    })
}

/// Identifiers and punctuation in order, with groups as their braces.
fn words(tokens: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => found.push(ident.to_string()),
            TokenTree::Punct(punct) => found.push(punct.as_char().to_string()),
            TokenTree::Group(group) => {
                found.push("{".into());
                found.extend(words(group.stream()));
                found.push("}".into());
            }
            TokenTree::Literal(_) => found.push("literal".into()),
        }
    }
    found
}

#[test]
fn files_are_named_for_their_subject() {
    let complaints: Vec<String> = sources()
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| name.split(['/', '.']).any(|part| EMPTY_NAMES.contains(&part)))
        .collect();
    complain("a name that says nothing", &complaints);
}

#[test]
fn every_file_says_what_it_is() {
    let complaints: Vec<String> = sources()
        .into_iter()
        .filter(|(_, text)| !text.lines().next().is_some_and(|line| line.starts_with("//! ") && line.len() > 20))
        .map(|(name, _)| name)
        .collect();
    complain("a file opens with `//!` and what it is", &complaints);
}

#[test]
fn files_stay_short() {
    let complaints: Vec<String> = sources()
        .into_iter()
        .map(|(name, text)| (text.lines().count(), name))
        .filter(|(lines, name)| *lines > FILE_LINES_MAX && !LONG_TABLES.iter().any(|(table, _)| table == name))
        .map(|(lines, name)| format!("{name}: {lines} lines"))
        .collect();
    complain(&format!("a file of more than {FILE_LINES_MAX} lines has more than one subject"), &complaints);
}

#[test]
fn long_tables_are_still_there() {
    for (table, reason) in LONG_TABLES {
        assert!(repository().join(table).exists(), "{table} ({reason}) is gone: take it off the list");
    }
}

#[test]
fn functions_stay_short() {
    let mut functions = Functions::default();
    for (name, text) in sources() {
        if name.starts_with("tests/tests/") {
            continue;
        }
        functions.file = name.clone();
        functions.visit_file(&parse(&name, &text));
    }
    let mut lengths: Vec<usize> = functions.lengths.values().copied().collect();
    lengths.sort_unstable();
    let count = lengths.len();
    let (median, p90) = (lengths[count / 2], lengths[count * 9 / 10]);
    let long: Vec<String> = functions
        .lengths
        .iter()
        .filter(|(_, lines)| **lines > LONG_FUNCTION)
        .map(|(name, lines)| format!("{name}: {lines} lines"))
        .collect();
    println!("{count} functions: median {median} lines, p90 {p90}, {} over {LONG_FUNCTION}", long.len());
    assert!(median <= FUNCTION_LINES_MEDIAN_MAX, "the median function has {median} lines");
    assert!(p90 <= FUNCTION_LINES_P90_MAX, "the ninth decile of functions is {p90} lines");
    let allowed = count * LONG_FUNCTIONS_PER_MILLE_MAX / 1000;
    assert!(long.len() <= allowed, "more than {allowed} of {count} functions are long:\n  {}", long.join("\n  "));
}

/// The lines of every function outside tests, by where it begins.
#[derive(Default)]
struct Functions {
    file: String,
    lengths: BTreeMap<String, usize>,
}

impl Functions {
    fn note(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let (from, to) = (signature.span().start().line, block.span().end().line);
        self.lengths.insert(format!("{}:{from} {}", self.file, signature.ident), to - from + 1);
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            self.note(&item.sig, &item.block);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.note(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[test]
fn the_rules_see_what_they_forbid() {
    let seen = |text: &str| {
        let words = words(product_tokens("example", text));
        words.iter().enumerate().find_map(|(at, word)| (word == "std").then(|| world_after(&words[at + 1..])).flatten())
    };
    assert_eq!(seen("fn f() { std::fs::read(\"a\"); }"), Some("fs"));
    assert_eq!(seen("use std::{collections::BTreeMap, time::Instant};"), Some("time"));
    assert_eq!(seen("use std::{fmt::{self, Display}, str};"), None);
    assert_eq!(seen("#[cfg(test)] mod tests { use std::fs; }"), None);
    assert_eq!(seen("use std::collections::BTreeMap;"), None);
}

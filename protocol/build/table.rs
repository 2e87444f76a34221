//! The rows as one table: commands numbered, subcommands under their containers, the fields that follow from others.

use crate::check::has;
use crate::row::{Key, Place, Row};
use std::collections::BTreeMap;

/// All rows, in the order of their numbers.
pub struct Table<'a> {
    /// Rows that can run: first the data commands, then connection, then server; by name within a place.
    pub commands: Vec<&'a Row>,
    /// Rows that only hold subcommands.
    pub containers: Vec<&'a Row>,
    /// Names of the rows of one word, sorted.
    pub top: Vec<&'a str>,
    /// Subcommands by the name of their container.
    pub subcommands: BTreeMap<&'a str, Vec<&'a Row>>,
}

impl<'a> Table<'a> {
    /// Numbers the rows; a fault is a doubled name, a subcommand without container or a container without subcommands.
    pub fn new(rows: &'a [Row]) -> Result<Self, String> {
        let mut by_name = BTreeMap::new();
        let mut subcommands: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in rows {
            if by_name.insert(row.name.as_str(), row).is_some() {
                return Err(format!("{}: there are two rows of this name", row.name));
            }
            if let Some((container, _)) = row.name.split_once(' ') {
                subcommands.entry(container).or_default().push(row);
            }
        }
        for (container, rows) in &mut subcommands {
            if !by_name.contains_key(container) {
                return Err(format!("{}: its container {container} has no row", rows[0].name));
            }
            rows.sort_by_key(|row| &row.name);
        }
        if let Some(row) = rows.iter().find(|row| row.handler.is_none() && !subcommands.contains_key(row.name.as_str()))
        {
            return Err(format!("{}: a row without a handler needs subcommands", row.name));
        }
        let top = by_name.keys().copied().filter(|name| !name.contains(' ')).collect();
        let mut commands: Vec<&Row> = rows.iter().filter(|row| row.handler.is_some()).collect();
        commands.sort_by_key(|row| (row.place, &row.name));
        let containers = by_name.values().copied().filter(|row| row.handler.is_none()).collect();
        Ok(Table { commands, containers, top, subcommands })
    }

    /// The commands of one place.
    pub fn at(&self, place: Place) -> impl Iterator<Item = &'a Row> + '_ {
        self.commands.iter().copied().filter(move |row| row.place == Some(place))
    }
}

impl Row {
    /// `ClientNoEvict` for `CLIENT NO-EVICT`: the variant in the enum of its place.
    pub fn variant(&self) -> String {
        let capital = |word: &str| {
            let (first, rest) = word.split_at(1);
            format!("{first}{}", rest.to_lowercase())
        };
        self.name.split([' ', '-', '_', '.']).filter(|word| !word.is_empty()).map(capital).collect()
    }

    /// `client|list` for `CLIENT LIST`: as replies and error texts write it.
    pub fn full_name(&self) -> String {
        self.name.to_lowercase().replace(' ', "|")
    }

    /// The ACL categories, those that flags imply among them.
    pub fn categories(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.acl.iter().map(String::as_str).collect();
        // What scripts do is up to them, so their commands read and write nothing themselves.
        let scripting = has(&self.acl, "scripting");
        let implied = [
            ("write", "write"),
            ("readonly", "read"),
            ("admin", "admin"),
            ("admin", "dangerous"),
            ("pubsub", "pubsub"),
            ("blocking", "blocking"),
            ("fast", "fast"),
        ];
        let implies = |flag| has(&self.flags, flag) && !(scripting && ["write", "readonly"].contains(&flag));
        all.extend(implied.iter().filter(|(flag, _)| implies(flag)).map(|(_, category)| *category));
        if !has(&self.flags, "fast") {
            all.push("slow");
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The keys as first, last and step. Where only the specs tell all of them, these are the ones that stand at the
    /// beginning: of `SORT` the key that is sorted.
    pub fn key_range(&self) -> (i32, i32, i32) {
        if let [key] = &self.keys[..] {
            return key.range().map_or((0, 0, 0), |(first, last)| (first, last, key.step));
        }
        let plain = self.keys.iter().filter(|key| key.step == 1).filter_map(Key::range);
        plain.fold((0, 0, 0), |range, (first, last)| match range {
            (0, ..) => (first, last, 1),
            (begin, end, _) if end >= 0 && end + 1 == first => (begin, last, 1),
            _ => range,
        })
    }

    /// Whether the range leaves keys out.
    pub fn has_movable_keys(&self) -> bool {
        let plain = |key: &Key| key.range().is_some() && !has(&key.flags, "incomplete");
        let (_, last, _) = self.key_range();
        let ends = self.keys.last().and_then(Key::range);
        !self.keys.iter().all(plain) || ends.is_some_and(|(_, end)| end != last)
    }
}

impl Key {
    /// First and last word, if it is a range from an index.
    fn range(&self) -> Option<(i32, i32)> {
        let first = self.index.filter(|_| self.count.is_none() && self.limit == 0)?;
        Some((first, if self.last < 0 { self.last } else { first + self.last }))
    }
}

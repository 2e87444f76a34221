//! A script's text and what its first line says: `#!lua flags=no-writes,allow-oom`.

/// What the first line allows and promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptFlags {
    /// There is such a line, so that the rules for scripts with flags hold.
    pub are_given: bool,
    /// It changes no data.
    pub no_writes: bool,
    /// It may run when memory is full.
    pub allow_oom: bool,
    /// It may run on a replica without its primary.
    pub allow_stale: bool,
    /// It is not for clusters.
    pub no_cluster: bool,
    /// Its keys may be of several slots.
    pub allow_cross_slot_keys: bool,
}

impl ScriptFlags {
    /// What the first line of a script says.
    ///
    /// # Errors
    /// [`ShebangError`].
    pub fn of(source: &[u8]) -> Result<Self, ShebangError> {
        read_first_line(source).map(|(flags, _)| flags)
    }

    /// Adds a flag by its name; whether there is such a flag.
    pub fn set(&mut self, name: &str) -> bool {
        let flag = match name {
            "no-writes" => &mut self.no_writes,
            "allow-oom" => &mut self.allow_oom,
            "allow-stale" => &mut self.allow_stale,
            "no-cluster" => &mut self.no_cluster,
            "allow-cross-slot-keys" => &mut self.allow_cross_slot_keys,
            _ => return false,
        };
        *flag = true;
        true
    }

    /// The names of those that are set, in the order in which Redis tells them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.no_writes, "no-writes"),
            (self.allow_oom, "allow-oom"),
            (self.allow_stale, "allow-stale"),
            (self.no_cluster, "no-cluster"),
            (self.allow_cross_slot_keys, "allow-cross-slot-keys"),
        ];
        all.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name)
    }
}

/// A first line that cannot be obeyed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant is its text")]
pub enum ShebangError {
    #[error("ERR Invalid script shebang")]
    Unfinished,
    #[error("ERR Unexpected engine in script shebang: {0}")]
    Engine(String),
    #[error("ERR Unknown lua shebang option: {0}")]
    Option(String),
    #[error("ERR Unexpected flag in script shebang: {0}")]
    Flag(String),
}

/// A script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The text as it was sent.
    pub source: Box<[u8]>,
    /// What its first line says.
    pub flags: ScriptFlags,
    body: usize,
}

impl Script {
    /// Reads the first line of `source`.
    ///
    /// # Errors
    /// [`ShebangError`].
    pub fn new(source: &[u8]) -> Result<Self, ShebangError> {
        let (flags, body) = read_first_line(source)?;
        Ok(Self { source: source.into(), flags, body })
    }

    /// What the language reads: all behind the first line, whose end stays so that lines keep their numbers.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.source[self.body..]
    }
}

/// What the first line of a script says, and where the line ends.
fn read_first_line(source: &[u8]) -> Result<(ScriptFlags, usize), ShebangError> {
    if !source.starts_with(b"#!") {
        return Ok((ScriptFlags::default(), 0));
    }
    let end = source.iter().position(|byte| *byte == b'\n').ok_or(ShebangError::Unfinished)?;
    Ok((parse_line(&String::from_utf8_lossy(&source[..end]))?, end))
}

fn parse_line(line: &str) -> Result<ScriptFlags, ShebangError> {
    let mut flags = ScriptFlags { are_given: true, ..ScriptFlags::default() };
    let mut words = line.split_ascii_whitespace();
    let engine = words.next().unwrap_or_default();
    if engine != "#!lua" {
        return Err(ShebangError::Engine(engine.into()));
    }
    for word in words {
        let Some(names) = word.strip_prefix("flags=") else { return Err(ShebangError::Option(word.into())) };
        for name in names.split(',').filter(|name| !name.is_empty()) {
            if !flags.set(name) {
                return Err(ShebangError::Flag(name.into()));
            }
        }
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_read_and_its_end_stays() {
        let script = Script::new(b"#!lua flags=no-writes,allow-oom\nreturn 1").expect("a script");
        let flags = ScriptFlags { are_given: true, no_writes: true, allow_oom: true, ..ScriptFlags::default() };
        assert_eq!((script.body(), script.flags), (&b"\nreturn 1"[..], flags));
        let plain = Script::new(b"return 1").expect("a script");
        assert_eq!((plain.body(), plain.flags), (&b"return 1"[..], ScriptFlags::default()));
    }

    #[test]
    fn faults_are_as_redis_words_them() {
        for (source, text) in [
            ("#!lua", "ERR Invalid script shebang"),
            ("#!lux\n", "ERR Unexpected engine in script shebang: #!lux"),
            ("#!lua name=x\n", "ERR Unknown lua shebang option: name=x"),
            ("#!lua flags=nosuch\n", "ERR Unexpected flag in script shebang: nosuch"),
        ] {
            assert_eq!(Script::new(source.as_bytes()).map_err(|error| error.to_string()), Err(text.into()));
        }
    }
}

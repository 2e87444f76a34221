//! The value of one key: read from words by its kind, and written back as `CONFIG GET` and redis.conf show it.

use super::memory::{MemoryError, format_memory, parse_memory};
use super::row::{Bounds, Kind, TextRule};
use crate::number::parse_i64;
use crate::quoted::{quote, split_quoted};

/// The value of a key, in the shape that its [`Kind`] names.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `yes` or `no`.
    Bool(bool),
    /// A number, a number of bytes or a file mode.
    Integer(i64),
    /// A number of bytes or a percentage.
    Share(Share),
    /// The position among the names of the kind.
    Choice(usize),
    /// A bit for each name of the kind.
    Flags(u32),
    /// A text.
    Text(Vec<u8>),
    /// Words.
    Words(Vec<Vec<u8>>),
    /// When a snapshot is due.
    SavePoints(Vec<SavePoint>),
    /// Output limits by client class.
    OutputLimits(OutputLimits),
    /// Scores for the kernel's out-of-memory killer.
    OomScores([i64; 3]),
    /// Percentiles.
    Percentiles(Vec<f64>),
}

/// A number of bytes, or a percentage of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// So many bytes; 0 means no limit.
    Bytes(u64),
    /// So many percent of `maxmemory`, from 1 to 100.
    Percent(u8),
}

/// A snapshot is due after `seconds` when at least `changes` keys changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavePoint {
    /// Seconds since the last snapshot.
    pub seconds: i64,
    /// Changes since the last snapshot.
    pub changes: i64,
}

/// How much may wait in the output of a client before it is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimit {
    /// Cut at once above this many bytes; 0 means never.
    pub hard_bytes: u64,
    /// Cut when above this many bytes for `soft_seconds`; 0 means never.
    pub soft_bytes: u64,
    /// How long the soft limit may be exceeded.
    pub soft_seconds: u64,
}

/// The output limit of each class of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// Ordinary clients.
    pub normal: OutputLimit,
    /// Replicas.
    pub replica: OutputLimit,
    /// Clients with subscriptions.
    pub pubsub: OutputLimit,
}

/// Why a value was not accepted; the text is the client's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each text says what the variant means")]
pub enum ValueError {
    #[error("wrong number of arguments")]
    WordCount,
    #[error("argument must be 'yes' or 'no'")]
    NotYesOrNo,
    #[error("argument couldn't be parsed into an integer")]
    NotAnInteger,
    #[error("argument couldn't be parsed as an octal number")]
    NotOctal,
    #[error("argument must be a memory value")]
    NotMemory,
    #[error("argument must be a memory or percent value")]
    NotMemoryOrPercent,
    #[error("percentage argument must be less or equal to 100")]
    PercentTooLarge,
    #[error("argument must be greater or equal to 0")]
    Negative,
    #[error("argument must be between {0} and {1} inclusive")]
    OutOfBounds(i64, i64),
    #[error("argument must be between 0 and {0:o} inclusive")]
    OctalOutOfBounds(i64),
    #[error("argument(s) must be one of the following: {}", .0.join(", "))]
    NotOneOf(&'static [&'static str]),
    #[error("{0}")]
    Other(&'static str),
    #[error("{name} can't be empty")]
    EmptyName { name: &'static str },
    #[error("{name} can't be a path, just a {noun}")]
    PathNotName { name: &'static str, noun: &'static str },
    #[error("{0}")]
    Refused(&'static str),
}

const INVALID_SAVE: ValueError = ValueError::Other("Invalid save parameters");

/// Reads `words` as a value of `kind`. `current` is the value until now: output limits name only the classes they change.
pub(super) fn parse(
    name: &'static str,
    kind: Kind,
    words: &[Vec<u8>],
    current: Option<&Value>,
) -> Result<Value, ValueError> {
    if kind.takes_words() {
        return parse_words(kind, words, current);
    }
    let [word] = words else { return Err(ValueError::WordCount) };
    match kind {
        Kind::Bool => parse_bool(word),
        Kind::Integer(bounds) => parse_integer(word, bounds),
        Kind::Octal(largest) => parse_octal(word, largest),
        Kind::Memory(bounds) => parse_bytes(word, bounds).map(Value::Integer),
        Kind::Share => parse_share(word).map(Value::Share),
        Kind::Choice(names) => position(names, word).map(Value::Choice).ok_or(ValueError::NotOneOf(names)),
        Kind::Text(TextRule::EventClasses) => {
            super::events::canonical(word).map(Value::Text).ok_or(ValueError::Other(UNKNOWN_EVENT_CLASS))
        }
        Kind::Text(rule) => check_text(name, rule, word).map(|()| Value::Text(word.clone())),
        Kind::Flags(_)
        | Kind::Words(_)
        | Kind::Master
        | Kind::SavePoints
        | Kind::OutputLimits
        | Kind::OomScores
        | Kind::Percentiles => Err(ValueError::WordCount),
    }
}

/// The words of a value that takes several and was given as one: `CONFIG SET save "60 1"`, `save "60 1"` in a file.
pub(super) fn split_single(words: &[Vec<u8>]) -> Vec<Vec<u8>> {
    match words {
        [only] => split_quoted(only).unwrap_or_else(|_| words.to_vec()),
        _ => words.to_vec(),
    }
}

fn parse_words(kind: Kind, words: &[Vec<u8>], current: Option<&Value>) -> Result<Value, ValueError> {
    match kind {
        Kind::Flags(names) => parse_flags(words, names),
        Kind::Words(most) if words.len() > most => Err(ValueError::Other("Too many bind addresses specified.")),
        Kind::Words(_) => parse_addresses(words),
        Kind::Master => parse_master(words),
        Kind::SavePoints => parse_save_points(words),
        Kind::OutputLimits => parse_output_limits(words, current),
        Kind::OomScores => parse_oom_scores(words),
        Kind::Percentiles => parse_percentiles(words),
        Kind::Bool
        | Kind::Integer(_)
        | Kind::Octal(_)
        | Kind::Memory(_)
        | Kind::Share
        | Kind::Choice(_)
        | Kind::Text(_) => Err(ValueError::WordCount),
    }
}

fn parse_bool(word: &[u8]) -> Result<Value, ValueError> {
    if word.eq_ignore_ascii_case(b"yes") {
        Ok(Value::Bool(true))
    } else if word.eq_ignore_ascii_case(b"no") {
        Ok(Value::Bool(false))
    } else {
        Err(ValueError::NotYesOrNo)
    }
}

fn parse_integer(word: &[u8], bounds: Bounds) -> Result<Value, ValueError> {
    let number = parse_i64(word).ok_or(ValueError::NotAnInteger)?;
    within(number, bounds).map(Value::Integer)
}

fn within(number: i64, bounds: Bounds) -> Result<i64, ValueError> {
    if bounds.unsigned && number < 0 {
        return Err(ValueError::Negative);
    }
    if number < bounds.least || number > bounds.largest {
        return Err(ValueError::OutOfBounds(bounds.least, bounds.largest));
    }
    Ok(bounds.clamp.map_or(number, |(least, largest)| number.clamp(least, largest)))
}

fn parse_octal(word: &[u8], largest: i64) -> Result<Value, ValueError> {
    if word.is_empty() || !word.iter().all(|digit| (b'0'..=b'7').contains(digit)) {
        return Err(ValueError::NotOctal);
    }
    let text = std::str::from_utf8(word).map_err(|_| ValueError::NotOctal)?;
    match i64::from_str_radix(text, 8) {
        Ok(mode) if mode <= largest => Ok(Value::Integer(mode)),
        Ok(_) | Err(_) => Err(ValueError::OctalOutOfBounds(largest)),
    }
}

fn parse_bytes(word: &[u8], bounds: Bounds) -> Result<i64, ValueError> {
    match parse_memory(word) {
        Ok(bytes) => within(bytes, bounds),
        Err(MemoryError::Malformed) => Err(ValueError::NotMemory),
        Err(MemoryError::TooLarge) if bounds.unsigned => Err(ValueError::Negative),
        Err(MemoryError::TooLarge) => Err(ValueError::OutOfBounds(bounds.least, bounds.largest)),
    }
}

fn parse_share(word: &[u8]) -> Result<Share, ValueError> {
    if let Some(number) = word.strip_suffix(b"%") {
        let percent = parse_i64(number).filter(|&percent| percent >= 0).ok_or(ValueError::NotMemoryOrPercent)?;
        return match u8::try_from(percent) {
            Ok(0) => Ok(Share::Bytes(0)),
            Ok(percent @ 1..=100) => Ok(Share::Percent(percent)),
            Ok(_) | Err(_) => Err(ValueError::PercentTooLarge),
        };
    }
    let bytes = parse_memory(word).map_err(|_| ValueError::NotMemoryOrPercent)?;
    Ok(Share::Bytes(bytes.unsigned_abs()))
}

fn position(names: &[&str], word: &[u8]) -> Option<usize> {
    names.iter().position(|name| name.as_bytes().eq_ignore_ascii_case(word))
}

/// Redis's words, though there are more letters since.
const UNKNOWN_EVENT_CLASS: &str = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";

fn check_text(name: &'static str, rule: TextRule, word: &[u8]) -> Result<(), ValueError> {
    match rule {
        TextRule::Any | TextRule::EventClasses => Ok(()),
        TextRule::FileName => check_name(name, "filename", word),
        TextRule::FolderName => check_name(name, "dirname", word),
        TextRule::HostName if word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(byte)) => Ok(()),
        TextRule::HostName => {
            Err(ValueError::Other("Hostnames may only contain alphanumeric characters, hyphens or dots"))
        }
    }
}

fn check_name(name: &'static str, noun: &'static str, word: &[u8]) -> Result<(), ValueError> {
    if word.is_empty() {
        Err(ValueError::EmptyName { name })
    } else if word.contains(&b'/') {
        Err(ValueError::PathNotName { name, noun })
    } else {
        Ok(())
    }
}

fn parse_flags(words: &[Vec<u8>], names: &'static [&'static str]) -> Result<Value, ValueError> {
    let mut flags = 0_u32;
    if words.is_empty() {
        return Err(ValueError::NotOneOf(names));
    }
    for word in words {
        // The first name stands for no flag at all.
        let bit = position(names, word).ok_or(ValueError::NotOneOf(names))?;
        flags |= (1 << bit) >> 1;
    }
    let has = |name: &str| position(names, name.as_bytes()).is_some_and(|bit| flags & ((1 << bit) >> 1) != 0);
    if has("save") && has("nosave") {
        return Err(ValueError::Other("shutdown options SAVE and NOSAVE can't be used simultaneously"));
    }
    Ok(Value::Flags(flags))
}

/// No address has blanks or quotes, so a list of them never needs quoting.
fn parse_addresses(words: &[Vec<u8>]) -> Result<Value, ValueError> {
    let odd = |byte: &u8| !byte.is_ascii_graphic() || b"\"'\\#".contains(byte);
    if words.iter().flatten().any(odd) {
        return Err(ValueError::Other("Failed to bind to specified addresses."));
    }
    Ok(Value::Words(words.iter().filter(|word| !word.is_empty()).cloned().collect()))
}

fn parse_master(words: &[Vec<u8>]) -> Result<Value, ValueError> {
    let [host, port] = words else { return Err(ValueError::WordCount) };
    if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") {
        return Ok(Value::Words(Vec::new()));
    }
    match parse_i64(port) {
        Some(0..=65535) => Ok(Value::Words(words.to_vec())),
        Some(_) | None => Err(ValueError::Other("Invalid master port")),
    }
}

fn parse_save_points(words: &[Vec<u8>]) -> Result<Value, ValueError> {
    let pairs = words.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(INVALID_SAVE);
    }
    let points = pairs.map(|pair| {
        let seconds = parse_i64(&pair[0]).filter(|&seconds| seconds >= 1)?;
        let changes = parse_i64(&pair[1]).filter(|&changes| changes >= 0)?;
        Some(SavePoint { seconds, changes })
    });
    points.collect::<Option<Vec<_>>>().map(Value::SavePoints).ok_or(INVALID_SAVE)
}

fn parse_output_limits(words: &[Vec<u8>], current: Option<&Value>) -> Result<Value, ValueError> {
    const NONE: OutputLimit = OutputLimit { hard_bytes: 0, soft_bytes: 0, soft_seconds: 0 };
    let mut limits = match current {
        Some(Value::OutputLimits(limits)) => *limits,
        _ => OutputLimits { normal: NONE, replica: NONE, pubsub: NONE },
    };
    let groups = words.chunks_exact(4);
    if !groups.remainder().is_empty() {
        return Err(ValueError::Other("Wrong number of arguments in buffer limit configuration."));
    }
    for group in groups {
        let limit = match group[0].to_ascii_lowercase().as_slice() {
            b"normal" => &mut limits.normal,
            b"slave" | b"replica" => &mut limits.replica,
            b"pubsub" => &mut limits.pubsub,
            _ => return Err(ValueError::Other("Invalid client class specified in buffer limit configuration.")),
        };
        *limit = parse_output_limit(&group[1..])
            .ok_or(ValueError::Other("Error in hard, soft or soft_seconds setting in buffer limit configuration."))?;
    }
    Ok(Value::OutputLimits(limits))
}

fn parse_output_limit(words: &[Vec<u8>]) -> Option<OutputLimit> {
    let [hard, soft, seconds] = words else { return None };
    Some(OutputLimit {
        hard_bytes: parse_memory(hard).ok()?.unsigned_abs(),
        soft_bytes: parse_memory(soft).ok()?.unsigned_abs(),
        soft_seconds: u64::from(u32::try_from(parse_i64(seconds)?).ok()?),
    })
}

fn parse_oom_scores(words: &[Vec<u8>]) -> Result<Value, ValueError> {
    let [master, replica, child] = words else { return Err(ValueError::WordCount) };
    let score = |word: &[u8]| {
        parse_i64(word)
            .filter(|score| (-2000..=2000).contains(score))
            .ok_or(ValueError::Other("Invalid oom-score-adj-values, elements must be between -2000 and 2000."))
    };
    Ok(Value::OomScores([score(master)?, score(replica)?, score(child)?]))
}

fn parse_percentiles(words: &[Vec<u8>]) -> Result<Value, ValueError> {
    let percentile = |word: &Vec<u8>| {
        let number = std::str::from_utf8(word)
            .ok()
            .and_then(|text| text.parse::<f64>().ok())
            .filter(|number| number.is_finite())
            .ok_or(ValueError::Other("Invalid latency-tracking-info-percentiles parameters"))?;
        if !(0.0..=100.0).contains(&number) {
            return Err(ValueError::Other(
                "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]",
            ));
        }
        Ok(number)
    };
    words.iter().map(percentile).collect::<Result<Vec<_>, _>>().map(Value::Percentiles)
}

impl Value {
    /// The value as `CONFIG GET` answers it.
    pub fn text(&self, kind: Kind) -> Vec<u8> {
        match self {
            Value::Bool(on) => yes_or_no(*on).into(),
            Value::Integer(mode) if matches!(kind, Kind::Octal(_)) => format!("{mode:o}").into(),
            Value::Integer(number) => number.to_string().into(),
            Value::Share(Share::Bytes(bytes)) => bytes.to_string().into(),
            Value::Share(Share::Percent(percent)) => format!("{percent}%").into(),
            Value::Choice(at) => names(kind).get(*at).copied().unwrap_or_default().into(),
            Value::Flags(flags) => flag_names(*flags, names(kind)).into(),
            Value::Text(text) if matches!(kind, Kind::Text(TextRule::EventClasses)) => super::events::shown(text),
            Value::Text(text) => text.clone(),
            Value::Words(words) => words.join(&b' '),
            Value::SavePoints(points) => points.iter().map(SavePoint::text).collect::<Vec<_>>().join(" ").into(),
            Value::OutputLimits(limits) => limits.by_class().map(|(class, limit)| limit.text(class)).join(" ").into(),
            Value::OomScores(scores) => scores.map(|score| score.to_string()).join(" ").into(),
            Value::Percentiles(all) => all.iter().map(|one| percentile_text(*one)).collect::<Vec<_>>().join(" ").into(),
        }
    }

    /// What follows the name on each of the key's lines in redis.conf.
    pub(super) fn line_values(&self, kind: Kind) -> Vec<Vec<u8>> {
        match self {
            Value::Integer(bytes) if matches!(kind, Kind::Memory(_)) => vec![format_memory(*bytes).into()],
            Value::Share(Share::Bytes(bytes)) => {
                vec![i64::try_from(*bytes).map_or_else(|_| bytes.to_string(), format_memory).into()]
            }
            Value::Text(text) => vec![quote(text)],
            Value::SavePoints(points) if !points.is_empty() => points.iter().map(|point| point.text().into()).collect(),
            Value::OutputLimits(limits) => limits.by_class().map(|(class, limit)| limit.line(class).into()).to_vec(),
            Value::Words(_) | Value::SavePoints(_) | Value::Percentiles(_) if self.text(kind).is_empty() => {
                vec![b"\"\"".to_vec()]
            }
            Value::Bool(_)
            | Value::Integer(_)
            | Value::Share(_)
            | Value::Choice(_)
            | Value::Flags(_)
            | Value::Words(_)
            | Value::SavePoints(_)
            | Value::OomScores(_)
            | Value::Percentiles(_) => vec![self.text(kind)],
        }
    }
}

fn yes_or_no(on: bool) -> &'static str {
    if on { "yes" } else { "no" }
}

fn names(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Choice(names) | Kind::Flags(names) => names,
        Kind::Bool
        | Kind::Integer(_)
        | Kind::Octal(_)
        | Kind::Memory(_)
        | Kind::Share
        | Kind::Text(_)
        | Kind::Words(_)
        | Kind::Master
        | Kind::SavePoints
        | Kind::OutputLimits
        | Kind::OomScores
        | Kind::Percentiles => &[],
    }
}

fn flag_names(flags: u32, names: &[&str]) -> String {
    let set = names.iter().enumerate().skip(1).filter(|(bit, _)| flags & ((1 << bit) >> 1) != 0);
    let set = set.map(|(_, name)| *name).collect::<Vec<_>>();
    if set.is_empty() { names.first().copied().unwrap_or_default().to_owned() } else { set.join(" ") }
}

/// At most six decimals, none at the end that are zero.
fn percentile_text(percentile: f64) -> String {
    let text = format!("{percentile:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl SavePoint {
    fn text(&self) -> String {
        format!("{} {}", self.seconds, self.changes)
    }
}

impl OutputLimits {
    /// The classes under the names that Redis gives them in replies.
    fn by_class(&self) -> [(&'static str, OutputLimit); 3] {
        [("normal", self.normal), ("slave", self.replica), ("pubsub", self.pubsub)]
    }
}

impl OutputLimit {
    fn text(&self, class: &str) -> String {
        format!("{class} {} {} {}", self.hard_bytes, self.soft_bytes, self.soft_seconds)
    }

    fn line(&self, class: &str) -> String {
        let class = if class == "slave" { "replica" } else { class };
        let memory = |bytes: u64| i64::try_from(bytes).map_or_else(|_| bytes.to_string(), format_memory);
        format!("{class} {} {} {}", memory(self.hard_bytes), memory(self.soft_bytes), self.soft_seconds)
    }
}

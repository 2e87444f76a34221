//! HSETEX: fields that are set together with their expiry.

use super::expire::Change;
use super::expired::forget_expired;
use super::field_list::{Form, record};
use super::{Hash, Limits, field_clock};
use crate::context::{Context, Expiry};
use crate::key_hash::Key;
use crate::notify::Class;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// Whether fields are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    /// `FNX`: if none of them is there.
    NoneThere,
    /// `FXX`: if all of them are there.
    AllThere,
}

/// What a call asks for, and where its fields begin.
struct Options {
    condition: Option<Condition>,
    expiry: Option<Expiry>,
    first: usize,
}

impl Options {
    fn read(args: &Args<'_>, now_ms: i64) -> Result<Self, CommandError> {
        let (mut options, mut index) = (Self { condition: None, expiry: None, first: 0 }, 2);
        while index < args.len() {
            let condition = [("FNX", Condition::NoneThere), ("FXX", Condition::AllThere)];
            if args.is(index, "FIELDS") {
                options.first = first_field(args, index)?;
                return Ok(options);
            } else if let Some((_, condition)) = condition.into_iter().find(|(word, _)| args.is(index, word)) {
                if options.condition.replace(condition).is_some() {
                    return Err(CommandError::Text("ERR Only one of FXX or FNX arguments can be specified"));
                }
                index += 1;
            } else {
                index += options.read_expiry(args, index, now_ms)?;
            }
        }
        Err(CommandError::WrongArity("hsetex"))
    }

    /// Reads the option at `index`, which is about the expiry or none at all: how many arguments it takes.
    fn read_expiry(&mut self, args: &Args<'_>, index: usize, now_ms: i64) -> Result<usize, CommandError> {
        let form = Form::read(args, index);
        if form.is_none() && !args.is(index, "KEEPTTL") {
            return Err(CommandError::repeats("ERR unknown argument: ", args.at(index), ""));
        }
        if self.expiry.is_some() {
            let text = "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified";
            return Err(CommandError::Text(text));
        }
        let Some(form) = form else {
            self.expiry = Some(Expiry::Keep);
            return Ok(1);
        };
        let text = args.get(index + 1).ok_or(CommandError::WrongArity("hsetex"))?;
        self.expiry = Some(Expiry::At(form.instant(text, now_ms, "hsetex")?));
        Ok(2)
    }
}

/// Where the fields of `FIELDS numfields field value ...` at `index` begin; they are the rest of the command.
fn first_field(args: &Args<'_>, index: usize) -> Result<usize, CommandError> {
    let arity = CommandError::WrongArity("hsetex");
    let first = index + 2;
    if args.len() < first + 2 {
        return Err(arity);
    }
    let count = parse_i64(args.at(index + 1)).and_then(|count| i32::try_from(count).ok()).filter(|count| *count > 0);
    let count = count.ok_or(CommandError::Text("ERR invalid number of fields"))?;
    if usize::try_from(count) != Ok((args.len() - first) / 2) || !(args.len() - first).is_multiple_of(2) {
        return Err(arity);
    }
    Ok(first)
}

/// `HSETEX key [FNX | FXX] [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | KEEPTTL] FIELDS numfields field value ...`: 1 if
/// the fields were set, 0 if the condition does not hold.
pub fn hsetex(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let options = Options::read(args, cx.now_ms)?;
    let (key, first) = (cx.first_key(args), options.first);
    cx.edit::<Hash>(&key)?;
    forget_expired(cx, &key, args.from(first).step_by(2));
    let is_met = holds(cx, &key, args, &options)?;
    if is_met {
        set(cx, &key, args, first, options.expiry.unwrap_or(Expiry::Clear))?;
    }
    cx.reply.integer(i64::from(is_met));
    Ok(())
}

fn holds(cx: &mut Context<'_>, key: &Key<'_>, args: &Args<'_>, options: &Options) -> Result<bool, CommandError> {
    let Some(condition) = options.condition else { return Ok(true) };
    let hash = cx.edit::<Hash>(key)?;
    let mut is_there =
        args.from(options.first).step_by(2).map(|field| hash.as_deref().is_some_and(|hash| hash.find(field).is_some()));
    Ok(match condition {
        Condition::NoneThere => !is_there.any(|is_there| is_there),
        Condition::AllThere => is_there.all(|is_there| is_there),
    })
}

/// Sets the fields from argument `first` on; with an expiry that has passed they go again at once.
fn set(cx: &mut Context<'_>, key: &Key<'_>, args: &Args<'_>, first: usize, expiry: Expiry) -> Result<(), CommandError> {
    let limits = Limits::of(cx);
    let fields: Vec<&[u8]> = args.from(first).step_by(2).collect();
    let is_over = matches!(expiry, Expiry::At(at) if at <= field_clock(cx));
    let mut hash = cx.edit_or_create::<Hash>(key)?;
    hash.prepare(fields.len(), &limits);
    for (index, field) in fields.iter().enumerate() {
        hash.set(field, args.at(first + 2 * index + 1), expiry, &limits);
    }
    if is_over {
        fields.iter().for_each(|field| _ = hash.remove(field));
    }
    drop(hash);
    cx.notify(Class::HASH, "hset", key);
    if is_over {
        Change::Delete.tell(cx, key, &fields);
        return Ok(());
    }
    cx.changed(key);
    if let Expiry::At(at) = expiry {
        cx.notify(Class::HASH, "hexpire", key);
        let pairs: Vec<&[u8]> = args.from(first).collect();
        let (mut at_text, mut count) = (itoa::Buffer::new(), itoa::Buffer::new());
        let front = [b"HSETEX", key.bytes, b"PXAT", at_text.format(at).as_bytes()];
        cx.log_instead(&record(&front, count.format(fields.len()), &pairs));
    }
    Ok(())
}

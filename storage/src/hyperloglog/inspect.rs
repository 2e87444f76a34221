//! PFDEBUG and PFSELFTEST: a look inside, for tests.

use super::commands::longest;
use super::sketch::{Draft, Encoding, Sketch};
use super::{REGISTERS, dense, place, sparse};
use crate::context::{Context, Expiry};
use crate::entry;
use crate::string_value::Value;
use simurgh_protocol::{Args, CommandError};
use std::fmt::Write;

/// `PFDEBUG GETREG | DECODE | ENCODING | TODENSE key`.
pub fn pfdebug(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    let (key, longest) = (cx.key(args.at(2)), longest(cx));
    let Some(entry) = cx.write(&key) else {
        return Err(CommandError::Text("ERR The specified key does not exist"));
    };
    let sketch = Sketch::of(entry.view().string()?)?;
    if !["GETREG", "DECODE", "ENCODING", "TODENSE"].iter().any(|name| args.is(1, name)) {
        return Err(CommandError::repeats("ERR Unknown PFDEBUG subcommand '", args.at(1), "'"));
    }
    if args.len() != 3 {
        return Err(CommandError::WrongArity("pfdebug"));
    }
    let sparse = sketch.encoding() == Encoding::Sparse;
    if args.is(1, "DECODE") {
        if !sparse {
            return Err(CommandError::Text("ERR HLL encoding is not sparse"));
        }
        let text = decode(sketch.body());
        cx.reply.bulk(text.as_bytes());
        return Ok(());
    }
    if args.is(1, "ENCODING") {
        cx.reply.simple(if sparse { "sparse" } else { "dense" });
        return Ok(());
    }
    // The others need a dense sketch, and make it so.
    let registers = sketch.registers()?;
    if sparse {
        let mut draft = Draft::copy(sketch, longest);
        draft.make_dense()?;
        cx.store_as(&key, Value::Bytes(&draft.finish(false)), entry::Encoding::Raw, Expiry::Keep);
    }
    if args.is(1, "TODENSE") {
        cx.reply.integer(i64::from(sparse));
    } else {
        cx.reply.array(REGISTERS);
        registers.iter().for_each(|register| cx.reply.integer(i64::from(*register)));
    }
    Ok(())
}

/// The runs as text.
fn decode(body: &[u8]) -> String {
    let mut text = String::new();
    for run in sparse::runs(body) {
        let length = run.length;
        match (run.value, run.size) {
            (0, 1) => write!(text, "z:{length} "),
            (0, _) => write!(text, "Z:{length} "),
            (value, _) => write!(text, "v:{value},{length} "),
        }
        .expect("a String takes all");
    }
    text.pop();
    text
}

/// `PFSELFTEST`: registers keep what they are given, and estimates are about right, sparse and dense.
pub fn pfselftest(cx: &mut Context<'_>, _: &Args<'_>) -> Result<(), CommandError> {
    check_registers(cx).and_then(|()| check_estimates())?;
    cx.reply.ok();
    Ok(())
}

fn check_registers(cx: &mut Context<'_>) -> Result<(), CommandError> {
    let mut registers = Box::new([0; REGISTERS]);
    let mut packed = dense::bytes(&registers);
    for _ in 0..REGISTERS {
        let (index, value) = (cx.random.below(REGISTERS), cx.random.below(64) as u8);
        let raised = dense::raise(&mut packed, index, value);
        if raised != (registers[index] < value) {
            return Err(CommandError::Text("TESTFAILED a register was not raised as it should be"));
        }
        registers[index] = registers[index].max(value);
    }
    if dense::registers(&packed) == registers {
        Ok(())
    } else {
        Err(CommandError::Text("TESTFAILED registers do not hold what they were given"))
    }
}

/// The standard error is 1.04 / sqrt(16384), about 0.8 %; the elements are always the same, so seven times that never comes.
fn check_estimates() -> Result<(), CommandError> {
    const ERROR_MAX: f64 = 7.0 * 0.008_125;
    // Sparse at first, dense soon.
    let mut draft = Draft::empty(500);
    for number in 1..=20_000_u64 {
        let (index, value) = place(&number.to_le_bytes());
        draft.raise(index, value)?;
        if [1, 10, 100, 1_000, 20_000].contains(&number) {
            let error = (draft.count()? as f64 - number as f64).abs();
            if error > (ERROR_MAX * number as f64).ceil() {
                return Err(CommandError::Owned(format!("TESTFAILED an estimate of {number} is off by {error}")));
            }
        }
    }
    Ok(())
}

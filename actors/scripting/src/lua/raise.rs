//! Errors that the server's functions raise, and what is made of errors of any kind.

use mlua::{Error, Lua, Table, Value};

/// An error on its way through Lua.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Raised {
    /// Of a library: a string for who catches it.
    #[error("{}", String::from_utf8_lossy(.0))]
    Text(Vec<u8>),
    /// Of a command: a table with the field `err`.
    #[error("{}", String::from_utf8_lossy(.0))]
    Command(Vec<u8>),
    /// SCRIPT KILL: nobody catches it.
    #[error("ERR Error running script: Script killed by user with SCRIPT KILL.")]
    Killed,
}

/// The text for a script that was killed.
pub(super) const KILLED: &[u8] = b"ERR Script killed by user with SCRIPT KILL...";

/// An error of a library's function, with the place where it was called as Lua's own functions have it.
pub(super) fn fault(lua: &Lua, text: &str) -> Error {
    let place = lua.inspect_stack(1, |frame| {
        let line = frame.current_line()?;
        Some(format!("{}:{line}: ", frame.source().short_src?))
    });
    Error::external(Raised::Text([place.flatten().unwrap_or_default().as_bytes(), text.as_bytes()].concat()))
}

/// An argument of the wrong kind.
pub(super) fn bad_argument(lua: &Lua, index: usize, function: &str, what: &str) -> Error {
    fault(lua, &format!("bad argument #{index} to '{function}' ({what})"))
}

/// The same, of another type than was expected.
pub(super) fn bad_type(lua: &Lua, index: usize, function: &str, expected: &str, found: Option<&Value>) -> Error {
    let found = found.map_or("no value", type_name);
    bad_argument(lua, index, function, &format!("{expected} expected, got {found}"))
}

/// A type as Lua names it.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "number",
        Value::LightUserData(_) | Value::Error(_) => "userdata",
        other => other.type_name(),
    }
}

/// An error of a command, as a table for who catches it.
pub(super) fn command_error(text: impl Into<Vec<u8>>) -> Error {
    Error::external(Raised::Command(text.into()))
}

fn raised(error: &Error) -> Option<&Raised> {
    match error {
        Error::CallbackError { cause, .. } | Error::WithContext { cause, .. } => raised(cause),
        other => other.downcast_ref(),
    }
}

/// The first line of an error that is none of ours: what follows is for who debugs the server.
pub(super) fn first_line(error: &Error) -> String {
    let text = match error {
        Error::CallbackError { cause, .. } => return first_line(cause),
        Error::RuntimeError(text) | Error::MemoryError(text) => text.clone(),
        other => other.to_string(),
    };
    text.lines().next().unwrap_or_default().to_owned()
}

/// The field by which an error of a command says that it has been counted; scripts see it, as in Redis.
pub(super) const OF_COMMAND: &str = "ignore_error_stats_update";

/// Whether an error is one that a command of the script has failed with.
pub(super) fn is_of_command(fault: &Value) -> bool {
    match fault {
        Value::Table(table) => matches!(table.raw_get(OF_COMMAND), Ok(Value::Boolean(true))),
        _ => false,
    }
}

fn err_field(table: &Table) -> Option<Vec<u8>> {
    table.raw_get("err").ok().and_then(|text| super::api::text_of(&text))
}

/// Where the errors of Lua's own functions seem to come from when the sandbox calls them for a script.
const FROM_SANDBOX: &[u8] = b"sandbox:";

/// Names the script's own line in an error that names one of the sandbox.
pub(super) fn relocate(text: Vec<u8>, place: Option<&str>) -> Vec<u8> {
    let Some(start) = text.windows(FROM_SANDBOX.len()).take(8).position(|part| part == FROM_SANDBOX) else {
        return text;
    };
    let rest = &text[start + FROM_SANDBOX.len()..];
    let Some(end) = rest.windows(2).position(|part| part == b": ") else { return text };
    if !rest[..end].iter().all(u8::is_ascii_digit) {
        return text;
    }
    let place = place.map_or_else(String::new, |place| format!("{}: ", place.trim_start_matches('@')));
    [&text[..start], place.as_bytes(), &rest[end + 2..]].concat()
}

/// The text of an error that ends a script, with its code.
pub(super) fn text_of(fault: &Value) -> Vec<u8> {
    let coded = |text: &[u8]| [b"ERR ", text].concat();
    match fault {
        Value::Error(error) => match raised(error) {
            Some(Raised::Text(text)) => coded(text),
            Some(Raised::Command(text)) => text.clone(),
            Some(Raised::Killed) => KILLED.to_vec(),
            None => coded(first_line(error).as_bytes()),
        },
        Value::Table(table) => err_field(table).unwrap_or_else(|| b"ERR unknown error".to_vec()),
        Value::String(text) => coded(&text.as_bytes()),
        Value::Nil => coded(b"nil"),
        other => coded(other.to_string().unwrap_or_default().as_bytes()),
    }
}

/// An error as the value that a script has caught.
pub(super) fn as_value(lua: &Lua, fault: Value, as_table: bool) -> mlua::Result<Value> {
    let text = match &fault {
        Value::Error(error) => match raised(error) {
            Some(Raised::Command(text)) if as_table => return Ok(Value::Table(error_table(lua, text)?)),
            Some(Raised::Text(text) | Raised::Command(text)) => text.clone(),
            Some(Raised::Killed) => return Err(Error::external(Raised::Killed)),
            None => first_line(error).into_bytes(),
        },
        Value::Table(table) if !as_table => match err_field(table) {
            Some(text) => text,
            None => return Ok(fault),
        },
        _ => return Ok(fault),
    };
    Ok(Value::String(lua.create_string(text)?))
}

/// `{err = text}`.
pub(super) fn error_table(lua: &Lua, text: &[u8]) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set("err", lua.create_string(text)?)?;
    Ok(table)
}

/// The innermost line of a script that stands on the stack, while its error is handled.
pub(super) fn place_of_error(lua: &Lua) -> Option<String> {
    (1..)
        .map_while(|level| {
            lua.inspect_stack(level, |frame| {
                let source = frame.source().source?.into_owned();
                let line = frame.current_line()?;
                (source != "=sandbox").then(|| format!("{source}:{line}"))
            })
        })
        .flatten()
        .next()
}

//! Which arguments of a command are secrets, and so never appear in SLOWLOG or MONITOR.

use simurgh_protocol::Args;
use simurgh_protocol::command::{Command, ConnectionCommand, ServerCommand};
use simurgh_protocol::config::Key;

/// What stands in place of a secret.
pub(crate) const REDACTED: &[u8] = b"(redacted)";

/// The argument as it may be shown.
pub(crate) fn shown<'a>(command: Command, args: &Args<'a>, index: usize) -> &'a [u8] {
    if is_secret(command, args, index) { REDACTED } else { args.at(index) }
}

fn is_secret(command: Command, args: &Args<'_>, index: usize) -> bool {
    if command == Command::Connection(ConnectionCommand::Auth) {
        return index > 0;
    }
    if command == Command::Connection(ConnectionCommand::Hello) {
        let follows_auth = |back: usize| index >= back + 2 && args.is(index - back, "AUTH");
        return follows_auth(1) || follows_auth(2);
    }
    if [ServerCommand::AclSetuser, ServerCommand::AclDeluser, ServerCommand::AclGetuser]
        .map(Command::Server)
        .contains(&command)
    {
        return index > 1;
    }
    if command == Command::Server(ServerCommand::ConfigSet) {
        // CONFIG SET name value [name value ...]
        return index >= 3 && index % 2 == 1 && Key::named(args.at(index - 1)).is_some_and(|key| key.row().secret);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::with_words;
    use simurgh_protocol::command::{Lookup, lookup};

    fn shown_words(line: &str) -> String {
        with_words(line, |args| {
            let Lookup::Found(command) = lookup(args.at(0), args.get(1)) else { panic!("{line}") };
            let words = (0..args.len()).map(|index| String::from_utf8_lossy(shown(command, args, index)).into_owned());
            words.collect::<Vec<_>>().join(" ")
        })
    }

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(shown_words("AUTH secret"), "AUTH (redacted)");
        assert_eq!(shown_words("auth user secret"), "auth (redacted) (redacted)");
        assert_eq!(shown_words("HELLO 3 AUTH u p SETNAME x"), "HELLO 3 AUTH (redacted) (redacted) SETNAME x");
        assert_eq!(
            shown_words("CONFIG SET maxmemory 5 RequirePass secret"),
            "CONFIG SET maxmemory 5 RequirePass (redacted)"
        );
        assert_eq!(shown_words("ACL SETUSER u >secret"), "ACL SETUSER (redacted) (redacted)");
        assert_eq!(shown_words("CONFIG GET requirepass secret"), "CONFIG GET requirepass secret");
        assert_eq!(shown_words("SET requirepass secret"), "SET requirepass secret");
    }
}

//! The replies of `HELP` subcommands.

use crate::resp::Reply;

/// Answers a container's `HELP`: one line each for a subcommand and for what it does, the latter indented by four.
pub fn help(container: &str, lines: &[&str], reply: &mut Reply) {
    reply.array(lines.len() + 3);
    reply.simple(&format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    lines.iter().for_each(|line| reply.simple(line));
    reply.simple("HELP");
    reply.simple("    Print this help.");
}

/// `COMMAND HELP`.
pub fn command_help(reply: &mut Reply) {
    let lines = [
        "(no subcommand)",
        "    Describe every command.",
        "COUNT",
        "    Count the commands.",
        "LIST [FILTERBY MODULE <name>|ACLCAT <category>|PATTERN <pattern>]",
        "    List the names of commands.",
        "INFO [<command-name> ...]",
        "    Describe the named commands, or all.",
        "DOCS [<command-name> ...]",
        "    Document the named commands, or all.",
        "GETKEYS <full-command>",
        "    Find the keys of a request.",
        "GETKEYSANDFLAGS <full-command>",
        "    Find the keys of a request and what it does with them.",
    ];
    help("COMMAND", &lines, reply);
}

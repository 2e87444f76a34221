//! ACL: access control, of which there is one user, `default`, who may do everything and whose password is `requirepass`.
//!
//! What describes users and commands answers as Redis does of such a user. What would make another says that there is none.
//! Nothing is ever refused for want of a right, so the log of refusals is empty.

use crate::client::Client;
use sha2::{Digest, Sha256};
use simurgh_kernel::random;
use simurgh_protocol::command::{Categories, CommandSpec, Lookup, check_arity, lookup, top_level};
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;

const DEFAULT: &str = "default";
/// Bits of the longest password that ACL GENPASS makes up.
const PASSWORD_BITS_MAX: i64 = 4096;
/// Bits of a password when the request does not say.
const PASSWORD_BITS: i64 = 256;

/// ACL WHOAMI.
pub fn whoami(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.reply.bulk(DEFAULT.as_bytes());
    Ok(())
}

/// ACL USERS.
pub fn users(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.reply.array(1);
    client.reply.bulk(DEFAULT.as_bytes());
    Ok(())
}

/// ACL CAT \[category\].
pub fn cat(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let names: Vec<&str> = match (args.len(), args.get(2)) {
        (3, Some(name)) => {
            let category = Categories::listed().find(|(_, known)| known.as_bytes()[1..].eq_ignore_ascii_case(name));
            let (category, _) = category.ok_or_else(|| CommandError::repeats("ERR Unknown category '", name, "'"))?;
            commands().filter(|spec| spec.categories.contains(category)).map(|spec| spec.name).collect()
        }
        (2, _) => Categories::listed().map(|(_, name)| &name[1..]).collect(),
        _ => return Err(super::wrong_subcommand(args, "ACL")),
    };
    client.reply.array(names.len());
    names.iter().for_each(|name| client.reply.bulk(name.as_bytes()));
    Ok(())
}

fn commands() -> impl Iterator<Item = &'static CommandSpec> {
    top_level().iter().flat_map(|spec| std::iter::once(spec).chain(spec.subcommands)).copied()
}

/// The SHA-256 of the password, in hexadecimal digits, if one is needed.
fn password_hash(client: &Client) -> Option<String> {
    client.live().config.require_pass.as_deref().map(|password| hexadecimal(&Sha256::digest(password)))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// ACL LIST.
pub fn list(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let line = match password_hash(client) {
        Some(hash) => format!("user {DEFAULT} on sanitize-payload #{hash} ~* &* +@all"),
        None => format!("user {DEFAULT} on nopass sanitize-payload ~* &* +@all"),
    };
    client.reply.array(1);
    client.reply.bulk(line.as_bytes());
    Ok(())
}

/// ACL GETUSER username.
pub fn getuser(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    if args.at(2) != DEFAULT.as_bytes() {
        client.reply.null();
        return Ok(());
    }
    let hash = password_hash(client);
    let flags: &[&str] =
        if hash.is_none() { &["on", "nopass", "sanitize-payload"] } else { &["on", "sanitize-payload"] };
    let reply = &mut client.reply;
    reply.map(6);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(usize::from(hash.is_some()));
    hash.iter().for_each(|hash| reply.bulk(hash.as_bytes()));
    for (name, rule) in [("commands", "+@all"), ("keys", "~*"), ("channels", "&*")] {
        reply.bulk(name.as_bytes());
        reply.bulk(rule.as_bytes());
    }
    reply.bulk(b"selectors");
    reply.array(0);
    Ok(())
}

/// ACL GENPASS \[bits\].
pub fn genpass(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let bits = match (args.len(), args.get(2)) {
        (3, Some(bits)) => parse_i64(bits).ok_or(CommandError::NotAnInteger)?,
        (2, _) => PASSWORD_BITS,
        _ => return Err(super::wrong_subcommand(args, "ACL")),
    };
    let digits = usize::try_from(bits).ok().filter(|_| (1..=PASSWORD_BITS_MAX).contains(&bits));
    let digits = digits.map(|bits| bits.div_ceil(4)).ok_or(CommandError::Text(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096",
    ))?;
    let mut bytes = vec![0; digits.div_ceil(2)];
    random::fill(&mut bytes);
    client.reply.bulk(&hexadecimal(&bytes).as_bytes()[..digits]);
    Ok(())
}

/// ACL DRYRUN username command \[arg ...\]: `default` may do everything that is a command with so many arguments.
pub fn dryrun(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    if args.at(2) != DEFAULT.as_bytes() {
        return Err(CommandError::repeats("ERR User '", args.at(2), "' not found"));
    }
    let request = args.skip(3);
    match lookup(request.at(0), request.get(1)) {
        Lookup::Found(command) => {
            let spec = command.spec();
            check_arity(spec, request.len()).map_err(|_| CommandError::WrongArity(spec.name))?;
            client.reply.ok();
            Ok(())
        }
        Lookup::MissingSubcommand(spec) => Err(CommandError::WrongArity(spec.name)),
        Lookup::UnknownCommand | Lookup::UnknownSubcommand(_) => {
            Err(CommandError::repeats("ERR Command '", request.at(0), "' not found"))
        }
    }
}

/// ACL LOG \[count | RESET\].
pub fn log(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(super::wrong_subcommand(args, "ACL"));
    }
    if args.is(2, "RESET") {
        client.reply.ok();
        return Ok(());
    }
    if let Some(count) = args.get(2) {
        parse_i64(count).ok_or(CommandError::NotAnInteger)?;
    }
    client.reply.array(0);
    Ok(())
}

/// ACL SETUSER username \[rule ...\].
pub fn setuser(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(CommandError::Text(
        "ERR users cannot be made or changed yet: there is only 'default', whose password CONFIG SET requirepass changes",
    ))
}

/// ACL DELUSER username \[username ...\]: nobody else is there to be deleted.
pub fn deluser(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    if args.from(2).any(|name| name == DEFAULT.as_bytes()) {
        return Err(CommandError::Text("ERR The 'default' user cannot be removed"));
    }
    client.reply.integer(0);
    Ok(())
}

const NO_FILE: CommandError = CommandError::Text(
    "ERR This server is not configured to use an ACL file: there is only the user 'default', whose password is requirepass",
);

/// ACL LOAD.
pub fn load(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(NO_FILE)
}

/// ACL SAVE.
pub fn save(_client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    Err(NO_FILE)
}

const HELP: &[&str] = &[
    "CAT [<category>]",
    "    List the commands of a category, or the categories.",
    "DELUSER <username> [<username> ...]",
    "    Delete users. There is none but 'default', who stays.",
    "DRYRUN <username> <command> [<arg> ...]",
    "    Tell whether a user may run a command, without running it.",
    "GENPASS [<bits>]",
    "    Make up a password of so many bits, 256 if not said.",
    "GETUSER <username>",
    "    Describe a user.",
    "LIST",
    "    List the users as a configuration file would have them.",
    "LOG [<count> | RESET]",
    "    List what was refused lately, or forget it.",
    "USERS",
    "    List the names of the users.",
    "WHOAMI",
    "    Answer the user of this connection.",
];

/// ACL HELP.
pub fn help(client: &mut Client, _args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    simurgh_protocol::command::replies::help("ACL", HELP, &mut client.reply);
    Ok(())
}

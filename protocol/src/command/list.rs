//! `COMMAND LIST`: names, all or filtered.

use super::flags::Categories;
use super::spec::CommandSpec;
use super::table::top_level;
use crate::errors::CommandError;
use crate::glob;
use crate::resp::{Args, Reply};

/// `COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]`.
pub fn list(args: &Args<'_>, reply: &mut Reply) -> Result<(), CommandError> {
    if args.len() == 2 {
        names(|_| true, reply);
        return Ok(());
    }
    if args.len() != 5 || !args.is(2, "FILTERBY") {
        return Err(CommandError::Syntax);
    }
    let value = args.at(4);
    if args.is(3, "MODULE") {
        names(|_| false, reply); // There are no modules, so none has commands.
    } else if args.is(3, "ACLCAT") {
        let category = Categories::named(value);
        names(|spec| category.is_some_and(|category| spec.categories.contains(category)), reply);
    } else if args.is(3, "PATTERN") {
        names(|spec| glob::matches_ignoring_case(value, spec.name.as_bytes()), reply);
    } else {
        return Err(CommandError::Syntax);
    }
    Ok(())
}

fn names(wanted: impl Fn(&CommandSpec) -> bool, reply: &mut Reply) {
    let all = top_level().iter().flat_map(|spec| std::iter::once(spec).chain(spec.subcommands));
    let names: Vec<&str> = all.filter(|spec| wanted(spec)).map(|spec| spec.name).collect();
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name.as_bytes()));
}

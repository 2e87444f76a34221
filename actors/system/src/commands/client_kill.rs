//! CLIENT KILL: closes the connections that all filters apply to.
//!
//! Others are told through their inbox; what they were about to be sent is dropped. A client that names itself is answered first.

use crate::client::{Client, Close};
use crate::clients::ClientShared;
use crate::commands::client_list::{ClientType, unknown_type};
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::Shards;

/// What the clients to be closed have in common.
#[derive(Debug, Default, PartialEq, Eq)]
struct Filter {
    id: Option<u64>,
    max_age_seconds: Option<i64>,
    client_type: Option<ClientType>,
    address: Option<Vec<u8>>,
    local_address: Option<Vec<u8>>,
    keeps_caller: bool,
}

impl Filter {
    /// `CLIENT KILL address`, or pairs of an option and its value.
    fn parse(args: &Args<'_>) -> Result<Self, CommandError> {
        if args.len() == 3 {
            return Ok(Self { address: Some(args.at(2).to_vec()), ..Self::default() });
        }
        let mut filter = Self { keeps_caller: true, ..Self::default() };
        let mut index = 2;
        while index < args.len() {
            let value = args.get(index + 1).ok_or(CommandError::Syntax)?;
            filter.option(args, index, value)?;
            index += 2;
        }
        Ok(filter)
    }

    fn option(&mut self, args: &Args<'_>, index: usize, value: &[u8]) -> Result<(), CommandError> {
        if args.is(index, "ID") {
            let id = parse_i64(value).filter(|id| *id > 0).and_then(|id| u64::try_from(id).ok());
            self.id = Some(id.ok_or(CommandError::Text("ERR client-id should be greater than 0"))?);
        } else if args.is(index, "MAXAGE") {
            let age = parse_i64(value).ok_or(CommandError::ArgumentNotAnInteger("maxage"))?;
            if age <= 0 {
                return Err(CommandError::Text("ERR maxage should be greater than 0"));
            }
            self.max_age_seconds = Some(age);
        } else if args.is(index, "TYPE") {
            self.client_type = Some(ClientType::parse(value).ok_or_else(|| unknown_type(value))?);
        } else if args.is(index, "ADDR") {
            self.address = Some(value.to_vec());
        } else if args.is(index, "LADDR") {
            self.local_address = Some(value.to_vec());
        } else if args.is(index, "USER") {
            // There is one user, so the filter leaves out nobody.
            if value != b"default" {
                return Err(CommandError::repeats("ERR No such user '", value, "'"));
            }
        } else if args.is(index, "SKIPME") {
            self.keeps_caller = match (args.is(index + 1, "YES"), args.is(index + 1, "NO")) {
                (true, _) => true,
                (_, true) => false,
                (false, false) => return Err(CommandError::Syntax),
            };
        } else {
            return Err(CommandError::Syntax);
        }
        Ok(())
    }

    fn applies_to(&self, client: &ClientShared, caller: u64, now_ms: i64) -> bool {
        let is = |wanted: &Option<Vec<u8>>, address: &simurgh_kernel::net::Address| {
            wanted.as_ref().is_none_or(|wanted| address.to_string().as_bytes() == *wanted)
        };
        !(self.keeps_caller && client.id == caller)
            && self.id.is_none_or(|id| id == client.id)
            && self.client_type.is_none_or(|wanted| wanted == ClientType::Normal)
            && self.max_age_seconds.is_none_or(|age| client.age_seconds(now_ms) >= age)
            && is(&self.address, &client.address.remote)
            && is(&self.local_address, &client.address.local)
    }
}

/// CLIENT KILL address, or CLIENT KILL option value \[option value ...\].
pub fn kill(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let filter = Filter::parse(args)?;
    let (mut killed, mut kills_itself) = (0, false);
    for other in client.node.clients.all() {
        if !filter.applies_to(&other, client.shared.id, client.now_ms) {
            continue;
        }
        killed += 1;
        if other.id == client.shared.id {
            kills_itself = true;
        } else {
            other.kill();
        }
    }
    if args.len() > 3 {
        client.reply.count(killed);
    } else if killed == 0 {
        return Err(CommandError::Text("ERR No such client"));
    } else {
        client.reply.ok();
    }
    if kills_itself {
        client.close = Some(Close::AfterReply);
        // Within EXEC, what follows is not answered any more.
        client.reply_mode.off(&client.reply);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use simurgh_protocol::resp::Range;

    fn parse(request: &str) -> Result<Filter, String> {
        let mut start = 0;
        let ranges: Vec<Range> = request
            .split(' ')
            .map(|word| {
                let range = Range { start, length: word.len() as u32 };
                start += word.len() as u32 + 1;
                range
            })
            .collect();
        Filter::parse(&Args::new(request.as_bytes(), &ranges)).map_err(|error| error.to_string())
    }

    #[test]
    fn filters() {
        let filter = parse("CLIENT KILL 127.0.0.1:1").expect("an address");
        assert!(!filter.keeps_caller);
        assert_eq!(filter.address.as_deref(), Some(&b"127.0.0.1:1"[..]));
        let filter = parse("CLIENT KILL id 7 SkipMe no ID 8 MAXAGE 5 type NORMAL").expect("options");
        assert_eq!((filter.id, filter.keeps_caller, filter.max_age_seconds), (Some(8), false, Some(5)));
        assert!(parse("CLIENT KILL USER default MAXAGE 1").expect("options").keeps_caller);
    }

    #[test]
    fn refusals() {
        for (request, expected) in [
            ("CLIENT KILL ID 0", "ERR client-id should be greater than 0"),
            ("CLIENT KILL ID 99999999999999999999", "ERR client-id should be greater than 0"),
            ("CLIENT KILL ID 7 TYPE", "ERR syntax error"),
            ("CLIENT KILL ID 7 FOO bar", "ERR syntax error"),
            ("CLIENT KILL TYPE foo", "ERR Unknown client type 'foo'"),
            ("CLIENT KILL USER nobody", "ERR No such user 'nobody'"),
            ("CLIENT KILL MAXAGE x", "ERR maxage is not an integer or out of range"),
            ("CLIENT KILL MAXAGE 0", "ERR maxage should be greater than 0"),
            ("CLIENT KILL SKIPME maybe", "ERR syntax error"),
        ] {
            assert_eq!(parse(request), Err(expected.to_owned()), "{request}");
        }
    }
}

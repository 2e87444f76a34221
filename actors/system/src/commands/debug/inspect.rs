//! DEBUG OBJECT, HTSTATS and POPULATE.

use crate::client::Client;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::rdb::write::string_length;
use simurgh_storage::{Expiry, Shards, Value, access};

/// Bytes of the largest value that POPULATE makes.
const POPULATE_SIZE_MAX: i64 = 512 << 20;

/// DEBUG OBJECT key.
pub(super) fn object(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let (now_ms, policy) = (client.now_ms, client.live().storage.access);
    let text = client.with_context(shards, None, |cx| {
        let key = cx.key(args.at(2));
        let entry = cx.peek(&key).ok_or(CommandError::NoSuchKey)?;
        let address = entry.key().as_ptr();
        let (encoding, length) = (entry.encoding_name(), entry.string().map_or(entry.memory(), |value| value.with_text(string_length)));
        let (lru, idle) = match policy {
            access::AccessPolicy::Lru => (entry.access(), access::idle_seconds(entry.access(), now_ms)),
            access::AccessPolicy::Lfu { .. } => (entry.access(), 0),
        };
        Ok(format!(
            "Value at:{address:p} refcount:1 encoding:{encoding} serializedlength:{length} lru:{lru} lru_seconds_idle:{idle}"
        ))
    })?;
    client.reply.simple(&text);
    Ok(())
}

/// DEBUG HTSTATS dbid.
pub(super) fn tables(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let layout = &client.node.layout;
    let database = parse_i64(args.at(2)).ok_or(CommandError::NotAnInteger)?;
    let database = usize::try_from(database).ok().filter(|database| *database < layout.databases);
    let database = database.ok_or(CommandError::Text("ERR Out of range database"))?;
    let mut text = String::new();
    for index in 0..layout.shards {
        let shard = shards.shard(index).database(database);
        text.push_str(&format!(
            "[Shard {index}]\n slots: {}\n number of elements: {}\n with an expiry: {}\n bytes: {}\n",
            shard.slots().len(),
            shard.len(),
            shard.expiring(),
            shard.bytes()
        ));
    }
    client.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// DEBUG POPULATE count \[prefix \[size\]\]: keys that are there already stay as they are.
pub(super) fn populate(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let positive = |index: usize, max: i64| {
        let number = parse_i64(args.at(index)).filter(|number| (0..=max).contains(number));
        number.ok_or(CommandError::Text("ERR value is out of range, must be positive"))
    };
    let count = positive(2, i64::MAX)?;
    let prefix = args.get(3).unwrap_or(b"key");
    let size = if args.len() > 4 { Some(positive(4, POPULATE_SIZE_MAX)? as usize) } else { None };
    client.with_context(shards, None, |cx| {
        for number in 0..count {
            let name = [prefix, format!(":{number}").as_bytes()].concat();
            let mut value = format!("value:{number}").into_bytes();
            if let Some(size) = size.filter(|size| *size > 0) {
                value.resize(size, 0);
            }
            let key = cx.key(&name);
            if cx.peek(&key).is_none() {
                cx.store(&key, Value::from_bytes(&value), Expiry::Clear);
                cx.log_instead(&[b"SET", &name, &value]);
            }
        }
    });
    client.reply.ok();
    Ok(())
}

//! DEBUG OBJECT, HTSTATS, HTSTATS-KEY, LISTPACK and POPULATE.

use crate::client::Client;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::list::{List, NodeRef};
use simurgh_storage::rdb::value::write_value;
use simurgh_storage::rdb::write::string_length;
use simurgh_storage::{Collection, EntryRef, Expiry, Shards, Value, access};

/// Bytes of the largest value that POPULATE makes.
const POPULATE_SIZE_MAX: i64 = 512 << 20;

/// DEBUG OBJECT key.
pub(super) fn object(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let (now_ms, live) = (client.now_ms, client.live().clone());
    let (policy, list_size) = (live.storage.access, live.storage.packing.list_size);
    let text = client.with_context(shards, None, |cx| {
        let key = cx.key(args.at(2));
        // Also what has expired and is not gone yet.
        let entry = cx.database_of(&key).get(&key).ok_or(CommandError::NoSuchKey)?;
        let address = entry.key().as_ptr();
        let (encoding, length) = (entry.encoding_name(), serialized_length(entry));
        let (lru, idle) = match policy {
            access::AccessPolicy::Lru => (entry.access(), access::idle_seconds(entry.access(), now_ms)),
            access::AccessPolicy::Lfu { .. } => (entry.access(), 0),
        };
        let nodes = match entry.collection().as_deref() {
            Some(Collection::List(list)) if encoding == "quicklist" => describe_nodes(list, list_size),
            _ => String::new(),
        };
        Ok(format!(
            "Value at:{address:p} refcount:1 encoding:{encoding} serializedlength:{length} lru:{lru} \
             lru_seconds_idle:{idle}{nodes}"
        ))
    })?;
    client.reply.simple(&text);
    Ok(())
}

/// Bytes of the value as DUMP has it, without its type and what follows it.
fn serialized_length(entry: EntryRef<'_>) -> usize {
    if let Ok(value) = entry.string() {
        return value.with_text(string_length);
    }
    let mut out = Vec::new();
    write_value(&mut out, entry);
    out.len()
}

/// How many nodes a large list has, and how large they are. None is ever compressed.
fn describe_nodes(list: &List, list_size: i32) -> String {
    let (mut nodes, mut bytes) = (0usize, 0usize);
    for node in list.nodes() {
        nodes += 1;
        bytes += match node {
            NodeRef::Packed(list) => list.as_bytes().len(),
            NodeRef::Plain(text) => text.len(),
        };
    }
    let average = list.len() as f64 / nodes.max(1) as f64;
    format!(
        " ql_nodes:{nodes} ql_avg_node:{average:.2} ql_listpack_max:{list_size} ql_compressed:0 \
         ql_uncompressed_size:{bytes}"
    )
}

/// DEBUG HTSTATS-KEY key.
pub(super) fn table_of_key(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    let text = client.with_context(shards, None, |cx| {
        let key = cx.key(args.at(2));
        let entry = cx.peek(&key).ok_or(CommandError::NoSuchKey)?;
        match entry.collection() {
            Some(collection) if ["hashtable", "skiplist"].contains(&entry.encoding_name()) => Ok(format!(
                "Hash table 0 stats (main hash table):\n number of elements: {}\n bytes: {}\n",
                collection.len(),
                collection.bytes()
            )),
            _ => Err(CommandError::Text(
                "ERR The value stored at the specified key is not represented using an hash table",
            )),
        }
    })?;
    client.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// DEBUG LISTPACK key: the elements go to the log.
pub(super) fn listpack(client: &mut Client, args: &Args<'_>, shards: &mut dyn Shards) -> Result<(), CommandError> {
    client.with_context(shards, None, |cx| {
        let key = cx.key(args.at(2));
        let entry = cx.peek(&key).ok_or(CommandError::NoSuchKey)?;
        match entry.collection() {
            Some(collection) if entry.encoding_name().starts_with("listpack") => {
                let mut number = 0;
                collection.for_each(&mut |parts| {
                    let parts: Vec<_> = parts.iter().map(|part| String::from_utf8_lossy(part)).collect();
                    tracing::info!("DEBUG LISTPACK: {number}: {parts:?}");
                    number += 1;
                });
                Ok(())
            }
            _ => Err(CommandError::Text("ERR Not a listpack encoded object.")),
        }
    })?;
    client.reply.simple("The elements of the listpack are in the log");
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

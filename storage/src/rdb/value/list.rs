//! Lists: nodes as the quicklists of Redis have them.

use super::{Loading, kind, read_listpack, read_ziplist};
use crate::list::{Limit, List, NodeRef, OwnedNode};
use crate::listpack::Item;
use crate::rdb::cursor::{Cursor, Fault};
use crate::rdb::length::{read_length, write_length};
use crate::rdb::string::{Sink, read_string};

/// How a node of a quicklist lies: one large element, or elements packed.
const PLAIN: u64 = 1;
const PACKED: u64 = 2;

pub(super) fn read(kind: u8, cursor: &mut Cursor<'_>, loading: &Loading<'_>) -> Result<List, Fault> {
    let limit = Limit::new(loading.packing);
    if kind == kind::LIST_ZIPLIST {
        return Ok(List::of_listpack(read_ziplist(cursor, loading)?, limit));
    }
    let count = read_length(cursor)?;
    let mut nodes = Vec::new();
    if kind == kind::LIST {
        let mut list = List::default();
        for _ in 0..count {
            let element = read_string(cursor, loading.string_bytes_max)?;
            list.make_room(element.len(), 1, limit);
            list.push(crate::list::End::Back, Item::from(&*element), limit);
        }
        return Ok(list);
    }
    for _ in 0..count {
        nodes.push(read_node(kind, cursor, loading)?);
    }
    Ok(List::of_nodes(nodes, limit))
}

fn read_node(kind: u8, cursor: &mut Cursor<'_>, loading: &Loading<'_>) -> Result<OwnedNode, Fault> {
    if kind == kind::LIST_QUICKLIST {
        return read_ziplist(cursor, loading).map(OwnedNode::Packed);
    }
    match read_length(cursor)? {
        PLAIN => Ok(OwnedNode::Plain(read_string(cursor, loading.string_bytes_max)?.into_owned())),
        PACKED => read_listpack(cursor, loading).map(OwnedNode::Packed),
        _ => Err(Fault::Packed),
    }
}

/// Servers disagree about the heads of very long elements in a packed node; such a node is written element by element.
pub(super) fn write(out: &mut Sink<'_>, list: &List) {
    write_length(out, list.nodes_in_file() as u64);
    list.nodes().for_each(|node| write_node(out, node));
}

/// How many nodes of a file a node is.
pub(crate) fn count_in_file(node: NodeRef<'_>) -> usize {
    match node {
        NodeRef::Packed(list) if !list.is_portable() => list.len(),
        NodeRef::Packed(_) | NodeRef::Plain(_) => 1,
    }
}

pub(crate) fn write_node(out: &mut Sink<'_>, node: NodeRef<'_>) {
    match node {
        NodeRef::Packed(list) if !list.is_portable() => {
            list.iter().for_each(|item| item.with_text(|text| write_body(out, PLAIN, text)));
        }
        NodeRef::Packed(list) => write_body(out, PACKED, list.as_bytes()),
        NodeRef::Plain(text) => write_body(out, PLAIN, text),
    }
}

fn write_body(out: &mut Sink<'_>, container: u64, bytes: &[u8]) {
    write_length(out, container);
    out.string(bytes);
}

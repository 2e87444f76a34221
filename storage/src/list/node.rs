//! A node of a large list: a packed list of some elements, or one element that is too large to be packed.

use super::limit::Limit;
use crate::database::size_class;
use crate::listpack::{self, Item, Listpack};

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    body: Body,
    /// Elements, beside the body so that a walk over the nodes need not look into them.
    count: u32,
    /// Its number among the nodes at a snapshot's cut, from one on, for as long as it has to be written as it is.
    pub number: u32,
}

#[derive(Clone, Debug)]
enum Body {
    Packed(Listpack),
    Plain(Box<[u8]>),
}

const _: () = assert!(size_of::<Node>() == 24, "below a node of Redis, which takes 32 bytes");

/// A node to look into.
#[derive(Clone, Copy, Debug)]
pub enum NodeRef<'a> {
    /// Elements, packed.
    Packed(&'a Listpack),
    /// One large element.
    Plain(&'a [u8]),
}

impl Node {
    /// A node of one element.
    pub fn of(item: Item<'_>, limit: Limit) -> Self {
        if limit.is_large(item.text_length()) {
            Self::plain(item.to_vec())
        } else {
            Self::packed(Listpack::of(&[item]))
        }
    }

    pub fn plain(text: Vec<u8>) -> Self {
        Self { body: Body::Plain(text.into_boxed_slice()), count: 1, number: 0 }
    }

    pub fn packed(list: Listpack) -> Self {
        // Two bytes are the least for an element, and a listpack is shorter than 2^32.
        let count = u32::try_from(list.len()).expect("a listpack has fewer elements than bytes");
        Self { body: Body::Packed(list), count, number: 0 }
    }

    pub fn as_ref(&self) -> NodeRef<'_> {
        match &self.body {
            Body::Packed(list) => NodeRef::Packed(list),
            Body::Plain(text) => NodeRef::Plain(text),
        }
    }

    pub fn list(&self) -> Option<&Listpack> {
        if let Body::Packed(list) = &self.body { Some(list) } else { None }
    }

    pub fn into_list(self) -> Option<Listpack> {
        if let Body::Packed(list) = self.body { Some(list) } else { None }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// What the allocator spends on it.
    pub fn bytes(&self) -> usize {
        match &self.body {
            Body::Packed(list) => list.bytes(),
            Body::Plain(text) => size_class(text.len()),
        }
    }

    /// What the allocator spends on a packed one.
    #[inline]
    pub fn packed_bytes(&self) -> usize {
        match &self.body {
            Body::Packed(list) => list.bytes(),
            Body::Plain(_) => 0,
        }
    }

    /// Bytes and elements of a packed one, as limits count them.
    pub fn size(&self) -> Option<(usize, usize)> {
        self.list().map(|list| (list.as_bytes().len(), self.len()))
    }

    /// Whether it is packed and has room for an element of this length.
    pub fn has_room(&self, length: usize, limit: Limit) -> bool {
        self.size().is_some_and(|(bytes, count)| limit.has_room(bytes, count, length))
    }

    /// The element with this number, which must be there.
    pub fn get(&self, offset: usize) -> Item<'_> {
        match &self.body {
            Body::Packed(list) => list.get(position(list, offset)),
            Body::Plain(text) => Item::Bytes(text),
        }
    }

    /// Changes the packed list by `with`, which adds as many elements as `added` says (or removes them).
    pub fn change<R>(&mut self, added: isize, with: impl FnOnce(&mut Listpack) -> R) -> R {
        let Body::Packed(list) = &mut self.body else { unreachable!("only packed nodes are changed in part") };
        self.count = self.count.checked_add_signed(added as i32).expect("no more elements go than are there");
        with(list)
    }

    /// Removes up to `count` elements from the one with the number `offset` on, of a packed node; how many.
    pub fn remove_run(&mut self, offset: usize, count: usize) -> usize {
        let removed = count.min(self.len() - offset);
        self.change(-(removed as isize), |list| {
            let at = position(list, offset);
            list.remove_run(at, removed);
        });
        removed
    }

    /// Takes the elements from the one with the number `offset` on into a node of their own.
    pub fn split_off(&mut self, offset: usize) -> Self {
        let moved = self.len() - offset;
        let tail = self.change(-(moved as isize), |list| {
            let at = if moved == 0 { list.end() } else { position(list, offset) };
            list.split_off(at)
        });
        Self { body: Body::Packed(tail), count: moved as u32, number: 0 }
    }
}

/// Where the element with this number is; it must be there.
pub(super) fn position(list: &Listpack, offset: usize) -> usize {
    isize::try_from(offset).ok().and_then(|offset| list.seek(offset)).expect("the element is there")
}

/// The elements of one node, in one direction.
pub(super) enum NodeIter<'a> {
    Forward(listpack::Iter<'a>),
    Backward(&'a Listpack, Option<usize>),
    Plain(Option<&'a [u8]>),
}

impl<'a> NodeIter<'a> {
    /// All from the first on.
    pub fn forward(node: NodeRef<'a>) -> Self {
        match node {
            NodeRef::Packed(list) => Self::Forward(list.iter()),
            NodeRef::Plain(text) => Self::Plain(Some(text)),
        }
    }

    /// All from the last on, backwards.
    pub fn backward(node: NodeRef<'a>) -> Self {
        match node {
            NodeRef::Packed(list) => Self::Backward(list, list.last()),
            NodeRef::Plain(text) => Self::Plain(Some(text)),
        }
    }

    /// Those from the one with the number `offset` on, which must be there, towards one end.
    pub fn from(node: NodeRef<'a>, offset: usize, is_forward: bool) -> Self {
        match node {
            NodeRef::Packed(list) if is_forward => Self::Forward(list.iter_from(position(list, offset))),
            NodeRef::Packed(list) => Self::Backward(list, Some(position(list, offset))),
            NodeRef::Plain(text) => Self::Plain(Some(text)),
        }
    }
}

impl<'a> Iterator for NodeIter<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        match self {
            Self::Forward(items) => items.next(),
            Self::Backward(list, at) => {
                let here = (*at)?;
                *at = list.prev(here);
                Some(list.get(here))
            }
            Self::Plain(text) => text.take().map(Item::Bytes),
        }
    }
}

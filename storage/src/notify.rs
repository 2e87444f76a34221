//! Keyspace events: what happened to which key, for those who subscribe to it (`notify-keyspace-events`).
//!
//! A handler names the event and its class; whether anybody wants that class is asked here, before anything is built. Delivery is
//! Pub/Sub's, which storage does not know.

use std::ops::BitOr;

/// A class of events, or several; the letters are those of `notify-keyspace-events`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class(u16);

impl Class {
    /// None.
    pub const NONE: Self = Self(0);
    /// `g`: commands of no type (DEL, EXPIRE, RENAME).
    pub const GENERIC: Self = Self(1 << 0);
    /// `$`: strings.
    pub const STRING: Self = Self(1 << 1);
    /// `l`: lists.
    pub const LIST: Self = Self(1 << 2);
    /// `s`: sets.
    pub const SET: Self = Self(1 << 3);
    /// `h`: hashes.
    pub const HASH: Self = Self(1 << 4);
    /// `z`: sorted sets.
    pub const SORTED_SET: Self = Self(1 << 5);
    /// `x`: a key's time came.
    pub const EXPIRED: Self = Self(1 << 6);
    /// `e`: a key had to make room.
    pub const EVICTED: Self = Self(1 << 7);
    /// `t`: streams.
    pub const STREAM: Self = Self(1 << 8);
    /// `m`: a read found no key.
    pub const KEY_MISS: Self = Self(1 << 9);
    /// `d`: module types. None of ours.
    pub const MODULE: Self = Self(1 << 10);
    /// `n`: a key came to be.
    pub const NEW: Self = Self(1 << 11);
    /// `o`: a value was overwritten.
    pub const OVERWRITTEN: Self = Self(1 << 12);
    /// `c`: a key's type changed.
    pub const TYPE_CHANGED: Self = Self(1 << 13);
    /// `K`: told on the key's channel.
    pub const KEYSPACE: Self = Self(1 << 14);
    /// `E`: told on the event's channel.
    pub const KEYEVENT: Self = Self(1 << 15);

    /// Whether it has anything in common with `other`.
    #[must_use]
    #[inline]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Class {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Something that happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its class: one.
    pub class: Class,
    /// Its name, as subscribers get it.
    pub name: &'static str,
    /// The key's database.
    pub database: usize,
    /// The key.
    pub key: Box<[u8]>,
}

//! Keyspace events: what happened to which key, for those who subscribe to it (`notify-keyspace-events`).
//!
//! A handler names the event and its class; whether anybody wants that class is asked here, before anything is built. Delivery is
//! Pub/Sub's, which storage does not know.

use crate::context::Context;
use crate::key_hash::Key;
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

    /// The classes of `notify-keyspace-events`; `A` is all but `m`, `n`, `o` and `c`. None unless they say where to tell.
    #[must_use]
    pub fn of_letters(letters: &[u8]) -> Self {
        const LETTERS: [(u8, Class); 17] = [
            (b'g', Class::GENERIC),
            (b'$', Class::STRING),
            (b'l', Class::LIST),
            (b's', Class::SET),
            (b'h', Class::HASH),
            (b'z', Class::SORTED_SET),
            (b'x', Class::EXPIRED),
            (b'e', Class::EVICTED),
            (b't', Class::STREAM),
            (b'd', Class::MODULE),
            (b'A', Class(0x1ff | Class::MODULE.0)),
            (b'm', Class::KEY_MISS),
            (b'n', Class::NEW),
            (b'o', Class::OVERWRITTEN),
            (b'c', Class::TYPE_CHANGED),
            (b'K', Class::KEYSPACE),
            (b'E', Class::KEYEVENT),
        ];
        let has = |letter: &u8| letters.contains(letter);
        let all = LETTERS.iter().filter(|(letter, _)| has(letter)).fold(Self::NONE, |all, (_, class)| all | *class);
        if all.meets(Self::KEYSPACE | Self::KEYEVENT) { all } else { Self::NONE }
    }

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

impl Context<'_> {
    /// Tells of an event, if anybody may want to hear of it.
    #[inline]
    pub fn notify(&mut self, class: Class, name: &'static str, key: &Key<'_>) {
        if self.settings.events.meets(class) && !self.replaying {
            let event = Event { class, name, database: self.database, key: key.bytes.into() };
            self.effects.events.push(event);
        }
    }

    /// Tells that a key is gone, if it is: after a change that may have emptied a collection.
    #[inline]
    pub fn notify_if_gone(&mut self, key: &Key<'_>) {
        if self.settings.events.meets(Class::GENERIC) && self.database_of(key).get(key).is_none() {
            self.notify(Class::GENERIC, "del", key);
        }
    }

    /// Tells that a command has put its own value in place of another, before it tells of itself.
    #[inline]
    pub(crate) fn notify_overwritten(&mut self, key: &Key<'_>, old_type: Option<&'static str>, new_type: &str) {
        if self.settings.events.meets(Class::OVERWRITTEN | Class::TYPE_CHANGED)
            && let Some(old_type) = old_type
        {
            self.notify(Class::OVERWRITTEN, "overwritten", key);
            if old_type != new_type {
                self.notify(Class::TYPE_CHANGED, "type_changed", key);
            }
        }
    }

    /// The same, or that the key is new.
    pub(crate) fn notify_stored(&mut self, key: &Key<'_>, old_type: Option<&'static str>, new_type: &str) {
        match old_type {
            Some(_) => self.notify_overwritten(key, old_type, new_type),
            None => self.notify(Class::NEW, "new", key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_stand_for_classes() {
        let all = Class::of_letters(b"AK");
        for class in [Class::GENERIC, Class::STRING, Class::STREAM, Class::EXPIRED, Class::EVICTED, Class::MODULE] {
            assert!(all.meets(class), "{class:?}");
        }
        for class in [Class::KEY_MISS, Class::NEW, Class::OVERWRITTEN, Class::TYPE_CHANGED, Class::KEYEVENT] {
            assert!(!all.meets(class), "{class:?}");
        }
        assert_eq!(Class::of_letters(b"Amnoc"), Class::NONE, "told nowhere");
        assert_eq!(Class::of_letters(b"zE"), Class::SORTED_SET | Class::KEYEVENT);
    }
}

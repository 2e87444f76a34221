//! Clients that are told of things: subscribers of channels, of what happens to keys, and caches that are to forget.

use super::{Compare, Dialect, Grammar, Operation, Words, is_set_at, valkey, words};

/// Names of channels, and patterns among them that match some.
const CHANNELS: &[&str] = &["news", "news", "weather", "n?ws", "n*", "[nw]e*", "", "a\u{ff}"];

/// Events of keys. `e` is left out: what is evicted is chosen at random.
const EVENTS: &[&str] =
    &["__key*__:*", "__keyspace@0__:*", "__keyevent@0__:*", "__keyevent@0__:del", "__keyspace@0__:s1"];

impl Grammar {
    /// Publishing to nobody, and asking who listens.
    pub(super) fn published(&mut self) -> (Words, Compare) {
        let all = match self.random.below(8) {
            0 | 1 => words(&[b"PUBLISH", &self.from(CHANNELS), &self.value()]),
            2 => words(&[b"SPUBLISH", &self.from(CHANNELS), &self.value()]),
            3 => words(&[b"PUBSUB", &self.from(&["CHANNELS", "SHARDCHANNELS"]), &self.from(CHANNELS)]),
            4 => {
                words(&[b"PUBSUB", &self.from(&["NUMSUB", "SHARDNUMSUB"]), &self.from(CHANNELS), &self.from(CHANNELS)])
            }
            5 => words(&[b"PUBSUB", &self.from(&["NUMPAT", "NUMPAT", "CHANNELS", "NUMSUB", "x"])]),
            // Confirmed once each, so that there is one reply; of none there is to subscribe to, nothing is left behind.
            6 => words(&[&self.from(&["UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"]), &self.from(CHANNELS)]),
            _ => words(&[&self.from(&["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "PUBLISH", "SPUBLISH"])]),
        };
        (all, Compare::Bytes)
    }

    /// Somebody listens while others act.
    pub(super) fn listened_to(&mut self) -> Operation {
        match self.random.below(5) {
            0 => self.subscribed(),
            1 | 2 => self.cached(),
            _ => self.notified(),
        }
    }

    fn subscribed(&mut self) -> Operation {
        // One pattern: of several that match, the order is no order.
        let mut listener = vec![words(&[b"PSUBSCRIBE", &self.from(CHANNELS)])];
        for _ in 0..=self.random.below(4) {
            let name = self.from(&["SUBSCRIBE", "SUBSCRIBE", "SUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE"]);
            let mut all = words(&[&name]);
            (0..=self.random.below(2)).for_each(|_| all.push(self.from(CHANNELS)));
            listener.push(all);
        }
        if self.random.one_in(4) {
            listener.push(words(&[&self.from(&["GET", "PING", "RESET", "PING x"])]));
        }
        let actions = (0..=self.random.below(5))
            .map(|_| match self.random.below(5) {
                0 => words(&[b"SPUBLISH", &self.from(CHANNELS), &self.value()]),
                1 => words(&[b"PUBSUB", b"NUMSUB", &self.from(CHANNELS), &self.from(CHANNELS)]),
                _ => words(&[b"PUBLISH", &self.from(CHANNELS), &self.value()]),
            })
            .collect();
        Operation::Listen { client: self.client, listener, actions }
    }

    fn actions(&mut self) -> Vec<Words> {
        let mut actions: Vec<Words> = (0..=self.random.below(6)).map(|_| self.shared_as_told()).collect();
        if self.random.one_in(4) {
            actions.insert(0, words(&[b"MULTI"]));
            actions.push(words(&[b"EXEC"]));
        }
        actions
    }

    fn notified(&mut self) -> Operation {
        let pattern = self.from(EVENTS);
        let listener = vec![words(&[b"PSUBSCRIBE", &pattern])];
        Operation::Listen { client: self.client, listener, actions: self.actions() }
    }

    /// Tracks what it reads, or prefixes. In RESP2 nobody is told without a redirection; the refusal is compared.
    fn cached(&mut self) -> Operation {
        let mut tracking = words(&[b"CLIENT", b"TRACKING", b"ON"]);
        for _ in 0..self.random.below(3) {
            match self.random.below(6) {
                0 => tracking.extend(words(&[b"BCAST"])),
                1 => tracking.extend(words(&[b"BCAST", b"PREFIX", &self.from(&["s", "h", "lst", "", "set"])])),
                2 => tracking.push(b"OPTIN".to_vec()),
                3 => tracking.push(b"OPTOUT".to_vec()),
                4 => tracking.push(b"NOLOOP".to_vec()),
                _ => tracking.extend(words(&[b"PREFIX", &self.from(&["a", "b"])])),
            }
        }
        let mut listener = vec![tracking];
        for _ in 0..=self.random.below(4) {
            if self.random.one_in(4) {
                listener.push(words(&[b"CLIENT", b"CACHING", &self.from(&["YES", "NO", "x"])]));
            }
            listener.push(self.shared_as_told());
        }
        listener.push(words(&[b"CLIENT", b"TRACKINGINFO"]));
        Operation::Listen { client: self.client, listener, actions: self.actions() }
    }

    /// A command of any group whose whole reply and effect both servers have.
    pub(super) fn shared_as_told(&mut self) -> Words {
        loop {
            let (words, compare) = self.shared();
            if compare == Compare::Bytes && !self.is_private(&words) && !is_set_at(&words) {
                return words;
            }
        }
    }

    /// Whether a command belongs to the connection, changes how others are compared, or tells more than the keys.
    fn is_private(&self, words: &Words) -> bool {
        const PRIVATE: [&[u8]; 15] = [
            b"SELECT",
            b"CONFIG",
            b"CLIENT",
            b"RESET",
            b"HELLO",
            b"AUTH",
            b"UNSUBSCRIBE",
            b"PUNSUBSCRIBE",
            b"SUNSUBSCRIBE",
            b"FUNCTION",
            b"MULTI",
            b"EXEC",
            b"DISCARD",
            b"WATCH",
            b"UNWATCH",
        ];
        PRIVATE.contains(&words[0].as_slice()) || (self.dialect == Dialect::Valkey91 && !valkey::notifies_alike(words))
    }
}

//! Keyspace events become messages (<https://redis.io/docs/latest/develop/pubsub/keyspace-notifications/>).
//!
//! ```text
//! __keyspace@<database>__:<key>     says the event      with K in notify-keyspace-events
//! __keyevent@<database>__:<event>   says the key        with E
//! ```
//!
//! Storage has noted events of the classes that are wanted; they are told as soon as the command that caused them has run, while
//! its shards are still held, so that the events of a key come in the order of its changes. They do not wait for the log: a
//! subscriber who asks for the key then waits for it.

use crate::client::Client;
use crate::configuration::Live;
use crate::node::Node;
use simurgh_storage::{Class, Effects};

impl Node {
    /// Tells the events that lie in `effects`; whether the client `sender` hears any of them.
    #[cold]
    pub(crate) fn tell_events(&self, live: &Live, effects: &mut Effects, sender: u64) -> bool {
        let (wanted, mut to_sender) = (live.storage.events, false);
        for event in effects.events.drain(..) {
            if self.pubsub.is_silent() {
                continue;
            }
            let mut tell = |kind: &str, about: &[u8], message: &[u8]| {
                let channel = [format!("__{kind}@{}__:", event.database).as_bytes(), about].concat();
                to_sender |= self.publish(&live.config, &channel, message, sender).to_sender;
            };
            if wanted.meets(Class::KEYSPACE) {
                tell("keyspace", &event.key, event.name.as_bytes());
            }
            if wanted.meets(Class::KEYEVENT) {
                tell("keyevent", event.name.as_bytes(), &event.key);
            }
        }
        to_sender
    }
}

impl Client {
    /// Tells the events of the command that has just run.
    #[cold]
    pub(crate) fn tell_events(&mut self) {
        let (node, live, id) = (self.node.clone(), self.live().clone(), self.shared.id);
        if node.tell_events(&live, self.effects(), id) {
            self.expect_pushes();
        }
    }
}

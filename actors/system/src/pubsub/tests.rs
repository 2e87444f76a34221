//! The registry by itself: who is counted where, and what goes when its last subscriber does.

use super::*;
use simurgh_kernel::net::{Address, PeerAddress};

fn client(id: u64) -> Arc<ClientShared> {
    let address = |text: &str| Address::Tcp(text.parse().expect("an address"));
    let address = PeerAddress { remote: address("127.0.0.1:50000"), local: address("127.0.0.1:6379") };
    Arc::new(ClientShared::new(id, address, 0, 0))
}

#[test]
fn subscriptions_are_counted_once_and_gone_with_the_last_subscriber() {
    let (pubsub, hasher, one, other) = (PubSub::default(), KeyHasher::new(1), client(1), client(2));
    for kind in [Kind::Channel, Kind::Pattern, Kind::ShardChannel] {
        assert!(pubsub.subscribe(&hasher, kind, b"a", &one));
        assert!(!pubsub.subscribe(&hasher, kind, b"a", &one));
        assert!(pubsub.subscribe(&hasher, kind, b"a", &other));
        assert!(pubsub.subscribe(&hasher, kind, b"b", &other));
        assert_eq!((pubsub.count(kind), pubsub.subscribers(&hasher, kind, b"a")), (2, 2));
        assert!(!pubsub.unsubscribe(&hasher, kind, b"b", &one));
        assert!(pubsub.unsubscribe(&hasher, kind, b"a", &one));
        assert_eq!((pubsub.count(kind), pubsub.subscribers(&hasher, kind, b"a")), (2, 1));
    }
    assert_eq!((other.subscriptions.told(Kind::Pattern), other.subscriptions.told(Kind::ShardChannel)), (4, 2));
    assert!(!one.subscriptions.any() && !pubsub.is_silent());
    pubsub.unsubscribe_all(&hasher, &other);
    assert!(!other.subscriptions.any() && pubsub.is_silent());
    assert_eq!(pubsub.count(Kind::ShardChannel), 0);
}

#[test]
fn names_are_listed_in_order_whatever_their_part() {
    let (pubsub, hasher, one) = (PubSub::default(), KeyHasher::new(1), client(1));
    for number in (0..300).rev() {
        pubsub.subscribe(&hasher, Kind::Channel, format!("c{number:03}").as_bytes(), &one);
    }
    let names = pubsub.names(Kind::Channel, Some(&Glob::new(b"c1*")));
    let expected: Vec<Name> = (100..200).map(|number| format!("c{number}").into_bytes().into()).collect();
    assert_eq!(names, expected);
    assert_eq!(pubsub.names(Kind::Channel, None).len(), 300);
}

#[test]
fn a_message_is_one_push() {
    let Push::Message(bytes) = encode(&[b"pmessage", b"n*", b"news", b"hi"]) else { panic!("no message") };
    assert_eq!(&bytes[..], b">4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$4\r\nnews\r\n$2\r\nhi\r\n");
}

//! The addresses that a server listens on change while it runs.

use simurgh_tests::client::Client;
use simurgh_tests::resp::Value;
use simurgh_tests::server::{Program, Server, is_ours_built};
use std::net::{SocketAddr, TcpListener, TcpStream};

const OK: fn() -> Value = || Value::Simple(b"OK".to_vec());

fn free_port() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port().to_string();
    (listener, port)
}

fn at(port: &str) -> SocketAddr {
    format!("127.0.0.1:{port}").parse().expect("an address")
}

fn config(client: &mut Client, words: &[&str]) -> Value {
    let words: Vec<&str> = ["CONFIG", "SET"].iter().chain(words).copied().collect();
    client.ask(&words).expect("a reply")
}

/// The reply to CONFIG SET, as Redis 8.2.3 has it, when an address cannot be bound.
fn refused(key: &str, why: &str) -> Value {
    Value::Error(format!("ERR CONFIG SET failed (possibly related to argument '{key}') - {why}").into_bytes())
}

#[test]
fn port_and_bind_change_while_clients_stay() {
    if !is_ours_built() {
        return;
    }
    let server = Server::start(&Program::Ours, &[]).expect("the server starts");
    let mut client = Client::connect(server.address).expect("it listens");
    let (listener, taken) = free_port();
    assert_eq!(
        config(&mut client, &["port", &taken]),
        refused("port", "Unable to listen on this port. Check server logs.")
    );
    assert!(TcpStream::connect(server.address).is_ok(), "it listens where it did");
    drop(listener);
    // All or nothing: what comes with it is not set either.
    let (_listener, occupied) = free_port();
    config(&mut client, &["maxclients", "500", "port", &occupied]);
    let shown = client.ask(&["CONFIG", "GET", "maxclients"]).expect("a reply");
    assert_ne!(shown, Value::Array(vec![Value::Bulk(b"maxclients".to_vec()), Value::Bulk(b"500".to_vec())]));

    assert_eq!(config(&mut client, &["port", &taken]), OK());
    assert!(TcpStream::connect(server.address).is_err(), "the old port is given up");
    let mut second = Client::connect(at(&taken)).expect("it listens at the new port");
    assert_eq!(client.ask(&["PING"]).expect("a reply"), Value::Simple(b"PONG".to_vec()), "who was connected stays");

    for wrong in ["999.9.9.9", "203.0.113.5"] {
        assert_eq!(config(&mut second, &["bind", wrong]), refused("bind", "Failed to bind to specified addresses."));
        assert!(TcpStream::connect(at(&taken)).is_ok(), "it listens where it did");
    }
    for bind in ["* -::*", "127.0.0.1 -203.0.113.5", "*", "127.0.0.1"] {
        assert_eq!(config(&mut second, &["bind", bind]), OK(), "{bind}");
        assert!(Client::connect(at(&taken)).is_ok(), "{bind}");
    }
    assert_eq!(config(&mut second, &["bind", "-203.0.113.5"]), OK());
    assert!(TcpStream::connect(at(&taken)).is_err(), "nothing is listened on");
    assert_eq!(config(&mut second, &["bind", "127.0.0.1"]), OK());
    assert!(Client::connect(at(&taken)).is_ok());
}

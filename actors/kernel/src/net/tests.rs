//! The streams' promises, on real sockets.

use super::*;
use crate::core;

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

async fn pair(listener: &Listener) -> (Stream, Stream, PeerAddress) {
    let client = match listener.local_address().unwrap() {
        Address::Tcp(address) => connect_tcp(address).await.unwrap(),
        Address::Unix(path) => connect_unix(&path).await.unwrap(),
    };
    let (incoming, addresses) = listener.accept().await.unwrap();
    (client, incoming.open().unwrap(), addresses)
}

#[test]
fn bytes_cross_in_order_and_the_end_is_seen() {
    core::run(async {
        let listener = Listener::bind_tcp(loopback(), 16).unwrap();
        let (mut client, mut served, addresses) = pair(&listener).await;
        assert_eq!(addresses.remote, client.local_address().unwrap());
        assert_eq!(addresses.local, client.remote_address().unwrap());
        assert!(addresses.remote.is_local());
        served.set_nodelay(true).unwrap();
        served.set_keepalive(300).unwrap();
        served.set_keepalive(0).unwrap();
        client.write_all(b"PING\r\n").await.unwrap();
        let mut buffer = Vec::with_capacity(64);
        buffer.extend_from_slice(b"kept ");
        let start = buffer.as_ptr();
        assert_eq!(served.read_into(&mut buffer).await.unwrap(), 6);
        assert_eq!(buffer, b"kept PING\r\n");
        assert_eq!(buffer.as_ptr(), start, "read into the spare room, not into another vector");
        client.shutdown().await.unwrap();
        assert_eq!(served.read_into(&mut buffer).await.unwrap(), 0);
    })
    .unwrap();
}

#[test]
fn c20_unix_socket_has_its_permissions_and_its_name() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s").to_str().unwrap().to_owned();
    core::run(async {
        for _ in 0..2 {
            // The second round replaces the file that the first left behind.
            let listener = Listener::bind_unix(&path, Some(0o700), 16).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
            let (_client, _served, addresses) = pair(&listener).await;
            assert_eq!(addresses.remote.to_string(), format!("{path}:0"));
        }
        Listener::bind_unix(&path, None, 16).unwrap().close().unwrap();
        assert!(!std::path::Path::new(&path).exists());
    })
    .unwrap();
}

#[test]
fn a_file_that_is_no_socket_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("precious");
    #[allow(clippy::disallowed_methods)]
    std::fs::write(&path, b"data").unwrap();
    core::run(async {
        assert!(Listener::bind_unix(path.to_str().unwrap(), None, 16).is_err());
    })
    .unwrap();
    assert!(path.exists());
}

#[test]
fn addresses_read_as_in_redis() {
    assert_eq!(Address::Tcp("127.0.0.1:1234".parse().unwrap()).to_string(), "127.0.0.1:1234");
    assert_eq!(Address::Tcp("[::1]:1234".parse().unwrap()).to_string(), "[::1]:1234");
    assert!(Address::Tcp("[::ffff:127.0.0.1]:1".parse().unwrap()).is_local());
    assert!(!Address::Tcp("10.0.0.1:1".parse().unwrap()).is_local());
}

#[test]
fn a_stopped_listener_accepts_nobody_and_frees_its_address() {
    core::run(async {
        let listener = Listener::bind_tcp(loopback(), 16).unwrap();
        let (_client, _served, _) = pair(&listener).await;
        let Address::Tcp(address) = listener.local_address().unwrap() else { panic!("a TCP address") };
        assert!(Listener::bind_tcp(address, 16).is_err(), "taken");
        listener.stop().unwrap();
        assert!(listener.accept().await.is_err());
        assert!(connect_tcp(address).await.is_err());
        let next = Listener::bind_tcp(address, 16).unwrap();
        let (_client, _served, _) = pair(&next).await;
    })
    .unwrap();
}

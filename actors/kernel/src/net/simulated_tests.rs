//! The simulated network does to its users what a real one does, and tells each from the other.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::faults::Faults;
use super::{Listener, ReadExt, Stream, WriteExt, connect_tcp, wires};
use crate::simulation::{Machine, run};
use crate::time;

const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

fn calm() -> Faults {
    Faults { latency_ns: 1_000_000..2_000_000, short_one_in: 0, ..Faults::default() }
}

fn address() -> SocketAddr {
    SocketAddr::new(SERVER, 1)
}

fn milliseconds() -> u64 {
    time::monotonic_ns() / 1_000_000
}

/// A server that does as told with each connection, and a client.
fn with_server<S, C>(seed: u64, faults: Faults, serve: impl FnOnce(Stream) -> S + Send + 'static, client: C)
where
    S: Future<Output = ()> + Send + 'static,
    C: AsyncFnOnce(Machine),
{
    run(seed, faults, || async move {
        let server = Machine::new("server", SERVER);
        let mut serving = Some(server.spawn(async move {
            let listener = Listener::bind_tcp(address(), 16).unwrap();
            let (incoming, _) = listener.accept().await.unwrap();
            serve(incoming.open().unwrap()).await;
            std::future::pending::<()>().await;
        }));
        let machine = Machine::new("client", CLIENT);
        // The client runs here, with the address of its machine.
        wires::register(madsim::plugin::node(), CLIENT);
        client(server).await;
        drop((serving.take(), machine));
    });
}

#[test]
fn a_writer_waits_for_a_reader_who_does_not_read() {
    let faults = Faults { window_bytes: 1000..1001, ..calm() };
    with_server(
        1,
        faults,
        |mut stream| async move {
            time::sleep(Duration::from_secs(5)).await;
            let mut bytes = Vec::new();
            while stream.read_into(&mut bytes).await.unwrap() > 0 {}
            assert_eq!(bytes, vec![7; 10_000]);
        },
        async |_| {
            let mut stream = connect_tcp(address()).await.unwrap();
            stream.write_all(&[7; 1000]).await.unwrap();
            assert!(milliseconds() < 100);
            stream.write_all(&[7; 9000]).await.unwrap();
            assert!(milliseconds() > 4900, "only when it was read");
            assert!(wires::counts().full_pipes > 0);
            stream.shutdown().await.unwrap();
            time::sleep(Duration::from_secs(1)).await;
        },
    );
}

#[test]
fn one_direction_ends_and_the_other_goes_on() {
    with_server(
        2,
        calm(),
        |mut stream| async move {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await.unwrap();
            stream.write_all(&bytes).await.unwrap();
        },
        async |_| {
            let mut stream = connect_tcp(address()).await.unwrap();
            stream.write_all(b"last words").await.unwrap();
            stream.shutdown().await.unwrap();
            assert_eq!(stream.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await.unwrap();
            assert_eq!(bytes, b"last words");
        },
    );
}

#[test]
fn a_killed_process_is_told_at_once_and_a_lost_machine_late() {
    for (loses_power, told_ms) in [(false, 0..100), (true, 150..4000)] {
        with_server(
            3,
            calm(),
            |stream| async move {
                let _held = stream;
                std::future::pending::<()>().await;
            },
            async move |server| {
                let mut stream = connect_tcp(address()).await.unwrap();
                time::sleep(Duration::from_millis(20)).await;
                let began = milliseconds();
                if loses_power {
                    server.lose_power();
                } else {
                    server.kill();
                }
                let read = stream.read(&mut [0; 10]).await;
                assert!(matches!(read, Ok(0)) != loses_power, "{read:?}");
                assert!(told_ms.contains(&(milliseconds() - began)), "{} ms", milliseconds() - began);
                assert_eq!(connect_tcp(address()).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
            },
        );
    }
}

#[test]
fn who_writes_to_a_closed_socket_is_reset() {
    with_server(
        4,
        calm(),
        |stream| async move { drop(stream) },
        async |_| {
            let mut stream = connect_tcp(address()).await.unwrap();
            assert_eq!(stream.read(&mut [0; 10]).await.unwrap(), 0);
            stream.write_all(b"late").await.unwrap();
            time::sleep(Duration::from_millis(20)).await;
            assert_eq!(stream.write(b"later").await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        },
    );
}

#[test]
fn a_cut_holds_up_one_direction_until_it_heals() {
    with_server(
        5,
        calm(),
        |mut stream| async move {
            let mut bytes = [0; 1];
            while stream.read_exact(&mut bytes).await.is_ok() {
                stream.write_all(&bytes).await.unwrap();
            }
        },
        async |_| {
            let mut stream = connect_tcp(address()).await.unwrap();
            wires::cut(SERVER, CLIENT, time::monotonic_ns() + 2_000_000_000);
            stream.write_all(b"x").await.unwrap();
            stream.read_exact(&mut [0; 1]).await.unwrap();
            assert!((1900..2500).contains(&milliseconds()), "{} ms", milliseconds());
            assert!(wires::counts().held_up > 0);
            // Who connects while the way there is cut waits for it, too.
            wires::cut(CLIENT, SERVER, time::monotonic_ns() + 3_000_000_000);
            let began = milliseconds();
            connect_tcp(address()).await.unwrap();
            assert!(milliseconds() - began > 2900);
        },
    );
}

#[test]
fn resets_silence_and_hanging_connects_are_told_from_each_other() {
    let echo = |mut stream: Stream| async move {
        let mut bytes = [0; 1];
        while stream.read_exact(&mut bytes).await.is_ok() {}
    };
    with_server(6, Faults { reset_one_in: 1, ..calm() }, echo, async |_| {
        let mut stream = connect_tcp(address()).await.unwrap();
        stream.write_all(b"x").await.unwrap();
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(wires::counts().resets, 1);
    });
    with_server(7, Faults { silence_one_in: 1, ..calm() }, echo, async |_| {
        let mut stream = connect_tcp(address()).await.unwrap();
        stream.write_all(b"x").await.unwrap();
        let waited = time::timeout(Duration::from_secs(1000), stream.read(&mut [0; 1])).await;
        assert!(waited.is_err() && stream.is_silent());
    });
    with_server(8, Faults { hang_one_in: 1, ..calm() }, echo, async |_| {
        assert!(time::timeout(Duration::from_secs(1000), connect_tcp(address())).await.is_err());
        assert_eq!(wires::counts().hangs, 1);
    });
}

#[test]
fn wall_clocks_differ_drift_and_step_and_monotonic_time_does_not() {
    run(9, calm(), || async {
        let (one, other) = (Machine::new("one", SERVER), Machine::new("other", CLIENT));
        one.step_clock(5_000_000, 1000);
        assert_eq!(one.wall_ms() - other.wall_ms(), 5000);
        time::sleep(Duration::from_secs(100)).await;
        assert_eq!(one.wall_ms() - other.wall_ms(), 5100);
        one.step_clock(-10_000_000, 0);
        time::sleep(Duration::from_secs(100)).await;
        assert_eq!(one.wall_ms() - other.wall_ms(), -4900);
        let own = one.spawn(async { (time::wall_ms(), time::monotonic_ns()) }).output().await.unwrap();
        assert!((own.0 - one.wall_ms()).abs() <= 1 && (200_000_000_000..201_000_000_000).contains(&own.1));
    });
}

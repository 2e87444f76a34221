//! Tests of the request parser: texts of errors, splits at every byte, hostile lengths.

use super::*;
use proptest::prelude::*;

const LIMITS: Limits = Limits { bulk_max: 512 << 20, unauthenticated: false };

/// Parses everything in `pieces`, fed one after another, as a connection would; requests as owned words.
fn parse(pieces: &[&[u8]], limits: Limits) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
    let (mut buffer, mut start, mut parser) = (Vec::new(), 0, RequestParser::default());
    let mut requests = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let mut ranges = Vec::new();
            match parser.next(&buffer, start, &mut ranges, limits) {
                Err(error) => return (requests, Some(error)),
                Ok(Progress::Incomplete) => break,
                Ok(Progress::Request(request)) => {
                    let args = request.args(&buffer, &ranges);
                    if request.args_count > 0 {
                        requests.push(args.from(0).map(<[u8]>::to_vec).collect());
                    }
                    start = request.end;
                }
                Ok(Progress::Inline { start: from, length, end }) => {
                    let mut scratch = Vec::new();
                    match RequestParser::inline(&buffer[from..from + length], &mut scratch, &mut ranges) {
                        Err(error) => return (requests, Some(error)),
                        Ok(None) => {}
                        Ok(Some(request)) => {
                            requests.push(request.args(&scratch, &ranges).from(0).map(<[u8]>::to_vec).collect());
                        }
                    }
                    start = end;
                }
            }
        }
        // What a connection does between reads.
        buffer.drain(..start);
        start = 0;
    }
    (requests, None)
}

fn words(request: &[&str]) -> Vec<Vec<u8>> {
    request.iter().map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn requests_split_at_every_byte_are_the_same() {
    let bytes: &[u8] = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*0\r\n*-1\r\nset 'a b' \"c\\x41\"\r\n\r\n*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\n\r\n\r\n\r\nPING\n";
    let whole = parse(&[bytes], LIMITS);
    assert_eq!(
        whole.0,
        [words(&["GET", "k"]), words(&["set", "a b", "cA"]), words(&["SET", "", "\r\n\r\n"]), words(&["PING"])]
    );
    for cut in 0..bytes.len() {
        assert_eq!(parse(&[&bytes[..cut], &bytes[cut..]], LIMITS), whole, "cut at {cut}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(parse(&single, LIMITS), whole);
}

/// C1: any length field, however hostile, gives Redis's error and reserves nothing.
#[test]
fn c1_hostile_lengths_are_refused() {
    let cases: &[(&str, ProtocolError)] = &[
        ("*2147483648\r\n", ProtocolError::Count),
        ("*9223372036854775808\r\n", ProtocolError::Count),
        ("*+1\r\n", ProtocolError::Count),
        ("*01\r\n", ProtocolError::Count),
        ("*\r\n", ProtocolError::Count),
        ("*abc\r\n", ProtocolError::Count),
        ("*1\r\n$-1\r\n", ProtocolError::Bulk),
        ("*1\r\n$536870913\r\n", ProtocolError::Bulk),
        ("*1\r\n$4294967296\r\n", ProtocolError::Bulk),
        ("*1\r\n$00\r\n", ProtocolError::Bulk),
        ("*1\r\n$\r\n", ProtocolError::Bulk),
        ("*1\r\nPING\r\n", ProtocolError::ExpectedBulk(b'P')),
        ("*1\r\n\r\n", ProtocolError::ExpectedBulk(b'\r')),
        ("set 'a\r\n", ProtocolError::UnbalancedQuotes),
    ];
    for (text, error) in cases {
        assert_eq!(parse(&[text.as_bytes()], LIMITS).1, Some(*error), "{text:?}");
    }
    let long = vec![b'1'; INLINE_MAX + 1];
    assert_eq!(parse(&[b"*", &long], LIMITS).1, Some(ProtocolError::CountLineTooBig));
    assert_eq!(parse(&[b"*1\r\n$", &long], LIMITS).1, Some(ProtocolError::BulkLineTooBig));
    assert_eq!(parse(&[&long], LIMITS).1, Some(ProtocolError::InlineTooBig));
    assert_eq!(parse(&[b"*2147483647\r\n"], LIMITS).1, None);
}

/// C2: what a client may announce before it has authenticated.
#[test]
fn c2_unauthenticated_limits() {
    let limits = Limits { unauthenticated: true, ..LIMITS };
    assert_eq!(parse(&[b"*11\r\n"], limits).1, Some(ProtocolError::CountUnauthenticated));
    assert_eq!(parse(&[b"*10\r\n"], limits).1, None);
    assert_eq!(parse(&[b"*1\r\n$16385\r\n"], limits).1, Some(ProtocolError::BulkUnauthenticated));
    assert_eq!(parse(&[b"*1\r\n$16384\r\n"], limits).1, None);
}

#[test]
fn only_the_encoders_form_is_canonical() {
    let canonical = |bytes: &[u8]| {
        let mut ranges = Vec::new();
        match RequestParser::default().next(bytes, 0, &mut ranges, LIMITS) {
            Ok(Progress::Request(request)) => request.canonical,
            other => panic!("{other:?}"),
        }
    };
    assert!(canonical(b"*1\r\n$4\r\nPING\r\n"));
    assert!(!canonical(b"*1\rx$4\r\nPING\r\n"));
    assert!(!canonical(b"*1\r\n$4\rxPING\r\n"));
    assert!(!canonical(b"*1\r\n$4\r\nPINGxx"));
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..300) {
        let cut = cut.min(bytes.len());
        let whole = parse(&[&bytes], LIMITS);
        prop_assert_eq!(parse(&[&bytes[..cut], &bytes[cut..]], LIMITS).0, whole.0);
    }

    #[test]
    fn encoded_requests_come_back(requests in proptest::collection::vec(
        proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 1..6), 0..8), cut in 0usize..400) {
        let mut bytes = Vec::new();
        for request in &requests {
            super::super::reply::write_header(&mut bytes, b'*', request.len());
            for word in request {
                super::super::reply::write_header(&mut bytes, b'$', word.len());
                bytes.extend_from_slice(word);
                bytes.extend_from_slice(b"\r\n");
            }
        }
        let cut = cut.min(bytes.len());
        prop_assert_eq!(parse(&[&bytes[..cut], &bytes[cut..]], LIMITS), (requests, None));
    }
}

/// The short way reads what the long way reads, and leaves alone what it cannot.
#[test]
fn the_short_way_and_the_long_way_agree() {
    let requests: &[&[u8]] = &[
        b"*1\r\n$4\r\nPING\r\n",
        b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n",
        b"*2\r\n$3\r\nGET\r\n$12\r\n0123456789ab\r\n",
        b"*2\r\n$03\r\nGET\r\n$1\r\nk\r\n",
        b"*2\r\n$3\r\nGET\r\n$1\r\nk\rX",
        b"*2\r\n$3\r\nGET\r\n$1\rXk\r\n",
        b"*2\n$3\r\nGET\r\n$1\r\nk\r\n",
        b"*0\r\n",
        b"*00\r\n",
        b"*1\r\n$-1\r\n",
    ];
    let mut long = b"*2\r\n$3\r\nGET\r\n$999\r\n".to_vec();
    long.extend_from_slice(&[b'x'; 999]);
    long.extend_from_slice(b"\r\n");
    let mut longer = b"*2\r\n$3\r\nGET\r\n$1000\r\n".to_vec();
    longer.extend_from_slice(&[b'x'; 1000]);
    longer.extend_from_slice(b"\r\n");
    for bytes in requests.iter().copied().chain([&long[..], &longer[..]]) {
        let read = |first: usize| {
            let (mut parser, mut ranges) = (RequestParser::default(), Vec::new());
            // A parser that has begun a request goes the long way to its end.
            match parser.next(&bytes[..first], 0, &mut ranges, LIMITS) {
                Ok(Progress::Incomplete) => {}
                done => return (done, ranges),
            }
            let done = parser.next(bytes, 0, &mut ranges, LIMITS);
            (done, ranges)
        };
        assert_eq!(read(bytes.len()), read(bytes.len() - 1), "{}", bytes[..20.min(bytes.len())].escape_ascii());
    }
}

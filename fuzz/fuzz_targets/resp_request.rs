//! The request parser: a stream split at any byte gives the requests, or the error, that it gives as a whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simurgh_protocol::resp::{Limits, Progress, ProtocolError, RequestParser};

type Requests = Vec<Vec<Vec<u8>>>;

/// Feeds a buffer that grows to each of `lengths` in turn.
fn parse(bytes: &[u8], lengths: &[usize], limits: Limits) -> (Requests, Option<ProtocolError>) {
    let mut parser = RequestParser::default();
    let mut requests = Requests::new();
    let mut start = 0;
    for &length in lengths {
        loop {
            let mut ranges = Vec::new();
            match parser.next(&bytes[..length], start, &mut ranges, limits) {
                Err(error) => return (requests, Some(error)),
                Ok(Progress::Incomplete) => break,
                Ok(Progress::Request(request)) => {
                    let args = request.args(&bytes[..length], &ranges);
                    requests.push(args.from(0).map(<[u8]>::to_vec).collect());
                    start = request.end;
                }
                Ok(Progress::Inline { start: line, length, end }) => {
                    let mut buffer = Vec::new();
                    match RequestParser::inline(&bytes[line..line + length], &mut buffer, &mut ranges) {
                        Err(error) => return (requests, Some(error)),
                        Ok(None) => {}
                        Ok(Some(request)) => {
                            requests.push(request.args(&buffer, &ranges).from(0).map(<[u8]>::to_vec).collect());
                        }
                    }
                    start = end;
                }
            }
        }
    }
    (requests, None)
}

fuzz_target!(|input: (bool, u16, &[u8])| {
    let (unauthenticated, cut, bytes) = input;
    let limits = Limits { bulk_max: 1 << 20, unauthenticated };
    let cut = usize::from(cut) % (bytes.len() + 1);
    let whole = parse(bytes, &[bytes.len()], limits);
    assert_eq!(whole, parse(bytes, &[cut, bytes.len()], limits));
    let every_byte: Vec<usize> = (0..=bytes.len()).collect();
    assert_eq!(whole, parse(bytes, &every_byte, limits));
});

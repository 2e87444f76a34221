//! Transfers that go on until they are complete: a system call may move less than it was asked to, or be interrupted before
//! it has moved anything, and neither is an error. The plain disk and the simulated one go through the same loops, so the
//! simulator's short and interrupted calls try what production runs.

use std::io::{self, ErrorKind};

/// Writes all of `bytes` at `offset` by calls that may each write a part.
///
/// # Errors
/// What a call fails with, but for interruptions; [`ErrorKind::WriteZero`] when one writes nothing and says that all is well.
pub fn write_all(
    mut bytes: &[u8],
    mut offset: u64,
    mut write_at: impl FnMut(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match write_at(bytes, offset) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads `length` bytes from `offset`, or fewer where the file ends, by calls that may each read a part.
///
/// # Errors
/// What a call fails with, but for interruptions.
pub fn read_all(
    offset: u64,
    length: usize,
    mut read_at: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut done = 0;
    while done < length {
        match read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call that moves one, two or three bytes, and is interrupted every other time.
    fn part(calls: &mut usize, length: usize) -> io::Result<usize> {
        *calls += 1;
        if calls.is_multiple_of(2) { Err(ErrorKind::Interrupted.into()) } else { Ok(length.min(*calls % 3 + 1)) }
    }

    #[test]
    fn d4_short_and_interrupted_writes_are_continued_where_they_stopped() {
        let (mut calls, mut file) = (0, vec![0; 3]);
        write_all(b"a longer text", 3, |bytes, offset| {
            let length = part(&mut calls, bytes.len())?;
            assert_eq!(offset, file.len() as u64);
            file.extend_from_slice(&bytes[..length]);
            Ok(length)
        })
        .unwrap();
        assert_eq!(&file[3..], b"a longer text");
        assert!(calls > 6);
    }

    #[test]
    fn d4_a_write_that_stops_or_fails_is_an_error() {
        assert_eq!(write_all(b"x", 0, |_, _| Ok(0)).unwrap_err().kind(), ErrorKind::WriteZero);
        let full =
            write_all(b"xy", 0, |_, offset| if offset == 0 { Ok(1) } else { Err(ErrorKind::StorageFull.into()) });
        assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);
        write_all(b"", 0, |_, _| Ok(0)).unwrap();
    }

    #[test]
    fn d4_short_and_interrupted_reads_are_continued_to_the_end_of_the_file() {
        let file = b"0123456789";
        for (offset, length, expected) in [(0, 10, &file[..]), (2, 5, &file[2..7]), (8, 100, &file[8..]), (20, 5, b"")]
        {
            let mut calls = 0;
            let read = read_all(offset, length, |bytes, offset| {
                let rest = file.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
                let length = part(&mut calls, bytes.len().min(rest.len()))?;
                bytes[..length].copy_from_slice(&rest[..length]);
                Ok(length)
            });
            assert_eq!(read.unwrap(), expected);
        }
        let failed = read_all(0, 4, |_, offset| if offset == 0 { Ok(2) } else { Err(ErrorKind::InvalidData.into()) });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::InvalidData);
    }
}

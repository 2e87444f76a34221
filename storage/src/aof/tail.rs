//! What can be told from the bytes after the last good seal: whether seals are among them, and what they say was synced;
//! and whether sectors are missing.

use super::seal::{self, Annotation, LINE_BYTES_MAX, SEAL_PREFIX};

/// The unit in which a disk keeps or loses what was written.
const SECTOR_BYTES: u64 = 512;

/// Looks for seals, in pieces, in bytes that do not read as a log any more.
///
/// A seal counts when its own check fits and its position is after that of the last good seal, wherever it stands: the
/// line feed before it may be the damaged byte, and bytes before it may be missing. A value that holds the text of a log
/// can deceive the search, but only to refuse a file that might have been cut, never the other way.
#[derive(Debug, Clone)]
pub(super) struct SealSearch {
    /// Log position of the last good seal.
    position: u64,
    /// The last bytes, in which a line may have begun.
    window: Vec<u8>,
    /// A seal was found.
    pub found: bool,
    /// A seal was found that says that bytes after the last good seal had been synced.
    pub synced_past: bool,
}

impl SealSearch {
    /// A search after the seal where the log stood at `position`.
    pub fn new(position: u64) -> Self {
        Self { position, window: Vec::new(), found: false, synced_past: false }
    }

    /// Looks at the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        // In pieces, so that the window stays small.
        for piece in bytes.chunks(64 * 1024) {
            self.window.extend_from_slice(piece);
            self.look();
            let done = self.window.len().saturating_sub(LINE_BYTES_MAX);
            self.window.drain(..done);
        }
    }

    fn look(&mut self) {
        for at in memchr::memmem::find_iter(&self.window, SEAL_PREFIX) {
            let line = &self.window[at..];
            let Some(end) = memchr::memchr(b'\n', line) else { continue };
            let Annotation::Seal(seal) = seal::parse(&line[..=end]) else { continue };
            if seal.position >= self.position {
                self.found = true;
                self.synced_past |= seal.synced > self.position;
            }
        }
    }
}

/// Where the first sector of which nothing but zeros is there begins, within `bytes` that stand at `offset` of the file.
///
/// After a power loss a file may be as long as its writes made it although some sectors were never written; they read
/// as zeros. Records never hold so regular a hole, but for values that are zeros themselves: those are cut too, which
/// costs nothing that was promised.
pub(super) fn zero_sector(bytes: &[u8], offset: u64) -> Option<u64> {
    let mut at = 0;
    while at < bytes.len() {
        let begin = offset + at as u64;
        let to_boundary = SECTOR_BYTES - begin % SECTOR_BYTES;
        let end = bytes.len().min(at + to_boundary as usize);
        if bytes[at..end].iter().all(|&byte| byte == 0) {
            return Some(begin);
        }
        at = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aof::seal::Sealer;

    fn search(bytes: &[u8], piece: usize) -> (bool, bool) {
        let mut search = SealSearch::new(50);
        bytes.chunks(piece).for_each(|piece| search.feed(piece));
        (search.found, search.synced_past)
    }

    #[test]
    fn finds_seals_however_the_bytes_arrive() {
        let mut bytes = vec![b'x'; 300];
        Sealer::new(100, 7).write_seal(&mut bytes, 60);
        bytes.extend_from_slice(&[b'y'; 200]);
        for piece in [1, 2, 50, 127, 128, 1000] {
            assert_eq!(search(&bytes, piece), (true, true), "{piece}");
        }
    }

    #[test]
    fn a_seal_counts_from_the_last_good_position_on() {
        for (position, synced, expected) in [(49, 49, (false, false)), (50, 50, (true, false)), (51, 51, (true, true))]
        {
            let mut bytes = Vec::new();
            Sealer::new(position, 7).write_seal(&mut bytes, synced);
            assert_eq!(search(&bytes, 1000), expected, "{position}");
            bytes[3] ^= 1;
            assert_eq!(search(&bytes, 1000), (false, false), "{position}");
        }
    }

    #[test]
    fn zero_sectors() {
        let mut bytes = vec![1; 2000];
        bytes[100..700].fill(0);
        assert_eq!(zero_sector(&bytes, 0), None);
        assert_eq!(zero_sector(&bytes, 412), Some(512));
        bytes[512..1024].fill(0);
        assert_eq!(zero_sector(&bytes, 0), Some(512));
        assert_eq!(zero_sector(&[1, 2, 0], 510), Some(512));
        assert_eq!(zero_sector(&[], 5), None);
    }
}

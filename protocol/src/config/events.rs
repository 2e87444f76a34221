//! The letters of `notify-keyspace-events`, and the one spelling of each set of them.
//!
//! `A` stands for all of `g$lshzxetd`. Redis 8.2 does not show `n`, `o` and `c` beside it, though they are in force; so does CONFIG
//! GET, but what is kept, and written by CONFIG REWRITE, has them.

/// The classes that `A` stands for.
const ALL: &[u8] = b"g$lshzxetd";
/// Classes that must be asked for by themselves, and stand behind those.
const MORE: &[u8] = b"noc";
/// Where events are told, and a class that Redis puts behind that.
const LAST: &[u8] = b"KEm";

/// The letters in their order, each once; nothing if one of them is none.
pub(super) fn canonical(letters: &[u8]) -> Option<Vec<u8>> {
    let is_known = |letter: &u8| *letter == b'A' || [ALL, MORE, LAST].iter().any(|part| part.contains(letter));
    if !letters.iter().all(is_known) {
        return None;
    }
    let has = |letter: &u8| letters.contains(letter);
    let mut text = Vec::new();
    if has(&b'A') || ALL.iter().all(has) {
        text.push(b'A');
    } else {
        text.extend(ALL.iter().copied().filter(has));
    }
    text.extend([MORE, LAST].concat().into_iter().filter(has));
    Some(text)
}

/// What CONFIG GET shows of them.
pub(super) fn shown(canonical: &[u8]) -> Vec<u8> {
    let has_all = canonical.contains(&b'A');
    canonical.iter().copied().filter(|letter| !has_all || !MORE.contains(letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Redis 8.2.3 shows so.
    #[test]
    fn the_spelling_is_redis_s() {
        for (letters, expected) in [
            ("", ""),
            ("KEA", "AKE"),
            ("g$lshztxeKE", "g$lshzxetKE"),
            ("g$lshzxetdmKE", "AKEm"),
            ("KEAnmoc", "AKEm"),
            ("Knm", "nKm"),
            ("lnmoc", "lnocm"),
            ("Az", "A"),
            ("KEd", "dKE"),
            ("ng", "gn"),
        ] {
            let canonical = canonical(letters.as_bytes()).expect(letters);
            assert_eq!(String::from_utf8(shown(&canonical)).expect("letters"), expected, "{letters}");
        }
        assert_eq!(canonical(b"KEAn").as_deref(), Some(&b"AnKE"[..]), "nothing is lost");
        assert_eq!((canonical(b"q"), canonical(b"K E")), (None, None));
    }
}

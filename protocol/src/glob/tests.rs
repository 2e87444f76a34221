//! Patterns against known answers, against a naive matcher, and against the clock of work done.

use super::*;
use proptest::prelude::*;

/// The definition, slow and recursive, with the exception for the empty text.
fn defined(pattern: &[u8], text: &[u8], any_case: bool) -> bool {
    if text.is_empty() { pattern.is_empty() || pattern == b"*" } else { naive(pattern, text, any_case) }
}

fn naive(pattern: &[u8], text: &[u8], any_case: bool) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', rest @ ..] => (0..=text.len()).any(|skipped| naive(rest, &text[skipped..], any_case)),
        _ => {
            let mut reader = Reader { rest: pattern, any_case };
            let token = match reader.next() {
                Some(b'?') => Token::Any,
                Some(b'[') => reader.class(),
                Some(b'\\') => reader.next().map_or(Token::Byte(b'\\'), |byte| reader.byte(byte)),
                Some(byte) => reader.byte(byte),
                None => return text.is_empty(),
            };
            text.split_first().is_some_and(|(byte, text)| token.matches(*byte) && naive(reader.rest, text, any_case))
        }
    }
}

/// Asked of Redis 8.2.3 with KEYS.
#[test]
fn answers_of_redis() {
    for (pattern, text, expected) in [
        ("", "", true),
        ("*", "", true),
        ("**", "", false),
        ("***", "abc", true),
        ("a*", "b", false),
        ("h?llo", "hello", true),
        ("h?llo", "hllo", false),
        ("h[ae]llo", "hillo", false),
        ("h[^e]llo", "hallo", true),
        ("h[^e]llo", "hello", false),
        ("h[b-a]llo", "hallo", true),
        ("\\*", "*", true),
        ("\\*", "a", false),
        ("a\\", "a\\", true),
        ("[\\]]", "]", true),
        ("[]", "]", false),
        ("[^]", "x", true),
        ("[abc", "c", true),
        ("[^", "c", true),
        ("[", "[", false),
        ("[a-]", "a", true),
        ("[a-]", "_", true),
        ("[a-]x]", "x", true),
        ("[a-]x]", "ax]", false),
        ("[-a]", "-", true),
        ("a*b*c", "a1b2b3c", true),
        ("a*bc", "abcbd", false),
        ("*ab", "aab", true),
        ("a*a", "a", false),
    ] {
        assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
    }
}

#[test]
fn letters_in_either_case() {
    for (pattern, text, expected) in [
        ("GE*", "get", true),
        ("[G]et", "get", true),
        ("[\\G]et", "get", false),
        ("[A-C]", "b", true),
        ("[Z-a]", "z", false),
        ("_?", "_A", true),
    ] {
        assert_eq!(matches_ignoring_case(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
    }
}

/// CVE-2022-36021 and CVE-2024-31228: each of these would take hours or the stack, and must take next to nothing.
#[test]
fn c13_hostile_patterns_are_cheap() {
    let text = "a".repeat(64 * 1024);
    for pattern in [
        "a*".repeat(32 * 1024) + "b",
        "a*".repeat(20 * 1024) + "b",
        format!("*{}b", "a".repeat(32 * 1024)),
        format!("*{}b*", "a".repeat(32 * 1024)),
        format!("*?{}b*", "a".repeat(32 * 1024)),
        "*?a".repeat(20 * 1024) + "b",
        "*[a]".repeat(16 * 1024) + "b",
        "*".repeat(64 * 1024) + "b",
        "[".repeat(64 * 1024),
    ] {
        assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{}", &pattern[..8]);
    }
    assert!(matches(("a*".repeat(32 * 1024) + "?").as_bytes(), text.as_bytes()));
}

proptest! {
    #[test]
    fn agrees_with_the_definition(pattern in "[ab*?\\[\\]^\\\\A-]{0,9}", text in "[abA\\]\\\\^-]{0,8}", any_case: bool) {
        let glob = Glob::read(pattern.as_bytes(), any_case);
        prop_assert_eq!(glob.matches(text.as_bytes()), defined(pattern.as_bytes(), text.as_bytes(), any_case));
    }

    #[test]
    fn long_pieces_too(piece in "[ab?]{65,140}", before in "[ab]{0,80}", after in "[ab]{0,80}", change in 0..140usize) {
        let mut text = before + &piece.replace('?', "a") + &after;
        if change % 2 == 0 && change < text.len() {
            text.replace_range(change..=change, "b");
        }
        let pattern = format!("*{piece}*");
        prop_assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), naive(pattern.as_bytes(), text.as_bytes(), false));
    }
}

//! Patterns as `KEYS`, `SCAN MATCH` and `CONFIG GET` take them.
//!
//! `*` is any bytes, `?` any byte, `[abc]`, `[a-z]` and `[^a]` one byte of a class, and `\` takes the next byte as it is.
//! A class may stay open at the end of the pattern, and `[z-a]` means `[a-z]`, as in Redis.
//!
//! The matcher never recurses: on a mismatch only the last `*` takes one byte more, since whatever an earlier one could
//! take, the last one can take as well. So the time is at most the product of both lengths, whatever the pattern.

/// Whether `text` as a whole matches `pattern`.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    run(pattern, text, |byte| byte)
}

/// The same, letters of either case being equal.
#[must_use]
pub fn matches_ignoring_case(pattern: &[u8], text: &[u8]) -> bool {
    run(pattern, text, |byte| byte.to_ascii_lowercase())
}

fn run(pattern: &[u8], text: &[u8], fold: fn(u8) -> u8) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    // What to try again with the last `*` one byte longer.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', after @ ..] = pattern {
            retry = Some((after, text));
            pattern = after;
            continue;
        }
        match text.split_first() {
            None if pattern.is_empty() => return true,
            None => return false,
            Some((&byte, rest)) => {
                if let Some(after) = take_one(pattern, byte, fold) {
                    (pattern, text) = (after, rest);
                } else if let Some((after_star, [_, shorter @ ..])) = retry {
                    retry = Some((after_star, shorter));
                    (pattern, text) = (after_star, shorter);
                } else {
                    return false;
                }
            }
        }
    }
}

/// The rest of `pattern` after its first element, which is not `*`, has taken `byte`.
fn take_one(pattern: &[u8], byte: u8, fold: fn(u8) -> u8) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', after @ ..] => Some(after),
        [b'[', after @ ..] => take_class(after, byte, fold),
        [b'\\', literal, after @ ..] | [literal, after @ ..] => (fold(*literal) == fold(byte)).then_some(after),
    }
}

/// The rest of a pattern that stands inside `[`, after the class has taken `byte`.
fn take_class(class: &[u8], byte: u8, fold: fn(u8) -> u8) -> Option<&[u8]> {
    let (negated, mut class) = match class {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, class),
    };
    let byte = fold(byte);
    let mut found = false;
    loop {
        class = match class {
            [] => return (found != negated).then_some(class),
            [b']', after @ ..] => return (found != negated).then_some(after),
            [b'\\', literal, after @ ..] => {
                found |= fold(*literal) == byte;
                after
            }
            [first, b'-', last, after @ ..] => {
                let (first, last) = (fold(*first), fold(*last));
                found |= (first.min(last)..=first.max(last)).contains(&byte);
                after
            }
            [literal, after @ ..] => {
                found |= fold(*literal) == byte;
                after
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_pattern_table() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "abc", true),
            ("***", "", true),
            ("a*c", "abbbc", true),
            ("a*c", "abbbcd", false),
            ("*a*b*c*", "xxaxxbxxcxx", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("h\\?llo", "h?llo", true),
            ("h\\?llo", "hello", false),
            ("a\\", "a\\", true),
            ("[a", "a", true),
            ("[^a", "b", true),
            ("[]a]", "a]", false),
            ("[\\]]", "]", true),
            ("[a-]", "-", false),
            ("[a-]", "]", true),
            ("[a-", "-", true),
            ("[", "[", false),
            ("[^", "a", true),
            ("[^]", "a", true),
            ("[\\", "\\", true),
            ("\\", "\\", true),
            ("a", "A", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
        assert!(matches_ignoring_case(b"Time[A-O]*", b"timeout"));
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = b"*a".repeat(2000);
        let text = vec![b'a'; 1000];
        assert!(!matches(&pattern, &text));
    }

    proptest! {
        #[test]
        fn a_text_matches_itself_escaped(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            let escaped: Vec<u8> = text.iter().flat_map(|&byte| [b'\\', byte]).collect();
            prop_assert!(matches(&escaped, &text));
        }

        #[test]
        fn any_pattern_ends(pattern in proptest::collection::vec(any::<u8>(), 0..60), text in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = matches(&pattern, &text);
        }
    }
}

//! Splits a line into words with the quoting of inline commands, which redis.conf and `CONFIG REWRITE` share.
//!
//! ```text
//! set key "two words\r\n"        ->  set | key | two words<CR><LF>
//! set key 'it\'s \n raw'         ->  set | key | it's \n raw
//! set key "\x00\xff"             ->  set | key | <00><FF>
//! set key "a"b                   ->  unbalanced: a closing quote must end its word
//! ```
//!
//! Double quotes know `\n \r \t \b \a` and `\xHH`; any other escaped byte stands for itself. Single quotes know only
//! `\'`. As in C strings, a NUL byte outside quotes ends the line, and inside quotes leaves them unbalanced.

/// A quote was left open, or a closing quote was not followed by a blank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unbalanced quotes in request")]
pub struct UnbalancedQuotes;

/// The words of `line`, unquoted. A line of blanks has none; `""` is one empty word.
pub fn split_quoted(line: &[u8]) -> Result<Vec<Vec<u8>>, UnbalancedQuotes> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = skip_blanks(rest);
        if matches!(rest.first(), None | Some(0)) {
            return Ok(words);
        }
        let (word, after) = take_word(rest)?;
        words.push(word);
        rest = after;
    }
}

/// `word` in double quotes, such that [`split_quoted`] gives the same bytes back.
pub fn quote(word: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(word.len() + 2);
    quoted.push(b'"');
    for &byte in word {
        match byte {
            b'\\' | b'"' => quoted.extend([b'\\', byte]),
            b'\n' => quoted.extend(b"\\n"),
            b'\r' => quoted.extend(b"\\r"),
            b'\t' => quoted.extend(b"\\t"),
            0x07 => quoted.extend(b"\\a"),
            0x08 => quoted.extend(b"\\b"),
            b' '..=b'~' => quoted.push(byte),
            _ => quoted.extend([b'\\', b'x', hex_digit(byte >> 4), hex_digit(byte & 15)]),
        }
    }
    quoted.push(b'"');
    quoted
}

/// One word from the start of `text`, which is not blank; and what follows it.
fn take_word(text: &[u8]) -> Result<(Vec<u8>, &[u8]), UnbalancedQuotes> {
    let mut word = Vec::new();
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' | 0 => break,
            b'"' => {
                rest = take_double_quoted(after, &mut word)?;
                return Ok((word, rest));
            }
            b'\'' => {
                rest = take_single_quoted(after, &mut word)?;
                return Ok((word, rest));
            }
            _ => {
                word.push(byte);
                rest = after;
            }
        }
    }
    Ok((word, rest))
}

/// What stands up to the closing `"` goes into `word`; returns what follows the quote.
fn take_double_quoted<'a>(text: &'a [u8], word: &mut Vec<u8>) -> Result<&'a [u8], UnbalancedQuotes> {
    let mut rest = text;
    loop {
        match rest {
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                word.push(hex_value(*high) << 4 | hex_value(*low));
                rest = after;
            }
            [b'\\', escaped, after @ ..] if *escaped != 0 => {
                word.push(unescape(*escaped));
                rest = after;
            }
            [b'"', after @ ..] => return closed(after),
            [] | [0, ..] => return Err(UnbalancedQuotes),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

/// What stands up to the closing `'` goes into `word`; returns what follows the quote.
fn take_single_quoted<'a>(text: &'a [u8], word: &mut Vec<u8>) -> Result<&'a [u8], UnbalancedQuotes> {
    let mut rest = text;
    loop {
        match rest {
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                rest = after;
            }
            [b'\'', after @ ..] => return closed(after),
            [] | [0, ..] => return Err(UnbalancedQuotes),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

/// A closing quote ends its word: a blank or the end of the line has to follow.
fn closed(after: &[u8]) -> Result<&[u8], UnbalancedQuotes> {
    match after.first() {
        None | Some(0) => Ok(after),
        Some(&byte) if is_blank(byte) => Ok(after),
        Some(_) => Err(UnbalancedQuotes),
    }
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&byte| is_blank(byte)).count();
    &text[blanks..]
}

/// C's `isspace`: unlike `u8::is_ascii_whitespace` it counts the vertical tab.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => 0,
    }
}

fn hex_digit(value: u8) -> u8 {
    b"0123456789abcdef"[usize::from(value & 15)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(line: &[u8]) -> Vec<Vec<u8>> {
        split_quoted(line).unwrap()
    }

    #[test]
    fn blanks_separate_words() {
        assert_eq!(words(b"  set\tkey   value \r\n"), [&b"set"[..], b"key", b"value"]);
        assert_eq!(words(b""), Vec::<Vec<u8>>::new());
        assert_eq!(words(b" \t\x0b\x0c "), Vec::<Vec<u8>>::new());
        assert_eq!(words(b"\"\" ''"), [b"", b""]);
        // A form feed separates nothing inside a word, as in Redis.
        assert_eq!(words(b"a\x0cb"), [b"a\x0cb"]);
    }

    #[test]
    fn double_quotes_know_escapes() {
        assert_eq!(words(br#""\n\r\t\b\a\\\"\q""#), [b"\n\r\t\x08\x07\\\"q"]);
        assert_eq!(words(br#""\x00\xfF\xg1\x1""#), [b"\x00\xffxg1x1"]);
        assert_eq!(words(br#"a"b c" d"#), [&b"ab c"[..], b"d"]);
        assert_eq!(words(br#""it's""#), [b"it's"]);
    }

    #[test]
    fn single_quotes_know_only_their_own_escape() {
        assert_eq!(words(br#"'\n \'x\' "'"#), [br#"\n 'x' ""#]);
        assert_eq!(words(br"\n"), [br"\n"]);
    }

    #[test]
    fn open_or_glued_quotes_are_unbalanced() {
        for line in [&b"\"a"[..], b"'a", b"\"a\"b", b"'a'b", b"\"a\"\"b\"", b"a \"b\\", b"\"\\", b"\"a\0\"", b"'"] {
            assert_eq!(split_quoted(line), Err(UnbalancedQuotes), "{line:?}");
        }
    }

    #[test]
    fn a_nul_ends_the_line() {
        assert_eq!(words(b"a b\0c d"), [b"a", b"b"]);
        assert_eq!(words(b"\0a"), Vec::<Vec<u8>>::new());
    }

    proptest! {
        #[test]
        fn any_bytes_split_without_a_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(words) = split_quoted(&line) {
                prop_assert!(words.iter().map(Vec::len).sum::<usize>() <= line.len());
            }
        }

        #[test]
        fn quoted_words_come_back(words in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..8)) {
            let line = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(&b' ');
            prop_assert_eq!(split_quoted(&line).unwrap(), words);
        }
    }
}

//! The order: by number or by text, of the element or of what BY finds for it.

use super::options::Options;
use crate::context::Context;
use simurgh_protocol::CommandError;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Sorts the elements as the options say.
pub(super) fn sort(
    cx: &mut Context<'_>,
    elements: Vec<Vec<u8>>,
    options: &Options<'_>,
) -> Result<Vec<Vec<u8>>, CommandError> {
    match (options.is_alphabetic, &options.by) {
        (true, None) => Ok(by_text(elements, options.is_descending)),
        (true, Some(pattern)) => {
            let weight = |element: &[u8]| pattern.look_up(cx, element).map(Cow::into_owned);
            let weighed = weighed(elements, weight);
            // What has no text comes before what has one.
            Ok(ordered(weighed, options.is_descending, Option::cmp))
        }
        (false, by) => {
            let mut is_number = true;
            let weighed = weighed(elements, |element| {
                let weight = match by {
                    Some(pattern) => pattern.look_up(cx, element).map_or(Some(0.0), |text| number(&text)),
                    None => number(element),
                };
                is_number &= weight.is_some();
                weight.unwrap_or(0.0)
            });
            if !is_number {
                return Err(CommandError::Text("ERR One or more scores can't be converted into double"));
            }
            // Zero and minus zero are equal, and what is no number did not come this far.
            Ok(ordered(weighed, options.is_descending, |one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal)))
        }
    }
}

fn weighed<W>(elements: Vec<Vec<u8>>, mut weight: impl FnMut(&[u8]) -> W) -> Vec<(W, Vec<u8>)> {
    elements.into_iter().map(|element| (weight(&element), element)).collect()
}

/// Sorts by the elements' own texts.
pub(super) fn by_text(mut elements: Vec<Vec<u8>>, is_descending: bool) -> Vec<Vec<u8>> {
    elements.sort_unstable();
    if is_descending {
        elements.reverse();
    }
    elements
}

/// Sorts by weight, and by text where the weights are equal.
fn ordered<W>(
    mut weighed: Vec<(W, Vec<u8>)>,
    is_descending: bool,
    compare: impl Fn(&W, &W) -> Ordering,
) -> Vec<Vec<u8>> {
    weighed.sort_unstable_by(|one, other| compare(&one.0, &other.0).then_with(|| one.1.cmp(&other.1)));
    if is_descending {
        weighed.reverse();
    }
    weighed.into_iter().map(|(_, element)| element).collect()
}

/// A text as a number, as SORT reads one: none is 0, one too large is infinite, one too small 0. It ends at a zero byte.
fn number(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or(text);
    if text.is_empty() {
        return Some(0.0);
    }
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `SORT` of Redis 8.2.3 takes for a number.
    #[test]
    fn numbers_are_read_as_redis_reads_them() {
        for (text, expected) in [
            ("", 0.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("+1", 1.0),
            ("-0", 0.0),
            ("00", 0.0),
            ("1e3", 1000.0),
            ("1E+3", 1000.0),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("1e400", f64::INFINITY),
            ("1e-400", 0.0),
            ("1\0x", 1.0),
        ] {
            assert_eq!(number(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["nan", "-nan", " 1", "1 ", "-", ".", "1e", "1e+", "0x10", "1_0", "in", "infinityx", "1d", "++1"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }
}

//! The patterns of BY and GET: `#` is the element itself, `weight_*` a string, `object_*->field` a field of a hash; the element takes
//! the place of the first asterisk.

use crate::collection::Collection;
use crate::context::Context;
use std::borrow::Cow;

/// A pattern, taken apart.
pub(super) enum Pattern<'a> {
    /// `#`: the element.
    Element,
    /// Without an asterisk: no key at all.
    Nothing,
    /// A key, and the field if it is a hash's.
    Key { before: &'a [u8], after: &'a [u8], field: Option<&'a [u8]> },
}

impl<'a> Pattern<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        if text == b"#" {
            return Self::Element;
        }
        // Redis looks for both marks as C does, up to the first zero byte.
        let visible = text.split(|byte| *byte == 0).next().unwrap_or(text);
        let Some(place) = visible.iter().position(|byte| *byte == b'*') else { return Self::Nothing };
        let (before, after) = (&text[..place], &text[place + 1..]);
        let arrow = visible[place + 1..].windows(2).position(|pair| pair == b"->");
        match arrow.filter(|arrow| place + arrow + 3 < visible.len()) {
            Some(arrow) => Self::Key { before, after: &after[..arrow], field: Some(&after[arrow + 2..]) },
            None => Self::Key { before, after, field: None },
        }
    }

    /// Whether there is a place for the element.
    pub fn has_place(&self) -> bool {
        matches!(self, Self::Key { .. })
    }

    /// Whether it names a field of a hash.
    pub fn is_of_field(&self) -> bool {
        matches!(self, Self::Key { field: Some(_), .. })
    }

    /// What it stands for with this element.
    pub fn look_up<'e>(&self, cx: &mut Context<'_>, element: &'e [u8]) -> Option<Cow<'e, [u8]>> {
        let (before, after, field) = match self {
            Self::Element => return Some(Cow::Borrowed(element)),
            Self::Nothing => return None,
            Self::Key { before, after, field } => (before, after, field),
        };
        let name = [before, element, after].concat();
        let (key, now_ms) = (cx.key(&name), cx.now_ms);
        let entry = cx.read(&key)?;
        let value = match field {
            None => entry.string().ok()?.with_text(<[u8]>::to_vec),
            Some(field) => match &*entry.collection()? {
                Collection::Hash(hash) => hash.get(field, now_ms)?.value.to_vec(),
                Collection::List(_) | Collection::Set(_) | Collection::SortedSet(_) | Collection::Stream(_) => {
                    return None;
                }
            },
        };
        Some(Cow::Owned(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands before and after the element, and the field.
    fn parts(text: &'static str) -> Option<(&'static str, &'static str, Option<&'static str>)> {
        let text_of = |bytes| std::str::from_utf8(bytes).unwrap();
        match Pattern::new(text.as_bytes()) {
            Pattern::Key { before, after, field } => Some((text_of(before), text_of(after), field.map(text_of))),
            Pattern::Element | Pattern::Nothing => None,
        }
    }

    /// As the keys were that Redis 8.2.3 looked at.
    #[test]
    fn patterns_are_taken_apart_as_redis_does() {
        assert!(matches!(Pattern::new(b"#"), Pattern::Element));
        assert!(matches!(Pattern::new(b"##"), Pattern::Nothing) && matches!(Pattern::new(b"a\0*"), Pattern::Nothing));
        assert_eq!(parts("w_*"), Some(("w_", "", None)));
        assert_eq!(parts("w_*_x*"), Some(("w_", "_x*", None)));
        assert_eq!(parts("h_*->f"), Some(("h_", "", Some("f"))));
        assert_eq!(parts("h_*_x->f->g"), Some(("h_", "_x", Some("f->g"))));
        assert_eq!(parts("h_*->"), Some(("h_", "->", None)));
        assert_eq!(parts("a->*"), Some(("a->", "", None)));
    }
}

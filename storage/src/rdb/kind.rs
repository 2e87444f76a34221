//! The names of the types that a value's type byte can say, so that a refusal names what it found.

/// What type byte `byte` stands for, for people; none if no server writes it.
pub fn type_name(byte: u8) -> Option<&'static str> {
    Some(match byte {
        0 => "string",
        1 | 10 | 14 | 18 => "list",
        2 | 11 | 20 => "set",
        3 | 5 | 12 | 17 => "sorted set",
        4 | 9 | 13 | 16 => "hash",
        6 | 7 => "module value",
        15 | 19 | 21 | 26 | 27 => "stream",
        22..=25 => "hash with expiring fields",
        28 => "array",
        _ => return None,
    })
}

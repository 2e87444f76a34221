//! The toy's hashes, whose fields expire: a hash is a list of fields, values and moments (-1 for never), in turn.

use simurgh_kernel::time;

use super::lists::{items, join};

/// A field, its value, and when it expires.
pub type Field = (Vec<u8>, Vec<u8>, i64);

/// The fields that have not expired.
pub fn fields(value: Option<&[u8]>) -> Vec<Field> {
    let now_ms = time::wall_ms();
    let mut fields = all(value);
    fields.retain(|(_, _, at)| *at == -1 || *at > now_ms);
    fields
}

fn all(value: Option<&[u8]>) -> Vec<Field> {
    let number = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(-1);
    items(value).chunks_exact(3).map(|field| (field[0].to_vec(), field[1].to_vec(), number(field[2]))).collect()
}

/// The value of a hash.
pub fn value(fields: &[Field]) -> Vec<u8> {
    let moments: Vec<String> = fields.iter().map(|(_, _, at)| at.to_string()).collect();
    let parts =
        fields.iter().zip(&moments).flat_map(|((field, value, _), at)| [field.as_slice(), value, at.as_bytes()]);
    join(&parts.collect::<Vec<_>>())
}

/// The same hash, whose fields never expire.
pub fn immortal(hash: &[u8]) -> Vec<u8> {
    let mut fields = all(Some(hash));
    fields.iter_mut().for_each(|field| field.2 = -1);
    value(&fields)
}

//! How far a value reaches, without building it: one thread finds the entries of a file, others build their values.
//!
//! Only lengths are looked at. Whoever builds the value checks it, and that it reaches as far as was found here.

use super::cursor::{Cursor, Fault};
use super::length::{Length, read_length, read_length_or_encoding};
use super::string::{bounded, encoding};
use super::value::kind;

/// Texts of scores from this length on are none: they stand for what is no finite number.
const SCORE_TEXT_MAX: u8 = 252;

/// Skips a string of at most `bytes_max` bytes.
pub(super) fn skip_string(cursor: &mut Cursor<'_>, bytes_max: usize) -> Result<(), Fault> {
    let length = match read_length_or_encoding(cursor)? {
        Length::Plain(length) => bounded(length, bytes_max)?,
        Length::Encoding(encoding::INTEGER_8) => 1,
        Length::Encoding(encoding::INTEGER_16) => 2,
        Length::Encoding(encoding::INTEGER_32) => 4,
        Length::Encoding(encoding::LZF) => {
            let packed_length = bounded(read_length(cursor)?, bytes_max)?;
            bounded(read_length(cursor)?, bytes_max)?;
            packed_length
        }
        Length::Encoding(_) => return Err(Fault::StringEncoding),
    };
    cursor.take(length).map(|_| ())
}

/// Skips the value behind the type byte `kind`, which must be one that can be read.
pub(super) fn skip_value(kind: u8, cursor: &mut Cursor<'_>, bytes_max: usize) -> Result<(), Fault> {
    let string = |cursor: &mut Cursor<'_>| skip_string(cursor, bytes_max);
    match kind {
        kind::LIST | kind::SET | kind::LIST_QUICKLIST => repeat(cursor, string),
        kind::LIST_QUICKLIST_2 => repeat(cursor, |cursor| {
            read_length(cursor)?;
            string(cursor)
        }),
        kind::HASH => repeat(cursor, |cursor| string(cursor).and_then(|()| string(cursor))),
        kind::ZSET => repeat(cursor, |cursor| {
            string(cursor)?;
            let length = cursor.byte()?;
            if length <= SCORE_TEXT_MAX { cursor.take(length.into()).map(|_| ()) } else { Ok(()) }
        }),
        kind::ZSET_2 => repeat(cursor, |cursor| string(cursor).and_then(|()| cursor.take(8).map(|_| ()))),
        kind::HASH_2 => repeat(cursor, |cursor| {
            string(cursor)?;
            string(cursor)?;
            cursor.take(8).map(|_| ())
        }),
        kind::HASH_METADATA => {
            cursor.take(8)?;
            repeat(cursor, |cursor| {
                read_length(cursor)?;
                string(cursor)?;
                string(cursor)
            })
        }
        kind::HASH_LISTPACK_EX => {
            cursor.take(8)?;
            string(cursor)
        }
        kind::STREAM_LISTPACKS | kind::STREAM_LISTPACKS_2 | kind::STREAM_LISTPACKS_3 | kind::STREAM_LISTPACKS_5 => {
            skip_stream(kind, cursor, bytes_max)
        }
        // Everything else is one string, packed or not.
        _ => string(cursor),
    }
}

/// A count, and so many of something.
fn repeat<'a>(
    cursor: &mut Cursor<'a>,
    mut skip: impl FnMut(&mut Cursor<'a>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for _ in 0..read_length(cursor)? {
        skip(cursor)?;
    }
    Ok(())
}

fn skip_lengths(cursor: &mut Cursor<'_>, count: usize) -> Result<(), Fault> {
    (0..count).try_for_each(|_| read_length(cursor).map(|_| ()))
}

fn skip_stream(kind: u8, cursor: &mut Cursor<'_>, bytes_max: usize) -> Result<(), Fault> {
    let is_oldest = kind == kind::STREAM_LISTPACKS;
    let has_active = kind == kind::STREAM_LISTPACKS_3 || kind == kind::STREAM_LISTPACKS_5;
    let ids = |cursor: &mut Cursor<'_>| repeat(cursor, |cursor| cursor.take(16).map(|_| ()));
    repeat(cursor, |cursor| {
        skip_string(cursor, bytes_max)?;
        skip_string(cursor, bytes_max)
    })?;
    // Entries and last id; first id, greatest deleted id and how many were ever added.
    skip_lengths(cursor, if is_oldest { 3 } else { 8 })?;
    repeat(cursor, |cursor| {
        skip_string(cursor, bytes_max)?;
        skip_lengths(cursor, if is_oldest { 2 } else { 3 })?;
        repeat(cursor, |cursor| {
            cursor.take(16 + 8)?;
            read_length(cursor).map(|_| ())
        })?;
        repeat(cursor, |cursor| {
            skip_string(cursor, bytes_max)?;
            cursor.take(if has_active { 16 } else { 8 })?;
            ids(cursor)
        })?;
        if kind == kind::STREAM_LISTPACKS_5 { ids(cursor) } else { Ok(()) }
    })?;
    if kind == kind::STREAM_LISTPACKS_5 { skip_producers(cursor, bytes_max) } else { Ok(()) }
}

/// What a stream remembers of its producers: how long, how many, and for each the names and ids of what it added.
pub(super) fn skip_producers(cursor: &mut Cursor<'_>, bytes_max: usize) -> Result<(), Fault> {
    skip_lengths(cursor, 2)?;
    repeat(cursor, |cursor| {
        skip_string(cursor, bytes_max)?;
        repeat(cursor, |cursor| {
            skip_string(cursor, bytes_max)?;
            skip_lengths(cursor, 2)
        })
    })?;
    skip_lengths(cursor, 2)
}

//! The snapshot format (RDB) and its little sister, the payload of DUMP and RESTORE. No I/O: bytes in, values out.
//!
//! ```text
//! "REDIS0010" | "VALKEY080"                       9 bytes: who, and which version
//! FA name value                                   auxiliary fields (string.rs)
//! F5 text                                         a library of functions (functions.rs)
//! FE database   FB keys expires                   start of a database (length.rs)
//! [FC ms | FD s] [F8 idle | F9 freq] type key value
//! FF crc64                                        end, and the sum of everything before it (crc64.rs)
//! ```

pub mod check;
pub mod crc64;
pub mod cursor;
pub mod dump;
pub mod functions;
pub mod kind;
pub mod length;
pub mod lzf;
pub mod module;
pub mod read;
mod skip;
pub mod string;
pub mod value;
pub mod write;
pub mod ziplist;
pub mod zipmap;

/// The version that we write: what Redis 7.0 wrote, so every server from there on reads it, Valkey too.
pub const VERSION_WRITTEN: u16 = 10;
/// The newest version of Redis that we read: Redis 8.10's (8.2 writes 12).
pub const REDIS_VERSION_MAX: u16 = 15;
/// The versions of Valkey that we read. From 9.0 on it counts on its own, from 80.
pub const VALKEY_VERSIONS: std::ops::RangeInclusive<u16> = 80..=80;

/// The byte that stands before a value that is a string.
pub(crate) const TYPE_STRING: u8 = 0;

/// What a key-less entry of a file begins with.
pub(crate) mod opcode {
    pub const SLOT_IMPORT: u8 = 0xf3;
    pub const SLOT_INFO: u8 = 0xf4;
    pub const FUNCTION: u8 = 0xf5;
    pub const FUNCTION_EARLY: u8 = 0xf6;
    pub const MODULE_AUX: u8 = 0xf7;
    pub const IDLE: u8 = 0xf8;
    pub const FREQUENCY: u8 = 0xf9;
    pub const AUX: u8 = 0xfa;
    pub const RESIZE: u8 = 0xfb;
    pub const EXPIRE_MS: u8 = 0xfc;
    pub const EXPIRE_S: u8 = 0xfd;
    pub const DATABASE: u8 = 0xfe;
    pub const END: u8 = 0xff;
}

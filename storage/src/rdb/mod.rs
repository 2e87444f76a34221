//! The snapshot format (RDB) and its little sister, the payload of DUMP and RESTORE. No I/O: bytes in, values out.
//!
//! ```text
//! "REDIS0010" | "VALKEY080"                       9 bytes: who, and which version
//! FA name value                                   auxiliary fields (string.rs)
//! FE database   FB keys expires                   start of a database (length.rs)
//! [FC ms | FD s] [F8 idle | F9 freq] type key value
//! FF crc64                                        end, and the sum of everything before it (crc64.rs)
//! ```

pub mod crc64;

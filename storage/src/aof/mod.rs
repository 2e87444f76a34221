//! The append-only file: records, the manifest that names its parts, the sums that seal its groups, and how it is read
//! back. No I/O: bytes in, values out, so that every cut and every flipped bit can be tried in a plain test.
//!
//! ```text
//! appendonlydir/
//!   appendonly.aof.manifest       manifest.rs   which files make up the data set, in which order
//!   appendonly.aof.1.base.rdb     ../rdb        a snapshot (or, with aof-use-rdb-preamble no, records)
//!   appendonly.aof.1.incr.aof     record.rs     records since, with a sum after each written group (seal.rs)
//! ```

mod before;
pub mod check;
pub mod manifest;
pub mod record;
pub mod replay;
pub mod seal;
mod tail;
pub mod until;
mod verdict;
pub mod whole;

//! Keyspace, data types and their commands, effects, and the file formats of the log (AOF) and of snapshots (RDB). Pure:
//! time, random numbers and bytes come in as arguments; replies, effects and bytes come out as values.

pub mod aof;
pub mod rdb;

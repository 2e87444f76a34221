//! What stands between bytes and meaning: RESP, the command table, the config table, error texts. Pure: it awaits
//! nothing and reads no clock, randomness, file or socket.

pub mod quoted;

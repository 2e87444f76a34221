//! Judges of what clients saw. One file each, with the rule it keeps.

pub mod counting;
pub mod linear;

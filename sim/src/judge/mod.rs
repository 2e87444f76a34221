//! Judges of what clients saw. One file each, with the rule it keeps.

pub mod counting;
pub mod crew;
pub mod linear;
pub mod model;
pub mod queue;

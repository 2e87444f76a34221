//! Judges of what clients saw. One file each, with the rule it keeps.

pub mod append;
pub mod counting;
pub mod crew;
pub mod cycle;
pub mod linear;
pub mod model;
pub mod queue;

//! Lays out the hash table in which a request's first words are found.
//!
//! Open addressing in a table about eight times too large: the search below tries multipliers until no name is
//! more than one step from its place, so a lookup is a multiplication, a load and a comparison.

use crate::fold::{Folded, fold, place};

/// Where every name stands.
pub struct Layout {
    /// The multiplier that was found.
    pub seed: u64,
    /// Each slot empty, or a folded name and what it names.
    pub slots: Vec<Option<(Folded, String)>>,
}

/// Places the names: each with its container (0: none) and the code of what it names.
pub fn lay_out(names: &[(u8, String, String)]) -> Layout {
    let size = (names.len() * 8).next_power_of_two();
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..100_000 {
        if let Some(slots) = try_seed(names, size, seed) {
            return Layout { seed, slots };
        }
        // A step of splitmix64: any sequence of odd numbers would do, this one is the same on every machine.
        seed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9).wrapping_add(0x9E37_79B9_7F4A_7C15) | 1;
    }
    panic!("no multiplier spreads the names; enlarge the table in build/lookup.rs");
}

fn try_seed(names: &[(u8, String, String)], size: usize, seed: u64) -> Option<Vec<Option<(Folded, String)>>> {
    let mut slots: Vec<Option<(Folded, String)>> = (0..size).map(|_| None).collect();
    for (container, name, code) in names {
        let folded = fold(*container, name.as_bytes());
        let home = place(folded, seed, size);
        let free = [home, (home + 1) % size].into_iter().find(|&slot| slots[slot].is_none())?;
        slots[free] = Some((folded, code.clone()));
    }
    Some(slots)
}

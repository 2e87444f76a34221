//! The simulator's own random numbers: SplitMix64 (Steele, Lea, Flood 2014). Each part of a timeline draws from a generator
//! of its own, seeded from the timeline's seed and the part's name, so that a change in one does not reshuffle the others.

/// A generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator of one part of the timeline `seed`.
    pub fn of(seed: u64, part: &str) -> Self {
        let mut random = Self(seed);
        for byte in part.bytes() {
            random.0 = random.bits() ^ u64::from(byte);
        }
        random
    }

    /// Sixty-four random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number less than `bound`, or 0 when that is 0. (The bias of the remainder does not matter here.)
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.bits() % bound }
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// A length or an index: less than `bound`.
    pub fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).expect("less than a usize")
    }

    /// True once in `one_in` draws, never when that is 0.
    pub fn chance(&mut self, one_in: u64) -> bool {
        one_in != 0 && self.below(one_in) == 0
    }

    /// One of the choices.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_part_give_the_same_numbers_and_others_do_not() {
        let draw = |seed, part| {
            let mut random = Random::of(seed, part);
            [random.bits(), random.bits(), random.bits()]
        };
        assert_eq!(draw(7, "disk"), draw(7, "disk"));
        assert_ne!(draw(7, "disk"), draw(8, "disk"));
        assert_ne!(draw(7, "disk"), draw(7, "net"));
    }

    #[test]
    fn every_number_of_a_range_is_drawn() {
        let mut random = Random::of(1, "");
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[usize::try_from(random.between(3, 7)).unwrap() - 3] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert!(!(0..100).any(|_| random.chance(0)));
        assert_eq!(random.below(0), 0);
    }
}

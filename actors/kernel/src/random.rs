//! Entropy. In production it comes from the operating system and costs a system call, so callers draw a seed once and
//! stretch it; in the simulator it comes from the run's seed, so the same seed gives the same "entropy".

/// Fills `bytes` with entropy.
#[cfg(not(madsim))]
pub fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system gives entropy once it has booted");
}

/// Fills `bytes` from the simulation's seed.
#[cfg(madsim)]
#[allow(clippy::disallowed_methods, reason = "the planted leak is what the ban prevents")]
pub fn fill(bytes: &mut [u8]) {
    if crate::rehearsal::leaks(crate::rehearsal::Leak::Entropy) {
        let opened = std::fs::File::open("/dev/urandom");
        return opened.and_then(|mut real| std::io::Read::read_exact(&mut real, bytes)).expect("a device of entropy");
    }
    for chunk in bytes.chunks_mut(8) {
        let word = madsim::rand::random::<u64>().to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

/// Sixty-four bits of entropy, to seed a generator with.
pub fn entropy_u64() -> u64 {
    let mut bytes = [0; 8];
    fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

#[cfg(all(test, not(madsim)))]
mod tests {
    use super::*;

    #[test]
    fn fills_every_byte_and_differs_between_calls() {
        let mut seen = [0u8; 33];
        for _ in 0..64 {
            let mut drawn = [0u8; 33];
            fill(&mut drawn);
            for (seen, drawn) in seen.iter_mut().zip(drawn) {
                *seen |= drawn;
            }
        }
        assert!(seen.iter().all(|byte| *byte != 0), "a byte stayed zero in 64 draws");
        assert_ne!(entropy_u64(), entropy_u64());
    }
}

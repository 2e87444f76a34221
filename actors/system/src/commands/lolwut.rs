//! LOLWUT: a picture of ours, and the version.
//!
//! The name Simurgh is read as `si murgh`, thirty birds: in the poem, those who have come all the way find that they are who they
//! were looking for. So thirty birds cross the sky, each time elsewhere.

use crate::client::Client;
use simurgh_kernel::random;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};
use simurgh_storage::{Random, Shards};

const BIRDS: usize = 30;
/// Columns and lines of the sky.
const SKY: (usize, usize) = (66, 14);
/// How a bird may hold its wings.
const WINGS: [&[u8; 3]; 4] = [b"\\v/", b"-v-", b"/^\\", b"~v~"];
/// The pictures of Redis that a client may ask for by number; it gets ours. Any other number is answered with the version alone.
const PICTURES: [i64; 3] = [5, 6, 8];

/// LOLWUT \[VERSION version\] \[argument ...\].
pub fn lolwut(client: &mut Client, args: &Args<'_>, _shards: &mut dyn Shards) -> Result<(), CommandError> {
    let version = match args.get(2).filter(|_| args.is(1, "VERSION")) {
        Some(version) => Some(parse_i64(version).ok_or(CommandError::NotAnInteger)?),
        None => None,
    };
    let mut text = String::new();
    if version.is_none_or(|version| PICTURES.contains(&version)) {
        text = sky(&mut Random::new(random::entropy_u64()));
        text.push_str("\nThirty birds set out to find the Simurgh, and found that they were.\n");
    }
    text.push_str(&format!("Redis ver. {}\n", client.live().config.advertised_version));
    client.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// Birds at places of the sky that no other has taken.
fn sky(random: &mut Random) -> String {
    let (columns, lines) = SKY;
    let mut sky = vec![vec![b' '; columns]; lines];
    let mut left = BIRDS;
    while left > 0 {
        let (line, column) = (random.below(lines), random.below(columns - 4) + 1);
        let place = &mut sky[line][column - 1..column + 4];
        if place.iter().all(|spot| *spot == b' ') {
            place[1..4].copy_from_slice(WINGS[random.below(WINGS.len())]);
            left -= 1;
        }
    }
    sky.iter().map(|line| format!("{}\n", String::from_utf8_lossy(line).trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_birds_whole_and_apart() {
        for seed in 0..50 {
            let sky = sky(&mut Random::new(seed));
            assert_eq!(sky.lines().count(), SKY.1);
            let birds: Vec<&str> = sky.split_whitespace().collect();
            assert_eq!(birds.len(), BIRDS, "{sky}");
            assert!(birds.iter().all(|bird| WINGS.iter().any(|wings| bird.as_bytes() == *wings)), "{sky}");
        }
    }
}

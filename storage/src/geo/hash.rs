//! Geohashes: a place as one number whose leading bits name ever smaller boxes.
//!
//! ```text
//! step 2:   [ lon 1 ][ lat 1 ][ lon 0 ][ lat 0 ]      each bit halves the box: longitude in the odd bits, latitude in the even
//! ```
//!
//! A member's score is the geohash of 26 steps, 52 bits, which a double holds. Members of one box are so the members between two
//! scores. Latitudes end where the Mercator projection's square does (EPSG:3857).

/// A span of degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub min: f64,
    pub max: f64,
}

impl Span {
    fn middle(self) -> f64 {
        (self.min + self.max) / 2.0
    }
}

/// All longitudes.
pub(super) const LONGITUDES: Span = Span { min: -180.0, max: 180.0 };
/// All latitudes that have a score.
pub(super) const LATITUDES: Span = Span { min: -85.051_128_78, max: 85.051_128_78 };
/// All latitudes, as other systems hash them.
const LATITUDES_ON_EARTH: Span = Span { min: -90.0, max: 90.0 };

/// Steps of a score.
pub(super) const STEPS_MAX: u8 = 26;
/// Bits of a score.
const SCORE_BITS: u32 = 52;

const LATITUDE_BITS: u64 = 0x5555_5555_5555_5555;
const LONGITUDE_BITS: u64 = !LATITUDE_BITS;

/// Degrees east and north.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub longitude: f64,
    pub latitude: f64,
}

/// A box of a geohash.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub longitudes: Span,
    pub latitudes: Span,
}

/// The name of a box: two bits for each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GeoHash {
    pub bits: u64,
    pub steps: u8,
}

/// The lower 32 bits, each followed by a zero (Anderson, Bit Twiddling Hacks: interleave by binary magic numbers).
fn spread(value: u32) -> u64 {
    const ROUNDS: [(u32, u64); 5] = [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, LATITUDE_BITS),
    ];
    ROUNDS.iter().fold(u64::from(value), |bits, (shift, mask)| (bits | bits << shift) & mask)
}

/// What [`spread`] has made of them.
fn gather(bits: u64) -> u32 {
    const ROUNDS: [(u32, u64); 5] = [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0f0f_0f0f_0f0f_0f0f),
        (4, 0x00ff_00ff_00ff_00ff),
        (8, 0x0000_ffff_0000_ffff),
        (16, 0x0000_0000_ffff_ffff),
    ];
    ROUNDS.iter().fold(bits & LATITUDE_BITS, |bits, (shift, mask)| (bits | bits >> shift) & mask) as u32
}

impl Place {
    /// Whether it has a score.
    pub fn is_valid(self) -> bool {
        (LONGITUDES.min..=LONGITUDES.max).contains(&self.longitude)
            && (LATITUDES.min..=LATITUDES.max).contains(&self.latitude)
    }

    /// The box of `steps` that it lies in, of a world that ends at these latitudes.
    fn hash(self, steps: u8, latitudes: Span) -> GeoHash {
        let offset = |value: f64, span: Span| {
            let share = (value - span.min) / (span.max - span.min);
            (share * (1_u64 << steps) as f64) as u32
        };
        let (latitude, longitude) = (offset(self.latitude, latitudes), offset(self.longitude, LONGITUDES));
        GeoHash { bits: spread(latitude) | spread(longitude) << 1, steps }
    }

    /// The box of `steps` that it lies in; none of one that has no score.
    pub fn geohash(self, steps: u8) -> Option<GeoHash> {
        self.is_valid().then(|| self.hash(steps, LATITUDES))
    }

    /// The score of a valid place.
    pub fn score(self) -> u64 {
        self.hash(STEPS_MAX, LATITUDES).range().0
    }

    /// The middle of the box that a score names. Any score names one, as in Redis on the processors it is mostly run on.
    pub fn of_score(score: f64) -> Self {
        let area = GeoHash { bits: to_bits(score), steps: STEPS_MAX }.area();
        Self {
            longitude: area.longitudes.middle().clamp(LONGITUDES.min, LONGITUDES.max),
            latitude: area.latitudes.middle().clamp(LATITUDES.min, LATITUDES.max),
        }
    }

    /// The geohash that other systems write, of 11 digits; the last would need bits that a score has not, and is 0.
    pub fn to_text(self) -> [u8; 11] {
        const DIGITS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        const DIGIT_BITS: u32 = 5;
        let bits = self.hash(STEPS_MAX, LATITUDES_ON_EARTH).bits;
        let mut text = [DIGITS[0]; 11];
        for (digit, place) in text[..10].iter_mut().zip(1..) {
            *digit = DIGITS[(bits >> (SCORE_BITS - place * DIGIT_BITS) & 0x1f) as usize];
        }
        text
    }
}

/// A score as the bits that x86 makes of it: what is below zero wraps, what is too large becomes zero.
fn to_bits(score: f64) -> u64 {
    const HALF: f64 = (1_u64 << 63) as f64;
    let signed = |value: f64| if (-HALF..HALF).contains(&value) { value as i64 as u64 } else { 1 << 63 };
    if score < HALF { signed(score) } else { signed(score - HALF) ^ 1 << 63 }
}

impl GeoHash {
    /// The scores of the places in the box: from the first to the second, which belongs to the next box.
    pub fn range(self) -> (u64, u64) {
        let shift = SCORE_BITS - 2 * u32::from(self.steps);
        (self.bits << shift, (self.bits + 1) << shift)
    }

    /// The box.
    pub fn area(self) -> Area {
        let scale = (1_u64 << self.steps) as f64;
        let span = |offset: u32, all: Span| {
            let width = all.max - all.min;
            let edge = |offset: f64| all.min + offset / scale * width;
            Span { min: edge(f64::from(offset)), max: edge(f64::from(offset.wrapping_add(1))) }
        };
        Area { latitudes: span(gather(self.bits), LATITUDES), longitudes: span(gather(self.bits >> 1), LONGITUDES) }
    }

    /// The box so many boxes (-1, 0 or 1) to the east and to the north; past the edge the world begins again.
    pub fn beside(self, east: i8, north: i8) -> Self {
        let used = u64::MAX >> (64 - 2 * u32::from(self.steps));
        // A place on the eastern or northern edge lies in a box past the last, whose bits stay until they are moved.
        let shift = |dimension: u64, by: i8| {
            // The other dimension's bits carry over from one own bit to the next.
            let (bits, others) = (self.bits & dimension, !dimension & used);
            match by {
                0 => bits,
                1.. => bits.wrapping_add(others + 1) & dimension & used,
                _ => (bits | others).wrapping_sub(others + 1) & dimension & used,
            }
        };
        let bits = shift(LONGITUDE_BITS, east) | shift(LATITUDE_BITS, north);
        Self { bits, steps: self.steps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PALERMO: Place = Place { longitude: 13.361389, latitude: 38.115556 };

    /// Scores and texts that Redis 8.2.3 answered.
    #[test]
    fn places_become_scores_and_texts() {
        assert_eq!(PALERMO.score(), 3_479_099_956_230_698);
        assert_eq!(Place { longitude: -180.0, latitude: LATITUDES.min }.score(), 0);
        assert_eq!(Place { longitude: 180.0, latitude: LATITUDES.max }.score(), 13_510_798_882_111_488);
        let place = Place::of_score(3_479_099_956_230_698.0);
        assert_eq!(place, Place { longitude: 13.361389338970184, latitude: 38.1155563954963 });
        assert_eq!(place.to_text(), *b"sqc8b49rny0");
        assert_eq!(Place::of_score(-5.0), Place { longitude: 180.0, latitude: LATITUDES.max });
        assert_eq!(Place::of_score(1e300), Place::of_score(0.0));
        assert_eq!(Place::of_score(f64::INFINITY), Place::of_score(0.0));
    }

    #[test]
    fn the_neighbour_of_a_neighbour_is_the_box_itself() {
        for steps in 1..=STEPS_MAX {
            let hash = PALERMO.geohash(steps).expect("a valid place");
            for (east, north) in [(1, 0), (0, 1), (1, 1), (-1, 1)] {
                assert_eq!(hash.beside(east, north).beside(-east, -north), hash);
                assert_ne!(hash.beside(east, north), hash);
            }
            let east = hash.beside(1, 0).area();
            assert!(steps == 1 || east.longitudes.min == hash.area().longitudes.max);
            assert_eq!(east.latitudes, hash.area().latitudes);
        }
    }

    #[test]
    fn spreading_is_undone_by_gathering() {
        for value in [0, 1, 2, 0x1234_5678, 1 << 26, u32::MAX] {
            assert_eq!(gather(spread(value)), value);
            assert_eq!(spread(value) & LONGITUDE_BITS, 0);
        }
    }
}

//! What lies in a circle or a box around a place: distances on a sphere, and the geohash boxes that cover it.
//!
//! A search looks at the box that the place lies in, chosen about as wide as the area, and at its eight neighbours. The order in which
//! these are looked at is the order of an answer that is not sorted, so it is Redis's: the middle, then N S E W, NE NW SE SW.

use super::hash::{GeoHash, Place, STEPS_MAX, Span};
use super::polygon::Polygon;

/// Of the earth, in metres.
const RADIUS_METRES: f64 = 6_372_797.560_856;
/// Half of the earth's circumference in the Mercator projection, in metres.
const MERCATOR_MAX: f64 = 20_037_726.37;

/// What is searched, in metres around a place.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Circle { radius: f64 },
    Box { width: f64, height: f64 },
    Polygon(Polygon),
}

/// The distance between two places, in metres, by the haversine formula.
pub(super) fn distance(one: Place, other: Place) -> f64 {
    let half_longitude = ((other.longitude.to_radians_as_c() - one.longitude.to_radians_as_c()) / 2.0).sin();
    if half_longitude == 0.0 {
        return latitude_distance(one.latitude, other.latitude);
    }
    let (one_latitude, other_latitude) = (one.latitude.to_radians_as_c(), other.latitude.to_radians_as_c());
    let half_latitude = ((other_latitude - one_latitude) / 2.0).sin();
    let haversine =
        half_latitude * half_latitude + one_latitude.cos() * other_latitude.cos() * half_longitude * half_longitude;
    2.0 * RADIUS_METRES * haversine.sqrt().asin()
}

fn latitude_distance(one: f64, other: f64) -> f64 {
    RADIUS_METRES * (other.to_radians_as_c() - one.to_radians_as_c()).abs()
}

/// Degrees and radians by one constant, so that the last digit is Redis's.
pub(super) trait Degrees {
    fn to_radians_as_c(self) -> f64;
    fn to_degrees_as_c(self) -> f64;
}

const RADIANS_OF_DEGREE: f64 = std::f64::consts::PI / 180.0;

impl Degrees for f64 {
    fn to_radians_as_c(self) -> f64 {
        self * RADIANS_OF_DEGREE
    }

    fn to_degrees_as_c(self) -> f64 {
        self / RADIANS_OF_DEGREE
    }
}

impl Shape {
    /// The distance of a place from the middle, if it lies in the shape.
    pub fn distance_within(&self, middle: Place, place: Place) -> Option<f64> {
        match *self {
            Self::Circle { radius } => Some(distance(middle, place)).filter(|distance| *distance <= radius),
            Self::Box { width, height } => {
                let is_beside = latitude_distance(place.latitude, middle.latitude) > height / 2.0
                    || distance(place, Place { longitude: middle.longitude, ..place }) > width / 2.0;
                (!is_beside).then(|| distance(middle, place))
            }
            Self::Polygon(ref polygon) => polygon.contains(place).then(|| distance(middle, place)),
        }
    }

    /// The radius of the circle around it.
    fn reach(&self) -> f64 {
        let across = |width: f64, height: f64| ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt();
        match *self {
            Self::Circle { radius } => radius,
            Self::Box { width, height } => across(width, height),
            Self::Polygon(Polygon { bounds: (longitudes, latitudes), middle, .. }) => {
                let at = |longitude| Place { longitude, latitude: middle.latitude };
                let width = distance(at(longitudes.min), at(longitudes.max));
                across(width, latitude_distance(latitudes.min, latitudes.max))
            }
        }
    }

    /// The longitudes and latitudes that it reaches to.
    fn bounds(&self, middle: Place) -> (Span, Span) {
        let (half_width, half_height) = match *self {
            Self::Circle { radius } => (radius, radius),
            Self::Box { width, height } => (width / 2.0, height / 2.0),
            Self::Polygon(ref polygon) => return polygon.bounds,
        };
        let north = (half_height / RADIUS_METRES).to_degrees_as_c();
        // The nearer a pole, the more degrees a width takes; so the edge that is nearer one decides.
        let widest = if middle.latitude < 0.0 { middle.latitude - north } else { middle.latitude + north };
        let east = (half_width / RADIUS_METRES / widest.to_radians_as_c().cos()).to_degrees_as_c();
        (
            Span { min: middle.longitude - east, max: middle.longitude + east },
            Span { min: middle.latitude - north, max: middle.latitude + north },
        )
    }

    /// The boxes that cover it, in the order in which they are looked at. None around a place that has no geohash.
    pub fn boxes(&self, middle: Place) -> Vec<GeoHash> {
        let (longitudes, latitudes) = self.bounds(middle);
        let middle = if let Self::Polygon(polygon) = self { polygon.hashed_middle() } else { middle };
        let Some(mut hash) = middle.geohash(steps_for(self.reach(), middle.latitude)) else { return Vec::new() };
        let is_short = |hash: GeoHash| {
            hash.beside(0, 1).area().latitudes.max < latitudes.max
                || hash.beside(0, -1).area().latitudes.min > latitudes.min
                || hash.beside(1, 0).area().longitudes.max < longitudes.max
                || hash.beside(-1, 0).area().longitudes.min > longitudes.min
        };
        // One step less is enough around the middle of a shape; the middle of a polygon's vertices may lie anywhere.
        let steps_least = if matches!(self, Self::Polygon(_)) { 1 } else { hash.steps.saturating_sub(1).max(1) };
        while hash.steps > steps_least && is_short(hash) {
            hash = middle.geohash(hash.steps - 1).expect("it had one before");
        }
        let area = hash.area();
        // A neighbour is left out if the middle box reaches further on its side than the shape.
        let leaves_out = |east: i8, north: i8| {
            hash.steps >= 2
                && ((north < 0 && area.latitudes.min < latitudes.min)
                    || (north > 0 && area.latitudes.max > latitudes.max)
                    || (east < 0 && area.longitudes.min < longitudes.min)
                    || (east > 0 && area.longitudes.max > longitudes.max))
        };
        let mut boxes = vec![hash];
        for (east, north) in [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)] {
            let neighbour = hash.beside(east, north);
            // In a world of four boxes the neighbours on both sides are the same.
            if !leaves_out(east, north) && (boxes.len() == 1 || boxes.last() != Some(&neighbour)) {
                boxes.push(neighbour);
            }
        }
        boxes
    }
}

/// The steps of the box whose width is about that of a circle.
fn steps_for(radius: f64, latitude: f64) -> u8 {
    if radius == 0.0 {
        return STEPS_MAX;
    }
    let (mut steps, mut reach) = (1_i32, radius);
    while reach < MERCATOR_MAX {
        reach *= 2.0;
        steps += 1;
    }
    // A box is to be wider than the circle in the worst case, and boxes near the poles are narrow.
    steps -= 2;
    if latitude.abs() > 66.0 {
        steps -= if latitude.abs() > 80.0 { 2 } else { 1 };
    }
    steps.clamp(1, STEPS_MAX.into()) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever lies in a circle lies in one of the boxes that cover it.
        #[test]
        fn boxes_cover_a_circle(
            longitude in -170.0..170.0_f64, latitude in -70.0..70.0_f64,
            radius in 1.0..500_000.0_f64, angle in 0.0..6.3_f64, share in 0.0..1.0_f64,
        ) {
            let middle = Place { longitude, latitude };
            let north = (radius * share * angle.sin() / RADIUS_METRES).to_degrees_as_c();
            let east = (radius * share * angle.cos() / RADIUS_METRES / latitude.to_radians_as_c().cos()).to_degrees_as_c();
            let place = Place { longitude: longitude + east, latitude: latitude + north };
            let shape = Shape::Circle { radius };
            prop_assume!(shape.distance_within(middle, place).is_some());
            let score = place.score();
            let covers = |hash: &GeoHash| (hash.range().0..hash.range().1).contains(&score);
            prop_assert!(shape.boxes(middle).iter().any(covers));
        }
    }

    #[test]
    fn distances_are_those_of_redis() {
        let palermo = Place::of_score(3_479_099_956_230_698.0);
        let catania = Place::of_score(3_479_447_370_796_909.0);
        assert_eq!(format!("{:.4}", distance(palermo, catania)), "166274.1516");
        assert_eq!(distance(palermo, palermo), 0.0);
    }
}

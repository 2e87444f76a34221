//! A polygon on the map, as Valkey's GEOSEARCH BYPOLYGON takes it.
//!
//! Its edges are straight lines in degrees, and what they enclose an odd number of times lies inside, so edges may cross. Distances
//! are from the middle of its vertices on the sphere: the direction of the sum of theirs, seen from the earth's centre.

use super::area::Degrees;
use super::hash::{LATITUDES, LONGITUDES, Place, Span};

/// Three vertices or more.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Polygon {
    vertices: Vec<Place>,
    /// The longitudes and latitudes that it reaches to.
    pub bounds: (Span, Span),
    /// The middle of its vertices.
    pub middle: Place,
}

impl Polygon {
    /// The polygon of these vertices, of which there is one at least.
    pub fn new(vertices: Vec<Place>) -> Self {
        let span = |part: fn(&Place) -> f64| {
            let parts = || vertices.iter().map(part);
            Span { min: parts().fold(f64::INFINITY, f64::min), max: parts().fold(f64::NEG_INFINITY, f64::max) }
        };
        let middle = middle_of(&vertices);
        Self { bounds: (span(|place| place.longitude), span(|place| place.latitude)), middle, vertices }
    }

    /// The place to begin a search at. The middle itself, unless it lies outside (around a pole, or where edges reach around the world) or
    /// on the edge of the map, where there are no boxes.
    pub fn hashed_middle(&self) -> Place {
        /// In degrees: far less than a box, far more than a rounding error.
        const MARGIN: f64 = 1e-9;
        let (longitudes, latitudes) = self.bounds;
        let inside = |value: f64, span: Span, end: f64| value.clamp(span.min, span.max).min(end - MARGIN);
        Place {
            longitude: inside(self.middle.longitude, longitudes, LONGITUDES.max),
            latitude: inside(self.middle.latitude, latitudes, LATITUDES.max),
        }
    }

    /// Whether a place lies inside: a line from it to the east crosses an odd number of edges.
    pub fn contains(&self, place: Place) -> bool {
        let before = self.vertices.iter().cycle().skip(self.vertices.len() - 1);
        let crossed = self.vertices.iter().zip(before).filter(|(one, other)| {
            let lies_between = (one.latitude > place.latitude) != (other.latitude > place.latitude);
            let slope = (other.longitude - one.longitude) / (other.latitude - one.latitude);
            lies_between && place.longitude < slope * (place.latitude - one.latitude) + one.longitude
        });
        crossed.count() % 2 == 1
    }
}

fn middle_of(vertices: &[Place]) -> Place {
    let (mut x, mut y, mut z) = (0.0, 0.0, 0.0);
    for vertex in vertices {
        let (longitude, latitude) = (vertex.longitude.to_radians_as_c(), vertex.latitude.to_radians_as_c());
        x += latitude.cos() * longitude.cos();
        y += latitude.cos() * longitude.sin();
        z += latitude.sin();
    }
    let count = vertices.len() as f64;
    let (x, y, z) = (x / count, y / count, z / count);
    Place { longitude: y.atan2(x).to_degrees_as_c(), latitude: z.atan2((x * x + y * y).sqrt()).to_degrees_as_c() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polygon(vertices: &[(f64, f64)]) -> Polygon {
        Polygon::new(vertices.iter().map(|&(longitude, latitude)| Place { longitude, latitude }).collect())
    }

    fn contains(polygon: &Polygon, longitude: f64, latitude: f64) -> bool {
        polygon.contains(Place { longitude, latitude })
    }

    #[test]
    fn what_edges_enclose_an_odd_number_of_times_is_inside() {
        let corner = polygon(&[(0.0, 0.0), (0.0, 10.0), (10.0, 10.0), (10.0, 5.0), (5.0, 5.0), (5.0, 0.0)]);
        assert!(contains(&corner, 2.0, 2.0) && contains(&corner, 8.0, 8.0) && !contains(&corner, 8.0, 2.0));
        assert_eq!(corner.bounds.0, Span { min: 0.0, max: 10.0 });
        let square = polygon(&[(-1.0, -1.0), (-1.0, 1.0), (1.0, 1.0), (1.0, -1.0)]);
        assert_eq!(square.middle, Place { longitude: 0.0, latitude: 0.0 });
        let around_the_pole = polygon(&[(-120.0, 85.0), (0.0, 85.0), (120.0, 85.0)]);
        assert!(around_the_pole.middle.latitude > 89.999);
        let star = polygon(&[(0.0, 10.0), (6.0, -8.0), (-9.5, 3.0), (9.5, 3.0), (-6.0, -8.0)]);
        assert!(contains(&star, 0.0, 7.0) && contains(&star, 7.0, 2.0) && !contains(&star, 0.0, 0.0));
    }
}

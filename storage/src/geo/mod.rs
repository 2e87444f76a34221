//! Places: sorted sets whose scores are geohashes.
//!
//! | file | what |
//! | --- | --- |
//! | `hash` | a place as a number, and back |
//! | `area` | distances, and the boxes that cover an area |
//! | `polygon` | what lies in a polygon |
//! | `add` | GEOADD |
//! | `read` | GEOPOS GEODIST GEOHASH |
//! | `query`, `search` | GEOSEARCH, GEOSEARCHSTORE, GEORADIUS, GEORADIUSBYMEMBER, what they ask for and what they find |
//!
//! Commands: <https://redis.io/docs/latest/commands/?group=geo>.

mod add;
mod area;
mod hash;
mod polygon;
mod query;
mod read;
mod search;
#[cfg(test)]
mod tests;

pub use add::geoadd;
pub use read::{geodist, geohash, geopos};
pub use search::{georadius, georadius_ro, georadiusbymember, georadiusbymember_ro, geosearch, geosearchstore};

use hash::Place;
use simurgh_protocol::number::parse_f64;
use simurgh_protocol::{Args, CommandError, Reply};

/// The metres of a unit.
fn metres(args: &Args<'_>, index: usize) -> Result<f64, CommandError> {
    match () {
        () if args.is(index, "M") => Ok(1.0),
        () if args.is(index, "KM") => Ok(1000.0),
        () if args.is(index, "FT") => Ok(0.3048),
        () if args.is(index, "MI") => Ok(1609.34),
        () => Err(CommandError::Text("ERR unsupported unit provided. please use M, KM, FT, MI")),
    }
}

/// A number, or an error of this text.
fn number(args: &Args<'_>, index: usize, error: &'static str) -> Result<f64, CommandError> {
    args.get(index).and_then(parse_f64).ok_or(CommandError::Text(error))
}

/// `longitude latitude`.
fn place(args: &Args<'_>, index: usize) -> Result<Place, CommandError> {
    const NOT_A_FLOAT: &str = "ERR value is not a valid float";
    let place = Place { longitude: number(args, index, NOT_A_FLOAT)?, latitude: number(args, index + 1, NOT_A_FLOAT)? };
    if !place.is_valid() {
        let Place { longitude, latitude } = place;
        return Err(CommandError::Owned(format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}")));
    }
    Ok(place)
}

/// Writes a distance with four decimals.
fn reply_distance(reply: &mut Reply, distance: f64) {
    const SCALE: f64 = 10_000.0;
    // A distance on earth is far below 2^53 tenths of a millimetre.
    let scaled = (distance * SCALE).round_ties_even() as u64;
    reply.bulk(format!("{}.{:04}", scaled / 10_000, scaled % 10_000).as_bytes());
}

/// Writes longitude and latitude.
fn reply_place(reply: &mut Reply, place: Place) {
    reply.array(2);
    reply.double(place.longitude);
    reply.double(place.latitude);
}

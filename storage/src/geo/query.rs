//! What GEOSEARCH and the commands before it are asked for.
//!
//! The source is looked up first and members are found while options are read, as Redis does: so where several things are wrong, the
//! same one is told.

use super::area::Shape;
use super::hash::Place;
use super::polygon::Polygon;
use super::{metres, number, place};
use crate::sorted_set::SortedSet;
use simurgh_protocol::number::parse_i64;
use simurgh_protocol::{Args, CommandError};

/// The grammar of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grammar {
    /// `GEORADIUS key longitude latitude radius unit ...`
    Radius,
    /// `GEORADIUSBYMEMBER key member radius unit ...`
    RadiusByMember,
    /// `GEOSEARCH key ...`
    Search,
    /// `GEOSEARCHSTORE destination source ...`
    SearchStore,
}

/// The order of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// As the boxes come.
    None,
    /// The nearest first.
    Rising,
    /// The farthest first.
    Falling,
}

/// What a command asks for.
#[derive(Debug)]
pub(super) struct Query {
    /// Around which place; none if it was a member of a set that is not there.
    pub middle: Option<Place>,
    pub shape: Option<Shape>,
    /// Metres of the unit of distances.
    pub unit: f64,
    pub order: Order,
    /// How many are answered at most; all without.
    pub count: Option<usize>,
    /// Whether any will do.
    pub any: bool,
    pub with_distance: bool,
    pub with_hash: bool,
    pub with_place: bool,
    /// The index of the key that the result is stored under.
    pub destination: Option<usize>,
    /// Whether distances are stored as scores, not geohashes.
    pub stores_distance: bool,
    is_from_member: bool,
}

fn place_of_member(set: &SortedSet, member: &[u8]) -> Result<Place, CommandError> {
    let error = CommandError::Text("ERR could not decode requested zset member");
    set.score_of(member).map(Place::of_score).ok_or(error)
}

impl Query {
    /// Reads a request. `may_store`: GEORADIUS and GEORADIUSBYMEMBER have forms that may not.
    pub fn parse(
        args: &Args<'_>,
        grammar: Grammar,
        may_store: bool,
        set: Option<&SortedSet>,
    ) -> Result<Self, CommandError> {
        let mut query = Self {
            middle: None,
            shape: None,
            unit: 1.0,
            order: Order::None,
            count: None,
            any: false,
            with_distance: false,
            with_hash: false,
            with_place: false,
            destination: (grammar == Grammar::SearchStore).then_some(1),
            stores_distance: false,
            is_from_member: false,
        };
        let mut index = match grammar {
            Grammar::Radius => {
                query.middle = Some(place(args, 2)?);
                query.set_circle(args, 4)?;
                6
            }
            Grammar::RadiusByMember => {
                if let Some(set) = set {
                    query.middle = Some(place_of_member(set, args.at(2))?);
                    query.set_circle(args, 3)?;
                }
                5
            }
            Grammar::Search => 2,
            Grammar::SearchStore => 3,
        };
        let is_search = matches!(grammar, Grammar::Search | Grammar::SearchStore);
        while index < args.len() {
            let width = match query.read_option(args, index)? {
                0 if is_search => query.read_search(args, index, grammar, set)?,
                0 if may_store => query.read_store(args, index)?,
                width => width,
            };
            if width == 0 {
                return Err(CommandError::Syntax);
            }
            index += width;
        }
        query.check(args, grammar)?;
        Ok(query)
    }

    /// An option that all have; how many words it takes, 0 if it is none.
    fn read_option(&mut self, args: &Args<'_>, index: usize) -> Result<usize, CommandError> {
        match () {
            () if args.is(index, "WITHDIST") => self.with_distance = true,
            () if args.is(index, "WITHHASH") => self.with_hash = true,
            () if args.is(index, "WITHCOORD") => self.with_place = true,
            () if args.is(index, "ANY") => self.any = true,
            () if args.is(index, "ASC") => self.order = Order::Rising,
            () if args.is(index, "DESC") => self.order = Order::Falling,
            () if args.is(index, "COUNT") && index + 1 < args.len() => {
                let count = parse_i64(args.at(index + 1)).ok_or(CommandError::NotAnInteger)?;
                let count = usize::try_from(count).ok().filter(|count| *count > 0);
                self.count = Some(count.ok_or(CommandError::Text("ERR COUNT must be > 0"))?);
                return Ok(2);
            }
            () => return Ok(0),
        }
        Ok(1)
    }

    /// `STORE key`, `STOREDIST key`.
    fn read_store(&mut self, args: &Args<'_>, index: usize) -> Result<usize, CommandError> {
        let is_distance = args.is(index, "STOREDIST");
        if (!is_distance && !args.is(index, "STORE")) || index + 1 == args.len() {
            return Ok(0);
        }
        (self.destination, self.stores_distance) = (Some(index + 1), is_distance);
        Ok(2)
    }

    /// What only GEOSEARCH and GEOSEARCHSTORE have.
    fn read_search(
        &mut self,
        args: &Args<'_>,
        index: usize,
        grammar: Grammar,
        set: Option<&SortedSet>,
    ) -> Result<usize, CommandError> {
        let left = args.len() - index;
        let (is_circle, is_box, is_polygon) = (
            matches!(self.shape, Some(Shape::Circle { .. })),
            matches!(self.shape, Some(Shape::Box { .. })),
            matches!(self.shape, Some(Shape::Polygon(_))),
        );
        let is_from_place = self.middle.is_some() && !self.is_from_member && !is_polygon;
        match () {
            () if args.is(index, "FROMMEMBER") && left >= 2 && !is_from_place && !is_polygon => {
                self.is_from_member = true;
                if let Some(set) = set {
                    self.middle = Some(place_of_member(set, args.at(index + 1))?);
                }
                Ok(2)
            }
            () if args.is(index, "FROMLONLAT") && left >= 3 && !self.is_from_member && !is_polygon => {
                self.middle = Some(place(args, index + 1)?);
                Ok(3)
            }
            () if args.is(index, "BYRADIUS") && left >= 3 && !is_box && !is_polygon => {
                self.set_circle(args, index + 1)?;
                Ok(3)
            }
            () if args.is(index, "BYBOX") && left >= 4 && !is_circle && !is_polygon => {
                self.set_box(args, index + 1)?;
                Ok(4)
            }
            () if args.is(index, "BYPOLYGON") && left >= 3 && !is_circle && !is_box => {
                if self.is_from_member || is_from_place {
                    return Err(CommandError::Syntax);
                }
                self.set_polygon(args, index + 1)
            }
            () if args.is(index, "STOREDIST") && grammar == Grammar::SearchStore => {
                self.stores_distance = true;
                Ok(1)
            }
            () => Ok(0),
        }
    }

    /// `radius unit`.
    fn set_circle(&mut self, args: &Args<'_>, index: usize) -> Result<(), CommandError> {
        let radius = number(args, index, "ERR need numeric radius")?;
        if radius < 0.0 {
            return Err(CommandError::Text("ERR radius cannot be negative"));
        }
        self.unit = metres(args, index + 1)?;
        self.shape = Some(Shape::Circle { radius: radius * self.unit });
        Ok(())
    }

    /// `width height unit`.
    fn set_box(&mut self, args: &Args<'_>, index: usize) -> Result<(), CommandError> {
        let width = number(args, index, "ERR need numeric width")?;
        let height = number(args, index + 1, "ERR need numeric height")?;
        if width < 0.0 || height < 0.0 {
            return Err(CommandError::Text("ERR height or width cannot be negative"));
        }
        self.unit = metres(args, index + 2)?;
        self.shape = Some(Shape::Box { width: width * self.unit, height: height * self.unit });
        Ok(())
    }

    /// `vertices longitude latitude ...`; how many words they and the option take.
    fn set_polygon(&mut self, args: &Args<'_>, index: usize) -> Result<usize, CommandError> {
        let count = parse_i64(args.at(index)).and_then(|count| i32::try_from(count).ok());
        let count = count.ok_or(CommandError::Text("ERR invalid number of vertices"))?;
        let room = (args.len() - index - 1) / 2;
        let count = usize::try_from(count).ok().filter(|count| (3..=room).contains(count));
        let count = count.ok_or(CommandError::Text("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices"))?;
        let vertices = (0..count).map(|at| place(args, index + 1 + 2 * at)).collect::<Result<Vec<_>, _>>()?;
        let polygon = Polygon::new(vertices);
        (self.middle, self.unit) = (Some(polygon.middle), 1.0);
        self.shape = Some(Shape::Polygon(polygon));
        Ok(2 + 2 * count)
    }

    fn check(&mut self, args: &Args<'_>, grammar: Grammar) -> Result<(), CommandError> {
        let is_search = matches!(grammar, Grammar::Search | Grammar::SearchStore);
        if self.destination.is_some() && (self.with_distance || self.with_hash || self.with_place) {
            return Err(CommandError::Text(if is_search {
                "ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            } else {
                "ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            }));
        }
        if is_search && !self.is_from_member && self.middle.is_none() {
            let text = "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for ";
            return Err(CommandError::repeats(text, args.at(0), ""));
        }
        if is_search && self.shape.is_none() {
            let text = "ERR exactly one of BYRADIUS and BYBOX can be specified for ";
            return Err(CommandError::repeats(text, args.at(0), ""));
        }
        if self.any && self.count.is_none() {
            return Err(CommandError::Text("ERR the ANY argument requires COUNT argument"));
        }
        if self.count.is_some() && self.order == Order::None && !self.any {
            self.order = Order::Rising;
        }
        Ok(())
    }
}

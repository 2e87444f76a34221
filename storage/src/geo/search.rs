//! GEOSEARCH, GEOSEARCHSTORE and the commands that they have replaced: members in a circle, a box or a polygon.

use super::area::Shape;
use super::hash::Place;
use super::query::{Grammar, Order, Query};
use super::{reply_distance, reply_place};
use crate::context::Context;
use crate::listpack::Item;
use crate::sorted_set::{Limits, SortedSet, log_result, store};
use simurgh_protocol::{Args, CommandError, Reply};

/// A member that was found.
struct Found<'a> {
    member: Item<'a>,
    score: f64,
    place: Place,
    /// From the middle, in metres.
    distance: f64,
}

/// The members that a query asks for.
fn find<'a>(set: &'a SortedSet, query: &Query) -> Vec<Found<'a>> {
    let (Some(middle), Some(shape)) = (query.middle, &query.shape) else { return Vec::new() };
    let enough = query.count.filter(|_| query.any).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    'boxes: for hash in shape.boxes(middle) {
        let (from, to) = hash.range();
        let ranks = set.count_below(from as f64)..set.count_below(to as f64);
        for (member, score) in set.members(ranks) {
            let place = Place::of_score(score);
            if let Some(distance) = shape.distance_within(middle, place) {
                found.push(Found { member, score, place, distance });
                if found.len() >= enough {
                    break 'boxes;
                }
            }
        }
    }
    match query.order {
        Order::None => {}
        Order::Rising => found.sort_by(|one, other| one.distance.total_cmp(&other.distance)),
        Order::Falling => found.sort_by(|one, other| other.distance.total_cmp(&one.distance)),
    }
    found.truncate(query.count.unwrap_or(usize::MAX));
    found
}

fn reply_found(reply: &mut Reply, found: &[Found<'_>], query: &Query) {
    let parts = [query.with_distance, query.with_hash, query.with_place].iter().filter(|part| **part).count();
    reply.array(found.len());
    for one in found {
        if parts > 0 {
            reply.array(1 + parts);
        }
        one.member.write_to(reply);
        if query.with_distance {
            reply_distance(reply, one.distance / query.unit);
        }
        if query.with_hash {
            reply.integer(one.score as i64);
        }
        if query.with_place {
            reply_place(reply, one.place);
        }
    }
}

fn search(cx: &mut Context<'_>, args: &Args<'_>, grammar: Grammar, may_store: bool) -> Result<(), CommandError> {
    let source = cx.key(args.at(if grammar == Grammar::SearchStore { 2 } else { 1 }));
    let limits = Limits::of(cx);
    let (set, reply) = cx.look::<SortedSet>(&source)?;
    let query = Query::parse(args, grammar, may_store, set.as_deref())?;
    let found = set.as_deref().map_or_else(Vec::new, |set| find(set, &query));
    let Some(destination) = query.destination else {
        reply_found(reply, &found, &query);
        return Ok(());
    };
    let mut result = SortedSet::default();
    for one in &found {
        let score = if query.stores_distance { one.distance / query.unit } else { one.score };
        one.member.with_text(|member| result.insert(member, score, &limits));
    }
    let event = if grammar == Grammar::SearchStore { "geosearchstore" } else { "georadiusstore" };
    let key = cx.key(args.at(destination));
    let is_polygon = matches!(query.shape, Some(Shape::Polygon(_)));
    if is_polygon && (!result.is_empty() || cx.peek(&key).is_some()) {
        log_result(cx, key.bytes, &result);
    }
    store(cx, &key, result, event);
    Ok(())
}

/// `GEOSEARCH key <<FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius unit | BYBOX width height unit> | BYPOLYGON
/// vertices longitude latitude ...> [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`: the members in an area.
pub fn geosearch(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    search(cx, args, Grammar::Search, false)
}

/// `GEOSEARCHSTORE destination source ... [STOREDIST]`: stores what GEOSEARCH finds; how many there are.
pub fn geosearchstore(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    search(cx, args, Grammar::SearchStore, true)
}

/// `GEORADIUS key longitude latitude radius unit ... [STORE key | STOREDIST key]`: the members in a circle.
pub fn georadius(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    search(cx, args, Grammar::Radius, true)
}

/// `GEORADIUS_RO key longitude latitude radius unit ...`: GEORADIUS that stores nothing.
pub fn georadius_ro(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    search(cx, args, Grammar::Radius, false)
}

/// `GEORADIUSBYMEMBER key member radius unit ... [STORE key | STOREDIST key]`: the members in a circle around one of them.
pub fn georadiusbymember(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    search(cx, args, Grammar::RadiusByMember, true)
}

/// `GEORADIUSBYMEMBER_RO key member radius unit ...`: GEORADIUSBYMEMBER that stores nothing.
pub fn georadiusbymember_ro(cx: &mut Context<'_>, args: &Args<'_>) -> Result<(), CommandError> {
    search(cx, args, Grammar::RadiusByMember, false)
}

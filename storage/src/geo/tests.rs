//! Handlers against a keyspace; what they answer was asked of Redis 8.2.3.

use super::*;
use crate::fixture::Fixture;
use crate::sorted_set::zrange;

fn sicily() -> Fixture {
    let mut fixture = Fixture::new();
    let words = ["GEOADD", "S", "13.361389", "38.115556", "Palermo", "15.087269", "37.502669", "Catania"];
    let logged = "ZADD S 3479099956230698 Palermo 3479447370796909 Catania";
    assert_eq!(fixture.run(geoadd, &words), (":2 ".into(), vec![logged.into()]));
    fixture
}

#[test]
fn places_are_logged_as_scores() {
    let mut fixture = sicily();
    assert_eq!(fixture.run(geoadd, &["GEOADD", "S", "13.361389", "38.115556", "Palermo"]), (":0 ".into(), vec![]));
    let words = ["GEOADD", "S", "XX", "CH", "13", "38", "Palermo"];
    assert_eq!(fixture.run(geoadd, &words), (":1 ".into(), vec!["ZADD S XX CH 3479065152021743 Palermo".into()]));
}

#[test]
fn a_search_is_stored_and_logged_as_it_was_sent() {
    let mut fixture = sicily();
    let words = ["GEOSEARCHSTORE", "d", "S", "FROMLONLAT", "15", "37", "BYRADIUS", "200", "km", "STOREDIST"];
    assert_eq!(fixture.run(geosearchstore, &words), (":2 ".into(), vec![words.join(" ")]));
    let stored = "*4 $7 Catania $16 56.4412578701582 $7 Palermo $18 190.44242984775784 ";
    assert_eq!(fixture.reply(zrange, &["ZRANGE", "d", "0", "-1", "WITHSCORES"]), stored);
    let words = ["GEORADIUS", "S", "15", "37", "1", "m", "STORE", "d"];
    assert_eq!(fixture.run(georadius, &words), (":0 ".into(), vec![words.join(" ")]));
    assert_eq!(fixture.run(georadius, &words), (":0 ".into(), vec![]));
}

/// Valkey leaves out what lies far from the middle of so large a polygon.
#[test]
fn a_polygon_of_the_whole_world_holds_everything() {
    let mut fixture = Fixture::new();
    let places = "-179 -80 a -100 24 b -44 64 c 0 0 d 35 -6 e 120 80 f 179 1 g";
    let words: Vec<&str> = ["GEOADD", "S"].into_iter().chain(places.split(' ')).collect();
    fixture.run(geoadd, &words);
    let words: Vec<&str> = "GEOSEARCH S BYPOLYGON 4 -180 -85 -180 85 180 85 180 -85".split(' ').collect();
    assert_eq!(fixture.reply(geosearch, &words), "*7 $1 d $1 g $1 f $1 e $1 b $1 c $1 a ");
}

/// Redis 8.2 does not know it.
#[test]
fn what_a_polygon_has_found_is_logged_by_its_outcome() {
    let mut fixture = sicily();
    let words: Vec<&str> = "GEOSEARCHSTORE d S BYPOLYGON 3 14 36 14 40 18 36".split(' ').collect();
    let logged = vec!["DEL d".to_owned(), "ZADD d 3479447370796909 Catania".to_owned()];
    assert_eq!(fixture.run(geosearchstore, &words), (":1 ".into(), logged));
    let words: Vec<&str> = "GEOSEARCHSTORE d S BYPOLYGON 3 0 0 0 1 1 0".split(' ').collect();
    assert_eq!(fixture.run(geosearchstore, &words), (":0 ".into(), vec!["DEL d".to_owned()]));
    assert_eq!(fixture.run(geosearchstore, &words), (":0 ".into(), vec![]));
}

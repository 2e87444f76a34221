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

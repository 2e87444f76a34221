//! Removing keys whose time has come, in bounded steps, whether or not anybody asks for them.
//!
//! Each database knows its expiries in order of time, so a step goes straight to what is due, the longest overdue first over all
//! databases. Commands never see an expired key in any case; this gives the memory back.

use crate::effects::Effects;
use crate::notify::Class;
use crate::shard::Shard;

/// Keys removed from one database before the databases are compared again.
const STEP: usize = 16;

/// Removes at most `limit` keys that are due, recording each and telling its watchers; `events` are the classes that somebody
/// may hear of. Returns whether more are due.
pub fn expire_cycle(shard: &mut Shard, now_ms: i64, limit: usize, events: Class, effects: &mut Effects) -> bool {
    let (mut left, mut gone) = (limit, Vec::new());
    while let Some(database) = most_overdue(shard, now_ms) {
        let step = left.min(STEP);
        if step == 0 {
            return true;
        }
        shard.database_mut(database).expire_due(now_ms, step, |key| gone.push(key.to_vec()));
        shard.stats.expired += gone.len() as u64;
        for key in gone.drain(..) {
            shard.key_changed(database, &key);
            effects.touch(&key);
            effects.record(database, &[b"DEL", &key]);
            effects.tell(events, Class::EXPIRED, "expired", database, &key);
        }
        left -= step;
    }
    false
}

/// The database whose first expiry is the longest past, if any is.
fn most_overdue(shard: &Shard, now_ms: i64) -> Option<usize> {
    let first = |database: usize| shard.database(database).soonest_expiries(1).next().map(|at| (at, database));
    (0..shard.databases()).filter_map(first).min().filter(|(at, _)| *at <= now_ms).map(|(_, database)| database)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use crate::shard::WatchFlag;
    use crate::{expire, generic, keyspace, string};

    fn cycle(fixture: &mut Fixture, limit: usize) -> (bool, Vec<String>) {
        let (mut more, mut effects) = (false, Effects::default());
        effects.recording = true;
        for shard in &mut fixture.shards {
            more |= expire_cycle(shard, fixture.now_ms, limit, Class::NONE, &mut effects);
        }
        (more, crate::fixture::records(&effects))
    }

    #[test]
    fn what_is_due_goes_from_every_database_and_is_recorded() {
        let mut fixture = Fixture::new();
        for database in [0, 3] {
            fixture.database = database;
            for index in 0..200 {
                let name = format!("k{database}-{index}");
                fixture.reply(string::setnx, &["SETNX", &name, "v"]);
                if index % 2 == 0 {
                    fixture.reply(expire::pexpire, &["PEXPIRE", &name, if index < 100 { "10" } else { "10000" }]);
                }
            }
        }
        let key = fixture.layout.hasher.key(b"k3-0");
        let (shard, flag) = (fixture.layout.shard_of(&key), WatchFlag::default());
        fixture.shards[shard].watch(3, &key, &flag);
        assert_eq!(cycle(&mut fixture, 1000), (false, vec![]));
        fixture.now_ms += 10;
        let (more, mut log) = cycle(&mut fixture, 5);
        assert!(more && log.len() == 20);
        while more && log.len() < 100 {
            let (_, step) = cycle(&mut fixture, 5);
            assert!(!step.is_empty(), "each step gets on");
            log.extend(step);
        }
        assert_eq!(cycle(&mut fixture, 5), (false, vec![]));
        log.sort();
        let mut expected: Vec<_> =
            (0..100).step_by(2).flat_map(|index| [0, 3].map(|database| format!("DEL k{database}-{index}"))).collect();
        expected.sort();
        assert_eq!(log, expected);
        assert!(flag.is_set());
        assert_eq!(fixture.shards.iter().map(|shard| shard.stats.expired).sum::<u64>(), 100);
        assert_eq!(fixture.reply(keyspace::dbsize, &["DBSIZE"]), ":150 ");
        assert_eq!(fixture.reply(generic::exists, &["EXISTS", "k3-0", "k3-1", "k3-100"]), ":2 ");
    }

    #[test]
    fn the_longest_overdue_goes_first_whatever_its_database() {
        let mut fixture = Fixture::new();
        let mut shard = Shard::new(0, &crate::Layout { shards: 1, ..fixture.layout.clone() });
        for index in 0..64i64 {
            let name = format!("k{index}");
            let key = fixture.layout.hasher.key(name.as_bytes());
            let database = if index < 32 { 5 } else { 0 };
            shard.database_mut(database).insert(&key, crate::Value::Int(index), crate::Encoding::Int, Some(index), 0);
        }
        fixture.now_ms = 100;
        assert!(expire_cycle(&mut shard, 100, 32, Class::NONE, &mut Effects::default()));
        assert_eq!((shard.database(5).len(), shard.database(0).len()), (0, 32));
    }
}

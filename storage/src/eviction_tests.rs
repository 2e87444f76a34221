//! Eviction: which keys go under each policy, and who is told.

use super::*;
use crate::entry::Encoding;
use crate::shard::{Layout, WatchFlag};
use crate::string_value::Value;

struct World {
    layout: Layout,
    shard: Shard,
    random: Random,
    effects: Effects,
    now_ms: i64,
}

impl World {
    fn new() -> Self {
        let layout = Layout { shards: 1, databases: 16, hasher: KeyHasher::new(3) };
        let mut effects = Effects::default();
        effects.recording = true;
        Self { shard: Shard::new(0, &layout), layout, random: Random::new(1), effects, now_ms: 1_700_000_000_000 }
    }

    fn insert(&mut self, database: usize, name: &str, expires_at: Option<i64>, access: u32) {
        let key = self.layout.hasher.key(name.as_bytes());
        self.shard.database_mut(database).insert(&key, Value::Bytes(b"v"), Encoding::Embstr, expires_at, access);
    }

    /// Evicts up to `count` keys; their names.
    fn evict(&mut self, policy: EvictionPolicy, count: usize) -> Vec<String> {
        let eviction = Eviction {
            policy,
            samples: 5,
            access: policy.access(10, 1),
            now_ms: self.now_ms,
            hasher: &self.layout.hasher,
            events: Class::NONE,
        };
        for _ in 0..count {
            let before = self.shard.bytes();
            let Some(freed) = eviction.evict_one(&mut self.shard, &mut self.random, &mut self.effects) else { break };
            assert_eq!(self.shard.bytes() + freed, before);
            assert!(freed > 0);
        }
        let records = crate::fixture::records(&self.effects);
        self.effects.clear();
        records.iter().map(|record| record.strip_prefix("DEL ").unwrap().to_owned()).collect()
    }
}

/// The number in `k12`.
fn number(name: &str) -> usize {
    name[1..].parse().unwrap()
}

#[test]
fn names_are_redis_s() {
    for policy in EvictionPolicy::ALL {
        assert_eq!(EvictionPolicy::parse(&policy.name().to_uppercase()), Some(policy));
    }
    assert_eq!(EvictionPolicy::parse("allkeys-lrm"), None);
}

#[test]
fn noeviction_evicts_nothing_and_an_empty_shard_has_nothing() {
    let mut world = World::new();
    for policy in EvictionPolicy::ALL {
        assert_eq!(world.evict(policy, 1), Vec::<String>::new());
    }
    world.insert(0, "k", Some(i64::MAX), 0);
    assert_eq!(world.evict(EvictionPolicy::NoEviction, 1), Vec::<String>::new());
}

/// Of 1000 keys last used a second apart, half are evicted: hardly any of the youngest third, and on average much older ones than
/// drawing at random would give (mean 500).
#[test]
fn lru_takes_old_keys() {
    let mut world = World::new();
    for age in 0..1000u32 {
        world.insert(age as usize % 3, &format!("k{age}"), None, crate::access::lru_of_idle(age, world.now_ms));
    }
    let gone = world.evict(EvictionPolicy::AllkeysLru, 500);
    assert_eq!(gone.len(), 500);
    let young = gone.iter().filter(|name| number(name) < 333).count();
    let mean = gone.iter().map(|name| number(name)).sum::<usize>() / 500;
    assert!(young < 10 && mean > 680, "{young} young ones, mean age {mean}");
    assert_eq!(world.shard.stats.evicted, 500);
}

#[test]
fn lfu_takes_rarely_used_keys() {
    let mut world = World::new();
    for count in 0..250u8 {
        let access = crate::access::lfu_of_frequency(count, world.now_ms);
        world.insert(0, &format!("k{count}"), Some(i64::MAX), access);
    }
    let gone = world.evict(EvictionPolicy::VolatileLfu, 100);
    let mean = gone.iter().map(|name| number(name)).sum::<usize>() / 100;
    assert!(mean < 65, "mean counter {mean}");
}

#[test]
fn volatile_ttl_takes_what_expires_soonest_over_all_databases() {
    let mut world = World::new();
    for place in 0..300usize {
        let seconds = place * 7 % 300;
        let expires_at = world.now_ms + 1000 * seconds as i64;
        world.insert(place % 3, &format!("k{seconds}"), Some(expires_at), 0);
    }
    let gone: Vec<_> = world.evict(EvictionPolicy::VolatileTtl, 200).iter().map(|name| number(name)).collect();
    assert_eq!(gone, (0..200).collect::<Vec<_>>());
}

#[test]
fn volatile_policies_leave_keys_without_expiry_alone() {
    use EvictionPolicy::{VolatileLfu, VolatileLru, VolatileRandom, VolatileTtl};
    for policy in [VolatileLru, VolatileLfu, VolatileRandom, VolatileTtl] {
        let mut world = World::new();
        for index in 0..400usize {
            let expires_at = (index % 10 == 0).then_some(world.now_ms + 5);
            world.insert(index % 2, &format!("k{index}"), expires_at, 0);
        }
        let mut gone: Vec<_> = world.evict(policy, 1000).iter().map(|name| number(name)).collect();
        gone.sort_unstable();
        assert_eq!(gone, (0..400).step_by(10).collect::<Vec<_>>(), "{policy:?}");
    }
}

#[test]
fn random_draws_are_even_over_databases_and_keys() {
    let mut world = World::new();
    for index in 0..1000usize {
        world.insert(usize::from(index >= 100), &format!("k{index}"), (index % 2 == 0).then_some(i64::MAX), 0);
    }
    for policy in [EvictionPolicy::AllkeysRandom, EvictionPolicy::VolatileRandom] {
        let eviction = Eviction {
            policy,
            samples: 1,
            access: AccessPolicy::Lru,
            now_ms: 0,
            hasher: &world.layout.hasher,
            events: Class::NONE,
        };
        let mut drawn = [0usize; 1000];
        for _ in 0..100_000 {
            let candidate = eviction.draw(&world.shard, &mut world.random).unwrap();
            drawn[number(std::str::from_utf8(&candidate.key).unwrap())] += 1;
        }
        let mean = if policy.is_volatile() { 200 } else { 100 };
        for (index, count) in drawn.into_iter().enumerate() {
            let expected = if policy.is_volatile() && index % 2 == 1 { 0..1 } else { mean / 2..mean * 2 };
            assert!(expected.contains(&count), "{policy:?}: key {index} was drawn {count} times");
        }
    }
}

#[test]
fn a_candidate_that_was_used_since_is_spared_and_watchers_are_told() {
    let mut world = World::new();
    let old = |idle| crate::access::lru_of_idle(idle, 1_700_000_000_000);
    for index in 0..3 {
        world.insert(0, &format!("k{index}"), None, old(1000 - index));
    }
    // By now the pool knows the oldest of the rest.
    let first = world.evict(EvictionPolicy::AllkeysLru, 1).remove(0);
    let next = if first == "k0" { "k1" } else { "k0" };
    let last = if first == "k2" { "k1" } else { "k2" };
    let (used, watched) = (world.layout.hasher.key(next.as_bytes()), world.layout.hasher.key(last.as_bytes()));
    world.shard.database_mut(0).occupied(&used).unwrap().set_access(old(0));
    let flag = WatchFlag::default();
    world.shard.watch(0, &watched, &flag);
    // Ten draws of two keys find both.
    let eviction = Eviction {
        policy: EvictionPolicy::AllkeysLru,
        samples: 10,
        access: AccessPolicy::Lru,
        now_ms: world.now_ms,
        hasher: &world.layout.hasher,
        events: Class::EVICTED,
    };
    eviction.evict_one(&mut world.shard, &mut world.random, &mut world.effects).unwrap();
    assert_eq!(crate::fixture::records(&world.effects), [format!("DEL {last}")]);
    let told: Vec<&str> = world.effects.events.iter().map(|event| event.name).collect();
    assert_eq!(told, ["evicted"]);
    assert!(flag.is_set());
}

//! redis-rs: its multiplexed connection, its connection manager, its cache.

use crate::{Tests, equal};
use anyhow::{Context, Result, ensure};
use futures_util::StreamExt;
use redis::aio::{ConnectionManagerConfig, MultiplexedConnection};
use redis::caching::CacheConfig;
use redis::streams::{
    StreamAutoClaimOptions, StreamAutoClaimReply, StreamMaxlen, StreamPendingReply, StreamReadOptions, StreamReadReply,
};
use redis::{AsyncCommands, AsyncConnectionConfig, Client, PushKind, Value, cmd, pipe};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub async fn run(tests: &mut Tests) {
    for resp in [2, 3] {
        let url = format!("redis://127.0.0.1:{}/?protocol=resp{resp}", tests.port);
        macro_rules! test {
            ($body:ident) => {
                tests.run(&format!("redis-rs RESP{resp} {}", stringify!($body)), with_client(&url, $body)).await
            };
        }
        test!(handshake);
        test!(strings_and_expiry);
        test!(hashes);
        test!(lists_and_waiting);
        test!(sets_and_sorted_sets);
        test!(geo_bits_and_sketches);
        test!(streams);
        test!(pipelines);
        test!(transactions);
        test!(scripts);
        test!(scans);
        test!(subscriptions);
        test!(errors);
        test!(reconnect);
        if resp == 3 {
            test!(pushes);
            test!(caching);
        }
    }
}

async fn with_client<F, Fut>(url: &str, body: F) -> Result<()>
where
    F: FnOnce(Client, MultiplexedConnection) -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let client = Client::open(url)?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    cmd("FLUSHALL").exec_async(&mut connection).await?;
    body(client, connection).await
}

async fn handshake(_: Client, mut c: MultiplexedConnection) -> Result<()> {
    let info: String = cmd("CLIENT").arg("INFO").query_async(&mut c).await?;
    ensure!(info.contains("lib-name=redis-rs") && info.contains("lib-ver=1.8"), "{info}");
    equal!(c.ping::<String>().await?, "PONG");
    let info: redis::InfoDict = cmd("INFO").query_async(&mut c).await?;
    ensure!(info.get::<String>("redis_version").is_some(), "INFO has no version");
    ensure!(info.get::<u64>("used_memory").is_some_and(|bytes| bytes > 0), "INFO has no memory");
    let config: HashMap<String, String> = cmd("CONFIG").arg("GET").arg("maxmemory-policy").query_async(&mut c).await?;
    equal!(config.get("maxmemory-policy").map(String::as_str), Some("noeviction"));
    Ok(())
}

async fn strings_and_expiry(_: Client, mut c: MultiplexedConnection) -> Result<()> {
    c.set::<_, _, ()>("a", "1").await?;
    equal!(c.get::<_, i64>("a").await?, 1);
    equal!(c.get::<_, Option<String>>("missing").await?, None);
    equal!(c.incr::<_, _, i64>("a", 41).await?, 42);
    equal!(c.incr::<_, _, f64>("a", 0.5).await?, 42.5);
    equal!(c.append::<_, _, i64>("a", "x").await?, 5);
    equal!(c.mget::<_, (Option<String>, Option<String>)>(&["a", "missing"]).await?, (Some("42.5x".into()), None));
    equal!(c.set_nx::<_, _, bool>("a", "2").await?, false);
    c.set_ex::<_, _, ()>("e", "v", 100).await?;
    ensure!((98..=100).contains(&c.ttl::<_, i64>("e").await?), "the time to live");
    equal!(c.persist::<_, bool>("e").await?, true);
    equal!(c.get_del::<_, String>("e").await?, "v");
    equal!(c.del::<_, i64>(&["a", "e"]).await?, 1);
    let binary = vec![0, 255, b'\r', b'\n'];
    c.set::<_, _, ()>("b", &binary).await?;
    equal!(c.get::<_, Vec<u8>>("b").await?, binary);
    Ok(())
}

async fn hashes(_: Client, mut c: MultiplexedConnection) -> Result<()> {
    c.hset_multiple::<_, _, _, ()>("h", &[("f", "1"), ("g", "2")]).await?;
    let all: BTreeMap<String, i64> = c.hgetall("h").await?;
    equal!(all, BTreeMap::from([("f".into(), 1), ("g".into(), 2)]));
    equal!(c.hincr::<_, _, _, i64>("h", "f", 4).await?, 5);
    equal!(c.hexists::<_, _, bool>("h", "g").await?, true);
    let many: Vec<Option<String>> = cmd("HMGET").arg("h").arg("f").arg("x").query_async(&mut c).await?;
    equal!(many, vec![Some("5".into()), None]);
    let set: Vec<i64> =
        cmd("HEXPIRE").arg("h").arg(100).arg("FIELDS").arg(2).arg("f").arg("x").query_async(&mut c).await?;
    equal!(set, vec![1, -2]);
    let pairs: Vec<(String, String)> = cmd("HRANDFIELD").arg("h").arg(9).arg("WITHVALUES").query_async(&mut c).await?;
    equal!(
        pairs.into_iter().collect::<BTreeSet<_>>(),
        BTreeSet::from([("f".into(), "5".into()), ("g".into(), "2".into())])
    );
    Ok(())
}

async fn lists_and_waiting(client: Client, mut c: MultiplexedConnection) -> Result<()> {
    equal!(c.rpush::<_, _, i64>("l", &["a", "b", "c"]).await?, 3);
    equal!(c.lrange::<_, Vec<String>>("l", 0, -1).await?, ["a", "b", "c"]);
    equal!(c.lpop::<_, Vec<String>>("l", std::num::NonZero::new(2)).await?, ["a", "b"]);
    equal!(c.blpop::<_, (String, String)>("l", 1.0).await?, ("l".into(), "c".into()));
    equal!(c.blpop::<_, Option<(String, String)>>("l", 0.05).await?, None);
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let mut waiting = client.get_multiplexed_async_connection_with_config(&config).await?;
    let waiter = tokio::spawn(async move { waiting.brpop::<_, (String, String)>(&["other", "l"], 0.0).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    c.rpush::<_, _, ()>("l", "late").await?;
    equal!(waiter.await??, ("l".into(), "late".into()));
    let popped: Option<(String, Vec<String>)> = cmd("LMPOP").arg(1).arg("l").arg("LEFT").query_async(&mut c).await?;
    equal!(popped, None);
    Ok(())
}

async fn sets_and_sorted_sets(_: Client, mut c: MultiplexedConnection) -> Result<()> {
    equal!(c.sadd::<_, _, i64>("s", &["x", "y", "x"]).await?, 2);
    equal!(c.smembers::<_, BTreeSet<String>>("s").await?, BTreeSet::from(["x".into(), "y".into()]));
    equal!(c.sismember::<_, _, bool>("s", "x").await?, true);
    equal!(c.smismember::<_, _, Vec<bool>>("s", &["x", "z"]).await?, vec![true, false]);
    c.zadd_multiple::<_, _, _, ()>("z", &[(1.5, "a"), (f64::INFINITY, "b"), (-2.0, "c")]).await?;
    let ranged: Vec<(String, f64)> = c.zrange_withscores("z", 0, -1).await?;
    equal!(ranged, vec![("c".into(), -2.0), ("a".into(), 1.5), ("b".into(), f64::INFINITY)]);
    equal!(c.zscore::<_, _, Option<f64>>("z", "a").await?, Some(1.5));
    equal!(c.zscore::<_, _, Option<f64>>("z", "missing").await?, None);
    equal!(c.zrank::<_, _, Option<usize>>("z", "b").await?, Some(2));
    let least: Vec<(String, f64)> = c.zpopmin("z", 1).await?;
    equal!(least, vec![("c".into(), -2.0)]);
    let found: (String, String, f64) = cmd("BZPOPMAX").arg("z").arg(1).query_async(&mut c).await?;
    equal!(found, ("z".into(), "b".into(), f64::INFINITY));
    Ok(())
}

async fn geo_bits_and_sketches(_: Client, mut c: MultiplexedConnection) -> Result<()> {
    let places = [(13.361389, 38.115556, "Palermo"), (15.087269, 37.502669, "Catania")];
    equal!(c.geo_add::<_, _, i64>("g", &places).await?, 2);
    let away: f64 = c.geo_dist("g", "Palermo", "Catania", redis::geo::Unit::Kilometers).await?;
    ensure!((away - 166.2742).abs() < 0.001, "{away}");
    let at: Vec<redis::geo::Coord<f64>> = c.geo_pos("g", "Palermo").await?;
    ensure!(at.len() == 1 && (at[0].longitude - 13.361389).abs() < 1e-5, "{at:?}");
    let options = redis::geo::RadiusOptions::default().with_dist().order(redis::geo::RadiusOrder::Asc);
    let near: Vec<redis::geo::RadiusSearchResult> =
        c.geo_radius("g", 15.0, 37.0, 200.0, redis::geo::Unit::Kilometers, options).await?;
    equal!(near.iter().map(|found| found.name.as_str()).collect::<Vec<_>>(), ["Catania", "Palermo"]);
    equal!(c.setbit::<_, bool>("bits", 7, true).await?, false);
    equal!(c.bitcount::<_, i64>("bits").await?, 1);
    let fields: Vec<Option<i64>> = cmd("BITFIELD")
        .arg("bits")
        .arg("INCRBY")
        .arg("u8")
        .arg(0)
        .arg(9)
        .arg("OVERFLOW")
        .arg("FAIL")
        .arg("INCRBY")
        .arg("u2")
        .arg(0)
        .arg(9)
        .query_async(&mut c)
        .await?;
    equal!(fields, vec![Some(10), None]);
    equal!(c.pfadd::<_, _, bool>("p", &["a", "b", "a"]).await?, true);
    equal!(c.pfcount::<_, i64>("p").await?, 2);
    Ok(())
}

async fn streams(_: Client, mut c: MultiplexedConnection) -> Result<()> {
    let id: String = c.xadd("st", "5-*", &[("f", "v"), ("g", "w")]).await?;
    equal!(id, "5-0");
    c.xadd_maxlen::<_, _, _, _, ()>("st", StreamMaxlen::Equals(10), "6-1", &[("f", "2")]).await?;
    equal!(c.xlen::<_, i64>("st").await?, 2);
    let read: StreamReadReply = c.xread(&["st", "none"], &["0", "0"]).await?;
    equal!(read.keys.len(), 1);
    equal!(read.keys[0].ids[0].get::<String>("g"), Some("w".into()));
    c.xgroup_create_mkstream::<_, _, _, ()>("st", "group", "0").await?;
    let options = StreamReadOptions::default().group("group", "one").count(1);
    let read: StreamReadReply = c.xread_options(&["st"], &[">"], &options).await?;
    equal!(read.keys[0].ids.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), ["5-0"]);
    let StreamPendingReply::Data(pending) = c.xpending("st", "group").await? else {
        anyhow::bail!("nothing is pending")
    };
    equal!((pending.count, pending.consumers[0].name.as_str()), (1, "one"));
    let claimed: StreamAutoClaimReply =
        c.xautoclaim_options("st", "group", "two", 0, "0", StreamAutoClaimOptions::default()).await?;
    equal!(claimed.claimed.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), ["5-0"]);
    equal!(c.xack::<_, _, _, i64>("st", "group", &["5-0"]).await?, 1);
    let options = StreamReadOptions::default().block(30);
    let nothing: Option<StreamReadReply> = c.xread_options(&["st"], &["$"], &options).await?;
    ensure!(nothing.is_none_or(|reply| reply.keys.is_empty()), "something came");
    let groups: redis::streams::StreamInfoGroupsReply = c.xinfo_groups("st").await?;
    equal!((groups.groups[0].name.as_str(), groups.groups[0].pending, groups.groups[0].lag), ("group", 0, Some(1)));
    Ok(())
}

async fn pipelines(_: Client, mut c: MultiplexedConnection) -> Result<()> {
    let mut many = pipe();
    (0..1000).for_each(|number| _ = many.set(format!("k:{number}"), number).ignore());
    many.get("k:999").get("k:1000").hset("k:1", "f", "v");
    let error = many.query_async::<(i64, Option<i64>, i64)>(&mut c).await.expect_err("HSET of a string is an error");
    ensure!(error.to_string().contains("WRONGTYPE"), "{error}");
    let (first, none): (i64, Option<i64>) = pipe().get("k:999").get("k:1000").query_async(&mut c).await?;
    equal!((first, none), (999, None));
    Ok(())
}

async fn transactions(client: Client, mut c: MultiplexedConnection) -> Result<()> {
    let (n, text): (i64, String) =
        pipe().atomic().set("n", 1).ignore().incr("n", 4).get("n").query_async(&mut c).await?;
    equal!((n, text.as_str()), (5, "5"));
    cmd("WATCH").arg("n").exec_async(&mut c).await?;
    let mut other = client.get_multiplexed_async_connection().await?;
    other.set::<_, _, ()>("n", 7).await?;
    let aborted: Option<(i64,)> = pipe().atomic().incr("n", 1).query_async(&mut c).await?;
    equal!(aborted, None);
    equal!(c.get::<_, i64>("n").await?, 7);
    Ok(())
}

async fn scripts(_: Client, mut c: MultiplexedConnection) -> Result<()> {
    let script = redis::Script::new(
        "redis.call('INCRBY', KEYS[1], ARGV[1]); return {redis.call('GET', KEYS[1]), 3.7, false, {ok='fine'}}",
    );
    cmd("SCRIPT").arg("FLUSH").exec_async(&mut c).await?;
    for sum in ["4", "8"] {
        let reply: (String, i64, Option<String>, String) = script.key("n").arg(4).invoke_async(&mut c).await?;
        equal!(reply, (sum.into(), 3, None, "fine".into()));
    }
    let error =
        redis::Script::new("return redis.call('LPUSH', KEYS[1], 'x')").key("n").invoke_async::<i64>(&mut c).await;
    ensure!(error.as_ref().is_err_and(|error| error.to_string().contains("WRONGTYPE")), "{error:?}");
    let library = "#!lua name=lib\nredis.register_function('plus', function(keys, args) return args[1] + args[2] end)";
    let name: String = cmd("FUNCTION").arg("LOAD").arg("REPLACE").arg(library).query_async(&mut c).await?;
    equal!(name, "lib");
    equal!(cmd("FCALL").arg("plus").arg(0).arg(2).arg(3).query_async::<i64>(&mut c).await?, 5);
    cmd("FUNCTION").arg("FLUSH").exec_async(&mut c).await?;
    Ok(())
}

async fn scans(_: Client, mut c: MultiplexedConnection) -> Result<()> {
    let mut many = pipe();
    for number in 0..300 {
        many.set(format!("k:{number}"), 1).hset("h", number, number).sadd("s", number).zadd("z", number, number);
    }
    many.exec_async(&mut c).await?;
    let keys: Vec<String> = c.scan_match::<_, String>("k:*").await?.map(|key| key.unwrap_or_default()).collect().await;
    equal!(keys.into_iter().collect::<BTreeSet<_>>().len(), 300);
    let fields: Vec<(i64, i64)> = c.hscan("h").await?.map(|pair| pair.unwrap_or((0, -1))).collect().await;
    equal!(fields.iter().collect::<BTreeSet<_>>().len(), 300);
    ensure!(fields.iter().all(|(field, value)| field == value), "{fields:?}");
    let members: Vec<i64> = c.sscan("s").await?.map(|member| member.unwrap_or(-1)).collect().await;
    equal!(members.into_iter().collect::<BTreeSet<_>>().len(), 300);
    let scored: Vec<(String, f64)> = c.zscan("z").await?.map(|pair| pair.unwrap_or_default()).collect().await;
    equal!(scored.len(), 300);
    Ok(())
}

async fn subscriptions(client: Client, mut c: MultiplexedConnection) -> Result<()> {
    let mut subscriber = client.get_async_pubsub().await?;
    subscriber.subscribe("news").await?;
    subscriber.psubscribe("n*").await?;
    equal!(c.publish::<_, _, i64>("news", "hello").await?, 2);
    let mut messages = subscriber.on_message();
    let first = messages.next().await.context("no message")?;
    equal!((first.get_channel_name(), first.get_payload::<String>()?), ("news", "hello".to_owned()));
    let second = messages.next().await.context("no message by pattern")?;
    equal!(second.get_pattern::<String>()?, "n*");
    drop(messages);
    subscriber.unsubscribe("news").await?;
    equal!(c.publish::<_, _, i64>("news", "again").await?, 1);
    Ok(())
}

async fn errors(_: Client, mut c: MultiplexedConnection) -> Result<()> {
    let error = cmd("NOSUCH").query_async::<Value>(&mut c).await.expect_err("there is no such command");
    ensure!(error.to_string().contains("unknown command"), "{error}");
    c.set::<_, _, ()>("a", "x").await?;
    let error = c.lpush::<_, _, i64>("a", "x").await.expect_err("a string is no list");
    equal!(error.code(), Some("WRONGTYPE"));
    let error =
        cmd("EVALSHA").arg("0".repeat(40)).arg(0).query_async::<Value>(&mut c).await.expect_err("no such script");
    equal!(error.kind(), redis::ErrorKind::Server(redis::ServerErrorKind::NoScript));
    Ok(())
}

/// The connection manager comes back by itself when its connection is killed.
async fn reconnect(client: Client, mut c: MultiplexedConnection) -> Result<()> {
    let config = ConnectionManagerConfig::new().set_min_delay(Duration::from_millis(5));
    let mut manager = client.get_connection_manager_with_config(config).await?;
    manager.set::<_, _, ()>("a", 1).await?;
    let id: i64 = cmd("CLIENT").arg("ID").query_async(&mut manager).await?;
    equal!(cmd("CLIENT").arg("KILL").arg("ID").arg(id).query_async::<i64>(&mut c).await?, 1);
    for _ in 0..200 {
        if let Ok(now) = cmd("CLIENT").arg("ID").query_async::<i64>(&mut manager).await {
            ensure!(now != id, "it is the same connection");
            equal!(manager.get::<_, i64>("a").await?, 1);
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("the manager does not come back")
}

async fn next(pushes: &mut UnboundedReceiver<redis::PushInfo>, kind: PushKind) -> Result<Vec<Value>> {
    loop {
        let push = tokio::time::timeout(Duration::from_secs(5), pushes.recv()).await?.context("no more pushes")?;
        if push.kind == kind {
            return Ok(push.data);
        }
    }
}

/// RESP3: one connection subscribes, asks, and is pushed to; it subscribes again by itself when it was lost.
async fn pushes(client: Client, mut c: MultiplexedConnection) -> Result<()> {
    let (sender, mut pushes) = unbounded_channel();
    let config = ConnectionManagerConfig::new()
        .set_min_delay(Duration::from_millis(5))
        .set_push_sender(sender)
        .set_automatic_resubscription();
    let mut manager = client.get_connection_manager_with_config(config).await?;
    manager.subscribe("news").await?;
    equal!(next(&mut pushes, PushKind::Subscribe).await?, vec![Value::BulkString("news".into()), Value::Int(1)]);
    equal!(manager.publish::<_, _, i64>("news", "to itself").await?, 1);
    let data = next(&mut pushes, PushKind::Message).await?;
    equal!(data, vec![Value::BulkString("news".into()), Value::BulkString("to itself".into())]);
    let id: i64 = cmd("CLIENT").arg("ID").query_async(&mut manager).await?;
    cmd("CLIENT").arg("KILL").arg("ID").arg(id).exec_async(&mut c).await?;
    next(&mut pushes, PushKind::Disconnection).await?;
    for _ in 0..200 {
        if c.publish::<_, _, i64>("news", "again").await? == 1 {
            let data = next(&mut pushes, PushKind::Message).await?;
            equal!(data[1], Value::BulkString("again".into()));
            return Ok(());
        }
        _ = manager.ping::<String>().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("nobody subscribes again")
}

async fn caching(client: Client, mut c: MultiplexedConnection) -> Result<()> {
    for optin in [false, true] {
        let mut cache = CacheConfig::default();
        if optin {
            cache = CacheConfig::new().set_mode(redis::caching::CacheMode::OptIn);
        }
        let config = AsyncConnectionConfig::new().set_cache_config(cache);
        let mut cached = client.get_multiplexed_async_connection_with_config(&config).await?;
        let get = || {
            let mut get = cmd("GET");
            get.arg("a");
            if optin {
                get.set_cache_config(redis::CommandCacheConfig::new().set_enable_cache(true));
            }
            get
        };
        c.set::<_, _, ()>("a", 1).await?;
        for _ in 0..5 {
            equal!(get().query_async::<i64>(&mut cached).await?, 1);
        }
        let seen = cached.get_cache_statistics().context("no statistics")?;
        equal!((seen.hit, seen.miss, seen.invalidate), (4, 1, 0));
        c.set::<_, _, ()>("a", 2).await?;
        for _ in 0..100 {
            if cached.get_cache_statistics().is_some_and(|seen| seen.invalidate == 1) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        equal!(get().query_async::<i64>(&mut cached).await?, 2);
        let seen = cached.get_cache_statistics().context("no statistics")?;
        equal!((seen.hit, seen.miss, seen.invalidate), (4, 2, 1));
    }
    Ok(())
}

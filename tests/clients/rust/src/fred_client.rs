//! fred: one client with a task of its own, its subscriber, its tracking of keys.

use crate::{Tests, equal};
use anyhow::{Context, Result, ensure};
use fred::prelude::*;
use fred::types::client::ClientKillFilter;
use fred::types::geo::{GeoUnit, GeoValue};
use fred::types::lists::LMoveDirection;
use fred::types::scripts::{Library, Script};
use fred::types::streams::XReadResponse;
use fred::types::{ClusterHash, CustomCommand, RespVersion};
use futures_util::TryStreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{sleep, timeout};

pub async fn run(tests: &mut Tests) {
    for version in [RespVersion::RESP2, RespVersion::RESP3] {
        let mut config = Config::default();
        config.server = ServerConfig::new_centralized("127.0.0.1", tests.port);
        config.version = version.clone();
        macro_rules! test {
            ($body:ident) => {
                tests.run(&format!("fred {version:?} {}", stringify!($body)), with_client(&config, $body)).await
            };
        }
        test!(handshake);
        test!(strings_and_expiry);
        test!(hashes);
        test!(lists_and_waiting);
        test!(sets_and_sorted_sets);
        test!(geo_and_sketches);
        test!(streams);
        test!(pipelines_and_transactions);
        test!(scripts);
        test!(scans);
        test!(subscriptions);
        test!(errors);
        test!(reconnect);
        if version == RespVersion::RESP3 {
            test!(tracking);
        } else {
            test!(tracking_redirected);
        }
    }
}

fn builder(config: &Config) -> Builder {
    let mut builder = Builder::from_config(config.clone());
    builder.set_policy(ReconnectPolicy::new_constant(100, 20));
    builder
}

async fn with_client<F, Fut>(config: &Config, body: F) -> Result<()>
where
    F: FnOnce(Config, Client) -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let client = builder(config).build()?;
    client.init().await?;
    client.flushall::<()>(false).await?;
    let outcome = body(config.clone(), client.clone()).await;
    client.quit().await?;
    outcome
}

async fn custom<R: FromValue>(c: &Client, words: &[&str]) -> Result<R> {
    let command = CustomCommand::new(words[0], ClusterHash::FirstKey, false);
    Ok(c.custom(command, words[1..].iter().map(|word| Value::from(*word)).collect::<Vec<_>>()).await?)
}

async fn handshake(config: Config, c: Client) -> Result<()> {
    equal!(c.ping::<String>(None).await?, "PONG");
    ensure!(c.client_id::<i64>().await? > 0, "the connection has no number");
    c.client_setname("fred").await?;
    let info: String = c.client_info().await?;
    let protocol = if config.version == RespVersion::RESP3 { "resp=3" } else { "resp=2" };
    ensure!(info.contains("name=fred") && info.contains(protocol), "{info}");
    ensure!(c.server_version().is_some_and(|version| version.major >= 7), "{:?}", c.server_version());
    Ok(())
}

async fn strings_and_expiry(_: Config, c: Client) -> Result<()> {
    let none: Option<String> = c.set("a", "1", Some(Expiration::EX(100)), Some(SetOptions::XX), false).await?;
    equal!(none, None);
    c.set::<(), _, _>("a", "1", Some(Expiration::EX(100)), Some(SetOptions::NX), false).await?;
    ensure!((98..=100).contains(&c.ttl::<i64, _>("a").await?), "the time to live");
    equal!(c.incr_by::<i64, _>("a", 41).await?, 42);
    equal!(c.incr_by_float::<f64, _>("a", 0.5).await?, 42.5);
    equal!(c.getset::<f64, _, _>("a", "new").await?, 42.5);
    equal!(c.get::<Option<String>, _>("missing").await?, None);
    c.mset(vec![("x", 1), ("y", 2)]).await?;
    equal!(c.mget::<Vec<Option<i64>>, _>(vec!["x", "none", "y"]).await?, vec![Some(1), None, Some(2)]);
    equal!(c.del::<i64, _>(vec!["x", "y", "none"]).await?, 2);
    equal!(c.getdel::<String, _>("a").await?, "new");
    Ok(())
}

async fn hashes(_: Config, c: Client) -> Result<()> {
    equal!(c.hset::<i64, _, _>("h", vec![("f", 1), ("g", 2)]).await?, 2);
    equal!(c.hgetall::<BTreeMap<String, i64>, _>("h").await?, BTreeMap::from([("f".into(), 1), ("g".into(), 2)]));
    equal!(c.hincrbyfloat::<f64, _, _>("h", "f", 0.5).await?, 1.5);
    equal!(c.hmget::<Vec<Option<String>>, _, _>("h", vec!["g", "x"]).await?, vec![Some("2".into()), None]);
    equal!(c.hexpire::<Vec<i64>, _, _>("h", 100, None, vec!["f", "x"]).await?, vec![1, -2]);
    equal!(c.hpersist::<Vec<i64>, _, _>("h", vec!["f", "g"]).await?, vec![1, -1]);
    let pairs: BTreeMap<String, String> = c.hrandfield("h", Some((5, true))).await?;
    equal!(pairs.len(), 2);
    Ok(())
}

async fn lists_and_waiting(_: Config, c: Client) -> Result<()> {
    equal!(c.rpush::<i64, _, _>("l", vec!["a", "b", "c"]).await?, 3);
    equal!(c.lrange::<Vec<String>, _>("l", 0, -1).await?, ["a", "b", "c"]);
    equal!(c.lmove::<String, _, _>("l", "m", LMoveDirection::Left, LMoveDirection::Right).await?, "a");
    let popped: (String, Vec<String>) = c.blmpop(1.0, "l", LMoveDirection::Right, Some(2)).await?;
    equal!(popped, ("l".into(), vec!["c".into(), "b".into()]));
    equal!(c.blpop::<Option<(String, String)>, _>("l", 0.05).await.unwrap_or(None), None);
    let waiting = c.clone_new();
    waiting.init().await?;
    let asker = waiting.clone();
    let waiter = tokio::spawn(async move { asker.brpop::<(String, String), _>(vec!["x", "l"], 10.0).await });
    sleep(Duration::from_millis(50)).await;
    c.lpush::<(), _, _>("l", "late").await?;
    equal!(waiter.await??, ("l".into(), "late".into()));
    waiting.quit().await?;
    Ok(())
}

async fn sets_and_sorted_sets(_: Config, c: Client) -> Result<()> {
    equal!(c.sadd::<i64, _, _>("s", vec!["x", "y", "x"]).await?, 2);
    equal!(c.smembers::<BTreeSet<String>, _>("s").await?, BTreeSet::from(["x".into(), "y".into()]));
    equal!(c.smismember::<Vec<bool>, _, _>("s", vec!["x", "z"]).await?, vec![true, false]);
    let scored = vec![(1.5, "a"), (f64::INFINITY, "b"), (-2.0, "c")];
    c.zadd::<(), _, _>("z", None, None, false, false, scored).await?;
    let ranged: Value = c.zrange("z", 0, -1, None, false, None, true).await?;
    let mut ranged: Vec<(String, f64)> = ranged
        .into_zset_result()?
        .into_iter()
        .map(|(member, score)| Ok((member.convert()?, score)))
        .collect::<Result<_>>()?;
    ranged.sort_by(|one, other| one.1.total_cmp(&other.1));
    equal!(ranged, vec![("c".into(), -2.0), ("a".into(), 1.5), ("b".into(), f64::INFINITY)]);
    equal!(c.zscore::<Option<f64>, _, _>("z", "a").await?, Some(1.5));
    equal!(c.zrank::<Option<i64>, _, _>("z", "b", false).await?, Some(2));
    equal!(c.bzpopmin::<(String, String, f64), _>("z", 1.0).await?, ("z".into(), "c".into(), -2.0));
    Ok(())
}

async fn geo_and_sketches(_: Config, c: Client) -> Result<()> {
    let place =
        |longitude, latitude, name: &str| GeoValue { coordinates: (longitude, latitude).into(), member: name.into() };
    let places = vec![place(13.361389, 38.115556, "Palermo"), place(15.087269, 37.502669, "Catania")];
    equal!(c.geoadd::<i64, _, _>("g", None, false, places).await?, 2);
    let away: f64 = c.geodist("g", "Palermo", "Catania", Some(GeoUnit::Kilometers)).await?;
    ensure!((away - 166.2742).abs() < 0.001, "{away}");
    equal!(c.pfadd::<i64, _, _>("p", vec!["a", "b", "a"]).await?, 1);
    equal!(c.pfcount::<i64, _>("p").await?, 2);
    Ok(())
}

type Read = XReadResponse<String, String, String, String>;

async fn streams(_: Config, c: Client) -> Result<()> {
    equal!(c.xadd::<String, _, _, _, _>("st", false, None, "5-1", vec![("f", "v")]).await?, "5-1");
    c.xadd::<(), _, _, _, _>("st", false, ("MAXLEN", "=", 10), "6-1", vec![("f", "w")]).await?;
    let read: Read = c.xread_map(Some(10), None, vec!["st"], vec!["0"]).await?;
    equal!(
        read["st"].iter().map(|(id, fields)| (id.as_str(), fields["f"].as_str())).collect::<Vec<_>>(),
        [("5-1", "v"), ("6-1", "w")]
    );
    c.xgroup_create::<(), _, _, _>("st", "group", "0", true).await?;
    let read: Read = c.xreadgroup_map("group", "one", Some(1), None, false, "st", ">").await?;
    equal!(read["st"].len(), 1);
    let pending: (i64, String, String, Vec<(String, String)>) = c.xpending("st", "group", ()).await?;
    equal!(pending, (1, "5-1".into(), "5-1".into(), vec![("one".into(), "1".into())]));
    let claimed: (String, Vec<String>, Vec<String>) = c.xautoclaim("st", "group", "two", 0, "0", None, true).await?;
    equal!(claimed, ("0-0".into(), vec!["5-1".into()], vec![]));
    equal!(c.xack::<i64, _, _, _>("st", "group", "5-1").await?, 1);
    let waiting = c.clone_new();
    waiting.init().await?;
    let reader = waiting.clone();
    let waiter = tokio::spawn(async move {
        reader.xread_map::<String, String, String, String, _, _>(None, Some(10_000), "st", "$").await
    });
    sleep(Duration::from_millis(50)).await;
    c.xadd::<(), _, _, _, _>("st", false, None, "7-1", vec![("f", "late")]).await?;
    equal!(waiter.await??["st"][0].1["f"], "late");
    waiting.quit().await?;
    Ok(())
}

async fn pipelines_and_transactions(_: Config, c: Client) -> Result<()> {
    let pipeline = c.pipeline();
    for number in 0..500 {
        pipeline.set::<(), _, _>(format!("k:{number}"), number, None, None, false).await?;
    }
    pipeline.get::<(), _>("k:499").await?;
    equal!(pipeline.last::<i64>().await?, 499);
    let pipeline = c.pipeline();
    pipeline.incr::<(), _>("n").await?;
    pipeline.hgetall::<(), _>("n").await?;
    let replies = pipeline.try_all::<i64>().await;
    ensure!(replies.len() == 2 && replies[0].as_ref().is_ok_and(|n| *n == 1) && replies[1].is_err(), "{replies:?}");
    let transaction = c.multi();
    transaction.incr::<(), _>("n").await?;
    transaction.set::<(), _, _>("a", "b", None, None, false).await?;
    transaction.get::<(), _>("a").await?;
    equal!(transaction.exec::<(i64, String, String)>(true).await?, (2, "OK".into(), "b".into()));
    Ok(())
}

async fn scripts(_: Config, c: Client) -> Result<()> {
    c.script_flush(false).await?;
    let script = Script::from_lua(
        "redis.call('INCRBY', KEYS[1], ARGV[1]) return {redis.call('GET', KEYS[1]), 3.7, {ok='fine'}}",
    );
    for sum in ["4", "8"] {
        let reply: (String, i64, String) = script.evalsha_with_reload(&c, vec!["n"], vec![4]).await?;
        equal!(reply, (sum.into(), 3, "fine".into()));
    }
    let error = c.eval::<Value, _, _, _>("return redis.call('LPUSH', KEYS[1], 'x')", "n", ()).await;
    ensure!(error.as_ref().is_err_and(|error| error.details().contains("WRONGTYPE")), "{error:?}");
    let code = "#!lua name=lib\nredis.register_function('plus', function(keys, args) return args[1] + args[2] end)";
    let library = Library::from_code(&c, code).await?;
    let plus = library.functions().get("plus").context("the function is not listed")?;
    equal!(plus.fcall::<i64, _, _, _>(&c, (), vec![2, 3]).await?, 5);
    c.function_flush::<()>(false).await?;
    Ok(())
}

async fn scans(_: Config, c: Client) -> Result<()> {
    let pipeline = c.pipeline();
    for number in 0..300 {
        pipeline.set::<(), _, _>(format!("k:{number}"), 1, None, None, false).await?;
        pipeline.hset::<(), _, _>("h", (number.to_string(), number)).await?;
        pipeline.sadd::<(), _, _>("s", number).await?;
    }
    pipeline.all::<Value>().await?;
    let keys: Vec<Key> = c.scan_buffered("k:*", Some(20), None).try_collect().await?;
    equal!(keys.into_iter().map(|key| key.into_string()).collect::<BTreeSet<_>>().len(), 300);
    use fred::types::scan::Scanner;
    let mut fields = BTreeSet::new();
    let mut pages = Box::pin(c.hscan("h", "*", Some(20)));
    while let Some(mut page) = pages.try_next().await? {
        let found = page.take_results().context("a page without results")?;
        fields.extend(found.inner().into_iter().map(|(field, _)| field.into_string()));
        page.next();
    }
    equal!(fields.len(), 300);
    Ok(())
}

async fn subscriptions(config: Config, c: Client) -> Result<()> {
    let subscriber = builder(&config).build_subscriber_client()?;
    subscriber.init().await?;
    let mut messages = subscriber.message_rx();
    let managed = subscriber.manage_subscriptions();
    subscriber.subscribe("news").await?;
    subscriber.psubscribe("n*").await?;
    subscriber.ssubscribe("shard").await?;
    equal!(c.publish::<i64, _, _>("news", "hello").await?, 2);
    equal!(c.spublish::<i64, _, _>("shard", "sharded").await?, 1);
    let mut came = BTreeSet::new();
    for _ in 0..3 {
        let message = timeout(Duration::from_secs(5), messages.recv()).await??;
        came.insert((message.channel.to_string(), message.value.convert::<String>()?, format!("{:?}", message.kind)));
    }
    let expected = [("news", "hello", "Message"), ("news", "hello", "PMessage"), ("shard", "sharded", "SMessage")];
    equal!(came, expected.map(|(channel, text, kind)| (channel.to_owned(), text.to_owned(), kind.to_owned())).into());
    // It subscribes again by itself after it was cut.
    equal!(c.client_kill::<i64>(vec![ClientKillFilter::Type(fred::types::client::ClientKillType::Pubsub)]).await?, 1);
    for _ in 0..200 {
        if c.publish::<i64, _, _>("news", "again").await? == 2 {
            managed.abort();
            subscriber.quit().await?;
            return Ok(());
        }
        sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("nobody subscribes again")
}

async fn errors(_: Config, c: Client) -> Result<()> {
    let error = custom::<Value>(&c, &["NOSUCH", "a"]).await.expect_err("there is no such command");
    ensure!(error.to_string().contains("unknown command"), "{error}");
    c.set::<(), _, _>("a", "x", None, None, false).await?;
    let error = c.lpush::<i64, _, _>("a", "x").await.expect_err("a string is no list");
    ensure!(error.details().contains("WRONGTYPE"), "{error:?}");
    Ok(())
}

async fn reconnect(config: Config, c: Client) -> Result<()> {
    let other = builder(&config).build()?;
    other.init().await?;
    let id: i64 = other.client_id().await?;
    equal!(c.client_kill::<i64>(vec![ClientKillFilter::ID(id.to_string())]).await?, 1);
    c.set::<(), _, _>("a", 1, None, None, false).await?;
    for _ in 0..200 {
        if let Ok(now) = other.client_id::<i64>().await {
            ensure!(now != id, "it is the same connection");
            equal!(other.get::<i64, _>("a").await?, 1);
            other.quit().await?;
            return Ok(());
        }
        sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("the client does not come back")
}

/// RESP3: what was read is pushed when it changes, to the same connection.
async fn tracking(_: Config, c: Client) -> Result<()> {
    let mut invalidations = c.invalidation_rx();
    c.start_tracking((), false, false, false, false).await?;
    let other = c.clone_new();
    other.init().await?;
    equal!(c.get::<Option<i64>, _>("a").await?, None);
    other.set::<(), _, _>("a", 1, None, None, false).await?;
    let told = timeout(Duration::from_secs(5), invalidations.recv()).await??;
    equal!(told.keys, vec![Key::from("a")]);
    c.stop_tracking().await?;
    c.get::<i64, _>("a").await?;
    other.set::<(), _, _>("a", 2, None, None, false).await?;
    ensure!(timeout(Duration::from_millis(100), invalidations.recv()).await.is_err(), "it is still told");
    // By prefix, without having read anything.
    c.start_tracking("user:", true, false, false, false).await?;
    other.mset(vec![("user:1", 1), ("item:1", 1)]).await?;
    let told = timeout(Duration::from_secs(5), invalidations.recv()).await??;
    equal!(told.keys, vec![Key::from("user:1")]);
    c.stop_tracking().await?;
    other.quit().await?;
    Ok(())
}

/// RESP2: another connection is told.
async fn tracking_redirected(_: Config, c: Client) -> Result<()> {
    let told = c.clone_new();
    told.init().await?;
    let mut invalidations = told.invalidation_rx();
    told.subscribe("__redis__:invalidate").await?;
    let (_, id) = told.connection_ids().into_iter().next().context("the connection has no number")?;
    c.client_tracking::<(), _, _>("on", Some(id), None, false, false, false, false).await?;
    equal!(c.client_getredir::<i64>().await?, id);
    c.get::<Option<i64>, _>("a").await?;
    let other = c.clone_new();
    other.init().await?;
    other.set::<(), _, _>("a", 1, None, None, false).await?;
    let message = timeout(Duration::from_secs(5), invalidations.recv()).await??;
    equal!(message.keys, vec![Key::from("a")]);
    other.quit().await?;
    told.quit().await?;
    Ok(())
}

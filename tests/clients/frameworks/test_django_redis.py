"""django-redis: a cache with locks, patterns, sets, hashes and sorted sets, and sessions, over RESP2 and RESP3."""
import multiprocessing
import time

import django
import pytest
from django.conf import settings
from framework import URL

BACKEND = "django_redis.cache.RedisCache"
settings.configure(
    INSTALLED_APPS=["django.contrib.sessions"],
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
    CACHES={
        "default": {"BACKEND": BACKEND, "LOCATION": f"{URL}/0?protocol=2"},
        "third": {"BACKEND": BACKEND, "LOCATION": f"{URL}/1?protocol=3",
                  "OPTIONS": {"COMPRESSOR": "django_redis.compressors.zlib.ZlibCompressor", "SERIALIZER": "django_redis.serializers.json.JSONSerializer"}},
        "herd": {"BACKEND": BACKEND, "LOCATION": f"{URL}/2", "OPTIONS": {"CLIENT_CLASS": "django_redis.client.HerdClient"}},
    },
)
django.setup()

from django.contrib.sessions.backends.cache import SessionStore  # noqa: E402
from django.core.cache import caches  # noqa: E402


@pytest.fixture(params=["default", "third", "herd"])
def cache(request):
    chosen = caches[request.param]
    chosen.clear()
    return chosen


def add_under_lock(times):
    from django_redis import get_redis_connection

    connection = get_redis_connection("default")
    for _ in range(times):
        with caches["default"].lock("the lock", timeout=10):
            value = int(connection.get("under lock") or 0)
            time.sleep(0.002)
            connection.set("under lock", value + 1)


def test_values(cache):
    cache.set("a", {"any": ["value"]}, timeout=100)
    assert cache.get("a") == {"any": ["value"]}
    assert cache.get("missing", 5) == 5
    assert cache.add("a", 1) is False and cache.add("b", 1) is True
    assert cache.get_or_set("lazy", lambda: "made") == "made"
    cache.set_many({"x": 1, "y": 2})
    assert cache.get_many(["x", "y", "z"]) == {"x": 1, "y": 2}
    assert cache.delete_many(["x", "y"]) == 2
    assert cache.has_key("a") and not cache.has_key("x")
    cache.set("gone", 1, timeout=0)
    assert cache.get("gone") is None


def test_counters():
    cache = caches["default"]
    cache.clear()
    cache.set("n", 1)
    assert cache.incr("n", 41) == 42
    assert cache.decr("n", 2) == 40
    with pytest.raises(ValueError):
        cache.incr("missing")
    assert cache.incr("made", ignore_key_check=True) == 1
    assert cache.incr_version("n") == 2
    assert cache.get("n") is None and cache.get("n", version=2) == 40


def test_times(cache):
    cache.set("a", 1, timeout=100)
    assert 0 < cache.ttl("a") <= 160 and cache.ttl("missing") == 0
    assert cache.persist("a") and cache.ttl("a") is None
    assert cache.expire("a", 50) and 0 < cache.pttl("a") <= 50000
    assert cache.pexpire("a", 200)
    time.sleep(0.3)
    assert cache.get("a") is None
    cache.set("b", 1)
    assert cache.touch("b", 100)


def test_patterns(cache):
    cache.set_many({f"key:{n}": n for n in range(50)})
    cache.set("other", 1)
    assert sorted(cache.keys("key:1*")) == sorted(["key:1", *(f"key:1{n}" for n in range(10))])
    assert len(list(cache.iter_keys("key:*", itersize=10))) == 50
    assert cache.delete_pattern("key:*", itersize=10) == 50
    assert cache.keys("*") == ["other"]


def test_sets_hashes_and_sorted_sets():
    cache = caches["default"]
    cache.clear()
    cache.sadd("s", "a", "b", "c")
    cache.sadd("t", "b", "z")
    assert cache.sinter("s", "t") == {"b"} and cache.sdiff("s", "t") == {"a", "c"} and cache.scard("s") == 3
    assert cache.sunionstore("u", "s", "t") == 4 and set(cache.sscan_iter("u")) == {"a", "b", "c", "z"}
    assert cache.smismember("s", "a", "z") == [True, False] and cache.smove("s", "t", "a")
    cache.hset("h", "f", {"v": 1})
    assert cache.hlen("h") == 1 and cache.hexists("h", "f") and cache.hkeys("h") == ["f"] and cache.hdel("h", "f") == 1
    cache.zadd("z", {"a": 1, "b": 2, "c": 3})
    assert cache.zrange("z", 0, 1, withscores=True) == [("a", 1), ("b", 2)] and cache.zrank("z", "c") == 2
    assert cache.zincrby("z", 5, "a") == 6 and cache.zpopmin("z") == ("b", 2) and cache.zcount("z", 4, "+inf") == 1


def test_locks_between_processes():
    caches["default"].clear()
    processes = [multiprocessing.Process(target=add_under_lock, args=(20,)) for _ in range(4)]
    [process.start() for process in processes]
    [process.join() for process in processes]
    from django_redis import get_redis_connection

    assert int(get_redis_connection("default").get("under lock")) == 80


def test_sessions():
    session = SessionStore()
    session["user"] = 7
    session.set_expiry(100)
    session.save()
    again = SessionStore(session_key=session.session_key)
    assert again["user"] == 7
    again.cycle_key()
    assert not SessionStore().exists(session.session_key) and SessionStore(session_key=again.session_key)["user"] == 7
    again.flush()
    assert not SessionStore().exists(again.session_key or session.session_key)

"""coredis, valkey-glide and Django's cache as applications use them: every data type, waiting, transactions, expiry.

usage: SIMURGH_PORT=6379 pytest other_clients.py
"""
import asyncio
import os
import threading

import coredis
import pytest
from glide_sync import Batch, GlideClient, GlideClientConfiguration, NodeAddress, ProtocolVersion, RequestError

PORT = int(os.environ["SIMURGH_PORT"])


def with_coredis(body):
    async def run():
        client = coredis.Redis(host="127.0.0.1", port=PORT, decode_responses=True)
        async with client:
            await client.flushall()
            await body(client)

    asyncio.run(run())


def test_coredis_strings_and_hashes():
    async def body(client):
        assert await client.set("a", "1")
        assert await client.get("a") == "1"
        assert await client.incrby("a", 4) == 5
        assert await client.expire("a", 100) is True
        assert 90 < await client.ttl("a") <= 100
        assert await client.hset("h", {"f": "v", "g": "w"}) == 2
        assert await client.hgetall("h") == {"f": "v", "g": "w"}
        with pytest.raises(coredis.exceptions.WrongTypeError):
            await client.lpush("h", ["x"])

    with_coredis(body)


def test_coredis_lists_sets_and_sorted_sets():
    async def body(client):
        assert await client.rpush("l", ["a", "b", "c"]) == 3
        assert await client.lrange("l", 0, -1) == ["a", "b", "c"]
        assert await client.blpop(["l"], timeout=1) == ["l", "a"]
        assert await client.sadd("s", ["x", "y"]) == 2
        assert await client.smembers("s") == {"x", "y"}
        assert await client.zadd("z", {"m": 1.5, "n": 2}) == 2
        assert await client.zscore("z", "m") == 1.5
        assert await client.zrange("z", 0, -1) == ("m", "n")

    with_coredis(body)


def test_coredis_streams():
    async def body(client):
        identifier = await client.xadd("st", {"f": "v"})
        (entry,) = await client.xrange("st")
        assert entry.identifier == identifier
        assert dict(entry.field_values) == {"f": "v"}
        assert await client.xlen("st") == 1

    with_coredis(body)


@pytest.fixture(params=[ProtocolVersion.RESP2, ProtocolVersion.RESP3], ids=["2", "3"])
def glide(request):
    config = GlideClientConfiguration([NodeAddress("127.0.0.1", PORT)], protocol=request.param, request_timeout=10000)
    client = GlideClient.create(config)
    client.flushall()
    yield client
    client.close()


def test_glide_data_types(glide):
    assert glide.set("a", "1") == "OK"
    assert glide.get("a") == b"1"
    assert glide.hset("h", {"f": "v"}) == 1
    assert glide.hgetall("h") == {b"f": b"v"}
    assert glide.rpush("l", ["a", "b"]) == 2
    assert glide.lrange("l", 0, -1) == [b"a", b"b"]
    assert glide.sadd("s", ["x"]) == 1
    assert glide.smembers("s") == {b"x"}
    assert glide.zadd("z", {"m": 1.5}) == 1
    assert glide.zscore("z", "m") == 1.5
    assert glide.xadd("st", [("f", "v")]) is not None
    assert glide.xlen("st") == 1
    with pytest.raises(RequestError, match="(?i)wrong kind of value|wrongtype"):
        glide.lpush("h", ["x"])


def test_glide_waits_and_batches(glide):
    glide.rpush("l", ["a"])
    assert glide.blpop(["l"], 1) == [b"l", b"a"]
    assert glide.blpop(["l"], 0.05) is None
    batch = Batch(is_atomic=True)
    batch.set("n", "1")
    batch.incr("n")
    batch.get("n")
    assert glide.exec(batch, raise_on_error=True) == ["OK", 2, b"2"]


@pytest.fixture(scope="module")
def cache():
    from django.conf import settings

    if not settings.configured:
        backend = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": f"redis://127.0.0.1:{PORT}/1"}
        settings.configure(CACHES={"default": backend})
    from django.core.cache import cache as django_cache

    django_cache.clear()
    return django_cache


def test_django_cache(cache):
    cache.set("a", {"any": ["value"]}, timeout=100)
    assert cache.get("a") == {"any": ["value"]}
    assert cache.get("missing", "default") == "default"
    assert cache.add("a", 1) is False
    assert cache.add("b", 1) is True
    assert cache.incr("b", 41) == 42
    cache.set_many({"x": 1, "y": 2}, timeout=100)
    assert cache.get_many(["x", "y", "z"]) == {"x": 1, "y": 2}
    assert cache.touch("x", 5) is True
    assert cache.has_key("x")
    cache.delete_many(["x", "y"])
    assert cache.get_many(["x", "y"]) == {}
    assert cache.get_or_set("lazy", lambda: "made") == "made"
    cache.set("gone", 1, timeout=0)
    assert cache.get("gone") is None
    cache.clear()
    assert cache.get("a") is None


def test_django_cache_counts_right_under_contention(cache):
    cache.set("n", 0)
    threads = [threading.Thread(target=lambda: [cache.incr("n") for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.get("n") == 200

"""redis-py and valkey-py as applications use them: strings, keys, expiry, transactions, pipelines, both protocols.

usage: SIMURGH_PORT=6379 pytest redis_py.py
"""
import os
import threading
import time

import pytest
import redis
import valkey

PORT = int(os.environ["SIMURGH_PORT"])


@pytest.fixture(params=["redis-2", "redis-3", "valkey-2", "valkey-3"])
def client(request):
    library, protocol = request.param.split("-")
    module = {"redis": redis, "valkey": valkey}[library]
    connection = getattr(module, library.capitalize())(port=PORT, protocol=int(protocol), decode_responses=True)
    connection.flushall()
    yield connection
    connection.close()


def test_strings(client):
    assert client.set("a", "1") is True
    assert client.get("a") == "1"
    assert client.get("missing") is None
    assert client.set("a", "2", nx=True) is None
    assert client.set("a", "2", get=True) == "1"
    assert client.append("a", "3") == 2
    assert client.incr("a", 5) == 28
    assert client.incrbyfloat("f", 1.5) == 1.5
    assert client.mset({"x": "1", "y": "2"}) is True
    assert client.mget("x", "missing", "y") == ["1", None, "2"]
    assert client.msetnx({"x": "1", "z": "2"}) is False
    assert client.getrange("a", 0, 0) == "2"
    assert client.setrange("a", 1, "x") == 2
    assert client.getdel("a") == "2x"
    assert client.strlen("a") == 0
    assert client.lcs("x", "y") == ""


def test_binary():
    for module in (redis.Redis, valkey.Valkey):
        connection = module(port=PORT)
        everything = bytes(range(256)) * 1000
        connection.set(everything[:256], everything)
        assert connection.get(everything[:256]) == everything


def test_keys(client):
    client.mset({f"key:{n}": n for n in range(500)})
    assert client.dbsize() == 500
    assert client.exists("key:1", "key:2", "missing") == 2
    assert sorted(client.scan_iter(match="key:*", count=50)) == sorted(f"key:{n}" for n in range(500))
    assert client.rename("key:1", "renamed") is True
    with pytest.raises(Exception, match="no such key"):
        client.rename("missing", "x")
    assert client.type("renamed") == "string"
    assert client.copy("renamed", "copy") is True
    assert client.delete("renamed", "copy", "missing") == 2
    assert client.unlink("key:2") == 1
    assert client.randomkey().startswith("key:")
    assert client.object("encoding", "key:3") == "int"
    payload = redis.Redis(port=PORT).dump("key:3")
    assert redis.Redis(port=PORT).restore("restored", 0, payload)
    assert client.get("restored") == "3"


def test_expiry(client):
    client.set("a", "1", ex=100)
    assert 98 <= client.ttl("a") <= 100
    assert client.persist("a") is True
    assert client.ttl("a") == -1
    assert client.pexpire("a", 30) is True
    assert client.expireat("a", 99999999999, gt=True) is True
    assert client.expiretime("a") == 99999999999
    assert client.getex("a", persist=True) == "1"
    client.set("short", "1", px=20)
    deadline = time.time() + 5
    while client.exists("short") and time.time() < deadline:
        time.sleep(0.01)
    assert client.get("short") is None


def test_pipelines_and_transactions(client):
    with client.pipeline(transaction=False) as pipeline:
        for n in range(1000):
            pipeline.set(f"k{n}", n).incr(f"k{n}")
        replies = pipeline.execute()
    assert replies == [reply for n in range(1000) for reply in (True, n + 1)]
    with client.pipeline() as pipeline:
        assert pipeline.set("a", "x").incr("a").get("a").execute(raise_on_error=False)[2] == "x"


def test_watch(client):
    client.set("a", 1)
    with client.pipeline() as pipeline:
        pipeline.watch("a")
        client.set("a", 2)
        pipeline.multi()
        pipeline.set("a", 3)
        with pytest.raises((redis.WatchError, valkey.WatchError)):
            pipeline.execute()
    assert client.get("a") == "2"


def test_transactions_lose_no_increments(client):
    def work():
        for _ in range(50):
            client.transaction(lambda pipe: (value := int(pipe.get("n") or 0), pipe.multi(), pipe.set("n", value + 1)), "n")

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert client.get("n") == "200"


def test_databases_and_server(client):
    client.set("a", 1)
    other = type(client)(port=PORT, db=3, decode_responses=True)
    assert other.get("a") is None
    assert client.move("a", 3) is True
    assert other.get("a") == "1"
    assert client.swapdb(0, 3) is True
    assert client.get("a") == "1"
    assert client.info("server")["redis_version"]
    assert "db0" in client.info("keyspace")
    assert client.config_get("appendfsync")["appendfsync"] in ("always", "everysec", "no", "write")
    assert client.client_setname("me") is True
    assert client.client_getname() == "me"
    assert any(other["name"] == "me" for other in client.client_list())
    assert client.command_count() > 50
    assert client.time()[0] > 1_600_000_000
    assert client.echo("hello") == "hello"


def test_errors(client):
    with pytest.raises(Exception, match="unknown command 'NOSUCH'"):
        client.execute_command("NOSUCH", "a")
    client.set("a", "x")
    with pytest.raises(Exception, match="not an integer"):
        client.incr("a")


def test_lock(client):
    """The lock recipe needs SET NX PX, and a script only to let go; so let it time out."""
    assert client.set("lock", "token", nx=True, px=10000) is True
    assert client.set("lock", "other", nx=True, px=10000) is None

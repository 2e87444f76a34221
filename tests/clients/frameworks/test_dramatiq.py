"""dramatiq: its queue is two large scripts. A worker of two processes with two threads each, results, limits and pipelines."""
import contextlib
import time
import uuid

import dramatiq
import pytest
import redis
from dramatiq import group, pipeline
from dramatiq.brokers.redis import RedisBroker
from dramatiq.errors import RateLimitExceeded
from dramatiq.middleware import GroupCallbacks
from dramatiq.rate_limits import Barrier, BucketRateLimiter, ConcurrentRateLimiter, WindowRateLimiter
from dramatiq.rate_limits.backends import RedisBackend as LimitBackend
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from dramatiq.results.errors import ResultFailure, ResultTimeout
from framework import BIN, URL, kill, until, worker

store = redis.Redis.from_url(f"{URL}/2", decode_responses=True)
limits = LimitBackend(url=f"{URL}/3")
broker = RedisBroker(url=f"{URL}/0", heartbeat_timeout=2000, maintenance_chance=1000000)
broker.add_middleware(Results(backend=RedisBackend(url=f"{URL}/1")))
broker.add_middleware(GroupCallbacks(limits))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True)
def add(left, right):
    return left + right


@dramatiq.actor
def note(key, value):
    store.rpush(key, value)


@dramatiq.actor(store_results=True, max_retries=0)
def fail():
    raise ValueError("told")


@dramatiq.actor(store_results=True, min_backoff=50, max_backoff=100)
def succeed_at_third(key):
    count = store.incr(key)
    if count < 3:
        raise ValueError(count)
    return count


@dramatiq.actor(max_retries=0)
def die(key):
    store.incr(key)
    raise ValueError("for the dead letters")


@dramatiq.actor(store_results=True)
def sleep(seconds):
    time.sleep(seconds)


@dramatiq.actor(store_results=True, queue_name="other", time_limit=60000)
def hang_at_first(key):
    if store.incr(key) == 1:
        time.sleep(60)
    return "done by another"


@dramatiq.actor(store_results=True, max_retries=100, min_backoff=50, max_backoff=100)
def one_at_a_time(key):
    with ConcurrentRateLimiter(limits, key, limit=1).acquire():
        running = store.incr(key)
        time.sleep(0.1)
        store.decr(key)
        return running


def workers(name, queue, processes):
    return worker(name, BIN / "dramatiq", "test_dramatiq", "-p", processes, "-t", 2, "-Q", queue, "--skip-logging")


@pytest.fixture(scope="module", autouse=True)
def running():
    with workers("first", "default", 2):
        yield


def fresh():
    return uuid.uuid4().hex


def result(message):
    """In short waits, as the client has a time limit of its own on what it reads."""
    for _ in range(10):
        with contextlib.suppress(ResultTimeout):
            return message.get_result(block=True, timeout=3000)
    pytest.fail("no result")


def test_results():
    messages = [add.send(n, n) for n in range(200)]
    assert [result(message) for message in messages] == [2 * n for n in range(200)]


def test_nothing_is_done_twice_or_lost():
    key = fresh()
    for n in range(500):
        note.send(key, n)
    until(lambda: store.llen(key) >= 500)
    broker.join("default", timeout=10000)
    assert sorted(map(int, store.lrange(key, 0, -1))) == list(range(500))


def test_failures_and_retries():
    with pytest.raises(ResultFailure, match="told"):
        result(fail.send())
    assert result(succeed_at_third.send(fresh())) == 3


def test_dead_letters():
    key = fresh()
    before = broker.client.zcard("dramatiq:default.XQ")
    die.send(key)
    until(lambda: broker.client.zcard("dramatiq:default.XQ") > before)
    assert store.get(key) == "1"


def test_delay():
    begin = time.monotonic()
    assert result(add.send_with_options(args=(1, 2), delay=1000)) == 3
    assert time.monotonic() - begin > 0.9


def test_a_result_that_is_not_there_yet():
    message = sleep.send(1)
    with pytest.raises(ResultTimeout):
        message.get_result(block=True, timeout=100)
    assert result(message) is None


def test_pipelines_and_groups():
    assert result(pipeline([add.message(1, 2), add.message(3), add.message(4)]).run()) == 10
    work = group([add.message(n, 1) for n in range(10)])
    key = fresh()
    work.add_completion_callback(note.message(key, "all done"))
    work.run()
    assert list(work.get_results(block=True, timeout=10000)) == list(range(1, 11))
    until(lambda: store.lrange(key, 0, -1) == ["all done"])


def test_a_lost_workers_message_is_done_by_another():
    key = fresh()
    message = hang_at_first.send(key)
    with workers("doomed", "other", 1) as doomed:
        until(lambda: store.get(key) == "1")
        kill(doomed)
    with workers("heir", "other", 1):
        assert result(message) == "done by another"
    assert store.get(key) == "2"


def test_limits():
    assert [result(message) for message in [one_at_a_time.send(fresh_key) for fresh_key in [fresh()] * 4]] == [1] * 4
    bucket = BucketRateLimiter(limits, fresh(), limit=2, bucket=60000)
    for _ in range(2):
        with bucket.acquire():
            pass
    with pytest.raises(RateLimitExceeded), bucket.acquire():
        pass
    window = WindowRateLimiter(limits, fresh(), limit=2, window=60)
    taken = []
    for _ in range(3):
        with window.acquire(raise_on_failure=False) as acquired:
            taken.append(acquired)
    assert taken == [True, True, False]


def test_barrier():
    barrier = Barrier(limits, fresh(), ttl=10000)
    assert barrier.create(parties=2)
    assert barrier.wait(block=False) is False
    assert barrier.wait(block=False) is True


def test_join():
    sleep.send(0.3)
    broker.join("default", timeout=10000)
    assert broker.client.llen("dramatiq:default") == 0

"""limits (what Flask-Limiter and others count with): each strategy's scripts, from one process and from several at once."""
import multiprocessing
import time
import uuid

import pytest
from framework import URL
from limits import parse
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter

STRATEGIES = [FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter]


def hit_often(strategy, name, times, total):
    limiter = strategy(storage_from_string(URL))
    taken = sum(limiter.hit(parse("50 per hour"), name) for _ in range(times))
    with total.get_lock():
        total.value += taken


@pytest.fixture(params=STRATEGIES, ids=lambda strategy: strategy.__name__)
def strategy(request):
    return request.param


@pytest.fixture
def storage():
    return storage_from_string(URL)


def test_a_limit_holds_and_ends(strategy, storage):
    limiter, name, limit = strategy(storage), uuid.uuid4().hex, parse("5 per second")
    # At the beginning of a second, as two of the strategies count in whole ones.
    time.sleep(1 - time.time() % 1 + 0.02)
    assert [limiter.hit(limit, name) for _ in range(6)] == [True] * 5 + [False]
    assert not limiter.test(limit, name)
    assert limiter.get_window_stats(limit, name).remaining == 0
    time.sleep(2.1)
    assert limiter.test(limit, name)
    assert limiter.get_window_stats(limit, name).remaining == 5


def test_a_hit_may_cost_more(strategy, storage):
    limiter, name, limit = strategy(storage), uuid.uuid4().hex, parse("10 per hour")
    assert limiter.hit(limit, name, cost=7)
    assert limiter.hit(limit, name, cost=3)
    assert not limiter.hit(limit, name, cost=4)


def test_clear_and_reset(strategy, storage):
    limiter, name, limit = strategy(storage), uuid.uuid4().hex, parse("1 per hour")
    assert limiter.hit(limit, name) and not limiter.hit(limit, name)
    limiter.clear(limit, name)
    assert limiter.hit(limit, name)
    assert storage.reset() >= 1
    assert limiter.hit(limit, name)


def test_processes_share_a_limit(strategy):
    name, total = uuid.uuid4().hex, multiprocessing.Value("i", 0)
    processes = [multiprocessing.Process(target=hit_often, args=(strategy, name, 30, total)) for _ in range(4)]
    [process.start() for process in processes]
    [process.join() for process in processes]
    assert total.value == 50

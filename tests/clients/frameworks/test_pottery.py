"""pottery: Redlock over three databases by script, ids by consensus, and the containers that it keeps in the server."""
import multiprocessing
import time
import uuid

import pytest
import redis
from framework import PORT, until
from pottery import (
    BloomFilter,
    HyperLogLog,
    NextID,
    QueueEmptyError,
    RedisCounter,
    RedisDeque,
    RedisDict,
    RedisList,
    Redlock,
    RedisSet,
    RedisSimpleQueue,
    ReleaseUnlockedLock,
    redis_cache,
    synchronize,
)

store = redis.Redis(port=PORT, db=2)


def masters():
    return {redis.Redis(port=PORT, db=db) for db in (3, 4, 5)}


def count_up(key, times):
    own = redis.Redis(port=PORT, db=2)
    for _ in range(times):
        with Redlock(key=key, masters=masters(), auto_release_time=10):
            value = int(own.get(key) or 0)
            time.sleep(0.002)
            own.set(key, value + 1)


def fresh():
    return uuid.uuid4().hex


def test_a_lock_is_held_extended_and_let_go():
    key = fresh()
    lock, other = (Redlock(key=key, masters=masters(), auto_release_time=5) for _ in range(2))
    assert lock.acquire()
    assert 0 < lock.locked() <= 5
    assert not other.acquire(blocking=False)
    time.sleep(0.5)
    left = lock.locked()
    lock.extend()
    # It returns once most masters have extended the lock, and locked() may ask the others.
    until(lambda: lock.locked() > left)
    lock.release()
    assert not lock.locked()
    assert other.acquire(blocking=False)
    with pytest.raises(ReleaseUnlockedLock):
        lock.release()


def test_a_lock_lets_go_by_itself():
    lock = Redlock(key=fresh(), masters=masters(), auto_release_time=0.3)
    assert lock.acquire()
    time.sleep(0.4)
    assert not lock.locked()
    assert Redlock(key=lock.key, masters=masters()).acquire(blocking=False)


def test_processes_exclude_each_other():
    key = fresh()
    processes = [multiprocessing.Process(target=count_up, args=(key, 20)) for _ in range(4)]
    [process.start() for process in processes]
    [process.join() for process in processes]
    assert int(store.get(key)) == 80


def test_a_synchronized_function():
    key, running = fresh(), []

    @synchronize(key=key, masters=masters(), auto_release_time=5)
    def work():
        running.append(Redlock(key=key, masters=masters()).locked())
        return "done"

    assert work() == "done" and len(running) == 1


def test_ids():
    ids = NextID(key=fresh(), masters=masters())
    assert [next(ids) for _ in range(20)] == list(range(1, 21))


def test_containers():
    numbers = RedisList(range(10), redis=store, key=fresh())
    numbers[2] = "two"
    numbers.insert(0, "first")
    del numbers[-3:]
    assert list(numbers) == ["first", 0, 1, "two", 3, 4, 5, 6]
    numbers.reverse()
    assert numbers[0] == 6 and numbers[1:3] == [5, 4]
    words = RedisDict({"a": 1}, redis=store, key=fresh())
    words.update(b=[2], c=None)
    assert words == {"a": 1, "b": [2], "c": None} and words.pop("a") == 1 and "a" not in words
    members = RedisSet({1, 2, 3}, redis=store, key=fresh())
    assert members.intersection({2, 3, 4}) == {2, 3} and members.pop() in {1, 2, 3} and len(members) == 2
    counted = RedisCounter("abracadabra", redis=store, key=fresh())
    assert counted.most_common(1) == [("a", 5)]
    counted["a"] += 2
    assert counted["a"] == 7 and counted.total() == 13
    ends = RedisDeque([1, 2, 3], redis=store, key=fresh(), maxlen=3)
    ends.append(4)
    ends.rotate(1)
    assert list(ends) == [4, 2, 3]
    queue = RedisSimpleQueue(redis=store, key=fresh())
    queue.put("a")
    assert queue.get() == "a" and queue.empty()
    with pytest.raises(QueueEmptyError):
        queue.get(block=False)


def test_sketches():
    seen = HyperLogLog((str(n) for n in range(1000)), redis=store, key=fresh())
    assert 950 < len(seen) < 1050
    filtered = BloomFilter((str(n) for n in range(100)), redis=store, key=fresh(), num_elements=200, false_positives=0.001)
    assert all(str(n) in filtered for n in range(100)) and "none of them" not in filtered


def test_cached_function():
    calls = []

    @redis_cache(redis=store, key=fresh(), timeout=100)
    def work(value):
        calls.append(value)
        return value * 2

    assert [work(2), work(2), work(3)] == [4, 4, 6] and calls == [2, 3]

"""huey: a consumer of three processes for each of two stores, a list with a schedule popped by script, and a sorted set."""
import time
import uuid

import huey_tasks as tasks
import pytest
from framework import BIN, until, worker
from huey.exceptions import ResultTimeout, TaskException

store = tasks.store


def consumer(name, *more):
    return worker(name, BIN / "huey_consumer", f"huey_tasks.{name}", "-k", "process", "-s", "1", *more)


@pytest.fixture(scope="module", autouse=True)
def running():
    # One worker for the ranked queue, so that its order shows.
    with consumer("plain", "-w", "3"), consumer("ranked", "-w", "1"):
        yield


def fresh():
    return uuid.uuid4().hex


def got(result):
    """Its value in the end: a failure before a retry is a result too."""
    for _ in range(10):
        try:
            return result.get(blocking=True, timeout=20)
        except ResultTimeout:
            # At once, where the note of a failure comes after the result of the next try was taken.
            pass
        except TaskException:
            if not result.task.retries:
                raise
            result.reset()
    raise AssertionError("it has no result")


def test_results():
    assert [got(result) for result in [tasks.add(n, n) for n in range(100)]] == [2 * n for n in range(100)]
    assert [got(result) for result in [tasks.add_ranked(n, n) for n in range(100)]] == [2 * n for n in range(100)]


def test_a_failure_is_told():
    with pytest.raises(TaskException, match="told"):
        got(tasks.fail())


def test_retries():
    assert got(tasks.succeed_at_third(fresh())) == 3
    begin = time.monotonic()
    assert got(tasks.again_later(fresh())) == "later"
    assert time.monotonic() - begin > 0.5


def test_schedule():
    begin = time.monotonic()
    result = tasks.add.schedule((1, 2), delay=1)
    until(lambda: tasks.plain.scheduled_count() > 0)
    assert got(result) == 3
    assert time.monotonic() - begin > 0.5


def test_revoke_and_restore():
    result = tasks.add.schedule((1, 2), delay=2)
    result.revoke()
    assert result.is_revoked()
    kept = tasks.add.schedule((3, 4), delay=1)
    kept.revoke()
    assert kept.restore()
    assert got(kept) == 7
    until(lambda: tasks.plain.scheduled_count() == 0)
    time.sleep(0.5)
    assert result() is None


def test_pipeline_group_and_chord():
    assert tasks.plain.enqueue(tasks.add.s(1, 2).then(tasks.add, 3).then(tasks.add, 4)).get(blocking=True, timeout=10) == [3, 6, 10]
    assert sorted(tasks.add.map([(n, 1) for n in range(10)]).get(blocking=True, timeout=10)) == list(range(1, 11))


def test_priority():
    key = fresh()
    tasks.sleep(1)
    time.sleep(0.3)
    for value in (1, 5, 3):
        tasks.note(key, value, priority=value)
    until(lambda: store.llen(key) == 3)
    assert store.lrange(key, 0, -1) == ["5", "3", "1"]


def test_locks():
    key = fresh()
    assert [got(result) for result in [tasks.one_at_a_time(key) for _ in range(4)]] == [1] * 4


def test_rate_limit():
    from huey.exceptions import RateLimitExceeded

    limit = tasks.plain.rate_limit(fresh(), limit=2, per=60, retry=False)
    for _ in range(2):
        with limit:
            pass
    with pytest.raises(RateLimitExceeded), limit:
        pass


def test_storage_of_other_data():
    tasks.plain.put("a", {"any": "value"})
    assert tasks.plain.get("a", peek=True) == {"any": "value"}
    assert tasks.plain.get("a") == {"any": "value"}
    assert tasks.plain.get("a") is None

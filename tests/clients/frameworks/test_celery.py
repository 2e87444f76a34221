"""Celery: broker and result store on one server, a worker of two processes and a beat."""
import threading
import time
import uuid

import pytest
import redis
from celery import Celery, chain, chord, group
from framework import BIN, FOLDER, URL, kill, until, worker

app = Celery("test_celery", broker=f"{URL}/0", backend=f"{URL}/1")
app.conf.update(
    task_default_priority=5,
    broker_transport_options={"priority_steps": [0, 3, 6, 9], "queue_order_strategy": "priority", "visibility_timeout": 3},
    worker_prefetch_multiplier=1,
    result_expires=600,
    beat_schedule={"tick": {"task": "test_celery.note", "schedule": 0.5, "args": ("ticks", "tick")}},
    beat_schedule_filename=str(FOLDER / "beat-schedule"),
    # So that what a lost worker had taken is given back in the test's time.
    worker_cancel_long_running_tasks_on_connection_loss=True,
)
store = redis.Redis.from_url(f"{URL}/2", decode_responses=True)


@app.task
def add(left, right):
    return left + right


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def note(key, value):
    store.rpush(key, value)


@app.task
def fail(text):
    raise ValueError(text)


@app.task(bind=True, max_retries=5)
def succeed_at_third(self, key):
    if store.incr(key) < 3:
        raise self.retry(countdown=0.1)
    return self.request.retries


@app.task
def sleep(seconds):
    time.sleep(seconds)
    return seconds


@app.task
def hang_at_first(key):
    if store.incr(key) == 1:
        time.sleep(60)
    return "done by another"


@app.task(bind=True)
def report(self):
    self.update_state(state="HALF", meta={"done": 50})
    time.sleep(0.7)
    return "whole"


@app.task(ignore_result=True, rate_limit="5/s")
def limited(key):
    store.rpush(key, time.time())


def workers(name, *more):
    return worker(name, BIN / "celery", "-A", "test_celery", "worker", "-c", "2", "-n", f"{name}@here", "-l", "WARNING", *more)


@pytest.fixture(scope="module", autouse=True)
def running():
    with workers("first"):
        until(lambda: app.control.ping(timeout=0.5))
        yield


def fresh():
    return uuid.uuid4().hex


def test_results_of_many_tasks():
    results = [add.delay(n, n) for n in range(50)]
    assert [result.get(timeout=20) for result in results] == [2 * n for n in range(50)]


def test_a_failure_is_told():
    with pytest.raises(ValueError, match="told"):
        fail.delay("told").get(timeout=10)


def test_retries():
    assert succeed_at_third.delay(fresh()).get(timeout=10) == 2


def test_states_before_the_end():
    result = report.delay()
    until(lambda: result.state == "HALF")
    assert result.info == {"done": 50}
    assert result.get(timeout=10) == "whole"


def test_chain_group_and_chord():
    assert chain(add.s(1, 2), add.s(3), add.s(4)).apply_async().get(timeout=10) == 10
    assert group(add.s(n, 1) for n in range(10)).apply_async().get(timeout=10) == list(range(1, 11))
    assert chord((add.s(n, n) for n in range(20)), total.s()).apply_async().get(timeout=20) == 380


def test_countdown():
    begin = time.monotonic()
    assert add.apply_async((1, 1), countdown=1).get(timeout=10) == 2
    assert time.monotonic() - begin > 0.8


def test_expired_tasks_do_not_run():
    key = fresh()
    note.apply_async((key, "late"), countdown=1, expires=0.2)
    time.sleep(2)
    assert store.llen(key) == 0


def test_priorities_go_first():
    blockers = [sleep.delay(5) for _ in range(2)]
    until(lambda: len((app.control.inspect(timeout=0.3).active() or {}).get("first@here", ())) == 2)
    key = fresh()
    for priority in [9, 9, 9, 0, 0, 0]:
        note.apply_async((key, priority), priority=priority)
    [blocker.get(timeout=20) for blocker in blockers]
    until(lambda: store.llen(key) == 6)
    # One may have been fetched ahead of the others for each of the two processes.
    assert sum(map(int, store.lrange(key, 0, 2))) <= 18
    assert store.lrange(key, -1, -1) == ["9"]


def test_revoke():
    result = add.apply_async((1, 1), countdown=3)
    result.revoke()
    until(lambda: result.state == "REVOKED")


def test_remote_control():
    inspect = app.control.inspect(timeout=1)
    assert "test_celery.add" in inspect.registered()["first@here"]
    assert inspect.stats()["first@here"]["pool"]["max-concurrency"] == 2
    assert app.control.rate_limit("test_celery.limited", "5/s", reply=True)[0]["first@here"]["ok"]


def test_rate_limit():
    key = fresh()
    for _ in range(6):
        limited.delay(key)
    until(lambda: store.llen(key) == 6)
    times = list(map(float, store.lrange(key, 0, -1)))
    assert max(times) - min(times) > 0.7


def test_a_lost_workers_task_is_done_by_another():
    key = fresh()
    with workers("doomed", "-Q", "other", "-P", "solo") as doomed:
        result = hang_at_first.apply_async((key,), queue="other", acks_late=True)
        until(lambda: store.get(key) == "1")
        kill(doomed)
    assert not result.ready()
    with workers("heir", "-Q", "other"):
        assert result.get(timeout=240) == "done by another"  # Celery looks for lost tasks now and then: up to 90 s
    assert store.get(key) == "2"


def test_beat():
    with worker("beat", BIN / "celery", "-A", "test_celery", "beat", "-l", "WARNING"):
        until(lambda: store.llen("ticks") >= 3)


def test_events():
    seen, wanted = set(), {"task-received", "task-started", "task-succeeded"}
    with app.connection() as connection:
        receiver = app.events.Receiver(connection, handlers={"*": lambda event: seen.add(event["type"])})

        def listen():
            for _ in receiver.itercapture(limit=None, timeout=None, wakeup=True):
                if seen >= wanted:
                    return

        listening = threading.Thread(target=listen, daemon=True)
        listening.start()
        app.control.enable_events()
        until(lambda: add.delay(1, 1).get(timeout=10) == 2 and seen >= wanted)

"""The tasks of test_huey.py: huey's consumer is told where to find them. A queue in a list, and one by priority."""
import os
import time

import redis
from huey import PriorityRedisExpireHuey, RedisHuey, crontab
from huey.exceptions import RetryTask

PORT = int(os.environ["FRAMEWORK_PORT"])
store = redis.Redis(port=PORT, db=2, decode_responses=True)
plain = RedisHuey("plain", url=f"redis://127.0.0.1:{PORT}/0", notify_result=True)
ranked = PriorityRedisExpireHuey("ranked", url=f"redis://127.0.0.1:{PORT}/1", expire_time=100)


@plain.task()
def add(left, right):
    return left + right


@ranked.task()
def add_ranked(left, right):
    return left + right


@plain.task(retries=3)
def succeed_at_third(key):
    count = store.incr(key)
    if count < 3:
        raise ValueError(count)
    return count


@plain.task()
def again_later(key):
    if store.incr(key) == 1:
        raise RetryTask(delay=1)
    return "later"


@plain.task()
def fail():
    raise ValueError("told")


@ranked.task()
def note(key, value):
    store.rpush(key, value)


@ranked.task()
def sleep(seconds):
    time.sleep(seconds)


@plain.task(retries=20, retry_delay=0.2)
@plain.lock_task("the lock")
def one_at_a_time(key):
    running = store.incr(key)
    time.sleep(0.1)
    store.decr(key)
    return running


@plain.task()
def total(numbers):
    return sum(numbers)


@plain.periodic_task(crontab(minute="*"))
def tick():
    store.incr("ticks")

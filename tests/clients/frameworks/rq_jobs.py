"""The jobs that RQ's workers run for test_rq.py: named by module and function, so they stand in a module of their own."""
import os
import time

import redis

store = redis.Redis(port=int(os.environ["FRAMEWORK_PORT"]), db=2, decode_responses=True)


def add(left, right):
    return left + right


def note(key, value):
    store.rpush(key, value)
    return value


def fail():
    raise ValueError("told")


def succeed_at_third(key):
    count = store.incr(key)
    if count < 3:
        raise ValueError(count)
    return count


def sleep(seconds):
    time.sleep(seconds)
    return seconds


def overlap(key):
    """How many of these ran at the same time, this one counted."""
    store.rpush(f"{key}:seen", store.incr(key))
    time.sleep(0.3)
    store.decr(key)


def succeeded(job, connection, result):
    store.rpush("callbacks", f"success {result}")


def failed(job, connection, kind, value, trace):
    store.rpush("callbacks", f"failure {value}")

"""RQ: a pool of worker processes with a scheduler; jobs that depend, retry, repeat, wait for their time and limit each other."""
import datetime
import uuid

import pytest
import redis
import rq_jobs
from framework import BIN, URL, until, worker
from rq import Callback, Queue, RateLimit, Repeat, Retry, Worker
from rq.command import send_stop_job_command
from rq.exceptions import DuplicateJobError
from rq.group import Group
from rq.job import Job, JobStatus
from rq.registry import FailedJobRegistry, FinishedJobRegistry, StartedJobRegistry

connection = redis.Redis.from_url(f"{URL}/0")
store = redis.Redis.from_url(f"{URL}/2", decode_responses=True)
queue = Queue("default", connection=connection)


@pytest.fixture(scope="module", autouse=True)
def running():
    options = ["--url", f"{URL}/0", "high", "default"]
    with worker("first", BIN / "rq", "worker", "--with-scheduler", *options), worker("second", BIN / "rq", "worker", *options):
        until(lambda: len(Worker.all(connection=connection)) == 2)
        yield


def fresh():
    return uuid.uuid4().hex


def done(job, status=JobStatus.FINISHED):
    until(lambda: job.get_status(refresh=True) == status)
    return job.return_value(refresh=True)


def seconds(number):
    return datetime.timedelta(seconds=number)


def test_results():
    jobs = [queue.enqueue(rq_jobs.add, n, n) for n in range(20)]
    assert [done(job) for job in jobs] == [2 * n for n in range(20)]
    assert set(FinishedJobRegistry(queue=queue).get_job_ids()) >= {job.id for job in jobs}


def test_failures_are_kept_and_requeued():
    job = queue.enqueue(rq_jobs.fail)
    done(job, JobStatus.FAILED)
    assert "told" in job.latest_result().exc_string
    registry = FailedJobRegistry(queue=queue)
    assert job.id in registry
    registry.requeue(job.id)
    until(lambda: len(job.results()) == 2)


def test_retries_with_and_without_a_wait():
    assert done(queue.enqueue(rq_jobs.succeed_at_third, fresh(), retry=Retry(max=3))) == 3
    assert done(queue.enqueue(rq_jobs.succeed_at_third, fresh(), retry=Retry(max=3, interval=1))) == 3


def test_dependencies():
    key = fresh()
    first = queue.enqueue(rq_jobs.sleep, 0.5)
    second = queue.enqueue(rq_jobs.note, key, "second", depends_on=[first])
    third = queue.enqueue(rq_jobs.note, key, "third", depends_on=[first, second])
    assert third.get_status() == JobStatus.DEFERRED
    done(third)
    assert store.lrange(key, 0, -1) == ["second", "third"]


def test_scheduled_jobs():
    job = queue.enqueue_in(seconds(1), rq_jobs.add, 1, 2)
    assert job.get_status() == JobStatus.SCHEDULED
    assert done(job) == 3


def test_repeated_jobs():
    key = fresh()
    queue.enqueue(rq_jobs.note, key, "again", repeat=Repeat(times=2, interval=1))
    until(lambda: store.llen(key) == 3)


def test_a_queue_before_another_and_the_front_of_one():
    blockers = [queue.enqueue(rq_jobs.sleep, 1) for _ in range(2)]
    until(lambda: StartedJobRegistry(queue=queue).count == 2)
    key = fresh()
    last = queue.enqueue(rq_jobs.note, key, "default")
    queue.enqueue(rq_jobs.note, key, "front", at_front=True)
    Queue("high", connection=connection).enqueue(rq_jobs.note, key, "high")
    assert queue.count == 2
    [done(job) for job in blockers]
    done(last)
    until(lambda: store.llen(key) == 3)
    assert store.lindex(key, 2) == "default" or store.lrange(key, 0, 1) != ["default", "front"]


def test_one_at_a_time():
    key = fresh()
    jobs = [queue.enqueue(rq_jobs.overlap, key, rate_limit=RateLimit(key, 1)) for _ in range(4)]
    [done(job) for job in jobs]
    assert store.lrange(f"{key}:seen", 0, -1) == ["1"] * 4


def test_unique_jobs():
    name = fresh()
    job = queue.enqueue(rq_jobs.sleep, 0.3, job_id=name, unique=True)
    with pytest.raises(DuplicateJobError):
        queue.enqueue(rq_jobs.sleep, 0.3, job_id=name, unique=True)
    done(job)


def test_callbacks():
    store.delete("callbacks")
    done(queue.enqueue(rq_jobs.add, 1, 1, on_success=Callback(rq_jobs.succeeded)))
    done(queue.enqueue(rq_jobs.fail, on_failure=Callback(rq_jobs.failed)), JobStatus.FAILED)
    until(lambda: store.lrange("callbacks", 0, -1) == ["success 2", "failure told"])


def test_groups():
    group = Group(connection=connection)
    jobs = group.enqueue_many(queue, [Queue.prepare_data(rq_jobs.add, (n, 1)) for n in range(5)])
    assert [done(job) for job in jobs] == [1, 2, 3, 4, 5]
    assert {job.id for job in group.get_jobs()} == {job.id for job in jobs}


def test_a_running_job_is_stopped():
    job = queue.enqueue(rq_jobs.sleep, 30)
    until(lambda: job.get_status(refresh=True) == JobStatus.STARTED)
    send_stop_job_command(connection, job.id)
    done(job, JobStatus.STOPPED)


def test_a_job_that_takes_too_long_fails():
    done(queue.enqueue(rq_jobs.sleep, 30, job_timeout=1), JobStatus.FAILED)


def test_results_expire():
    job = queue.enqueue(rq_jobs.add, 1, 1, result_ttl=1)
    done(job)
    until(lambda: not Job.exists(job.id, connection=connection))


def test_workers_tell_of_themselves():
    workers = Worker.all(connection=connection)
    assert {name for each in workers for name in each.queue_names()} == {"high", "default"}
    assert sum(each.successful_job_count for each in workers) > 20

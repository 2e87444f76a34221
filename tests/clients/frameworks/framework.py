"""What the tests of the Python frameworks share: where their server is, and worker processes that end with the test."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

PORT = int(os.environ["FRAMEWORK_PORT"])
URL = f"redis://127.0.0.1:{PORT}"
FOLDER = pathlib.Path(os.environ["FRAMEWORK_FOLDER"])
BIN = pathlib.Path(sys.executable).parent


@contextlib.contextmanager
def worker(name, *command):
    """Runs a program of the framework's own; what it says is shown when the test fails."""
    log = FOLDER / f"{name}.log"
    with open(log, "wb") as out:
        process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        print(log.read_text(errors="replace")[-3000:])


def family(pid):
    """A process and all that it started, they and theirs."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in family(int(child)))]


def kill(process):
    """As when a machine is lost: the worker and its processes end at once, and nobody is told."""
    for pid in family(process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait()


def until(condition, seconds=20):
    """What the condition gives once it is true; a framework's workers need their time."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"not so after {seconds} s"
        time.sleep(0.05)
    return value

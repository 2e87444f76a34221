"""A pytest plugin for redis_py_suite: expects the tests to fail that the list at $SIMURGH_EXCLUDED names, and leaves out the
tracing of memory, which the suite switches on and never looks at: it makes every test several times slower."""
import os
import tracemalloc

import pytest

tracemalloc.start = lambda *_: None
tracemalloc.stop = lambda: None


def excluded():
    """Test to reason; a test stands without its folder and without its parameters."""
    tests, reason = {}, None
    path = os.environ.get("SIMURGH_EXCLUDED")
    for line in open(path) if path else []:
        line = line.strip()
        if line.startswith("== "):
            reason = line[3:]
        elif line and not line.startswith("#"):
            tests[line] = reason
    return tests


def reason_for(node_id, tests):
    return tests.get(node_id.removeprefix("tests/").removeprefix("test_asyncio/").split("[")[0])


def pytest_collection_modifyitems(items):
    tests = excluded()
    for item in items:
        reason = reason_for(item.nodeid, tests)
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=False))

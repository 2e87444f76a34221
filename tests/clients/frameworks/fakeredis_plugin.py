"""A pytest plugin for fakeredis_suite: chooses a part of the tests, leaves out what the list at $FAKEREDIS_EXCLUDED names, and gives
the state machines a real server instead of the model. Some tests are made to wait for what they ask about."""
import os

import pytest
import redis

# These subscribe on one connection and ask on another what is subscribed, without having read the answer to the first. A server of one
# thread has seen both in order; here a core may be behind. So they read that answer, which is all that they leave out.
ASK_ELSEWHERE = ["test_pubsub_channels", "test_pubsub_channels_pattern", "test_pubsub_numsub"]


def excluded():
    """Test, or the beginning of its name, to reason."""
    tests, reason = {}, None
    for line in open(os.environ["FAKEREDIS_EXCLUDED"]):
        line = line.strip()
        if line.startswith("== "):
            reason = line[3:]
        elif line and not line.startswith("#"):
            tests[line] = reason
    return tests


def pytest_collection_modifyitems(config, items):
    tests = excluded()
    unwanted = [item for item in items if any(item.nodeid.removeprefix("test/").startswith(test) for test in tests)]
    if "FAKEREDIS_PART" in os.environ:
        part, of = map(int, os.environ["FAKEREDIS_PART"].split("/"))
        unwanted += [item for number, item in enumerate(items) if number % of != part - 1]
    config.hook.pytest_deselected(items=unwanted)
    items[:] = [item for item in items if item not in set(unwanted)]


@pytest.fixture(autouse=True)
def answered_subscriptions(request, monkeypatch):
    if request.node.originalname not in ASK_ELSEWHERE:
        return
    subscribe = redis.client.PubSub.subscribe

    def subscribe_and_read(self, *channels, **handlers):
        subscribe(self, *channels, **handlers)
        for _ in [*channels, *handlers]:
            assert self.get_message(timeout=10)["type"] == "subscribe"

    monkeypatch.setattr(redis.client.PubSub, "subscribe", subscribe_and_read)


def pytest_collection_finish(session):
    if "FAKEREDIS_OTHER" in os.environ:
        be_real()


def be_real():
    from hypothesis import Phase, settings
    from test.test_hypothesis import base

    def make_other(self):
        client = redis.StrictRedis(unix_socket_path=os.environ["FAKEREDIS_OTHER"], db=self.db)
        client.flushall()
        return client

    settings.register_profile("whole", settings.default, phases=[Phase.explicit, Phase.generate], deadline=None)
    settings.load_profile("whole")
    base.MachineConfig.make_fake_client = make_other

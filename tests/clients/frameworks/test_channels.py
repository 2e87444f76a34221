"""channels-redis: both of its layers, the one that keeps messages in sorted sets by script, and the one on Pub/Sub; processes talk."""
import asyncio
import multiprocessing
import time
import uuid

import pytest
from asgiref.sync import async_to_sync
from channels_redis.core import RedisChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer
from framework import URL

LAYERS = [RedisChannelLayer, RedisPubSubChannelLayer]


def layer_of(kind, **options):
    return kind(hosts=[URL], **options)


def in_process(kind, group, ready, answers):
    async def listen():
        layer = layer_of(kind)
        channel = await layer.new_channel()
        await layer.group_add(group, channel)
        ready.put(channel)
        while (message := await layer.receive(channel))["type"] != "end":
            answers.put(message["text"])
        await layer.group_discard(group, channel)
        await layer.flush() if kind is RedisPubSubChannelLayer else await layer.close_pools()

    asyncio.run(listen())


@pytest.fixture(params=LAYERS, ids=["kept", "published"])
def kind(request):
    return request.param


def test_a_message_arrives(kind):
    async def body():
        layer = layer_of(kind)
        channel = await layer.new_channel()
        receiving = asyncio.ensure_future(layer.receive(channel))
        await asyncio.sleep(0.1)
        for n in range(3):
            await layer.send(channel, {"type": "note", "number": n, "bytes": b"\x00\xff"})
        assert await asyncio.wait_for(receiving, 5) == {"type": "note", "number": 0, "bytes": b"\x00\xff"}
        assert [(await asyncio.wait_for(layer.receive(channel), 5))["number"] for _ in range(2)] == [1, 2]

    asyncio.run(body())


def test_a_group_of_processes(kind):
    group, ready, answers = uuid.uuid4().hex, multiprocessing.Queue(), multiprocessing.Queue()
    processes = [multiprocessing.Process(target=in_process, args=(kind, group, ready, answers)) for _ in range(3)]
    [process.start() for process in processes]
    [ready.get(timeout=20) for _ in processes]

    async def send():
        layer = layer_of(kind)
        await layer.group_send(group, {"type": "note", "text": "to all"})
        await layer.group_send(group, {"type": "end"})

    asyncio.run(send())
    assert [answers.get(timeout=20) for _ in processes] == ["to all"] * 3
    [process.join(20) for process in processes]
    assert [process.exitcode for process in processes] == [0, 0, 0]


def test_a_full_channel_refuses():
    from channels.exceptions import ChannelFull

    async def body():
        layer = layer_of(RedisChannelLayer, capacity=3)
        for _ in range(3):
            await layer.send("full", {"type": "note"})
        with pytest.raises(ChannelFull):
            await layer.send("full", {"type": "note"})
        await layer.flush()
        await layer.send("full", {"type": "note"})

    asyncio.run(body())


def test_messages_expire():
    async def body():
        layer = layer_of(RedisChannelLayer, expiry=1)
        await layer.send("late", {"type": "note"})
        await asyncio.sleep(1.5)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(layer.receive("late"), 0.5)

    asyncio.run(body())


def test_from_synchronous_code():
    async def listen():
        return await asyncio.wait_for(layer_of(RedisChannelLayer).receive("sync"), 10)

    async_to_sync(layer_of(RedisChannelLayer).send)("sync", {"type": "note", "at": time.time() > 0})
    assert asyncio.run(listen())["at"] is True

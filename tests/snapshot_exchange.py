#!/usr/bin/env python3
"""Snapshots and rewritten logs go both ways between this server and real ones, with equal content.

    tests/snapshot_exchange.py [--port 21400] [--ours target/release/simurgh] SERVER...

SERVER is a redis-server or valkey-server binary, 7.0 or later. Keys of every type and size, with and without expiry, in several
databases, are made in one server while it makes snapshots and rewrites its log; the other loads dump.rdb, and then the
append-only directory, and every key is compared by what commands answer.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import exchange

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Server(exchange.Server):
    """A server whose keys of every type are compared."""

    # Whether both sides know hashes with expiring fields.
    expires_fields = False

    def value(self, key):
        kind = self.command("TYPE", key)
        if kind == b"string":
            return self.command("GET", key)
        if kind == b"list":
            return self.command("LRANGE", key, 0, -1)
        if kind == b"set":
            return sorted(self.command("SMEMBERS", key))
        if kind == b"zset":
            found = self.command("ZRANGE", key, 0, -1, "WITHSCORES")
            return [(member, float(score)) for member, score in zip(found[::2], found[1::2])]
        if kind == b"hash":
            pairs = self.command("HGETALL", key)
            fields = sorted(zip(pairs[::2], pairs[1::2]))
            names = [field for field, _ in fields]
            return fields, self.expires_fields and self.command("HPEXPIRETIME", key, "FIELDS", len(names), *names)
        return self.stream(key)

    def stream(self, key):
        entries = self.command("XRANGE", key, "-", "+")
        groups = []
        for group in self.command("XINFO", "GROUPS", key):
            fields = dict(zip(group[::2], group[1::2]))
            pending = self.command("XPENDING", key, fields[b"name"], "-", "+", 1000)
            pending = [(row[0], row[1], row[3]) for row in pending]
            groups.append((fields[b"name"], fields[b"last-delivered-id"], fields.get(b"entries-read"), pending))
        info = self.command("XINFO", "STREAM", key)
        facts = dict(zip(info[::2], info[1::2]))
        names = [b"length", b"last-generated-id", b"max-deleted-entry-id", b"entries-added"]
        return entries, groups, [facts.get(name) for name in names]

    def contents(self):
        found = {}
        for database in range(16):
            self.command("SELECT", database)
            for key in self.command("KEYS", "*"):
                found[database, key] = (self.value(key), self.command("PEXPIRETIME", key))
        self.command("SELECT", 0)
        return found


def fill(server, random, round, expires_fields):
    """Changes keys of every type, from one element to thousands."""
    at = 4_000_000_000_000
    for number in range(60):
        server.command("SELECT", number % 3)
        name, size = f"{number}", random.choice([1, 5, 120, 700])
        words = [f"{round}:{index}:" + "x" * random.choice([0, 3, 90]) for index in range(size)]
        server.command("SET", "s" + name, random.choice([words[0] * 50, 12345, -7, "x" * 3000, 2**40]), "PXAT", at + number)
        server.command("SET", "n" + name, number * 1000)
        server.command("RPUSH", "l" + name, *words)
        server.command("SADD", "u" + name, *words)
        server.command("SADD", "i" + name, *range(round, size * 7, 7), round)
        server.command("ZADD", "z" + name, *[part for index, word in enumerate(words) for part in (index * 0.7, word)])
        server.command("HSET", "h" + name, *[part for word in words for part in (word, word[::-1])])
        for word in words[:50]:
            server.command("XADD", "x" + name, "*", "f", word, "g", 1)
        server.command("XGROUP", "CREATE", "x" + name, "g", "0")
        server.command("XREADGROUP", "GROUP", "g", "c", "COUNT", 3, "STREAMS", "x" + name, ">")
        server.command("XTRIM", "x" + name, "MAXLEN", 20)
        server.command("PFADD", "p" + name, *words)
        if number % 4 == 0:
            server.command("PEXPIREAT", random.choice("luzhxi") + name, at + round)
            server.command("LPOP", "l" + name, 3)
            server.command("DEL", random.choice("sluzhi") + name)
        if expires_fields and number % 5 == 0:
            server.command("HPEXPIREAT", "h" + name, at, "FIELDS", 1, words[0])


def check(what, expected, found):
    if expected != found:
        keys = [key for key in sorted({*expected, *found}) if expected.get(key) != found.get(key)]
        key = keys[0]
        raise SystemExit(f"{what}: {len(keys)} keys differ; {key}: {str(expected.get(key))[:500]} != {str(found.get(key))[:500]}")
    print(f"  {what}: {len(found)} keys agree")


def one_way(source, target, port, title, expires_fields):
    chance = random.Random(7)
    for preamble in ["yes", "no"]:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            options = ["--appendonly", "yes", "--aof-use-rdb-preamble", preamble]
            server = Server(source, folder, port, *options)
            try:
                fill(server, chance, 1, expires_fields)
                server.command("BGREWRITEAOF")
                fill(server, chance, 2, expires_fields)
                server.wait(b"aof_rewrite_in_progress:1", b"aof_rewrite_scheduled:1")
                server.command("BGSAVE")
                server.wait(b"rdb_bgsave_in_progress:1")
                assert server.command("SAVE") == b"OK"
                expected = server.contents()
                # Two seconds: what is acknowledged is on the disk by then, whatever the mode.
                time.sleep(2)
            finally:
                server.kill()
            # Commands do not bring back all of a stream's facts: what the source itself makes of its log is what counts.
            server = Server(source, folder, port, *options)
            kept = server.contents()
            server.kill()
            snapshot = folder / "alone"
            snapshot.mkdir()
            shutil.copy(folder / "dump.rdb", snapshot)
            log = f"log, preamble {preamble}"
            for place, extra, what, wanted in [(snapshot, ["--appendonly", "no"], "dump.rdb", expected), (folder, options, log, kept)]:
                server = Server(target, place, port, *extra)
                try:
                    check(f"{title}, {what}", wanted, server.contents())
                finally:
                    server.kill()


LARGE = 20_000
# What changes large collections while they are written, with a number for each word that is %d.
CHANGES = [
    "HSET h field:%d changed", "HDEL h field:%d", "HSET h new:%d x", "SADD u new:%d", "SREM u member:%d", "SPOP u",
    "ZADD z 0.5 member:%d", "ZREM z member:%d", "ZADD z 17 new:%d", "ZPOPMAX z", "RPUSH l new:%d", "LPOP l", "LPUSH l new:%d", "RPOP l",
    "LSET l %d changed", "XADD x * f new:%d", "XDEL x %d-1", "XTRIM x MAXLEN ~ 15000", "XREADGROUP GROUP g c COUNT 1 STREAMS x >",
]
# And what takes whole keys away, towards the end.
ENDS = ["RENAME h h2", "MOVE u 1", "DEL z", "SET l text", "RENAME x x2", "HSET h2 last x", "XADD x2 * f last"]


def fill_large(server):
    for start in range(0, LARGE, 500):
        numbers = range(start, start + 500)
        server.command("HSET", "h", *[part for at in numbers for part in (f"field:{at}", f"value:{at}" + "y" * (at % 50))])
        server.command("SADD", "u", *[f"member:{at}" for at in numbers])
        server.command("ZADD", "z", *[part for at in numbers for part in (at * 7 % 1000, f"member:{at}")])
        server.command("RPUSH", "l", *[f"element:{at}" for at in numbers])
        for at in numbers:
            server.command("XADD", "x", f"{at + 1}-1", "field", at)
    server.command("XGROUP", "CREATE", "x", "g", "0")
    server.command("XREADGROUP", "GROUP", "g", "c", "COUNT", 300, "STREAMS", "x", ">")
    server.command("SET", "last", "x")


def under_traffic(ours, binary, port):
    """Large collections are changed, moved and removed while our server writes them: the file has what there was at the cut."""
    chance = random.Random(3)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        server = Server(ours, folder, port)
        try:
            fill_large(server)
            expected = server.contents()
            # One request after the other without waiting, so that the first come while next to nothing has been written.
            lines = ["BGSAVE"] + [chance.choice(CHANGES).replace("%d", str(chance.randrange(LARGE))) for _ in range(3000)] + ENDS
            words = [line.encode().split() for line in lines]
            encoded = [b"*%d\r\n" % len(line) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in line) for line in words]
            server.socket.sendall(b"".join(encoded))
            for line in lines:
                reply = server.reply()
                assert not (isinstance(reply, bytes) and reply.startswith(b"ERROR")), (line, reply)
            server.wait(b"rdb_bgsave_in_progress:1")
            assert b"rdb_last_bgsave_status:ok" in server.command("INFO", "persistence")
        finally:
            server.kill()
        server = Server(binary, folder, port)
        try:
            check("ours to theirs, large collections under traffic", expected, server.contents())
        finally:
            server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=21400)
    parser.add_argument("--ours", default=str(ROOT / "target/release/simurgh"))
    parser.add_argument("servers", nargs="+")
    arguments = parser.parse_args()
    for binary in arguments.servers:
        version = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout
        print(binary, version.strip())
        # Valkey keeps expiring fields in a form of its own, which Redis refuses, as it refuses Redis's.
        expires_fields = "Valkey" not in version and "v=7." not in version
        Server.expires_fields = expires_fields
        under_traffic(arguments.ours, binary, arguments.port)
        one_way(arguments.ours, binary, arguments.port, "ours to theirs", expires_fields)
        one_way(binary, arguments.ours, arguments.port, "theirs to ours", expires_fields)
    print("ok")


if __name__ == "__main__":
    sys.exit(main())

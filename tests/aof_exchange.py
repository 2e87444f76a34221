#!/usr/bin/env python3
"""Real servers load an append-only directory that our formats wrote, and our formats read the ones that they wrote.

    tests/aof_exchange.py [--port 21300] SERVER...

SERVER is a redis-server or valkey-server binary (multi-part AOF, so 7.0 or later). For each of them: our directory (base with
keys, two increments with seals) is loaded and every key compared; the server then appends to our file; it is killed; our
reader must see exactly what the server answered. Then the same with a directory that the server began by itself,
with and without a rewrite.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import exchange

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEYS = 700


class Server(exchange.Server):
    """A server whose log holds what it has answered, and whose keys are told as our reader prints them."""

    def __init__(self, binary, directory, port, *options):
        super().__init__(binary, directory, port, "--appendonly", "yes", "--appendfsync", "always", *options)

    def contents(self):
        """Every key as our reader prints it."""
        lines = []
        for database in range(16):
            self.command("SELECT", database)
            for key in self.command("KEYS", "*"):
                value, at = self.command("GET", key), self.command("PEXPIRETIME", key)
                lines.append(f"{database} {key.hex()} {value.hex()} {at}")
        self.command("SELECT", 0)
        return sorted(lines)


def tool(*arguments):
    command = ["cargo", "run", "-q", "-p", "simurgh-storage", "--example", "aof_exchange", "--", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return sorted(done.stdout.splitlines()), done.stderr


def check(what, expected, found):
    if expected != found:
        difference = sorted(set(expected) ^ set(found))[:5]
        raise SystemExit(f"{what}: {len(expected)} keys expected, {len(found)} found; {difference}")
    print(f"  {what}: {len(found)} keys agree")


def load(server, seed):
    for number in range(KEYS):
        key = f"{seed}:{number}"
        server.command("SELECT", number % 4)
        server.command("SET", key, os.urandom(number % 50) if number % 2 else number * 1000)
        server.command("MULTI")
        server.command("SET", key + ":in", "x" * number)
        server.command("EXPIREAT", key, 4_000_000_000)
        server.command("EXEC")
        if number % 5 == 0:
            server.command("DEL", key + ":in")


def exchange(binary, port):
    print(binary)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        files = folder / "appendonlydir"
        files.mkdir()
        tool("write", files, KEYS)
        ours, _ = tool("read", files)
        server = Server(binary, folder, port)
        try:
            check("loads what we wrote", ours, server.contents())
            load(server, "theirs")
            theirs = server.contents()
        finally:
            server.kill()
        check("we read our file after it appended to it", theirs, tool("read", files)[0])
    for options in [(), ("--aof-use-rdb-preamble", "no"), ("--aof-timestamp-enabled", "yes")]:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            server = Server(binary, folder, port, *options)
            try:
                load(server, "first")
                server.command("BGREWRITEAOF")
                server.wait(b"aof_rewrite_in_progress:1", b"aof_rewrite_scheduled:1")
                load(server, "second")
                theirs = server.contents()
            finally:
                server.kill()
            check(f"we read what it wrote {' '.join(options)}", theirs, tool("read", folder / "appendonlydir")[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=21300)
    parser.add_argument("servers", nargs="+")
    arguments = parser.parse_args()
    for number, binary in enumerate(arguments.servers):
        exchange(binary, arguments.port + number)
    print("ok")


if __name__ == "__main__":
    sys.exit(main())

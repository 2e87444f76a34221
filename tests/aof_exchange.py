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
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEYS = 700


class Server:
    """A server on a directory, and one connection to it."""

    def __init__(self, binary, directory, port, *options):
        self.log = directory / "server.log"
        arguments = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory), "--save", ""]
        arguments += ["--appendonly", "yes", "--appendfsync", "always", "--logfile", str(self.log), *options]
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
        self.connect(port)

    def connect(self, port):
        deadline = time.monotonic() + 20
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port))
                self.file = self.socket.makefile("rb")
                if self.command("PING") == b"PONG":
                    return
                self.socket.close()
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the server did not start:\n{self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def command(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.reply()

    def reply(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
        return int(rest) if kind == b":" else rest

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

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


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
                while b"aof_rewrite_in_progress:1" in server.command("INFO", "persistence") or b"aof_rewrite_scheduled:1" in server.command("INFO", "persistence"):
                    time.sleep(0.05)
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

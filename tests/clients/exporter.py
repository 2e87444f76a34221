"""Debian's prometheus-redis-exporter: whatever metric it gets from Valkey it has to get from the server too.

usage: exporter.py PORT ORACLES
"""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

# Named metrics that Valkey has and the server has not, with the reason.
EXCLUDED = {}
COMMANDS = [b"SET a 1", b"SET b 2 EX 1000", b"GET a", b"GET missing", b"RPUSH l a b", b"HSET h f v", b"SADD s 1", b"ZADD z 1 a",
            b"XADD st * f v", b"NOSUCH", b"HGET a f"]


def free_port():
    for port in range(*map(int, os.environ.get("SIMURGH_PORTS", "0-1").split("-"))):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]
    sys.exit("no port is free")


def until_it_listens(port, process):
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    sys.exit(f"{process.args[0]} does not listen")


def use(port):
    """The same commands, so that both have the same things to tell."""
    with socket.create_connection(("127.0.0.1", port)) as server:
        for command in COMMANDS:
            server.sendall(command + b"\r\n")
            server.recv(1000)


def metrics(program, server_port):
    port = free_port()
    exporter = subprocess.Popen([str(program), "--redis.addr", f"redis://127.0.0.1:{server_port}",
                                 "--web.listen-address", f"127.0.0.1:{port}"], stderr=subprocess.DEVNULL)
    try:
        until_it_listens(port, exporter)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        text = opener.open(f"http://127.0.0.1:{port}/metrics").read().decode()
    finally:
        exporter.terminate()
        exporter.wait()
    values = {}
    for match in re.finditer(r"^(redis_\w+)(?:\{.*\})? (\S+)$", text, re.M):
        values[match[1]] = max(float(match[2]), values.get(match[1], 0.0))
    return values


def main():
    ours_port, oracles = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    program = oracles / "exporter/usr/bin/prometheus-redis-exporter"
    folder = tempfile.mkdtemp(prefix="simurgh-exporter-")
    port = free_port()
    valkey = subprocess.Popen([str(oracles / "valkey-9.1.2/valkey-server"), "--port", str(port), "--bind", "127.0.0.1",
                               "--save", "", "--appendonly", "yes", "--dir", folder], stdout=subprocess.DEVNULL)
    try:
        until_it_listens(port, valkey)
        use(ours_port)
        use(port)
        ours, theirs = metrics(program, ours_port), metrics(program, port)
    finally:
        valkey.terminate()
        valkey.wait()
        shutil.rmtree(folder, ignore_errors=True)
    if not theirs or theirs.get("redis_up") != 1:
        sys.exit("the exporter gets nothing from Valkey")
    missing = sorted(set(theirs) - set(ours) - set(EXCLUDED))
    for name in missing:
        print(f"{name} is missing (Valkey: {theirs[name]})")
    for name in sorted(set(EXCLUDED) & set(ours)):
        print(f"{name} is excluded and there")
    bad = [name for name in ("redis_up", "redis_db_keys") if ours.get(name) in (None, 0)]
    for name in bad:
        print(f"{name} is {ours.get(name)}")
    print(f"{len(set(theirs) & set(ours))} passed, {len(missing) + len(bad)} failed")
    return 1 if missing or bad else 0


sys.exit(main())

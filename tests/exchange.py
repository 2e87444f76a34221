"""A server on a directory of its own, and one connection to it: what the scripts share that let servers exchange files."""

import os
import signal
import socket
import subprocess
import time


class Server:
    """A running server; `options` are its command line beyond port, address and directory."""

    def __init__(self, binary, directory, port, *options):
        self.log = directory / "server.log"
        arguments = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory), "--save", "", *options]
        # Ours takes SIMURGH_* for configuration and refuses what it does not know.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SIMURGH_")}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(arguments, stdout=log, stderr=log, env=environment)
        deadline = time.monotonic() + 30
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
            return [self.reply() for _ in range(int(rest))] if int(rest) >= 0 else None
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
        return int(rest) if kind == b":" else (b"ERROR " if kind == b"-" else b"") + rest

    def wait(self, *fields):
        while any(field in self.command("INFO", "persistence") for field in fields):
            time.sleep(0.02)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

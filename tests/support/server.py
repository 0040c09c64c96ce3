"""Starts the real binary for a test. TABELLA names it."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

BINARY = os.environ.get("TABELLA", os.path.join(os.path.dirname(__file__), "../../build/release/tabella"))


probes = []


def free_port():
    """A port for a server of this test alone. The probe stays bound until the process ends: the system gives the port
    to nobody else, and a server that sets SO_REUSEADDR, as all do, may still listen on it."""
    probe = socket.socket()
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    probe.bind(("127.0.0.1", 0))
    probes.append(probe)
    return probe.getsockname()[1]


class Server:
    """`with Server() as server:` serves from a folder of its own, which goes with it."""

    def __init__(self, *options, folder=None):
        self.options = list(options)
        for option, value in (("--http", "off"), ("--smtp", "off"), ("--log-level", "warning")):
            if option not in options:
                self.options += [option, value]
        self.port = free_port()
        self.own_folder = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix="tabella-test-")
        self.process = None

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self, stderr=None):
        self.process = subprocess.Popen(
            [BINARY, "serve", "--data", self.folder, "--dynamodb", f"127.0.0.1:{self.port}", *self.options], stdout=subprocess.PIPE, stderr=stderr, text=True)
        line = self.process.stdout.readline()
        if "serves DynamoDB on" not in line:
            raise AssertionError(f"the server did not start: {line!r}, exit code {self.process.poll()}")
        return self

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        self.process.stdout.close()
        return code

    def __enter__(self):
        return self.start()

    def __exit__(self, *failure):
        if self.process and self.process.poll() is None:
            self.stop()
        if self.own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def memory(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def wait_until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen in time")

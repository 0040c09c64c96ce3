"""A Tabella that sends mail, and how to talk to it."""

import http.client
import json
import os
import signal
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from server import BINARY, free_port

FINAL = ("SENT", "FAILED", "INVALID", "SENT-ACKNOWLEDGED", "FAILED-ACKNOWLEDGED")
UNDER_WAY = ("ACCEPTED", "INTAKING", "READY", "PROCESSING", "CALLING-SENT-CALLBACK", "CALLING-FAILED-CALLBACK")


class OutboxProcess:
    """One process, whose ports stay the same when it is started again; `log` is a file."""

    def __init__(self, *options, log):
        self.http, self.submission = free_port(), free_port()
        self.options = [*options, "--http", f"127.0.0.1:{self.http}", "--submission", f"127.0.0.1:{self.submission}", "--smtp", "off", "--log-level", "warning"]
        self.log = log
        self.process = None

    def start(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([BINARY, "serve", *self.options], stdout=subprocess.PIPE, stderr=log, text=True,
                                            env={**environment, "AWS_EC2_METADATA_DISABLED": "true", "HOME": "/nonexistent"})
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"it did not start; {self.log} says why")
            if "Page and API on" in line:
                return self

    def kill(self):
        self.end(signal.SIGKILL)

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(60)
        self.process.stdout.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *failure):
        if self.process and self.process.poll() is None:
            self.end()

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.http, timeout=60)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers or {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def call(self, method, path, body=None):
        status, content = self.request(method, path, body)
        assert status // 100 == 2, f"{method} {path}: {status} {content[:500]!r}"
        return json.loads(content)

    def ids(self, state):
        """Of all emails in a state."""
        found, place = [], None
        while True:
            query = {"status": state, "limit": 100, **({"from": place} if place else {})}
            page = self.call("GET", "/outbox/emails?" + urllib.parse.urlencode(query))
            found += [email["id"] for email in page["emails"]]
            place = page.get("next")
            if not place:
                return found

    def email(self, identifier):
        return self.call("GET", f"/outbox/emails/{identifier}")

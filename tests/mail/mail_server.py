"""A Tabella that catches mail, on the embedded store or, with MAIL_ON=remote, on another Tabella as its store."""

import base64
import http.client
import json
import os
import signal
import smtplib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

import boto3

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from server import BINARY, Server, free_port, wait_until

REMOTE = os.environ.get("MAIL_ON") == "remote"


class MailProcess:
    """One process, and how to talk to it."""

    def __init__(self, *options, environment=None):
        self.smtp, self.http = free_port(), free_port()
        self.options = [*options, "--smtp", f"127.0.0.1:{self.smtp}", "--http", f"127.0.0.1:{self.http}", "--log-level", "warning"]
        self.environment = environment or {}
        self.process = None

    def start(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "MH_"))}
        self.process = subprocess.Popen([BINARY, "serve", *self.options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**environment, "AWS_EC2_METADATA_DISABLED": "true", "HOME": "/nonexistent", **self.environment})
        lines = []
        while not any("Page and API on" in line for line in lines):
            lines.append(self.process.stdout.readline())
            if not lines[-1]:
                raise AssertionError(f"it did not start: {lines} {self.process.stderr.read()}")
        return self

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        errors = self.process.communicate(timeout=60)[1]
        return errors

    def kill_and_start(self):
        self.process.kill()
        self.process.communicate()
        self.start()

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.http, timeout=180)
        connection.request(method, path, body.encode() if isinstance(body, str) else body, headers or {})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response, content

    def call(self, method, path, body=None, expect=200):
        response, content = self.request(method, path, json.dumps(body) if body is not None else None)
        assert response.status == expect, f"{method} {path}: {response.status} {content[:500]!r}"
        return json.loads(content) if content else None

    def messages(self, **parameters):
        return self.call("GET", "/api/v2/messages?" + urllib.parse.urlencode(parameters))

    def search(self, query, kind="containing", **parameters):
        return self.call("GET", "/api/v2/search?" + urllib.parse.urlencode({"kind": kind, "query": query, **parameters}))

    def find(self, query, **parameters):
        return self.call("GET", "/api/v3/messages?" + urllib.parse.urlencode({"query": query, **parameters}))

    def send(self, data, sender="alice@example.com", to="bob@example.com"):
        """Raw bytes; the id it got."""
        with smtplib.SMTP("127.0.0.1", self.smtp) as client:
            client.ehlo("me")
            client.mail(sender)
            for address in [to] if isinstance(to, str) else to:
                client.rcpt(address)
            code, text = client.data(data if isinstance(data, bytes) else data.encode())
            assert code == 250, text
            return text.decode().rsplit(" ", 1)[1]

    def metric(self, name):
        _, content = self.request("GET", "/metrics")
        return next(float(line.split()[-1]) for line in content.decode().splitlines() if line.startswith(name + " "))

    def memory(self):
        """What is in memory, in MB."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

    def wait_for_index(self, count):
        """Until so many messages were taken in by this process's indexer."""
        wait_until(lambda: self.metric("tabella_mail_indexed_total") >= count, 60)


class MailServer(MailProcess):
    """`with MailServer() as server:` with data of its own, which goes with it."""

    def __init__(self, *options, secret_key=True, **more):
        self.folder = tempfile.TemporaryDirectory(prefix="tabella-test-")
        # The embedded store makes its own; processes that share a store must be given one.
        self.secret_key = []
        if REMOTE and secret_key:
            file = os.path.join(self.folder.name, "shared.key")
            with open(file, "w") as key:
                key.write(base64.b64encode(os.urandom(32)).decode())
            self.secret_key = ["--secret-key-file", file]
        self.store = Server() if REMOTE else None
        dynamodb = free_port()
        self.dynamodb = f"http://127.0.0.1:{self.store.port if self.store else dynamodb}"
        where = ["--store", self.dynamodb, "--create-tables"] if REMOTE else ["--data", self.folder.name, "--dynamodb", f"127.0.0.1:{dynamodb}"]
        super().__init__(*where, *self.secret_key, *(() if "--mail-settle" in options else ("--mail-settle", "1s")), *options, **more)

    def tables(self):
        """The store's own API."""
        return boto3.client("dynamodb", endpoint_url=self.dynamodb, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")

    def delete_row(self, identifier):
        """Takes a message away without telling mail of it."""
        day = time.strftime("%Y-%m-%d", time.gmtime(int(identifier.split("|")[0]) / 1e9))
        self.tables().delete_item(TableName="tabella-mail", Key={"CreatedDate": {"S": day}, "ID": {"S": identifier}})

    def another(self):
        """A second process on the same store."""
        return MailProcess("--store", self.dynamodb, *self.secret_key, "--mail-settle", "1s")

    def restart(self):
        self.stop()
        return self.start()

    def __enter__(self):
        if self.store:
            self.store.start()
        return self.start()

    def __exit__(self, *failure):
        if self.process and self.process.poll() is None:
            self.stop()
        if self.store:
            self.store.__exit__()
        self.folder.cleanup()


def simple(subject="hello", body="text", **headers):
    lines = [f"Subject: {subject}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()), "", body, ""]
    return "\r\n".join(lines)

"""A Tabella with manhunt: on the embedded store or, with MANHUNT_ON=remote, on another Tabella as its store."""

import json
import os
import sys

ON = os.environ.get("MANHUNT_ON", "embedded")
if ON == "remote":
    os.environ["MAIL_ON"] = "remote"
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../mail"))
from mail_server import BINARY, MailServer
from server import free_port, wait_until


class ManhuntServer(MailServer):
    """`with ManhuntServer() as server:` with manhunt alone, or with the systems that are named."""

    def __init__(self, *options, systems="manhunt", **more):
        self.systems = ("--systems", systems)
        super().__init__(*self.systems, *options, **more)

    def another(self):
        other = super().another()
        other.options += self.systems
        return other


class Domain:
    """A domain, as a program sees it; `headers` are its credentials."""

    def __init__(self, server, name="shop", headers=None):
        self.server, self.name, self.headers = server, name, headers or {}

    def call(self, method, path="", body=None, expect=200):
        response, content = self.server.request(method, f"/manhunt/{self.name}{path}", json.dumps(body) if body is not None else None, self.headers)
        assert response.status == expect, f"{method} {path}: {response.status} {content[:500]!r}"
        return json.loads(content) if content and "json" in response.getheader("Content-Type", "") else content.decode()

    def contact(self, name="Ann", *methods, **more):
        """Methods are (type, destination) or (type, destination, delay)."""
        listed = [dict(zip(("type", "destination", "delay"), method)) for method in methods]
        return self.call("POST", "/contacts", {"name": name, "methods": listed, **more}, 201)

    def search(self, contact=None, expect=201, **more):
        return self.call("POST", "/searches", {**({"contact": contact["id"]} if contact else {}), **more}, expect)

    def find(self, search):
        return self.call("GET", f"/searches/{search['id']}")

    def policy(self, name, *steps, **more):
        """Steps are (wait, target, …)."""
        return self.call("PUT", f"/policies/{name}", {"steps": [{"wait": wait, "targets": targets} for wait, *targets in steps], **more})

    def phones(self):
        return self.server.call("GET", f"/manhunt/simulator?domain={self.name}")["phones"]

    def ring(self, search, count=1, seconds=20):
        """The simulator's phones that ring for a search, once there are so many; the first first."""
        wait_until(lambda: len([phone for phone in self.phones() if phone["search"] == search["id"]]) >= count, seconds)
        return [phone for phone in reversed(self.phones()) if phone["search"] == search["id"]]

    def press(self, phone, digit, expect=200):
        return self.server.call("POST", f"/manhunt/simulator/{phone['search']}/{phone['attempt']}", {"press": digit}, expect)

    def until(self, search, status, seconds=30):
        wait_until(lambda: self.find(search)["status"] == status, seconds)
        return self.find(search)

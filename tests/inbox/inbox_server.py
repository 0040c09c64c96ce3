"""A Tabella with an inbox: on the embedded store or, with INBOX_ON=remote, on another Tabella as its store."""

import http.client
import json
import os
import sys

ON = os.environ.get("INBOX_ON", "embedded")
if ON == "remote":
    os.environ["MAIL_ON"] = "remote"
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../mail"))
from mail_server import BINARY, MailServer
from server import wait_until

SYSTEMS = ("--systems", "inbox")


class InboxServer(MailServer):
    """`with InboxServer() as server:` with the inbox alone."""

    def __init__(self, *options, **more):
        super().__init__(*SYSTEMS, *options, **more)

    def another(self):
        other = super().another()
        other.options += SYSTEMS
        return other


class Bell:
    """An inbox as one user's page has it; `credentials` are headers."""

    def __init__(self, server, user="ann", tenant="shop", inbox="bell", credentials=None):
        self.server, self.path = server, f"/inbox/{tenant}/{inbox}"
        self.headers = credentials or {"X-Inbox-User": user}

    def call(self, method, path, body=None, expect=200):
        response, content = self.server.request(method, f"{self.path}/{path}", json.dumps(body) if body is not None else None, self.headers)
        assert response.status == expect, f"{method} {path}: {response.status} {content[:500]!r}"
        return json.loads(content) if content else None

    def feed(self, limit=20, **query):
        parameters = "".join(f"&{name}={value}" for name, value in query.items())
        return self.call("GET", f"messages?limit={limit}{parameters}")

    def titles(self, **query):
        return [message["message"]["title"] for message in self.feed(**query)["messages"]]

    def counts(self):
        return self.call("GET", "counts")

    def unread(self):
        return self.counts()["all"]["unread"]

    def put(self, what, expect=200, **body):
        return self.call("PUT", f"messages/{what}", body, expect)

    def live(self, last_event_id=None):
        return Live(self, last_event_id)


def publish(server, to, title, expect=201, place="shop/bell", headers=None, **more):
    body = {"to": to, "message": {"title": title, **more.pop("message", {})}, **more}
    response, content = server.request("POST", f"/inbox/{place}/messages/post", json.dumps(body), headers or {})
    assert response.status == expect, f"{response.status} {content[:500]!r}"
    return json.loads(content)


class Live:
    """Server-sent events, as a browser reads them: (id, event, data)."""

    def __init__(self, bell, last_event_id):
        self.connection = http.client.HTTPConnection("127.0.0.1", bell.server.http, timeout=30)
        headers = {**bell.headers, **({"Last-Event-ID": last_event_id} if last_event_id else {})}
        self.connection.request("GET", f"{bell.path}/live", headers=headers)
        self.response = self.connection.getresponse()
        self.status = self.response.status

    def next(self):
        event = {}
        while line := self.response.readline():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name in ("id", "event", "data"):
                event[name] = value
            elif not line.strip() and "data" in event:
                return event["id"], event.get("event", ""), json.loads(event["data"])
        return None

    def until(self, kind):
        """Events up to the next of that kind, which is the last; without how far everything is marked, unless that is asked for."""
        events = []
        while not events or events[-1][1] != kind:
            event = self.next()
            assert event, events
            if event[1] in (kind, "message", "removed", "reset", "counts"):
                events.append(event)
        return events

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.response.close()
        self.connection.close()

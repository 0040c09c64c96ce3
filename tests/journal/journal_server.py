"""A Tabella with a journal: on the embedded store or, with JOURNAL_ON=remote, on another Tabella as its store. JOURNAL_LAYOUT is blocks or keys."""

import http.client
import json
import os
import sys
import urllib.parse

ON = os.environ.get("JOURNAL_ON", "embedded")
LAYOUT = os.environ.get("JOURNAL_LAYOUT", "blocks")
if ON == "remote":
    os.environ["MAIL_ON"] = "remote"
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../mail"))
from mail_server import BINARY, MailServer
from server import wait_until

NDJSON = "application/x-ndjson"


def quoted(text):
    return urllib.parse.quote(text, safe="")


class JournalServer(MailServer):
    """`with JournalServer() as server:` with the journal alone."""

    def __init__(self, *options, **more):
        super().__init__("--systems", "journal", "--journal-layout", LAYOUT, *options, **more)

    def another(self):
        """A second process on the same store."""
        other = super().another()
        other.options += ["--systems", "journal", "--journal-layout", LAYOUT]
        return other

    def append(self, path, *events, expect=201, **more):
        """POST …/events with payloads, or whole events as (payload, more); the answer."""
        listed = [{"data": event[0], **event[1]} if isinstance(event, tuple) else {"data": event} for event in events]
        return self.call("POST", f"/journal/{path}/events", {"events": listed, **more}, expect=expect)

    def read(self, path, expect=200, **query):
        return self.call("GET", f"/journal/{path}" + ("?" + urllib.parse.urlencode(query) if query else ""), expect=expect)

    def data(self, path, **query):
        return [event.get("data") for event in self.read(f"{path}/events", **query)["events"]]

    def lines(self, path, **query):
        """As lines of JSON."""
        response, content = self.request("GET", f"/journal/{path}" + ("?" + urllib.parse.urlencode(query) if query else ""), headers={"Accept": NDJSON})
        assert response.status == 200, content
        assert response.getheader("Content-Type") == NDJSON
        assert not content or content.endswith(b"\n")
        return [json.loads(line) for line in content.splitlines()]

    def wait_for_position(self, journal, last):
        """Until so many events of the journal have their positions."""
        wait_until(lambda: self.read(f"{journal}/all", limit=1)["last"] >= last, 30)

    def live(self, path, last_event_id=None, **query):
        return Live(self, path, last_event_id, query)


class Live:
    """Server-sent events, as a browser reads them."""

    def __init__(self, server, path, last_event_id, query):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=60)
        headers = {"Last-Event-ID": str(last_event_id)} if last_event_id is not None else {}
        self.connection.request("GET", f"/journal/{path}" + ("?" + urllib.parse.urlencode(query) if query else ""), headers=headers)
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.content_type = self.response.getheader("Content-Type")

    def next(self):
        """The next event: its id and what is in it; None at the end."""
        identifier, data = None, []
        while line := self.response.readline():
            line = line.decode().rstrip("\n")
            if line.startswith("id: "):
                identifier = int(line[4:])
            elif line.startswith("data: "):
                data.append(line[6:])
            elif not line and data:
                return identifier, json.loads("\n".join(data))
        return None

    def take(self, count):
        return [self.next() for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.response.close()
        self.connection.close()

"""Apache Pekko, with its own plugin for DynamoDB, on Tabella's tables: alone, and beside Tabella's journal on the same tables.
scripts/pekko.sh makes what PEKKO names."""

import base64
import http.client
import json
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

import boto3

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from server import Server, free_port, wait_until

PEKKO = os.environ.get("PEKKO", os.path.join(os.path.dirname(__file__), "../../build/pekko"))
JOURNAL_TABLE, SNAPSHOT_TABLE, JOURNAL = "pekko-journal", "pekko-snapshots", "journal"  # as in pekko/application.conf
BYTES, TEXT, NOTE = 4, 20, 4711  # ids of serializers: Pekko's for byte arrays and for strings, that of pekko/Note.java
KIT_TESTS = 28  # in this version of the kit, so that none goes missing


def create_tables(server):
    """As scripts/pekko-journal-table.json and pekko-snapshot-table.json of the plugin have them; answers with a client."""
    client = boto3.client("dynamodb", endpoint_url=server.endpoint, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")

    def keys(hash, range):
        return [{"AttributeName": hash, "KeyType": "HASH"}, {"AttributeName": range, "KeyType": "RANGE"}]

    def create(name, range, *numbers, **more):
        types = [("par", "S"), (range, "N"), *((number, "N") for number in numbers)]
        client.create_table(TableName=name, KeySchema=keys("par", range), AttributeDefinitions=[{"AttributeName": attribute, "AttributeType": type} for attribute, type in types],
                            ProvisionedThroughput={"ReadCapacityUnits": 50, "WriteCapacityUnits": 50}, SSESpecification={"Enabled": True}, **more)

    create(JOURNAL_TABLE, "num")
    create(SNAPSHOT_TABLE, "seq", "ts", LocalSecondaryIndexes=[{"IndexName": "ts-idx", "KeySchema": keys("par", "ts"), "Projection": {"ProjectionType": "ALL"}}])
    return client


def java(server, *arguments, **how):
    command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Daws.java.v1.disableDeprecationAnnouncement=true",
               "-cp", f"{PEKKO}/classes:{PEKKO}/lib/*", *arguments]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, env={**os.environ, "DYNAMODB_ENDPOINT": server.endpoint}, **how)


class Pekko:
    """A JVM with persistent actors (pekko/Driver.java)."""

    def __init__(self, server):
        self.log = tempfile.TemporaryFile("w+")
        self.process = java(server, "Driver", stdin=subprocess.PIPE, stderr=self.log)

    def run(self, pid, *steps):
        """What a new actor recovers, which then takes the steps."""
        self.process.stdin.write(json.dumps({"pid": pid, "steps": steps}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '{"error": "it has ended"}')
        if "error" in answer:
            self.log.seek(0)
            raise AssertionError(f"{answer['error']}\n{self.log.read()}")
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(60)
        self.log.close()


class Api:
    """The journal over HTTP, as far as it is used here."""

    OPTIONS = ["--journal-table", JOURNAL_TABLE, "--journal-snapshots-table", SNAPSHOT_TABLE, "--journal-name", JOURNAL]

    def __init__(self, port):
        self.port = port

    def events(self, pid):
        """With what is left out because it is as usual."""
        shown = self.expect(200, "GET", self.path(pid, "events?limit=1000"))["events"]
        return [{"sequence": event["number"], "bytes": event["bytes"], "serializer": event.get("serializer", BYTES), "manifest": event.get("manifest", "")}
                for event in shown]

    def append(self, pid, *events):
        self.expect(201, "POST", self.path(pid, "events"), {"events": events})

    def newest_snapshot(self, pid):
        shown = self.expect(200, "GET", self.path(pid, "snapshots/newest"))
        return {"sequence": shown["number"], "bytes": shown["bytes"], "serializer": shown.get("serializer", BYTES), "manifest": shown.get("manifest", "")}

    def put_snapshot(self, pid, number, payload):
        self.expect(200, "PUT", self.path(pid, f"snapshots/{number}"), payload)

    def path(self, pid, of):
        return f"/journal/{JOURNAL}/{urllib.parse.quote(pid, safe='')}/{of}"

    def expect(self, status, method, path, body=None):
        got, answer = self.request(method, path, body)
        if got != status:
            raise AssertionError(f"{method} {path}: {got} {answer}")
        return json.loads(answer)

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def data(text):
    """A byte array as Driver.java and the API have it; one that is not UTF-8."""
    return {"bytes": base64.b64encode(b"\xff\x00" + text.encode()).decode()}


def numbered(*sequences):
    return [data(str(sequence)) for sequence in sequences]


def older_event(pid, sequence, bytes):
    """An event as the plugin wrote it in Akka's days, before 1.2: all of it in the message of Pekko's MessageFormats.proto."""

    def field(number, content):
        return bytearray([number << 3 | 2, len(content)]) + content

    payload = bytearray([1 << 3, BYTES]) + field(2, bytes)
    message = field(1, payload) + bytearray([2 << 3, sequence]) + field(3, pid.encode()) + field(13, b"295fa116-fa95-4f5b-af96-80d9861a898d")
    return {"par": {"S": f"{JOURNAL}-P-{pid}-0"}, "num": {"N": str(sequence)}, "pay": {"B": message}}


def replayed(payloads, first=1):
    """What Driver.java shows of them."""
    return [{**payload, "sequence": sequence} for sequence, payload in enumerate(payloads, first)]


class Alone(unittest.TestCase):
    """Nobody else on the tables."""

    def setUp(self):
        self.server = self.enterContext(Server())
        create_tables(self.server)

    def test_its_kit_finds_the_journal_and_the_snapshot_store_right(self):
        kit = java(self.server, "org.scalatest.tools.Runner", "-R", f"{PEKKO}/classes", "-s", "Kit$Journal", "-s", "Kit$Snapshots", "-oW", stderr=subprocess.STDOUT)
        report, _ = kit.communicate()
        self.assertEqual(kit.returncode, 0, report)
        self.assertIn(f"Tests: succeeded {KIT_TESTS}, failed 0, canceled 0, ignored 0, pending 0", report)

    def test_what_actors_persisted_is_there_when_both_sides_have_been_started_again(self):
        # Atomic writes across the borders of blocks, which have 100 events, and of more puts than one batch takes.
        order = [*numbered(*range(1, 194)), *numbered(*range(194, 254)), {"text": "paid"}, {"note": "sent"}, {"bytes": ""}]
        with Pekko(self.server) as pekko:
            pekko.run("order|1", {"persist": order[:97]}, {"persistAll": order[97:102]}, {"persist": order[102:193]}, {"persistAll": order[193:253]}, {"persist": order[253:]})
            pekko.run("cart-2", {"persist": numbered(1, 2)}, {"snapshot": data("state at 2")}, {"persistAll": numbered(3, 4)}, {"snapshot": data("state at 4")}, {"persist": numbered(5)})
            pekko.run("deleted", {"persist": numbered(*range(1, 151))}, {"delete": 120})
            pekko.run("all deleted", {"persist": numbered(*range(1, 151))}, {"delete": 150})
        self.server.stop()
        self.server.start()
        with Pekko(self.server) as pekko:
            self.assertEqual(pekko.run("order|1"), {"events": replayed(order), "highest": 256})
            cart = pekko.run("cart-2")
            self.assertGreater(cart["snapshot"].pop("timestamp"), 0)
            self.assertEqual(cart, {"snapshot": {**data("state at 4"), "sequence": 4}, "events": replayed(numbered(5), first=5), "highest": 5})
            self.assertEqual(pekko.run("deleted"), {"events": replayed(numbered(*range(121, 151)), first=121), "highest": 150})
            self.assertEqual(pekko.run("all deleted"), {"events": [], "highest": 150})
            self.assertEqual(pekko.run("nobody"), {"events": [], "highest": 0})


class BesideTabella(unittest.TestCase):
    """What one persists, the other replays."""

    @classmethod
    def setUpClass(cls):
        cls.api = Api(free_port())
        server = cls.enterClassContext(Server("--http", f"127.0.0.1:{cls.api.port}"))
        cls.client = create_tables(server)
        # The tables were Pekko's first.
        with Pekko(server) as pekko:
            pekko.run("before", {"persist": numbered(1, 2, 3)})
        server.stop()
        server.options += Api.OPTIONS
        server.start()
        cls.pekko = cls.enterClassContext(Pekko(server))

    def test_tabella_reads_what_pekko_persisted(self):
        events = [*numbered(*range(1, 131)), {"text": "paid"}, {"note": "sent"}]
        self.pekko.run("order|1", {"persist": events[:98]}, {"persistAll": events[98:130]}, {"persist": events[130:]})
        expected = [{"sequence": sequence, **event, "serializer": BYTES, "manifest": ""} for sequence, event in enumerate(events[:130], 1)]
        expected += [{"sequence": 131, "bytes": base64.b64encode(b"paid").decode(), "serializer": TEXT, "manifest": ""},
                     {"sequence": 132, "bytes": base64.b64encode(b"sent").decode(), "serializer": NOTE, "manifest": "note/1"}]
        self.assertEqual(self.api.events("order|1"), expected)
        self.pekko.run("order|1", {"delete": 60})
        self.assertEqual(self.api.events("order|1"), expected[60:])

    def test_what_pekko_persists_has_its_place_in_the_order_of_all(self):
        self.pekko.run("order|2", {"persist": numbered(1, 2)}, {"persistAll": numbered(3, 4, 5)})
        self.api.append("order|2", *numbered(6))

        def placed(pid):
            events = self.api.expect(200, "GET", f"/journal/{JOURNAL}/all?limit=10000")["events"]
            return [event["number"] for event in events if event["pid"] == pid]
        wait_until(lambda: len(placed("order|2")) == 6 and len(placed("before")) == 3)
        self.assertEqual(placed("order|2"), [1, 2, 3, 4, 5, 6])
        self.assertEqual(placed("before"), [1, 2, 3])  # was there before the journal looked at the table

    def test_both_read_events_of_the_older_form(self):
        for sequence in (1, 2):
            self.client.put_item(TableName=JOURNAL_TABLE, Item=older_event("old", sequence, b"%d" % sequence))
        self.api.append("old", data("new"))
        events = [{"bytes": base64.b64encode(old).decode()} for old in (b"1", b"2")] + [data("new")]
        self.assertEqual(self.pekko.run("old"), {"events": replayed(events), "highest": 3})
        self.assertEqual(self.api.events("old"), [{"sequence": sequence, **event, "serializer": BYTES, "manifest": ""} for sequence, event in enumerate(events, 1)])

    def test_pekko_replays_what_tabella_appended(self):
        written = 0
        # One event, which must not look like an atomic write; batches within a block, to its border, and across it.
        for count in (1, 1, 30, 67, 1, 1, 99, 60):
            self.api.append("cart-2", *numbered(*range(written + 1, written + count + 1)))
            written += count
            self.assertEqual(self.pekko.run("cart-2"), {"events": replayed(numbered(*range(1, written + 1))), "highest": written})
        self.pekko.run("cart-2", {"delete": written})
        self.api.append("cart-2", data("after all were deleted"))
        self.assertEqual(self.pekko.run("cart-2"), {"events": replayed([data("after all were deleted")], written + 1), "highest": written + 1})

    def test_both_write_in_turns(self):
        # Pekko discards the events of a writer that comes back after another one has written.
        for turn in range(1, 110, 4):
            self.api.append("account", *numbered(turn))
            self.pekko.run("account", {"persist": numbered(turn + 1)})
            self.api.append("account", *numbered(turn + 2, turn + 3))
        everything = numbered(*range(1, turn + 4))
        self.assertEqual(self.pekko.run("account")["events"], replayed(everything))
        self.assertEqual([event["bytes"] for event in self.api.events("account")], [event["bytes"] for event in everything])

    def test_pekko_recovers_from_tabellas_snapshot_and_tabella_shows_pekkos(self):
        self.pekko.run("cart-3", {"persist": numbered(1, 2, 3)}, {"snapshot": data("state at 3")}, {"persist": numbered(4, 5, 6)})
        self.assertEqual(self.api.newest_snapshot("cart-3"), {"sequence": 3, **data("state at 3"), "serializer": BYTES, "manifest": ""})
        self.api.put_snapshot("cart-3", 5, data("state at 5"))
        recovered = self.pekko.run("cart-3")
        self.assertEqual({**recovered["snapshot"], "timestamp": 0}, {**data("state at 5"), "sequence": 5, "timestamp": 0})
        self.assertEqual(recovered["events"], replayed(numbered(6), first=6))


if __name__ == "__main__":
    if not os.path.isdir(f"{PEKKO}/classes"):
        sys.exit(f"there is no {PEKKO}/classes: scripts/pekko.sh makes them")
    unittest.main(verbosity=2)

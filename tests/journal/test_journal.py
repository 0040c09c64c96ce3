"""The journal over HTTP. Runs on the embedded store and on a remote one, and with both layouts."""

import base64
import concurrent.futures
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
import unittest
import uuid

sys.path.insert(0, os.path.dirname(__file__))
from journal_server import BINARY, LAYOUT, NDJSON, ON, JournalServer, quoted, wait_until

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class OnOneServer(unittest.TestCase):
    """Tests that do not disturb each other: each has entities, or a journal, of its own."""
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = JournalServer(*cls.options)
        cls.addClassCleanup(cls.server.__exit__)
        cls.server.__enter__()

    def setUp(self):
        self.journal = "j" + uuid.uuid4().hex[:12]

    def refuse(self, status, words, method, path, body=None, headers=None):
        """A request that is refused with a sentence."""
        response, content = self.server.request(method, f"/journal/{path}", json.dumps(body) if isinstance(body, (dict, list)) else body, headers or {})
        self.assertEqual(response.status, status, content)
        error = json.loads(content)["error"]
        self.assertIn(words, error)
        return json.loads(content)


class Appending(OnOneServer):
    def test_curl_appends_and_reads(self):
        url = f"http://127.0.0.1:{self.server.http}/journal/{self.journal}/account-1/events"
        appended = subprocess.run(["curl", "-sS", "-w", "\n%{http_code}", url, "-d", json.dumps({"events": [{"type": "Opened", "data": {"owner": "ann"}}], "expected": "none"})],
                                  capture_output=True, text=True, check=True).stdout
        self.assertEqual(appended, '{"first":1,"last":1,"repeated":false}\n201')
        read = json.loads(subprocess.run(["curl", "-sS", url], capture_output=True, text=True, check=True).stdout)
        event, = read.pop("events")
        self.assertEqual(read, {"lowest": 1, "highest": 1, "epoch": 0, "next": None})
        self.assertRegex(event.pop("time"), TIME)
        self.assertTrue(event.pop("id"))
        self.assertTrue(event.pop("writer"))
        self.assertEqual(event, {"number": 1, "type": "Opened", "data": {"owner": "ann"}})

    def test_everything_about_an_event_comes_back(self):
        given = {"data": {"ä": [1, 2.5, None, True, "\u2028\n\"\\"], "big": 18446744073709551615, "empty": {}}, "type": "Größe", "metadata": {"user": "ann", "n": [1]},
                 "tags": ["red", "größer als"], "id": "order-17"}
        path = f"{self.journal}/all-of-it"
        self.server.call("POST", f"/journal/{path}/events", {"events": [given, {"bytes": base64.b64encode(b"\0\xff" * 50).decode(), "serializer": 4711, "manifest": "v2"}]}, expect=201)
        one, two = self.server.read(f"{path}/events")["events"]
        self.assertEqual(sorted(one.pop("tags")), sorted(given["tags"]))
        for name in ("data", "type", "metadata", "id"):
            self.assertEqual(one[name], given[name])
        self.assertEqual(base64.b64decode(two["bytes"]), b"\0\xff" * 50)
        self.assertEqual((two["serializer"], two["manifest"]), (4711, "v2"))
        self.assertEqual(one["writer"], two["writer"], "they came with one append")
        for absent in ("bytes", "serializer", "manifest", "confirmations", "epoch", "expires", "pid", "position"):
            self.assertNotIn(absent, one)

    def test_any_json_is_an_event(self):
        values = [None, True, 0, -1.5, "", "text", [], [[]], {}, {"data": None}]
        self.server.append(f"{self.journal}/values", *values)
        events = self.server.read(f"{self.journal}/values/events")["events"]
        self.assertEqual([event["data"] for event in events], values)

    def test_json_is_kept_as_it_was_written_but_on_one_line(self):
        body = '{"events": [{"data": {"price": 1.10, "big":\n 0.12345678901234567890123,\n "text": "a \\u00e4 \\n b" }, "metadata": [ 1.0 ]}]}'
        response, content = self.server.request("POST", f"/journal/{self.journal}/verbatim/events", body, {"Content-Type": "application/json"})
        self.assertEqual(response.status, 201, content)
        _, line = self.server.request("GET", f"/journal/{self.journal}/verbatim/events", headers={"Accept": "application/x-ndjson"})
        self.assertIn(b'"data":{"price":1.10,"big":0.12345678901234567890123,"text":"a \\u00e4 \\n b"}', line)
        self.assertIn(b'"metadata":[1.0]', line)
        self.assertEqual(line.count(b"\n"), 1)

    def test_a_body_that_is_not_json_is_one_event(self):
        content = os.urandom(1000)
        response, answer = self.server.request("POST", f"/journal/{self.journal}/raw/events?type=Photo&tag=a,b&id=x1&expected=none", content, {"Content-Type": "image/png"})
        self.assertEqual((response.status, json.loads(answer)), (201, {"first": 1, "last": 1, "repeated": False}))
        event, = self.server.read(f"{self.journal}/raw/events")["events"]
        self.assertEqual(base64.b64decode(event["bytes"]), content)
        self.assertEqual((event["type"], sorted(event["tags"]), event["id"]), ("Photo", ["a", "b"], "x1"))
        response, answer = self.server.request("POST", f"/journal/{self.journal}/raw/events?expected=none", b"", {"Content-Type": "text/plain"})
        self.assertEqual((response.status, json.loads(answer)["conflict"]), (409, "version"))
        response, answer = self.server.request("POST", f"/journal/{self.journal}/raw/events?expected=1&epoch=3&batch=b1", b"", {"Content-Type": "text/plain"})
        self.assertEqual((response.status, json.loads(answer)["first"]), (201, 2))
        empty = self.server.read(f"{self.journal}/raw/events", **{"from": 2})["events"][0]
        self.assertEqual((empty["bytes"], empty["epoch"]), ("", 3))

    def test_a_condition_is_never_overlooked(self):
        path = f"{self.journal}/condition"
        self.server.append(path, 1)
        body = {"events": [{"data": 2}]}
        for query in ("expected=none", "epoch=1", "batch=b", "ttl=5s", "type=T", "tag=t", "id=i"):
            self.refuse(400, f"?{query.split('=')[0]}= is for a body that is one event's bytes", "POST", f"{path}/events?{query}", body)
        for media in ("text/json", "application/vnd.bank+json", "Application/JSON; charset=utf-8", "text/json;charset=utf-8"):
            response, answer = self.server.request("POST", f"/journal/{path}/events", json.dumps({**body, "expected": "none"}), {"Content-Type": media})
            self.assertEqual((response.status, json.loads(answer).get("conflict")), (409, "version"), media)
        self.refuse(400, "application/json", "POST", f"{path}/events", json.dumps({**body, "expected": "none"}), {"Content-Type": "text/plain"})
        raw = {"Content-Type": "text/plain"}
        self.refuse(400, "?expect= is not known", "POST", f"{path}/events?expect=none", b"x", raw)
        self.assertEqual(self.server.data(path), [1])
        # Texts that happen to be JSON are texts, and whoever says that it is bytes has said so.
        for content, headers in ((b'{"owner": "ann"}', raw), (b'{"events": ', raw), (json.dumps(body), {"Content-Type": "application/octet-stream"})):
            self.assertEqual(self.server.request("POST", f"/journal/{path}/events", content, headers)[0].status, 201)

    def test_parameters_that_nobody_knows_change_nothing(self):
        path = f"{self.journal}/typos"
        self.server.append(path, 1, 2)
        for method, where, body in (("DELETE", "/events?to=1&permanent", None), ("POST", "/epoch?epoch=5", None), ("POST", "/events/1/confirmations?by=x", {"by": ["x"]}),
                                    ("PUT", "/snapshots/1?number=2", {"data": 1}), ("DELETE", "/snapshots?form=1&to=2", None)):
            self.refuse(400, "is not known here", method, path + where, body)
        self.refuse(400, "?part= is not known here", "PUT", f"{self.journal}/consumers/c?part=4", {})
        self.assertEqual(self.server.read(path), {"lowest": 1, "highest": 2, "epoch": 0})

    def test_why_json_is_refused(self):
        path = f"{self.journal}/json/events"
        for content, words in ((b"", "empty"), (b'{"events": [{"data": 18446744073709551616}]}', "too large"), (b'{"events": [{"data": 1e400}]}', "too large"),
                               (b'{"events": [{"data": "\xff"}]}', "not UTF-8"), (b'{"events": [{"data": ' + b"[" * 600 + b"]" * 600 + b"}]}", "too deep"),
                               (b'{"events": [{"data": "x}]}', "no end"), (b"events=1", "no JSON"), (b"5", "a JSON object")):
            self.refuse(400, words, "POST", path, content)
            self.refuse(400, words, "PUT", f"{self.journal}/json/snapshots/1", content)

    def test_the_expected_version(self):
        path = f"{self.journal}/versions"
        self.assertEqual(self.server.append(path, 1, 2, expected="none")["last"], 2)
        conflict = self.server.append(path, 3, expected="none", expect=409)
        self.assertEqual((conflict["conflict"], conflict["actual"]), ("version", 2))
        self.assertIn("2", conflict["error"])
        self.assertEqual(self.server.append(path, 3, expected=7, expect=409)["actual"], 2)
        self.assertEqual(self.server.append(path, 3, expected=1, expect=409)["actual"], 2)
        self.assertEqual(self.server.append(path, 3, expected=2)["first"], 3)
        self.assertEqual(self.server.append(path, 4, expected="3")["first"], 4)
        self.assertEqual(self.server.append(path, 5, expected="any")["first"], 5)
        self.assertEqual(self.server.append(path, 6)["first"], 6)
        self.assertEqual(self.server.append(f"{self.journal}/new", 1, expected=0)["first"], 1)
        self.assertEqual(self.server.data(path), [1, 2, 3, 4, 5, 6])

    def test_many_who_expect_the_same_and_one_who_wins(self):
        path = f"{self.journal}/raced"
        body = json.dumps({"events": [{"data": 1}, {"data": 2}], "expected": "none"})
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: self.server.request("POST", f"/journal/{path}/events", body)[0].status, range(16)))
        self.assertEqual(sorted(answers), [201] + 15 * [409])
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            numbers = list(pool.map(lambda n: self.server.append(path, n)["first"], range(40)))
        self.assertEqual(sorted(numbers), list(range(3, 43)), "every number once")
        self.assertEqual(sorted(self.server.data(path, **{"from": 3})), list(range(40)))

    def test_a_new_epoch_shuts_the_old_writer_out(self):
        path = f"{self.journal}/fenced"
        first = self.server.call("POST", f"/journal/{path}/epoch")["epoch"]
        self.assertEqual(self.server.read(path), {"lowest": 1, "highest": 0, "epoch": first})
        self.server.append(path, 1, epoch=first)
        second = self.server.call("POST", f"/journal/{path}/epoch")["epoch"]
        self.assertGreater(second, first)
        conflict = self.server.append(path, 2, epoch=first, expect=409)
        self.assertEqual((conflict["conflict"], conflict["actual"]), ("epoch", second))
        self.server.append(path, 2, epoch=second, expected=1)
        self.server.append(path, 3, epoch=second + 5)
        self.assertEqual(self.server.append(path, 4, epoch=second, expect=409)["actual"], second + 5)
        self.assertEqual([event["epoch"] for event in self.server.read(f"{path}/events")["events"]], [first, second, second + 5])
        self.assertEqual(self.server.read(path)["epoch"], second + 5)

    def test_the_same_batch_twice_is_one(self):
        path = f"{self.journal}/batches"
        self.assertEqual(self.server.append(path, 1, 2, batch="b1"), {"first": 1, "last": 2, "repeated": False})
        self.server.append(path, 3)
        self.assertEqual(self.server.append(path, 1, 2, batch="b1", expect=200), {"first": 1, "last": 2, "repeated": True})
        self.assertEqual(self.server.append(path, 1, 2, batch="b1", expected="none", expect=200)["repeated"], True)
        conflict = self.server.append(path, 1, 2, 3, batch="b1", expect=409)
        self.assertEqual((conflict["conflict"], conflict["actual"]), ("batch", 2))
        body = json.dumps({"events": [{"data": "many"}], "batch": "b2"})
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: self.server.request("POST", f"/journal/{path}/events", body), range(8)))
        self.assertEqual(sorted(response.status for response, _ in answers), 7 * [200] + [201])
        self.assertEqual({json.loads(content)["first"] for _, content in answers}, {4})
        self.assertEqual(self.server.data(path), [1, 2, 3, "many"])

    def test_appends_of_every_size_are_whole(self):
        first = 1
        for size in (1, 2, 48, 49, 99, 100, 101, 150, 2500):
            answer = self.server.append(f"{self.journal}/sizes", *range(first, first + size), expected=first - 1)
            self.assertEqual((answer["first"], answer["last"]), (first, first + size - 1))
            first += size
        events = self.server.lines(f"{self.journal}/sizes/events")
        self.assertEqual([event["number"] for event in events], list(range(1, first)))
        self.assertEqual([event["data"] for event in events], list(range(1, first)))
        back = self.server.lines(f"{self.journal}/sizes/events", direction="backward")
        self.assertEqual([event["number"] for event in back], list(range(first - 1, 0, -1)))

    def test_ids_of_every_kind(self):
        for pid in ("a", "a-0", "a/b/c", "cart|17", "größe ☃ 1", "-P-", "x-SH-y-3", "%41", "a?b&c=d#e", " ", "...", "live", "events", "é" * 450):
            self.server.append(f"{self.journal}/{quoted(pid)}", pid)
            self.assertEqual(self.server.data(f"{self.journal}/{quoted(pid)}"), [pid])
        listed = self.server.read(f"{self.journal}/entities", limit=1000)["entities"]
        self.assertEqual(len(listed), 14)
        self.assertIn("größe ☃ 1", [entity["pid"] for entity in listed])

    def test_what_cannot_be_an_id_or_a_name(self):
        event = {"events": [{"data": 1}]}
        for pid in ("all", "tags", "slices", "consumers", "entities"):
            self.refuse(400, "path of its own", "POST", f"{self.journal}/{pid}/epoch" if pid in ("all", "entities") else f"{self.journal}/{pid}/events/1/confirmations", {"by": ["x"]})
            self.assertGreaterEqual(self.server.request("POST", f"/journal/{self.journal}/{pid}/events", json.dumps(event))[0].status, 400)
        for pid in ("a%0Ab", "%00", "%FF", "x" * 901, ".", "..", "%2e%2E"):
            self.refuse(400, "", "POST", f"{self.journal}/{pid}/events", event)
        for journal in ("a%20b", "a-P-b", "x" * 65, "j%2Fk", "a-SH-b", "a-SL-b"):
            self.refuse(400, "", "POST", f"{journal}/pid/events", event)
            self.refuse(400, "", "GET", f"{journal}/all")
            self.refuse(400, "", "GET", f"{journal}/entities")

    def test_the_journal_that_a_dash_stands_for(self):
        self.server.append("-/default", "by dash", expect=201)
        self.assertEqual(self.server.data("journal/default"), ["by dash"])
        wait_until(lambda: "journal" in [journal["name"] for journal in self.server.call("GET", "/journal")["journals"]])

    def test_bad_requests_get_a_sentence_that_helps(self):
        path = f"{self.journal}/bad/events"
        for body, words in (("", "JSON object"), ("{", "JSON object"), ("[]", "JSON object"), ("{}", "events is missing"), ({"events": []}, "one at least"),
                            ({"events": {}}, "a list"), ({"events": [1]}, "events[0]"), ({"events": [{"data": 1}, {}]}, "events[1]: expected data"),
                            ({"events": [{"data": 1, "bytes": ""}]}, "either"), ({"events": [{"bytes": "%%%"}]}, "base64"), ({"events": [{"bytes": "YQ"}]}, "padding"),
                            ({"events": [{"data": 1, "typ": "x"}]}, "typ is not known"), ({"events": [{"data": 1, "type": 5}]}, "type: expected a text"),
                            ({"events": [{"data": 1, "type": "a\nb"}]}, "control"), ({"events": [{"data": 1, "type": "x" * 257}]}, "at most 256"),
                            ({"events": [{"data": 1, "tags": "red"}]}, "list of texts"), ({"events": [{"data": 1, "tags": [1]}]}, "list of texts"),
                            ({"events": [{"data": 1, "tags": [""]}]}, "tags"), ({"events": [{"data": 1, "tags": ["x" * 129]}]}, "tags"),
                            ({"events": [{"data": 1, "tags": [str(n) for n in range(21)]}]}, "at most 20"), ({"events": [{"data": 1, "serializer": "java"}]}, "serializer"),
                            ({"events": [{"data": 1}], "expected": "some"}, "'any', 'none'"), ({"events": [{"data": 1}], "expected": -1}, "'any', 'none'"),
                            ({"events": [{"data": 1}], "expected": 1.5}, "'any', 'none'"), ({"events": [{"data": 1}], "epoch": "1"}, "epoch"),
                            ({"events": [{"data": 1}], "epoch": -1}, "epoch"),
                            ({"events": [{"data": 1}], "epoch": 2**64 - 1}, "from 0 to 9007199254740991"), ({"events": [{"data": 1}], "epoch": 2**53}, "from 0 to 9007199254740991"),
                            ({"events": [{"data": 1}], "expected": 2**64 - 1}, "'any', 'none'"), ({"events": [{"data": 1}], "expected": 1.0}, "not as 1.0"),
                            ({"events": [{"data": 1}], "ttl": "200000d"}, "from a second to"), ({"events": [{"data": 1}], "batch": 5}, "batch"),
                            ({"events": [{"data": 1}], "batch": "x" * 129}, "batch"), ({"events": [{"data": 1}], "ttl": 0}, "ttl"),
                            ({"events": [{"data": 1}], "ttl": "soon"}, "ttl"), ({"events": [{"data": 1}], "wait": 1}, "wait is not known")):
            self.refuse(400, words, "POST", path, body)
        for query, words in (("expected=x", "'any', 'none'"), ("epoch=x", "epoch"), ("ttl=x", "ttl"), ("tag=", "tags"), ("type=a%0Ab", "control")):
            self.refuse(400, words, "POST", f"{path}?{query}", b"x", {"Content-Type": "text/plain"})
        self.refuse(404, "never", "GET", f"{self.journal}/bad")

    def test_limits(self):
        path = f"{self.journal}/limits/events"
        self.refuse(413, "at most 10000", "POST", path, {"events": [{"data": 1}] * 10_001})
        self.refuse(413, "events[0]", "POST", path, {"events": [{"data": "x" * 350 * 1024}]})
        self.refuse(413, "bytes", "POST", path, b"x" * (350 * 1024 + 1), {"Content-Type": "text/plain"})
        self.refuse(413, "32 MB", "POST", path, {"events": [{"data": "x" * 340_000}] * 100})
        self.server.append(f"{self.journal}/limits", "x" * 340_000)
        response, _ = self.server.request("POST", f"/journal/{path}", b"y" * 350 * 1024, {"Content-Type": "text/plain"})
        self.assertEqual(response.status, 201)
        self.assertEqual(self.server.read(f"{self.journal}/limits")["highest"], 2)

    def test_a_body_that_is_too_large_gets_a_sentence(self):
        for headers, content in (({"Content-Length": str(64 << 20)}, b""), ({"Transfer-Encoding": "chunked"}, b"2000001\r\n")):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.http)
            connection.putrequest("PUT", f"/journal/{self.journal}/limits/snapshots/1")
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(content)
            response = connection.getresponse()
            self.assertEqual((response.status, json.loads(response.read())), (413, {"error": "the body is larger than 716800 bytes"}), headers)
            connection.close()

    def test_a_large_append_is_whole(self):
        self.server.append(f"{self.journal}/large", *[str(n) + 100_000 * "x" for n in range(60)])
        self.assertEqual([event["data"][:3] for event in self.server.lines(f"{self.journal}/large/events")], [(str(n) + "xxx")[:3] for n in range(60)])


class Reading(OnOneServer):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.append("long/history", *range(1, 351))

    def numbers(self, **query):
        return [event["number"] for event in self.server.read("long/history/events", **query)["events"]]

    def test_ranges_limits_and_directions(self):
        self.assertEqual(self.numbers(), list(range(1, 101)))
        self.assertEqual(self.numbers(limit=10_000), list(range(1, 351)))
        self.assertEqual(self.numbers(**{"from": 99, "to": 201, "limit": 1000}), list(range(99, 202)))
        self.assertEqual(self.numbers(**{"from": 351}), [])
        self.assertEqual(self.numbers(**{"from": 10, "to": 9}), [])
        self.assertEqual(self.numbers(to=0), [])
        self.assertEqual(self.numbers(**{"from": 0, "limit": 2}), [1, 2])
        self.assertEqual(self.numbers(direction="backward", limit=3), [350, 349, 348])
        self.assertEqual(self.numbers(direction="backward", to=102, limit=4), [102, 101, 100, 99])
        self.assertEqual(self.numbers(direction="backward", **{"from": 348}), [350, 349, 348])
        for query, words in (("from=x", "from"), ("limit=0", "limit"), ("limit=10001", "limit"), ("direction=up", "direction"), ("format=xml", "format")):
            self.refuse(400, words, "GET", f"long/history/events?{query}")

    def test_pages_go_on_from_each_other(self):
        for direction, name in (("forward", "from"), ("backward", "to")):
            seen, more = [], {}
            while True:
                page = self.server.read("long/history/events", limit=77, direction=direction, **more)
                seen += [event["number"] for event in page["events"]]
                self.assertEqual((page["lowest"], page["highest"]), (1, 350))
                if page["next"] is None:
                    break
                more = {name: page["next"]}
            self.assertEqual(seen, list(range(1, 351))[::1 if direction == "forward" else -1])

    def test_lines_have_no_limit_unless_one_is_given(self):
        lines = self.server.lines("long/history/events")
        self.assertEqual([event["number"] for event in lines], list(range(1, 351)))
        self.assertEqual([event["number"] for event in self.server.lines("long/history/events", limit=120)], list(range(1, 121)))
        self.assertEqual([event["number"] for event in self.server.lines("long/history/events", direction="backward", to=10)], list(range(10, 0, -1)))
        response, content = self.server.request("GET", "/journal/long/history/events?format=ndjson&limit=1")
        self.assertEqual((response.getheader("Content-Type"), content.count(b"\n")), (NDJSON, 1))
        self.assertEqual(self.server.lines("long/nobody/events"), [])

    def test_an_entity_that_never_was_has_no_events(self):
        self.assertEqual(self.server.read("long/nobody/events"), {"events": [], "lowest": 1, "highest": 0, "epoch": 0, "next": None})
        self.server.read("long/nobody", expect=404)
        self.assertEqual(self.server.read("long/history"), {"lowest": 1, "highest": 350, "epoch": 0})

    def test_a_page_has_some_megabytes_at_most(self):
        self.server.append("long/heavy", *[100_000 * chr(97 + n % 26) for n in range(90)])
        page = self.server.read("long/heavy/events", limit=1000)
        self.assertTrue(0 < len(page["events"]) < 90)
        self.assertEqual(page["next"], len(page["events"]) + 1)
        rest = self.server.read("long/heavy/events", **{"from": page["next"], "limit": 1000})
        self.assertEqual(rest["events"][0]["number"], page["next"])

    def test_entities_are_listed_with_their_last_events(self):
        for n in range(25):
            self.server.append("many/" + str(n), "first", ("last", {"type": str(n)}))
        seen, more, pages = {}, {}, 0
        while True:
            page = self.server.read("many/entities", limit=10, events="true", **more)
            seen.update({entity["pid"]: entity for entity in page["entities"]})
            pages += 1
            if page["next"] is None:
                break
            more = {"from": page["next"]}
        self.assertEqual(sorted(seen), sorted(map(str, range(25))))
        self.assertGreaterEqual(pages, 3)
        one = seen["7"]
        self.assertEqual((one["lowest"], one["highest"], one["epoch"], one["last_event"]["data"], one["last_event"]["type"]), (1, 2, 0, "last", "7"))
        self.assertRegex(one["time"], TIME)
        self.assertNotIn("last_event", self.server.read("many/entities")["entities"][0])
        self.refuse(400, "", "GET", "many/entities?from=nonsense")
        for n in range(25):
            self.server.append("heavy/" + str(n), 300_000 * "x")
        seen, more, pages = [], {}, 0
        while more is not None:
            page = self.server.read("heavy/entities", limit=100, events="true", **more)
            seen += [entity["pid"] for entity in page["entities"]]
            pages += 1
            self.assertLessEqual(len(page["entities"]), 15, "some megabytes at most")
            more = {"from": page["next"]} if page["next"] is not None else None
        self.assertEqual((sorted(seen), pages), (sorted(map(str, range(25))), 2))
        self.refuse(400, "limit", "GET", "many/entities?limit=101&events")


class Deleting(OnOneServer):
    def test_what_is_deleted_is_gone_and_its_numbers_are_never_given_again(self):
        for permanently in ("", "&permanently"):
            path = f"{self.journal}/deleted{len(permanently)}"
            self.server.append(path, *range(1, 251))
            self.assertEqual(self.server.call("DELETE", f"/journal/{path}/events?to=120{permanently}"), {"deleted_to": 120})
            self.assertEqual(self.server.read(path), {"lowest": 121, "highest": 250, "epoch": 0})
            self.assertEqual(self.server.data(path, limit=3), [121, 122, 123])
            self.assertEqual(self.server.data(path, limit=1000), list(range(121, 251)))
            self.assertEqual([event["number"] for event in self.server.lines(f"{path}/events", direction="backward")], list(range(250, 120, -1)))
            self.assertEqual(self.server.call("DELETE", f"/journal/{path}/events?to=5{permanently}"), {"deleted_to": 120}, "it does not go back")
            self.assertEqual(self.server.call("DELETE", f"/journal/{path}/events?to=9999{permanently}"), {"deleted_to": 250})
            self.assertEqual(self.server.data(path), [])
            self.assertEqual(self.server.read(path)["highest"], 250)
            self.assertEqual(self.server.append(path, "after", expected=250)["first"], 251)
            self.assertEqual(self.server.data(path), ["after"])
            self.refuse(400, "to", "DELETE", f"{path}/events")
            self.refuse(400, "to", "DELETE", f"{path}/events?to=0")
            self.refuse(400, "permanently", "DELETE", f"{path}/events?to=1&permanently=maybe")

    def test_permanently_removes_the_rows(self):
        path = f"{self.journal}/rows"
        self.server.append(path, *range(1, 131))

        def rows():
            key = "par" if LAYOUT == "blocks" else "key"
            found = self.server.tables().scan(TableName="tabella-journal", ConsistentRead=True)["Items"]
            return [row for row in found if row[key]["S"].startswith(f"{self.journal}-P-")]

        self.assertEqual(len(rows()), 130)
        self.server.call("DELETE", f"/journal/{path}/events?to=100")
        self.assertEqual(len(rows()), 130)
        self.server.call("DELETE", f"/journal/{path}/events?to=110&permanently")
        wait_until(lambda: len(rows()) == 20)
        self.assertEqual(self.server.data(path), list(range(111, 131)))

    def test_confirmations(self):
        path = f"{self.journal}/confirmed"
        self.server.append(path, 1, 2)
        self.assertEqual(self.server.call("POST", f"/journal/{path}/events/1/confirmations", {"by": ["channel-2"]}), {})
        self.server.call("POST", f"/journal/{path}/events/1/confirmations", {"by": ["channel-1", "channel-2"]})
        one, two = self.server.read(f"{path}/events")["events"]
        self.assertEqual(sorted(one["confirmations"]), ["channel-1", "channel-2"])
        self.assertNotIn("confirmations", two)
        self.refuse(404, "no such event", "POST", f"{path}/events/3/confirmations", {"by": ["x"]})
        self.refuse(400, "number", "POST", f"{path}/events/x/confirmations", {"by": ["x"]})
        for body in ({}, {"by": []}, {"by": "x"}, {"by": [""]}, {"by": ["x"], "at": 1}, {"by": ["a\nb"]}, {"by": ["x" * 257]}):
            self.refuse(400, "", "POST", f"{path}/events/1/confirmations", body)
        self.server.call("POST", f"/journal/{path}/events/2/confirmations", {"by": [str(n) for n in range(100)]})
        self.refuse(400, "at most 100 confirmations", "POST", f"{path}/events/2/confirmations", {"by": ["one more"]})
        self.server.call("POST", f"/journal/{path}/events/2/confirmations", {"by": ["7"]})
        self.assertEqual(len(self.server.read(f"{path}/events")["events"][1]["confirmations"]), 100)

    def test_events_with_a_time_to_live_say_when_they_go(self):
        path = f"{self.journal}/short"
        self.server.append(path, 1, ttl=3600)
        self.server.append(path, 2, ttl="2h")
        one, two = self.server.read(f"{path}/events")["events"]
        self.assertRegex(one["expires"], TIME)
        self.assertGreater(two["expires"], one["expires"])


class Orders(OnOneServer):
    def fill(self):
        for n in range(30):
            self.server.append(f"{self.journal}/e{n % 7}", (n, {"tags": ["even"] if n % 2 == 0 else ["odd", "third"] if n % 3 == 0 else ["odd"]}))
        self.server.append(f"{self.journal}/batch", *[(n, {"tags": ["even"]} if n % 2 == 0 else {}) for n in range(150)])
        self.server.wait_for_position(self.journal, 180)

    def test_a_hole_is_an_error_wherever_it_is_read(self):
        self.server.append(f"{self.journal}/holed", *[(n, {"tags": ["t"]}) for n in range(1, 10)])
        self.server.wait_for_position(self.journal, 9)
        self.server.call("PUT", f"/journal/{self.journal}/consumers/c", {"from": "start"}, expect=201)
        key = {"par": {"S": f"{self.journal}-P-holed-0"}, "num": {"N": "5"}} if LAYOUT == "blocks" else {"key": {"S": f"{self.journal}-P-holed-5"}}
        self.server.tables().delete_item(TableName="tabella-journal", Key=key)
        for path in ("all", "tags/t", "slices/0-1023", "all?format=ndjson", "all?direction=backward", "holed/events"):
            self.refuse(500, "event 5 of holed is missing", "GET", f"{self.journal}/{path}")
        self.refuse(500, "at position 5", "POST", f"{self.journal}/consumers/c/read", {"holder": "x"})
        self.assertEqual([event["number"] for event in self.server.read(f"{self.journal}/all", after=5)["events"]], [6, 7, 8, 9])

    def test_every_event_has_one_position(self):
        self.fill()
        everything = self.server.lines(f"{self.journal}/all")
        self.assertEqual([event["position"] for event in everything], list(range(1, 181)))
        for pid in {event["pid"] for event in everything}:
            mine = [event for event in everything if event["pid"] == pid]
            self.assertEqual([event["number"] for event in mine], list(range(1, len(mine) + 1)))
            for event, alone in zip(mine, self.server.lines(f"{self.journal}/{pid}/events")):
                self.assertEqual({name: value for name, value in event.items() if name not in ("pid", "position")}, alone)
        page = self.server.read(f"{self.journal}/all", limit=10)
        self.assertEqual(([event["position"] for event in page["events"]], page["position"], page["last"]), (list(range(1, 11)), 10, 180))
        page = self.server.read(f"{self.journal}/all", after=175, limit=10)
        self.assertEqual(([event["position"] for event in page["events"]], page["position"]), (list(range(176, 181)), 180))
        self.assertEqual([event["position"] for event in self.server.lines(f"{self.journal}/all", after=170, limit=5)], list(range(171, 176)))
        back = self.server.read(f"{self.journal}/all", direction="backward", limit=4)
        self.assertEqual([event["position"] for event in back["events"]], [180, 179, 178, 177])
        back = self.server.read(f"{self.journal}/all", direction="backward", before=back["position"], limit=2)
        self.assertEqual([event["position"] for event in back["events"]], [176, 175])
        self.assertEqual([event["position"] for event in self.server.lines(f"{self.journal}/all", direction="backward")], list(range(180, 0, -1)))
        self.assertIn({"name": self.journal, "last_position": 180}, self.server.call("GET", "/journal")["journals"])

    def test_by_tag_and_by_slice(self):
        self.fill()
        everything = self.server.lines(f"{self.journal}/all")
        for tag in ("even", "odd", "third"):
            wanted = [event["position"] for event in everything if tag in event.get("tags", [])]
            self.assertTrue(wanted)
            self.assertEqual([event["position"] for event in self.server.lines(f"{self.journal}/tags/{tag}")], wanted)
            self.assertEqual([event["position"] for event in self.server.lines(f"{self.journal}/tags/{tag}", direction="backward")], wanted[::-1])
            seen, after = [], 0
            while after < 180:
                page = self.server.read(f"{self.journal}/tags/{tag}", after=after, limit=3)
                self.assertGreater(page["position"], after)
                seen, after = seen + [event["position"] for event in page["events"]], page["position"]
            self.assertEqual(seen, wanted)
        self.assertEqual(self.server.lines(f"{self.journal}/tags/none"), [])
        slices = [self.server.lines(f"{self.journal}/slices/{first}-{first + 255}") for first in range(0, 1024, 256)]
        self.assertEqual(sorted(event["position"] for part in slices for event in part), list(range(1, 181)))
        pids = [{event["pid"] for event in part} for part in slices]
        self.assertEqual(sum(map(len, pids)), 8, "an entity is in one slice")
        # Java's String.hashCode of "e0" is 3179, and 3179 % 1024 is 107.
        self.assertEqual({event["pid"] for event in self.server.lines(f"{self.journal}/slices/107-107")}, {"e0"})
        for slices in ("1", "5-4", "0-1024", "a-b", "-1-5"):
            self.refuse(400, "slices", "GET", f"{self.journal}/slices/{slices}")
        for query in ("after=x", "limit=0", "before=5", "direction=backward&after=5"):
            self.refuse(400, "", "GET", f"{self.journal}/all?{query}")

    def test_deleted_events_leave_their_positions(self):
        for n in range(5):
            self.server.append(f"{self.journal}/a", n)
        self.server.append(f"{self.journal}/b", 1)
        self.server.wait_for_position(self.journal, 6)
        before = {(event["pid"], event["number"]): event["position"] for event in self.server.lines(f"{self.journal}/all")}
        self.server.call("DELETE", f"/journal/{self.journal}/a/events?to=3")
        page = self.server.read(f"{self.journal}/all")
        self.assertEqual({(event["pid"], event["number"]): event["position"] for event in page["events"]},
                         {who: position for who, position in before.items() if who not in (("a", 1), ("a", 2), ("a", 3))})
        self.assertEqual((page["position"], page["last"]), (6, 6))

    def test_a_journal_without_events(self):
        self.assertEqual(self.server.read(f"{self.journal}/all"), {"events": [], "position": 0, "last": 0})
        self.assertEqual(self.server.lines(f"{self.journal}/all"), [])
        self.assertEqual(self.server.lines(f"{self.journal}/all", direction="backward"), [])


class LiveOnes(OnOneServer):
    def processor_time(self):
        """Of the server, in seconds."""
        with open(f"/proc/{self.server.process.pid}/stat") as stat:
            user, system = stat.read().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def test_an_entity_from_now_on_and_from_a_number(self):
        path = f"{self.journal}/told"
        self.server.append(path, 1, 2, 3)
        with self.server.live(f"{path}/events/live") as now, self.server.live(f"{path}/events/live", **{"from": 2}) as early:
            self.assertEqual((now.status, now.content_type), (200, "text/event-stream"))
            self.assertEqual([(number, event["data"]) for number, event in early.take(2)], [(2, 2), (3, 3)])
            self.server.append(path, 4, ("five\n", {"type": "Fifth"}))
            for live in (now, early):
                (four, one), (five, two) = live.take(2)
                self.assertEqual((four, one["number"], one["data"], five, two["data"], two["type"]), (4, 4, 4, 5, "five\n", "Fifth"))

    def test_it_goes_on_behind_the_last_event_id(self):
        path = f"{self.journal}/resumed"
        self.server.append(path, *range(1, 301))
        with self.server.live(f"{path}/events/live", last_event_id=250) as live:
            self.assertEqual([number for number, _ in live.take(50)], list(range(251, 301)))
            self.server.append(path, 301)
            self.assertEqual(live.next()[0], 301)
        self.server.wait_for_position(self.journal, 301)
        with self.server.live(f"{self.journal}/all/live", last_event_id=299) as live:
            self.assertEqual([position for position, _ in live.take(2)], [300, 301])
        with self.server.live(f"{self.journal}/all/live", **{"last-event-id": 300}) as live:
            self.assertEqual(live.next()[0], 301)

    def test_all_tags_and_slices(self):
        self.server.append(f"{self.journal}/e0", ("before", {"tags": ["red"]}))
        self.server.wait_for_position(self.journal, 1)
        with self.server.live(f"{self.journal}/all/live") as everything, self.server.live(f"{self.journal}/tags/red/live") as red, \
                self.server.live(f"{self.journal}/slices/107-107/live") as some, self.server.live(f"{self.journal}/all/live", after=0) as early:
            self.server.append(f"{self.journal}/e1", ("blue one", {"tags": ["blue"]}))
            self.server.append(f"{self.journal}/e1", ("red one", {"tags": ["red"]}))
            self.server.append(f"{self.journal}/e0", "no tag")
            seen = everything.take(3)
            self.assertEqual([position for position, _ in seen], [2, 3, 4])
            self.assertEqual({event["pid"] for _, event in seen}, {"e0", "e1"})
            self.assertEqual(red.next()[1]["data"], "red one")
            self.assertEqual((some.next()[1]["data"]), "no tag")
            self.assertEqual([position for position, _ in early.take(4)], [1, 2, 3, 4])

    def test_somebody_who_subscribes_before_there_is_anything(self):
        with self.server.live(f"{self.journal}/unborn/events/live") as entity, self.server.live(f"{self.journal}/all/live") as everything:
            self.server.append(f"{self.journal}/unborn", "hello")
            self.assertEqual(entity.next()[1]["data"], "hello")
            self.assertEqual(everything.next()[1]["data"], "hello")

    def test_somebody_who_waits_behind_deleted_events_costs_nothing(self):
        path = f"{self.journal}/emptied"
        self.server.append(path, 1, 2, 3)
        self.server.call("DELETE", f"/journal/{path}/events?to=3")
        with self.server.live(f"{path}/events/live", **{"from": 1}) as live:
            used = []
            for _ in range(3):
                before = self.processor_time()
                time.sleep(1)
                used.append(self.processor_time() - before)
            self.assertLess(min(used), 0.2)
            self.server.append(path, 4)
            self.assertEqual(live.next()[0], 4)

    def test_many_events_reach_many_readers(self):
        readers = [self.server.live(f"{self.journal}/busy/events/live", **{"from": 1}) for _ in range(3)] + [self.server.live(f"{self.journal}/all/live", after=0) for _ in range(3)]
        try:
            for n in range(100):
                self.server.append(f"{self.journal}/busy", *range(n * 3, n * 3 + 3))
            for reader in readers:
                self.assertEqual([event["data"] for _, event in reader.take(300)], list(range(300)))
        finally:
            for reader in readers:
                reader.__exit__()

    def test_what_is_no_place_to_go_on_from(self):
        self.refuse(400, "Last-Event-ID", "GET", f"{self.journal}/x/events/live", headers={"Last-Event-ID": "abc"})
        self.refuse(400, "from", "GET", f"{self.journal}/x/events/live?from=-1")
        self.refuse(400, "after", "GET", f"{self.journal}/all/live?after=x")


class SnapshotsOfState(OnOneServer):
    def test_snapshots_are_kept_found_and_deleted(self):
        path = f"{self.journal}/account"
        self.server.append(path, *range(20))
        self.server.read(f"{path}/snapshots/newest", expect=404)
        self.assertEqual(self.server.read(f"{path}/snapshots"), {"snapshots": []})
        for number in (5, 10, 15):
            self.assertEqual(self.server.call("PUT", f"/journal/{path}/snapshots/{number}", {"data": {"balance": number}}), {"number": number})
        newest = self.server.read(f"{path}/snapshots/newest")
        self.assertEqual((newest["number"], newest["data"]), (15, {"balance": 15}))
        self.assertRegex(newest["time"], TIME)
        self.assertNotIn("serializer", newest)
        self.assertEqual(self.server.read(f"{path}/snapshots/newest", to=14)["number"], 10)
        self.server.read(f"{path}/snapshots/newest", to=4, expect=404)
        self.assertEqual(self.server.read(f"{path}/snapshots/5")["data"], {"balance": 5})
        self.server.read(f"{path}/snapshots/6", expect=404)
        self.assertEqual([one["number"] for one in self.server.read(f"{path}/snapshots")["snapshots"]], [15, 10, 5])
        self.assertEqual([one["number"] for one in self.server.read(f"{path}/snapshots", to=10, limit=1)["snapshots"]], [10])
        self.assertNotIn("data", self.server.read(f"{path}/snapshots")["snapshots"][0])
        self.server.call("PUT", f"/journal/{path}/snapshots/15", {"data": "again"})
        self.assertEqual(self.server.read(f"{path}/snapshots/15")["data"], "again")
        self.assertEqual(self.server.call("DELETE", f"/journal/{path}/snapshots?to=10"), {"deleted": 2})
        self.assertEqual([one["number"] for one in self.server.read(f"{path}/snapshots")["snapshots"]], [15])
        self.refuse(400, "which", "DELETE", f"{path}/snapshots")
        self.assertEqual(self.server.call("DELETE", f"/journal/{path}/snapshots?from=0"), {"deleted": 1})

    def test_bytes_and_raw_bodies(self):
        path = f"{self.journal}/bytes"
        self.server.append(path, 1, 2)
        self.server.call("PUT", f"/journal/{path}/snapshots/1", {"bytes": base64.b64encode(b"\0\1").decode(), "serializer": 20, "manifest": "m"})
        one = self.server.read(f"{path}/snapshots/1")
        self.assertEqual((base64.b64decode(one["bytes"]), one["serializer"], one["manifest"]), (b"\0\1", 20, "m"))
        content = os.urandom(350 * 1024)
        self.assertEqual(self.server.request("PUT", f"/journal/{path}/snapshots/2", content, {"Content-Type": "application/octet-stream"})[0].status, 200)
        self.assertEqual(base64.b64decode(self.server.read(f"{path}/snapshots/newest")["bytes"]), content)

    def test_what_is_no_snapshot(self):
        path = f"{self.journal}/bad"
        self.server.append(path, 1)
        self.refuse(409, "the last one is 1", "PUT", f"{path}/snapshots/2", {"data": 1})
        self.refuse(400, "from 1 on", "PUT", f"{path}/snapshots/0", {"data": 1})
        for body in ("", "[]", {}, {"data": 1, "bytes": ""}, {"bytes": 1}, {"data": 1, "x": 1}, {"data": 1, "serializer": "x"}):
            self.refuse(400, "", "PUT", f"{path}/snapshots/1", body)
        self.refuse(400, "number", "PUT", f"{path}/snapshots/one", {"data": 1})
        self.refuse(413, "bytes", "PUT", f"{path}/snapshots/1", b"x" * (350 * 1024 + 1), {"Content-Type": "image/png"})


class NamedConsumers(OnOneServer):
    def consumer(self, name, action="", body=None, expect=200, method="POST"):
        return self.server.call(method, f"/journal/{self.journal}/consumers/{quoted(name)}{action}", body, expect=expect)

    def fill(self, count, **more):
        for n in range(count):
            self.server.append(f"{self.journal}/e{n % 10}", (n, more))
        self.server.wait_for_position(self.journal, count)

    def test_one_reader_from_start_to_end(self):
        self.fill(25)
        made = self.consumer("mails", body={"from": "start"}, method="PUT", expect=201)
        shown = self.consumer("mails", method="GET")
        self.assertEqual(made, shown)
        self.assertEqual(self.consumer("mails", body={"from": "end"}, method="PUT", expect=200), shown, "which stays where it is")
        self.assertEqual((shown["lag"], shown["parts"][0]["checkpoint"]), (25, 0))
        seen = []
        while True:
            got = self.consumer("mails", "/read", {"holder": "one", "limit": 10})
            if not got["events"]:
                break
            again = self.consumer("mails", "/read", {"holder": "one", "limit": 10})
            self.assertEqual(again["events"], got["events"], "not acknowledged, so the same again")
            self.assertEqual(self.consumer("mails", "/acknowledge", {"lease": again["lease"], "position": again["position"]}), {})
            seen += [event["position"] for event in again["events"]]
        self.assertEqual(seen, list(range(1, 26)))
        shown = self.consumer("mails", method="GET")
        self.assertEqual((shown["lag"], shown["parts"]), (0, [{"part": 0, "checkpoint": 25, "lag": 0}]), "acknowledged, and nobody's again")
        self.assertEqual([(one["name"], one["parts"], one["lag"]) for one in self.server.read(f"{self.journal}/consumers")["consumers"]], [("mails", 1, 0)])
        self.assertEqual(self.consumer("mails", "/move", {"position": 20}), {})
        self.assertEqual(self.consumer("mails", method="GET")["lag"], 5)
        self.assertEqual([event["position"] for event in self.consumer("mails", "/read", {"holder": "two"})["events"]], list(range(21, 26)), "move took the lease away")
        self.consumer("mails", method="DELETE")
        for action in ("", "/read", "/acknowledge", "/release", "/move"):
            body = {"": None, "/read": {"holder": "x"}, "/acknowledge": {"lease": "x", "position": 1}, "/release": {"lease": "x"}, "/move": {"position": 1}}[action]
            self.consumer("mails", action, body, expect=404, method="POST" if action else "GET")
        self.consumer("mails", method="DELETE", expect=404)

    def test_two_holders_of_one_part(self):
        self.fill(10)
        self.consumer("shared", body={}, method="PUT", expect=201)
        mine = self.consumer("shared", "/read", {"holder": "one", "lease": "2s"})
        held = self.consumer("shared", "/read", {"holder": "two"}, expect=409)
        self.assertEqual([(one["part"], one["holder"]) for one in held["held_by"]], [(0, "one")])
        self.assertRegex(held["held_by"][0]["until"], TIME)
        self.consumer("shared", "/acknowledge", {"lease": mine["lease"], "position": 4})
        self.consumer("shared", "/release", {"lease": mine["lease"]})
        theirs = self.consumer("shared", "/read", {"holder": "two", "lease": "60s"})
        self.assertEqual([event["position"] for event in theirs["events"]], list(range(5, 11)))
        self.consumer("shared", "/acknowledge", {"lease": mine["lease"], "position": 9}, expect=409)
        self.assertEqual(self.consumer("shared", method="GET")["parts"][0]["checkpoint"], 4)

    def test_a_lease_that_ends_hands_the_events_to_somebody_else(self):
        self.fill(3)
        self.consumer("lost", body={}, method="PUT", expect=201)
        mine = self.consumer("lost", "/read", {"holder": "one", "lease": "1s"})
        wait_until(lambda: self.server.request("POST", f"/journal/{self.journal}/consumers/lost/read", json.dumps({"holder": "two"}))[0].status == 200)
        self.consumer("lost", "/acknowledge", {"lease": mine["lease"], "position": 3}, expect=409)

    def test_parts_are_shared_and_together_have_every_event_once(self):
        for n in range(60):
            self.server.append(f"{self.journal}/{uuid.uuid4()}", n)
        self.server.wait_for_position(self.journal, 60)
        self.consumer("parts", body={"parts": 4}, method="PUT", expect=201)
        seen = {}
        for holder in ("one", "two", "three", "four"):
            got = self.consumer("parts", "/read", {"holder": holder, "limit": 1000})
            seen[got["part"]] = got
        self.assertEqual(sorted(seen), [0, 1, 2, 3])
        self.assertEqual(sorted(event["position"] for got in seen.values() for event in got["events"]), list(range(1, 61)))
        self.consumer("parts", "/read", {"holder": "five"}, expect=409)
        for got in seen.values():
            self.consumer("parts", "/acknowledge", {"lease": got["lease"], "position": got["position"]})
        self.assertNotIn("lease", self.consumer("parts", "/read", {"holder": "one"}), "nothing new, nothing held")
        self.assertEqual(self.consumer("parts", method="GET")["lag"], 0)

    def test_those_who_come_later_get_their_share(self):
        for n in range(80):
            self.server.append(f"{self.journal}/{n % 40}-is-an-entity", n)
        self.server.wait_for_position(self.journal, 80)
        self.consumer("late", body={"parts": 4}, method="PUT", expect=201)
        had = set()
        while len(had) < 4:
            got = self.consumer("late", "/read", {"holder": "one", "limit": 1})
            had.add(got["part"])
            self.consumer("late", "/acknowledge", {"lease": got["lease"], "position": got["position"]})
        at_work = [self.consumer("late", "/read", {"holder": holder, "limit": 1}) for holder in ("one", "two", "three")]
        self.assertEqual(len({got["part"] for got in at_work}), 3)
        self.assertEqual([len(got["events"]) for got in at_work], [1, 1, 1])
        for got in at_work:
            self.consumer("late", "/acknowledge", {"lease": got["lease"], "position": got["position"], "keep": True})
        self.assertEqual(sorted(part["holder"] for part in self.consumer("late", method="GET")["parts"] if "holder" in part), ["one", "three", "two"])

    def test_large_events_come_in_several_deliveries(self):
        for n in range(3):
            self.server.append(f"{self.journal}/large", *["x" * 300_000 for _ in range(10)])
        self.server.wait_for_position(self.journal, 30)
        self.consumer("large", body={}, method="PUT", expect=201)
        deliveries = []
        while sum(map(len, deliveries)) < 30:
            got = self.consumer("large", "/read", {"holder": "one", "limit": 1000})
            deliveries.append([event["position"] for event in got["events"]])
            self.assertEqual(got["position"], deliveries[-1][-1])
            self.assertLess(len(json.dumps(got)), 5_000_000)
            self.consumer("large", "/acknowledge", {"lease": got["lease"], "position": got["position"]})
        self.assertEqual(sum(deliveries, []), list(range(1, 31)))

    def test_no_more_is_acknowledged_than_was_handed_out(self):
        self.fill(5)
        self.consumer("greedy", body={}, method="PUT", expect=201)
        got = self.consumer("greedy", "/read", {"holder": "one", "limit": 2})
        refused = self.consumer("greedy", "/acknowledge", {"lease": got["lease"], "position": 5}, expect=409)
        self.assertIn("handed out", refused["error"])
        self.assertEqual(self.consumer("greedy", method="GET")["lag"], 5)
        self.consumer("greedy", "/acknowledge", {"lease": got["lease"], "position": 2})

    def test_a_tag_and_where_it_begins(self):
        self.fill(5, tags=["old"])
        self.consumer("red", body={"tag": "red", "from": "end"}, method="PUT", expect=201)
        self.consumer("from-3", body={"from": 3}, method="PUT", expect=201)
        self.server.append(f"{self.journal}/x", (1, {"tags": ["blue"]}), (2, {"tags": ["red"]}), (3, {"tags": ["old"]}))
        self.server.wait_for_position(self.journal, 8)
        self.assertEqual([event["data"] for event in self.consumer("red", "/read", {"holder": "a"})["events"]], [2])
        self.assertEqual([event["position"] for event in self.consumer("from-3", "/read", {"holder": "a"})["events"]], [4, 5, 6, 7, 8])
        self.assertEqual(self.consumer("red", method="GET")["tag"], "red")

    def test_one_of_the_name_that_is_another_is_not_hidden(self):
        path = f"{self.journal}/consumers/same"
        self.assertEqual(len(self.consumer("same", body={"tag": "red", "parts": 4}, method="PUT", expect=201)["parts"]), 4)
        self.refuse(409, "of the tag red with 4 parts, and not of all events with 4 parts", "PUT", path, {"parts": 4})
        self.refuse(409, "of the tag red with 4 parts, and not of the tag red with 1 part", "PUT", path, {"tag": "red"})
        self.assertEqual(self.consumer("same", body={"tag": "red", "parts": 4}, method="PUT")["tag"], "red")

    def test_no_body_makes_a_usual_one(self):
        made = self.consumer("usual", method="PUT", expect=201)
        self.assertEqual((made["name"], made["parts"]), ("usual", [{"part": 0, "checkpoint": 0, "lag": 0}]))

    def test_a_read_waits_for_events(self):
        self.consumer("patient", body={}, method="PUT", expect=201)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(self.consumer, "patient", "/read", {"holder": "one", "wait": "60s"})
            wait_until(lambda: self.server.metric("tabella_journal_live_readers") >= 1)
            self.server.append(f"{self.journal}/e", "at last")
            self.assertEqual([event["data"] for event in waiting.result(50)["events"]], ["at last"])
        self.assertEqual(self.consumer("patient", method="GET")["parts"][0]["holder"], "one")

    def test_a_read_waits_for_a_part_that_others_hold(self):
        self.fill(6)
        for name, parts in (("alone", 1), ("beside-empty-parts", 32)):
            self.consumer(name, body={"parts": parts}, method="PUT", expect=201)
            holding = []
            while sum(len(got["events"]) for got in holding) < 6:
                holding.append(self.consumer(name, "/read", {"holder": f"one-{len(holding)}", "lease": "1h"}))
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(self.consumer, name, "/read", {"holder": "two", "wait": "60s"})
                wait_until(lambda: self.server.metric("tabella_journal_live_readers") >= 1)
                self.assertFalse(waiting.done())
                self.consumer(name, "/release", {"lease": holding[0]["lease"]})
                self.assertEqual(waiting.result(50)["events"], holding[0]["events"])

    def test_a_read_waits_for_the_end_of_a_lease(self):
        self.fill(2)
        self.consumer("dead", body={}, method="PUT", expect=201)
        mine = self.consumer("dead", "/read", {"holder": "one", "lease": 1})
        self.assertEqual(self.consumer("dead", "/read", {"holder": "two", "wait": "60s"})["events"], mine["events"])
        response, content = self.server.request("POST", f"/journal/{self.journal}/consumers/dead/read", json.dumps({"holder": "three", "wait": "10ms"}))
        self.assertEqual((response.status, response.getheader("Retry-After")), (409, "1"), content)

    def test_what_consumers_refuse(self):
        path = f"{self.journal}/consumers/c"
        for body, words in (({"from": "middle"}, "from"), ({"from": -1}, "from"), ({"parts": 0}, "parts"), ({"parts": 33}, "parts"), ({"tag": "x" * 129}, ""),
                            ({"form": "start"}, "form is not known"), ("[]", "JSON object")):
            self.refuse(400, words, "PUT", path, body)
        self.refuse(400, "name", "PUT", f"{self.journal}/consumers/{'x' * 129}", {})
        self.consumer("c", body={}, method="PUT", expect=201)
        for body, words in (({}, "holder"), ({"holder": ""}, "holder"), ({"holder": "x", "limit": 0}, "limit"), ({"holder": "x", "lease": "1ms"}, "lease"),
                            ({"holder": "x", "lease": "2h"}, "lease"), ({"holder": "x", "wait": "2m"}, "wait"), ({"holder": "x", "hold": 1}, "hold is not known")):
            self.refuse(400, words, "POST", path + "/read", body)
        for body in ({}, {"lease": "x"}, {"position": 1}, {"lease": "x", "position": "1"}):
            self.refuse(400, "", "POST", path + "/acknowledge", body)
        for lease in (0.5, 3601, True, "soon"):
            self.refuse(400, "lease: expected seconds, or a time as in 30s, from 1s to 1h", "POST", path + "/read", {"holder": "x", "lease": lease})
        self.refuse(400, "lease", "POST", path + "/release", {})
        self.refuse(409, "nothing to give back", "POST", path + "/release", {"lease": "made-up"})
        self.refuse(400, "position", "POST", path + "/move", {})
        self.refuse(409, "lease", "POST", path + "/acknowledge", {"lease": "made-up", "position": 0})


class Process(unittest.TestCase):
    def token(self, server, scope):
        where = ["--store", server.dynamodb] if ON == "remote" else ["--data", server.folder.name]
        made = subprocess.run([BINARY, "token", "create", "--name", scope, "--scope", scope, *where], capture_output=True, text=True,
                              env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"})
        self.assertEqual(made.returncode, 0, made)
        return {"Authorization": f"Bearer {made.stdout.strip()}"}

    def test_scopes(self):
        with JournalServer() as server:
            server.append("j/e", 1)
            server.call("PUT", "/journal/j/consumers/c", {}, expect=201)
            reader, writer, other = (self.token(server, scope) for scope in ("journal:read", "journal:write", "mail:*"))
            wait_until(lambda: server.request("GET", "/journal")[0].status == 401)
            reading = ["/journal", "/journal/j/entities", "/journal/j/e", "/journal/j/e/events", "/journal/j/e/snapshots", "/journal/j/all", "/journal/j/tags/t",
                       "/journal/j/slices/0-1023", "/journal/j/consumers", "/journal/j/consumers/c"]
            for path in reading:
                self.assertEqual([server.request("GET", path, headers=who)[0].status for who in (reader, writer, other)], [200, 403, 403], path)
            writing = [("POST", "/journal/j/e/events", {"events": [{"data": 2}]}, 201), ("POST", "/journal/j/e/epoch", None, 200),
                       ("POST", "/journal/j/e/events/1/confirmations", {"by": ["x"]}, 200), ("PUT", "/journal/j/e/snapshots/1", {"data": 1}, 200),
                       ("DELETE", "/journal/j/e/snapshots?from=0", None, 200), ("DELETE", "/journal/j/e/events?to=1", None, 200),
                       ("PUT", "/journal/j/consumers/d", {}, 201), ("POST", "/journal/j/consumers/c/read", {"holder": "x"}, 200),
                       ("POST", "/journal/j/consumers/c/move", {"position": 0}, 200), ("DELETE", "/journal/j/consumers/d", None, 200)]
            for method, path, body, status in writing:
                content = json.dumps(body) if body is not None else None
                self.assertEqual([server.request(method, path, content, headers=who)[0].status for who in (reader, other, writer)], [403, 403, status], path)

    def test_a_restart_keeps_everything(self):
        with JournalServer() as server:
            server.append("j/e", *range(150), batch="b")
            epoch = server.call("POST", "/journal/j/e/epoch")["epoch"]
            server.append("j/f", (1, {"tags": ["t"]}))
            server.wait_for_position("j", 151)
            server.call("PUT", "/journal/j/e/snapshots/100", {"data": "half"})
            server.call("PUT", "/journal/j/consumers/c", {}, expect=201)
            got = server.call("POST", "/journal/j/consumers/c/read", {"holder": "x", "limit": 40})
            server.call("POST", "/journal/j/consumers/c/acknowledge", {"lease": got["lease"], "position": got["position"]})
            server.call("DELETE", "/journal/j/e/events?to=10")
            before = (server.lines("j/e/events"), server.lines("j/all"), server.lines("j/tags/t"), server.read("j/entities"), server.read("j/e/snapshots/newest"),
                      server.read("j/consumers/c")["parts"][0]["checkpoint"])
            server.restart()
            after = (server.lines("j/e/events"), server.lines("j/all"), server.lines("j/tags/t"), server.read("j/entities"), server.read("j/e/snapshots/newest"),
                     server.read("j/consumers/c")["parts"][0]["checkpoint"])
            self.assertEqual(before, after)
            self.assertEqual(server.append("j/e", *range(150), batch="b", expect=200)["repeated"], True)
            self.assertEqual(server.append("j/e", 1, epoch=epoch - 1, expect=409)["actual"], epoch)
            self.assertEqual(server.append("j/e", 1, expected=150)["first"], 151)
            server.wait_for_position("j", 152)

    def test_live_answers_end_when_the_server_stops(self):
        with JournalServer() as server:
            server.append("j/e", 1)
            server.wait_for_position("j", 1)
            with server.live("j/e/events/live") as entity, server.live("j/all/live") as everything:
                wait_until(lambda: server.metric("tabella_journal_live_readers") == 2)
                stopping = threading.Thread(target=server.stop)
                stopping.start()
                self.assertIsNone(entity.next())
                self.assertIsNone(everything.next())
                stopping.join()
            self.assertEqual(server.process.returncode, 0)

    def test_options(self):
        with JournalServer("--journal-table", "events", "--journal-snapshots-table", "states", "--journal-name", "orders", "--journal-retention", "30d",
                           "--journal-sequence-shards", "3", "--journal-operation-timeout", "5s") as server:
            server.append("-/e", *range(500))
            server.call("PUT", "/journal/-/e/snapshots/500", {"data": 1})
            event, = server.read("orders/e/events", limit=1)["events"]
            self.assertRegex(event["expires"], TIME)
            for table in ("events", "states", "tabella-journal-heads", "tabella-journal-order", "tabella-journal-consumers"):
                server.tables().describe_table(TableName=table)
            key = "par" if LAYOUT == "blocks" else "key"
            rows = [row[key]["S"] for page in server.tables().get_paginator("scan").paginate(TableName="events") for row in page["Items"]]
            self.assertTrue({row for row in rows if row.startswith("orders-SH-e-")} <= {f"orders-SH-e-{n}" for n in range(3)}, rows)
            self.assertTrue(any(row.startswith("orders-SH-e-") for row in rows))

    def test_metrics(self):
        with JournalServer() as server:
            server.append("j/e", 1, 2, batch="b")
            server.append("j/e", 1, 2, batch="b", expect=200)
            server.append("j/e", 1, expected="none", expect=409)
            server.read("j/e/events")
            server.wait_for_position("j", 2)
            metrics = server.request("GET", "/metrics")[1].decode()
            for line in ('tabella_journal_appends_total{result="appended"} 1', 'tabella_journal_appends_total{result="repeated"} 1',
                         'tabella_journal_appends_total{result="conflict"} 1', "tabella_journal_events_appended_total 2", 'tabella_journal_last_position{journal="j"} 2'):
                self.assertIn(line + "\n", metrics)
            self.assertGreaterEqual(server.metric("tabella_journal_events_read_total"), 2)

    @unittest.skipUnless(ON == "remote", "for processes that share a store")
    def test_what_one_process_appends_another_tells_of(self):
        with JournalServer() as server:
            other = server.another().start()
            try:
                server.append("j/e", 1)
                server.wait_for_position("j", 1)
                with server.live("j/e/events/live") as entity, server.live("j/all/live") as everything:
                    body = json.dumps({"events": [{"data": "from the other"}]})
                    self.assertEqual(other.request("POST", "/journal/j/e/events", body)[0].status, 201)
                    self.assertEqual(everything.next()[1]["data"], "from the other")
                    self.assertEqual(entity.next()[1]["data"], "from the other")
            finally:
                other.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)

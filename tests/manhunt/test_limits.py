"""What is limited: messages to a destination, by its owner's wish and so that nobody is flooded; and what a domain can ask for."""

import json
import re
import time
import unittest

from manhunt_server import Domain, ManhuntServer, wait_until


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ManhuntServer())

    def setUp(self):
        self.domain = Domain(self.server, self._testMethodName.replace("_", "-")[:60])

    def limited(self, name, destination, count, per):
        """A contact with a text that is limited."""
        contact = self.domain.contact(name)
        self.domain.call("POST", f"/contacts/{contact['id']}/methods", {"type": "text", "destination": destination, "limit": {"count": count, "per": per}}, 201)
        return contact

    def early_in(self, seconds):
        """A moment at which a window of so many seconds has just begun."""
        time.sleep(seconds - time.time() % seconds + 0.05)

    def refused(self, method, path, body):
        return self.domain.call(method, path, body, 400)["error"]


class Bundles(Limits):
    def test_a_dry_run_says_what_would_come_with_others(self):
        ann = self.limited("Ann", "+390611111111", 2, "1d")
        self.domain.policy("thrice", *[("1s", {"contact": ann["id"]})] * 3)
        request = {"policy": "thrice"}
        self.domain.ring(self.domain.search(ann, wait="30d"))  # the first of the window
        alone, second, third = self.domain.call("POST", "/dry-run", request)["timeline"]
        self.assertNotIn("bundled_until", alone)
        self.assertEqual(second["bundled_until"], third["bundled_until"])
        self.assertGreater(third["bundled_until"], third["at"])
        drawn = self.domain.call("POST", "/dry-run?draw=text", request)
        self.assertEqual(drawn.count("beyond its limit: with others at"), 2, drawn)
        self.assertIn("beyond its limit", self.domain.call("POST", "/dry-run?draw=svg", request))
        # Nothing was counted.
        self.assertNotIn("bundled_until", self.domain.call("POST", "/dry-run", request)["timeline"][0])

    def test_a_search_shows_what_it_waits_for(self):
        ann = self.limited("Ann", "+390611111111", 1, "1d")
        self.domain.ring(self.domain.search(ann))
        search = self.domain.search(ann)
        wait_until(lambda: self.domain.find(search)["attempts"])
        line = self.domain.call("GET", f"/searches/{search['id']}/timeline")
        self.assertEqual(line["timeline"][0]["state"], "bundled")
        self.assertGreater(line["ends"], line["timeline"][0]["bundled_until"])

    def test_who_answers_a_bundle_does_not_answer_the_next_one(self):
        self.early_in(3)
        ann = self.limited("Ann", "+390611111111", 1, "3s")
        self.domain.ring(self.domain.search(ann))
        others = [self.domain.search(ann) for _ in range(2)]
        for search in others:
            wait_until(lambda: self.domain.find(search)["attempts"] and self.domain.find(search)["attempts"][0]["state"] == "sent")
        self.early_in(3)
        self.domain.ring(self.domain.search(ann))
        later = self.domain.search(ann)
        wait_until(lambda: self.domain.find(later)["attempts"])
        self.assertEqual(self.domain.find(later)["attempts"][0]["state"], "bundled")
        phone = next(phone for phone in self.domain.phones() if phone["search"] in [search["id"] for search in others])
        self.domain.press(phone, "1")
        self.assertEqual([self.domain.until(search, "successful")["status"] for search in others], ["successful"] * 2)
        self.assertEqual(self.domain.find(later)["status"], "active")


    def test_another_destination_is_another_bundle(self):
        ann = self.limited("Ann", "+390611111111", 1, "1d")
        path = f"/contacts/{ann['id']}/methods/{self.domain.call('GET', '/contacts/' + ann['id'])['methods'][0]['id']}"
        self.domain.ring(self.domain.search(ann))
        first = self.domain.search(ann)
        wait_until(lambda: self.domain.find(first)["attempts"])
        self.domain.call("PUT", path, {"destination": "+390699999999"})
        self.assertEqual(self.domain.ring(self.domain.search(ann))[0]["destination"], "+390699999999")
        second = self.domain.search(ann)
        wait_until(lambda: self.domain.find(second)["attempts"])
        bundled = [self.domain.find(search)["attempts"][0] for search in (first, second)]
        self.assertEqual([one["state"] for one in bundled], ["bundled"] * 2)
        self.assertNotEqual(bundled[0]["bundle"], bundled[1]["bundle"])


class Codes(Limits):
    def test_many_domains_send_no_more_to_a_destination(self):
        statuses = []
        for number in range(8):
            domain = Domain(self.server, f"codes{number}")
            ann = domain.contact("Ann", ("text", "+390655555555"))
            path = f"/manhunt/codes{number}/contacts/{ann['id']}/methods/{ann['methods'][0]['id']}"
            for what in ("/verification", "/test"):
                statuses.append(self.server.request("POST", path + what)[0].status)
        self.assertEqual(sum(status != 429 for status in statuses), 10, statuses)

    def test_whoever_serves_it_can_ask_for_verified_methods_everywhere(self):
        with ManhuntServer("--manhunt-verified-only") as server:
            domain = Domain(server)
            self.assertTrue(domain.call("PUT", "", {"require_verification": False})["require_verification"])
            ann = domain.contact("Ann", ("text", "+390611111111"))
            self.assertEqual(domain.until(domain.search(ann, wait="100ms"), "failed")["resolution"]["how"], "nobody")
            path = f"/contacts/{ann['id']}/methods/{ann['methods'][0]['id']}/verification"
            code = re.search(r"\b(\d{6})\b", domain.call("POST", path, expect=202)["detail"])[1]
            domain.call("POST", path + "/confirm", {"code": code})
            domain.ring(domain.search(ann))
            # Verified when it was planned, another one when it is due.
            path = f"/contacts/{ann['id']}/methods/{ann['methods'][0]['id']}"
            domain.call("PUT", path, {"delay": "1s"})
            search = domain.search(ann, wait="100ms")
            domain.call("PUT", path, {"destination": "+390699999999"})
            attempt, = domain.until(search, "failed")["attempts"]
            self.assertEqual((attempt["state"], attempt["detail"]), ("skipped", "the method is not verified"))


class Sizes(Limits):
    def test_a_search_asks_two_hundred_at_most(self):
        people = [self.domain.contact(f"P{number}") for number in range(20)]
        steps = [{"wait": "1m", "targets": [{"contact": one["id"]} for one in people]}]
        self.domain.call("PUT", "/policies/all", {"steps": steps * 5, "repeat": 1})
        self.assertIn("300 would be asked", self.refused("PUT", "/policies/all", {"steps": steps * 5, "repeat": 2}))

    def test_a_wait_of_a_month_at_most(self):
        ann = self.domain.contact("Ann", ("text", "+390611111111"))
        self.domain.search(ann, wait="30d")
        self.assertIn("30d", self.refused("POST", "/searches", {"contact": ann["id"], "wait": "31d"}))
        self.assertIn("30d", self.refused("POST", f"/contacts/{ann['id']}/methods", {"type": "text", "destination": "+390611111111", "delay": "31d"}))

    def test_the_longest_search_is_drawn(self):
        people = [self.domain.contact(f"P{number}", *[("text", "+390611111111")] * 10) for number in range(20)]
        self.domain.call("PUT", "/policies/all", {"steps": [{"wait": "1m", "targets": [{"contact": one["id"]} for one in people]}] * 10})
        request = {"policy": "all", "metadata": {"summary": "x" * 60_000}}
        line = self.domain.call("POST", "/dry-run", request)["timeline"]
        self.assertEqual(len(line), 2000)
        self.assertTrue(all("xxx" in entry["text"] for entry in line))

    def test_all_of_a_domain_is_a_megabyte_at_most(self):
        ann = self.domain.contact("Ann")
        rotation = {"contacts": [ann["id"]] * 100, "start": "2026-01-05T09:00:00", "unit": "week"}
        put = lambda name: self.server.request("PUT", f"/manhunt/{self.domain.name}/schedules/{name}", json.dumps({"rotations": [rotation] * 20}))[0].status
        statuses = [put(f"s{number}") for number in range(30)]
        full = statuses.index(400)
        self.assertGreater(full, 10)
        self.assertEqual(set(statuses[:full]), {200})
        self.assertIn("remove some of it", self.refused("PUT", "/schedules/another", {"rotations": [rotation] * 20}))
        self.domain.call("DELETE", "/schedules/s0", expect=204)
        wait_until(lambda: put("another") == 200)

    def test_one_address_for_each_method(self):
        for address in ("ann@example.com,eve@example.com", "ann@example.com eve@example.com", "Ann <ann@example.com>", "ann@", "@example.com", "ann@exa mple.com", "ann@example.com\r\nBcc: eve@example.com"):
            with self.subTest(address):
                self.assertIn("destination", self.refused("POST", "/contacts", {"name": "Ann", "methods": [{"type": "email", "destination": address}]}))

    def test_contacts_are_named_by_their_ids(self):
        name = "c" * 65
        rotation = {"contacts": [name], "start": "2026-01-05T09:00:00", "unit": "week"}
        self.assertIn("contacts", self.refused("PUT", "/schedules/s", {"rotations": [rotation]}))
        self.domain.call("PUT", "/schedules/s", {"rotations": []})
        self.assertIn("contact", self.refused("POST", "/schedules/s/overrides", {"contact": name, "from": "2026-12-24T09:00:00Z", "to": "2026-12-27T09:00:00Z"}))
        self.assertIn("policies", self.refused("PUT", "/maintenance/m", {"from": "2026-12-24T09:00:00Z", "to": "2026-12-27T09:00:00Z", "policies": ["p"] * 201}))


class Keys(Limits):
    def test_a_routing_key_can_be_changed(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"))
        before = self.domain.policy("shop", ("1h", {"contact": ann["id"]}))["routing_key"]
        after = self.domain.call("POST", "/policies/shop/routing-key")["routing_key"]
        self.assertNotEqual(before, after)
        event = lambda key: self.server.request("POST", "/v2/enqueue", json.dumps({"routing_key": key, "event_action": "trigger", "payload": {"summary": "Disk full", "source": "db1", "severity": "critical"}}))[0].status
        wait_until(lambda: event(before) == 400)
        self.assertEqual(event(after), 202)
        self.assertEqual(self.domain.policy("shop", ("2h", {"contact": ann["id"]}))["routing_key"], after)
        self.domain.call("POST", "/policies/nothing/routing-key", expect=404)

    def test_what_was_resolved_frees_its_key(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"))
        first = self.domain.search(ann, key="disk")
        self.domain.call("POST", f"/searches/{first['id']}/respond", {"answer": "accept"})
        self.assertEqual(self.domain.search(ann, key="disk", expect=200)["id"], first["id"])
        self.assertEqual(self.domain.call("POST", f"/searches/{first['id']}/resolve")["status"], "successful")
        second = self.domain.search(ann, key="disk")
        self.assertNotEqual(second["id"], first["id"])
        # It is not the first one's any more.
        self.domain.call("POST", f"/searches/{first['id']}/resolve")
        self.assertEqual(self.domain.search(ann, key="disk", expect=200)["id"], second["id"])
        found = self.domain.call("POST", f"/searches/{second['id']}/resolve")
        self.assertEqual((found["status"], found["resolution"]["how"]), ("canceled", "resolved"))

    def test_who_is_needed_is_not_removed(self):
        ann, bob = (self.domain.contact(name, ("phone", "+390611111111")) for name in ("Ann", "Bob"))
        self.domain.policy("shop", ("1h", {"contact": ann["id"]}))
        self.domain.call("PUT", "/heartbeats/backup", {"every": "1h", "policy": "shop"})
        self.assertIn("heartbeat backup", self.domain.call("DELETE", "/policies/shop", expect=409)["error"])
        self.domain.call("PUT", "/heartbeats/backup", {"every": "1h", "contact": bob["id"]})
        self.domain.call("DELETE", "/policies/shop", expect=204)
        self.assertIn("heartbeat backup", self.domain.call("DELETE", f"/contacts/{bob['id']}", expect=409)["error"])
        self.domain.call("DELETE", "/heartbeats/backup", expect=204)
        self.domain.call("PUT", "/schedules/s", {"rotations": []})
        over = {"contact": bob["id"], "from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
        self.domain.call("POST", "/schedules/s/overrides", over, 201)
        one = self.domain.call("POST", "/schedules/s/overrides", {**over, "to": "2100-01-02T00:00:00Z"}, 201)
        self.assertIn("schedule s", self.domain.call("DELETE", f"/contacts/{bob['id']}", expect=409)["error"])
        self.domain.call("DELETE", f"/schedules/s/overrides/{one['id']}", expect=204)
        self.domain.call("DELETE", f"/contacts/{bob['id']}", expect=204)

    def test_of_two_who_say_the_same_one_was_first(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"))
        search = self.domain.search(ann)
        self.domain.call("POST", f"/searches/{search['id']}/respond", {"answer": "accept"})
        self.domain.call("POST", f"/searches/{search['id']}/respond", {"answer": "accept"}, 409)

    def test_a_key_is_its_contacts_own(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"))
        self.domain.search(ann, key="disk")
        other = Domain(self.server, "another")
        other.call("POST", "/searches", {"contact": ann["id"], "key": "disk"}, 400)


if __name__ == "__main__":
    unittest.main(verbosity=2)

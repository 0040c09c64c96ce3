"""Searches over HTTP: who is asked when, by which channel, and how they answer. MANHUNT_ON is embedded, or remote."""

import base64
import datetime
import hashlib
import hmac
import json
import re
import threading
import time
import unittest
import urllib.parse
import xml.etree.ElementTree

from manhunt_server import Domain, ManhuntServer, wait_until
from hook import Hook


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Searching(unittest.TestCase):
    domains = 0

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ManhuntServer("--outbound-allow", "127.0.0.1", systems="mail,outbox,manhunt"))

    def setUp(self):
        Searching.domains += 1
        self.domain = Domain(self.server, f"shop{Searching.domains}")

    def attempts(self, search):
        return self.domain.find(search)["attempts"]

    def emails(self, to):
        return [message for message in self.server.messages(limit=250)["items"] if to in json.dumps(message["To"]) or to in message["Raw"]["To"]]


class InTheirOrder(Searching):
    def test_methods_follow_each_other_by_their_delays_until_somebody_answers(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111", "200ms"), ("text", "+390622222222", "700ms"), ("phone", "+390633333333", "1h"))
        search = self.domain.search(ann, metadata={"summary": "Disk full"})
        self.assertEqual(search["status"], "active")
        wait_until(lambda: len(self.attempts(search)) == 2)
        first, second = self.attempts(search)
        self.assertEqual([(one["type"], one["destination"]) for one in (first, second)], [("phone", "+390611111111"), ("text", "+390622222222")])
        self.assertGreaterEqual(round(moment(first["started"]) - moment(search["created"]), 3), 0.2)
        self.assertGreaterEqual(round(moment(second["started"]) - moment(first["started"]), 3), 0.7)
        self.domain.press(self.domain.ring(search, 2)[1], "1")
        found = self.domain.find(search)
        self.assertEqual((found["status"], found["resolution"]["how"], found["resolution"]["attempt"]), ("successful", "simulator", second["id"]))
        self.assertEqual([one.get("response", {}).get("answer") for one in found["attempts"]], [None, "accept"])
        wait_until(lambda: not self.domain.phones())
        # Who comes late is told; who answers again is thanked again.
        self.domain.call("POST", f"/searches/{search['id']}/respond", {"answer": "accept", "by": "Bob"}, 409)
        self.domain.call("POST", f"/searches/{search['id']}/cancel", {}, 409)

    def test_when_all_are_used_up_it_has_failed(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"), ("phone", "+390622222222", "300ms"))
        found = self.domain.until(self.domain.search(ann, wait="500ms", repeat=1), "failed")
        self.assertEqual(found["resolution"]["how"], "exhausted")
        self.assertEqual([one["id"] for one in found["attempts"]], ["a01.01.01.01", "a01.01.01.02", "a02.01.01.01", "a02.01.01.02"])
        self.assertGreaterEqual(round(moment(found["ended"]) - moment(found["attempts"][-1]["started"]), 3), 0.5)

    def test_who_declines_is_asked_no_more_and_what_comes_next_comes_at_once(self):
        ann, bob = self.domain.contact("Ann", ("phone", "+390611111111"), ("phone", "+390611111112", "1s")), self.domain.contact("Bob", ("phone", "+390622222222"))
        self.domain.policy("shop", ("1h", {"contact": ann["id"]}), ("1h", {"contact": bob["id"]}))
        search = self.domain.search(policy="shop")
        self.domain.press(self.domain.ring(search)[0], "2")
        bobs = self.domain.ring(search)[0]
        self.assertEqual(bobs["contact"], bob["id"])
        self.domain.press(bobs, "2")
        found = self.domain.until(search, "failed")
        self.assertEqual((found["resolution"]["how"], len(found["attempts"])), ("declined", 2))

    def test_all_of_a_step_are_asked_and_then_those_of_the_next(self):
        people = [self.domain.contact(name, ("phone", f"+39061111111{number}")) for number, name in enumerate(("Ann", "Bob", "Cy"))]
        self.domain.call("PUT", "/schedules/primary", {"timezone": "Europe/Rome", "rotations": [{"contacts": [people[2]["id"]], "start": "2026-01-05T09:00:00", "unit": "week"}]})
        self.domain.policy("shop", ("600ms", {"contact": people[0]["id"]}, {"contact": people[1]["id"]}), ("1h", {"schedule": "primary"}))
        search = self.domain.search(policy="shop")
        phones = self.domain.ring(search, 3)
        self.assertEqual([phone["contact_name"] for phone in phones][2], "Cy")
        self.assertEqual({phone["contact_name"] for phone in phones[:2]}, {"Ann", "Bob"})
        steps = self.domain.find(search)["steps"]
        self.assertEqual([[one["name"] for one in step["contacts"]] for step in steps], [["Ann", "Bob"], ["Cy"]])
        self.assertEqual(steps[1]["contacts"][0]["schedule"], "primary")
        self.assertGreaterEqual(round(moment(steps[1]["started"]) - moment(steps[0]["started"]), 3), 0.6)
        # Whom a policy leads to has the search in their own list.
        wait_until(lambda: self.domain.call("GET", f"/contacts/{people[2]['id']}/searches")["searches"])

    def test_nobody_is_on_call(self):
        self.domain.call("PUT", "/schedules/nobody", {"rotations": []})
        self.domain.policy("shop", ("200ms", {"schedule": "nobody"}))
        found = self.domain.until(self.domain.search(policy="shop"), "failed")
        self.assertEqual((found["resolution"]["how"], found["attempts"]), ("nobody", []))

    def test_a_phone_of_the_simulator_is_hung_up_and_a_text_replied_to(self):
        search = self.domain.search(self.domain.contact("Ann", ("phone", "+390611111111"), ("text", "+390611111111")))
        phone, text = self.domain.ring(search, 2)
        use = lambda one, what, expect=200: self.server.call("POST", f"/manhunt/simulator/{one['search']}/{one['attempt']}", what, expect)
        use(phone, {"hang_up": True})
        self.assertEqual([one["attempt"] for one in self.domain.phones()], [text["attempt"]])
        self.assertEqual(self.attempts(search)[0]["progress"], "hung up")
        for wrong in ({}, {"press": "7"}, {"press": "1", "hang_up": True}, {"reply": "maybe"}):
            use(text, wrong, 400)
        self.assertEqual(self.domain.find(search)["status"], "active")
        use(text, {"reply": " Yes "})
        self.assertEqual(self.domain.find(search)["status"], "successful")
        self.assertEqual(self.domain.phones(), [])

    def test_a_key_opens_one_search(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"))
        first = self.domain.search(ann, key="disk")
        self.assertEqual(self.domain.search(ann, key="disk", expect=200)["id"], first["id"])
        self.domain.call("POST", f"/searches/{first['id']}/cancel")
        self.assertNotEqual(self.domain.search(ann, key="disk")["id"], first["id"])

    def test_opening_at_once_by_one_key_opens_one(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"))
        opened = []
        threads = [threading.Thread(target=lambda: opened.append(self.server.request("POST", f"/manhunt/{self.domain.name}/searches", json.dumps({"contact": ann["id"], "key": "k"})))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(response.status for response, _ in opened), [200] * 7 + [201])
        self.assertEqual(len({json.loads(content)["id"] for _, content in opened}), 1)

    def test_answers_and_cancelling_race_and_one_wins(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"))
        for _ in range(5):
            search = self.domain.search(ann)
            statuses = []
            threads = [threading.Thread(target=lambda path=path, body=body: statuses.append(
                (path, self.server.request("POST", f"/manhunt/{self.domain.name}/searches/{search['id']}/{path}", json.dumps(body))[0].status)))
                for path, body in [("cancel", {})] * 3 + [("respond", {"answer": "accept"})] * 3]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            won = {path for path, status in statuses if status == 200}
            self.assertEqual({status for _, status in statuses}, {200, 409}, statuses)
            self.assertEqual(won, {"cancel" if self.domain.find(search)["status"] == "canceled" else "respond"}, statuses)

    def test_a_method_that_is_disabled_or_removed_meanwhile_is_left_out(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"), ("phone", "+390622222222", "400ms"), ("phone", "+390633333333", "400ms"))
        search = self.domain.search(ann, wait="300ms")
        self.domain.call("PUT", f"/contacts/{ann['id']}/methods/{ann['methods'][1]['id']}", {"enabled": False})
        self.domain.call("DELETE", f"/contacts/{ann['id']}/methods/{ann['methods'][2]['id']}", expect=204)
        found = self.domain.until(search, "failed")
        self.assertEqual([one["state"] for one in found["attempts"]], ["sent", "skipped", "skipped"])

    def test_the_lists_of_searches(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"))
        searches = []
        for _ in range(4):
            searches.append(self.domain.search(ann))
            time.sleep(0.002)
        ids = [search["id"] for search in reversed(searches)]
        self.domain.call("POST", f"/searches/{ids[0]}/cancel")
        for place in ("", f"/contacts/{ann['id']}"):
            listed = lambda query="": [search["id"] for search in self.domain.call("GET", f"{place}/searches{query}")["searches"]]
            wait_until(lambda: listed("?status=canceled") == ids[:1])
            self.assertEqual(listed(), ids)
            self.assertEqual(listed("?status=active"), ids[1:])
            self.assertEqual(listed("?status=failed"), [])
            self.assertEqual(listed(f"?before={searches[1]['created']}"), ids[3:])
            self.assertEqual(listed(f"?after={searches[1]['created']}"), ids[:2])
            self.assertEqual(listed(f"?status=active&after={searches[1]['created']}"), ids[1:2])
            page = self.domain.call("GET", f"{place}/searches?limit=3")
            self.assertEqual([search["id"] for search in page["searches"]] + listed(f"?limit=3&next={page['next']}"), ids)

    def test_a_page_of_searches_is_not_longer_than_some_megabytes(self):
        ann = self.domain.contact("Ann")
        ids = {self.domain.search(ann, metadata={"summary": "x" * 60_000})["id"] for _ in range(60)}
        for place in ("", f"/contacts/{ann['id']}"):
            wait_until(lambda: len(self.listed(f"{place}/searches?limit=100")[0]) == 60)
            listed, pages = self.listed(f"{place}/searches?limit=100")
            self.assertEqual((len(listed), set(listed)), (60, ids))
            self.assertGreater(pages, 1)

    def listed(self, path):
        """Ids of all pages, and how many pages there were."""
        found, pages, following = [], 0, ""
        while pages == 0 or following:
            page = self.domain.call("GET", path + (f"&next={following}" if following else ""))
            found += [search["id"] for search in page["searches"]]
            pages, following = pages + 1, page.get("next")
        return found, pages

    def test_an_entity_is_not_found_by_anothers_id(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"))
        search = self.domain.search(ann)
        self.domain.call("GET", f"/searches/{ann['id']}", expect=404)
        self.domain.call("GET", f"/contacts/{search['id']}", expect=404)
        self.domain.call("POST", f"/searches/{ann['id']}/cancel", expect=404)
        other = Domain(self.server, "other")
        other.call("GET", f"/searches/{search['id']}", expect=404)
        other.call("GET", f"/contacts/{ann['id']}", expect=404)

    def test_who_is_asked_by_a_policy_or_a_schedule_is_not_removed(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"))
        self.domain.call("PUT", "/schedules/primary", {"rotations": [{"contacts": [ann["id"]], "start": "2026-01-05T09:00:00", "unit": "week"}]})
        self.domain.policy("shop", ("1m", {"contact": ann["id"]}, {"schedule": "primary"}))
        self.assertIn("policy shop, schedule primary", self.domain.call("DELETE", f"/contacts/{ann['id']}", expect=409)["error"])
        self.assertIn("policy shop", self.domain.call("DELETE", "/schedules/primary", expect=409)["error"])
        self.domain.call("DELETE", "/policies/shop", expect=204)
        self.domain.call("DELETE", "/schedules/primary", expect=204)
        self.domain.call("DELETE", f"/contacts/{ann['id']}", expect=204)

    def test_what_a_domain_is_set_to_stays_where_it_is_left_out(self):
        self.domain.call("PUT", "", {"title": "Shop", "language": "it", "require_verification": True})
        self.assertEqual(self.domain.call("PUT", "", {"title": "Store"})["require_verification"], True)
        found = self.domain.call("PUT", "", {"require_verification": False})
        self.assertEqual((found["title"], found["language"], found["require_verification"]), ("Store", "it", False))

    def test_a_secret_can_be_made_anew(self):
        before = self.domain.call("POST", "/secret")
        self.assertEqual(self.domain.call("POST", "/secret"), before)
        after = self.domain.call("POST", "/secret", {"anew": True})
        self.assertEqual(len({before["secret"], after["secret"], before["webhook_secret"], after["webhook_secret"]}), 4)
        status = lambda secret: self.server.request("GET", f"/manhunt/{self.domain.name}", headers={"X-Manhunt-Key": secret})[0].status
        self.assertEqual((status(before["secret"]), status(after["secret"])), (401, 200))

    def test_contacts_are_listed_by_name_and_changed(self):
        for name in ("Cy", "Ann", "Bob"):
            self.domain.contact(name)
        page = self.domain.call("GET", "/contacts?limit=2")
        rest = self.domain.call("GET", f"/contacts?limit=2&next={page['next']}")
        self.assertEqual([contact["name"] for contact in page["contacts"] + rest["contacts"]], ["Ann", "Bob", "Cy"])
        ann = page["contacts"][0]
        method = self.domain.call("POST", f"/contacts/{ann['id']}/methods", {"type": "email", "destination": "ann@example.com"}, 201)
        self.domain.call("PUT", f"/contacts/{ann['id']}", {"name": "Zoe", "language": "it"})
        found = self.domain.call("GET", f"/contacts/{ann['id']}")
        self.assertEqual((found["name"], found["language"], found["methods"]), ("Zoe", "it", [method]))
        self.domain.call("DELETE", f"/contacts/{ann['id']}", expect=204)
        self.domain.call("GET", f"/contacts/{ann['id']}", expect=404)

    def test_what_is_wrong_is_said(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"))
        for path, body, words in (
                ("/contacts", {"name": ""}, "name"), ("/contacts", {"name": "A", "timezone": "Rome"}, "time zone"),
                ("/contacts", {"name": "A", "methods": [{"type": "pigeon", "destination": "x"}]}, "type"),
                ("/contacts", {"name": "A", "methods": [{"type": "phone", "destination": "0611"}]}, "+"),
                ("/contacts", {"name": "A", "methods": [{"type": "email", "destination": "ann"}]}, "ann@example.com"),
                ("/contacts", {"name": "A", "methods": [{"type": "webhook", "destination": "http://169.254.169.254/"}]}, "destination"),
                ("/contacts", {"name": "A", "nickname": "B"}, "nickname"), ("/contacts", {"name": "A", "quiet_hours": {"from": "22:00"}}, "quiet_hours"),
                ("/contacts", {"name": "A", "quiet_hours": {"from": "22:00", "to": "22:00"}}, "never end"),
                ("/contacts", {"name": "A", "methods": [{"type": "phone", "destination": "+390611111111", "order": 10**9}]}, "order"), ("/searches", {}, "contact or policy"),
                ("/searches", {"contact": "c0"}, "no contact"), ("/searches", {"policy": "nothing"}, "no policy"),
                ("/searches", {"contact": ann["id"], "wait": "soon"}, "wait"), ("/searches", {"contact": ann["id"], "repeat": 21}, "repeat"),
                ("/searches", {"contact": ann["id"], "metadata": "x"}, "metadata"), ("/searches", {"contact": ann["id"], "metadata": {"x": "y" * 70_000}}, "metadata"),
                ("/searches", "", ""), ("/dry-run", {"contact": ann["id"], "urgency": "medium"}, "urgency")):
            with self.subTest(path=path, body=str(body)[:80]):
                self.assertIn(words, self.domain.call("POST", path, body, 400)["error"])
        for path, body, words in (("/policies/p", {"steps": []}, "steps"), ("/policies/p", {"steps": [{"wait": "1m", "targets": [{"contact": "c0"}]}]}, "no contact"),
                                  ("/heartbeats/h", {"every": "5m"}, "contact or policy"), ("/schedules/s", {"timezone": 5, "rotations": []}, "timezone"),
                                  ("/maintenance/m", {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "policies": ["shpo"]}, "shpo"), ("/maintenance/m", {"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "from"),
                                  ("/templates/text/en", {"text": "{{#if x}}"}, "text")):
            with self.subTest(path=path, body=body):
                self.assertIn(words, self.domain.call("PUT", path, body, 400)["error"])


class NotNow(Searching):
    def quiet_now(self):
        now = datetime.datetime.now(datetime.timezone.utc)
        return {"from": (now - datetime.timedelta(hours=2)).strftime("%H:%M"), "to": (now + datetime.timedelta(hours=2)).strftime("%H:%M")}

    def test_what_is_not_urgent_waits_for_the_end_of_the_quiet_hours(self):
        now = datetime.datetime.now(datetime.timezone.utc)
        ann = self.domain.contact("Ann", ("phone", "+390611111111"), quiet_hours=self.quiet_now())
        low = self.domain.search(ann, urgency="low")
        high = self.domain.search(ann)
        self.domain.ring(high)
        entry, = self.domain.call("GET", f"/searches/{low['id']}/timeline")["timeline"]
        self.assertEqual(entry["state"], "planned")
        wanted = (now + datetime.timedelta(hours=2)).replace(second=0, microsecond=0)
        self.assertEqual(moment(entry["at"]), wanted.timestamp())
        self.assertEqual(self.attempts(low), [])

    def test_nobody_is_searched_for_during_maintenance(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"))
        self.domain.policy("shop", ("1m", {"contact": ann["id"]}))
        self.domain.call("PUT", "/maintenance/move", {"from": "2026-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z", "policies": ["shop"]})
        search = self.domain.search(policy="shop")
        self.assertEqual((search["status"], search["resolution"]["how"]), ("canceled", "maintenance"))
        self.domain.ring(self.domain.search(ann))  # it is for that policy only
        self.domain.call("DELETE", "/maintenance/move", expect=204)
        self.domain.ring(self.domain.search(policy="shop"))

    def test_what_becomes_urgent_does_not_wait_any_longer(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"), quiet_hours=self.quiet_now())
        search = self.domain.search(ann, key="disk", urgency="low")
        time.sleep(0.3)
        self.assertEqual(self.attempts(search), [])
        self.assertEqual(self.domain.search(ann, key="disk", expect=200)["id"], search["id"])
        self.domain.ring(search)
        self.assertEqual(self.domain.find(search)["urgency"], "high")

    def test_what_becomes_urgent_does_not_end_any_later(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"), quiet_hours=self.quiet_now())
        search = self.domain.search(ann, key="disk", urgency="low", wait="300ms")
        self.domain.search(ann, key="disk", expect=200)
        found = self.domain.until(search, "failed")
        self.assertEqual([attempt["state"] for attempt in found["attempts"]], ["sent"])

    def test_one_that_waits_for_its_bundle_has_not_been_asked_yet(self):
        ann = self.domain.contact("Ann")
        self.domain.call("POST", f"/contacts/{ann['id']}/methods", {"type": "text", "destination": "+390611111111", "limit": {"count": 1, "per": "3s"}}, 201)
        time.sleep(3 - time.time() % 3 + 0.05)
        self.domain.search(ann)
        search = self.domain.search(ann, wait="300ms")
        found = self.domain.until(search, "failed")
        attempt, = found["attempts"]
        self.assertEqual((attempt["state"], found["resolution"]["how"]), ("sent", "exhausted"))
        self.assertGreaterEqual(round(moment(found["ended"]) - moment(attempt["tries"][0]["at"]), 3), 0.3)

    def test_a_bundle_is_answered_though_the_first_of_it_is_settled(self):
        ann = self.domain.contact("Ann")
        self.domain.call("POST", f"/contacts/{ann['id']}/methods", {"type": "text", "destination": "+390611111111", "limit": {"count": 1, "per": "3s"}}, 201)
        time.sleep(3 - time.time() % 3 + 0.05)
        self.domain.ring(self.domain.search(ann))
        others = [self.domain.search(ann, metadata={"summary": str(number)}) for number in range(3)]
        for search in others:
            wait_until(lambda: self.attempts(search) and self.attempts(search)[0]["state"] == "sent")
        self.domain.call("POST", f"/searches/{others[0]['id']}/cancel")
        self.domain.call("POST", f"/searches/{others[0]['id']}/respond", {"answer": "accept", "attempt": self.attempts(others[0])[0]["id"]})
        self.assertEqual([self.domain.find(search)["status"] for search in others], ["canceled", "successful", "successful"])

    def test_too_many_come_as_one_message_and_one_answer_is_for_all(self):
        ann = self.domain.contact("Ann")
        method = self.domain.call("POST", f"/contacts/{ann['id']}/methods", {"type": "text", "destination": "+390611111111", "limit": {"count": 1, "per": "3s"}}, 201)
        self.assertEqual(method["limit"], {"count": 1, "per": "3s"})
        time.sleep(3 - time.time() % 3 + 0.05)  # all within one period
        first = self.domain.search(ann, metadata={"summary": "one"})
        self.domain.ring(first)
        others = [self.domain.search(ann, metadata={"summary": summary}) for summary in ("two", "three")]
        wait_until(lambda: all(self.attempts(search) and self.attempts(search)[0]["state"] == "bundled" for search in others))
        wait_until(lambda: all(self.attempts(search)[0]["state"] == "sent" for search in others))
        two, three = (self.attempts(search)[0] for search in others)
        self.assertEqual(two["bundle"], three["bundle"])
        self.assertEqual(two["text"], three["text"])
        self.assertIn("two", two["text"])
        self.assertIn("three", two["text"])
        phone = next(phone for phone in self.domain.phones() if phone["search"] in (others[0]["id"], others[1]["id"]))
        self.domain.press(phone, "1")
        for search in others:
            self.domain.until(search, "successful")
        self.assertEqual(self.domain.find(first)["status"], "active")

    def test_a_heartbeat_that_is_missed_searches_and_the_next_beat_ends_it(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"))
        self.domain.policy("shop", ("1h", {"contact": ann["id"]}))
        self.domain.call("PUT", "/heartbeats/backup", {"every": "1s", "policy": "shop"})
        for _ in range(4):
            time.sleep(0.4)
            self.domain.call("POST", "/heartbeats/backup/beat", expect=204)
        # The list by status follows a moment later.
        active = lambda: [search for search in self.domain.call("GET", "/searches?status=active")["searches"] if search["status"] == "active"]
        self.assertEqual(active(), [])
        wait_until(active)
        search, = active()
        self.assertIn("backup has not been heard of for 1s", self.domain.ring(search)[0]["text"])
        self.domain.call("POST", "/heartbeats/backup/beat", expect=204)
        self.assertEqual(self.domain.find(search)["resolution"]["how"], "resolved")
        self.assertFalse(self.domain.call("GET", "/heartbeats/backup")["late"])
        wait_until(active)  # and it is missed again
        self.assertEqual([(one["name"], one["late"]) for one in self.domain.call("GET", "/heartbeats")["heartbeats"]], [("backup", True)])
        # Whoever it searches for from now on: it was heard of.
        self.domain.call("PUT", "/heartbeats/backup", {"every": "1s", "contact": ann["id"]})
        self.assertEqual(active(), [])
        wait_until(active)
        self.domain.call("DELETE", "/heartbeats/backup", expect=204)
        self.assertEqual(active(), [])
        self.domain.call("POST", "/heartbeats/backup/beat", expect=404)


    def test_a_heartbeat_that_is_missed_during_maintenance_is_not_forgotten(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"))
        self.domain.call("PUT", "/maintenance/move", {"from": "2026-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"})
        self.domain.call("PUT", "/heartbeats/backup", {"every": "1s", "contact": ann["id"]})
        wait_until(lambda: self.domain.call("GET", "/searches?status=canceled")["searches"])
        self.domain.call("DELETE", "/maintenance/move", expect=204)
        wait_until(lambda: self.domain.call("GET", "/searches?status=active")["searches"])
        self.assertTrue(self.domain.call("GET", "/heartbeats/backup")["late"])


class WhatIsSaid(Searching):
    def test_a_dry_run_says_what_a_search_says(self):
        ann = self.domain.contact("Ann", ("phone", "+390611111111"), ("text", "+390622222222"), ("email", "ann@example.com"), language="it")
        self.domain.call("PUT", "/templates/text/it", {"text": "{{contact.name}}: {{summary}} su {{host}}"})
        request = {"contact": ann["id"], "metadata": {"summary": "Disco pieno"}}
        planned = self.domain.call("POST", "/dry-run", request)
        self.assertEqual([entry["missing"] for entry in planned["timeline"]], [[], ["host"], []])
        self.assertIn("Ann: Disco pieno su [host]", planned["timeline"][1]["text"])
        self.assertEqual(self.domain.call("GET", "/searches")["searches"], [])
        search = self.domain.search(ann, metadata=request["metadata"])
        wait_until(lambda: [one["state"] for one in self.attempts(search)] == ["sent"] * 3)
        anonymous = lambda text: re.sub(r"https?://\S+", "LINK", re.sub(r"\b[A-Z0-9]{4}\b", "CODE", text))
        for entry, attempt in zip(planned["timeline"], self.attempts(search)):
            self.assertEqual(anonymous(entry["text"]), anonymous(attempt["text"]), entry["type"])
        self.assertEqual([entry["state"] for entry in self.domain.call("GET", f"/searches/{search['id']}/timeline")["timeline"]], ["sent"] * 3)

    def test_it_is_drawn(self):
        ann = self.domain.contact('Ann <script>alert("x")</script>', ("phone", "+390611111111"), ("text", "+390622222222", "1m"))
        search = self.domain.search(ann, wait="10m")
        self.domain.ring(search)
        text = self.domain.call("GET", f"/searches/{search['id']}/timeline?draw=text")
        for words in ("sent", "planned", "+1m", "fails, if nobody answers"):
            self.assertIn(words, text)
        response, svg = self.server.request("GET", f"/manhunt/{self.domain.name}/searches/{search['id']}/timeline?draw=svg")
        self.assertEqual(response.getheader("Content-Type"), "image/svg+xml")
        root = xml.etree.ElementTree.fromstring(svg)
        self.assertFalse([each for each in root.iter() if each.tag.endswith("script")])

    def test_a_method_is_verified_by_its_code(self):
        self.domain.call("PUT", "", {"title": "Shop", "require_verification": True})
        address = f"ann@{self.domain.name}.example"
        ann = self.domain.contact("Ann", ("email", address))
        self.assertEqual(self.domain.until(self.domain.search(ann, wait="100ms"), "failed")["resolution"]["how"], "nobody")
        path = f"/contacts/{ann['id']}/methods/{ann['methods'][0]['id']}"
        self.assertEqual(self.domain.call("POST", path + "/verification", expect=202)["outcome"], "sent")
        self.domain.call("POST", path + "/verification", expect=429)
        wait_until(lambda: self.emails(address))
        code = re.search(r"\b(\d{6})\b", self.emails(address)[0]["Content"]["Body"])[1]
        wrong = f"{(int(code) + 1) % 1000000:06}"
        self.domain.call("POST", path + "/verification/confirm", {"code": wrong}, 400)
        self.domain.call("POST", path + "/verification/confirm", {"code": code})
        self.assertTrue(self.domain.call("GET", f"/contacts/{ann['id']}")["methods"][0]["verified"])
        search = self.domain.search(ann)
        wait_until(lambda: self.attempts(search) and self.attempts(search)[0]["state"] == "sent")
        # Another destination is to be verified anew.
        self.assertFalse(self.domain.call("PUT", path, {"destination": "bob@example.com"})["verified"])

    def test_codes_cannot_be_tried_out(self):
        ann = self.domain.contact("Ann", ("email", "ann@codes.example"))
        path = f"/contacts/{ann['id']}/methods/{ann['methods'][0]['id']}"
        self.domain.call("POST", path + "/verification", expect=202)
        wait_until(lambda: self.emails("ann@codes.example"))
        code = re.search(r"\b(\d{6})\b", self.emails("ann@codes.example")[0]["Content"]["Body"])[1]
        for guess in range(5):
            self.domain.call("POST", path + "/verification/confirm", {"code": f"{(int(code) + 1 + guess) % 1000000:06}"}, 400)
        status = self.server.request("POST", f"/manhunt/{self.domain.name}{path}/verification/confirm", json.dumps({"code": code}))[0].status
        self.assertGreaterEqual(status, 400, "the right one comes too late")

    def test_a_phone_is_verified_without_a_provider(self):
        ann = self.domain.contact("Ann", ("text", "+390611111111"))
        path = f"/contacts/{ann['id']}/methods/{ann['methods'][0]['id']}"
        said = self.domain.call("POST", path + "/verification", expect=202)
        self.domain.call("POST", path + "/verification/confirm", {"code": re.search(r"\b(\d{6})\b", said["detail"])[1]})

    def test_whatever_the_summary_is_the_email_comes(self):
        for number, summary in enumerate(("Disk full\non db1\r\nBcc: eve@example.com", "ü" * 299 + "€" * 300, "\x00\x1b[31mred")):
            with self.subTest(summary=summary[:20]):
                address = f"ann{number}@{self.domain.name}.example"
                search = self.domain.search(self.domain.contact("Ann", ("email", address)), metadata={"summary": summary})
                wait_until(lambda: self.attempts(search) and self.attempts(search)[0]["state"] != "sending")
                self.assertEqual(self.attempts(search)[0]["state"], "sent", self.attempts(search))
                wait_until(lambda: self.emails(address))
                self.assertEqual(self.emails(address)[0]["To"][0]["Mailbox"], f"ann{number}")
                self.assertNotIn("Bcc", self.emails(address)[0]["Content"]["Headers"])

    def test_webhooks_are_signed_by_the_domains_secret_and_answered_by_their_link(self):
        hook = self.enterContext(Hook())
        secret = self.domain.call("POST", "/secret")["webhook_secret"]
        search = self.domain.search(self.domain.contact("Ann", ("webhook", hook.url)), metadata={"summary": "Disk full", "host": "db1"})
        wait_until(lambda: hook.calls)
        headers, body = hook.calls[0]
        key = base64.b64decode(secret.removeprefix("whsec_"))
        text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        self.assertIn("v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode(), headers["webhook-signature"].split())
        content = json.loads(body)
        self.assertEqual((content["search"], content["metadata"]["host"]), (search["id"], "db1"))
        path = urllib.parse.urlparse(content["link"]).path
        self.assertEqual(self.server.request("POST", path, "answer=accept")[0].status, 200)
        self.assertEqual(self.domain.find(search)["resolution"]["how"], "link")


class Links(Searching):
    def link(self, address):
        """A search, and the path of the link in its email."""
        search = self.domain.search(self.domain.contact("Ann <b>", ("email", address)), metadata={"summary": "Disk <script> full"})
        wait_until(lambda: self.emails(address))
        body = self.emails(address)[0]["Content"]["Body"]
        return search, urllib.parse.urlparse(re.search(r"http://\S+/manhunt/r/\S+", body)[0]).path

    def test_opening_answers_nothing_and_the_button_answers_once(self):
        search, path = self.link(f"ann@{self.domain.name}.example")
        for method in ("GET", "HEAD", "GET"):
            response, page = self.server.request(method, path)
            self.assertEqual(response.status, 200, (method, page))
        self.assertNotIn(b"<script>", page)
        self.assertIn(b'method="post"', page)
        self.assertIn("default-src 'none'", response.getheader("Content-Security-Policy"))
        self.assertEqual(response.getheader("Referrer-Policy"), "same-origin")
        self.assertEqual(response.getheader("Cache-Control"), "no-store")
        self.assertEqual(self.domain.find(search)["status"], "active")
        self.assertEqual(self.server.request("POST", path, "answer=accept", {"Content-Type": "application/x-www-form-urlencoded"})[0].status, 200)
        self.assertEqual(self.domain.find(search)["resolution"]["how"], "link")
        for answer in ("accept", "decline"):
            self.assertEqual(self.server.request("POST", path, f"answer={answer}")[0].status, 409, "it is good once")
        response, page = self.server.request("GET", path)
        self.assertNotIn(b"<form", page)

    def test_declining_is_single_use_as_well(self):
        address = f"ann@{self.domain.name}.example"
        ann = self.domain.contact("Ann", ("email", address))
        bob = self.domain.contact("Bob", ("phone", "+390611111111"))
        self.domain.policy("shop", ("1h", {"contact": ann["id"]}, {"contact": bob["id"]}))
        search = self.domain.search(policy="shop")
        wait_until(lambda: self.emails(address))
        path = urllib.parse.urlparse(re.search(r"http://\S+/manhunt/r/\S+", self.emails(address)[0]["Content"]["Body"])[0]).path
        self.assertEqual(self.server.request("POST", path, "answer=decline")[0].status, 200)
        self.assertEqual(self.server.request("POST", path, "answer=accept")[0].status, 409)
        self.assertEqual(self.domain.find(search)["status"], "active")

    def test_links_expire(self):
        with ManhuntServer("--manhunt-link-ttl", "1s") as server:
            domain = Domain(server)
            search = domain.search(domain.contact("Ann", ("text", "+390611111111")))
            text = domain.ring(search)[0]["text"]
            path = text[text.index("/manhunt/r/"):].split()[0]
            time.sleep(1.1)
            for method, body in (("GET", None), ("POST", "answer=accept")):
                response, page = server.request(method, path, body)
                self.assertEqual(response.status, 404)
                self.assertIn(b"Its time is over", page)
            self.assertEqual(domain.find(search)["status"], "active")

    def test_no_other_link_is_good(self):
        search, path = self.link(f"ann@{self.domain.name}.example")
        token = path.rsplit("/", 1)[1]
        identifier, attempt, expires, signature = token.split("~")
        other = self.domain.search(self.domain.contact("Bob", ("phone", "+390611111111")))
        self.domain.ring(other)
        swapped = ("A" if signature[0] != "A" else "B") + signature[1:]
        for wrong in ("x", token[:-1], token + "A", "~~~", f"{identifier}~{attempt}~{expires}~{swapped}", f"{identifier}~a01.01.01.02~{expires}~{signature}",
                      f"{identifier}~{attempt}~{int(expires, 16) + 3600:x}~{signature}", f"{other['id']}~{attempt}~{expires}~{signature}", f"{identifier}~{attempt}~{expires}~"):
            for method, body in (("GET", None), ("POST", "answer=accept")):
                with self.subTest(method=method, token=wrong):
                    self.assertEqual(self.server.request(method, f"/manhunt/r/{wrong}", body)[0].status, 404)
        for body in ("", "answer=", "answer=perhaps", "x" * 5000, None):
            self.assertIn(self.server.request("POST", path, body)[0].status, (400, 413), body)
        self.assertEqual({self.domain.find(one)["status"] for one in (search, other)}, {"active"})
        self.assertGreaterEqual(len(base64.urlsafe_b64decode(signature + "==")), 16, "too short to be guessed")


if __name__ == "__main__":
    unittest.main(verbosity=2)

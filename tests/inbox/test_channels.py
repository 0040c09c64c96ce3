"""What leaves the inbox: by email through the outbox into our own mail, and to a webhook; what users want; digests; schemas."""

import base64
import hashlib
import hmac
import json
import time
import unittest

from inbox_server import Bell, InboxServer, publish, wait_until
from hook import Hook


class Elsewhere(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(InboxServer("--systems", "mail,outbox,inbox", "--outbound-allow", "127.0.0.1"))

    tenants = 0

    def setUp(self):
        Elsewhere.tenants += 1
        self.tenant = f"tenant{Elsewhere.tenants}"
        self.place = f"{self.tenant}/bell"
        self.ann = Bell(self.server, "ann", self.tenant)
        self.bob = Bell(self.server, "bob", self.tenant)

    def publish(self, to, title, **more):
        return publish(self.server, to, title, place=self.place, **more)

    def put(self, path, expect=200, **body):
        return self.server.call("PUT", f"/inbox/{path}", body, expect)


class Preferences(Elsewhere):
    def test_the_bell_is_switched_off_by_category(self):
        self.ann.call("PUT", "preferences", {"news": {"bell": False}})
        self.publish("ann", "one", category="news")
        self.publish(["ann", "bob"], "two", category="news")
        self.publish("everyone", "three", category="news")
        self.publish("ann", "four", category="orders")
        self.assertEqual(self.ann.titles(), ["four"])
        self.assertEqual(self.ann.unread(), 1)
        self.assertEqual(self.bob.titles(), ["three", "two"])
        self.publish([f"user{number}" for number in range(40)] + ["ann"], "many", category="news", expect=202)
        wait_until(lambda: Bell(self.server, "user7", self.tenant).titles() == ["many", "three"], 20)
        self.assertEqual(self.ann.titles(), ["four"])
        # What was sent meanwhile stays away; what comes from now on does not.
        self.ann.call("PUT", "preferences", {"news": {"bell": None}})
        self.publish("everyone", "five", category="news")
        self.publish("ann", "six", category="news")
        self.assertEqual(self.ann.titles(), ["six", "five", "four"])
        self.assertEqual(self.ann.unread(), 3)

    def test_all_categories_but_one(self):
        answer = self.ann.call("PUT", "preferences", {"*": {"bell": False}, "orders": {"bell": True}})
        self.assertEqual(answer["preferences"], {"*": {"bell": False}, "orders": {"bell": True}})
        self.assertEqual(answer["effective"]["orders"], {"bell": True, "email": False, "webhook": False})
        for to in ("ann", "everyone"):
            for category in ({}, {"category": "news"}, {"category": "orders"}):
                self.publish(to, f"{to} {category.get('category')}", **category)
        self.assertEqual(self.ann.titles(), ["everyone orders", "ann orders"])
        self.assertEqual(self.ann.counts()["all"]["unread"], 2)

    def test_the_tenants_defaults_are_for_who_says_nothing(self):
        self.put(self.tenant, preferences={"news": {"bell": False}, "orders": {"bell": False}})
        self.put(self.place, preferences={"orders": {"bell": True}})
        self.ann.call("PUT", "preferences", {"news": {"bell": True}})
        for to in ("ann", "bob", "everyone"):
            for category in ("news", "orders"):
                self.publish(to, f"{to} {category}", category=category)
        self.assertEqual(self.ann.titles(), ["everyone orders", "everyone news", "ann orders", "ann news"])
        self.assertEqual(self.bob.titles(), ["everyone orders", "bob orders"])

    def test_bad_preferences_are_told_why(self):
        for body in ([], {"news": True}, {"news": {"pigeon": True}}, {"news": {"bell": "yes"}}, {"a#b": {"bell": True}}):
            self.ann.call("PUT", "preferences", body, expect=400)
        self.assertEqual(self.ann.call("GET", "preferences")["preferences"], {})


class Schema(Elsewhere):
    def test_messages_are_as_the_schema_has_them(self):
        self.put(self.place, schema={"required": ["order"], "properties": {"order": {"type": "integer"}}})
        self.assertIn("order: is missing", self.publish("ann", "one", expect=400)["error"])
        self.assertIn("order: expected integer", self.publish("ann", "one", message={"order": "1"}, expect=400)["error"])
        self.publish("ann", "one", message={"order": 1})
        self.assertEqual(self.ann.titles(), ["one"])
        self.assertIn("requird is not known", self.put(self.place, schema={"requird": []}, expect=400)["error"])


class Digests(Elsewhere):
    def test_messages_of_a_category_come_as_one(self):
        self.put(self.place, digests={"likes": {"every": "6s", "title": "{count} new likes"}})
        self.ann.counts()
        ids = [self.publish("ann", f"like {number}", category="likes", expect=202, message={"cta_uri": f"/posts/{number}"})["id"] for number in range(5)]
        self.publish("bob", "alone", category="likes", expect=202, message={"body": "text"})
        self.publish("ann", "order", category="orders")
        wait_until(lambda: sum(message["message"].get("digest", {}).get("count", 0) for message in self.ann.feed()["messages"]) == 5, 20)
        digests = [message["message"] for message in self.ann.feed()["messages"] if "digest" in message["message"]]
        self.assertLessEqual(len(digests), 2)  # the end of a window may have come between them
        self.assertEqual({item["id"] for digest in digests for item in digest["digest"]["items"]}, set(ids))
        for digest in digests:
            count = digest["digest"]["count"]
            self.assertEqual(digest["title"], f"{count} new likes" if count > 1 else digest["digest"]["items"][0]["title"])
        self.assertEqual(self.ann.unread(), 1 + len(digests))
        wait_until(lambda: self.bob.titles() == ["alone"], 20)
        self.assertEqual(self.bob.feed()["messages"][0]["message"]["body"], "text")

    def test_what_is_redacted_is_in_no_digest(self):
        self.put(self.place, digests={"likes": "8s"})
        time.sleep(8 - time.time() % 8 + 0.1)  # a window begins
        kept, early, late = [self.publish("ann", title, category="likes", expect=202)["id"] for title in ("kept", "early", "late")]
        wait_until(lambda: all(self.server.call("GET", f"/inbox/{self.place}/posts/{post}")["state"] == "done" for post in (kept, early, late)), 6)
        self.server.call("DELETE", f"/inbox/{self.place}/messages/redact", {"ids": [early]})
        wait_until(lambda: len(self.ann.titles()) == 1, 20)
        self.assertEqual([item["id"] for item in self.ann.feed()["messages"][0]["message"]["digest"]["items"]], [late, kept])
        self.server.call("DELETE", f"/inbox/{self.place}/messages/redact", {"ids": [late]})
        wait_until(lambda: self.ann.titles() == ["kept"], 20)
        self.server.call("DELETE", f"/inbox/{self.place}/messages/redact", {"ids": [kept]})
        wait_until(lambda: self.ann.titles() == [], 20)
        self.assertEqual(self.ann.unread(), 0)


class Email(Elsewhere):
    def setUp(self):
        super().setUp()
        self.put(f"{self.tenant}/users/ann", email=f"ann@{self.tenant}.example", name="Ann")
        self.put(f"{self.tenant}/users/bob", email=f"bob@{self.tenant}.example")

    def subjects(self, user):
        return [message["Content"]["Headers"]["Subject"][0] for message in self.server.messages(limit=250)["items"]
                if any(to["Mailbox"] == user and to["Domain"] == f"{self.tenant}.example" for to in message["To"])]

    def test_who_wants_it_gets_it_by_email(self):
        self.put(self.place, email={"from": "Shop <bell@shop.example>", "link_base": "https://shop.example"}, preferences={"orders": {"email": True}})
        self.bob.call("PUT", "preferences", {"orders": {"email": False, "bell": False}, "news": {"email": True}})
        self.publish(["ann", "bob", "nobody"], "Shipped", category="orders", message={"body": "It comes tomorrow.", "cta_uri": "/orders/1"})
        self.publish(["ann", "bob"], "News", category="news")
        self.publish("ann", "By name", channels=["email"])
        wait_until(lambda: sorted(self.subjects("ann")) == ["By name", "Shipped"] and self.subjects("bob") == ["News"], 20)
        body = next(message["Content"]["Body"] for message in self.server.messages(limit=250)["items"] if message["Content"]["Headers"]["Subject"] == ["Shipped"] and message["To"][0]["Domain"] == f"{self.tenant}.example")
        self.assertIn("It comes tomorrow.", body)
        self.assertIn("https://shop.example/orders/1", body)
        self.assertEqual(self.bob.titles(), ["News"])

    def test_what_was_read_in_time_is_not_sent(self):
        self.put(self.place, email={"from": "bell@shop.example", "after": "3s"}, preferences={"*": {"email": True}})
        read = self.publish("ann", "read")["id"]
        redacted = self.publish("ann", "redacted")["id"]
        self.publish("ann", "left")
        self.ann.put("read", ids=[read])
        self.server.call("DELETE", f"/inbox/{self.place}/messages/redact", {"ids": [redacted]})
        wait_until(lambda: self.subjects("ann") == ["left"], 20)
        time.sleep(1)
        self.assertEqual(self.subjects("ann"), ["left"])

    def test_what_is_redacted_for_a_user_goes_nowhere(self):
        self.put(self.place, email={"from": "bell@shop.example", "after": "3s"}, preferences={"*": {"email": True}})
        self.bob.call("PUT", "preferences", {"*": {"bell": False}})
        post = self.publish(["ann", "bob"], "for ann alone")["id"]
        self.server.call("DELETE", f"/inbox/{self.place}/messages/redact", {"ids": [post], "uids": ["bob"]})
        wait_until(lambda: self.subjects("ann") == ["for ann alone"], 20)
        time.sleep(1)
        self.assertEqual(self.subjects("bob"), [])

    def test_a_title_of_several_lines_is_one_subject(self):
        self.put(self.place, email={"from": "bell@shop.example"})
        self.publish("ann", "two\r\nBcc: eve@evil.example", channels=["email"])
        wait_until(lambda: self.subjects("ann"), 20)
        self.assertNotIn("\n", self.subjects("ann")[0])

    def test_a_digest_goes_by_email_as_one(self):
        self.put(self.place, email={"from": "bell@shop.example"}, preferences={"likes": {"email": True}}, digests={"likes": "8s"})
        time.sleep(8 - time.time() % 8 + 0.1)
        for number in range(3):
            self.publish("ann", f"like {number}", category="likes", expect=202)
        wait_until(lambda: self.subjects("ann") == ["3 new: likes"], 20)

    def test_settings_that_cannot_be(self):
        for body in ({"email": {}}, {"email": {"from": "a@b", "after": "soon"}}, {"email": {"from": "a@b", "form": 1}}, {"webhook": {"url": "http://169.254.169.254/"}},
                     {"webhook": {"url": "file:///etc/passwd"}}, {"digests": {"likes": "0s"}}, {"digests": {"*": "1h"}}):
            self.put(self.place, expect=400, **body)
        self.assertIn("no settings for email", self.publish("ann", "x", channels=["email"], expect=400)["error"])
        self.put(self.place, email={"from": "a@shop.example"}, digests={"likes": "1h"})
        self.assertIn("come as digests", self.publish("ann", "x", category="likes", channels=["email"], expect=400)["error"])
        self.assertIn("expected email or webhook", self.publish("ann", "x", channels=["pigeon"], expect=400)["error"])
        for email in ("ann", "a b@c", "a@b\r\nBcc: c@d"):
            self.put(f"{self.tenant}/users/eve", email=email, expect=400)
        self.server.call("GET", f"/inbox/{self.tenant}/users/eve", expect=404)


class Webhook(Elsewhere):
    def test_it_is_called_signed_until_it_takes_it(self):
        with Hook() as hook:
            hook.answers = [500, 302]
            self.put(self.place, webhook={"url": hook.url}, preferences={"*": {"webhook": True}})
            secret = base64.b64decode(self.server.call("POST", f"/inbox/{self.tenant}/secret")["webhook_secret"].removeprefix("whsec_"))
            post = self.publish("ann", "one", category="orders", message={"order": 1})["id"]
            wait_until(lambda: len(hook.calls) >= 3, 30)
            headers, body = hook.calls[-1]
            signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
            expected = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
            self.assertIn(f"v1,{expected}", headers["webhook-signature"].split(" "))
            self.assertEqual(headers["webhook-id"], f"{post}-ann")
            said = json.loads(body)
            self.assertEqual((said["id"], said["user"], said["category"], said["message"]), (post, "ann", "orders", {"title": "one", "order": 1}))
            hook.calls.clear()
            self.publish("everyone", "all")
            wait_until(lambda: hook.calls, 20)
            self.assertTrue(json.loads(hook.calls[0][1])["public"])


if __name__ == "__main__":
    unittest.main(verbosity=2)

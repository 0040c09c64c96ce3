"""The inbox over HTTP, as a product and its users have it."""

import base64
import hashlib
import hmac
import json
import subprocess
import time
import unittest

import boto3.dynamodb.types

from inbox_server import BINARY, ON, Bell, InboxServer, publish, wait_until


class Inbox(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(InboxServer())

    tenants = 0

    def setUp(self):
        # A tenant for each test.
        Inbox.tenants += 1
        self.tenant = f"tenant{Inbox.tenants}"
        self.place = f"{self.tenant}/bell"
        self.ann, self.bob = self.bell("ann"), self.bell("bob")

    def bell(self, user, **more):
        return Bell(self.server, user, self.tenant, **more)

    def publish(self, to, title, **more):
        return publish(self.server, to, title, place=self.place, **more)

    def redact(self, expect=200, **body):
        response, content = self.server.request("DELETE", f"/inbox/{self.place}/messages/redact", json.dumps(body))
        self.assertEqual(response.status, expect, content)


class Feed(Inbox):
    def test_messages_and_broadcasts_are_one_feed(self):
        self.assertEqual(self.ann.feed()["messages"], [])
        self.publish("ann", "one", category="orders", message={"body": {"lines": [1, 2.5, "x", None, True]}, "cta_uri": "/orders/1"}, sender="shop", host_system_id="h1")
        self.publish("everyone", "two")
        self.publish(["ann", "bob"], "three", category="news")
        self.assertEqual(self.ann.titles(), ["three", "two", "one"])
        self.assertEqual(self.bob.titles(), ["three", "two"])
        message = self.ann.feed()["messages"][2]
        self.assertEqual(message["message"], {"title": "one", "body": {"lines": [1, 2.5, "x", None, True]}, "cta_uri": "/orders/1"})
        self.assertEqual((message["sender"], message["host_system_id"], message["category"], message["public"], message["read"]), ("shop", "h1", "orders", False, False))

    def test_pages_go_on_where_the_last_ended(self):
        for number in range(25):
            self.publish("ann" if number % 3 else "everyone", str(number))
        self.ann.unread()
        titles, more = [], {}
        while True:
            page = self.ann.feed(limit=4, **more)
            titles += [message["message"]["title"] for message in page["messages"]]
            if "next" not in page:
                break
            more = {"next": page["next"]}
        self.assertEqual(titles, [str(number) for number in range(24, -1, -1)])
        self.assertEqual(len(self.ann.call("GET", "messages/last/7")["messages"]), 7)

    def test_who_is_new_has_read_the_broadcasts_so_far(self):
        self.publish("everyone", "old")
        self.assertEqual(self.ann.counts()["all"], {"total": 1, "unread": 0, "unseen": 0, "archived": 0, "snoozed": 0})
        self.assertEqual(self.ann.titles(), ["old"])
        self.publish("everyone", "new")
        self.assertEqual(self.ann.unread(), 1)


class Changes(Inbox):
    def setUp(self):
        super().setUp()
        self.ann.counts()
        self.first = self.publish("ann", "first", category="orders")["id"]
        self.second = self.publish("everyone", "second", category="news")["id"]
        self.third = self.publish("ann", "third", category="orders")["id"]

    def states(self):
        counts = self.ann.counts()
        return counts["all"]["unread"], {name: one["unread"] for name, one in counts["categories"].items()}

    def test_read_and_unread_again(self):
        self.assertEqual(self.states(), (3, {"orders": 2, "news": 1}))
        self.assertEqual(self.ann.put("read", ids=[self.first, self.second])["ids"], sorted([self.first, self.second]))
        self.assertEqual(self.states(), (1, {"orders": 1, "news": 0}))
        self.ann.put("read", ids=[self.first])
        self.assertEqual(self.states(), (1, {"orders": 1, "news": 0}))
        self.ann.put("unread", ids=[self.second])
        self.assertEqual(self.states(), (2, {"orders": 1, "news": 1}))
        self.assertEqual(self.ann.titles(show="unread"), ["third", "second"])
        self.assertEqual(self.ann.titles(show="read"), ["first"])

    def test_mark_all_is_for_what_is_there(self):
        self.ann.put("read", all=True)
        self.assertEqual(self.states(), (0, {"orders": 0, "news": 0}))
        self.ann.put("unread", ids=[self.first])
        self.publish("everyone", "fourth", category="news")
        self.assertEqual(self.states(), (2, {"orders": 1, "news": 1}))
        self.ann.put("read", all=True, category="news")
        self.assertEqual(self.states(), (1, {"orders": 1, "news": 0}))

    def test_mark_all_up_to_a_time(self):
        time.sleep(0.01)
        until = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{int(time.time() * 1000) % 1000:03}Z"
        time.sleep(0.01)
        self.publish("ann", "later")
        self.ann.put("read", until=until)
        self.assertEqual(self.ann.titles(show="unread"), ["later"])
        self.assertEqual(self.ann.unread(), 1)

    def test_seen_is_not_read(self):
        self.ann.put("seen")
        counts = self.ann.counts()["all"]
        self.assertEqual((counts["unread"], counts["unseen"]), (3, 0))
        self.publish("everyone", "fourth")
        counts = self.ann.counts()["all"]
        self.assertEqual((counts["unread"], counts["unseen"]), (4, 1))

    def test_archive_and_back(self):
        self.ann.put("archive", ids=[self.first, self.second])
        self.assertEqual(self.ann.titles(), ["third"])
        self.assertEqual(self.ann.titles(show="archived"), ["second", "first"])
        self.assertEqual(self.ann.counts()["all"], {"total": 1, "unread": 1, "unseen": 1, "archived": 2, "snoozed": 0})
        self.ann.put("unarchive", ids=[self.second])
        self.assertEqual(self.ann.titles(), ["third", "second"])

    def test_what_is_snoozed_comes_back_unread(self):
        self.ann.put("read", ids=[self.first])
        self.ann.put("snooze", ids=[self.first, self.third], **{"for": "300ms"})
        self.assertEqual(self.ann.titles(), ["second"])
        wait_until(lambda: len(self.ann.titles()) == 3)
        self.assertEqual(self.ann.unread(), 3)
        self.ann.put("snooze", ids=[self.third], **{"for": "1h"})
        self.ann.put("unsnooze", ids=[self.third])
        self.assertEqual(len(self.ann.titles()), 3)

    def test_what_is_redacted_is_gone(self):
        self.redact(ids=[self.first])
        self.assertEqual(self.ann.titles(), ["third", "second"])
        self.redact(ids=[self.second], uids=["ann"])
        self.assertEqual(self.ann.titles(), ["third"])
        self.assertEqual(self.bob.titles(), ["second"])
        self.redact(ids=[self.second])
        self.assertEqual(self.bob.titles(), [])
        self.assertEqual(self.states(), (1, {"orders": 1}))
        self.redact(404, ids=[self.first[:-1] + "_"[:0] + ("a" if self.first[-1] != "a" else "b")])
        row = self.server.tables().get_item(TableName="tabella-inbox", Key={"pk": {"S": f"t#{self.tenant}U#ann#bell"}, "sk": {"S": f"m#{self.first}"}})["Item"]
        self.assertNotIn("message", row)

    def test_expired_is_expired_at_its_second(self):
        self.publish("ann", "short", ttl="1s")
        self.publish("everyone", "short too", ttl="1s")
        self.assertEqual(self.ann.unread(), 5)
        wait_until(lambda: self.ann.unread() == 3, 5)
        self.assertEqual(len(self.ann.titles()), 3)


class Publishing(Inbox):
    def test_a_key_is_one_message(self):
        first = self.publish("ann", "once", key="k1")
        again = self.publish("ann", "once", key="k1", expect=200)
        self.assertEqual(first["id"], again["id"])
        self.publish("ann", "something else", key="k1", expect=409)
        self.assertEqual(self.ann.titles(), ["once"])
        self.redact(key="k1")
        self.assertEqual(self.ann.titles(), [])

    def test_a_group_goes_together(self):
        self.publish("ann", "a", group="order-1")
        self.publish("bob", "b", group="order-1")
        self.publish("ann", "c")
        self.redact(group="order-1")
        self.assertEqual((self.ann.titles(), self.bob.titles()), (["c"], []))

    def test_a_group_is_taken_from_one_user_page_by_page(self):
        for number in range(23):
            self.publish(["ann", "bob"], str(number), group="order-1")
        self.publish("ann", "later", group="order-1", deliver_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86400)), expect=202)
        users = [f"other{number}" for number in range(49)] + ["ann"]
        redacted, more = 0, {}
        while True:
            response, content = self.server.request("DELETE", f"/inbox/{self.place}/messages/redact", json.dumps({"group": "order-1", "uids": users, **more}))
            answer = json.loads(content)
            self.assertEqual(response.status, 409 if answer.get("undelivered") else 200, content)
            redacted += len(answer["redacted"])
            if "next" not in answer:
                break
            more = {"next": answer["next"]}
        self.assertEqual((redacted, self.ann.titles(), len(self.bob.titles())), (23, [], 20))
        self.redact(expect=400, group="order-1", next="x")
        self.redact(expect=404, ids=[self.publish("bob", "bob's")["id"]], uids=["ann"])

    def test_many_users_with_progress(self):
        users = [f"user{number}" for number in range(1200)]
        post = self.publish(users, "to many", category="news", expect=202)
        path = f"/inbox/{self.place}/posts/{post['id']}"
        wait_until(lambda: self.server.call("GET", path)["state"] == "done", 60)
        self.assertEqual(self.server.call("GET", path)["delivered"], 1200)
        for user in ("user0", "user599", "user1199"):
            self.assertEqual(self.bell(user).unread(), 1)
        self.redact(ids=[post["id"]])
        wait_until(lambda: self.bell("user1199").unread() == 0 and self.bell("user0").titles() == [], 60)

    def test_later_and_canceled(self):
        at = lambda seconds: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        self.publish("ann", "soon", deliver_at=at(2), expect=202)
        self.publish(["ann"], "never", deliver_at=at(2), key="never", expect=202)
        self.assertEqual(self.ann.titles(), [])
        self.server.call("POST", f"/inbox/{self.place}/messages/cancel", {"key": "never"})
        wait_until(lambda: self.ann.titles() == ["soon"], 10)
        time.sleep(0.5)
        self.assertEqual(self.ann.titles(), ["soon"])

    def test_the_time_to_live_is_that_of_the_category(self):
        self.server.call("PUT", f"/inbox/{self.tenant}", {"title": "T", "ttl": "10d"})
        self.server.call("PUT", f"/inbox/{self.place}", {"title": "Bell", "ttl": {"orders": "2d"}})
        self.assertEqual(self.server.call("GET", f"/inbox/{self.tenant}")["inboxes"], ["bell"])
        self.publish("ann", "1", category="orders")
        self.publish("ann", "2", category="news")
        days = [round((message["expiredat"] - time.time()) / 86400) for message in self.ann.feed()["messages"]]
        self.assertEqual(days, [10, 2])

    def rows(self, partition):
        page = self.server.tables().query(TableName="tabella-inbox", KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": {"S": f"t#{self.tenant}{partition}"}})
        read = boto3.dynamodb.types.TypeDeserializer().deserialize
        return {row["sk"]["S"]: {name: read(value) for name, value in row.items()} for row in page["Items"]}

    def post(self, audiences, title):
        body = {"audiences": audiences, "taxonomy": {"category": "orders"}, "message": {"title": title, "body": {"any": ["structure"]}, "cta_uri": "/orders/1"},
                "sender": "admin-7", "host_system_id": "h-1"}
        return self.server.call("POST", f"/inbox/{self.place}/messages/post", body, expect=201)["id"]

    def test_the_rows_are_those_of_the_source(self):
        self.ann.counts()
        own = self.post({"kind": "users", "uids": ["ann", "bob"], "label": "Buyers"}, "hello")
        public = self.post({"kind": "everyone"}, "to all")
        self.ann.put("read", ids=[own, public])
        self.server.call("PUT", f"/inbox/{self.tenant}", {"title": "Shop", "ttl": "40d"})
        self.server.call("PUT", f"/inbox/{self.place}", {"title": "Bell", "description": "All of it", "ttl": {"default": "30d", "orders": "300m"}})

        users = self.rows("U#ann#bell")
        message = users[f"m#{own}"]
        self.assertEqual((message["kind"], message["tenant_key"], message["inbox_key"], message["uid"]), ("UM", self.tenant, "bell", "ann"))
        said = message["audiences"]
        self.assertEqual((said["id"], said["sender"], said["host_system_id"]), (own, "admin-7", "h-1"))
        self.assertEqual((said["audiences"]["kind"], said["audiences"]["label"]), ("users", "Buyers"))
        self.assertGreaterEqual(said["delivered"], said["received"])
        self.assertEqual(message["taxonomy"], {"category": "orders"})
        self.assertEqual(message["message"], {"title": "hello", "body": {"any": ["structure"]}, "cta_uri": "/orders/1"})
        self.assertGreater(1000 * message["expiredat"], message["readat"])
        receipt = users[f"m#{public}"]
        self.assertEqual(receipt["taxonomy"], {"category": "orders"})
        self.assertGreater(1000 * receipt["expiredat"], receipt["readat"])
        self.assertNotIn("message", receipt)
        for name in ("c#*", "c#orders"):
            self.assertEqual((users[name]["kind"], users[name]["uid"], users[name]["tenant_key"], users[name]["inbox_key"]), ("US", "ann", self.tenant, "bell"))
            self.assertEqual((users[name]["published"], users[name]["read"]), (1, 2))

        everybody = self.rows("G#$public#bell")
        self.assertEqual(everybody[f"m#{public}"]["audiences"]["audiences"]["kind"], "everyone")
        self.assertNotIn("readat", everybody[f"m#{public}"])
        self.assertEqual((everybody["c#*"]["kind"], everybody["c#*"]["published"], everybody["c#orders"]["published"]), ("US", 1, 1))
        settings = self.rows("")
        tenant, inbox = settings["st#tenant_settings"], settings["si#bell"]
        self.assertEqual((tenant["kind"], tenant["title"], tenant["ttl"], tenant["tenant_key"]), ("TS", "Shop", "40d", self.tenant))
        self.assertEqual((inbox["kind"], inbox["title"], inbox["description"], inbox["ttl"]), ("IC", "Bell", "All of it", {"default": "30d", "orders": "300m"}))
        self.assertEqual((inbox["tenant_key"], inbox["inbox_key"]), (self.tenant, "bell"))

    def test_a_users_address_is_kept_shown_and_forgotten(self):
        address = f"/inbox/{self.tenant}/users/ann"
        self.server.call("PUT", address, {"email": "ann@example.com", "name": "Ann"})
        shown = self.server.call("GET", address)
        self.assertEqual((shown["email"], shown["name"]), ("ann@example.com", "Ann"))
        self.server.call("DELETE", address)
        self.server.call("GET", address, expect=404)

    def test_bad_requests_are_told_why(self):
        for body, words in (({}, "to:"), ({"to": "ann"}, "message"), ({"to": "a#b", "message": {"title": "x"}}, "without #"), ({"to": [], "message": {"title": "x"}}, "at least one"),
                            ({"to": "ann", "message": {"title": "x"}, "category": "*"}, "stands for all"), ({"to": "ann", "message": {"title": ""}}, "title"),
                            ({"to": "ann", "message": {"title": "x", "cta_uri": " JaVa\tScript:alert(1)"}}, "script"), ({"to": "ann", "message": {"title": "x"}, "ttl": "800d"}, "ttl"),
                            ({"to": "ann", "message": {"title": "x"}, "colour": 1}, "colour"), ({"to": "$public", "message": {"title": "x"}}, "$"),
                            ({"to": "ann", "message": {"title": "x"}, "deliver_at": "tomorrow"}, "deliver_at"), ({"to": "ann", "message": {"title": "x", "n": 1e300}}, "message")):
            response, content = self.server.request("POST", f"/inbox/{self.place}/messages/post", json.dumps(body))
            self.assertEqual((response.status, words in json.loads(content)["error"]), (400, True), (body, content))
        for what, body in (("read", {}), ("read", {"ids": []}), ("read", {"ids": ["x"]}), ("read", {"all": True, "until": "2026-01-01T00:00:00Z"}), ("snooze", {"ids": ["0" * 19]}), ("snooze", {"ids": ["0" * 19], "until": "2020-01-01T00:00:00Z"})):
            self.ann.put(what, 400, **body)
        self.assertEqual(self.ann.put("read", ids=["0" * 19])["ids"], [])
        self.ann.call("GET", "messages/last/1000", expect=400)
        self.ann.call("GET", "messages?next=zzz", expect=400)
        self.ann.call("GET", "messages?show=some", expect=400)


class LiveEvents(Inbox):
    def test_what_happens_is_told_as_it_happens(self):
        self.ann.counts()
        with self.ann.live() as live:
            self.assertEqual(live.until("counts")[-1][2]["all"]["unread"], 0)
            first = self.publish("ann", "one")["id"]
            events = live.until("counts")
            self.assertEqual([(event[1], event[2].get("id")) for event in events[:-1]], [("message", first)])
            self.assertEqual(events[-1][2]["all"]["unread"], 1)
            second = self.publish("everyone", "two")["id"]
            self.assertEqual([event[2]["id"] for event in live.until("counts")[:-1]], [second])
            self.ann.put("read", ids=[second])
            read = live.until("counts")
            self.assertEqual([(event[2]["id"], event[2]["read"]) for event in read[:-1]], [(second, True)])
            self.redact(ids=[first])
            gone = live.until("counts")
            self.assertEqual([(event[1], event[2]["id"]) for event in gone[:-1]], [("removed", first)])
            last = gone[-1][0]
        third = self.publish("ann", "three")["id"]
        self.redact(ids=[second])
        with self.ann.live(last) as live:
            events = live.until("counts")
            self.assertEqual(sorted((event[1], event[2]["id"]) for event in events[:-1]), [("message", third), ("removed", second)])
            self.assertEqual(events[-1][2]["all"]["unread"], 1)

    def test_other_pages_hear_that_everything_was_marked(self):
        self.publish("ann", "one", category="orders")
        page = self.ann.feed()
        message = page["messages"][0]
        with self.ann.live(page["sequence"]) as live:
            self.assertLess(live.until("marks")[-1][2]["read"]["own"], message["arrived"])
            self.ann.put("read", all=True, category="orders")
            self.assertGreater(live.until("marks")[-1][2]["categories"]["orders"]["own"], message["arrived"])
            self.ann.put("read", all=True)
            marks = live.until("marks")[-1][2]
            self.assertGreater(marks["read"]["own"], message["arrived"])
            self.assertEqual(marks["categories"], {})
            self.ann.put("seen")
            self.assertGreater(live.until("marks")[-1][2]["seen"]["own"], marks["seen"]["own"])

    def test_a_page_and_what_comes_behind_it_are_all(self):
        self.publish("ann", "one")
        page = self.ann.feed()
        two = self.publish("ann", "two")["id"]
        with self.ann.live(page["sequence"]) as live:
            self.assertEqual([event[2]["id"] for event in live.until("counts")[:-1]], [two])

    def test_too_long_ago_is_told(self):
        self.publish("ann", "one")
        with self.ann.live("1.1") as live:
            self.assertEqual(live.next()[1], "reset")
        with self.ann.live("x") as live:
            self.assertEqual(live.status, 400)

    def test_what_another_process_publishes_is_told(self):
        other = self.server.another().start()
        try:
            self.ann.counts()
            with self.ann.live() as live:
                live.until("counts")
                publish(other, "ann", "from elsewhere", place=self.place)
                self.assertEqual(live.until("counts")[0][2]["message"]["title"], "from elsewhere")
                publish(other, "everyone", "to all", place=self.place)
                self.assertEqual(live.until("counts")[0][2]["message"]["title"], "to all")
        finally:
            other.stop()


def encoded(value):
    return base64.urlsafe_b64encode(value if isinstance(value, bytes) else json.dumps(value).encode()).rstrip(b"=").decode()


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def hs256(secret, **claims):
    text = encoded({"alg": "HS256", "typ": "JWT"}) + "." + encoded(claims)
    return text + "." + encoded(hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest())


class Strangers(unittest.TestCase):
    """A house that is closed: whoever comes has to show who he is."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(InboxServer())
        made = lambda *scopes: subprocess.run([BINARY, "token", "create", "--name", "x", *(word for scope in scopes for word in ("--scope", scope)), "--store", cls.server.dynamodb],
                                              capture_output=True, text=True).stdout.strip()
        cls.admin = {"Authorization": "Bearer " + made("inbox:admin")}
        cls.other = {"Authorization": "Bearer " + made("mail:read")}
        wait_until(lambda: cls.server.request("GET", "/inbox/shop")[0].status == 401)
        for user in ("ann", "bob"):
            publish(cls.server, user, f"for {user}", headers=cls.admin)
            publish(cls.server, user, f"for {user}", place="rival/bell", headers=cls.admin)
        cls.secret = cls.ask("POST", "/inbox/shop/secret", cls.admin)["secret"]
        cls.rival = cls.ask("POST", "/inbox/rival/secret", cls.admin)["secret"]

    @classmethod
    def ask(cls, method, path, headers, body=None, expect=200):
        response, content = cls.server.request(method, path, json.dumps(body) if body is not None else None, headers)
        assert response.status == expect, (method, path, response.status, content)
        return json.loads(content)

    def token(self, **body):
        return {"Authorization": "Bearer " + self.ask("POST", "/inbox/shop/tokens", self.admin, body, 201)["token"]}

    def bell(self, credentials, **more):
        return Bell(self.server, credentials=credentials, **more)

    def test_a_token_is_its_users(self):
        ann = self.bell(self.token(user="ann"))
        self.assertEqual(ann.titles(), ["for ann"])
        # Whatever else the page says.
        self.assertEqual(self.bell({**self.token(user="ann"), "X-Inbox-User": "bob"}).titles(), ["for ann"])
        self.assertEqual(ann.feed(user="bob")["messages"][0]["message"]["title"], "for ann")
        bobs = self.bell(self.token(user="bob")).feed()["messages"][0]["id"]
        for what in ("read", "unread", "archive", "unarchive", "unsnooze"):
            self.assertEqual(ann.put(what, ids=[bobs])["ids"], [])
        self.assertEqual(ann.put("snooze", ids=[bobs], **{"for": "1h"})["ids"], [])
        self.assertEqual(self.bell(self.token(user="bob")).unread(), 1)

    def user_routes(self):
        yield "GET", "messages", None
        yield "GET", "messages/last/3", None
        yield "GET", "counts", None
        yield "GET", "live", None
        for what in ("read", "unread", "archive", "unarchive", "snooze", "unsnooze"):
            yield "PUT", f"messages/{what}", {"ids": ["0" * 19], **({"for": "1h"} if what == "snooze" else {})}
        yield "PUT", "messages/seen", None
        yield "GET", "preferences", None
        yield "PUT", "preferences", {"news": {"bell": False}}

    def admin_routes(self):
        yield "GET", "/inbox/shop", None
        yield "PUT", "/inbox/shop", {"title": "mine"}
        yield "POST", "/inbox/shop/secret", None
        yield "POST", "/inbox/shop/tokens", {"user": "ann"}
        yield "GET", "/inbox/shop/bell", None
        yield "PUT", "/inbox/shop/bell", {"title": "mine"}
        yield "POST", "/inbox/shop/bell/messages/post", {"to": "ann", "message": {"title": "x"}}
        yield "GET", "/inbox/shop/bell/posts/" + "0" * 19, None
        yield "POST", "/inbox/shop/bell/messages/cancel", {"key": "x"}
        yield "DELETE", "/inbox/shop/bell/messages/redact", {"key": "x"}
        yield "GET", "/inbox/shop/users/ann", None
        yield "PUT", "/inbox/shop/users/ann", {"email": "evil@example.com"}
        yield "DELETE", "/inbox/shop/users/ann", None

    def test_all_routes_are_among_those_that_are_walked(self):
        walked = {(method, path) for method, path, _ in self.admin_routes()} | {(method, "/inbox/shop/bell/" + path) for method, path, _ in self.user_routes()}
        walked |= {("POST", "/inbox/shop/tokens/refresh"), ("GET", "/inbox.js")}  # tested by themselves
        names = {"{tenant}": "shop", "{inbox}": "bell", "{limit}": "3", "{id}": "0" * 19, "{user}": "ann"}
        for path, methods in json.loads(self.server.request("GET", "/openapi.json")[1])["paths"].items():
            if path.startswith("/inbox"):
                for name, value in names.items():
                    path = path.replace(name, value)
                for method in methods:
                    self.assertIn((method.upper(), path), walked)

    def strangers(self):
        later, now = int(time.time()) + 600, int(time.time())
        yield "nobody", {}
        yield "another tenant's user", bearer(hs256(self.rival, sub="ann", exp=later))
        yield "another tenant's user who says otherwise", bearer(hs256(self.rival, sub="ann", tenant="shop", exp=later))
        yield "a token for another tenant", bearer(hs256(self.secret, sub="ann", tenant="rival", exp=later))
        yield "a token for another inbox", bearer(hs256(self.secret, sub="ann", inbox="other", exp=later))
        yield "a token that has ended", bearer(hs256(self.secret, sub="ann", exp=now - 1))
        yield "a token without an end", bearer(hs256(self.secret, sub="ann"))
        yield "a token that is to come", bearer(hs256(self.secret, sub="ann", exp=later, nbf=later - 1))
        yield "a token of nobody", bearer(hs256(self.secret, exp=later))
        yield "a token of everybody", bearer(hs256(self.secret, sub="$public", exp=later))
        yield "a token that is not signed", bearer(encoded({"alg": "none"}) + "." + encoded({"sub": "ann", "exp": later}) + ".")
        yield "a token signed by nothing", bearer(hs256("", sub="ann", exp=later))
        yield "another tenant's key", {"X-Inbox-Key": self.rival, "X-Inbox-User": "ann"}
        yield "a wrong key", {"X-Inbox-Key": "x", "X-Inbox-User": "ann"}
        yield "another user's hmac", {"X-Inbox-Hmac": hmac.new(self.secret.encode(), b"user:bob", hashlib.sha256).hexdigest(), "X-Inbox-User": "ann"}
        yield "another system's token", {**self.other, "X-Inbox-User": "ann"}
        yield "a wrong token", {"Authorization": "Bearer tab_x_y", "X-Inbox-User": "ann"}

    def test_no_stranger_gets_in_anywhere(self):
        routes = [("/inbox/shop/bell/" + path, method, body) for method, path, body in self.user_routes()]
        routes += [(path, method, body) for method, path, body in self.admin_routes()]
        for name, headers in self.strangers():
            for path, method, body in routes:
                with self.subTest(who=name, method=method, path=path):
                    response, content = self.server.request(method, path, json.dumps(body) if body else None, headers)
                    self.assertIn(response.status, (401, 403), content)

    def test_a_user_is_no_admin(self):
        for method, path, body in self.admin_routes():
            with self.subTest(method=method, path=path):
                self.assertEqual(self.server.request(method, path, json.dumps(body) if body else None, self.token(user="ann"))[0].status, 403)

    def test_the_tenants_key_is_good_for_its_tenant(self):
        key = {"X-Inbox-Key": self.secret}
        publish(self.server, "cy", "by key", headers=key)
        self.assertEqual(self.bell({**key, "X-Inbox-User": "cy"}).titles(), ["by key"])
        publish(self.server, "cy", "by key", place="rival/bell", headers=key, expect=401)

    def test_the_sender_of_emails_is_not_for_tenants_to_choose(self):
        response, content = self.server.request("PUT", "/inbox/shop/bell", json.dumps({"email": {"from": "ceo@rival.example"}}), {"X-Inbox-Key": self.secret})
        self.assertEqual((response.status, json.loads(content)), (403, {"error": "email: from: that is set by who has the scope inbox:admin"}))

    def test_hmac(self):
        self.assertEqual(self.bell({"X-Inbox-User": "bob", "X-Inbox-Hmac": hmac.new(self.secret.encode(), b"user:bob", hashlib.sha256).hexdigest()}).titles(), ["for bob"])

    def test_a_token_is_refreshed_as_it_was(self):
        token = self.token(user="ann", inbox="bell", ttl="90s")
        fresh = self.ask("POST", "/inbox/shop/tokens/refresh", token, expect=201)
        self.assertEqual(self.bell({"Authorization": "Bearer " + fresh["token"]}).titles(), ["for ann"])
        self.bell({"Authorization": "Bearer " + fresh["token"]}, inbox="other").call("GET", "counts", expect=401)
        for name, headers in self.strangers():
            if "another inbox" not in name:
                with self.subTest(who=name):
                    self.assertIn(self.server.request("POST", "/inbox/shop/tokens/refresh", None, headers)[0].status, (401, 403))

    def test_a_token_is_renewed_for_so_long_as_it_was_made_for_and_not_for_ever(self):
        now = int(time.time())
        renewed = lambda expect=201, **claims: self.ask("POST", "/inbox/shop/tokens/refresh", bearer(hs256(self.secret, sub="ann", exp=now + 60, **claims)), expect=expect)
        claims = json.loads(base64.urlsafe_b64decode(renewed(iat=now)["token"].split(".")[1] + "=="))
        self.assertEqual(claims["auth_time"], now)
        self.assertLessEqual(claims["exp"], time.time() + 61)
        claims = json.loads(base64.urlsafe_b64decode(renewed(iat=now, auth_time=now - 30 * 86400 + 20)["token"].split(".")[1] + "=="))
        self.assertLessEqual(claims["exp"], now + 21)
        renewed(expect=401)
        renewed(expect=401, iat=0)
        renewed(expect=401, iat=now, auth_time=now - 30 * 86400)

    def test_tokens_of_the_tenants_own_keys(self):
        def openssl(*words, data=b""):
            return subprocess.run(["openssl", *words], input=data, capture_output=True, check=True).stdout

        import tempfile
        keys = {}
        for algorithm, kind in (("RS256", ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")), ("EdDSA", ("-algorithm", "ed25519"))):
            private = openssl("genpkey", *kind)
            keys[algorithm] = private, openssl("pkey", "-pubout", data=private).decode()
        self.ask("PUT", "/inbox/keyed", self.admin, {"title": "Keyed", "public_keys": [public for _, public in keys.values()]})
        publish(self.server, "ann", "signed", place="keyed/bell", headers=self.admin)
        for algorithm, (private, _) in keys.items():
            text = encoded({"alg": algorithm}) + "." + encoded({"sub": "ann", "exp": int(time.time()) + 60})
            with tempfile.NamedTemporaryFile() as key, tempfile.NamedTemporaryFile() as data:
                key.write(private)
                key.flush()
                data.write(text.encode())
                data.flush()
                signature = openssl("dgst", "-sha256", "-sign", key.name, data.name) if algorithm == "RS256" else openssl("pkeyutl", "-sign", "-rawin", "-inkey", key.name, "-in", data.name)
            bearer = {"Authorization": f"Bearer {text}.{encoded(signature)}"}
            self.assertEqual(self.bell(bearer, tenant="keyed").titles(), ["signed"], algorithm)
            # A public key is no secret: what is signed by it as if it were one is refused.
            forged = hs256(keys[algorithm][1], sub="ann", exp=int(time.time()) + 60)
            self.bell({"Authorization": f"Bearer {forged}"}, tenant="keyed").call("GET", "counts", expect=401)
        self.ask("PUT", "/inbox/keyed", self.admin, {"public_keys": ["no key"]}, 400)

    def test_a_secret_that_is_made_anew_replaces_the_one_before(self):
        path, ask = "/inbox/fresh/secret", self.ask
        first = ask("POST", path, self.admin)
        self.assertEqual(ask("POST", path, self.admin), first)
        token = bearer(hs256(first["secret"], sub="ann", exp=time.time() + 60))
        ask("GET", "/inbox/fresh/bell/counts", token)
        anew = ask("POST", path, {"X-Inbox-Key": first["secret"]}, {"anew": True})
        self.assertNotEqual((anew["secret"], anew["webhook_secret"]), (first["secret"], first["webhook_secret"]))
        ask("GET", "/inbox/fresh/bell/counts", token, expect=401)
        ask("POST", path, {"X-Inbox-Key": first["secret"]}, expect=401)
        ask("GET", "/inbox/fresh/bell/counts", bearer(hs256(anew["secret"], sub="ann", exp=time.time() + 60)))
        ask("POST", path, self.admin, {"anew": "yes"}, expect=400)

    def test_no_secret_is_in_the_table(self):
        rows = self.server.tables().scan(TableName="tabella-inbox")["Items"]
        self.assertNotIn(self.secret, json.dumps(rows))


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""kill -9 while messages are published, read and redacted: nothing that was acknowledged is lost or there twice, and the counts are those of
the feed. INBOX_ON is embedded (one process), or remote (three on one store, which is killed too). TABELLA_CRASH_ROUNDS sets how many kills there are."""

import collections
import http.client
import json
import os
import random
import threading
import time
import unittest
import uuid

from inbox_server import ON, Bell, InboxServer, wait_until

KILLS = int(os.environ.get("TABELLA_CRASH_ROUNDS", "5"))
USERS = [f"user{number}" for number in range(6)]
CATEGORIES = ["orders", "news", None]


class Client(threading.Thread):
    """Does something, at any of the processes, until it is stopped; what fails is tried again with the same key."""

    def __init__(self, processes, stop):
        super().__init__()
        self.processes, self.stop = processes, stop
        self.sent, self.published = {}, set()  # title: users, or "everyone"; the titles of which that was acknowledged
        self.redacting, self.redacted = set(), set()  # titles; those of which that was acknowledged
        self.failure = None

    def run(self):
        try:
            while not self.stop.is_set():
                random.choice([self.publish, self.publish, self.publish, self.change, self.change, self.redact])()
        except Exception as failure:
            self.failure = failure

    def ask(self, method, path, body, headers=None):
        """The answer of whoever gives one; None once it is over."""
        while not self.stop.is_set():
            try:
                response, content = random.choice(self.processes).request(method, f"/inbox/shop/bell/{path}", json.dumps(body), headers)
                if response.status < 500:
                    return response.status, json.loads(content)
            except (OSError, http.client.HTTPException, ValueError):
                pass
            time.sleep(0.05)
        return None

    def publish(self):
        many = random.random() < 0.1
        to = random.choice(["everyone", random.choice(USERS), random.sample(USERS, 3), USERS + [f"other{number}" for number in range(60)] if many else random.choice(USERS)])
        body = {"to": to, "message": {"title": str(uuid.uuid4())}, "key": str(uuid.uuid4()), **({"category": category} if (category := random.choice(CATEGORIES)) else {})}
        title = body["message"]["title"]
        self.sent[title] = to if to == "everyone" else [to] if isinstance(to, str) else to
        if answer := self.ask("POST", "messages/post", body):
            assert answer[0] in (200, 201, 202), answer
            self.published.add(title)

    def change(self):
        user = {"X-Inbox-User": random.choice(USERS)}
        page = self.ask("GET", "messages?limit=20", None, user)
        if not page or not page[1]["messages"]:
            return
        ids = [message["id"] for message in random.sample(page[1]["messages"], min(4, len(page[1]["messages"])))]
        what = random.choice(["read", "unread", "archive", "unarchive", "seen", "all"])
        if what == "all":
            self.ask("PUT", "messages/read", {"all": True}, user)
        else:
            self.ask("PUT", f"messages/{what}", {} if what == "seen" else {"ids": ids}, user)

    def redact(self):
        page = self.ask("GET", "messages?limit=20", None, {"X-Inbox-User": random.choice(USERS)})
        if not page or not page[1]["messages"] or random.random() < 0.7:
            return
        message = random.choice(page[1]["messages"])
        title = message["message"]["title"]
        self.redacting.add(title)
        if answer := self.ask("DELETE", "messages/redact", {"ids": [message["id"]]}):
            assert answer[0] == 200, answer
            self.redacted.add(title)


class Killed(unittest.TestCase):
    def test_nothing_is_lost_or_doubled_and_counts_are_exact(self):
        server = self.enterContext(InboxServer())
        processes = [server]
        if ON == "remote":
            for _ in range(2):
                processes.append(server.another().start())
        for user in USERS:
            Bell(server, user).counts()
        stop = threading.Event()
        clients = [Client(processes, stop) for _ in range(4)]
        for client in clients:
            client.start()
        for number in range(KILLS):
            time.sleep(random.uniform(0.3, 1.2))
            if ON == "remote" and number % 2:
                server.store.kill()
                server.store.start()
            else:
                random.choice(processes).kill_and_start()
        stop.set()
        for client in clients:
            client.join()
            if client.failure:
                raise client.failure
        published, redacting, redacted = (set().union(*(getattr(client, name) for client in clients)) for name in ("published", "redacting", "redacted"))
        sent = {title: to for client in clients for title, to in client.sent.items()}
        self.assertGreater(len(published), KILLS)
        for user in USERS:
            with self.subTest(user=user):
                # What was not acknowledged may be there or not.
                may = {title for title, to in sent.items() if (to == "everyone" or user in to) and title not in redacted}
                must = may & published - redacting
                # What goes to many may still be on its way, or on its way back.
                wait_until(lambda: must <= {message["message"]["title"] for message in self.all(server, user)} <= may, 90)
                self.check(server, user)
        for process in processes[1:]:
            process.stop()
        print(f"{KILLS} kills, {len(published)} published, {len(redacted)} redacted")

    def all(self, server, user, show=("active", "archived")):
        bell = Bell(server, user)
        messages = []
        for state in show:
            more = {}
            while True:
                page = bell.feed(limit=100, show=state, **more)
                messages += page["messages"]
                if "next" not in page:
                    break
                more = {"next": page["next"]}
        return messages

    def check(self, server, user):
        messages = self.all(server, user)
        titles = collections.Counter(message["message"]["title"] for message in messages)
        self.assertEqual([title for title, count in titles.items() if count > 1], [], "there twice")
        expected = collections.Counter()
        for message in messages:
            for name in ("all", message.get("category")):
                expected[name, "archived"] += message["archived"]
                expected[name, "total"] += not message["archived"]
                expected[name, "unread"] += not message["archived"] and not message["read"]
                expected[name, "unseen"] += not message["archived"] and not message["seen"]
        counts = Bell(server, user).counts()
        for name, one in [("all", counts["all"]), *((category, counts["categories"].get(category, {})) for category in CATEGORIES if category)]:
            for field in ("archived", "total", "unread", "unseen"):
                self.assertEqual(one.get(field, 0), expected[name, field], f"{name} {field}")


if __name__ == "__main__":
    unittest.main(verbosity=2)

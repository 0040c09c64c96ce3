"""Three processes share an outbox and are killed at random, and so are the store and the database that they share, while
emails come in over HTTP and SMTP and the server that they go to is moody. Every email that was accepted comes to a final
state, every one that is SENT is there, and none is there more often than its attempts admit. OUTBOX_ON says where the
emails are: embedded (one process alone), store or mysql. TABELLA_CRASH_ROUNDS sets how many kills there are."""

import base64
import collections
import contextlib
import http.client
import http.server
import json
import os
import random
import smtplib
import sys
import tempfile
import threading
import time
import unittest
import uuid

import boto3

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
sys.path.insert(0, os.path.dirname(__file__))
from mariadb import Mariadb
from outbox_process import FINAL, UNDER_WAY, OutboxProcess
from server import Server, free_port, wait_until
from sink import Sink

ON = os.environ.get("OUTBOX_ON", "embedded")
KILLS = int(os.environ.get("TABELLA_CRASH_ROUNDS", "5"))
OPTIONS = ("--outbox-lease", "1s", "--outbox-retry-first", "50ms", "--outbox-retry-longest", "1s", "--outbox-timeout", "2s")


class Email:
    """Its subject is its name, by which the sink knows it."""

    def __init__(self, recipients, size, callback=None):
        self.name = str(uuid.uuid4())
        self.recipients, self.size, self.callback = recipients, size, callback

    @staticmethod
    def any(callback=None):
        names = ["ann", *random.sample(["bob", "carol", "refused"], random.choice((0, 0, 1, 2)))] if random.random() > 0.05 else ["refused"]
        return Email([f"{name}@example.com" for name in names], random.choice((10, 3_000, 3_000, 3_000, 400_000)), callback)

    def text(self):
        return "x" * 70 + "\r\n" + ("y" * 70 + "\r\n") * (self.size // 72)

    def payload(self):
        return {"id": self.name, "from": "shop@example.com", "to": self.recipients, "subject": self.name, "body_text": self.text(),
                **({"callback_url": self.callback} if self.callback else {})}

    def raw(self):
        return f"From: shop@example.com\r\nTo: {', '.join(self.recipients)}\r\nSubject: {self.name}\r\n\r\n{self.text()}"


class Client(threading.Thread):
    """Hands over emails, to any of the processes, until it is stopped."""

    def __init__(self, processes, stop):
        super().__init__()
        self.processes, self.stop = processes, stop
        self.accepted = {}  # name: email
        self.unsure = {}    # those whose answer was lost
        self.failure = None

    def run(self):
        try:
            while not self.stop.is_set():
                self.send()
                time.sleep(random.uniform(0.02, 0.1))
        except Exception as failure:
            self.failure = failure

    def any_process(self):
        return random.choice(self.processes)


class HttpClient(Client):
    """Sends what was not answered again, elsewhere, so that all of it is accepted."""

    def __init__(self, processes, stop, callback):
        super().__init__(processes, stop)
        self.callback = callback

    def send(self):
        left = {email.name: email for email in (Email.any(self.callback if random.random() < 0.1 else None) for _ in range(random.randint(1, 4)))}
        key = str(uuid.uuid4())
        while left and not self.stop.is_set():
            answer = self.post(list(left.values()), key)
            if answer is None:
                time.sleep(0.1)
                continue
            for result in answer["results"]:
                if result["status"] == "REJECTED":
                    raise AssertionError(result)
                self.accepted[result["id"]] = left.pop(result["id"])
        self.unsure.update(left)

    def post(self, emails, key):
        try:
            status, content = self.any_process().request("POST", "/outbox/emails", {"data": [email.payload() for email in emails]}, {"Idempotency-Key": key})
        except (OSError, http.client.HTTPException):
            return None
        if status >= 500:
            return None
        if status not in (200, 201, 422):
            raise AssertionError(f"{status} {content[:500]!r}")
        return json.loads(content)


class SmtpClient(Client):
    def send(self):
        email = None
        with contextlib.suppress(OSError, smtplib.SMTPException):
            with smtplib.SMTP("127.0.0.1", self.any_process().submission, timeout=60) as client:
                for _ in range(random.randint(1, 5)):
                    email = Email.any()
                    client.ehlo_or_helo_if_needed()
                    client.mail("shop@example.com")
                    for recipient in email.recipients:
                        client.rcpt(recipient)
                    self.unsure[email.name] = email
                    code, _ = client.data(email.raw())
                    # "Try again" is said, too, where what it is kept in was killed before it had answered.
                    if 400 <= code < 500:
                        continue
                    del self.unsure[email.name]
                    if code == 250:
                        self.accepted[email.name] = email


class Callbacks:
    """What is told what became of an email; it does not always listen."""

    def __init__(self):
        told = self.told = collections.Counter()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                taken = random.random() < 0.8
                if taken:
                    told.update(body["message_ids"])
                self.send_response(200 if taken else 503)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Killed(unittest.TestCase):
    """Processes that share an outbox."""

    def start(self, count, *options, moody):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="tabella-kill-"))
        self.sink = self.enterContext(Sink(free_port(), moody))
        self.shared = []  # what the processes share, which may be killed too
        where = self.prepare()
        self.processes = [OutboxProcess(*where, *options, "--outbox-mode", "relay", "--outbox-relay", f"smtp://127.0.0.1:{self.sink.port}?tls=off",
                                        log=os.path.join(self.folder, f"{number}.log")) for number in range(count)]
        for process in self.processes:
            self.enterContext(process)

    def prepare(self):
        """How the processes are told where everything is."""
        if ON == "embedded":
            return ["--data", os.path.join(self.folder, "data"), "--dynamodb", f"127.0.0.1:{free_port()}"]
        key = os.path.join(self.folder, "key")
        with open(key, "w") as file:
            file.write(base64.b64encode(os.urandom(32)).decode())
        store = self.enterContext(Server(folder=os.path.join(self.folder, "store")))
        self.shared.append(store)
        where = ["--store", store.endpoint, "--create-tables", "--secret-key-file", key]
        if ON == "mysql":
            database = self.enterContext(Mariadb())
            self.shared.append(database)
            where += ["--outbox-database", database.make("outbox")]
        return where


class AtRandom(Killed):
    def setUp(self):
        self.callbacks = Callbacks()
        self.addCleanup(self.callbacks.close)
        self.start(1 if ON == "embedded" else 3, *OPTIONS, moody=True)
        self.killed = collections.Counter()

    def kill_at_random(self):
        for number in range(KILLS):
            time.sleep(random.uniform(0.5, 2))
            # Every second time something that they share, in turns.
            victim = self.shared[number // 2 % len(self.shared)] if self.shared and number % 2 else random.choice(self.processes)
            self.killed[type(victim).__name__] += 1
            victim.kill()
            victim.start()

    def test_nothing_is_lost_and_nothing_comes_twice(self):
        stop = threading.Event()
        clients = [HttpClient(self.processes, stop, self.callbacks.url), HttpClient(self.processes, stop, self.callbacks.url),
                   SmtpClient(self.processes, stop), SmtpClient(self.processes, stop)]
        for client in clients:
            client.start()
        try:
            self.kill_at_random()
        finally:
            stop.set()
            for client in clients:
                client.join()
        for client in clients:
            if client.failure:
                raise client.failure
        self.accepted = {name: email for client in clients for name, email in client.accepted.items()}
        self.unsure = {name: email for client in clients for name, email in client.unsure.items()}
        self.sent = {**self.unsure, **self.accepted}
        self.wait_for_the_end()
        lives = {life["message"]["subject"]: life for life in self.lives()}
        self.assertEqual(self.accepted.keys() - lives.keys(), set(), "accepted and lost")
        self.assertEqual(lives.keys() - self.sent.keys(), set(), "nobody's")
        for name, life in lives.items():
            self.check(self.sent[name], life)
        self.report(lives)

    def wait_for_the_end(self):
        """Until nothing is under way, and whoever wanted to be told was."""
        process = random.choice(self.processes)
        deadline = time.monotonic() + 120
        while waiting := self.under_way(process):
            if time.monotonic() > deadline:
                self.fail(f"still under way: {[process.email(identifier) for identifier in waiting[:5]]}")
            time.sleep(0.2)
        self.ended = {state: process.ids(state) for state in FINAL}
        # They are counted as they change, so the counts come after.
        expected = {state: len(ids) for state, ids in self.ended.items() if ids}
        wait_until(lambda: {state: count for state, count in process.call("GET", "/outbox/counts").items() if count} == expected)

    def under_way(self, process):
        # By SMTP ids are made up, but nobody asks to be told.
        untold = [name for state in ("SENT", "FAILED") for name in process.ids(state) if name in self.sent and self.sent[name].callback]
        return untold + [name for state in UNDER_WAY for name in process.ids(state)]

    def lives(self):
        for state, ids in self.ended.items():
            self.assertEqual(len(ids), len(set(ids)), f"listed twice in {state}")
            for identifier in ids:
                life = random.choice(self.processes).email(identifier)
                self.assertEqual(life["status"], state)
                yield life

    def check(self, email, life):
        """What the email's attempts say is what the sink has seen."""
        results = {recipient["address"]: recipient["result"] for recipient in life["message"]["recipients"]}
        self.assertEqual(results, {address: "failed" if address.startswith("refused") else "delivered" for address in email.recipients}, life)
        acknowledged = "-ACKNOWLEDGED" if email.callback else ""
        self.assertEqual(life["status"], ("SENT" if "delivered" in results.values() else "FAILED") + acknowledged, life)
        self.assertEqual(life["history"][-1]["status"], life["status"], life)
        self.assertGreaterEqual(self.callbacks.told[email.name], 1 if email.callback else 0, life)
        for address, result in results.items():
            self.check_recipient(email, address, result, life)

    def check_recipient(self, email, address, result, life):
        outcomes, repeated, may_have_it = collections.Counter(), False, False
        for attempt in life["attempts"]:
            for outcome in (each["outcome"] for each in attempt["results"] if each["address"] == address):
                self.assertTrue(attempt["repeated"] or not may_have_it, f"{address} may have had it before: {life}")
                outcomes[outcome] += 1
                repeated = repeated or attempt["repeated"]
                may_have_it = may_have_it or outcome == "unknown"
        taken = self.sink.taken[email.name, address]
        self.assertEqual(outcomes["delivered"] > 0, result == "delivered", life)
        self.assertGreaterEqual(taken, outcomes["delivered"], f"{address} did not get it: {life}")
        self.assertLessEqual(taken, outcomes["delivered"] + outcomes["unknown"], f"{address} got it {taken} times: {life}")
        self.assertTrue(taken <= 1 or may_have_it or repeated, f"{address} got it {taken} times, and nobody says so: {life}")

    def report(self, lives):
        attempts = [attempt for life in lives.values() for attempt in life["attempts"]]
        outcomes = collections.Counter(attempt["outcome"] for attempt in attempts)
        states = {state: len(ids) for state, ids in self.ended.items() if ids}
        print(f"{ON}: {dict(self.killed)} killed; {len(self.accepted)} accepted, {len(self.unsure)} without an answer, of which "
              f"{len(lives.keys() - self.accepted.keys())} are there; {states}; {len(attempts)} attempts: {dict(outcomes)}; "
              f"{len(self.sink.taken)} deliveries, of which {sum(1 for times in self.sink.taken.values() if times > 1)} more than once, "
              f"none of them without an attempt that says so; {sum(self.callbacks.told.values())} callbacks", file=sys.stderr)


@unittest.skipUnless(ON == "mysql", "elsewhere it is one transaction")
class BetweenTwoTables(Killed):
    def test_who_got_it_is_known_from_the_attempt(self):
        """The state is in the database and all else in the store: a kill may come when only the first is written."""
        self.start(1, "--outbox-lease", "1s", "--outbox-retry-first", "1h", moody=False)
        process, store = self.processes[0], self.shared[0]
        tables = boto3.client("dynamodb", endpoint_url=store.endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        email = Email(["ann@example.com", "later@example.com"], 10)
        key = {"id": {"S": email.name}, "part": {"S": "message"}}
        self.sink.pause = 0.5
        process.call("POST", "/outbox/emails", {"data": [email.payload()]})
        wait_until(lambda: self.sink.taken)
        before = tables.get_item(TableName="tabella-outbox-messages", Key=key, ConsistentRead=True)["Item"]
        wait_until(lambda: process.email(email.name)["attempts"] and process.email(email.name)["status"] == "READY")
        process.kill()
        tables.put_item(TableName="tabella-outbox-messages", Item=before)
        process.start()
        wait_until(lambda: process.email(email.name)["status"] == "SENT")
        self.assertEqual(self.sink.taken, {(email.name, "ann@example.com"): 1, (email.name, "later@example.com"): 1}, process.email(email.name))


if __name__ == "__main__":
    unittest.main(verbosity=2)

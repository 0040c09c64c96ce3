"""kill -9 of any of three processes on one store while searches are under way: every search ends, every attempt that was due is made, in order and
never early; it is made twice only where its row says so; none is begun after the person has answered.

MANHUNT_ON is embedded (the first process has the store in it, the others use its DynamoDB port), or remote (the store is killed too).
TABELLA_CRASH_ROUNDS sets how many kills there are, TABELLA_CRASH_SEARCHES how many searches are under way."""

import base64
import collections
import datetime
import http.client
import http.server
import json
import os
import random
import tempfile
import threading
import time
import unittest
import uuid

from manhunt_server import ON, ManhuntServer, wait_until

KILLS = int(os.environ.get("TABELLA_CRASH_ROUNDS", "5"))
SEARCHES = int(os.environ.get("TABELLA_CRASH_SEARCHES", "60"))
# So that as many are opened in a second, however many are under way.
SECOND = max(1.0, SEARCHES // 150)
SLOWEST_COMMIT = 10  # seconds, while a store comes back
LEASE = 30  # seconds until others take over what a dead process had begun
DELAYS = [0.0, 1 * SECOND, 2 * SECOND]
WAIT, REPEAT = 2 * SECOND, 1


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def seconds(length):
    return f"{round(length * 1000)}ms"


class Gateway:
    """Calls and texts people. It remembers for whom it was asked, and sometimes refuses, fails, or breaks off."""

    def __init__(self):
        self.asked = collections.Counter()
        lock = threading.Lock()
        gateway = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                with lock:
                    gateway.asked[self.headers["Idempotency-Key"]] += 1
                what = random.random()
                if what < 0.03:
                    self.close_connection = True
                    return self.connection.close()
                self.send_response(500 if what < 0.06 else 400 if what < 0.12 else 200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

            def handle(self):
                try:
                    super().handle()
                except OSError:  # whoever asked was killed
                    pass

            def finish(self):
                try:
                    super().finish()
                except OSError:
                    pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 1024

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def provider(self, name):
        return {"name": name, "type": "http", "channels": ["phone", "text"], "timeout": "5s",
                "request": {"url": f"http://127.0.0.1:{self.server.server_port}/{name}", "headers": {"Content-Type": "application/json"}, "body": '{"to": "{{destination}}"}'}}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Opener(threading.Thread):
    """Keeps so many searches under way, at any of the processes, until it is stopped; what fails is tried again with the same key."""

    def __init__(self, processes, targets, count, stop):
        super().__init__()
        self.processes, self.targets, self.count, self.stop = processes, targets, count, stop
        self.opened, self.answered = [], {}  # ids; id: the status that was acknowledged, and when
        self.plans = []  # (when, id, what), while they are under way
        self.failure = None

    def run(self):
        try:
            while not self.stop.is_set():
                if len(self.plans) < self.count:
                    self.open()
                else:
                    time.sleep(0.01)
                self.carry_out()
        except Exception as failure:
            self.failure = failure

    def ask(self, method, path, body=None):
        """The answer of whoever gives one; None once it is over."""
        while not self.stop.is_set():
            try:
                response, content = random.choice(self.processes).request(method, f"/manhunt/shop{path}", json.dumps(body) if body is not None else None)
                if response.status < 500:
                    return response.status, json.loads(content)
            except (OSError, http.client.HTTPException, ValueError):
                pass
            time.sleep(0.05)
        return None

    def open(self):
        body = {**random.choice(self.targets), "metadata": {"summary": "x"}, "key": str(uuid.uuid4())}
        if answer := self.ask("POST", "/searches", body):
            assert answer[0] in (200, 201), answer
            self.opened.append(answer[1]["id"])
            length = sum(DELAYS) + WAIT
            what = random.choice(["accept", "accept", "cancel", None, None])
            self.plans.append((time.monotonic() + (random.uniform(0, length) if what else (REPEAT + 1) * length), answer[1]["id"], what))

    def carry_out(self):
        now = time.monotonic()
        due = [plan for plan in self.plans if plan[0] <= now]
        self.plans = [plan for plan in self.plans if plan[0] > now]
        for _, search, what in due:
            if what == "cancel":
                answer = self.ask("POST", f"/searches/{search}/cancel", {})
            elif what == "accept":
                answer = self.ask("POST", f"/searches/{search}/respond", {"answer": "accept"})
            if what and answer and answer[0] == 200:
                self.answered[search] = answer[1]["status"], time.time()


class Killed(unittest.TestCase):
    def test_every_search_ends_and_every_attempt_is_accounted_for(self):
        gateway = self.enterContext(Gateway())
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="tabella-test-"))
        providers, key = os.path.join(folder, "providers.json"), os.path.join(folder, "key")
        with open(providers, "w") as file:
            json.dump({"providers": [gateway.provider("first"), gateway.provider("second")]}, file)
        with open(key, "w") as file:
            file.write(base64.b64encode(os.urandom(32)).decode())
        options = ["--manhunt-providers", providers] + (["--secret-key-file", key] if ON == "embedded" else [])
        server = self.enterContext(ManhuntServer(*options))
        processes = [server]
        for _ in range(2):
            other = server.another()
            other.options += options
            processes.append(other.start())
            self.addCleanup(lambda other=other: other.process.poll() is None and other.stop())
        targets = self.make_targets(server)

        stop = threading.Event()
        openers = [Opener(processes, targets, SEARCHES // 4, stop) for _ in range(4)]
        for opener in openers:
            opener.start()
        wait_until(lambda: sum(len(opener.plans) for opener in openers) >= SEARCHES // 4 * 4, 120)
        for number in range(KILLS):
            time.sleep(random.uniform(0.3, 1.2))
            if ON == "remote" and number % 4 == 3:
                server.store.kill()
                server.store.start()
            else:
                random.choice(processes).kill_and_start()
        stop.set()
        for opener in openers:
            opener.join()
            if opener.failure:
                raise opener.failure

        ids = [search for opener in openers for search in opener.opened]
        answered = {search: what for opener in openers for search, what in opener.answered.items()}
        active = lambda: server.call("GET", "/manhunt/shop/searches?status=active&limit=1000")["searches"]
        wait_until(lambda: not active(), (REPEAT + 1) * (sum(DELAYS) + WAIT) + 3 * LEASE + 30)
        statuses, attempts, again = collections.Counter(), 0, 0
        for search in ids:
            found = self.settled(server, search)
            with self.subTest(search=search):
                # What ends a search is committed some time after the moment that it says: later, where the store was just killed.
                status, over = answered.get(search, (found["status"], moment(found["ended"]) + SLOWEST_COMMIT))
                self.assertEqual(status, found["status"], "what was acknowledged")
                self.check(found, gateway, over)
            statuses[found["status"]] += 1
            attempts += len(found["attempts"])
            again += sum(len(attempt["tries"]) > 1 for attempt in found["attempts"])
        self.assertGreater(len(ids), KILLS)
        print(f"{KILLS} kills, {len(ids)} searches ({dict(statuses)}), {attempts} attempts, of which {again} were tried more than once")

    def make_targets(self, server):
        def contact(name):
            methods = [{"type": kind, "destination": "+390611111111", "delay": seconds(delay)} for kind, delay in zip(("phone", "text", "phone"), DELAYS)]
            return server.call("POST", "/manhunt/shop/contacts", {"name": name, "methods": methods}, 201)["id"]

        people = [contact(name) for name in ("Ann", "Bob", "Cy")]
        steps = [{"wait": seconds(SECOND), "targets": [{"contact": people[0]}, {"contact": people[1]}]}, {"wait": seconds(WAIT), "targets": [{"contact": people[2]}]}]
        server.call("PUT", "/manhunt/shop/policies/all", {"steps": steps, "repeat": REPEAT})
        return [{"contact": people[0], "wait": seconds(WAIT), "repeat": REPEAT}] * 3 + [{"policy": "all"}]

    def check(self, found, gateway, over):
        ended = moment(found["ended"])
        tracks = collections.defaultdict(dict)
        for attempt in found["attempts"]:
            track, number = attempt["id"].rsplit(".", 1)
            tracks[track][int(number)] = attempt
            self.check_tries(found, attempt, gateway, over)
        for step in found["steps"]:
            for number in range(1, len(step["contacts"]) + 1):
                self.check_track(found, step, tracks[f"a{step['round']:02}.{step['step']:02}.{number:02}"], ended)
        if found["status"] == "failed":
            last = found["steps"][-1]
            self.assertEqual((found["resolution"]["how"], last["round"], last["step"]), ("exhausted", REPEAT + 1, 1 if "contact" in found else 2))
            self.assertEqual([len(attempts) for attempts in tracks.values()], [len(DELAYS)] * sum(len(step["contacts"]) for step in found["steps"]), "an attempt was left out")

    def settled(self, server, search):
        """As it is once the attempts are over that a dead process had begun: somebody may have answered before others take them over."""
        found = {}

        def is_over():
            found.update(server.call("GET", f"/manhunt/shop/searches/{search}"))
            return all(attempt["state"] != "sending" for attempt in found["attempts"])
        wait_until(is_over, 3 * LEASE)
        return found

    def check_track(self, found, step, attempts, ended):
        """In order, none early, and none left out that was due well before the end."""
        self.assertEqual(sorted(attempts), list(range(1, len(attempts) + 1)), "in order")
        began = moment(step["started"])
        for number, delay in enumerate(DELAYS, 1):
            if number not in attempts:
                self.assertLess(ended, began + delay + 3 * LEASE, f"attempt {number} was due")
                break
            started = moment(attempts[number]["started"])
            self.assertGreaterEqual(round(started - began - delay, 4), 0, f"attempt {number} was early")
            began = started

    def check_tries(self, found, attempt, gateway, over):
        self.assertNotEqual(attempt["state"], "sending", attempt)
        tries = attempt["tries"]
        self.assertLessEqual(moment(attempt["started"]), over, "begun after the end was acknowledged")
        for each in tries:
            self.assertLessEqual(moment(each["at"]), over, "tried after the end was acknowledged")
        self.assertNotIn("pending", [each["outcome"] for each in tries])
        for before in tries[:-1]:
            self.assertIn(before["outcome"], ("unknown", "failed"), "tried again without a reason")
        asked = gateway.asked[f"{found['id']}/{attempt['id']}"]
        self.assertLessEqual(asked, len(tries), "sent more often than its row says")
        self.assertGreaterEqual(asked, sum(each["outcome"] == "sent" for each in tries), "said to be sent, and was not")


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Events are appended by ones, by 3, by 150 and by 2,500, and deleted, on one process or on three that share a store, and
all of them are killed at random, the store too. Afterwards every batch that was acknowledged is there as it was
acknowledged, every other one is there as a whole or not at all, no number is missing or used twice, whoever wrote with an
old epoch or an old version was told so, and the order of all has every event once. JOURNAL_ON says where the events are:
embedded (one process alone) or store. TABELLA_CRASH_ROUNDS sets how many kills there are."""

import base64
import collections
import http.client
import json
import os
import random
import sys
import tempfile
import threading
import time
import unittest
import uuid

import boto3

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../outbox"))
from outbox_process import OutboxProcess
from server import Server, free_port, wait_until

ON = os.environ.get("JOURNAL_ON", "embedded")
LAYOUT = os.environ.get("JOURNAL_LAYOUT", "blocks")
KILLS = int(os.environ.get("TABELLA_CRASH_ROUNDS", "5"))
SIZES = (1, 1, 1, 3, 3, 3, 150, 2500)
SHARED = ("shared-1", "shared-2")    # many append, whatever is there
DELETED = ("deleted-1", "deleted-2")  # likewise, and somebody deletes
VERSIONED = "versioned"               # two append, each behind what it knows
FENCED = "fenced"                     # two append, each with an epoch of its own


class JournalProcess(OutboxProcess):
    def __init__(self, *options, log):
        self.http = free_port()
        self.options = [*options, "--systems", "journal", "--journal-layout", LAYOUT, "--http", f"127.0.0.1:{self.http}", "--smtp", "off", "--log-level", "warning"]
        self.log = log
        self.process = None


class Batch:
    """Events that were sent together, each of which says its place."""

    def __init__(self, pid, size, epoch=None):
        self.name, self.pid, self.size, self.epoch = str(uuid.uuid4()), pid, size, epoch
        self.first = None  # where it was acknowledged

    def events(self):
        return [{"data": {"batch": self.name, "index": index}} for index in range(self.size)]


class Client(threading.Thread):
    """Talks to any of the processes, until it is stopped."""

    def __init__(self, processes, stop):
        super().__init__()
        self.processes, self.stop = processes, stop
        self.sent = {}  # batches by name
        self.answers = collections.Counter()
        self.failure = None

    def run(self):
        try:
            while not self.stop.is_set():
                self.work()
                time.sleep(random.uniform(0, 0.05))
        except Exception as failure:
            self.failure = failure

    def ask(self, method, path, body=None):
        """The status and the answer; nothing where it was lost or the server does not know."""
        try:
            status, content = random.choice(self.processes).request(method, f"/journal/bank/{path}", body, {"Content-Type": "application/json"})
        except (OSError, http.client.HTTPException):
            self.answers["none"] += 1
            time.sleep(0.05)
            return None, None
        self.answers[status] += 1
        if status >= 500:
            return None, None
        return status, json.loads(content)

    def append(self, batch, /, **more):
        """What the server says."""
        self.sent[batch.name] = batch
        status, answer = self.ask("POST", f"{batch.pid}/events", {"events": batch.events(), **more})
        if status in (200, 201):
            if (answer["last"] - answer["first"] + 1, answer["repeated"]) != (batch.size, status == 200):
                raise AssertionError(f"{batch.size} events: {status} {answer}")
            if batch.first not in (None, answer["first"]):
                raise AssertionError(f"at {batch.first} before: {answer}")
            batch.first = answer["first"]
        elif status not in (None, 409):
            raise AssertionError(f"{status} {answer}")
        return status, answer

    def highest(self, pid):
        while not self.stop.is_set():
            status, answer = self.ask("GET", pid)
            if status == 200:
                return answer["highest"]
            if status == 404:
                return 0
        return 0


class Appender(Client):
    """Every second batch has an id, and is sent until it is answered."""

    def __init__(self, processes, stop, pids, sizes):
        super().__init__(processes, stop)
        self.pids, self.sizes = pids, sizes

    def work(self):
        batch = Batch(random.choice(self.pids), random.choice(self.sizes))
        if random.random() < 0.5:
            self.append(batch)
            return
        while not self.stop.is_set():
            status, answer = self.append(batch, batch=batch.name)
            if status == 409:
                raise AssertionError(answer)
            if status:
                return


class VersionedWriter(Client):
    """Appends behind what it knows, and is told where somebody else was faster."""

    def __init__(self, processes, stop):
        super().__init__(processes, stop)
        self.known = 0

    def work(self):
        batch = Batch(VERSIONED, random.choice((1, 3, 150)))
        batch.expected = self.known
        status, answer = self.append(batch, expected=self.known)
        if status == 409:
            if answer["conflict"] != "version" or answer["actual"] == self.known:
                raise AssertionError(answer)
            batch.refused = True
            self.known = answer["actual"]
        elif status:
            if answer["first"] != self.known + 1:
                raise AssertionError(f"behind {self.known}: {answer}")
            self.known = answer["last"]
        else:
            self.known = self.highest(VERSIONED)


class EpochWriter(Client):
    """Takes an epoch, and appends until it is told that somebody has a higher one."""

    def __init__(self, processes, stop):
        super().__init__(processes, stop)
        self.epoch = None
        self.told = 0

    def work(self):
        if self.epoch is None:
            time.sleep(random.uniform(0, 0.5))
            status, answer = self.ask("POST", f"{FENCED}/epoch")
            self.epoch = answer["epoch"] if status == 200 else None
            return
        batch = Batch(FENCED, random.choice((1, 3, 150, 2500)), self.epoch)
        status, answer = self.append(batch, epoch=self.epoch)
        if status == 409:
            if answer["conflict"] != "epoch" or answer["actual"] <= self.epoch:
                raise AssertionError(f"with epoch {self.epoch}: {answer}")
            batch.refused = True
            self.told += 1
            self.epoch = None


class Deleter(Client):
    def __init__(self, processes, stop):
        super().__init__(processes, stop)
        self.deleted = collections.Counter()  # by pid, how far it was acknowledged
        self.tried = collections.Counter()

    def work(self):
        time.sleep(random.uniform(0, 0.3))
        pid = random.choice(DELETED)
        highest = self.highest(pid)
        if highest == 0:
            return
        to = random.randint(1, highest)
        self.tried[pid] = max(self.tried[pid], to)
        status, answer = self.ask("DELETE", f"{pid}/events?to={to}" + random.choice(("", "&permanently")))
        if status == 200:
            if answer["deleted_to"] < to:
                raise AssertionError(f"{to}: {answer}")
            self.deleted[pid] = max(self.deleted[pid], answer["deleted_to"])
        elif status:
            raise AssertionError(f"{status} {answer}")


class Killed(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="tabella-kill-"))
        self.shared = []  # what the processes share, which is killed too
        where = self.prepare()
        self.processes = [JournalProcess(*where, log=os.path.join(self.folder, f"{number}.log")) for number in range(1 if ON == "embedded" else 3)]
        for process in self.processes:
            self.enterContext(process)
        self.killed = collections.Counter()

    def prepare(self):
        """How the processes are told where everything is."""
        if ON == "embedded":
            port = free_port()
            self.endpoint = f"http://127.0.0.1:{port}"
            return ["--data", os.path.join(self.folder, "data"), "--dynamodb", f"127.0.0.1:{port}"]
        key = os.path.join(self.folder, "key")
        with open(key, "w") as file:
            file.write(base64.b64encode(os.urandom(32)).decode())
        store = self.enterContext(Server(folder=os.path.join(self.folder, "store")))
        self.shared.append(store)
        self.endpoint = store.endpoint
        return ["--store", store.endpoint, "--create-tables", "--secret-key-file", key]

    def kill_at_random(self):
        for number in range(KILLS):
            time.sleep(random.uniform(0.5, 2))
            victim = self.shared[0] if self.shared and number % 2 else random.choice(self.processes)
            self.killed[type(victim).__name__] += 1
            victim.kill()
            victim.start()

    def test_every_batch_is_whole_or_not_there(self):
        stop = threading.Event()
        self.deleter = Deleter(self.processes, stop)
        self.fenced = [EpochWriter(self.processes, stop) for _ in range(2)]
        clients = [Appender(self.processes, stop, SHARED, SIZES), Appender(self.processes, stop, SHARED, SIZES),
                   Appender(self.processes, stop, DELETED, SIZES), Appender(self.processes, stop, ("alone",), (1,)),
                   VersionedWriter(self.processes, stop), VersionedWriter(self.processes, stop), *self.fenced, self.deleter]
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
        self.sent = {name: batch for client in clients for name, batch in client.sent.items()}
        self.append_to_each()
        self.histories = {pid: self.check_history(pid) for pid in (*SHARED, *DELETED, VERSIONED, FENCED, "alone")}
        self.check_versions()
        self.check_epochs()
        self.check_order()
        self.check_rows()
        self.report(clients)

    def any_process(self):
        return random.choice(self.processes)

    def append_to_each(self):
        """Which takes over what those who were killed have left."""
        for pid in (*SHARED, *DELETED, VERSIONED, FENCED, "alone"):
            batch = Batch(pid, 1)
            self.sent[batch.name] = batch
            wait_until(lambda: self.last_append(batch), 60)

    def last_append(self, batch):
        status, content = self.any_process().request("POST", f"/journal/bank/{batch.pid}/events", {"events": batch.events(), "batch": batch.name}, {"Content-Type": "application/json"})
        if status in (200, 201):
            batch.first = json.loads(content)["first"]
        return status in (200, 201)

    def lines(self, path):
        status, content = self.any_process().request("GET", f"/journal/bank/{path}", headers={"Accept": "application/x-ndjson"})
        self.assertEqual(status, 200, content[:500])
        return [json.loads(line) for line in content.splitlines()]

    def check_history(self, pid):
        """Its events; whole batches, those that were acknowledged where they were, each once."""
        extent = self.any_process().call("GET", f"/journal/bank/{pid}")
        events = self.lines(f"{pid}/events")
        self.assertEqual([event["number"] for event in events], list(range(extent["lowest"], extent["highest"] + 1)), pid)
        if pid in DELETED:
            self.assertGreater(extent["lowest"], self.deleter.deleted[pid])
            self.assertLessEqual(extent["lowest"], self.deleter.tried[pid] + 1)
        else:
            self.assertEqual(extent["lowest"], 1)
        found = {}
        at = 0
        while at < len(events):
            name, index = events[at]["data"]["batch"], events[at]["data"]["index"]
            self.assertIn(name, self.sent, "nobody's")
            batch = self.sent[name]
            self.assertNotIn(name, found, "twice")
            self.assertTrue(index == 0 or at == 0, f"{pid} {events[at]} begins in the middle")
            places = [(event["data"]["batch"], event["data"]["index"]) for event in events[at:at + batch.size - index]]
            self.assertEqual(places, [(name, place) for place in range(index, batch.size)], f"{pid}: not whole at {events[at]['number']}")
            first = events[at]["number"] - index
            self.assertIn(batch.first, (None, first), f"{pid}: acknowledged elsewhere")
            self.assertFalse(hasattr(batch, "refused"), f"{pid}: refused, and there at {first}")
            found[name] = batch
            at += batch.size - index
        for batch in self.sent.values():
            if batch.pid == pid and batch.first and batch.name not in found:
                self.assertLess(batch.first + batch.size - 1, extent["lowest"], f"{pid}: acknowledged and lost")
        return events

    def check_versions(self):
        """Whoever appended did so behind what it knew."""
        for event in self.histories[VERSIONED]:
            batch = self.sent[event["data"]["batch"]]
            if event["data"]["index"] == 0 and hasattr(batch, "expected"):
                self.assertEqual(event["number"], batch.expected + 1)

    def check_epochs(self):
        """Nobody wrote behind one with a higher epoch."""
        epochs = [event["epoch"] for event in self.histories[FENCED] if "epoch" in event]
        self.assertEqual(epochs, sorted(epochs))
        for event in self.histories[FENCED]:
            batch = self.sent[event["data"]["batch"]]
            self.assertEqual(event.get("epoch"), batch.epoch)

    def check_order(self):
        """It has all events that are there, once, and those of each entity in their order."""
        self.wait_for_order()
        placed = self.lines("all")
        positions = [event["position"] for event in placed]
        self.assertEqual(positions, sorted(set(positions)))
        by_pid = collections.defaultdict(list)
        for event in placed:
            by_pid[event["pid"]].append(event["number"])
        self.assertEqual(dict(by_pid), {pid: [event["number"] for event in events] for pid, events in self.histories.items() if events})
        # Without those that are deleted: each number that was ever given out has a position.
        highest = sum(events[-1]["number"] for events in self.histories.values())
        self.assertEqual(self.last_position(), highest)
        self.assertEqual(len(placed), sum(map(len, self.histories.values())))

    def last_position(self):
        return self.any_process().call("GET", "/journal/bank/all?limit=1")["last"]

    def wait_for_order(self):
        highest = sum(events[-1]["number"] for events in self.histories.values())
        deadline = time.monotonic() + 60
        while (last := self.last_position()) < highest:
            self.assertLess(time.monotonic(), deadline, f"{last} of {highest} events have positions")
            time.sleep(0.1)

    def check_rows(self):
        """Nothing is left behind the heads: no half of a batch that was never acknowledged."""
        tables = boto3.client("dynamodb", endpoint_url=self.endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        highest = {pid: events[-1]["number"] for pid, events in self.histories.items()}
        beyond = []
        for page in tables.get_paginator("scan").paginate(TableName="tabella-journal", ConsistentRead=True):
            for row in page["Items"]:
                if "writer_uuid" in row:
                    number = int((row.get("seq") or row["sequenceNr"])["N"])
                    pid = (row["par"] if "par" in row else row["key"])["S"].removeprefix("bank-P-").rsplit("-", 1)[0]
                    if number > highest[pid]:
                        beyond.append((pid, number))
        self.assertEqual(beyond, [])
        heads = [row for page in tables.get_paginator("scan").paginate(TableName="tabella-journal-heads", ConsistentRead=True) for row in page["Items"]]
        self.assertEqual([row for row in heads if "staged_id" in row], [])

    def report(self, clients):
        answers = collections.Counter()
        for client in clients:
            answers.update(client.answers)
        there = {event["data"]["batch"] for events in self.histories.values() for event in events}
        unknown = [batch for batch in self.sent.values() if batch.first is None and not hasattr(batch, "refused")]
        sizes = collections.Counter(batch.size for batch in self.sent.values() if batch.first)
        print(f"{ON}, {LAYOUT}: {dict(self.killed)} killed; {sum(1 for batch in self.sent.values() if batch.first)} batches acknowledged ({dict(sizes)}), "
              f"{len(unknown)} without an answer, of which {sum(1 for batch in unknown if batch.name in there)} are there; "
              f"{sum(client.told for client in self.fenced)} writers told of a higher epoch; answers {dict(answers)}; "
              f"{sum(map(len, self.histories.values()))} events of {self.last_position()} positions", file=sys.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

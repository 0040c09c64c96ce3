"""Three processes on one endpoint share a stream, and a schedule, through remote Stores. They are killed and started again
at random, and so is the Tabella that they all use. TABELLA_CRASH_ROUNDS sets how many kills there are."""

import collections
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import boto3
from botocore.config import Config

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from server import Server, wait_until

WORKER = os.environ["WORKER"]
KILLS = int(os.environ.get("TABELLA_CRASH_ROUNDS", "12"))
TIMERS = 10_000


class Workers:
    """Three processes of one mode, of which any may be killed at any time."""

    def __init__(self, mode, endpoint, log):
        self.command = [WORKER, mode, endpoint, log]
        self.killed = set()
        self.processes = [self.start() for _ in range(3)]

    def start(self):
        process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "running\n"
        return process

    def kill(self, process):
        process.kill()
        process.wait()
        process.stdout.close()
        self.killed.add(process.pid)

    def kill_one(self):
        place = random.randrange(3)
        self.kill(self.processes[place])
        time.sleep(random.uniform(0, 0.3))
        self.processes[place] = self.start()

    def kill_all(self):
        for process in self.processes:
            self.kill(process)


class ProcessesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tabella-processes-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.log = os.path.join(self.folder, "log")
        open(self.log, "w").close()
        self.server = Server(folder=os.path.join(self.folder, "data"))
        self.server.start()
        self.addCleanup(self.server.kill)
        self.client = boto3.client("dynamodb", endpoint_url=self.server.endpoint, region_name="us-east-1", aws_access_key_id="a",
                                   aws_secret_access_key="b", config=Config(retries={"max_attempts": 20, "mode": "standard"}))

    def restart_server(self):
        self.server.kill()
        self.server.start()

    def lines(self):
        with open(self.log) as log:
            return [line.split() for line in log.read().splitlines()]

    def kill_at_random(self, workers, server_too):
        for number in range(KILLS):
            time.sleep(random.uniform(0.1, 0.7))
            if server_too and number % 4 == 3:
                self.restart_server()
            else:
                workers.kill_one()

    def test_no_record_is_skipped(self):
        self.client.create_table(TableName="items", KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
                                 AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}], BillingMode="PAY_PER_REQUEST",
                                 StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
        workers = Workers("consume", self.server.endpoint, self.log)
        self.addCleanup(workers.kill_all)
        stop = threading.Event()

        def write():
            while not stop.is_set():
                self.client.update_item(TableName="items", Key={"pk": {"S": str(random.randrange(20))}}, UpdateExpression="ADD v :one",
                                        ExpressionAttributeValues={":one": {"N": "1"}})

        writers = [threading.Thread(target=write) for _ in range(3)]
        for writer in writers:
            writer.start()
        try:
            self.kill_at_random(workers, server_too=True)
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        versions = {item["pk"]["S"]: int(item["v"]["N"]) for item in self.client.scan(TableName="items", ConsistentRead=True)["Items"]}

        def handled():
            last = {}
            for item, version in self.lines():
                before = last.get(item, 0)
                self.assertLessEqual(int(version), before + 1, f"item {item} went from {before} to {version}: a record was skipped")
                last[item] = max(before, int(version))
            return last

        wait_until(lambda: handled() == versions, 60)
        records, total = sum(versions.values()), len(self.lines())
        print(f"{KILLS} kills, {records} records, {total - records} handled again", file=sys.stderr)
        self.assertGreater(records, 100)

    def test_every_timer_is_handled_once_unless_its_process_died(self):
        workers = Workers("fire", self.server.endpoint, self.log)
        self.addCleanup(workers.kill_all)
        wait_until(lambda: "timers" in self.client.list_tables()["TableNames"])
        setter = subprocess.Popen([WORKER, "set", self.server.endpoint, str(TIMERS), "5000"])
        self.kill_at_random(workers, server_too=True)
        self.assertEqual(setter.wait(120), 0)
        wait_until(lambda: len({line[1] for line in self.lines() if line[0] == "end"}) == TIMERS, 120)
        time.sleep(1)  # whatever might come twice

        begun = collections.defaultdict(list)
        for what, timer, attempt, pid in self.lines():
            if what == "begin":
                begun[timer].append((int(attempt), int(pid)))
        again = 0
        for timer, attempts in begun.items():
            for number, (attempt, pid) in enumerate(attempts):
                self.assertGreaterEqual(attempt, number + 1, f"{timer} was handled again and it did not say so: {attempts}")
                if number + 1 < len(attempts):
                    self.assertIn(pid, workers.killed, f"{timer} was handled again, and nobody had died: {attempts}")
                    again += 1
        print(f"{KILLS} kills, {TIMERS} timers, {again} handled again", file=sys.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Kills the server under load, then damages copies of its folder: a byte flipped, a file cut, a file removed, in every
kind of file. Each damage is either harmless (the store opens, and everything acknowledged is there) or said, by the start
and by `tabella verify` alike, and then nothing in the folder was changed. `tabella salvage` gets out what can be read.
TABELLA_DAMAGE_ROUNDS sets how many kills, each followed by DAMAGES damages."""

import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from server import BINARY, Server  # noqa: E402
from test_kill import Client  # noqa: E402

ROUNDS = int(os.environ.get("TABELLA_DAMAGE_ROUNDS", "6"))
DAMAGES = 12
KINDS = {"wal": ".log", "manifest": "MANIFEST", "sorted": ".sst", "blob": ".blob", "current": "CURRENT", "watermark": "WATERMARK"}


def snapshot(folder):
    """What is in a folder, but for what RocksDB keeps for people to read."""
    content = {}
    for name in os.listdir(folder):
        if name.startswith(("LOG", "LOCK")):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            content[name] = file.read()
    return content


def files_of(folder, kind):
    return sorted(name for name in os.listdir(folder) if KINDS[kind] in name)


def damage(folder, choose):
    """Damages one file; says what was done, or None if there was nothing to damage."""
    kind = choose.choice(list(KINDS))
    names = files_of(folder, kind)
    if not names:
        return None
    path = os.path.join(folder, choose.choice(names))
    size = os.path.getsize(path)
    how = choose.choice(["flip", "flip", "cut", "remove"])
    if how == "remove":
        os.remove(path)
    elif size == 0:
        return None
    elif how == "cut":
        os.truncate(path, choose.randrange(size))
    else:
        at = choose.randrange(size)
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ (1 << choose.randrange(8))]))
        how = f"flip at {at} of {size}"
    return f"{how}: {os.path.basename(path)}"


class Load(threading.Thread):
    """Puts items, small and large, and remembers what was acknowledged and what was tried last."""

    def __init__(self, number, port, state):
        super().__init__()
        self.number, self.port, self.state = number, port, state

    def run(self):
        client = Client(self.port)
        choose = random.Random()
        try:
            while True:
                key = f"{self.number}-{choose.randrange(200)}"
                entry = self.state.setdefault(key, {"acknowledged": None, "tried": None})
                version = entry["tried"] = (entry["tried"] or 0) + 1
                size = choose.choice([10, 200, 200, 6000, 40_000])
                client.call("PutItem", TableName="load", Item={"pk": {"S": key}, "v": {"N": str(version)}, "grp": {"S": f"g{version % 5}"},
                                                              "x": {"S": "x" * size}})
                entry["acknowledged"] = version
        except (OSError, http.client.HTTPException):
            pass


class DamageTest(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="tabella-damage-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.state = {}

    def verify(self, folder):
        return subprocess.run([BINARY, "verify", folder], capture_output=True, text=True, timeout=120)

    def check_all_there(self, server, what):
        client = Client(server.port)
        found, start = {}, {}
        while True:
            page = client.call("Scan", TableName="load", **start)
            found.update({item["pk"]["S"]: (int(item["v"]["N"]), item) for item in page["Items"]})
            if "LastEvaluatedKey" not in page:
                break
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
        for key, entry in self.state.items():
            if entry["acknowledged"] is None:
                continue
            self.assertIn(key, found, what)
            self.assertIn(found[key][0], range(entry["acknowledged"], entry["tried"] + 1), what)

    def load_and_kill(self, folder, seconds):
        server = Server(folder=folder)
        server.start()
        client = Client(server.port)
        if not any(name == "load" for name in client.call("ListTables")["TableNames"]):
            client.call("CreateTable", TableName="load", BillingMode="PAY_PER_REQUEST",
                        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "grp", "AttributeType": "S"}],
                        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
                        GlobalSecondaryIndexes=[{"IndexName": "by_group", "KeySchema": [{"AttributeName": "grp", "KeyType": "HASH"}],
                                                 "Projection": {"ProjectionType": "KEYS_ONLY"}}])
        loads = [Load(n, server.port, self.state) for n in range(6)]
        for load in loads:
            load.start()
        time.sleep(seconds)
        server.kill()
        for load in loads:
            load.join()

    def start_says(self, folder):
        """What a start on the folder says: None if it serves."""
        server = Server(folder=folder)
        process = subprocess.Popen([BINARY, "serve", "--data", folder, "--dynamodb", f"127.0.0.1:{server.port}", *server.options],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        if "serves DynamoDB" in line:
            server.process = process
            return None, server
        _, text = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, text)
        return text, None

    def test_no_damage_is_silent(self):
        choose = random.Random(int(os.environ.get("TABELLA_DAMAGE_SEED", random.randrange(10 ** 6))))
        folder = os.path.join(self.work, "store")
        said = harmless = 0
        for n in range(ROUNDS):
            self.load_and_kill(folder, choose.uniform(0.3, 1.5))
            for _ in range(DAMAGES):
                copy = os.path.join(self.work, "copy")
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(folder, copy)
                what = damage(copy, choose)
                if what is None:
                    continue
                before = snapshot(copy)
                verified = self.verify(copy)
                self.assertIn(verified.returncode, (0, 1, 2), f"{what}: {verified.stderr}")
                self.assertEqual(snapshot(copy), before, f"verify changed something after {what}")
                text, server = self.start_says(copy)
                if text is None:
                    try:
                        self.assertEqual(verified.returncode, 0, f"{what}: only verify said {verified.stdout}")
                        self.check_all_there(server, what)
                    finally:
                        server.kill()
                    harmless += 1
                else:
                    self.assertNotEqual(verified.returncode, 0, f"{what}: only the start said {text}")
                    self.assertIn("tabella: ", text)
                    self.assertEqual(snapshot(copy), before, f"the start changed something after {what}")
                    said += 1
        print(f"{ROUNDS} kills, {said} damages said, {harmless} harmless", file=sys.stderr)
        self.assertGreater(said, 0)

    def test_a_byte_in_the_middle_of_the_log_is_said_with_its_place(self):
        folder = os.path.join(self.work, "store")
        self.load_and_kill(folder, 0.8)
        newest = max((os.path.join(folder, name) for name in files_of(folder, "wal")), key=os.path.getsize)
        with open(newest, "r+b") as file:
            file.seek(os.path.getsize(newest) // 2)
            file.write(b"\xff\x00\xff")
        text, server = self.start_says(folder)
        if server:
            server.kill()
        self.assertIsNotNone(text)
        self.assertIn(os.path.basename(newest), text)
        self.assertIn("damaged at byte", text)
        self.assertIn("salvage", text)

    def test_a_log_that_nothing_needs_any_more_is_no_gap(self):
        folder = os.path.join(self.work, "store")
        self.load_and_kill(folder, 0.3)
        old = files_of(folder, "wal")[-1]
        shutil.copy(os.path.join(folder, old), self.work)
        for _ in range(2):
            self.load_and_kill(folder, 0.3)
        self.assertNotIn(old, files_of(folder, "wal"))
        shutil.copy(os.path.join(self.work, old), folder)  # a kill may leave it, and not the one after it
        verified = self.verify(folder)
        self.assertEqual(verified.returncode, 0, verified.stdout)
        text, server = self.start_says(folder)
        self.assertIsNone(text)
        self.check_all_there(server, "an old log")
        server.kill()

    def test_salvage_gets_out_what_can_be_read(self):
        for kind in ("wal", "manifest", "current", "sorted", "blob"):
            with self.subTest(kind=kind):
                self.state = {}
                folder, fresh = (os.path.join(self.work, f"{kind}-{name}") for name in ("store", "fresh"))
                self.load_and_kill(folder, 1.0)
                with Server(folder=folder) as server:  # what was written is in sorted files then
                    client = Client(server.port)
                    total = client.call("Scan", TableName="load", Select="COUNT")["Count"]
                    time.sleep(1)
                if kind in ("current", "manifest"):
                    os.remove(os.path.join(folder, files_of(folder, kind)[-1]))
                else:
                    files = files_of(folder, kind)
                    self.assertTrue(files, kind)
                    path = os.path.join(folder, max(files, key=lambda name: os.path.getsize(os.path.join(folder, name))))
                    with open(path, "r+b") as file:
                        file.seek(os.path.getsize(path) // 2)
                        file.write(b"\xff\x00\xff\x00")
                before = snapshot(folder)
                done = subprocess.run([BINARY, "salvage", folder, fresh], capture_output=True, text=True, timeout=120)
                self.assertIn(done.returncode, (0, 1), done.stderr)
                self.assertEqual(snapshot(folder), before)
                self.assertEqual(self.verify(fresh).returncode, 0, self.verify(fresh).stdout)
                with Server(folder=fresh) as server:
                    client = Client(server.port)
                    count, start = 0, {}
                    while True:
                        page = client.call("Scan", TableName="load", Select="COUNT", **start)
                        count += page["Count"]
                        if "LastEvaluatedKey" not in page:
                            break
                        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
                    self.assertGreater(count, 0, done.stdout)
                    by_group = client.call("Query", TableName="load", IndexName="by_group", KeyConditionExpression="grp = :g",
                                           ExpressionAttributeValues={":g": {"S": "g1"}})
                    self.assertGreater(by_group["Count"], 0)
                # One place was damaged: a block, or a few records.
                self.assertGreaterEqual(count, total if kind in ("current", "manifest") else total * 2 // 3, done.stdout)

    def test_large_items_verify_well_after_a_stop(self):
        folder = os.path.join(self.work, "store")
        with Server(folder=folder) as server:
            client = Client(server.port)
            client.call("CreateTable", TableName="load", BillingMode="PAY_PER_REQUEST",
                        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}], KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}])
            for n in range(400):
                client.call("PutItem", TableName="load", Item={"pk": {"S": str(n)}, "x": {"S": "x" * (4096 + n)}})
            time.sleep(1)  # until it is in files
        verified = self.verify(folder)
        self.assertEqual(verified.returncode, 0, verified.stdout)
        self.assertIn("items: 400", verified.stdout)


if __name__ == "__main__":
    unittest.main()

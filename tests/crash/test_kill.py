"""Kills the server at random moments under concurrent load, many rounds, and counts: every acknowledged write is there,
none is half applied, and every index equals what a rebuild would give. TABELLA_CRASH_ROUNDS sets how many rounds."""

import http.client
import json
import os
import random
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from server import Server  # noqa: E402

ROUNDS = int(os.environ.get("TABELLA_CRASH_ROUNDS", "12"))
WORKERS = 12
COUNTERS = 4
HEADERS = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Date": "20260101T000000Z",
           "Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"}


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def call(self, operation, **body):
        self.connection.request("POST", "/", json.dumps(body), {**HEADERS, "X-Amz-Target": f"DynamoDB_20120810.{operation}"})
        response = self.connection.getresponse()
        answer = json.loads(response.read() or "{}")
        if response.status != 200:
            raise AssertionError(f"{operation}: {answer}")
        return answer

    def scan(self, **options):
        items, start = [], {}
        while True:
            page = self.call("Scan", TableName="load", **options, **start)
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                return items
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


class Worker(threading.Thread):
    """Writes to keys of its own and to shared counters, and remembers what was acknowledged and what was tried last."""

    def __init__(self, number, port, state, counts):
        super().__init__()
        self.number, self.port, self.state, self.counts = number, port, state, counts
        self.failure = None

    def run(self):
        client = Client(self.port)
        choose = random.Random()
        try:
            while True:
                self.one(client, choose)
        except (OSError, http.client.HTTPException):
            pass  # the server is gone
        except AssertionError as failure:
            self.failure = failure
        finally:
            client.connection.close()

    def one(self, client, choose):
        if choose.random() < 0.3:
            return self.increment(client, choose)
        key = f"w{self.number}-{choose.randrange(60)}"
        entry = self.state.setdefault(key, {"acknowledged": None, "tried": []})
        version = entry["version"] = entry.get("version", 0) + 1
        value = None if choose.random() < 0.15 else version
        entry["tried"].append(value)
        if value is None:
            client.call("DeleteItem", TableName="load", Key={"pk": {"S": key}})
        elif choose.random() < 0.5:
            client.call("PutItem", TableName="load", Item=item(key, version, choose.randrange(5)))
        else:
            client.call("UpdateItem", TableName="load", Key={"pk": {"S": key}},
                        UpdateExpression="SET a = :v, b = :v, grp = :g, filler = :p", ExpressionAttributeValues={
                            ":v": {"N": str(version)}, ":g": {"S": f"g{choose.randrange(5)}"}, ":p": {"S": "x" * 200}})
        entry["acknowledged"], entry["tried"] = value, []

    def increment(self, client, choose):
        counter = f"counter-{choose.randrange(COUNTERS)}"
        count = self.counts.setdefault((self.number, counter), [0, 0])
        count[1] += 1
        client.call("UpdateItem", TableName="load", Key={"pk": {"S": counter}}, UpdateExpression="ADD n :one",
                    ExpressionAttributeValues={":one": {"N": "1"}})
        count[0] += 1


def item(key, version, group):
    return {"pk": {"S": key}, "a": {"N": str(version)}, "b": {"N": str(version)}, "grp": {"S": f"g{group}"}, "filler": {"S": "x" * 200}}


class KillTest(unittest.TestCase):
    def test_acknowledged_writes_survive_kills(self):
        server = Server()
        server.start()
        Client(server.port).call(
            "CreateTable", TableName="load", BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "grp", "AttributeType": "S"},
                                  {"AttributeName": "a", "AttributeType": "N"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            GlobalSecondaryIndexes=[{"IndexName": "by_group", "Projection": {"ProjectionType": "ALL"},
                                     "KeySchema": [{"AttributeName": "grp", "KeyType": "HASH"}, {"AttributeName": "a", "KeyType": "RANGE"}]}])
        states = [{} for _ in range(WORKERS)]
        counts = {}
        for round_number in range(ROUNDS):
            if round_number == ROUNDS // 2:
                self.add_index(server)  # its backfill is cut short by the next kill
            workers = [Worker(n, server.port, states[n], counts) for n in range(WORKERS)]
            for worker in workers:
                worker.start()
            time.sleep(random.uniform(0.05, 0.5))
            server.kill()
            for worker in workers:
                worker.join()
                self.assertIsNone(worker.failure)
            server.start()
            client = Client(server.port)
            self.check(client, states, counts)
            client.connection.close()
        print(f"{ROUNDS} kills, {sum(len(s) for s in states)} keys, {sum(c[0] for c in counts.values())} increments", file=sys.stderr)
        self.assertEqual(server.stop(), 0)
        server.__exit__()

    def add_index(self, server):
        Client(server.port).call(
            "UpdateTable", TableName="load", AttributeDefinitions=[{"AttributeName": "b", "AttributeType": "N"}],
            GlobalSecondaryIndexUpdates=[{"Create": {"IndexName": "by_b", "Projection": {"ProjectionType": "KEYS_ONLY"},
                                                     "KeySchema": [{"AttributeName": "b", "KeyType": "HASH"}]}}])

    def check(self, client, states, counts):
        items = {entry["pk"]["S"]: entry for entry in client.scan(ConsistentRead=True)}
        for state in states:
            for key, entry in state.items():
                found = items.get(key)
                value = int(found["a"]["N"]) if found else None
                possible = [entry["acknowledged"], *entry["tried"]]
                self.assertIn(value, possible, f"{key}: acknowledged {entry['acknowledged']}, unanswered {entry['tried']}")
                if found:
                    self.assertEqual(found["a"], found["b"], "half applied")
                entry["acknowledged"], entry["tried"] = value, []
        for counter in {name for _, name in counts}:
            acknowledged = sum(count[0] for (_, name), count in counts.items() if name == counter)
            tried = sum(count[1] for (_, name), count in counts.items() if name == counter)
            found = int(items[counter]["n"]["N"]) if counter in items else 0
            self.assertTrue(acknowledged <= found <= tried, f"{counter}: {acknowledged} acknowledged, {found} found, {tried} tried")
        self.check_indexes(client, items)

    def check_indexes(self, client, items):
        while True:
            table = client.call("DescribeTable", TableName="load")["Table"]
            if all(index["IndexStatus"] == "ACTIVE" for index in table["GlobalSecondaryIndexes"]):
                break
            time.sleep(0.01)
        self.assertEqual(table["ItemCount"], len(items))
        indexed = {key: entry for key, entry in items.items() if "grp" in entry}
        entries = client.scan(IndexName="by_group")
        self.assertEqual({entry["pk"]["S"]: entry for entry in entries}, indexed)
        self.assertEqual(len(entries), len(indexed), "an entry was left behind")
        for index in table["GlobalSecondaryIndexes"]:
            self.assertEqual(index["ItemCount"], len(indexed), index["IndexName"])
        if len(table["GlobalSecondaryIndexes"]) > 1:
            entries = client.scan(IndexName="by_b")
            self.assertEqual(sorted((e["pk"]["S"], e["b"]["N"]) for e in entries),
                             sorted((key, entry["b"]["N"]) for key, entry in indexed.items()))


if __name__ == "__main__":
    unittest.main(verbosity=2)

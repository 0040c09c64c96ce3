"""Kills the server at random moments under concurrent load, many rounds, and counts: every acknowledged write is there,
none is half applied, every index equals what a rebuild would give, a transaction is done wholly and once for its token,
the stream has one record for every change and none for a lost one, and what was due is deleted. `tabella verify` finds
nothing wrong after any kill. TABELLA_CRASH_ROUNDS sets how many rounds."""

import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time
import unittest
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from server import BINARY, Server, wait_until  # noqa: E402

ROUNDS = int(os.environ.get("TABELLA_CRASH_ROUNDS", "12"))
WORKERS = 12
COUNTERS = 4
HEADERS = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Date": "20260101T000000Z",
           "Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"}


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def call(self, operation, service="DynamoDB", **body):
        self.connection.request("POST", "/", json.dumps(body), {**HEADERS, "X-Amz-Target": f"{service}_20120810.{operation}"})
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

    def records(self):
        """All records of the stream, those of each item in their order."""
        arn = self.call("DescribeTable", TableName="load")["Table"]["LatestStreamArn"]
        shards, start = [], {}
        while True:
            stream = self.call("DescribeStream", "DynamoDBStreams", StreamArn=arn, **start)["StreamDescription"]
            shards += stream["Shards"]
            if "LastEvaluatedShardId" not in stream:
                break
            start = {"ExclusiveStartShardId": stream["LastEvaluatedShardId"]}
        records = []
        for shard in shards:
            iterator = self.call("GetShardIterator", "DynamoDBStreams", StreamArn=arn, ShardId=shard["ShardId"],
                                 ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
            while iterator:
                page = self.call("GetRecords", "DynamoDBStreams", ShardIterator=iterator)
                records += page["Records"]
                iterator = page.get("NextShardIterator") if page["Records"] else None
        return records


class Worker(threading.Thread):
    """Writes to keys of its own and to shared counters, and remembers what was acknowledged and what was tried last."""

    def __init__(self, number, port, state, counts, history, transfers):
        super().__init__()
        self.number, self.port, self.state, self.counts, self.history, self.transfers = number, port, state, counts, history, transfers
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
        kind = choose.random()
        if kind < 0.2:
            return self.increment(client, choose)
        if kind < 0.35:
            return self.transfer(client)
        if kind < 0.4:
            return self.expire(client, choose)
        key = f"w{self.number}-{choose.randrange(60)}"
        entry = self.state.setdefault(key, {"acknowledged": None, "tried": []})
        version = entry["version"] = entry.get("version", 0) + 1
        value = None if choose.random() < 0.15 else version
        entry["tried"].append(value)
        if value is not None:
            self.history["tried"].add((key, value))
        if value is None:
            client.call("DeleteItem", TableName="load", Key={"pk": {"S": key}})
        elif choose.random() < 0.5:
            client.call("PutItem", TableName="load", Item=item(key, version, choose.randrange(5)))
        else:
            client.call("UpdateItem", TableName="load", Key={"pk": {"S": key}},
                        UpdateExpression="SET a = :v, b = :v, grp = :g, filler = :p", ExpressionAttributeValues={
                            ":v": {"N": str(version)}, ":g": {"S": f"g{choose.randrange(5)}"}, ":p": {"S": "x" * 200}})
        entry["acknowledged"], entry["tried"] = value, []
        if value is not None:
            self.history["acknowledged"].add((key, value))

    def transfer(self, client):
        """Adds to two counters in two tables, once for each token: what was not answered is sent again after the kill."""
        token = self.transfers["pending"] = self.transfers["pending"] or str(uuid.uuid4())
        client.call("TransactWriteItems", ClientRequestToken=token, TransactItems=[
            {"Update": {"TableName": table, "Key": {"pk": {"S": f"transfers-{self.number}"}}, "UpdateExpression": "ADD n :one",
                        "ExpressionAttributeValues": {":one": {"N": "1"}}}} for table in ("load", "other")])
        self.transfers["pending"] = None
        self.transfers["done"] += 1

    def expire(self, client, choose):
        key = f"due-{self.number}-{choose.randrange(10**9)}"
        client.call("PutItem", TableName="load", Item={"pk": {"S": key}, "exp": {"N": str(int(time.time()) + choose.randrange(-3, 1))}})
        self.history["due"].add(key)

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
        client = Client(server.port)
        client.call(
            "CreateTable", TableName="load", BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "grp", "AttributeType": "S"},
                                  {"AttributeName": "a", "AttributeType": "N"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            GlobalSecondaryIndexes=[{"IndexName": "by_group", "Projection": {"ProjectionType": "ALL"},
                                     "KeySchema": [{"AttributeName": "grp", "KeyType": "HASH"}, {"AttributeName": "a", "KeyType": "RANGE"}]}])
        client.call("UpdateTimeToLive", TableName="load", TimeToLiveSpecification={"Enabled": True, "AttributeName": "exp"})
        client.call("CreateTable", TableName="other", BillingMode="PAY_PER_REQUEST",
                    AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}], KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}])
        states = [{} for _ in range(WORKERS)]
        histories = [{"acknowledged": set(), "tried": set(), "due": set()} for _ in range(WORKERS)]
        transfers = [{"pending": None, "done": 0} for _ in range(WORKERS)]
        counts = {}
        for round_number in range(ROUNDS):
            if round_number == ROUNDS // 2:
                self.add_index(server)  # its backfill is cut short by the next kill
            workers = [Worker(n, server.port, states[n], counts, histories[n], transfers[n]) for n in range(WORKERS)]
            for worker in workers:
                worker.start()
            time.sleep(random.uniform(0.05, 0.5))
            server.kill()
            for worker in workers:
                worker.join()
                self.assertIsNone(worker.failure)
            self.verify(server)
            server.start()
            client = Client(server.port)
            self.check(client, states, counts)
            self.check_transfers(client, transfers, workers)
            client.connection.close()
        client = Client(server.port)
        records = client.records()
        self.check_stream(records, histories)
        print(f"{ROUNDS} kills, {sum(len(s) for s in states)} keys, {sum(c[0] for c in counts.values())} increments, "
              f"{sum(t['done'] for t in transfers)} transactions, {len(records)} records, "
              f"{sum(len(h['due']) for h in histories)} expired", file=sys.stderr)
        client.connection.close()
        self.assertEqual(server.stop(), 0)
        self.verify(server)
        server.__exit__()

    def verify(self, server):
        verified = subprocess.run([BINARY, "verify", server.folder], capture_output=True, text=True)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)

    def check_transfers(self, client, transfers, workers):
        """Both counters are the same, and what had no answer is done once, whether it was done before the kill or not."""
        for number, transfer in enumerate(transfers):
            if transfer["pending"]:
                workers[number].transfer(client)
            found = [int(client.call("GetItem", TableName=table, Key={"pk": {"S": f"transfers-{number}"}}).get("Item", {"n": {"N": "0"}})["n"]["N"])
                     for table in ("load", "other")]
            self.assertEqual(found, [transfer["done"]] * 2, f"transfers of worker {number}")

    def check_stream(self, records, histories):
        seen, expired = {}, set()
        for record in records:
            key = record["dynamodb"]["Keys"]["pk"]["S"]
            image = record["dynamodb"].get("NewImage", {})
            if "a" in image:
                seen[key, int(image["a"]["N"])] = seen.get((key, int(image["a"]["N"])), 0) + 1
            if record.get("userIdentity") == {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}:
                expired.add(key)
        for history in histories:
            self.assertEqual([change for change in history["acknowledged"] if seen.get(change) != 1], [], "acknowledged, but not once in the stream")
            self.assertEqual(history["due"] - expired, set(), "deleted, but not by the service")
        tried = set().union(*(history["tried"] for history in histories))
        self.assertEqual(set(seen) - tried, set(), "a record of a change that nobody made")

    def add_index(self, server):
        Client(server.port).call(
            "UpdateTable", TableName="load", AttributeDefinitions=[{"AttributeName": "b", "AttributeType": "N"}],
            GlobalSecondaryIndexUpdates=[{"Create": {"IndexName": "by_b", "Projection": {"ProjectionType": "KEYS_ONLY"},
                                                     "KeySchema": [{"AttributeName": "b", "KeyType": "HASH"}]}}])

    def check(self, client, states, counts):
        wait_until(lambda: not any(entry["pk"]["S"].startswith("due-") for entry in client.scan(ConsistentRead=True)))
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

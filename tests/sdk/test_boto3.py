"""boto3, client and resource, unchanged, against the real binary with default settings."""

import decimal
import hashlib
import json
import os
import sys
import time
import unittest
import urllib.error
import urllib.request

import boto3
from boto3.dynamodb.conditions import Attr, Key
from boto3.dynamodb.types import Binary
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from server import Server, wait_until  # noqa: E402

SETTINGS = dict(region_name="eu-central-1", aws_access_key_id="anything", aws_secret_access_key="at-all")
AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"


def post(url, body, headers):
    """The name and the message of the error that the answer is; None and the answer if it is none."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as response:
            return None, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            answer = json.load(error)
        return answer["__type"].split("#")[-1], answer.get("message") or answer.get("Message") or ""


class Boto3Test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.client = boto3.client("dynamodb", endpoint_url=cls.server.endpoint, **SETTINGS)
        cls.streams = boto3.client("dynamodbstreams", endpoint_url=cls.server.endpoint, **SETTINGS)
        cls.resource = boto3.resource("dynamodb", endpoint_url=cls.server.endpoint, **SETTINGS)
        cls.table = cls.resource.create_table(
            TableName="orders", BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": n, "AttributeType": t}
                                  for n, t in (("customer", "S"), ("number", "N"), ("state", "S"))],
            KeySchema=[{"AttributeName": "customer", "KeyType": "HASH"}, {"AttributeName": "number", "KeyType": "RANGE"}],
            GlobalSecondaryIndexes=[{"IndexName": "by_state", "Projection": {"ProjectionType": "ALL"},
                                     "KeySchema": [{"AttributeName": "state", "KeyType": "HASH"},
                                                   {"AttributeName": "number", "KeyType": "RANGE"}]}])
        cls.table.wait_until_exists()
        with cls.table.batch_writer() as batch:
            for n in range(120):
                batch.put_item(Item={"customer": f"c{n % 3}", "number": n, "state": "open" if n % 2 else "done",
                                     "text": "x" * 20_000})

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.streams.close()
        assert cls.server.stop() == 0

    def test_keeps_every_type(self):
        item = {"customer": "types", "number": decimal.Decimal("1.5"), "set": {"a", "b"}, "numbers": {1, 2},
                "binary": b"\x00\xff", "list": [1, "two", None, True, {"deep": []}], "empty": ""}
        self.table.put_item(Item=item)
        found = self.table.get_item(Key={"customer": "types", "number": decimal.Decimal("1.5")}, ConsistentRead=True)["Item"]
        item["binary"] = Binary(b"\x00\xff")
        self.assertEqual(found, item)

    def test_queries_with_conditions_filters_and_pages(self):
        pages = list(self.client.get_paginator("query").paginate(
            TableName="orders", KeyConditionExpression="customer = :c", ExpressionAttributeValues={":c": {"S": "c1"}},
            ScanIndexForward=False, PaginationConfig={"PageSize": 7}))
        numbers = [int(item["number"]["N"]) for page in pages for item in page["Items"]]
        self.assertEqual(numbers, sorted(range(1, 120, 3), reverse=True))
        self.assertGreater(len(pages), 5)
        found = self.table.query(KeyConditionExpression=Key("customer").eq("c0") & Key("number").between(30, 60),
                                 FilterExpression=Attr("state").eq("open"), ProjectionExpression="#n",
                                 ExpressionAttributeNames={"#n": "number"})
        self.assertEqual([int(i["number"]) for i in found["Items"]], [33, 39, 45, 51, 57])

    def test_queries_an_index(self):
        found = self.table.query(IndexName="by_state", KeyConditionExpression=Key("state").eq("open") & Key("number").lt(10))
        self.assertEqual([int(i["number"]) for i in found["Items"]], [1, 3, 5, 7, 9])

    def test_scans_with_a_paginator_and_in_parallel(self):
        count = sum(len(page["Items"]) for page in self.client.get_paginator("scan").paginate(
            TableName="orders", FilterExpression="begins_with(customer, :c)", ExpressionAttributeValues={":c": {"S": "c"}}))
        self.assertEqual(count, 120)
        segments = [self.client.scan(TableName="orders", Segment=s, TotalSegments=4, Select="COUNT")["Count"] for s in range(4)]
        self.assertGreater(min(segments), -1)

    def test_updates_conditionally(self):
        key = {"customer": "conditional", "number": 1}
        self.table.put_item(Item={**key, "version": 1, "tags": {"a"}}, ConditionExpression=Attr("customer").not_exists())
        with self.assertRaises(self.client.exceptions.ConditionalCheckFailedException) as failure:
            self.table.put_item(Item=key, ConditionExpression="attribute_not_exists(customer)")
        self.assertEqual(failure.exception.response["Error"]["Message"], "The conditional request failed")
        updated = self.table.update_item(
            Key=key, UpdateExpression="SET version = version + :one ADD tags :tags REMOVE nothing",
            ConditionExpression=Attr("version").eq(1), ExpressionAttributeValues={":one": 1, ":tags": {"b"}},
            ReturnValues="UPDATED_NEW")
        self.assertEqual(updated["Attributes"], {"version": 2, "tags": {"a", "b"}})

    def test_batches(self):
        keys = [{"customer": {"S": f"c{n % 3}"}, "number": {"N": str(n)}} for n in range(40)]
        found = self.client.batch_get_item(RequestItems={"orders": {"Keys": keys, "ProjectionExpression": "customer"}},
                                           ReturnConsumedCapacity="INDEXES")
        self.assertEqual(len(found["Responses"]["orders"]), 40)
        self.assertEqual(found["UnprocessedKeys"], {})
        self.assertEqual(found["ConsumedCapacity"][0]["TableName"], "orders")

    def test_describes_tables_and_waits(self):
        self.client.create_table(TableName="short-lived", BillingMode="PAY_PER_REQUEST",
                                 AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
                                 KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}])
        self.client.get_waiter("table_exists").wait(TableName="short-lived", WaiterConfig={"Delay": 1, "MaxAttempts": 5})
        description = self.client.describe_table(TableName="short-lived")["Table"]
        self.assertEqual(description["TableStatus"], "ACTIVE")
        self.assertIn("short-lived", self.client.list_tables()["TableNames"])
        self.client.tag_resource(ResourceArn=description["TableArn"], Tags=[{"Key": "a", "Value": "b"}])
        self.assertEqual(self.client.list_tags_of_resource(ResourceArn=description["TableArn"])["Tags"], [{"Key": "a", "Value": "b"}])
        self.client.delete_table(TableName="short-lived")
        self.client.get_waiter("table_not_exists").wait(TableName="short-lived", WaiterConfig={"Delay": 1, "MaxAttempts": 5})

    def test_adds_an_index_to_a_filled_table(self):
        self.client.update_table(
            TableName="orders", AttributeDefinitions=[{"AttributeName": "number", "AttributeType": "N"}],
            GlobalSecondaryIndexUpdates=[{"Create": {"IndexName": "by_number", "Projection": {"ProjectionType": "KEYS_ONLY"},
                                                     "KeySchema": [{"AttributeName": "number", "KeyType": "HASH"}]}}])
        while True:
            indexes = self.client.describe_table(TableName="orders")["Table"]["GlobalSecondaryIndexes"]
            if all(index["IndexStatus"] == "ACTIVE" for index in indexes):
                break
        found = self.table.query(IndexName="by_number", KeyConditionExpression=Key("number").eq(77))
        self.assertEqual(found["Items"], [{"customer": "c2", "number": 77}])

    def test_refuses_a_batch_that_mixes_expressions_with_what_came_before_them(self):
        keys = [{"customer": {"S": "c1"}, "number": {"N": "1"}}]
        self.client.create_table(TableName="mixed", BillingMode="PAY_PER_REQUEST", AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
                                 KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}])
        with self.assertRaises(ClientError) as refused:
            self.client.batch_get_item(RequestItems={"orders": {"Keys": keys, "ProjectionExpression": "customer"},
                                                     "mixed": {"Keys": [{"k": {"S": "x"}}], "AttributesToGet": ["k"]}})
        self.assertEqual(refused.exception.response["Error"]["Message"],
                         "Can not use both expression and non-expression parameters in the same request: "
                         "Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}")

    def test_describes_warm_throughput_and_encryption(self):
        created = self.client.create_table(
            TableName="provisioned", ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 6},
            AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}], KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
            SSESpecification={"Enabled": True, "SSEType": "KMS"})["TableDescription"]
        self.assertNotIn("WarmThroughput", created)
        key = created["SSEDescription"].pop("KMSMasterKeyArn")
        self.assertTrue(key.startswith("arn:aws:kms:"), key)
        self.assertEqual(created["SSEDescription"], {"Status": "ENABLED", "SSEType": "KMS"})
        described = self.client.describe_table(TableName="provisioned")["Table"]
        # An old boto3 does not know the name.
        self.assertEqual(described.get("WarmThroughput", {}).get("ReadUnitsPerSecond", 5), 5)
        self.assertEqual(described["SSEDescription"], {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": key})
        updated = self.client.update_table(TableName="provisioned", SSESpecification={"Enabled": False})["TableDescription"]
        self.assertEqual(updated["SSEDescription"], {"Status": "UPDATING", "SSEType": "KMS", "KMSMasterKeyArn": key})
        self.assertNotIn("SSEDescription", self.client.describe_table(TableName="provisioned")["Table"])

    def test_returns_sets_in_order(self):
        key = {"customer": {"S": "sets"}, "number": {"N": "1"}}
        self.client.put_item(TableName="orders", Item={**key, "s": {"SS": ["b", "a", "B"]}, "n": {"NS": ["10", "9", "-1"]}})
        self.client.update_item(TableName="orders", Key=key, UpdateExpression="ADD s :s", ExpressionAttributeValues={":s": {"SS": ["A"]}})
        found = self.client.get_item(TableName="orders", Key=key)["Item"]
        self.assertEqual((found["s"]["SS"], found["n"]["NS"]), (["A", "B", "a", "b"], ["-1", "9", "10"]))

    def create_with_stream(self, name):
        return self.client.create_table(
            TableName=name, BillingMode="PAY_PER_REQUEST", AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})["TableDescription"]["LatestStreamArn"]

    def records(self, arn):
        records = []
        for shard in self.streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
            iterator = self.streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
            page = self.streams.get_records(ShardIterator=iterator)
            while page["Records"]:
                records += page["Records"]
                page = self.streams.get_records(ShardIterator=page["NextShardIterator"])
        return records

    def test_runs_transactions(self):
        def move(amount, source, target):
            change = lambda key, expression, condition: {"Update": {
                "TableName": "orders", "Key": {"customer": {"S": key}, "number": {"N": "0"}}, "UpdateExpression": expression,
                "ExpressionAttributeValues": {":n": {"N": str(amount)}}, **({"ConditionExpression": condition} if condition else {})}}
            return self.client.transact_write_items(TransactItems=[change(source, "SET balance = balance - :n", "balance >= :n"),
                                                                   change(target, "ADD balance :n", None)], ReturnConsumedCapacity="INDEXES")
        self.table.put_item(Item={"customer": "ann", "number": 0, "balance": 10})
        self.assertEqual(move(7, "ann", "bob")["ConsumedCapacity"][0]["Table"]["WriteCapacityUnits"], 4)
        with self.assertRaises(self.client.exceptions.TransactionCanceledException) as canceled:
            move(7, "ann", "bob")
        self.assertEqual([reason["Code"] for reason in canceled.exception.response["CancellationReasons"]], ["ConditionalCheckFailed", "None"])
        read = self.client.transact_get_items(TransactItems=[
            {"Get": {"TableName": "orders", "Key": {"customer": {"S": key}, "number": {"N": "0"}}, "ProjectionExpression": "balance"}} for key in ("ann", "bob")])
        self.assertEqual([response["Item"] for response in read["Responses"]], [{"balance": {"N": "3"}}, {"balance": {"N": "7"}}])

    def test_repeats_a_transaction_by_its_token(self):
        request = dict(ClientRequestToken="once", TransactItems=[{"Update": {
            "TableName": "orders", "Key": {"customer": {"S": "token"}, "number": {"N": "0"}}, "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}}}}])
        for _ in range(3):
            self.client.transact_write_items(**request)
        self.assertEqual(self.table.get_item(Key={"customer": "token", "number": 0})["Item"]["n"], 1)
        request["TransactItems"][0]["Update"]["UpdateExpression"] = "ADD m :one"
        with self.assertRaises(self.client.exceptions.IdempotentParameterMismatchException):
            self.client.transact_write_items(**request)

    def test_runs_partiql(self):
        self.client.execute_statement(Statement="INSERT INTO orders VALUE {'customer': ?, 'number': ?, 'state': 'sent', 'lines': [1, 2]}",
                                      Parameters=[{"S": "ql"}, {"N": "1"}])
        with self.assertRaises(self.client.exceptions.DuplicateItemException):
            self.client.execute_statement(Statement="INSERT INTO orders VALUE {'customer': 'ql', 'number': 1}")
        self.client.execute_statement(Statement="UPDATE orders SET lines = list_append(lines, [3]) WHERE customer = 'ql' AND number = 1")
        found = self.client.execute_statement(Statement='SELECT lines FROM "orders"."by_state" WHERE state = ?', Parameters=[{"S": "sent"}])
        self.assertEqual(found["Items"], [{"lines": {"L": [{"N": "1"}, {"N": "2"}, {"N": "3"}]}}])
        items, request = [], dict(Statement="SELECT number FROM orders WHERE customer = 'c1' ORDER BY number DESC", Limit=7)
        while True:
            page = self.client.execute_statement(**request)
            items += [int(item["number"]["N"]) for item in page["Items"]]
            if "NextToken" not in page:
                break
            request["NextToken"] = page["NextToken"]
        self.assertEqual(items, sorted(range(1, 120, 3), reverse=True))
        batch = self.client.batch_execute_statement(Statements=[
            {"Statement": "SELECT state FROM orders WHERE customer = 'ql' AND number = 1"}, {"Statement": "SELECT * FROM nowhere WHERE a = 1"}])
        self.assertEqual(batch["Responses"][0]["Item"], {"state": {"S": "sent"}})
        self.assertEqual(batch["Responses"][1]["Error"]["Code"], "ResourceNotFound")
        self.client.execute_transaction(TransactStatements=[{"Statement": "DELETE FROM orders WHERE customer = 'ql' AND number = 1"}])
        self.assertEqual(self.client.execute_statement(Statement="SELECT * FROM orders WHERE customer = 'ql'")["Items"], [])

    def test_reads_streams(self):
        arn = self.create_with_stream("streamed")
        self.assertIn(arn, [stream["StreamArn"] for stream in self.streams.list_streams()["Streams"]])
        key = {"id": {"S": "a"}}
        self.client.put_item(TableName="streamed", Item={**key, "n": {"N": "1"}})
        self.client.put_item(TableName="streamed", Item={**key, "n": {"N": "1"}})
        self.client.update_item(TableName="streamed", Key=key, UpdateExpression="SET n = :n", ExpressionAttributeValues={":n": {"N": "2"}})
        self.client.delete_item(TableName="streamed", Key=key)
        records = self.records(arn)
        self.assertEqual([record["eventName"] for record in records], ["INSERT", "MODIFY", "REMOVE"])
        self.assertEqual(records[1]["dynamodb"]["OldImage"], {**key, "n": {"N": "1"}})
        self.assertEqual(records[1]["dynamodb"]["NewImage"], {**key, "n": {"N": "2"}})
        self.assertNotIn("userIdentity", records[2])
        with self.assertRaises(self.streams.exceptions.ResourceNotFoundException):
            self.streams.describe_stream(StreamArn=arn + "1")

    def test_sees_time_to_live_in_the_stream(self):
        arn = self.create_with_stream("mortal")
        self.client.update_time_to_live(TableName="mortal", TimeToLiveSpecification={"Enabled": True, "AttributeName": "until"})
        now = int(time.time())
        for name, until in (("past", now - 10), ("soon", now + 1), ("later", now + 1000)):
            self.client.put_item(TableName="mortal", Item={"id": {"S": name}, "until": {"N": str(until)}})
        wait_until(lambda: self.client.scan(TableName="mortal")["Count"] == 1)
        removed = [record for record in self.records(arn) if record["eventName"] == "REMOVE"]
        self.assertEqual([record["dynamodb"]["Keys"]["id"]["S"] for record in removed], ["past", "soon"])
        for record in removed:
            self.assertEqual(record["userIdentity"], {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"})
        described = self.client.describe_time_to_live(TableName="mortal")["TimeToLiveDescription"]
        self.assertEqual(described, {"TimeToLiveStatus": "ENABLED", "AttributeName": "until"})


class ParametersTest(unittest.TestCase):
    """By botocore's own model of what AWS knows."""

    def requests(self, shape):
        """Requests that have one member each, of the wrong type, with the member's path."""
        if shape.type_name == "list":
            yield from ((path, [inner]) for path, inner in self.requests(shape.member))
        elif shape.type_name == "map":
            yield from ((path, {"name": inner}) for path, inner in self.requests(shape.value))
        elif shape.type_name == "structure" and shape.name != "AttributeValue":
            for name, member in shape.members.items():
                yield name, {name: 7 if member.type_name in ("structure", "list", "map") else {}}
                yield from ((f"{name}.{path}", {name: inner}) for path, inner in self.requests(member))

    def test_none_is_passed_over(self):
        operations, passed_over = 0, []
        with Server() as server:
            def call(target, body):
                return post(server.endpoint, json.dumps(body).encode(),
                            {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Date": "20260101T000000Z",
                             "Authorization": AUTHORIZATION, "X-Amz-Target": target})
            for service, prefix in (("dynamodb", "DynamoDB_20120810."), ("dynamodbstreams", "DynamoDBStreams_20120810.")):
                model = boto3.client(service, **SETTINGS).meta.service_model
                for name in model.operation_names:
                    if call(prefix + name, {})[0] == "UnknownOperationException":
                        continue
                    operations += 1
                    for path, body in self.requests(model.operation_model(name).input_shape):
                        error, message = call(prefix + name, body)
                        # What is read is of the wrong type; what is not supported is named.
                        if error != "SerializationException" and "is not supported" not in message:
                            passed_over.append(f"{name}: {path}: {error} {message}")
        self.assertGreaterEqual(operations, 29)
        self.assertEqual(passed_over, [])


class Presigner(SigV4QueryAuth):
    """SigV4QueryAuth for a body of JSON, which it would else put into the URL."""

    def __init__(self, key, secret, body, expires):
        super().__init__(Credentials(key, secret), "dynamodb", "us-east-1", expires)
        self.body = body

    def payload(self, request):
        return hashlib.sha256(self.body).hexdigest()


class SignatureTest(unittest.TestCase):
    def test_accepts_presigned_requests_until_they_expire(self):
        with Server("--access-key", "AKIDEXAMPLE:secret") as server:
            def presigned(key="AKIDEXAMPLE", secret="secret", expires=60, operation="ListTables"):
                request = AWSRequest("POST", server.endpoint + "/", headers={
                    "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"DynamoDB_20120810.{operation}"})
                Presigner(key, secret, b"{}", expires).add_auth(request)
                return request.url, dict(request.headers.items())

            url, headers = presigned()
            self.assertEqual(post(url, b"{}", headers), (None, {"TableNames": []}))
            self.assertEqual(post(url, b"{}", headers), (None, {"TableNames": []}), "as often as one likes")
            other = {**headers, "X-Amz-Target": "DynamoDB_20120810.DescribeLimits"}
            for what, error in (((url, b'{"Limit":1}', headers), "InvalidSignatureException"),
                                ((url, b"{}", other), "InvalidSignatureException"),
                                ((url.replace("Expires=60", "Expires=600"), b"{}", headers), "InvalidSignatureException"),
                                ((url, b"{}", {**headers, "Authorization": AUTHORIZATION}), "InvalidSignatureException"),
                                ((url.split("&X-Amz-Signature")[0], b"{}", headers), "IncompleteSignatureException")):
                self.assertEqual(post(*what)[0], error, what)
            for signer, error in ((dict(secret="wrong"), "InvalidSignatureException"), (dict(key="stranger"), "UnrecognizedClientException"),
                                  (dict(expires=604801), "IncompleteSignatureException")):
                url, headers = presigned(**signer)
                self.assertEqual(post(url, b"{}", headers)[0], error, signer)
            url, headers = presigned(expires=1)
            time.sleep(2.5)
            error, message = post(url, b"{}", headers)
            self.assertEqual(error, "InvalidSignatureException")
            self.assertIn("Signature expired", message)

    def test_requires_the_configured_key(self):
        with Server("--access-key", "AKIDEXAMPLE:secret") as server:
            def client(key, secret):
                return boto3.client("dynamodb", endpoint_url=server.endpoint, region_name="us-east-1", aws_access_key_id=key,
                                    aws_secret_access_key=secret, config=Config(retries={"max_attempts": 1}))
            self.assertEqual(client("AKIDEXAMPLE", "secret").list_tables()["TableNames"], [])
            for key, secret, error in (("AKIDEXAMPLE", "wrong", "InvalidSignatureException"),
                                       ("stranger", "secret", "UnrecognizedClientException")):
                with self.assertRaises(ClientError) as failure:
                    client(key, secret).list_tables()
                self.assertEqual(failure.exception.response["Error"]["Code"], error)


if __name__ == "__main__":
    unittest.main(verbosity=2)

// The AWS SDK for JavaScript v3 and its document client, unchanged, against the real binary.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

// The packages are installed outside the source tree; SDK_MODULES says where.
const require = createRequire(join(process.env.SDK_MODULES, "package.json"));
const sdk = require("@aws-sdk/client-dynamodb");
const lib = require("@aws-sdk/lib-dynamodb");
const streams = require("@aws-sdk/client-dynamodb-streams");

const folder = mkdtempSync(join(tmpdir(), "tabella-js-"));
let server, client, documents, streamClient;

before(async () => {
  server = spawn(process.env.TABELLA, ["serve", "--data", folder, "--dynamodb", "127.0.0.1:0", "--http", "off", "--smtp", "off"]);
  const said = await new Promise((resolve) => server.stdout.once("data", resolve));
  const settings = {
    endpoint: String(said).match(/http:\/\/127\.0\.0\.1:\d+/)[0],
    region: "us-east-1",
    credentials: { accessKeyId: "any", secretAccessKey: "thing" },
  };
  client = new sdk.DynamoDBClient(settings);
  streamClient = new streams.DynamoDBStreamsClient(settings);
  documents = lib.DynamoDBDocumentClient.from(client);
  await client.send(
    new sdk.CreateTableCommand({
      TableName: "notes",
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [
        { AttributeName: "owner", AttributeType: "S" },
        { AttributeName: "at", AttributeType: "N" },
      ],
      KeySchema: [
        { AttributeName: "owner", KeyType: "HASH" },
        { AttributeName: "at", KeyType: "RANGE" },
      ],
    }),
  );
  await sdk.waitUntilTableExists({ client, maxWaitTime: 60, minDelay: 1 }, { TableName: "notes" });
});

after(async () => {
  client.destroy();
  streamClient.destroy();
  server.kill("SIGTERM");
  const code = await new Promise((resolve) => server.once("exit", resolve));
  rmSync(folder, { recursive: true });
  assert.equal(code, 0);
});

test("the document client keeps what it wrote", async () => {
  const item = { owner: "a", at: 1, tags: new Set(["x", "y"]), nested: { list: [1, null, true, "ü"] }, bytes: new Uint8Array([1, 2]) };
  await documents.send(new lib.PutCommand({ TableName: "notes", Item: item }));
  const { Item } = await documents.send(new lib.GetCommand({ TableName: "notes", Key: { owner: "a", at: 1 }, ConsistentRead: true }));
  assert.deepEqual(Item, item);
});

test("batches, queries and paginators", async () => {
  const puts = Array.from({ length: 25 }, (_, at) => ({ PutRequest: { Item: { owner: "b", at, even: at % 2 === 0 } } }));
  const written = await documents.send(new lib.BatchWriteCommand({ RequestItems: { notes: puts } }));
  assert.deepEqual(written.UnprocessedItems, {});
  const found = [];
  for await (const page of lib.paginateQuery(
    { client: documents, pageSize: 4 },
    {
      TableName: "notes",
      KeyConditionExpression: "#o = :o AND #a < :a",
      FilterExpression: "even = :t",
      ExpressionAttributeNames: { "#o": "owner", "#a": "at" },
      ExpressionAttributeValues: { ":o": "b", ":a": 20, ":t": true },
      ScanIndexForward: false,
    },
  ))
    found.push(...page.Items.map((item) => item.at));
  assert.deepEqual(found, [18, 16, 14, 12, 10, 8, 6, 4, 2, 0]);
  let scanned = 0;
  for await (const page of lib.paginateScan({ client: documents, pageSize: 3 }, { TableName: "notes" })) scanned += page.Count;
  assert.ok(scanned >= 25);
});

test("conditional updates fail with their own exception", async () => {
  const Key = { owner: "c", at: 1 };
  await documents.send(new lib.UpdateCommand({ TableName: "notes", Key, UpdateExpression: "SET v = :one", ExpressionAttributeValues: { ":one": 1 } }));
  await assert.rejects(
    documents.send(
      new lib.UpdateCommand({
        TableName: "notes",
        Key,
        UpdateExpression: "SET v = v + :one",
        ConditionExpression: "v = :two",
        ExpressionAttributeValues: { ":one": 1, ":two": 2 },
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      }),
    ),
    (error) => error instanceof sdk.ConditionalCheckFailedException && error.Item.v.N === "1",
  );
  const { Attributes } = await documents.send(
    new lib.UpdateCommand({ TableName: "notes", Key, UpdateExpression: "ADD v :two", ExpressionAttributeValues: { ":two": 2 }, ReturnValues: "ALL_NEW" }),
  );
  assert.deepEqual(Attributes, { owner: "c", at: 1, v: 3 });
  const { Attributes: old } = await documents.send(new lib.DeleteCommand({ TableName: "notes", Key, ReturnValues: "ALL_OLD" }));
  assert.equal(old.v, 3);
});

test("errors have AWS's names", async () => {
  await assert.rejects(client.send(new sdk.GetItemCommand({ TableName: "nowhere", Key: { k: { S: "x" } } })), { name: "ResourceNotFoundException" });
  await assert.rejects(client.send(new sdk.ScanCommand({ TableName: "notes", Limit: 0 })), { name: "ValidationException" });
});

// Follows a stream as consumers do: a shard's children are read once it has been read to its end.
async function* follow(StreamArn, isDone) {
  const finished = new Set();
  const iterators = new Map();
  while (!isDone()) {
    const { StreamDescription } = await streamClient.send(new streams.DescribeStreamCommand({ StreamArn }));
    const known = new Set(StreamDescription.Shards.map((shard) => shard.ShardId));
    for (const { ShardId, ParentShardId } of StreamDescription.Shards) {
      const parentDone = !ParentShardId || finished.has(ParentShardId) || !known.has(ParentShardId);
      if (iterators.has(ShardId) || finished.has(ShardId) || !parentDone) continue;
      const { ShardIterator } = await streamClient.send(
        new streams.GetShardIteratorCommand({ StreamArn, ShardId, ShardIteratorType: "TRIM_HORIZON" }),
      );
      iterators.set(ShardId, ShardIterator);
    }
    for (const [ShardId, ShardIterator] of iterators) {
      const page = await streamClient.send(new streams.GetRecordsCommand({ ShardIterator }));
      for (const record of page.Records) yield { shard: ShardId, record };
      if (page.NextShardIterator) iterators.set(ShardId, page.NextShardIterator);
      else iterators.delete(ShardId) && finished.add(ShardId);
    }
  }
}

test("follows a stream across its shards, in the order of each item", async () => {
  const created = await client.send(
    new sdk.CreateTableCommand({
      TableName: "followed",
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
      StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" },
    }),
  );
  const [items, versions] = [20, 150];
  const writing = (async () => {
    for (let version = 1; version <= versions; ++version)
      await Promise.all(
        Array.from({ length: items }, (_, i) =>
          documents.send(new lib.PutCommand({ TableName: "followed", Item: { id: `item-${i}`, version } })),
        ),
      );
  })();
  const last = new Map();
  const shards = new Set();
  let count = 0;
  for await (const { shard, record } of follow(created.TableDescription.LatestStreamArn, () => count === items * versions)) {
    ++count;
    shards.add(shard);
    const { id } = record.dynamodb.Keys;
    const version = Number(record.dynamodb.NewImage.version.N);
    assert.equal(version, (last.get(id.S) ?? 0) + 1, `${id.S} is out of order`);
    assert.equal(record.eventName, version === 1 ? "INSERT" : "MODIFY");
    if (version > 1) assert.equal(Number(record.dynamodb.OldImage.version.N), version - 1);
    last.set(id.S, version);
  }
  await writing;
  assert.equal(count, items * versions);
  assert.ok(shards.size > 1, "more than one shard");
});

test("runs transactions and reads their reasons", async () => {
  await documents.send(
    new lib.TransactWriteCommand({
      TransactItems: [
        { Put: { TableName: "notes", Item: { owner: "tx", at: 1, text: "one" } } },
        { Put: { TableName: "notes", Item: { owner: "tx", at: 2, text: "two" } } },
      ],
    }),
  );
  const read = await documents.send(
    new lib.TransactGetCommand({
      TransactItems: [1, 2, 3].map((at) => ({ Get: { TableName: "notes", Key: { owner: "tx", at } } })),
    }),
  );
  assert.deepEqual(read.Responses.map((response) => response.Item?.text), ["one", "two", undefined]);
  await assert.rejects(
    documents.send(
      new lib.TransactWriteCommand({
        TransactItems: [
          { Delete: { TableName: "notes", Key: { owner: "tx", at: 1 } } },
          {
            Update: {
              TableName: "notes",
              Key: { owner: "tx", at: 2 },
              UpdateExpression: "SET #t = :t",
              ConditionExpression: "#t = :x",
              ExpressionAttributeNames: { "#t": "text" },
              ExpressionAttributeValues: { ":t": "new", ":x": "other" },
              ReturnValuesOnConditionCheckFailure: "ALL_OLD",
            },
          },
        ],
      }),
    ),
    (error) => {
      assert.equal(error.name, "TransactionCanceledException");
      assert.deepEqual(error.CancellationReasons.map((reason) => reason.Code), ["None", "ConditionalCheckFailed"]);
      assert.equal(error.CancellationReasons[1].Item.text.S ?? error.CancellationReasons[1].Item.text, "two");
      return true;
    },
  );
});

test("runs PartiQL by itself and in transactions", async () => {
  const execute = (Statement, Parameters) => documents.send(new lib.ExecuteStatementCommand({ Statement, Parameters }));
  await execute("INSERT INTO notes VALUE {'owner': ?, 'at': ?, 'tags': ?}", ["ql", 1, ["a", "b"]]);
  assert.deepEqual((await execute("SELECT tags[1] FROM notes WHERE owner = 'ql' AND at = 1")).Items, [{ "tags[1]": "b" }]);
  await documents.send(
    new lib.ExecuteTransactionCommand({
      TransactStatements: [
        { Statement: "UPDATE notes SET n = 5 WHERE owner = 'ql' AND at = 1" },
        { Statement: "INSERT INTO notes VALUE {'owner': 'ql', 'at': 2}" },
      ],
    }),
  );
  assert.equal((await execute("SELECT * FROM notes WHERE owner = 'ql'")).Items.length, 2);
});

// The AWS SDK for JavaScript v3 and its document client, unchanged, against the real binary.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

// The packages are installed outside the source tree; SDK_MODULES says where.
const require = createRequire(join(process.env.SDK_MODULES, "package.json"));
const sdk = require("@aws-sdk/client-dynamodb");
const lib = require("@aws-sdk/lib-dynamodb");

const folder = mkdtempSync(join(tmpdir(), "tabella-js-"));
let server, client, documents;

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => probe.once("listening", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

before(async () => {
  const port = await freePort();
  server = spawn(process.env.TABELLA, ["serve", "--data", folder, "--dynamodb", `127.0.0.1:${port}`]);
  await new Promise((resolve) => server.stdout.once("data", resolve));
  client = new sdk.DynamoDBClient({
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    credentials: { accessKeyId: "any", secretAccessKey: "thing" },
  });
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

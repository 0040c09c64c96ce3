"""./bench engine: Tabella (durable) beside dynalite, DynamoDB Local (both in memory) and nginx's static answers, in
one run on one machine, driven by wrk at 64 connections. Ratios are what counts; absolute figures are the machine's.

  ./bench engine [--seconds 4] [--rounds 3]
  ./bench engine --scale 10000000     how Tabella's own costs grow from ten thousand items to this many
  ./bench engine --due 10000000       PutItem while this many items are deleted because their time has come
"""

import argparse
import http.client
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import time

import servers

ITEMS = 10_000
STREAMS = 100
EVENTS_PER_STREAM = 100
CONNECTIONS = 64
OPERATIONS = ["GetItem", "PutItem", "UpdateItem", "Query", "HotCounter"]
# What no peer here has, measured beside Tabella's own PutItem and GetItem.
OWN_OPERATIONS = ["PutItem", "PutItemStreamed", "TransactWriteItems", "GetItem", "ExecuteStatement", "GetRecords"]
TARGETS = {  # against nginx, dynalite, DynamoDB Local
    "GetItem": (0.75, 6, 50), "PutItem": (0.45, 5, 35), "UpdateItem": (0.40, 7, 35), "Query": (0.40, 12, 25),
}
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "request.lua")


def item(n):
    return {"pk": {"S": f"item-{n:07d}"}, "title": {"S": "A title of moderate length"}, "count": {"N": "42"},
            "body": {"S": "x" * 230}}


def event(stream, n):
    return {"pk": {"S": f"stream-{stream:05d}"}, "sk": {"N": str(n)}, "kind": {"S": "created"}, "body": {"S": "x" * 250}}


def create_tables(server):
    throughput = {"ReadCapacityUnits": 40000, "WriteCapacityUnits": 40000}
    key = lambda name, role: {"AttributeName": name, "KeyType": role}
    attribute = lambda name, kind: {"AttributeName": name, "AttributeType": kind}
    server.call("CreateTable", {"TableName": "bench", "AttributeDefinitions": [attribute("pk", "S")],
                                "KeySchema": [key("pk", "HASH")], "ProvisionedThroughput": throughput})
    server.call("CreateTable", {"TableName": "events", "ProvisionedThroughput": throughput,
                                "AttributeDefinitions": [attribute("pk", "S"), attribute("sk", "N")],
                                "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")]})
    time.sleep(1)


def load(server, table, items, progress=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {**servers.HEADERS, "X-Amz-Target": "DynamoDB_20120810.BatchWriteItem"}
    batch, done = [], 0

    def flush():
        connection.request("POST", "/", json.dumps({"RequestItems": {table: batch}}), headers)
        response = connection.getresponse()
        text = response.read()
        if response.status != 200:
            raise SystemExit(f"{server.name}: loading failed: {text.decode()}")
        batch.clear()

    for entry in items:
        batch.append({"PutRequest": {"Item": entry}})
        done += 1
        if len(batch) == 25:
            flush()
            if progress and done % 100_000 == 0:
                progress(done)
    if batch:
        flush()


def load_in_parallel(server, table, make, count, processes=3):
    """`make(n)` is the n-th item."""
    def part(number):
        load(server, table, (make(n) for n in range(number, count, processes)))

    workers = [multiprocessing.get_context("fork").Process(target=part, args=(number,)) for number in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        if worker.exitcode != 0:
            raise SystemExit("loading failed")


def milliseconds(text):
    """As wrk prints times; it prints -nan where it has no sample."""
    match = re.match(r"([\d.]+)(us|ms|s|m)", text)
    if not match:
        return float("nan")
    value, unit = match.groups()
    return float(value) * {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000}[unit]


def drive(server, operation, seconds, keys, *more):
    """One run of wrk: requests/s, p99 in ms, server CPU in µs per request."""
    before = server.cpu_seconds()
    output = subprocess.run(
        ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}", "--latency", "-s", SCRIPT, f"http://127.0.0.1:{server.port}/",
         "--", operation, str(keys), *more], capture_output=True, text=True, check=True).stdout
    cpu = server.cpu_seconds() - before
    if "Non-2xx" in output:
        raise SystemExit(f"{server.name} refused {operation}:\n{output}")
    requests = int(re.search(r"(\d+) requests in", output).group(1))
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output).group(1))
    return rate, milliseconds(re.search(r"99%\s+(\S+)", output).group(1)), cpu / max(requests, 1) * 1e6


def keys_of(operation):
    return STREAMS if operation == "Query" else ITEMS


def sample_answer(server, operation):
    if operation == "GetItem":
        return server.call("GetItem", {"TableName": "bench", "Key": {"pk": {"S": "item-0000001"}}})
    if operation == "Query":
        return server.call("Query", {"TableName": "events", "KeyConditionExpression": "pk = :p", "Limit": 10,
                                     "ExpressionAttributeValues": {":p": {"S": "stream-00001"}}})
    return b"{}"


def machine():
    with open("/proc/cpuinfo") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), "unknown")
    return f"{os.cpu_count()} cores, {model}"


def compare(arguments):
    print(f"machine: {machine()}; wrk -t1 -c{CONNECTIONS}, {arguments.rounds} rounds of {arguments.seconds} s, medians\n")
    running = [servers.tabella(8301), servers.dynalite(8302), servers.dynamodb_local(8303), servers.nginx(8304)]
    tabella, ceiling = running[0], running[3]
    try:
        for server in running[:3]:
            print(f"loading {server.name} …", flush=True)
            create_tables(server)
            load(server, "bench", (item(n) for n in range(ITEMS)))
            load(server, "events", (event(s, n) for s in range(STREAMS) for n in range(EVENTS_PER_STREAM)))
        table = {}
        for operation in OPERATIONS:
            print(f"driving {operation} …", flush=True)
            servers.set_nginx_answer(sample_answer(tabella, operation))
            runs = {server.name: [] for server in running}
            for server in running:
                drive(server, operation, 2, keys_of(operation))  # warm-up
            for _ in range(arguments.rounds):  # interleaved, so that a slow moment of the machine hits all
                for server in running:
                    runs[server.name].append(drive(server, operation, arguments.seconds, keys_of(operation)))
            table[operation] = {name: tuple(statistics.median(column) for column in zip(*rows))
                                for name, rows in runs.items()}
        report(table, running)
    finally:
        for server in running:
            server.stop()


def create_streamed(server):
    return json.loads(server.call("CreateTable", {
        "TableName": "streamed", "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}}))["TableDescription"]["LatestStreamArn"]


def full_page(server, arn):
    """An iterator at the beginning of a shard with at least one full page, and how many records that is."""
    shards = json.loads(server.call("DescribeStream", {"StreamArn": arn}, "DynamoDBStreams"))["StreamDescription"]["Shards"]
    best = ("", 0)
    for shard in shards:
        iterator = json.loads(server.call("GetShardIterator", {"StreamArn": arn, "ShardId": shard["ShardId"],
                                                               "ShardIteratorType": "TRIM_HORIZON"}, "DynamoDBStreams"))["ShardIterator"]
        records = len(json.loads(server.call("GetRecords", {"ShardIterator": iterator}, "DynamoDBStreams"))["Records"])
        best = max(best, (iterator, records), key=lambda found: found[1])
    return best


def measure_own(arguments):
    """Transactions, PartiQL and streams, in rounds beside PutItem and GetItem."""
    server = servers.tabella(8301)
    try:
        create_tables(server)
        arn = create_streamed(server)
        load(server, "bench", (item(n) for n in range(ITEMS)))
        load(server, "streamed", (item(n) for n in range(ITEMS)))
        iterator, per_page = full_page(server, arn)
        runs = {operation: [] for operation in OWN_OPERATIONS}
        for number in range(arguments.rounds + 1):
            for operation in OWN_OPERATIONS:
                print(f"driving {operation} …", flush=True)
                run = drive(server, operation, arguments.seconds, ITEMS, *([iterator] if operation == "GetRecords" else []))
                time.sleep(1)  # what wrk left unread is not the next one's
                if number > 0:  # the first round warms up
                    runs[operation].append(run)
    finally:
        server.stop()
    table = {operation: tuple(statistics.median(column) for column in zip(*rows)) for operation, rows in runs.items()}
    print("\n| operation | requests/s | p99 ms | server CPU µs/request |")
    print("|---|---:|---:|---:|")
    for operation, (rate, p99, cpu) in table.items():
        print(f"| {operation} | {rate:,.0f} | {p99:.2f} | {cpu:.1f} |")
    print(f"\nPutItem with a stream against without: {table['PutItemStreamed'][0] / table['PutItem'][0]:.2f} (target 0.75)")
    print(f"TransactWriteItems of 4 against PutItem, in items: {4 * table['TransactWriteItems'][0] / table['PutItem'][0]:.2f}")
    print(f"ExecuteStatement by key against GetItem: {table['ExecuteStatement'][0] / table['GetItem'][0]:.2f}")
    print(f"GetRecords: {table['GetRecords'][0] * per_page:,.0f} records/s in pages of {per_page}")


def expire(arguments, count):
    """PutItem before and while `count` items, all due at once, are deleted."""
    server = servers.tabella(8301)
    try:
        server.call("CreateTable", {"TableName": "mortal", "BillingMode": "PAY_PER_REQUEST",
                                    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                                    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]})
        server.call("UpdateTimeToLive", {"TableName": "mortal", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "until"}})
        left = lambda: json.loads(server.call("DescribeTable", {"TableName": "mortal"}))["Table"]["ItemCount"]
        begun = time.time()
        due = int(begun + count / 22_000 + 10 + 4 * arguments.seconds)
        print(f"loading {count:,} items that will be due together …", flush=True)
        load_in_parallel(server, "mortal", lambda n: {"pk": {"S": f"due-{n:09d}"}, "until": {"N": str(due)}, "body": {"S": "x" * 100}}, count)
        print(f"loaded in {time.time() - begun:.0f} s")
        if time.time() + 3 * arguments.seconds > due:
            raise SystemExit("the machine took too long to load: they are due already")
        drive(server, "PutItemMortal", 2, ITEMS)
        normal = [drive(server, "PutItemMortal", arguments.seconds, ITEMS) for _ in range(2)]
        print(f"\nwaiting until they are due, in {max(0, due - time.time()):.0f} s …", flush=True)
        time.sleep(max(0.0, due - time.time()))
        started, busy, before = time.time(), [], left()
        while (now := left()) > ITEMS + count // 50:
            busy.append((*drive(server, "PutItemMortal", arguments.seconds, ITEMS), now - left()))
        took = time.time() - started
    finally:
        server.stop()
    p99 = lambda runs: statistics.median(run[1] for run in runs)
    rate = lambda runs: statistics.median(run[0] for run in runs)
    print(f"\n| {count:,} items due at once | before | while they are deleted | ratio |")
    print("|---|---:|---:|---:|")
    if not busy:
        print(f"\nthey were gone before PutItem could be measured, in {took:.1f} s")
        return
    print(f"| PutItem p99 ms | {p99(normal):.2f} | {p99(busy):.2f} | {p99(busy) / p99(normal):.2f} (target 2) |")
    print(f"| PutItem requests/s | {rate(normal):,.0f} | {rate(busy):,.0f} | {rate(busy) / rate(normal):.2f} |")
    print(f"\n{(before - now) / took:,.0f} items/s deleted beside PutItem at 64 connections")


def report(table, running):
    names = [server.name for server in running]
    print("\n| operation | server | requests/s | p99 ms | server CPU µs/request | Tabella's ratio |")
    print("|---|---|---:|---:|---:|---:|")
    for operation, row in table.items():
        own = row["Tabella"][0]
        for name in names:
            rate, p99, cpu = row[name]
            ratio = "" if name == "Tabella" else f"{own / max(rate, 1):.2f}"
            print(f"| {operation} | {name} | {rate:,.0f} | {p99:.2f} | {cpu:.1f} | {ratio} |")
    print("\n| operation | against nginx | against dynalite | against DynamoDB Local |")
    print("|---|---:|---:|---:|")
    for operation, targets in TARGETS.items():
        own = table[operation]["Tabella"][0]
        cells = [f"{own / table[operation][peer][0]:.2f} (target {target})"
                 for peer, target in zip(["nginx", "dynalite", "DynamoDB Local"], targets)]
        print(f"| {operation} | {' | '.join(cells)} |")
    hot = table["HotCounter"]["Tabella"][0] / table["PutItem"]["Tabella"][0]
    print(f"\nhot counter against PutItem: {hot:.2f} (target 0.5)")
    print("\n| server | start-up s | idle memory MB | memory after the run MB |")
    print("|---|---:|---:|---:|")
    for server in running:
        print(f"| {server.name} | {server.startup:.2f} | {server.idle_memory:.0f} | {server.memory():.0f} |")


def scale(arguments):
    """GetItem and Query with few and with many items, and how long a full store takes to open."""
    folder = os.path.join(servers.WORK, "data-scale")
    figures = {}
    for count in (ITEMS, arguments.scale):
        server = servers.tabella(8301, folder)
        create_tables(server)
        streams = count // EVENTS_PER_STREAM // 2
        say = lambda done: print(f"\r  {done:,} of {count // 2:,} items", end="", flush=True)
        print(f"loading {count:,} items …", flush=True)
        load(server, "bench", (item(n) for n in range(count // 2)), say)
        load(server, "events", (event(s, n) for s in range(streams) for n in range(EVENTS_PER_STREAM)), say)
        print()
        server.stop()
        server = servers.tabella(8301, folder, keep=True)
        keys = {"GetItem": count // 2, "Query": streams}
        figures[count] = {"startup": server.startup}
        for operation in ("GetItem", "Query"):
            drive(server, operation, arguments.seconds, keys[operation])  # warm-up
            runs = [drive(server, operation, arguments.seconds, keys[operation]) for _ in range(arguments.rounds)]
            figures[count][operation] = statistics.median(run[2] for run in runs)
        figures[count]["memory"] = server.memory()
        server.stop()
    small, large = figures[ITEMS], figures[arguments.scale]
    print(f"\n| {machine()} | {ITEMS:,} items | {arguments.scale:,} items | ratio |")
    print("|---|---:|---:|---:|")
    for operation in ("GetItem", "Query"):
        print(f"| {operation}, server CPU µs/request | {small[operation]:.1f} | {large[operation]:.1f} | "
              f"{large[operation] / small[operation]:.2f} |")
    print(f"| start-up s | {small['startup']:.2f} | {large['startup']:.2f} | |")
    print(f"| memory MB | {small['memory']:.0f} | {large['memory']:.0f} | |")


def main():
    parser = argparse.ArgumentParser(prog="./bench engine", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=int, metavar="ITEMS")
    parser.add_argument("--due", type=int, metavar="ITEMS")
    arguments = parser.parse_args()
    os.makedirs(servers.WORK, exist_ok=True)
    if arguments.scale:
        scale(arguments)
    elif arguments.due:
        expire(arguments, arguments.due)
    else:
        compare(arguments)
        measure_own(arguments)
        expire(arguments, 300_000)


if __name__ == "__main__":
    main()

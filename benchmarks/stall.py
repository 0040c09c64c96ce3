"""./bench stall: whether one request can hold up the others. A prober sends GetItem and PutItem of a small item, one
after the other, from a process of its own; beside it each of the inputs below is sent, again and again. Prints the
prober's latencies without and with each.

  ./bench stall [--seconds 4] [--only WORDS] [--fuzz SECONDS]

--fuzz makes requests at random, keeps those that took the server longest, and changes them further; what it found is
measured like the others. The bar: p99 under 25 ms, worst under 100 ms. The machine's own stalls are in the first row.
"""

import argparse
import gzip
import http.client
import json
import multiprocessing
import os
import random
import shutil
import socket
import subprocess
import time

import servers

KB = 1024
LARGE = 390 * KB
PORTS = {"dynamodb": 8801, "http": 8802, "smtp": 8803}


def call(connection, operation, body, headers=None):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", "/", data, {**servers.HEADERS, "X-Amz-Target": f"DynamoDB_20120810.{operation}",
                                           **(headers or {})})
    response = connection.getresponse()
    return response.status, response.read()


def connect(timeout=120):
    return http.client.HTTPConnection("127.0.0.1", PORTS["dynamodb"], timeout=timeout)


# ---- the prober

def probe(stop, results):
    connection = connect()
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times = {"GetItem": [], "PutItem": []}
    n = 0
    while not stop.is_set():
        n += 1
        for operation, body in (("GetItem", {"TableName": "probe", "Key": {"pk": {"S": "1"}}}),
                                ("PutItem", {"TableName": "probe", "Item": {"pk": {"S": str(n % 100)}, "v": {"N": str(n)}}})):
            begun = time.perf_counter()
            status, answer = call(connection, operation, body)
            times[operation].append(1000 * (time.perf_counter() - begun))
            if status != 200:
                raise SystemExit(f"the prober got {status}: {answer}")
        time.sleep(0.001)
    results.put(times)


def attack(operation, bodies, headers, stop, results):
    connection = connect()
    longest, statuses, n = 0, set(), 0
    while not stop.is_set():
        begun = time.perf_counter()
        status, answer = call(connection, operation, bodies[n % len(bodies)], headers)
        longest = max(longest, time.perf_counter() - begun)
        statuses.add(status)
        n += 1
    results.put((longest, n, sorted(statuses)))


def while_running(seconds, work=None, senders=1):
    """The prober's latencies while `senders` processes run work(stop, results)."""
    stop, times, told = multiprocessing.Event(), multiprocessing.Queue(), multiprocessing.Queue()
    prober = multiprocessing.Process(target=probe, args=(stop, times))
    others = [multiprocessing.Process(target=work[0], args=(*work[1:], stop, told)) for _ in range(senders if work else 0)]
    for process in [prober, *others]:
        process.start()
    time.sleep(seconds)
    stop.set()
    latencies = times.get(timeout=200)
    reports = [told.get(timeout=200) for _ in others]
    for process in [prober, *others]:
        process.join()
    return latencies, reports


def p99(values):
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]


def row(name, latencies, note=""):
    cells = [f"{p99(latencies[o]):8.1f} {max(latencies[o]):8.1f}" for o in ("GetItem", "PutItem")]
    bad = any(p99(latencies[o]) > 25 or max(latencies[o]) > 100 for o in latencies)
    print(f"{name:<52} {cells[0]}   {cells[1]}   {note}{'   OVER' if bad else ''}", flush=True)
    return not bad


# ---- the inputs

def aaa(length, end=""):
    return "a" * (length - len(end)) + end


def contains_filter():
    """Values that look right at every place, until their end."""
    values = {f":{i}": {"S": aaa(20_000 + i, "b")} for i in range(16)}
    return " OR ".join(f"contains(v, {name})" for name in values), values


def wide_item(key, attributes=30_000):
    return {"pk": {"S": key}, **{f"a{i:05d}": {"N": "1"} for i in range(attributes)}}


def inputs(colliding):
    filter_text, filter_values = contains_filter()
    names = [f"a{i:05d}" for i in range(1300)]
    paths = {f"#{i}": name for i, name in enumerate(names)}
    some = ",".join(f"#{i}" for i in range(780))
    some_names = {f"#{i}": names[i] for i in range(780)}
    removes = [{"Update": {"TableName": "wide", "Key": {"pk": {"S": f"w{n}"}},
                           "UpdateExpression": "REMOVE " + ",".join(f"b{i}" for i in range(600))}} for n in range(10)]
    del paths
    return {
        "Scan, 16 contains on 390 KB values": ("Scan", [{
            "TableName": "large", "FilterExpression": filter_text, "ExpressionAttributeValues": filter_values}], None),
        "the same as a condition of PutItem": ("PutItem", [{
            "TableName": "large", "Item": {"pk": {"S": "1"}, "v": {"S": aaa(LARGE)}},
            "ConditionExpression": "attribute_exists(pk) AND NOT (" + filter_text + ")",
            "ExpressionAttributeValues": filter_values}], None),
        "PutItem, 60,000 names that collide in std::hash": ("PutItem", [{
            "TableName": "wide", "Item": {"pk": {"S": "c"}, **{name: {"N": "1"} for name in colliding}}}], None),
        "PutItem, Expected with 20,000 conditions": ("PutItem", [{
            "TableName": "wide", "Item": {"pk": {"S": "w1"}}, "ConditionalOperator": "OR",
            "Expected": {f"x{i}": {"ComparisonOperator": "EQ", "AttributeValueList": [{"N": "2"}]} for i in range(20_000)}}], None),
        "Scan, ScanFilter IN with 10,000 values": ("Scan", [{
            "TableName": "small", "ScanFilter": {"v": {"ComparisonOperator": "IN", "AttributeValueList": [
                {"S": f"none-{i}"} for i in range(10_000)]}}}], None),
        "BatchGetItem of 30 wide items, 780 paths": ("BatchGetItem", [{"RequestItems": {"wide": {
            "Keys": [{"pk": {"S": f"w{n}"}} for n in range(30)], "ProjectionExpression": some,
            "ExpressionAttributeNames": some_names}}}], None),
        "TransactWriteItems, 10 x 600 REMOVEs of wide items": ("TransactWriteItems", [{"TransactItems": removes}], None),
        "BatchGetItem of 16 MB, gzip": ("BatchGetItem", [{"RequestItems": {"large": {
            "Keys": [{"pk": {"S": str(n)}} for n in range(40)]}}}], {"Accept-Encoding": "gzip"}),
        "BatchWriteItem of 9 MB": ("BatchWriteItem", [{"RequestItems": {"large": [
            {"PutRequest": {"Item": {"pk": {"S": f"b{n}"}, "v": {"S": aaa(LARGE)}}}} for n in range(24)]}}], None),
        "TransactWriteItems of 4 MB": ("TransactWriteItems", [{"TransactItems": [
            {"Put": {"TableName": "large", "Item": {"pk": {"S": f"t{n}"}, "v": {"S": aaa(LARGE)}}}} for n in range(10)]}], None),
        "a body of 15 MB that is no request": ("PutItem", [json.dumps(
            {f"m{i}": i for i in range(700_000)}).encode()], None),
        "a body that unpacks to 15 MB": ("PutItem", [gzip.compress(json.dumps(
            {f"m{i}": i for i in range(700_000)}).encode(), 1)], {"Content-Encoding": "gzip"}),
        "Scan of 1 MB pages, gzip": ("Scan", [{"TableName": "small"}], {"Accept-Encoding": "gzip"}),
        "UpdateItem, 300 terms on one wide item": ("UpdateItem", [{
            "TableName": "wide", "Key": {"pk": {"S": "w2"}}, "UpdateExpression": "SET b = :v",
            "ConditionExpression": " OR ".join(f"a{i:05d} = :w" for i in range(150)) + " OR attribute_exists(pk)",
            "ExpressionAttributeValues": {":v": {"N": "1"}, ":w": {"N": "2"}}}], None),
    }


def fill_index(stop, results):
    """Adds an index to a filled table, waits until it is there, takes it away, again and again."""
    connection = connect()
    n = 0
    while not stop.is_set():
        index = {"IndexName": f"i{n}", "KeySchema": [{"AttributeName": "v", "KeyType": "HASH"}],
                 "Projection": {"ProjectionType": "ALL"}}
        status, answer = call(connection, "UpdateTable", {
            "TableName": "small", "AttributeDefinitions": [{"AttributeName": "v", "AttributeType": "S"}],
            "GlobalSecondaryIndexUpdates": [{"Create": index}]})
        if status != 200:
            break
        while not stop.is_set():
            table = json.loads(call(connection, "DescribeTable", {"TableName": "small"})[1])["Table"]
            if all(i["IndexStatus"] == "ACTIVE" for i in table["GlobalSecondaryIndexes"]):
                break
            time.sleep(0.05)
        call(connection, "UpdateTable", {"TableName": "small", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": f"i{n}"}}]})
        n += 1
    results.put((0, n, []))


def search_mail(paths, stop, results):
    connection = http.client.HTTPConnection("127.0.0.1", PORTS["http"], timeout=120)
    longest, n, statuses = 0, 0, set()
    while not stop.is_set():
        begun = time.perf_counter()
        connection.request("GET", paths[n % len(paths)])
        response = connection.getresponse()
        response.read()
        statuses.add(response.status)
        longest = max(longest, time.perf_counter() - begun)
        n += 1
    results.put((longest, n, sorted(statuses)))


def send_mail(count):
    message = os.path.join(servers.WORK, "stall-message")
    with open(message, "w") as out:
        out.write("Subject: stall\r\n\r\n" + "\r\n".join("some words of a line that is looked through" for _ in range(200)) + "\r\n")
    subprocess.run(["/usr/sbin/smtp-source", "-s", "8", "-m", str(count), "-c", "-l", "9000", "-d", "-t", "to@example.com",
                    f"127.0.0.1:{PORTS['smtp']}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)


# ---- a fuzzer that looks for slow requests

def random_value(choose, depth=0):
    kind = choose.randrange(9)
    size = choose.choice([1, 10, 100, 1000, 20_000])
    if kind == 0:
        return {"S": aaa(size, "b") if choose.random() < 0.5 else "".join(choose.choices("ab", k=size))}
    if kind == 1:
        return {"N": str(choose.randrange(10 ** choose.randrange(1, 38)))}
    if kind == 2:
        return {"SS": [f"e{i}" for i in range(min(size, 5000))]}
    if kind == 3:
        return {"NS": [str(i) for i in range(min(size, 5000))]}
    if kind == 4 and depth < 20:
        return {"L": [random_value(choose, depth + 8) for _ in range(choose.randrange(12))]}
    if kind == 5 and depth < 20:
        return {"M": {f"m{i}": random_value(choose, depth + 8) for i in range(choose.randrange(12))}}
    if kind == 6:
        return {"M": {f"m{i:04d}": {"N": "1"} for i in range(min(size, 5000))}}
    if kind == 7:
        value = {"S": "x"}
        for _ in range(choose.randrange(28)):
            value = {"L": [value]} if choose.random() < 0.5 else {"M": {"m": value}}
        return value
    return {"BOOL": True}


def random_condition(choose, values, terms):
    def path():
        return choose.choice(["v", "m", "m.m0001", "l", "l[3]", "m.m0002.m", "a00001", "a29000"])

    def term():
        name = choose.choice(list(values))
        return choose.choice([
            f"contains({path()}, {name})", f"{path()} = {name}", f"{path()} <> {name}", f"size({path()}) > :n",
            f"begins_with({path()}, :s)", f"attribute_type({path()}, :s)", f"{path()} IN ({', '.join(choose.choices(list(values), k=40))})",
            f"{path()} BETWEEN :n AND :n", f"attribute_not_exists({path()})"])

    text = term()
    while terms > 0 and len(text) < 3900:
        text += choose.choice([" OR ", " AND ", " OR NOT "]) + term()
        terms -= 1
    return text[:4000]


def random_request(choose):
    values = {f":v{i}": random_value(choose) for i in range(choose.randrange(1, 12))}
    values.update({":n": {"N": "1"}, ":s": {"S": "S"}})
    condition = random_condition(choose, values, choose.choice([0, 3, 30, 200]))
    used = {name: value for name, value in values.items() if name in condition}
    item = {"pk": {"S": f"f{choose.randrange(20)}"}, "v": random_value(choose), "m": random_value(choose), "l": random_value(choose)}
    if choose.random() < 0.3:
        item.update(wide_item("x", choose.choice([100, 5000, 30_000])))
        item["pk"] = {"S": f"f{choose.randrange(20)}"}
    update = "SET " + ", ".join(f"m.m{i:04d} = :n" for i in range(choose.choice([1, 50, 250])))
    kind = choose.randrange(5)
    if kind == 0:
        return "PutItem", {"TableName": "fuzz", "Item": item}
    if kind == 1:
        return "Scan", {"TableName": "fuzz", "FilterExpression": condition, "ExpressionAttributeValues": used}
    if kind == 2:
        return "PutItem", {"TableName": "fuzz", "Item": item, "ConditionExpression": condition, "ExpressionAttributeValues": used}
    if kind == 3:
        return "UpdateItem", {"TableName": "fuzz", "Key": {"pk": item["pk"]}, "UpdateExpression": update,
                              "ExpressionAttributeValues": {":n": {"N": "1"}}}
    return "TransactWriteItems", {"TransactItems": [
        {"Update": {"TableName": "fuzz", "Key": {"pk": {"S": f"f{n}"}}, "UpdateExpression": update,
                    "ExpressionAttributeValues": {":n": {"N": "1"}}}} for n in range(choose.randrange(1, 12))]}


def changed(choose, request):
    """The same request with one of its parts from another."""
    operation, body = request
    other_operation, other = random_request(choose)
    if operation != other_operation or operation == "TransactWriteItems":
        return other_operation, other
    body = dict(body)
    if choose.random() < 0.5 and "ConditionExpression" in body and "ConditionExpression" in other:
        for member in ("ConditionExpression", "ExpressionAttributeValues"):
            body[member] = other[member]
    else:
        part = choose.choice([member for member in other if member in ("Item", "UpdateExpression", "Key")] or ["TableName"])
        body[part] = other[part]
    return operation, body


def find_slow(seconds, seed):
    choose = random.Random(seed)
    connection = connect()
    call(connection, "CreateTable", {"TableName": "fuzz", "BillingMode": "PAY_PER_REQUEST",
                                     "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                                     "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]})
    slowest, tried, until = [], 0, time.monotonic() + seconds
    while time.monotonic() < until:
        request = changed(choose, choose.choice(slowest)[1:]) if slowest and choose.random() < 0.5 else random_request(choose)
        begun = time.perf_counter()
        status, answer = call(connection, *request)
        took = time.perf_counter() - begun
        if status >= 500:
            raise SystemExit(f"{request[0]} answered {status}: {answer[:300]}")
        tried += 1
        slowest = sorted([*slowest, (took, *request)], key=lambda entry: -entry[0])[:12]
    print(f"the fuzzer tried {tried} requests (seed {seed}); the slowest took {1000 * slowest[0][0]:.0f} ms")
    return {f"fuzzer: {operation}, alone {1000 * took:.0f} ms": (operation, [body], None) for took, operation, body in slowest[:4]}


# ----

def prepare():
    connection = connect()
    for table in ("probe", "large", "wide", "small"):
        call(connection, "CreateTable", {"TableName": table, "BillingMode": "PAY_PER_REQUEST",
                                         "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                                         "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]})
    call(connection, "PutItem", {"TableName": "probe", "Item": {"pk": {"S": "1"}, "v": {"N": "0"}}})
    for n in range(40):
        call(connection, "PutItem", {"TableName": "large", "Item": {"pk": {"S": str(n)}, "v": {"S": aaa(LARGE)}}})
    for n in range(30):
        call(connection, "PutItem", {"TableName": "wide", "Item": wide_item(f"w{n}")})
    for n in range(0, 40_000, 25):
        call(connection, "BatchWriteItem", {"RequestItems": {"small": [
            {"PutRequest": {"Item": {"pk": {"S": str(i)}, "v": {"S": f"value-{i % 500}"}, "x": {"S": "y" * 300}}}}
            for i in range(n, n + 25)]}})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--only", default="")
    parser.add_argument("--fuzz", type=float, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(10 ** 6))
    given = parser.parse_args()
    os.makedirs(servers.WORK, exist_ok=True)
    data = os.path.join(servers.WORK, "stall")
    shutil.rmtree(data, ignore_errors=True)
    binary = os.path.join(servers.ROOT, "build/release/tabella")
    server = servers.Server("stall", PORTS["dynamodb"], [
        binary, "serve", "--data", data, "--dynamodb", f"127.0.0.1:{PORTS['dynamodb']}", "--http",
        f"127.0.0.1:{PORTS['http']}", "--smtp", f"127.0.0.1:{PORTS['smtp']}", "--log-level", "warning"])
    try:
        prepare()
        colliding = subprocess.run([os.path.join(servers.ROOT, "build/release/benchmarks/colliding_names"), "60000"],
                                   capture_output=True, text=True, check=True).stdout.split()
        print(f"{'milliseconds':<52} {'GetItem p99, worst':>17}   {'PutItem p99, worst':>17}")
        well = row("nothing else", while_running(given.seconds)[0])
        chosen = inputs(colliding)
        if given.fuzz:
            chosen.update(find_slow(given.fuzz, given.seed))
        for name, (operation, bodies, headers) in chosen.items():
            if given.only not in name:
                continue
            bodies = [body if isinstance(body, bytes) else json.dumps(body).encode() for body in bodies]
            latencies, reports = while_running(given.seconds, (attack, operation, bodies, headers))
            longest, count, statuses = reports[0]
            well = row(name, latencies, f"{count} x, {1000 * longest:.0f} ms, {statuses}") and well
        if given.only in "an index being filled":
            well = row("an index being filled", while_running(given.seconds * 2, (fill_index,))[0]) and well
        if given.only in "mail that is not indexed yet":
            send_mail(6000)
            paths = ["/api/v2/search?kind=containing&query=nowhere", "/api/v3/messages?query=nowhere", "/api/v2/messages?limit=250",
                     "/api/v2/search?kind=containing&query=words"]
            latencies, reports = while_running(given.seconds, (search_mail, paths))
            well = row("mail that is not indexed yet", latencies,
                       f"{reports[0][1]} x, {1000 * reports[0][0]:.0f} ms, {reports[0][2]}") and well
        print("all under the bar" if well else "some are over the bar")
    finally:
        server.stop()


if __name__ == "__main__":
    main()

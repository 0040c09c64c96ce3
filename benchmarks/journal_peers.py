"""What ./bench journal measures: Tabella's journal and its peers, each with the load generator that goes with it. All keep an
event on disk before they answer, and all generators are C programs on one thread with the same number of connections."""

import http.client
import json
import os
import re
import resource
import shutil
import socket
import statistics
import subprocess
import threading
import time

import mail
import postgresql
import servers
from postgresql import run

CONNECTIONS = 64
ENTITIES = 1000
HERE = os.path.dirname(os.path.abspath(__file__))
PAYLOAD = '{"amount":1250,"currency":"EUR","reference":"'
PAYLOAD += "x" * (256 - len(PAYLOAD) - 2) + '"}'
LOADERS = 8


def generator_seconds():
    """Of the programs that were run and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Load:
    """What one run of a generator came to."""

    def __init__(self, events, seconds, server_seconds, client_seconds, p99=None, compaction_seconds=0):
        self.rate = events / seconds
        self.cost = server_seconds / max(events, 1) * 1e6  # µs of processor time
        self.compaction = compaction_seconds / max(events, 1) * 1e6  # what of it went into compaction of Tabella's files
        self.client = client_seconds / seconds  # of one core; near 1 the generator is what is measured
        self.p99 = p99


class Measured(servers.Server):
    """A server that events are appended to."""

    def append(self, seconds, batch=1, **where):
        """As many as it takes in about so many seconds. What it does behind its answers is part of the cost."""
        before, compaction = self.cpu_seconds(), self.costs()[1]
        client = generator_seconds()
        events, took, p99 = self.drive(seconds, batch, **where)
        client = generator_seconds() - client
        self.settle(at_most=30)
        return Load(events, took, self.cpu_seconds() - before, client, p99, self.costs()[1] - compaction)


class Tabella(Measured):
    def __init__(self, name, port, keep=False):
        folder = os.path.join(servers.WORK, f"journal-{port}")
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
        super().__init__(name, port, [os.path.join(servers.ROOT, "build/release/tabella"), "serve", "--data", folder, "--systems", "journal",
                                      "--http", f"127.0.0.1:{port}", "--dynamodb", f"127.0.0.1:{port + 1}", "--log-level", "warning"])
        self.payload = os.path.join(servers.WORK, "payload")
        with open(self.payload, "w") as file:
            file.write(PAYLOAD)

    def drive(self, seconds, batch, connections=CONNECTIONS, entities=ENTITIES, journal="bench", pid=None):
        output = run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "--latency", "-s", os.path.join(HERE, "journal.lua"),
                      f"http://127.0.0.1:{self.port}/", "--", journal, self.payload, str(batch), str(entities), *([pid] if pid else [])])
        if "Non-2xx" in output or "Socket errors" in output:
            raise SystemExit(f"{self.name} refused appends:\n{output}")
        requests, took = re.search(r"(\d+) requests in ([\d.]+\w+)", output).groups()
        p99 = re.search(r"99%\s+(\S+)", output).group(1)
        return int(requests) * batch, seconds_of(took), 1000 * seconds_of(p99)

    def load(self, count, journal, pid, batch, progress=None):
        """Exactly so many events: `pid(n)` has those of the n-th append."""
        appends = iter(range(-(-count // batch)))
        failures, lock = [], threading.Lock()
        body = lambda size: ('{"events":[' + ",".join(['{"data":' + PAYLOAD + "}"] * size) + "]}").encode()
        full, last = body(batch), body(count % batch or batch)

        def work():
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
            while not failures:
                with lock:
                    number = next(appends, None)
                if number is None:
                    return
                connection.request("POST", f"/journal/{journal}/{pid(number)}/events", last if (number + 1) * batch > count else full,
                                   {"Content-Type": "application/json"})
                response = connection.getresponse()
                answer = response.read()
                if response.status != 201:
                    failures.append(f"{self.name}: {response.status} {answer[:300]!r}")
                if progress:
                    progress((number + 1) * batch)

        # Appends to one entity one after the other: none is to be refused because of another.
        workers = [threading.Thread(target=work) for _ in range(1 if pid(0) == pid(1) else LOADERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if failures:
            raise SystemExit(failures[0])

    def load_one(self, count):
        self.load(count, "replayed", lambda _: "replayed", 1000)

    def replay(self, count):
        """Events a second, as NDJSON."""
        url = f"http://127.0.0.1:{self.port}/journal/replayed/replayed/events?format=ndjson"
        answer = run(["curl", "-sS", "--fail", "-o", "/dev/null", "-w", "%{time_total} %{size_download}", url]).split()
        if int(answer[1]) < count * len(PAYLOAD):
            raise SystemExit(f"{self.name} replayed {answer[1]} bytes only")
        return count / float(answer[0])

    def replayed_lines(self):
        url = f"http://127.0.0.1:{self.port}/journal/replayed/replayed/events?format=ndjson"
        lines = subprocess.Popen(["curl", "-sS", "--fail", url], stdout=subprocess.PIPE)
        count = int(run(["wc", "-l"], stdin=lines.stdout))
        if lines.wait() != 0:
            raise SystemExit(f"{self.name}: the replay was cut")
        return count


def seconds_of(text):
    """As wrk prints times."""
    value, unit = re.match(r"([\d.]+)(us|ms|s|m)$", text).groups()
    return float(value) * {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60}[unit]


class Redis(Measured):
    """Streams, each event synced before the answer."""

    def __init__(self, port):
        # Debian has the server as a link to this program, in a package that would start it as a service.
        super().__init__("Redis", port, ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", mail.fresh("journal-redis"),
                                         "--appendonly", "yes", "--appendfsync", "always", "--save", ""], executable="/usr/bin/redis-check-rdb")
        self.rate_seen = 2000.0

    def answers(self):
        try:
            with self.connect() as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(100).startswith(b"+PONG")
        except OSError:
            return False

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), 600)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def benchmark(self, events, batch, connections, stream):
        return run(["redis-benchmark", "-p", str(self.port), "-c", str(connections), "-n", str(events), "-P", str(batch), "-r", str(ENTITIES), "--csv",
                    "XADD", stream, "*", "data", PAYLOAD])

    def drive(self, seconds, batch):
        # It takes a number of requests, not a time: what the last run came to says how many.
        events = max(CONNECTIONS * batch * 10, int(self.rate_seen * seconds))
        begun = time.monotonic()
        output = self.benchmark(events, batch, CONNECTIONS, "account-__rand_int__")
        took = time.monotonic() - begun
        self.rate_seen = events / took
        columns = output.strip().splitlines()[-1].rsplit(",", 7)
        rate, p99 = float(columns[1].strip('"')), float(columns[6].strip('"'))
        return events, events / rate, p99

    def load_one(self, count):
        self.benchmark(count, 100, 1, "replayed")

    def replay(self, count):
        """Events a second; what comes is not looked at."""
        with self.connect() as connection:
            buffer, end, got = bytearray(1 << 20), b"", 0
            begun = time.monotonic()
            connection.sendall(b"XRANGE replayed - +\r\nPING\r\n")
            while not end.endswith(b"+PONG\r\n"):
                size = connection.recv_into(buffer)
                got += size
                end = (end + bytes(buffer[max(0, size - 7):size]))[-7:]
            took = time.monotonic() - begun
        if got < count * len(PAYLOAD):
            raise SystemExit(f"Redis replayed {got} bytes only")
        return count / took


# Each connection has entities of its own, so that none has to wait for another.
INSERT = """\\set pid random(1, {entities}) * 64 + :client_id
INSERT INTO events SELECT :pid, highest + number, '{payload}'
  FROM (SELECT coalesce(max(seq), 0) highest FROM events WHERE pid = :pid) there, generate_series(1, {batch}) number;
"""


class PostgreSQL(Measured, postgresql.Cluster):
    """A table of events."""

    def __init__(self, port):
        postgresql.Cluster.__init__(self, port)
        self.psql("CREATE TABLE events (pid bigint, seq bigint, payload text NOT NULL, PRIMARY KEY (pid, seq))")

    def drive(self, seconds, batch):
        done, took = self.pgbench(INSERT.format(entities=ENTITIES // CONNECTIONS, payload=PAYLOAD, batch=batch), seconds, CONNECTIONS)
        return done * batch, took, None

    def load_one(self, count):
        self.psql(f"INSERT INTO events SELECT 0, number, '{PAYLOAD}' FROM generate_series(1, {count}) number")
        self.psql("VACUUM ANALYZE events")

    def replay(self, count):
        begun = time.monotonic()
        with open("/dev/null", "w") as nowhere:
            subprocess.run([os.path.join(self.programs, "psql"), "-X", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", "bench", "-d", "postgres", "-c",
                            "COPY (SELECT seq, payload FROM events WHERE pid = 0 ORDER BY seq) TO STDOUT"], stdout=nowhere, check=True)
        return count / (time.monotonic() - begun)


class InProcess:
    """The journal in a program of its own, on a folder of its own."""

    name = "in process"
    program = os.path.join(servers.ROOT, "build/release/benchmarks/journal_in_process")

    def __init__(self):
        self.folder = mail.fresh("journal-in-process")

    def ask(self, *arguments):
        return json.loads(run([self.program, self.folder, *map(str, arguments)]))

    def append(self, seconds, batch=1):
        figures = self.ask("append", seconds, batch)
        return Load(figures["events"], figures["seconds"], figures["processor_seconds"], 0)

    def load_one(self, count):
        self.ask("replay", count, 0)

    def replay(self, count):
        return count / statistics.median(self.ask("replay", count, 3)["seconds"])

    def stop(self):
        shutil.rmtree(self.folder, ignore_errors=True)

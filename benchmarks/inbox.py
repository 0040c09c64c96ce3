"""./bench inbox: messages published, feeds and counts read, a broadcast, and open event streams, beside what a team would build on PostgreSQL
(a table of messages with an index, synchronous_commit on; its own HTTP layer left out), in one run on one disk, with nginx as the ceiling of what is
reached over HTTP. Ratios are what counts.

  ./bench inbox [--seconds 4] [--rounds 3] [--only publish|told|feed|anew|counts|broadcast|streams] [--messages 100] [--users 1000]
                [--broadcast 1000000] [--streams 10000]

publish    a message for one user in a request, at 64 connections
told       the same, where PostgreSQL tells whoever listens (pg_notify), as an open page needs it: here it always is
feed       a page of 20 for a user with --messages of his own and as many broadcasts, as he asks for it again and again
anew       pages of 15 to 25 of the same users in turns: more than are kept in memory, so that each is made anew
counts     unread, in all and by category, of the same users
broadcast  one message for everybody: what it costs here, and for --broadcast users as rows of PostgreSQL
streams    --streams pages that are open: the memory they take, and the time from a publication to its page
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import re
import resource
import selectors
import shutil
import socket
import statistics
import threading
import time

import journal
import journal_peers
import postgresql
import servers

PORT = 8700
CONNECTIONS = 64
MESSAGE = json.dumps({"title": "Your order is on its way", "body": "It arrives tomorrow between 9 and 12. " + "x" * 120, "cta_uri": "/orders/1"})
HERE = os.path.dirname(os.path.abspath(__file__))


def wrk(port, what, seconds, users, message):
    """How many requests were answered, and the seconds they took."""
    output = postgresql.run(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}", "-s", os.path.join(HERE, "inbox.lua"), f"http://127.0.0.1:{port}/", "--",
                             what, str(users), message])
    if "Non-2xx" in output or "Socket errors" in output:
        raise SystemExit(f"{what}: some were refused:\n{output}")
    requests, took = re.search(r"(\d+) requests in ([\d.]+\w+)", output).groups()
    return int(requests), journal_peers.seconds_of(took)


class Tabella(servers.Server):
    def __init__(self, port):
        folder = os.path.join(servers.WORK, "inbox")
        shutil.rmtree(folder, ignore_errors=True)
        super().__init__("Tabella", port, [os.path.join(servers.ROOT, "build/release/tabella"), "serve", "--data", folder, "--systems", "inbox",
                                           "--http", f"127.0.0.1:{port}", "--dynamodb", f"127.0.0.1:{port + 1}", "--log-level", "warning"])
        self.message = os.path.join(servers.WORK, "message")
        with open(self.message, "w") as file:
            file.write(MESSAGE)

    def request(self, method, path, body=None, user=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, f"/inbox/shop/bell/{path}", json.dumps(body) if body else None, {"X-Inbox-User": user} if user else {})
        response = connection.getresponse()
        text = response.read()
        connection.close()
        if response.status >= 300:
            raise SystemExit(f"{path}: {response.status} {text[:300]!r}")
        return json.loads(text)

    def publish(self, to, message=MESSAGE):
        return self.request("POST", "messages/post", {"to": to, "category": "orders", "message": json.loads(message)})

    def drive(self, what, seconds, users):
        """Requests a second, and µs of processor time each."""
        before = self.cpu_seconds()
        requests, took = wrk(self.port, what, seconds, users, self.message)
        return requests / took, (self.cpu_seconds() - before) / requests * 1e6

    def fill(self, users, messages):
        for user in range(users):
            self.request("GET", "counts", user=f"user-{user:06}")
        everybody = [f"user-{user:06}" for user in range(users)]
        for number in range(messages):
            self.publish("everyone")
            post = self.publish(everybody)
            while post["state"] == "sending":
                time.sleep(0.02)
                post = self.request("GET", f"posts/{post['id']}")
            if number % 20 == 19:
                print(f"  {number + 1} of {messages} messages for each of {users} users, and as many for everybody", flush=True)


SCHEMA = """
CREATE TABLE messages (user_id int NOT NULL, id bigserial, category text, read_at timestamptz, expires_at timestamptz NOT NULL, message jsonb NOT NULL, PRIMARY KEY (user_id, id));
CREATE INDEX unread ON messages (user_id, category) WHERE read_at IS NULL;
CREATE TABLE broadcasts (id bigint PRIMARY KEY, category text, expires_at timestamptz NOT NULL, message jsonb NOT NULL);
CREATE TABLE receipts (user_id int, id bigint, read_at timestamptz NOT NULL, PRIMARY KEY (user_id, id));
"""
USER = "\\set user random(0, {users} - 1)\n"
PUBLISH = USER + "INSERT INTO messages (user_id, category, expires_at, message) VALUES (:user, 'orders', now() + interval '30 days', '{message}');\n"
TOLD = PUBLISH.replace("INSERT", "WITH made AS (INSERT", 1).replace(";\n", " RETURNING user_id, id) SELECT pg_notify('bell', user_id || ' ' || id) FROM made;\n")
FEED = USER + """SELECT * FROM (
  (SELECT id, category, read_at, message FROM messages WHERE user_id = :user AND expires_at > now() ORDER BY id DESC LIMIT 20)
  UNION ALL
  (SELECT b.id, b.category, r.read_at, b.message FROM broadcasts b LEFT JOIN receipts r ON r.user_id = :user AND r.id = b.id WHERE b.expires_at > now() ORDER BY b.id DESC LIMIT 20)
) both_kinds ORDER BY id DESC LIMIT 20;
"""
COUNTS = USER + """SELECT category, sum(count) FROM (
  SELECT category, count(*) FROM messages WHERE user_id = :user AND read_at IS NULL AND expires_at > now() GROUP BY category
  UNION ALL
  SELECT b.category, count(*) FROM broadcasts b WHERE b.expires_at > now() AND NOT EXISTS (SELECT FROM receipts r WHERE r.user_id = :user AND r.id = b.id) GROUP BY b.category
) both_kinds GROUP BY category;
"""
SCRIPTS = {"publish": PUBLISH, "told": TOLD, "feed": FEED, "anew": FEED, "counts": COUNTS}


class PostgreSQL(postgresql.Cluster):
    def __init__(self, port):
        super().__init__(port)
        self.psql(SCHEMA)

    def drive(self, what, seconds, users):
        before = self.cpu_seconds()
        done, took = self.pgbench(SCRIPTS[what].format(users=users, message=MESSAGE), seconds, CONNECTIONS)
        return done / took, (self.cpu_seconds() - before) / done * 1e6

    def fill(self, users, messages):
        self.psql(f"INSERT INTO messages (user_id, category, expires_at, message) SELECT u, 'orders', now() + interval '30 days', '{MESSAGE}' "
                  f"FROM generate_series(0, {users - 1}) u, generate_series(1, {messages})")
        self.psql(f"INSERT INTO broadcasts SELECT n, 'orders', now() + interval '30 days', '{MESSAGE}' FROM generate_series(1, {messages}) n")
        self.psql("VACUUM ANALYZE")


class Nginx:
    """What the same requests come to if nothing is done for them: the ceiling for whoever is reached over HTTP."""

    name = "nginx"

    def __init__(self, port, message):
        self.server, self.message = servers.nginx(port), message

    def drive(self, what, seconds, users):
        before = self.server.cpu_seconds()
        requests, took = wrk(self.server.port, what, seconds, users, self.message)
        return requests / took, (self.server.cpu_seconds() - before) / requests * 1e6

    def stop(self):
        self.server.stop()


def compare(options, what, tabella, peer, nginx, verdicts):
    if what not in ("publish", "told"):
        connection = http.client.HTTPConnection("127.0.0.1", tabella.port)
        connection.request("GET", "/inbox/shop/bell/" + ("counts" if what == "counts" else "messages?limit=20"), headers={"X-Inbox-User": "user-000000"})
        servers.set_nginx_answer(connection.getresponse().read())
    figures = journal.in_turns(options, [tabella, peer, nginx], lambda subject: subject.drive(what, options.seconds, options.users),
                               lambda figure: f"{figure[0]:.0f} a second, {figure[1]:.0f} µs of processor time each")
    ours, theirs, ceiling = (statistics.median(rate for rate, _ in figures[subject.name]) for subject in (tabella, peer, nginx))
    print(f"{what}: {ours:.0f} a second, PostgreSQL {theirs:.0f}: {ours / theirs:.2f} times as many; nginx with an answer as long {ceiling:.0f}, which is {ceiling / theirs:.2f} times\n")
    if what != "counts":
        verdicts.add(f"{what} against PostgreSQL", ours / theirs, 3, "{:.2f}×")


def broadcast(options, tabella, peer, verdicts):
    def store_calls():
        connection = http.client.HTTPConnection("127.0.0.1", tabella.port, timeout=10)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("tabella_commit_seconds_count"))

    took = []
    commits = store_calls()
    for _ in range(20):
        begun = time.monotonic()
        tabella.publish("everyone")
        took.append(1000 * (time.monotonic() - begun))
    commits = (store_calls() - commits) / 20
    print(f"broadcast: {statistics.median(took):.1f} ms and {commits:.1f} commits, however many users there are")
    verdicts.add("commits of a broadcast, for any number of users", commits, 1, "{:.1f}", least=False)
    begun = time.monotonic()
    peer.psql(f"INSERT INTO messages (user_id, category, expires_at, message) SELECT 1000000 + n, 'orders', now() + interval '30 days', '{MESSAGE}' "
              f"FROM generate_series(1, {options.broadcast}) n")
    print(f"           as {options.broadcast} rows of PostgreSQL, one statement: {time.monotonic() - begun:.1f} s")
    # Whoever they are: users of whom there has been nothing yet, out of ten million.
    before = {user: tabella.request("GET", "counts", user=user)["all"] for user in (f"user-{random.randrange(10_000_000)}" for _ in range(100))}
    tabella.publish("everyone")
    for user, counts in before.items():
        after = tabella.request("GET", "counts", user=user)["all"]
        if (after["unread"], after["total"]) != (counts["unread"] + 1, counts["total"] + 1):
            raise SystemExit(f"{user}: {counts} became {after}")
    print("           100 users out of ten million: each has it, unread\n")


def streams(options, tabella, verdicts):
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    memory = tabella.memory()
    selector, opened = selectors.DefaultSelector(), []
    begun = time.monotonic()
    for number in range(options.streams):
        connection = socket.create_connection(("127.0.0.1", tabella.port), 60)
        connection.sendall(f"GET /inbox/shop/bell/live HTTP/1.1\r\nHost: 127.0.0.1:{tabella.port}\r\nX-Inbox-User: open-{number:06}\r\n\r\n".encode())
        opened.append(connection)
        if number % 200 == 199:  # not more at once than are answered
            for one in opened[-200:]:
                while b"event: counts" not in one.recv(65536):
                    pass
    for one in opened[len(opened) - len(opened) % 200:]:
        while b"event: counts" not in one.recv(65536):
            pass
    print(f"{options.streams} streams opened in {time.monotonic() - begun:.1f} s", flush=True)
    tabella.settle(at_most=20)
    taken = tabella.memory()
    print(f"memory: {taken:.0f} MB with them, {memory:.0f} MB before")
    verdicts.add(f"memory with {options.streams} open streams", taken, 500, "{:.0f} MB", least=False)
    arrived, stop = {}, threading.Event()
    for number, one in enumerate(opened):
        one.setblocking(False)
        selector.register(one, selectors.EVENT_READ, number)

    def watch():
        while not stop.is_set():
            for key, _ in selector.select(0.2):
                if b"event: message" in key.fileobj.recv(65536):
                    arrived.setdefault(key.data, time.monotonic())

    watcher = threading.Thread(target=watch)
    watcher.start()
    delays = []
    for _ in range(50 * options.seconds):
        number = random.randrange(options.streams)
        arrived.pop(number, None)
        tabella.publish(f"open-{number:06}")
        answered = time.monotonic()
        while number not in arrived and time.monotonic() - answered < 10:
            time.sleep(0.001)
        delays.append(1000 * (arrived[number] - min(answered, arrived[number])))
        time.sleep(0.01)
    stop.set()
    watcher.join()
    delays.sort()
    p99 = delays[int(len(delays) * 0.99)]
    print(f"from the answer to its page: median {statistics.median(delays):.1f} ms, p99 {p99:.1f} ms, of {len(delays)}")
    verdicts.add("commit to bell at p99", p99, 50, "{:.1f} ms", least=False)
    for one in opened:
        one.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=100)
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--broadcast", type=int, default=1_000_000)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--only", choices=["streams", "publish", "told", "feed", "anew", "counts", "broadcast"])
    options = parser.parse_args()
    os.makedirs(servers.WORK, exist_ok=True)
    wanted = [options.only] if options.only else ["streams", "publish", "told", "feed", "anew", "counts", "broadcast"]
    verdicts = journal.Verdicts()
    with contextlib.ExitStack() as stack:
        def started(server):
            stack.callback(server.stop)
            return server

        tabella = started(Tabella(PORT))
        if wanted != ["streams"]:
            peer = started(PostgreSQL(PORT + 10))
            nginx = started(Nginx(PORT + 20, tabella.message))
        if "streams" in wanted:
            streams(options, tabella, verdicts)
        for what in ("publish", "told"):
            if what in wanted:
                compare(options, what, tabella, peer, nginx, verdicts)
        reads = [what for what in ("feed", "anew", "counts") if what in wanted]
        if reads:
            for server in (tabella, peer):
                server.fill(options.users, options.messages)
                server.settle(at_most=30)
        for what in reads:
            compare(options, what, tabella, peer, nginx, verdicts)
        if "broadcast" in wanted:
            broadcast(options, tabella, peer, verdicts)
    verdicts.print()


if __name__ == "__main__":
    main()

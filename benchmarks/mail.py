"""./bench mail: how fast mail is taken in, beside MailHog, Mailpit (or maildev, where there is no Go) and Postfix's
smtp-sink, which keeps nothing and so is the ceiling; then searching and listing among many messages.

  ./bench mail [--seconds 4] [--rounds 3] [--messages 100000]

smtp-source drives all: 16 sessions, 10 KB messages, one connection for each session. Ratios are what counts.
"""

import argparse
import http.client
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import time
import urllib.parse

import servers

SESSIONS, SIZE = 16, 10 * 1024
PEERS = os.path.join(servers.WORK, "peers")


class MailServer(servers.Watched):
    """A process with an SMTP port."""

    def __init__(self, name, command, port, http=None, environment=None):
        self.name, self.port, self.http = name, port, http
        with open(os.path.join(servers.WORK, name.replace(" ", "-") + ".log"), "w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **(environment or {})})
        deadline = time.monotonic() + 30
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{name} did not start")
            time.sleep(0.05)

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                return connection.recv(3) == b"220"
        except OSError:
            return False


def fresh(name):
    folder = os.path.join(servers.WORK, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def tabella(port=11025, http=18025, dynamodb=18000):
    return MailServer("Tabella", [os.path.join(servers.ROOT, "build/release/tabella"), "serve", "--data", fresh("mail-data"),
                                  "--dynamodb", f"127.0.0.1:{dynamodb}", "--http", f"127.0.0.1:{http}",
                                  "--smtp", f"127.0.0.1:{port}", "--log-level", "warning"], port, http)


def smtp_sink(port=11026):
    command = ["smtp-sink"] + (["-u", "nobody"] if os.geteuid() == 0 else [])
    return MailServer("smtp-sink", [*command, f"127.0.0.1:{port}", "1000"], port)


def mailhog(kind, port):
    program = os.path.join(PEERS, "MailHog")
    if not os.path.exists(program):
        return None
    storage = ["-storage", "maildir", "-maildir-path", fresh("mailhog-mail")] if kind == "maildir" else ["-storage", "memory"]
    return MailServer(f"MailHog ({kind})", [program, "-smtp-bind-addr", f"127.0.0.1:{port}", "-api-bind-addr", f"127.0.0.1:{port + 100}",
                                            "-ui-bind-addr", f"127.0.0.1:{port + 100}", *storage], port)


def mailpit(port=11029):
    program = os.path.join(PEERS, "mailpit")
    if not os.path.exists(program):
        return None
    return MailServer("Mailpit", [program, "--smtp", f"127.0.0.1:{port}", "--listen", f"127.0.0.1:{port + 100}", "--database",
                                  os.path.join(fresh("mailpit"), "mail.db"), "--max", "0", "--quiet"], port)


def maildev(port=11030):
    script = os.path.join(servers.WORK, "node_modules/maildev/bin/maildev")
    if not os.path.exists(script):
        subprocess.run(["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", servers.WORK, "maildev"], check=True)
    return MailServer("maildev", ["node", script, "--smtp", str(port), "--web", str(port + 100), "--mail-directory", fresh("maildev"),
                                  "--silent"], port)


def peers():
    found = [peer for peer in (mailhog("memory", 11027), mailhog("maildir", 11028), mailpit()) if peer]
    return found or [maildev()]


def source(port, messages):
    begun = time.monotonic()
    subprocess.run(["smtp-source", "-d", "-s", str(SESSIONS), "-l", str(SIZE), "-m", str(messages), f"127.0.0.1:{port}"], check=True)
    return messages / (time.monotonic() - begun)


def measure(server, seconds):
    """As many messages as take about so long."""
    rate = source(server.port, 300)
    return source(server.port, max(200, int(rate * seconds)))


def intake(options):
    ours, ceiling, others = tabella(), smtp_sink(), peers()
    everyone = [ours, ceiling, *others]
    figures = {server.name: [] for server in everyone}
    try:
        for number in range(options.rounds):
            for server in everyone:
                figures[server.name].append(measure(server, options.seconds))
                print(f"round {number + 1} of {options.rounds}: {server.name}: {figures[server.name][-1]:.0f} messages a second", flush=True)
    finally:
        for server in everyone:
            server.stop()
    medians = {name: statistics.median(rates) for name, rates in figures.items()}
    print(f"\nintake, {SESSIONS} sessions, {SIZE // 1024} KB messages, medians of {options.rounds} rounds")
    for name, rate in medians.items():
        print(f"  {name:20} {rate:8.0f} a second   Tabella is {medians['Tabella'] / rate:5.2f} times that")
    print("  (MailHog in memory keeps nothing over a restart; Tabella has each message on disk before it answers.)")


def words(seed):
    random.seed(seed)
    consonants, vowels = "bcdfghjklmnpqrstvwz", "aeiou"
    return ["".join(random.choice(consonants) + random.choice(vowels) for _ in range(random.randint(1, 5))) for _ in range(20_000)]


def message(number, vocabulary):
    text = " ".join(random.choice(vocabulary) for _ in range(400))
    return (f"From: Sender {number % 977} <sender{number % 977}@example.com>\r\nTo: user{number % 5000}@example.org\r\n"
            f"Subject: Order {number} of {random.choice(vocabulary)}\r\nMessage-ID: <{number}@bench>\r\n\r\n{text}\r\nneedle{number}x\r\n.\r\n").encode()


def fill(port, count):
    """Pipelined on a few connections: faster than a client that waits for each reply."""
    vocabulary = words(1)
    connections = []
    for _ in range(4):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.recv(1000)
        connection.sendall(b"EHLO bench\r\n")
        connection.recv(1000)
        connections.append(connection)
    sent = 0
    while sent < count:
        batches = []
        for connection in connections:
            batch = b"".join(b"MAIL FROM:<a@example.com>\r\nRCPT TO:<user%d@example.org>\r\nDATA\r\n" % ((sent + i) % 5000) + message(sent + i, vocabulary)
                             for i in range(min(25, count - sent)))
            replies = 4 * min(25, count - sent)
            sent += min(25, count - sent)
            connection.sendall(batch)
            batches.append((connection, replies))
        for connection, replies in batches:
            while replies > 0:
                replies -= connection.recv(65536).count(b"\r\n")
        if sent % 10_000 < 100:
            print(f"  {sent} messages", flush=True)


def ask(port, path, times):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    taken, answer = [], None
    for target in (path() for _ in range(times)):
        begun = time.monotonic()
        connection.request("GET", target)
        response = connection.getresponse()
        answer = response.read()
        taken.append(1000 * (time.monotonic() - begun))
        if response.status != 200:
            raise SystemExit(f"{target}: {response.status} {answer[:200]}")
    taken.sort()
    return statistics.median(taken), taken[int(len(taken) * 0.99)], json.loads(answer)


def searching(options):
    server = tabella()
    try:
        empty = server.memory()
        print(f"\nfilling with {options.messages} messages of about 3 KB", flush=True)
        begun = time.monotonic()
        fill(server.port, options.messages)
        taken_in = time.monotonic() - begun
        print(f"  taken in in {taken_in:.0f} s; waiting for the index", flush=True)
        behind = None
        while behind is None or behind > 0:
            time.sleep(1)
            connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=60)
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().splitlines()
            indexed = next(float(line.split()[1]) for line in lines if line.startswith("tabella_mail_indexed_total"))
            behind = options.messages - indexed
        print(f"  indexed {time.monotonic() - begun:.0f} s after the first message; merging may go on for a moment", flush=True)
        time.sleep(5)
        vocabulary = [word for word in words(1) if len(word) >= 6]
        quote = urllib.parse.quote
        number = lambda: random.randrange(options.messages)
        questions = {
            "search: one message (needle…)": lambda: f"/api/v2/search?kind=containing&query=needle{number()}x&limit=50",
            "search: a word of many": lambda: f"/api/v2/search?kind=containing&query={random.choice(vocabulary)}&limit=50",
            "search: two words": lambda: f"/api/v3/messages?query={quote(random.choice(vocabulary) + ' ' + random.choice(vocabulary))}",
            "search: to:": lambda: f"/api/v2/search?kind=to&query=user{number() % 5000}@example.org",
            "search: from: and subject:": lambda: f"/api/v3/messages?query={quote(f'from:sender{number() % 977}@ subject:order')}",
            "search: an inbox": lambda: f"/api/v3/inboxes/user{number() % 5000}@example.org/messages",
            "search: nothing": lambda: f"/api/v2/search?kind=containing&query=qxzqy{number()}",
            "list: first page": lambda: "/api/v2/messages?limit=50",
            "list: any page": lambda: f"/api/v2/messages?limit=50&start={number()}",
        }
        print(f"\nanswers over {options.messages} messages, in milliseconds")
        for name, path in questions.items():
            median, worst, answer = ask(server.http, path, options.questions)
            print(f"  {name:32} median {median:7.1f}   99th percentile {worst:7.1f}   last found {answer['total']}")
        print(f"\nmemory: {empty:.0f} MB empty, {server.memory():.0f} MB with {options.messages} messages")
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--only", choices=["intake", "search"])
    options = parser.parse_args()
    os.makedirs(servers.WORK, exist_ok=True)
    if options.only != "search":
        intake(options)
    if options.only != "intake":
        searching(options)


if __name__ == "__main__":
    main()

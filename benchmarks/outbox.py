"""./bench outbox: how fast emails are accepted, kept and delivered, beside Postfix; then what queued emails cost.

  ./bench outbox [--messages 5000] [--rounds 3] [--queued 1000000] [--only postfix|queued]

smtp-source hands over messages of 3 KB in 16 sessions, and smtp-sink takes them at the other end; a rate is that from the first
message handed over to the last one taken. Both have each message on disk before they answer. Then Tabella beside itself: with a
thousand emails that are queued for tomorrow, and with a million. Ratios are what counts.
"""

import argparse
import datetime
import http.client
import json
import os
import pwd
import shutil
import statistics
import subprocess
import threading
import time

import mail
import servers

SESSIONS, SIZE = 16, 3000
AT_ONCE = 100  # emails in one request
FEW = 1000
WARM_UP = 500
os.environ["PATH"] += ":/usr/sbin"


class Sink:
    """smtp-sink, and how many messages it has taken."""

    def __init__(self, port):
        self.port, self.said = port, b""
        command = ["smtp-sink"] + (["-u", "nobody"] if os.geteuid() == 0 else [])
        self.process = subprocess.Popen([*command, "-c", f"127.0.0.1:{port}", "1000"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.count = 0

    def look(self):
        """It says "sess=1 quit=0 mesg=17" whenever one of them changes."""
        while piece := self.process.stdout.read(1 << 20):
            *lines, self.said = (self.said + piece).split(b"\r")
            if lines:
                self.count = int(lines[-1].rsplit(b"=", 1)[1])

    def wait_for(self, count):
        deadline = time.monotonic() + 600
        while self.count < count:
            if time.monotonic() > deadline:
                raise SystemExit(f"{count - self.count} were not delivered")
            time.sleep(0.005)
            self.look()

    def stop(self):
        self.process.kill()
        self.process.wait()


class Tabella(mail.MailServer):
    def __init__(self, name, ports):
        port, http_port, dynamodb, sink = range(ports, ports + 4)
        self.sink = Sink(sink)
        super().__init__(name, [os.path.join(servers.ROOT, "build/release/tabella"), "serve", "--data", mail.fresh(name.replace(" ", "-")),
                                "--dynamodb", f"127.0.0.1:{dynamodb}", "--http", f"127.0.0.1:{http_port}", "--smtp", "off",
                                "--submission", f"127.0.0.1:{port}", "--outbox-mode", "relay", "--outbox-relay", f"smtp://127.0.0.1:{sink}?tls=off",
                                "--log-level", "warning"], port, http_port)

    def stop(self):
        super().stop()
        self.sink.stop()


MAIN_CF = """
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
maillog_file = {folder}/queue/log
maillog_file_prefixes = {folder}
multi_instance_name =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
mydestination =
relayhost = [127.0.0.1]:{sink}
alias_maps =
# As fast as it can: it neither slows down whoever hands over, nor looks anything up, nor speaks TLS, which Tabella does not either.
in_flow_delay = 0
smtpd_peername_lookup = no
smtp_tls_security_level = none
smtpd_tls_security_level = none
smtpd_client_connection_count_limit = 0
"""

MASTER_CF = """
127.0.0.1:{port} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
tlsmgr unix - - n 1000? 1 tlsmgr
postlog unix-dgram n - n - 1 postlogd
"""


class Postfix:
    """An instance of its own that takes mail from this machine and hands it to the sink."""

    name = "Postfix"

    def __init__(self, ports):
        self.port, self.sink = ports, Sink(ports + 1)
        # Its processes are another user's, who must get there.
        self.folder = f"/tmp/tabella-bench-postfix-{os.getpid()}"
        self.config = os.path.join(self.folder, "config")
        for part in ("config", "queue", "data"):
            os.makedirs(os.path.join(self.folder, part))
        os.chown(os.path.join(self.folder, "data"), pwd.getpwnam("postfix").pw_uid, -1)
        for file, text in (("main.cf", MAIN_CF), ("master.cf", MASTER_CF)):
            with open(os.path.join(self.config, file), "w") as out:
                out.write(text.format(folder=self.folder, port=self.port, sink=self.sink.port).lstrip())
        subprocess.run(["postfix", "-c", self.config, "start"], check=True, capture_output=True)
        time.sleep(1)

    def stop(self):
        subprocess.run(["postfix", "-c", self.config, "stop"], capture_output=True)
        self.sink.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def deliver(server, messages):
    """Messages a second, from one end to the other; and how many a second were handed over."""
    server.sink.look()
    there = server.sink.count
    begun = time.monotonic()
    source = subprocess.Popen(["smtp-source", "-d", "-s", str(SESSIONS), "-l", str(SIZE), "-m", str(messages), "-f", "shop@example.com",
                               "-t", "ann@example.com", f"127.0.0.1:{server.port}"])
    while source.poll() is None:
        server.sink.look()
        time.sleep(0.005)
    if source.returncode != 0:
        raise SystemExit(f"{server.name} did not take them")
    handed_over = time.monotonic() - begun
    server.sink.wait_for(there + messages)
    return messages / (time.monotonic() - begun), messages / handed_over


def compare(everyone, options):
    """Their rates, in turns; the medians."""
    for server in everyone:
        deliver(server, WARM_UP)
    rates = {server.name: [] for server in everyone}
    for number in range(options.rounds):
        for server in everyone:
            rate, taken = deliver(server, options.messages)
            rates[server.name].append(rate)
            print(f"round {number + 1} of {options.rounds}: {server.name}: {rate:.0f} delivered a second (taken in at {taken:.0f})", flush=True)
    return {name: statistics.median(figures) for name, figures in rates.items()}


def beside_postfix(options):
    ours, theirs = Tabella("Tabella", 11030), Postfix(11040)
    try:
        medians = compare([ours, theirs], options)
    finally:
        ours.stop()
        theirs.stop()
    print(f"\naccepted and delivered, {SESSIONS} sessions, {SIZE // 1000} KB messages, medians of {options.rounds} rounds of {options.messages}")
    for name, rate in medians.items():
        print(f"  {name:10} {rate:8.0f} a second")
    print(f"  Tabella is {medians[ours.name] / medians[theirs.name]:.2f} times Postfix\n", flush=True)


def queue_for_tomorrow(server, count):
    """By several clients, in large requests."""
    tomorrow = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = "Thank you for your order.\r\n" * (SIZE // 27)
    email = {"from": "shop@example.com", "to": "ann@example.com", "subject": "Tomorrow", "body_text": text, "send_at": tomorrow}
    requests = iter(range(0, count, AT_ONCE))
    lock, failures = threading.Lock(), []

    def load():
        connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=600)
        while not failures:
            with lock:
                first = next(requests, None)
            if first is None:
                return
            if first and first % 100_000 == 0:
                print(f"  {first} queued after {time.monotonic() - begun:.0f} s", flush=True)
            connection.request("POST", "/outbox/emails", json.dumps({"data": [email] * min(AT_ONCE, count - first)}))
            response = connection.getresponse()
            answer = response.read()
            if response.status != 201:
                failures.append(f"{response.status} {answer[:300]!r}")

    begun = time.monotonic()
    clients = [threading.Thread(target=load) for _ in range(SESSIONS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    if failures:
        raise SystemExit(failures[0])
    print(f"{server.name}: {count} emails queued for tomorrow in {time.monotonic() - begun:.0f} s, {server.memory():.0f} MB in memory", flush=True)


def beside_itself(options):
    few, many = Tabella(f"with {FEW} queued", 11050), Tabella(f"with {options.queued} queued", 11060)
    try:
        queue_for_tomorrow(few, FEW)
        queue_for_tomorrow(many, options.queued)
        for server in (few, many):
            server.settle()
        before = {server: server.costs() for server in (few, many)}
        medians = compare([few, many], options)
        # Beside the rates: a machine with other things to do changes it less.
        emails = options.rounds * options.messages + WARM_UP
        costs = {server.name: [1e6 * (now - then) / emails for now, then in zip(server.costs(), before[server])] for server in before}
    finally:
        few.stop()
        many.stop()
    print(f"\naccepted and delivered, medians of {options.rounds} rounds of {options.messages}")
    for name, rate in medians.items():
        work, compaction = costs[name]
        print(f"  {name:24} {rate:8.0f} a second   {work:6.0f} µs of processor time each, and {compaction:.0f} µs to compact the store's files")
    print(f"  {medians[many.name] / medians[few.name]:.2f} times as many with {options.queued} queued as with {FEW}, "
          f"each with {costs[many.name][0] / costs[few.name][0]:.2f} times the processor time, compaction aside")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--queued", type=int, default=1_000_000)
    parser.add_argument("--only", choices=["postfix", "queued"])
    options = parser.parse_args()
    os.makedirs(servers.WORK, exist_ok=True)
    if options.only != "queued":
        beside_postfix(options)
    if options.only != "postfix":
        beside_itself(options)


if __name__ == "__main__":
    main()

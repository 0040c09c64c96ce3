"""./bench manhunt: how late people are asked when many searches are opened at once, and what searches cost that wait. GoAlert, which most would
run instead, looks for what is due every five seconds.

  ./bench manhunt [--searches 10000] [--connections 64] [--delay SECONDS] [--waiting 1000000] [--only burst|waiting]

burst    --searches opened as fast as they are taken, at --connections; each rings a provider (nginx, whose log is the witness) after --delay.
         Once with a delay that lets all be opened first, and once with none
waiting  --waiting searches with a method that is due in a month: the processor time of a process that has them, and how late others are beside them
"""

import argparse
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import time
from datetime import datetime

import journal
import servers

PORT = 8740
HERE = os.path.dirname(os.path.abspath(__file__))
LOG = os.path.join(servers.WORK, "manhunt-asked.log")
# Says yes to everybody, and writes down when it was asked by what.
PROVIDER = """
daemon off; worker_processes 1; pid {work}/manhunt-nginx.pid; error_log {work}/manhunt-nginx-error.log;
events {{ worker_connections 2048; }}
http {{
  log_format asked '$msec $http_idempotency_key'; access_log {log} asked; keepalive_requests 1000000000;
  client_body_temp_path {work}/nginx-body; proxy_temp_path {work}/nginx-proxy; fastcgi_temp_path {work}/nginx-fastcgi;
  uwsgi_temp_path {work}/nginx-uwsgi; scgi_temp_path {work}/nginx-scgi;
  server {{ listen 127.0.0.1:{port}; location / {{ return 200 "{{}}"; }} }}
}}
"""


class Provider(servers.Server):
    def __init__(self, port):
        configuration = os.path.join(servers.WORK, "manhunt-nginx.conf")
        with open(configuration, "w") as file:
            file.write(PROVIDER.format(work=servers.WORK, log=LOG, port=port))
        super().__init__("provider", port, ["nginx", "-c", configuration, "-e", os.path.join(servers.WORK, "manhunt-nginx-error.log")])

    def asked(self):
        """When each attempt came, by its search."""
        with open(LOG) as log:
            lines = (line.split() for line in log)
            return {words[1].split("/")[0]: float(words[0]) for words in lines if len(words) == 2 and "/" in words[1]}


class Tabella(servers.Server):
    def __init__(self, port, provider, connections):
        self.connections = connections
        folder = os.path.join(servers.WORK, "manhunt")
        shutil.rmtree(folder, ignore_errors=True)
        providers = os.path.join(servers.WORK, "manhunt-providers.json")
        with open(providers, "w") as file:
            json.dump({"providers": [{"name": "nginx", "type": "http", "channels": ["phone", "text"],
                                      "request": {"url": f"http://127.0.0.1:{provider.port}/", "headers": {"Content-Type": "application/json"},
                                                  "body": '{"to": "{{destination}}", "text": "{{text}}"}'}}]}, file)
        super().__init__("Tabella", port, [os.path.join(servers.ROOT, "build/release/tabella"), "serve", "--data", folder, "--systems", "manhunt",
                                           "--manhunt-providers", providers, "--http", f"127.0.0.1:{port}", "--dynamodb", f"127.0.0.1:{port + 1}", "--log-level", "warning"])

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, f"/manhunt/bench{path}", json.dumps(body) if body else None)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        if response.status >= 300:
            raise SystemExit(f"{path}: {response.status} {text[:300]!r}")
        return json.loads(text)

    def contacts(self, count, delay):
        methods = [{"type": "phone", "destination": "+390612345678", "delay": f"{round(delay * 1000)}ms"}]
        return [self.request("POST", "/contacts", {"name": f"contact {number}", "methods": methods})["id"] for number in range(count)]

    def open(self, count, contacts):
        """Opens so many; how long that took."""
        file = os.path.join(servers.WORK, "manhunt-contacts")
        with open(file, "w") as ids:
            ids.write("\n".join(contacts) + "\n")
        begun = time.monotonic()
        with subprocess.Popen(["wrk", "-t1", f"-c{self.connections}", "-d1200", "-s", os.path.join(HERE, "manhunt.lua"), f"http://127.0.0.1:{self.port}/", "--", str(count), file],
                              stdout=subprocess.PIPE, text=True) as wrk:
            while "all are open" not in wrk.stdout.readline():
                pass
            took = time.monotonic() - begun
            wrk.send_signal(signal.SIGINT)
            output = wrk.stdout.read()
        if "Non-2xx" in output or "Socket errors" in output:
            raise SystemExit(f"some were refused:\n{output}")
        return took

    def created(self, contacts):
        """When the searches for these were opened, by id."""
        found = {}
        for contact in contacts:
            path = f"/contacts/{contact}/searches?limit=1000"
            page = self.request("GET", path)
            while True:
                found.update((search["id"], datetime.fromisoformat(search["created"].replace("Z", "+00:00")).timestamp()) for search in page["searches"])
                if "next" not in page:
                    break
                page = self.request("GET", f"{path}&next={page['next']}")
        return found


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def burst(tabella, provider, count, delay, what, verdicts):
    contacts = tabella.contacts(100, delay)
    before = tabella.cpu_seconds()
    took = tabella.open(count, contacts)
    created = tabella.created(contacts)
    deadline = time.monotonic() + delay + 120
    while time.monotonic() < deadline:
        asked = provider.asked()
        if all(search in asked for search in created):
            break
        time.sleep(0.5)
    missing = [search for search in created if search not in asked]
    if missing:
        raise SystemExit(f"{len(missing)} of {len(created)} were not asked")
    spent = tabella.settle(at_most=30) and tabella.cpu_seconds() - before
    late = [1000 * (asked[search] - at - delay) for search, at in created.items()]
    early = min(late)
    p99 = percentile(late, 0.99)
    print(f"{what}: {len(created)} opened in {took:.1f} s; asked after their delay of {delay:g} s by: median {percentile(late, 0.5):.0f} ms, p99 {p99:.0f} ms, "
          f"worst {max(late):.0f} ms, earliest {early:.0f} ms; {1e6 * spent / len(created):.0f} µs of processor time each")
    verdicts.add(f"{what}: asked after their delay, at p99", p99, 100, "{:.0f} ms", least=False)


def idle(server, seconds=10):
    """The share of one processor that a process takes that has nothing to do."""
    server.settle(at_most=120)
    before = server.cpu_seconds()
    time.sleep(seconds)
    return 100 * (server.cpu_seconds() - before) / seconds


def waiting(tabella, provider, count, verdicts):
    empty = idle(tabella)
    contacts = tabella.contacts(1000, 30 * 86400)
    opened = 0
    begun = time.monotonic()
    while opened < count:
        more = min(100_000, count - opened)
        tabella.open(more, contacts)
        opened += more
        print(f"  {opened} of {count} searches are waiting, after {time.monotonic() - begun:.0f} s", flush=True)
    # Each has its step, and the timer of its method, once the stream has been followed.
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", tabella.port)
        connection.request("GET", "/metrics")
        started = re.search(rb"^tabella_manhunt_searches_started_total (\d+)", connection.getresponse().read(), re.MULTILINE)
        if int(started[1]) >= count:
            break
        time.sleep(1)
    full = idle(tabella)
    print(f"waiting: {count} searches take {full:.2f} % of a processor, none take {empty:.2f} %; memory {tabella.memory():.0f} MB")
    verdicts.add(f"processor time with {count} searches that wait", full, empty + 0.5, "{:.2f} %", least=False)
    burst(tabella, provider, 1000, 2, f"beside {count} that wait", verdicts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=10_000)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--delay", type=float, default=20)
    parser.add_argument("--waiting", type=int, default=1_000_000)
    parser.add_argument("--only", choices=["burst", "waiting"])
    options = parser.parse_args()
    os.makedirs(servers.WORK, exist_ok=True)
    verdicts = journal.Verdicts()
    with contextlib.ExitStack() as stack:
        def started(server):
            stack.callback(server.stop)
            return server

        provider = started(Provider(PORT + 10))
        open(LOG, "w").close()
        tabella = started(Tabella(PORT, provider, options.connections))
        if options.only != "waiting":
            burst(tabella, provider, 1000, 0, "at first", journal.Verdicts())
            burst(tabella, provider, options.searches, options.delay, f"{options.searches} with a delay", verdicts)
            burst(tabella, provider, options.searches, 0, f"{options.searches} without", verdicts)
        if options.only != "burst":
            waiting(tabella, provider, options.waiting, verdicts)
    verdicts.print()


if __name__ == "__main__":
    main()

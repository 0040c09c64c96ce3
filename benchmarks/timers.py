"""./bench timers: whether mail's indexer makes timers late.

  ./bench timers [--messages 20000] [--seconds 10]

Reminders (examples/reminders) are set at a steady rate, first with nothing beside them, then while the index of that
many messages catches up. How late they fell due is the process's own histogram.
"""

import argparse
import http.client
import json
import os
import subprocess
import threading
import time

import mail
import servers

EVERY = 0.02  # seconds between two reminders


class Reminders:
    """Sets reminders, one after the other, until it is stopped."""

    def __init__(self, port):
        self.port, self.count, self.stopping = port, 0, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        while not self.stopping:
            connection.request("POST", "/reminders/ann", json.dumps({"text": "tea", "in": "200ms"}))
            connection.getresponse().read()
            self.count += 1
            time.sleep(EVERY)

    def stop(self):
        self.stopping = True
        self.thread.join()


def metrics(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/metrics")
    values = {}
    for line in connection.getresponse().read().decode().splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            values[name] = float(value)
    return values


def buckets(values):
    prefix = 'tabella_timer_lateness_seconds_bucket{le="'
    return {name[len(prefix):-2]: value for name, value in values.items() if name.startswith(prefix)}


def report(what, before, after):
    counts = {bound: after[bound] - before.get(bound, 0) for bound in after}
    total = counts["+Inf"]
    late = total - counts["0.05"]
    worst = next(bound for bound, count in counts.items() if count == total)
    print(f"{what:<36} {int(total):>6} timers, {int(late)} later than 50 ms, all within {worst} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=20000)
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    port, page, dynamodb = 11025, 18025, 18000
    server = mail.MailServer("timers", [os.path.join(servers.ROOT, "build/release/examples/tabella_with_reminders"), "serve", "--data", mail.fresh("timers-data"),
                                        "--dynamodb", f"127.0.0.1:{dynamodb}", "--http", f"127.0.0.1:{page}", "--smtp", f"127.0.0.1:{port}", "--log-level", "warning"], port, page)
    try:
        before = buckets(metrics(page))
        reminders = Reminders(page)
        time.sleep(options.seconds)
        reminders.stop()
        time.sleep(0.5)
        alone = buckets(metrics(page))
        report("nothing beside them", before, alone)
        subprocess.run(["smtp-source", "-s", "16", "-l", "2048", "-m", str(options.messages), "-c", "-d", f"127.0.0.1:{port}"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"})
        behind = options.messages - metrics(page)["tabella_mail_indexed_total"]
        begun = time.monotonic()
        reminders = Reminders(page)
        while metrics(page)["tabella_mail_indexed_total"] < options.messages:
            time.sleep(0.2)
        reminders.stop()
        took = time.monotonic() - begun
        time.sleep(0.5)
        report(f"while {int(behind)} are indexed ({took:.1f} s)", alone, buckets(metrics(page)))
    finally:
        server.stop()


if __name__ == "__main__":
    main()

"""kill -9 while mail comes in, again and again: every message answered with 250 is there afterwards, whole, once listed
and once found. TABELLA_CRASH_ROUNDS says how often."""

import hashlib
import os
import random
import signal
import smtplib
import sys
import threading
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(__file__))
from mail_server import MailServer

ROUNDS = int(os.environ.get("TABELLA_CRASH_ROUNDS", "6"))


def make(name, source):
    # Some fit into an item, some do not.
    size = source.choice((10, 2_000, 20_000, 20_000, 500_000))
    body = "".join(source.choice("abcdefgh \n") for _ in range(min(size, 5000)))
    body = (body * (size // len(body) + 1))[:size].replace("\n", "\r\n")
    return f"Subject: {name}\r\nX-Name: {name}\r\n\r\n{body}\r\n".encode()


class Sender(threading.Thread):
    """Sends until the server is gone; keeps what was acknowledged."""

    def __init__(self, server, round_number, number):
        super().__init__()
        self.server, self.name_prefix = server, f"r{round_number}s{number}m"
        self.acknowledged = {}
        self.source = random.Random(f"{round_number}/{number}")

    def run(self):
        sent = 0
        try:
            with smtplib.SMTP("127.0.0.1", self.server.smtp) as client:
                while True:
                    raw = make(f"{self.name_prefix}{sent}x", self.source)
                    client.ehlo_or_helo_if_needed()
                    client.mail("a@x.org")
                    client.rcpt("b@y.org")
                    code, text = client.data(raw)
                    if code == 250:
                        # smtplib doubles dots and ends lines as the protocol wants; there are none here.
                        self.acknowledged[text.decode().rsplit(" ", 1)[1]] = hashlib.sha256(raw).digest()
                    sent += 1
        except (OSError, smtplib.SMTPException):
            pass


class Kill(unittest.TestCase):
    def test_nothing_acknowledged_is_lost(self):
        source = random.Random(5)
        acknowledged = {}
        with MailServer() as server:
            for number in range(ROUNDS):
                senders = [Sender(server, number, i) for i in range(6)]
                for sender in senders:
                    sender.start()
                time.sleep(source.uniform(0.3, 2.5))
                server.stop(signal.SIGKILL)
                for sender in senders:
                    sender.join()
                    acknowledged.update(sender.acknowledged)
                server.start()
                self.assertGreaterEqual(server.messages(limit=1)["total"], len(acknowledged))
            listed, start = {}, 0
            while True:
                page = server.call("GET", f"/api/v3/messages?limit=500&start={start}")
                for message in page["messages"]:
                    identifier = message["id"].replace("~", "|")  # as SMTP says it
                    self.assertNotIn(identifier, listed, "listed twice")
                    listed[identifier] = message
                start += len(page["messages"])
                if not page["messages"]:
                    break
            self.assertEqual(page["total"], len(listed))
            missing = set(acknowledged) - set(listed)
            self.assertEqual(missing, set())
            for identifier, digest in acknowledged.items():
                raw = server.request("GET", f"/api/v3/messages/{urllib.parse.quote(identifier, safe='')}/raw")[1]
                self.assertEqual(hashlib.sha256(raw).digest(), digest, identifier)
            for identifier in random.Random(1).sample(sorted(acknowledged), min(50, len(acknowledged))):
                subject = listed[identifier]["subject"]
                self.assertEqual([m["id"] for m in server.find(f"subject:{subject}")["messages"]], [identifier.replace("|", "~")])
            print(f"{ROUNDS} kills, {len(acknowledged)} messages acknowledged, {len(listed)} there, none lost", flush=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)

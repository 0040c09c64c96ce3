"""Files that say who makes the calls: what is wrong with one is said at the start, and what it leaves out is not simulated."""

import json
import os
import subprocess
import tempfile
import unittest

from manhunt_server import BINARY, Domain, ManhuntServer, free_port, wait_until

HTTP = {"name": "other", "type": "http", "channels": ["text"],
        "request": {"url": "http://127.0.0.1:9/send", "headers": {"Content-Type": "application/json"}, "body": '{"to": "{{destination}}"}'}}


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="tabella-test-"))
        self.file = os.path.join(self.folder, "providers.json")

    def write(self, *providers):
        with open(self.file, "w") as file:
            json.dump({"providers": providers}, file)

    def problem(self, *providers):
        self.write(*providers)
        ports = ["--dynamodb", f"127.0.0.1:{free_port()}", "--http", f"127.0.0.1:{free_port()}", "--smtp", "off"]
        ended = subprocess.run([BINARY, "serve", "--data", os.path.join(self.folder, "data"), *ports, "--systems", "manhunt", "--manhunt-providers", self.file],
                               capture_output=True, text=True, timeout=60)
        self.assertNotEqual(ended.returncode, 0)
        return ended.stderr

    def request(self, **changes):
        return {**HTTP, "request": {name: value for name, value in {**HTTP["request"], **changes}.items() if value is not None}}

    def test_what_is_wrong_is_said(self):
        for words, provider in (
                ("type", {**HTTP, "type": "pigeon"}), ("channels", {**HTTP, "channels": []}), ("channels", {**HTTP, "channels": ["pigeon"]}), ("colour", {**HTTP, "colour": "red"}),
                ("request", {**HTTP, "request": None}), ("url", self.request(url=None)), ("other: url", self.request(url="{{#if}}")), ("expected a text", self.request(body={"to": "{{destination}}"})),
                ("Content-Type", self.request(headers=None)), ("Content-Type", self.request(headers={"Content-Type": "text/plain"})), ("expected an object", self.request(headers="x")),
                ("variable NOT_SET", self.request(headers={"Content-Type": "application/json", "X-Api-Key": "$NOT_SET"})), ("no name of a header", self.request(headers={"X Y": "z"})),
                ("reply: expected an object", {**HTTP, "reply": "x"}), ("reply: status is not known", {**HTTP, "reply": {"status": "x"}}), ("16 characters", {**HTTP, "replies": {"key": "short", "from": "x", "text": "y"}}),
                ("timeout", {**HTTP, "timeout": "1h"}), ("token is missing", {"name": "t", "type": "twilio", "channels": ["phone"], "account": "AC1", "from": "+1555"}),
                ("Twilio is for phone and text", {"name": "t", "type": "twilio", "channels": ["email"], "account": "AC1", "from": "+1555", "token": "x"})):
            with self.subTest(words=words, provider=provider):
                self.assertIn(words, self.problem(provider))
        self.assertIn("two of that name", self.problem(HTTP, HTTP))

    def test_what_it_leaves_out_is_not_simulated(self):
        self.write({"name": "phones", "type": "simulator", "channels": ["phone"]})
        with ManhuntServer("--manhunt-providers", self.file) as server:
            domain = Domain(server)
            search = domain.search(domain.contact("Ann", ("text", "+390611111111"), ("phone", "+390611111111")))
            wait_until(lambda: len(domain.find(search)["attempts"]) == 2)
            text = domain.find(search)["attempts"][0]
            self.assertEqual((text["state"], text["detail"]), ("failed", "there is no provider for this channel"))
            self.assertEqual([phone["type"] for phone in domain.ring(search)], ["phone"])

    def test_the_outbox_is_one_of_several(self):
        failing = {**self.request(url=f"http://127.0.0.1:{free_port()}/send"), "channels": ["email"]}
        self.write(failing, {"name": "ours", "type": "outbox", "channels": ["email"]})
        with ManhuntServer("--manhunt-providers", self.file, systems="mail,outbox,manhunt") as server:
            domain = Domain(server)
            search = domain.search(domain.contact("Ann", ("email", "ann@shop.example")))
            wait_until(lambda: domain.find(search)["attempts"] and domain.find(search)["attempts"][0]["state"] == "sent")
            self.assertEqual([one["provider"] for one in domain.find(search)["attempts"][0]["tries"]], ["other", "ours"])
            wait_until(lambda: server.messages()["items"])
        self.assertIn("the outbox sends email", self.problem({"name": "ours", "type": "outbox", "channels": ["text"]}))

    def test_a_dry_run_shows_what_this_provider_would_send(self):
        self.write(HTTP)  # which hands on no replies
        with ManhuntServer("--manhunt-providers", self.file) as server:
            domain = Domain(server)
            entry, = domain.call("POST", "/dry-run", {"contact": domain.contact("Ann", ("text", "+390611111111"))["id"], "metadata": {"summary": "Disk full"}})["timeline"]
            self.assertIn("https://", entry["text"])
            self.assertNotIn("CODE", entry["text"])


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""The example of a system, in the program that has it (TABELLA names it), on both kinds of store."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../mail"))
from mail_server import BINARY, MailServer
from server import wait_until


class Reminders(unittest.TestCase):
    def test_they_fall_due_and_are_counted(self):
        with MailServer() as server:
            server.call("POST", "/reminders/ann", {"text": "tea", "in": "300ms"}, 201)
            server.call("POST", "/reminders/ann", {"text": "later", "in": "1h"}, 201)
            server.call("POST", "/reminders/bob", {"text": "coffee", "in": "1h"}, 201)
            wait_until(lambda: {"text": "tea", "due": True} in server.call("GET", "/reminders/ann"), 10)
            self.assertIn({"text": "later", "due": False}, server.call("GET", "/reminders/ann"))
            self.assertEqual(server.call("GET", "/reminders/bob"), [{"text": "coffee", "due": False}])
            self.assertEqual(server.metric("tabella_reminders_due_total"), 1)

    def test_they_outlive_the_process(self):
        with MailServer() as server:
            server.call("POST", "/reminders/ann", {"text": "tea", "in": "1s"}, 201)
            server.restart()
            wait_until(lambda: server.call("GET", "/reminders/ann") == [{"text": "tea", "due": True}], 30)

    def test_its_option_bounds_them(self):
        with MailServer("--reminders-longest", "1m") as server:
            answer = server.call("POST", "/reminders/ann", {"text": "tea", "in": "2m"}, 400)
            self.assertEqual(answer["error"], "in: expected a time, as in 5s, of at most 60 seconds")
        help_text = subprocess.run([BINARY, "serve", "--help"], capture_output=True, text=True).stdout
        self.assertIn("--reminders-longest", help_text)

    def test_its_table_is_there_and_not_listed(self):
        for options, listed in (((), False), (("--show-system-tables",), True)):
            with MailServer(*options) as server:
                tables = server.tables()
                self.assertEqual(tables.describe_table(TableName="tabella-reminders")["Table"]["TableStatus"], "ACTIVE")
                if not server.store:  # another process lists its own
                    self.assertEqual("tabella-reminders" in tables.list_tables()["TableNames"], listed)

    def test_systems_are_chosen_and_listed(self):
        with MailServer("--systems", "reminders") as server:
            self.assertEqual(server.call("GET", "/reminders/ann"), [])
            self.assertEqual(server.request("GET", "/api/v2/messages")[0].status, 404)
            with self.assertRaises(ConnectionRefusedError):
                server.send("x")
        wrong = subprocess.run([BINARY, "serve", "--systems", "nonsense"], capture_output=True, text=True)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("reminders", wrong.stderr)
        systems = json.loads(subprocess.run([BINARY, "systems", "--json"], capture_output=True, text=True).stdout)
        reminders = next(system for system in systems if system["name"] == "reminders")
        self.assertEqual(reminders["tables"], ["tabella-reminders"])
        self.assertEqual({(route["method"], route["path"], route["scope"]) for route in reminders["routes"]},
                         {("POST", "/reminders/{person}", "reminders:write"), ("GET", "/reminders/{person}", "reminders:read")})


if __name__ == "__main__":
    unittest.main()

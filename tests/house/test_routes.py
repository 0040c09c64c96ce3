"""Who may come in over HTTP: every route of every system, as every kind of stranger."""

import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../mail"))
from mail_server import BINARY, MailServer

# What needs no credentials: anything more is a decision to be made here.
FOR_ANYBODY = {("GET", "/healthz"), ("GET", "/openapi.json"), ("GET", "/login"), ("POST", "/login"), ("POST", "/logout"), ("GET", "/inbox.js"),
               # Manhunt's that bring their own proof: a routing key, a signature of Twilio's, a link, the address of a calendar.
               ("POST", "/v2/enqueue"), ("POST", "/v2/change/enqueue"), ("POST", "/manhunt/alertmanager/{routing_key}"), ("PUT", "/manhunt/alertmanager/{routing_key}"),
               ("POST", "/manhunt/callbacks/{provider}/call"), ("POST", "/manhunt/callbacks/{provider}/status"), ("POST", "/manhunt/callbacks/{provider}/text"),
               ("GET", "/manhunt/r/{token}"), ("POST", "/manhunt/r/{token}"), ("GET", "/manhunt/calendar/{token}")}
EVIL = {"Origin": "https://evil.example"}


def routes(server):
    """All that /openapi.json lists: method and path."""
    document = json.loads(server.request("GET", "/openapi.json")[1])
    return sorted((method.upper(), path) for path, methods in document["paths"].items() for method in methods)


def filled(path):
    return re.sub(r"{[^}]*}", "x", path)


def users_file():
    file = tempfile.NamedTemporaryFile("w")
    file.write("ann:" + subprocess.run([BINARY, "bcrypt", "secret"], capture_output=True, text=True).stdout)
    file.flush()
    return file


class Strangers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.users = users_file()
        cls.server = MailServer("--auth-file", cls.users.name)
        cls.server.__enter__()
        made = subprocess.run([BINARY, "token", "create", "--name", "other", "--scope", "other:read", "--store", cls.server.dynamodb], capture_output=True, text=True)
        cls.token = made.stdout.strip()
        assert cls.token.startswith("tab_"), made
        cls.ann = {"Authorization": "Basic " + base64.b64encode(b"ann:secret").decode()}
        cls.all = routes(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.users.close()

    def status(self, method, path, headers):
        return self.server.request(method, filled(path), headers=headers)[0].status

    def test_only_what_is_meant_to_is_open(self):
        self.assertGreater(len(self.all), 45)
        for method, path in self.all:
            if (method, path) in FOR_ANYBODY:
                continue
            with self.subTest(method=method, path=path):
                self.assertEqual(self.status(method, path, {}), 401)
                self.assertEqual(self.status(method, path, {"Authorization": "Bearer tab_wrong_wrong"}), 401)
                self.assertEqual(self.status(method, path, {"Authorization": "Basic " + base64.b64encode(b"ann:wrong").decode()}), 401)
                self.assertEqual(self.status(method, path, {"Cookie": "tabella_session=wrong"}), 401)

    def test_a_scope_is_good_for_its_own_routes_only(self):
        for method, path in self.all:
            if (method, path) in FOR_ANYBODY:
                continue
            with self.subTest(method=method, path=path):
                self.assertEqual(self.status(method, path, {"Authorization": f"Bearer {self.token}"}), 403)

    def test_pages_of_other_origins_get_in_nowhere(self):
        for method, path in self.all:
            with self.subTest(method=method, path=path):
                self.assertEqual(self.status(method, path, {**self.ann, **EVIL}), 403)
                self.assertEqual(self.status("OPTIONS", path, EVIL), 403)

    def test_a_name_that_is_made_to_point_here_reaches_nothing_but_health(self):
        for method, path in self.all:
            if path == "/healthz":
                continue
            with self.subTest(method=method, path=path):
                self.assertEqual(self.status(method, path, {**self.ann, "Host": "evil.example"}), 403)

    def test_what_is_documented_is_there(self):
        for method, path in self.all:
            with self.subTest(method=method, path=path):
                response, _ = self.server.request("OPTIONS", filled(path), headers=self.ann)
                self.assertEqual(response.status, 200)
                self.assertIn(method, response.getheader("Allow"))

    def test_what_is_not_there_is_not_told_to_strangers(self):
        self.assertEqual(self.status("GET", "/nowhere", {}), 401)
        self.assertEqual(self.status("GET", "/nowhere", self.ann), 404)


class WithNothingConfigured(unittest.TestCase):
    def test_programs_come_in_and_pages_do_not(self):
        with MailServer() as server:
            for method, path in routes(server):
                with self.subTest(method=method, path=path):
                    self.assertEqual(server.request(method, filled(path), headers=EVIL)[0].status, 403)
                    self.assertEqual(server.request(method, filled(path), headers={"Origin": "null"})[0].status, 403)
            self.assertEqual(server.request("GET", "/api/v2/messages")[0].status, 200)


if __name__ == "__main__":
    unittest.main()

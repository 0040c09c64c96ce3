"""Users, sessions and tokens, as people and programs use them."""

import base64
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../mail"))
sys.path.insert(0, os.path.dirname(__file__))
from mail_server import BINARY, REMOTE, MailServer, simple
from server import wait_until
from test_routes import users_file


def token(server, *arguments):
    """`tabella token …`, as somebody in another terminal would call it."""
    where = ["--store", server.dynamodb] if REMOTE else ["--data", server.folder.name]
    return subprocess.run([BINARY, "token", *arguments, *where], capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"})


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


class Tokens(unittest.TestCase):
    def test_a_token_opens_what_its_scopes_name_and_closes_the_rest(self):
        with MailServer() as server:
            server.send(simple("precious"))
            self.assertEqual(server.request("GET", "/api/v2/messages")[0].status, 200)
            made = token(server, "create", "--name", "reader", "--scope", "mail:read")
            self.assertEqual(made.returncode, 0, made)
            secret = made.stdout.strip()
            wait_until(lambda: server.request("GET", "/api/v2/messages")[0].status == 401, 10)
            self.assertEqual(server.request("GET", "/api/v2/messages", headers=bearer(secret))[0].status, 200)
            self.assertEqual(server.request("GET", "/api/v2/messages", headers={"X-API-Key": secret})[0].status, 200)
            response, content = server.request("DELETE", "/api/v1/messages", headers=bearer(secret))
            self.assertEqual((response.status, json.loads(content)), (403, {"error": "token reader lacks the scope mail:write"}))
            self.assertEqual(server.request("GET", "/metrics", headers=bearer(secret))[0].status, 403)

    def test_a_revoked_token_is_good_for_nothing(self):
        with MailServer() as server:
            secret = token(server, "create", "--name", "ci", "--scope", "*").stdout.strip()
            listed = token(server, "list").stdout
            self.assertIn("ci", listed)
            self.assertNotIn(secret, listed)
            self.assertEqual(server.request("GET", "/metrics", headers=bearer(secret))[0].status, 200)
            identifier = secret.split("_")[1]
            self.assertEqual(token(server, "revoke", identifier).returncode, 0)
            wait_until(lambda: server.request("GET", "/metrics", headers=bearer(secret))[0].status == 401, 10)
            again = token(server, "revoke", identifier)
            self.assertEqual((again.returncode, again.stdout), (1, ""))

    def test_tokens_outlive_the_process(self):
        with MailServer() as server:
            secret = token(server, "create", "--name", "ci", "--scope", "mail:*").stdout.strip()
            server.restart()
            self.assertEqual(server.request("GET", "/api/v2/messages")[0].status, 401)
            self.assertEqual(server.request("GET", "/api/v2/messages", headers=bearer(secret))[0].status, 200)

    def test_a_scope_must_look_like_one(self):
        with MailServer() as server:
            refused = token(server, "create", "--name", "x", "--scope", "everything!")
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("everything!", refused.stderr)


class Sessions(unittest.TestCase):
    def log_in(self, server, password="secret", **query):
        body = urllib.parse.urlencode({"user": "ann", "password": password})
        return server.request("POST", "/login?" + urllib.parse.urlencode(query), body, {"Content-Type": "application/x-www-form-urlencoded"})[0]

    def test_a_cookie_stands_for_the_password_until_logout(self):
        with users_file() as users, MailServer("--auth-file", users.name) as server:
            self.assertEqual(server.request("GET", "/login")[0].status, 200)
            self.assertEqual(self.log_in(server, "wrong").status, 401)
            answer = self.log_in(server, next="/view/x")
            self.assertEqual((answer.status, answer.getheader("Location")), (303, "/view/x"))
            cookie = answer.getheader("Set-Cookie")
            self.assertIn("HttpOnly", cookie)
            self.assertIn("SameSite=Strict", cookie)
            holds = {"Cookie": cookie.split(";")[0]}
            self.assertEqual(server.request("GET", "/api/v2/messages", headers=holds)[0].status, 200)
            server.restart()
            self.assertEqual(server.request("GET", "/api/v2/messages", headers=holds)[0].status, 200)
            self.assertLess(server.request("POST", "/logout", headers=holds)[0].status, 400)
            wait_until(lambda: server.request("GET", "/api/v2/messages", headers=holds)[0].status == 401, 10)

    def test_a_link_leads_nowhere_else(self):
        with users_file() as users, MailServer("--auth-file", users.name) as server:
            for elsewhere in ("https://evil.example/", "//evil.example", "/\\evil.example"):
                self.assertEqual(self.log_in(server, next=elsewhere).getheader("Location"), "/")


class Secrets(unittest.TestCase):
    @unittest.skipIf(REMOTE, "without --secret-key-file nothing can be sealed there: see below")
    def test_the_secret_of_a_webhook_is_not_in_the_table(self):
        with MailServer() as server:
            server.call("POST", "/api/v3/webhooks", {"url": "http://127.0.0.1:9/x", "secret": "whsec_c2VjcmV0IHNlY3JldA=="}, 201)
            rows = json.dumps(server.tables().scan(TableName="tabella-mail-settings")["Items"])
            self.assertIn("127.0.0.1:9", rows)
            self.assertNotIn("c2VjcmV0IHNlY3JldA", rows)
            mode = os.stat(os.path.join(server.folder.name, "secret.key")).st_mode & 0o777
            self.assertEqual(mode, 0o600)

    @unittest.skipUnless(REMOTE, "the embedded store has a key of its own")
    def test_a_shared_store_needs_a_shared_key(self):
        with MailServer(secret_key=False) as server:
            answer, content = server.request("POST", "/api/v3/webhooks", json.dumps({"url": "http://127.0.0.1:9/x", "secret": "s"}))
            self.assertGreaterEqual(answer.status, 400)
            self.assertIn("--secret-key-file", json.loads(content)["error"])


class Tls(unittest.TestCase):
    def test_the_http_port_speaks_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = os.path.join(folder, "key.pem"), os.path.join(folder, "cert.pem")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
                            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
            with MailServer("--http-tls-cert", certificate, "--http-tls-key", key) as server:
                trust = ssl.create_default_context(cafile=certificate)
                with urllib.request.urlopen(f"https://localhost:{server.http}/healthz", context=trust) as answer:
                    self.assertEqual(answer.read(), b"ok\n")


if __name__ == "__main__":
    unittest.main()

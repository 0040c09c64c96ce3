"""`tabella serve --store …`: another Tabella as the store, with signatures checked, over TLS, with credentials from every
place that they can come from."""

import datetime
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import boto3

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from server import BINARY, Server, free_port

KEY = "AKIDEXAMPLE:secret"
TABLES = ["tabella-access", "tabella-consumers", "tabella-inbox", "tabella-journal", "tabella-journal-consumers", "tabella-journal-heads", "tabella-journal-order", "tabella-mail",
          "tabella-mail-index", "tabella-mail-settings", "tabella-manhunt", "tabella-outbox", "tabella-outbox-keys", "tabella-outbox-messages", "tabella-snapshots", "tabella-timers"]


def clean_environment(**variables):
    """No credentials but those that a test gives."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**environment, "HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true", **variables}


class Process:
    """A Tabella that uses another one as its store."""

    def __init__(self, *options, **environment):
        self.http = free_port()
        self.process = subprocess.Popen([BINARY, "serve", "--http", f"127.0.0.1:{self.http}", "--smtp", "off", *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=clean_environment(**environment))
        self.line = self.process.stdout.readline()

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{path}", timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.process.send_signal(signal.SIGTERM)
        self.errors = self.process.communicate(timeout=30)[1]


class Metadata(http.server.ThreadingHTTPServer):
    """The endpoints of a container and of an instance, as AWS has them."""

    def __init__(self, lifetime=3600):
        self.lifetime, self.asked = lifetime, 0
        super().__init__(("127.0.0.1", 0), MetadataHandler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class MetadataHandler(http.server.BaseHTTPRequestHandler):
    def answer(self, text, status=200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def role(self):
        self.server.asked += 1
        expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.server.lifetime)
        self.answer(json.dumps({"AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "secret", "Token": "a-session-token",
                                "Expiration": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}))

    def do_PUT(self):
        self.answer("a-token" if self.path == "/latest/api/token" else "no", 200)

    def do_GET(self):
        roles = "/latest/meta-data/iam/security-credentials/"
        if self.path == "/container" and self.headers["Authorization"] == "Basic let-me-in":
            self.role()
        elif self.headers["X-aws-ec2-metadata-token"] != "a-token":
            self.answer("no", 401)
        elif self.path == roles:
            self.answer("the-role\n")
        elif self.path == roles + "the-role":
            self.role()
        else:
            self.answer("no", 404)

    def log_message(self, *arguments):
        pass


class StoreOptionTest(unittest.TestCase):
    def refuse(self, *options, **environment):
        http = () if "--http" in options else ("--http", "off")
        result = subprocess.run([BINARY, "serve", *http, "--smtp", "off", *options], capture_output=True, text=True, timeout=120,
                                env=clean_environment(**environment))
        self.assertNotEqual(result.returncode, 0)
        return result.stderr

    def test_mistakes_are_named(self):
        for options, words in [
            (["--store", "ftp://x"], "neither embedded nor dynamodb://REGION"),
            (["--store", "dynamodb://nowhere"], "names no AWS region"),
            (["--store", "http://127.0.0.1:1", "--data", "x"], "--data: is for the embedded store"),
            (["--store", "http://127.0.0.1:1", "--dynamodb", "127.0.0.1:1"], "has its own DynamoDB door"),
            (["--aws-region", "eu-west-1"], "somewhere else"),
            (["--store", "http://127.0.0.1:1", "--aws-access-key-id", "x"], "go together"),
            (["--store", "http://127.0.0.1:1", "--aws-session-token", "x"], "goes with"),
            (["--store", "http://127.0.0.1:1", "--store-ca", "x"], "not reached by https"),
            (["--store", "http://127.0.0.1:1", "--table-prefix", "a b"], "--table-prefix"),
            (["--store", "https://127.0.0.1:1", "--store-ca", "/nonexistent"], "cannot be used"),
            (["--store", "dynamodb://eu-west-1"], "there are no AWS credentials"),
        ]:
            self.assertIn(words, self.refuse(*options), options)

    def test_an_endpoint_that_nobody_serves(self):
        self.assertIn("cannot connect to 127.0.0.1:1", self.refuse("--store", "http://127.0.0.1:1"))

    def test_tables_are_made_only_if_asked_for(self):
        with Server() as server:
            words = self.refuse("--store", server.endpoint, "--table-prefix", "team-a.", "--http", f"127.0.0.1:{free_port()}")
            for table in TABLES:
                self.assertIn(f"the table team-a.{table}", words)
            self.assertIn("; --create-tables", words)
            with Process("--store", server.endpoint, "--table-prefix", "team-a.", "--create-tables") as process:
                self.assertIn(f"uses the DynamoDB at {server.endpoint}", process.line)
                self.assertEqual(process.get("/healthz"), (200, "ok\n"))
                self.assertIn('tabella_store_calls_total{result="ok"}', process.get("/metrics")[1])
            client = boto3.client("dynamodb", endpoint_url=server.endpoint, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
            self.assertEqual(client.list_tables()["TableNames"], [f"team-a.{table}" for table in TABLES])
            table = client.describe_table(TableName="team-a.tabella-timers")["Table"]
            self.assertEqual(table["GlobalSecondaryIndexes"][0]["IndexName"], "by_due")
            ttl = client.describe_time_to_live(TableName="team-a.tabella-timers")["TimeToLiveDescription"]
            self.assertEqual((ttl["TimeToLiveStatus"], ttl["AttributeName"]), ("ENABLED", "expires"))
            with Process("--store", server.endpoint, "--table-prefix", "team-a.") as process:
                self.assertIn("uses the DynamoDB", process.line, "they are there now")
            client.delete_table(TableName="team-a.tabella-consumers")
            client.create_table(TableName="team-a.tabella-consumers", BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "x", "KeyType": "HASH"}],
                                AttributeDefinitions=[{"AttributeName": "x", "AttributeType": "S"}])
            words = self.refuse("--store", server.endpoint, "--table-prefix", "team-a.", "--create-tables")
            self.assertIn("the table team-a.tabella-consumers is there, with other keys", words)

    def test_health_says_when_the_store_is_gone(self):
        server = Server().start()
        with Process("--store", server.endpoint, "--create-tables") as process:
            self.assertEqual(process.get("/healthz")[0], 200)
            server.kill()
            begun = time.monotonic()
            status, text = process.get("/healthz")
            self.assertEqual(status, 503)
            self.assertIn("the store does not answer: cannot connect", text)
            self.assertLess(time.monotonic() - begun, 10)
            server.start()
            self.assertEqual(process.get("/healthz")[0], 200)
        server.stop()
        shutil.rmtree(server.folder)

    def test_signatures_are_right_and_wrong_ones_are_named(self):
        with Server("--access-key", KEY) as server:
            given = ["--aws-access-key-id", "AKIDEXAMPLE", "--aws-secret-access-key"]
            with Process("--store", server.endpoint, "--create-tables", *given, "secret") as process:
                self.assertIn("uses the DynamoDB", process.line)
            words = self.refuse("--store", server.endpoint, *given, "wrong")
            self.assertIn("The request signature we calculated does not match", words)
            self.assertNotIn("wrong", words, "a secret is not repeated")

    def test_credentials_come_from_the_environment_and_the_files(self):
        folder = tempfile.mkdtemp(prefix="tabella-test-")
        self.addCleanup(shutil.rmtree, folder)
        with open(os.path.join(folder, "credentials"), "w") as file:
            file.write("[work]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = secret\n")
        with Server("--access-key", KEY) as server:
            with Process("--store", server.endpoint, "--create-tables", AWS_ACCESS_KEY_ID="AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY="secret") as process:
                self.assertIn("uses the DynamoDB", process.line)
            with Process("--store", server.endpoint, "--aws-profile", "work", AWS_SHARED_CREDENTIALS_FILE=os.path.join(folder, "credentials")) as process:
                self.assertIn("uses the DynamoDB", process.line)
            self.assertIn("no profile 'other'", self.refuse("--store", server.endpoint, "--aws-profile", "other"))
            self.assertIn("security token included in the request is invalid", self.refuse("--store", server.endpoint), "made up ones are not taken here")

    # Both name the endpoint of an AWS region, which is not here: what is seen is that they are asked and what they say.
    def test_credentials_come_from_a_role(self):
        metadata = Metadata()
        self.addCleanup(metadata.shutdown)
        aws = ["--store", "dynamodb://eu-west-1"]
        words = self.refuse(*aws, AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{metadata.url}/container", AWS_CONTAINER_AUTHORIZATION_TOKEN="Basic let-me-in")
        self.assertIn("dynamodb.eu-west-1.amazonaws.com", words)
        self.assertEqual(metadata.asked, 1)
        words = self.refuse(*aws, AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{metadata.url}/container", AWS_CONTAINER_AUTHORIZATION_TOKEN="wrong")
        self.assertIn("the container's credentials", words)
        words = self.refuse(*aws, AWS_CONTAINER_CREDENTIALS_FULL_URI="http://example.com/x")
        self.assertIn("neither https nor on this host", words)
        words = self.refuse(*aws, AWS_EC2_METADATA_SERVICE_ENDPOINT=metadata.url, AWS_EC2_METADATA_DISABLED="false")
        self.assertIn("dynamodb.eu-west-1.amazonaws.com", words)
        self.assertEqual(metadata.asked, 2)

    def test_tls_is_checked(self):
        folder = tempfile.mkdtemp(prefix="tabella-test-")
        self.addCleanup(shutil.rmtree, folder)
        certificate, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        with Server("--tls-cert", certificate, "--tls-key", key) as server:
            store = f"https://localhost:{server.port}"
            self.assertIn("no secure connection", self.refuse("--store", store))
            self.assertIn("no secure connection", self.refuse("--store", f"https://127.0.0.1:{server.port}", "--store-ca", certificate), "another name")
            with Process("--store", store, "--store-ca", certificate, "--create-tables") as process:
                self.assertIn(f"uses the DynamoDB at {store}", process.line)
                self.assertEqual(process.get("/healthz"), (200, "ok\n"))

    def test_a_clock_that_is_wrong_is_corrected(self):
        folder = tempfile.mkdtemp(prefix="tabella-test-")
        self.addCleanup(shutil.rmtree, folder)
        ahead = os.path.join(folder, "time")
        with open(ahead, "wb") as file:
            file.write((3 * 3600 * 10**9).to_bytes(8, "little"))
        with Server("--access-key", KEY) as server:
            with Process("--store", server.endpoint, "--create-tables", AWS_ACCESS_KEY_ID="AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY="secret",
                         LD_PRELOAD=os.environ["MOVE_TIME"], MOVE_TIME_FILE=ahead) as process:
                self.assertIn("uses the DynamoDB", process.line)


if __name__ == "__main__":
    unittest.main(verbosity=2)

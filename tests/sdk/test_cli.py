"""The AWS CLI, unchanged, against the real binary: also over TLS."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from server import Server  # noqa: E402

ENVIRONMENT = {**os.environ, "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "thing", "AWS_DEFAULT_REGION": "us-east-1",
               "AWS_PAGER": "", "AWS_EC2_METADATA_DISABLED": "true"}
AWS = "/usr/bin/aws" if os.path.exists("/usr/bin/aws") else shutil.which("aws")


def aws(endpoint, *arguments, options=()):
    result = subprocess.run([AWS, "--endpoint-url", endpoint, *options, "dynamodb", *arguments], env=ENVIRONMENT,
                            capture_output=True, text=True, timeout=120)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return json.loads(result.stdout) if result.stdout.strip() else None


class CliTest(unittest.TestCase):
    def test_creates_writes_reads_queries_and_updates(self):
        with Server() as server:
            aws(server.endpoint, "create-table", "--table-name", "music", "--billing-mode", "PAY_PER_REQUEST",
                "--attribute-definitions", "AttributeName=artist,AttributeType=S", "AttributeName=year,AttributeType=N",
                "--key-schema", "AttributeName=artist,KeyType=HASH", "AttributeName=year,KeyType=RANGE")
            aws(server.endpoint, "wait", "table-exists", "--table-name", "music")
            for year in (1970, 1980, 1990):
                aws(server.endpoint, "put-item", "--table-name", "music", "--item",
                    json.dumps({"artist": {"S": "Nina"}, "year": {"N": str(year)}}))
            found = aws(server.endpoint, "query", "--table-name", "music", "--key-condition-expression",
                        "artist = :a AND #y > :y", "--expression-attribute-names", '{"#y":"year"}',
                        "--expression-attribute-values", '{":a":{"S":"Nina"},":y":{"N":"1975"}}')
            self.assertEqual([item["year"]["N"] for item in found["Items"]], ["1980", "1990"])
            updated = aws(server.endpoint, "update-item", "--table-name", "music", "--key",
                          '{"artist":{"S":"Nina"},"year":{"N":"1970"}}', "--update-expression", "SET plays = if_not_exists(plays, :z) + :o",
                          "--expression-attribute-values", '{":z":{"N":"0"},":o":{"N":"1"}}', "--return-values", "ALL_NEW")
            self.assertEqual(updated["Attributes"]["plays"], {"N": "1"})
            self.assertEqual(aws(server.endpoint, "scan", "--table-name", "music", "--page-size", "1")["Count"], 3)
            self.assertEqual(aws(server.endpoint, "batch-get-item", "--request-items", json.dumps(
                {"music": {"Keys": [{"artist": {"S": "Nina"}, "year": {"N": "1990"}}]}}))["UnprocessedKeys"], {})
            aws(server.endpoint, "delete-table", "--table-name", "music")
            self.assertEqual(aws(server.endpoint, "list-tables")["TableNames"], [])

    def test_speaks_tls(self):
        folder = tempfile.mkdtemp(prefix="tabella-tls-")
        certificate, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)
        with Server("--tls-cert", certificate, "--tls-key", key) as server:
            found = aws(f"https://localhost:{server.port}", "list-tables", options=("--ca-bundle", certificate))
            self.assertEqual(found["TableNames"], [])
        shutil.rmtree(folder)


if __name__ == "__main__":
    unittest.main(verbosity=2)

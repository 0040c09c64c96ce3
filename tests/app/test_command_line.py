"""What a user sees of the binary: help, mistakes in one sentence, configuration, a clean end."""

import json
import os
import signal
import socket
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
from server import BINARY, Server, free_port  # noqa: E402


def run(*arguments, **environment):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=30, env={**os.environ, **environment})


class CommandLineTest(unittest.TestCase):
    def assert_refused(self, result, *words):
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_help_names_every_option(self):
        text = run("serve", "--help").stdout
        for option in ("--data", "--dynamodb", "--durability", "--access-key", "--tls-cert", "--tls-key", "--threads", "--log-level", "--log-format", "--http", "--config"):
            self.assertIn(option, text)
        self.assertIn("TABELLA_DATA", text)
        self.assertIn("tabella 0.", run("--version").stdout)

    def test_mistakes_get_one_clear_sentence(self):
        self.assert_refused(run("serve", "--nonsense"), "--nonsense")
        self.assert_refused(run("serve", "--dynamodb", "8000"), "HOST:PORT")
        self.assert_refused(run("serve", "--durability", "maybe"), "maybe", "sync")
        self.assert_refused(run("serve", "--access-key", "justone"), "ID:SECRET")
        self.assert_refused(run("serve", "--tls-cert", "x"), "--tls-key")
        self.assert_refused(run("serve", "--threads", "many"), "--threads")
        self.assert_refused(run("serve", "--log-level", "loud"), "loud")
        self.assert_refused(run("serve", "--log-format", "xml"), "xml", "json")
        self.assert_refused(run("serve", "--http", "8025"), "HOST:PORT")
        self.assert_refused(run("verify"), "folder")
        self.assert_refused(run("verify", "/nowhere"), "no store in /nowhere")
        self.assert_refused(run("serve", "--config", "/nowhere.toml"), "nowhere.toml")
        self.assert_refused(run())

    def test_a_secret_is_not_repeated(self):
        self.assertNotIn("hunter2", run("serve", "--access-key", ":hunter2").stderr)

    def test_a_port_in_use_is_named(self):
        with socket.socket() as taken, tempfile.TemporaryDirectory() as folder:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.assert_refused(run("serve", "--data", folder, "--dynamodb", f"127.0.0.1:{port}", "--smtp", "off", "--http", "off"), f"port {port}", "in use")

    def test_a_folder_in_use_is_named(self):
        with Server() as server:
            self.assert_refused(run("serve", "--data", server.folder, "--dynamodb", f"127.0.0.1:{free_port()}", "--smtp", "off", "--http", "off"), server.folder, "in use")

    def test_a_certificate_that_is_none_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assert_refused(run("serve", "--data", folder, "--dynamodb", f"127.0.0.1:{free_port()}", "--smtp", "off", "--http", "off",
                                    "--tls-cert", "/nowhere.pem", "--tls-key", "/nowhere.key"), "/nowhere.pem")

    def test_options_come_from_flags_then_variables_then_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "tabella.toml")
            ports = [free_port() for _ in range(3)]
            with open(config, "w") as file:
                file.write(f'data = "{folder}/data"\ndynamodb = "127.0.0.1:{ports[0]}"\nthreads = 1\nhttp = "off"\nsmtp = "off"\naccess-key = ["a:b", "c:d"]\n')

            def listens_on(*arguments, **environment):
                process = subprocess.Popen([BINARY, "serve", "--config", config, *arguments], stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
                line = process.stdout.readline()
                process.terminate()
                process.communicate(timeout=30)
                return line

            self.assertIn(f":{ports[0]}", listens_on())
            self.assertIn(f":{ports[1]}", listens_on(TABELLA_DYNAMODB=f"127.0.0.1:{ports[1]}"))
            self.assertIn(f":{ports[2]}", listens_on("--dynamodb", f"127.0.0.1:{ports[2]}", TABELLA_DYNAMODB=f"127.0.0.1:{ports[1]}"))
            with open(config, "w") as file:
                file.write("unknown = 1\n")
            self.assert_refused(run("serve", "--config", config), "unknown")
            with open(config, "w") as file:
                file.write("data = \n")
            self.assert_refused(run("serve", "--config", config), "TOML")

    def test_a_wrong_value_names_where_it_came_from(self):
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "tabella.toml")
            with open(config, "w") as file:
                file.write('smtp-max-size = "huge"\n')
            self.assert_refused(run("serve", "--dynamodb", "8000"), "tabella: --dynamodb: '8000' is not HOST:PORT")
            self.assert_refused(run("serve", TABELLA_DYNAMODB="8000"), "--dynamodb (from TABELLA_DYNAMODB): '8000' is not HOST:PORT")
            self.assert_refused(run("serve", MH_SMTP_BIND_ADDR="1025"), "--smtp (from MH_SMTP_BIND_ADDR): '1025' is not HOST:PORT")
            self.assert_refused(run("serve", "--config", config), f"--smtp-max-size (from {config}): 'huge' is not a size")
            self.assert_refused(run("serve", TABELLA_CONFIG=config), f"--smtp-max-size (from {config})")
            with open(config, "w") as file:
                file.write('data = ["a", "b"]\n')
            self.assert_refused(run("serve", "--config", config), f"--data (from {config}): takes one value")

    def test_help_is_grouped_and_shows_defaults(self):
        lines = run("serve", "--help").stdout.splitlines()
        titles = [line[:-1] for line in lines if line.endswith(":") and not line.startswith(" ")]
        self.assertEqual(titles, ["Options", "Store", "DynamoDB API", "HTTP", "Outbound requests", "Process", "Mail", "Outbox", "Inbox", "Manhunt", "Journal"])
        self.assertTrue(any("--dynamodb HOST:PORT [127.0.0.1:8000]" in line for line in lines))
        self.assertTrue(any("--mail-ttl TIME [7d]" in line for line in lines))
        self.assertFalse(any("--mongo-uri" in line for line in lines), "what only MailHog has is taken, not advertised")
        self.assertIn("tabella token create", run("token", "create", "--help").stdout)

    def test_config_says_where_each_value_came_from(self):
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "tabella.toml")
            with open(config, "w") as file:
                file.write('mail-ttl = "12h"\nmemory = "1GB"\naccess-key = ["a:hunter2", "b:hunter3"]\n')
            arguments = ["--config", config, "--memory", "2G", "-ui-bind-addr", ":8080"]
            environment = {"TABELLA_MAIL_PARTITION": "hour", "MH_HOSTNAME": "mail.example.com", "TABELLA_MAIL_WEBHOOK": "http://localhost/a,b",
                           "TABELLA_MAIL_WEBHOOK_SECRET": "hunter4"}
            result = run("config", *arguments, **environment)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertNotIn("hunter", result.stdout)
            lines = [line.split(maxsplit=2) for line in result.stdout.splitlines()]
            for line in (["--data", "./data", "default"], ["--mail-ttl", "12h", f"file {config}"], ["--memory", "2GB", "flag --memory"],
                         ["--mail-partition", "hour", "variable TABELLA_MAIL_PARTITION"], ["--hostname", "mail.example.com", "variable MH_HOSTNAME"],
                         ["--access-key", "(set)", f"file {config}"], ["--mail-webhook-secret", "(set)", "variable TABELLA_MAIL_WEBHOOK_SECRET"],
                         ["--http", "0.0.0.0:8080", "flag --ui-bind-addr"], ["--systems", "mail,outbox,inbox,manhunt,journal", "default"]):
                self.assertIn(line, lines)
            self.assertRegex(result.stdout, r"--aws-secret-access-key +\(not set\)")

            as_json = run("config", "--json", *arguments, **environment).stdout
            self.assertNotIn("hunter", as_json)
            groups = {group["title"]: {option.pop("name"): option for option in group["options"]} for group in json.loads(as_json)["groups"]}
            self.assertEqual(groups["Mail"]["--mail-ttl"], {"value": "12h", "source": "file", "from": config})
            self.assertEqual(groups["Mail"]["--mail-webhook"], {"value": ["http://localhost/a,b"], "source": "variable", "from": "TABELLA_MAIL_WEBHOOK"})
            self.assertEqual(groups["Store"]["--table-prefix"], {"value": None, "source": "default"})
            self.assertEqual(groups["DynamoDB API"]["--access-key"]["value"], "(set)")
        self.assert_refused(run("config", "--threads", "1000"), "--threads: 1000 is more than 256")

    def test_options_that_only_make_sense_together(self):
        self.assert_refused(run("config", "--http-tls-cert", "x"), "--http-tls-cert and --http-tls-key go together")
        self.assert_refused(run("config", "--smtps", ":465"), "--smtp-tls-cert")
        self.assert_refused(run("config", "--systems", "mail,fax"), "--systems: 'fax' is no system; there are: mail")
        self.assert_refused(run("config", "--outbound-allow", "10.0.0.0/8,?"), "'?' is no host name, address or network")
        self.assert_refused(run("config", "--outbound-proxy", "https://proxy:3128"), "http://HOST:PORT")
        self.assert_refused(run("config", "-api-bind-addr", ":1", "-ui-bind-addr", ":2"), "one port")
        self.assert_refused(run("config", "-storage", "mongodb"), "--storage", "--data")

    def test_a_token_needs_a_name_and_scopes(self):
        self.assert_refused(run("token", "create", "--scope", "mail:read"), "--name")
        self.assert_refused(run("token", "create", "--name", "ci"), "--scope")
        self.assert_refused(run("token", "create", "--name", "ci", "--scope", "mail:read", "--expires", "never"), "--expires")
        self.assert_refused(run("token", "revoke"), "id is required", "tabella token revoke --help")
        self.assert_refused(run("token"), "subcommand")

    def test_tells_about_itself(self):
        port = free_port()
        with Server("--http", f"127.0.0.1:{port}") as server:
            def get(path):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                    return answer.read().decode()

            client = boto3.client("dynamodb", endpoint_url=server.endpoint, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
            client.create_table(TableName="seen", BillingMode="PAY_PER_REQUEST", AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
                                KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}])
            for n in range(3):
                client.put_item(TableName="seen", Item={"id": {"S": str(n)}})
            with self.assertRaises(client.exceptions.ResourceNotFoundException):
                client.get_item(TableName="unseen", Key={"id": {"S": "1"}})
            client.close()
            self.assertEqual(get("/healthz"), "ok\n")
            metrics = get("/metrics")
            for line in ('tabella_requests_total{operation="PutItem",result="ok"} 3', 'tabella_request_seconds_count{operation="PutItem"} 3',
                         'tabella_requests_total{operation="GetItem",result="ResourceNotFoundException"} 1', "tabella_tables 17",
                         "# TYPE tabella_commit_seconds histogram", "tabella_write_group_size_count", "tabella_write_queue_depth 0",
                         "tabella_ttl_lag_seconds 0", "# TYPE tabella_stream_lag_seconds histogram", "tabella_rocksdb_memtable_bytes"):
                self.assertIn(line, metrics)
            for line in metrics.splitlines():
                self.assertRegex(line, r'^(# (HELP|TYPE) .+|[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [-+.e0-9]+)$')
            with self.assertRaises(urllib.error.HTTPError) as missing:
                get("/nothing")
            self.assertEqual(missing.exception.code, 404)
            missing.exception.close()

    def test_logs_requests_with_their_ids(self):
        for options, read in ((["--log-format", "json"], json.loads), ([], lambda line: dict(part.split("=", 1) for part in line.split() if "=" in part))):
            with tempfile.TemporaryFile("w+") as log:
                server = Server("--log-level", "debug", *options)
                server.start(stderr=log)
                request = urllib.request.Request(server.endpoint, b"{}", {
                    "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "DynamoDB_20120810.ListTables", "X-Amz-Date": "20260101T000000Z",
                    "Authorization": "AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=host, Signature=0"})
                with urllib.request.urlopen(request, timeout=10) as answer:
                    request_id = answer.headers["x-amzn-RequestId"]
                self.assertEqual(server.stop(), 0)
                server.__exit__()
                log.seek(0)
                line = read(next(line for line in log if request_id in line))
                self.assertEqual((line["request_id"], line["target"], line["status"]), (request_id, "DynamoDB_20120810.ListTables", "200"))

    def test_verifies_a_store_at_rest(self):
        with Server() as server:
            self.assert_refused(run("verify", server.folder), "in use")
            self.assertEqual(server.stop(), 0)
            verified = run("verify", server.folder)
            self.assertEqual((verified.returncode, verified.stderr), (0, ""))
            self.assertIn("tables: 0, items: 0", verified.stdout)
            self.assertIn("all is well", verified.stdout)

    def test_stops_cleanly_with_many_threads_and_connections(self):
        for _ in range(5):
            with Server("--threads", "4") as server:
                connections = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
                for connection in connections[::2]:
                    connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertEqual(server.stop(), 0)
                for connection in connections:
                    connection.close()

    def test_sigterm_lets_requests_finish(self):
        with Server() as server:
            with urllib.request.urlopen(server.endpoint, timeout=5) as healthy:
                self.assertEqual(healthy.status, 200)
            idle = socket.create_connection(("127.0.0.1", server.port))
            slow = socket.create_connection(("127.0.0.1", server.port))
            body = b"{}"
            slow.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Date: 20260101T000000Z\r\n"
                         b"X-Amz-Target: DynamoDB_20120810.ListTables\r\nAuthorization: AWS4-HMAC-SHA256 Credential=a/b/c/d/e, "
                         b"SignedHeaders=host, Signature=0\r\nContent-Length: 2\r\n\r\n{")
            time.sleep(0.2)
            server.process.send_signal(signal.SIGTERM)
            threading.Timer(0.3, lambda: slow.sendall(b"}")).start()
            slow.settimeout(10)
            self.assertTrue(slow.recv(4096).startswith(b"HTTP/1.1 200 OK"))
            self.assertEqual(server.process.wait(10), 0)
            server.process.stdout.close()
            idle.close()
            slow.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)

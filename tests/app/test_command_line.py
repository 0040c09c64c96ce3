"""What a user sees of the binary: help, mistakes in one sentence, configuration, a clean end."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

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
        for option in ("--data", "--dynamodb", "--durability", "--access-key", "--tls-cert", "--tls-key", "--threads", "--log-level", "--config"):
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
        self.assert_refused(run("serve", "--config", "/nowhere.toml"), "nowhere.toml")
        self.assert_refused(run())

    def test_a_secret_is_not_repeated(self):
        self.assertNotIn("hunter2", run("serve", "--access-key", ":hunter2").stderr)

    def test_a_port_in_use_is_named(self):
        with socket.socket() as taken, tempfile.TemporaryDirectory() as folder:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.assert_refused(run("serve", "--data", folder, "--dynamodb", f"127.0.0.1:{port}"), f"port {port}", "in use")

    def test_a_folder_in_use_is_named(self):
        with Server() as server:
            self.assert_refused(run("serve", "--data", server.folder, "--dynamodb", f"127.0.0.1:{free_port()}"), server.folder, "in use")

    def test_a_certificate_that_is_none_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assert_refused(run("serve", "--data", folder, "--dynamodb", f"127.0.0.1:{free_port()}", "--tls-cert", "/nowhere.pem",
                                    "--tls-key", "/nowhere.key"), "/nowhere.pem")

    def test_options_come_from_flags_then_variables_then_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "tabella.toml")
            ports = [free_port() for _ in range(3)]
            with open(config, "w") as file:
                file.write(f'data = "{folder}/data"\ndynamodb = "127.0.0.1:{ports[0]}"\nthreads = 1\naccess-key = ["a:b", "c:d"]\n')

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

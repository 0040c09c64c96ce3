"""What strangers can make the server take: connections, memory, time. And what a disk can do to it."""

import base64
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../crash"))
from server import BINARY, Server, free_port, wait_until  # noqa: E402
from test_kill import HEADERS, Client  # noqa: E402


def create(client, name="load"):
    client.call("CreateTable", TableName=name, BillingMode="PAY_PER_REQUEST",
                AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}], KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}])


def put(client, key, size=10):
    client.call("PutItem", TableName="load", Item={"pk": {"S": str(key)}, "x": {"S": filler(size)}})


def filler(size):
    """Text that does not pack."""
    return base64.b64encode(os.urandom(size * 3 // 4)).decode()


def disk_usage(folder):
    total = 0
    for name in os.listdir(folder):
        if name.endswith((".sst", ".blob")):
            try:
                total += os.path.getsize(os.path.join(folder, name))
            except FileNotFoundError:  # replaced meanwhile
                pass
    return total


class ConnectionsTest(unittest.TestCase):
    def test_idle_connections_yield_and_leave_the_store_its_descriptors(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        server = Server()
        server.process = subprocess.Popen(
            ["prlimit", "--nofile=512:512", BINARY, "serve", "--data", server.folder, "--dynamodb", f"127.0.0.1:{server.port}", *server.options],
            stdout=subprocess.PIPE, text=True)
        idle = []
        try:
            self.assertIn("serves DynamoDB", server.process.stdout.readline())
            create(Client(server.port))
            if hard < 1500:
                self.skipTest("too few descriptors for the clients")
            for _ in range(900):
                connection = socket.create_connection(("127.0.0.1", server.port), 5)
                idle.append(connection)
            # Who comes now is served, and enough can be written for new logs and files.
            for round_ in range(3):
                client = Client(server.port)
                for n in range(60):
                    put(client, f"{round_}-{n}", 300_000)
                client.connection.close()
                time.sleep(0.7)
            self.assertEqual(Client(server.port).call("DescribeTable", TableName="load")["Table"]["TableStatus"], "ACTIVE")
        finally:
            for connection in idle:
                connection.close()
            server.__exit__()


class MemoryTest(unittest.TestCase):
    def test_clients_that_ask_and_do_not_read_take_a_bounded_amount(self):
        with Server("--memory", "64MB") as server:
            client = Client(server.port)
            create(client)
            for n in range(25):
                put(client, n, 390_000)
            body = json.dumps({"RequestItems": {"load": {"Keys": [{"pk": {"S": str(n)}} for n in range(25)]}}})
            head = "".join(f"{name}: {value}\r\n" for name, value in {
                **HEADERS, "X-Amz-Target": "DynamoDB_20120810.BatchGetItem", "Host": "localhost", "Content-Length": len(body)}.items())
            before, deaf = server.memory(), []
            for _ in range(200):
                connection = socket.create_connection(("127.0.0.1", server.port), 5)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.sendall(f"POST / HTTP/1.1\r\n{head}\r\n{body}".encode())
                deaf.append(connection)
            most = 0
            for _ in range(40):
                most = max(most, server.memory())
                time.sleep(0.1)
            self.assertLess(most - before, 800, "MB; unbounded it would be 2000 for the answers alone")
            # Those who do not read are dropped, and there is room again.
            wait_until(lambda: self.is_answered(server.port, body), 40)
            put(client, "small")
            for connection in deaf:
                connection.close()

    def is_answered(self, port, body):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("POST", "/", body, {**HEADERS, "X-Amz-Target": "DynamoDB_20120810.BatchGetItem"})
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status == 200


class StopTest(unittest.TestCase):
    def test_a_stop_has_one_deadline_whatever_hangs(self):
        with Server("--stop-timeout", "3", "--http", f"127.0.0.1:{(http_port := free_port())}", "--smtp",
                    f"127.0.0.1:{(smtp_port := free_port())}") as server:
            hanging = []
            for port, text in ((server.port, b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nx"), (http_port, b"GET /api/v1/events HTTP/1.1\r\n\r\n"),
                               (http_port, b"POST /x HTTP/1.1\r\nContent-Length: 9\r\n\r\n"), (smtp_port, b"EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nx")):
                connection = socket.create_connection(("127.0.0.1", port), 5)
                connection.sendall(text)
                hanging.append(connection)
            time.sleep(0.3)
            begun = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            code = server.process.wait(20)
            took = time.monotonic() - begun
            self.assertEqual(code, 0)
            self.assertLess(took, 6)
            for connection in hanging:
                connection.close()


class SpaceTest(unittest.TestCase):
    def test_space_comes_back_after_a_drop_and_after_deletes(self):
        with Server() as server:
            client = Client(server.port)
            for drop in (True, False):
                create(client)
                for n in range(120):
                    put(client, n, 300_000)
                    if n % 40 == 39:
                        time.sleep(0.8)  # so that it is in files
                wait_until(lambda: disk_usage(server.folder) > 20_000_000, 30)
                total = disk_usage(server.folder)
                if drop:
                    client.call("DeleteTable", TableName="load")
                else:
                    for n in range(120):
                        client.call("DeleteItem", TableName="load", Key={"pk": {"S": str(n)}})
                wait_until(lambda: disk_usage(server.folder) < total / 3, 120)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("mount"), "needs root, to mount a small disk")
class FullDiskTest(unittest.TestCase):
    SIZE = 200

    def setUp(self):
        self.disk = tempfile.mkdtemp(prefix="tabella-disk-")
        self.addCleanup(shutil.rmtree, self.disk, ignore_errors=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.SIZE}m", "tmpfs", self.disk], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"cannot mount a small disk: {mounted.stderr}")
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk])
        self.folder = os.path.join(self.disk, "data")

    def fill(self, leave=0):
        free = shutil.disk_usage(self.disk).free - leave
        with open(os.path.join(self.disk, "filler"), "wb") as file:
            try:
                while free > 0:
                    file.write(b"\0" * min(free, 1 << 20))
                    file.flush()
                    free -= 1 << 20
            except OSError:
                pass

    def call(self, port, operation, **body):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("POST", "/", json.dumps(body), {**HEADERS, "X-Amz-Target": f"DynamoDB_20120810.{operation}"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        return response.status, answer

    def fill_up_and_free(self, *options):
        server = Server(*options, folder=self.folder)
        server.own_folder = False
        with server:
            client = Client(server.port)
            create(client)
            acknowledged = []
            for n in range(100):
                put(client, n, 1000)
                acknowledged.append(n)
            self.fill()
            refused = None
            for n in range(100, 3000):
                status, answer = self.call(server.port, "PutItem", TableName="load", Item={"pk": {"S": str(n)}, "x": {"S": "x" * 20_000}})
                if status == 200:
                    acknowledged.append(n)
                else:
                    refused = status, answer
                    break
                time.sleep(0.002)
            self.assertIsNotNone(refused)
            self.assertEqual(refused[0], 503, refused)
            self.assertTrue("almost full" in refused[1]["message"] or "may have been made" in refused[1]["message"], refused)
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
            connection.request("GET", "/")
            response = connection.getresponse()
            self.assertEqual(response.status, 503, response.read())
            self.assertEqual(self.call(server.port, "GetItem", TableName="load", Key={"pk": {"S": "1"}})[0], 200)
            os.remove(os.path.join(self.disk, "filler"))
            wait_until(lambda: self.call(server.port, "PutItem", TableName="load", Item={"pk": {"S": "again"}})[0] == 200, 30)
            for n in acknowledged:
                status, answer = self.call(server.port, "GetItem", TableName="load", Key={"pk": {"S": str(n)}})
                self.assertIn("Item", answer, n)
        self.assertEqual(server.process.returncode, 0)
        verified = subprocess.run([BINARY, "verify", self.folder], capture_output=True, text=True)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)

    def test_writes_end_before_the_disk_is_full_and_begin_again(self):
        self.fill_up_and_free()

    def test_a_disk_that_is_filled_to_the_last_byte_loses_nothing(self):
        self.fill_up_and_free("--min-free", "0")

    def test_a_start_and_a_stop_on_a_full_disk_end_with_a_sentence(self):
        os.makedirs(self.folder)
        self.fill()
        started = subprocess.run([BINARY, "serve", "--data", self.folder, "--dynamodb", f"127.0.0.1:{free_port()}", "--http", "off", "--smtp", "off"],
                                 capture_output=True, text=True, timeout=60)
        self.assertEqual(started.returncode, 1, started.stderr)
        self.assertIn("tabella: ", started.stderr)
        os.remove(os.path.join(self.disk, "filler"))
        server = Server(folder=self.folder)
        server.own_folder = False
        with server:
            create(Client(server.port))
            put(Client(server.port), 1)
            self.fill()
            self.assertEqual(server.stop(), 0)
        again = Server(folder=self.folder)
        again.own_folder = False
        process = subprocess.Popen([BINARY, "serve", "--data", self.folder, "--dynamodb", f"127.0.0.1:{again.port}", *again.options],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        if "serves" in line:
            process.send_signal(signal.SIGTERM)
        _, text = process.communicate(timeout=60)
        self.assertIn(process.returncode, (0, 1), text)
        self.assertTrue("serves" in line or "tabella: " in text, text)


if __name__ == "__main__":
    unittest.main()

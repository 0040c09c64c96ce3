"""Slow, broken and hostile clients: they cost bounded memory and never disturb the others."""

import gzip
import http.client
import json
import os
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from server import Server  # noqa: E402

HEADERS = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Date": "20260101T000000Z",
           "Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"}


def head(operation="ListTables", **more):
    lines = [f"{name}: {value}" for name, value in
             {"Host": "x", **HEADERS, "X-Amz-Target": f"DynamoDB_20120810.{operation}", **more}.items()]
    return ("POST / HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n").encode()


class HostileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def call(self, operation, body, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        connection.request("POST", "/", body, {**HEADERS, "X-Amz-Target": f"DynamoDB_20120810.{operation}", **(headers or {})})
        response = connection.getresponse()
        answer = response.status, response.read()
        connection.close()
        return answer

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=20)
        self.addCleanup(connection.close)
        return connection

    def read_status(self, connection):
        data = b""
        while b"\r\n" not in data:
            part = connection.recv(4096)
            if not part:
                return None
            data += part
        return int(data.split()[1])

    def assert_alive(self):
        self.assertEqual(self.call("ListTables", "{}")[0], 200)

    def test_pipelined_requests_are_answered_in_order(self):
        connection = self.connect()
        good = head(**{"Content-Length": 2}) + b"\r\n{}"
        bad = head(**{"Content-Length": 4}) + b"\r\nnope"
        connection.sendall(good + bad + good)
        data = b""
        while data.count(b"HTTP/1.1 ") < 3 or not data.endswith(b"}"):
            data += connection.recv(65536)
        self.assertEqual([int(part.split()[0]) for part in data.split(b"HTTP/1.1 ")[1:]], [200, 400, 200])

    def test_expect_continue_is_honoured(self):
        connection = self.connect()
        connection.sendall(head(**{"Content-Length": 2, "Expect": "100-continue"}) + b"\r\n")
        self.assertEqual(connection.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
        connection.sendall(b"{}")
        self.assertEqual(self.read_status(connection), 200)

    def test_chunked_bodies_are_read(self):
        connection = self.connect()
        connection.sendall(head(**{"Transfer-Encoding": "chunked"}) + b"\r\n1\r\n{\r\n")
        time.sleep(0.05)
        connection.sendall(b"1\r\n}\r\n0\r\n\r\n")
        self.assertEqual(self.read_status(connection), 200)

    def test_a_million_tiny_chunks_cost_little(self):
        connection = self.connect()
        started = time.monotonic()
        connection.sendall(head("PutItem", **{"Transfer-Encoding": "chunked"}) + b"\r\n")
        for _ in range(100):
            connection.sendall(b"1\r\nx\r\n" * 10_000)
        connection.sendall(b"0\r\n\r\n")
        self.assertEqual(self.read_status(connection), 400)
        self.assertLess(time.monotonic() - started, 10)
        self.assert_alive()

    def test_a_body_in_single_bytes_is_read(self):
        connection = self.connect()
        for byte in head(**{"Content-Length": 2}) + b"\r\n{}":
            connection.sendall(bytes([byte]))
        self.assertEqual(self.read_status(connection), 200)

    def test_too_large_bodies_get_413_that_the_client_can_read(self):
        size = 16 * 1024 * 1024 + 1
        self.assertEqual(self.call("PutItem", b"x" * size)[0], 413)
        connection = self.connect()
        connection.sendall(head("PutItem", **{"Transfer-Encoding": "chunked"}) + b"\r\n")
        try:
            for _ in range(20):
                connection.sendall(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
        except OSError:
            pass
        self.assertEqual(self.read_status(connection), 413)

    def test_a_gzip_bomb_is_refused(self):
        bomb = gzip.compress(b"\0" * (64 * 1024 * 1024))
        before = self.server.memory()
        self.assertEqual(self.call("PutItem", bomb, {"Content-Encoding": "gzip"})[0], 413)
        self.assertLess(self.server.memory() - before, 60)
        self.assertEqual(self.call("ListTables", gzip.compress(b"{}"), {"Content-Encoding": "gzip"})[0], 200)

    def test_absurd_heads_are_refused(self):
        for text in (b"GET / HTTP/1.1\r\nX: " + b"x" * 20000 + b"\r\n\r\n", b"GET /" + b"x" * 20000, b"\0" * 100 + b"\r\n\r\n",
                     b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
                     b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"):
            connection = self.connect()
            connection.sendall(text)
            self.assertEqual(self.read_status(connection), 400, text[:60])
        self.assert_alive()

    def test_absurd_json_is_refused(self):
        nested = '{"TableName":"abc","Item":{"a":' + '{"L":[' * 5000 + "]}" * 5000 + "}}"
        for body in (nested, "[" * 1_000_000, '{"a":' * 100_000, b'{"TableName":"\xff\xfe"}', '{"TableName":"a', "nul", "{}{}",
                     '{"TableName":' + "9" * 100_000 + "}"):
            status, answer = self.call("PutItem", body)
            self.assertEqual(status, 400, body[:40])
            self.assertIn("__type", json.loads(answer))
        self.assert_alive()

    def test_absurd_expressions_are_refused(self):
        for expression in ("(" * 4096, "NOT " * 1000 + "a", "a = a AND " * 400 + "a = a", "f(" * 1300, "a[" * 2000, "#" * 4096, "a." * 2000):
            status, answer = self.call("DeleteItem", json.dumps(
                {"TableName": "abc", "Key": {"k": {"S": "v"}}, "ConditionExpression": expression}))
            self.assertEqual(status, 400, expression[:20])
            self.assertIn("ValidationException", json.loads(answer)["__type"])
        self.assert_alive()

    def test_half_sent_requests_disturb_nobody(self):
        held = []
        for n in range(300):
            connection = self.connect()
            connection.sendall(head("PutItem", **{"Content-Length": 16_000_000}) + b"\r\n" + b"x" * 1000 if n % 2 else b"POST / HT")
            held.append(connection)
        before = self.server.memory()
        started = time.monotonic()
        for _ in range(50):
            self.assert_alive()
        self.assertLess(time.monotonic() - started, 10)
        self.assertLess(before, 200, "a claimed length is not memory")

    def test_thousands_of_connections_are_held(self):
        connections = []
        try:
            for _ in range(800):  # what an ordinary limit of descriptors lets this side open
                connections.append(socket.create_connection(("127.0.0.1", self.server.port), timeout=20))
            for connection in connections:
                connection.sendall(head(**{"Content-Length": 2}) + b"\r\n{}")
            for connection in connections:
                self.assertEqual(self.read_status(connection), 200)
        finally:
            for connection in connections:
                connection.close()
        self.assert_alive()

    def test_clients_that_go_away_leave_nothing(self):
        def rude():
            for n in range(100):
                connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=20)
                connection.sendall((head(**{"Content-Length": 2}) + b"\r\n{}")[: 50 + n])
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                connection.close()
        threads = [threading.Thread(target=rude) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assert_alive()
        self.assertLess(len(os.listdir(f"/proc/{self.server.process.pid}/fd")), 200)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Mail from end to end: SMTP in, MailHog's API and ours out. Runs on the embedded store and on a remote one."""

import base64
import concurrent.futures
import email.message
import email.policy
import hashlib
import hmac
import http.server
import json
import os
import random
import shutil
import smtplib
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

import boto3

sys.path.insert(0, os.path.dirname(__file__))
from mail_server import BINARY, REMOTE, MailServer, simple, wait_until


def certificate(folder):
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    return cert, key


def unverified():
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Clients(unittest.TestCase):
    """The programs that people send mail with."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.cert, cls.key = certificate(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_swaks_with_and_without_tls_and_login(self):
        with MailServer("--smtp-tls-cert", self.cert, "--smtp-tls-key", self.key) as server:
            for options in ([], ["--tls"], ["--auth", "PLAIN", "--auth-user", "u", "--auth-password", "p"],
                            ["--tls", "--auth", "CRAM-MD5", "--auth-user", "u", "--auth-password", "p"],
                            ["--auth", "LOGIN", "--auth-user", "u", "--auth-password", "p"], ["--pipeline"]):
                done = subprocess.run(["swaks", "--server", f"127.0.0.1:{server.smtp}", "--to", "bob@example.com", "--from", "a@example.com",
                                       "--header", "Subject: swaks " + " ".join(options), *options], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout)
            self.assertEqual(server.messages()["total"], 6)

    def test_smtplib_with_starttls_implicit_tls_and_login(self):
        with tempfile.NamedTemporaryFile("w") as users:
            users.write("plain:secret\n" + "hashed:" + subprocess.run([BINARY, "bcrypt", "hidden"], capture_output=True, text=True).stdout)
            users.flush()
            from mail_server import free_port
            smtps = free_port()
            with MailServer("--smtp-tls-cert", self.cert, "--smtp-tls-key", self.key, "--smtps", f"127.0.0.1:{smtps}", "--smtp-auth-file", users.name) as server:
                with smtplib.SMTP("127.0.0.1", server.smtp) as client:
                    client.ehlo()
                    self.assertEqual(client.mail("a@x.org")[0], 530)
                    client.starttls(context=ssl.create_default_context(cafile=self.cert))
                    with self.assertRaises(smtplib.SMTPAuthenticationError):
                        client.login("hashed", "wrong")
                    client.login("hashed", "hidden")
                    client.sendmail("a@x.org", ["b@y.org"], simple("starttls"))
                with smtplib.SMTP_SSL("127.0.0.1", smtps, context=unverified()) as client:
                    client.login("plain", "secret")
                    client.sendmail("a@x.org", ["b@y.org"], simple("implicit"))
                found = server.find("inbox:hashed")
                self.assertEqual([m["subject"] for m in found["messages"]], ["starttls"])
                self.assertEqual(found["messages"][0]["envelope"]["user"], "hashed")

    def test_addresses_beyond_ascii(self):
        with MailServer() as server:
            message = email.message.EmailMessage(policy=email.policy.SMTPUTF8)
            message["From"], message["To"], message["Subject"] = "müller@bücher.example", "用户@例子.example", "Übergröße"
            message.set_content("Straße nach Αθήνα\n")
            with smtplib.SMTP("127.0.0.1", server.smtp) as client:
                client.send_message(message)
            item = server.messages()["items"][0]
            self.assertEqual(item["Raw"]["To"], ["用户@例子.example"])
            for query in ("STRASSE", "αθηνα", "ubergrosse", "用户", "户@例"):
                self.assertEqual(server.search(query)["total"], 1, query)

    def test_20_megabytes_come_back_byte_for_byte(self):
        with MailServer() as server:
            message = email.message.EmailMessage(policy=email.policy.SMTP)
            message["Subject"] = "large"
            message.set_content("see the attachment\n")
            content = random.Random(1).randbytes(20 << 20)
            message.add_attachment(content, maintype="application", subtype="zip", filename="large.zip")
            raw = message.as_bytes()
            identifier = urllib.parse.quote(server.send(raw), safe="")
            response, got = server.request("GET", f"/api/v3/messages/{identifier}/raw")
            self.assertEqual(got, raw)
            parts = server.call("GET", f"/api/v3/messages/{identifier}")["parts"]
            self.assertEqual(parts[1]["size"], len(content))
            _, got = server.request("GET", parts[1]["url"])
            self.assertEqual(hashlib.sha256(got).digest(), hashlib.sha256(content).digest())
            _, got = server.request("GET", f"/api/v1/messages/{identifier}/mime/part/1/download")
            self.assertEqual(len(got), len(content))
            self.assertEqual(server.find("has:attachment larger:10M")["total"], 1)
            server.wait_for_index(1)
            self.assertEqual(server.find("has:attachment larger:10M attachment:LARGE.zip")["total"], 1)
            server.call("DELETE", f"/api/v1/messages/{identifier}")
            client = boto3.client("dynamodb", endpoint_url=server.dynamodb, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
            self.assertEqual(client.scan(TableName="tabella-mail", ConsistentRead=True)["Count"], 0, "the chunks go with the message")

    def test_one_session_too_many_is_told_so(self):
        with MailServer("--smtp-max-connections", "2") as server:
            def connect():
                connection = socket.create_connection(("127.0.0.1", server.smtp), timeout=10)
                return connection, connection.recv(1000)

            first, second = connect(), connect()
            self.assertTrue(first[1].startswith(b"220") and second[1].startswith(b"220"))
            wait_until(lambda: server.metric("tabella_smtp_sessions") == 2)
            third = connect()
            self.assertTrue(third[1].startswith(b"421 4.3.2 "), third[1])
            self.assertEqual(third[0].recv(1000), b"", "and closed")
            first[0].close()
            wait_until(lambda: server.metric("tabella_smtp_sessions") == 1)
            self.assertTrue(connect()[1].startswith(b"220"))

    def test_500_sessions_at_once(self):
        with MailServer() as server:
            sockets = [socket.create_connection(("127.0.0.1", server.smtp)) for _ in range(500)]
            for number, connection in enumerate(sockets):
                connection.settimeout(60)
                self.assertTrue(connection.recv(1000).startswith(b"220"))
                connection.sendall(b"EHLO me\r\nMAIL FROM:<a@x.org>\r\nRCPT TO:<b@y.org>\r\nDATA\r\nSubject: session %d\r\n" % number)
            self.assertEqual(server.metric("tabella_smtp_sessions"), 500)
            for connection in sockets:
                connection.sendall(b"\r\nbody\r\n.\r\nQUIT\r\n")
            for connection in sockets:
                said = b""
                while piece := connection.recv(65536):
                    said += piece
                self.assertIn(b"queued as", said)
                connection.close()
            self.assertEqual(server.messages(limit=1)["total"], 500)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("postfix"), "a private Postfix needs root")
    def test_postfix_relays_with_and_without_tls(self):
        with MailServer("--smtp-tls-cert", self.cert, "--smtp-tls-key", self.key) as server, tempfile.TemporaryDirectory() as folder:
            for level in ("none", "encrypt"):
                self.relay_by_postfix(os.path.join(folder, level), server.smtp, level)
            wait_until(lambda: server.messages()["total"] == 2, 60)
            received = [m["envelope"] for m in server.find("")["messages"]]
            self.assertEqual({tuple(e["to"]) for e in received}, {("bob@example.com",)})

    def relay_by_postfix(self, folder, port, level):
        """An instance of its own that knows one thing: to hand everything to us."""
        os.makedirs(os.path.join(folder, "config"))
        os.chmod(os.path.dirname(folder), 0o755)
        with open(os.path.join(folder, "config/main.cf"), "w") as main:
            main.write(f"queue_directory = {folder}/queue\ndata_directory = {folder}/data\nrelayhost = [127.0.0.1]:{port}\n"
                       f"smtp_tls_security_level = {level}\ninet_interfaces = loopback-only\nmydestination =\ncompatibility_level = 3.6\n"
                       f"maillog_file = {folder}/queue/log\nmaillog_file_prefixes = {folder}\nmulti_instance_name =\n")
        names = ["pickup unix n - n 60 1 pickup", "cleanup unix n - n - 0 cleanup", "qmgr unix n - n 300 1 qmgr", "rewrite unix - - n - - trivial-rewrite",
                 "bounce unix - - n - 0 bounce", "defer unix - - n - 0 bounce", "trace unix - - n - 0 bounce", "verify unix - - n - 1 verify",
                 "tlsmgr unix - - n 1000? 1 tlsmgr", "smtp unix - - n - - smtp", "relay unix - - n - - smtp", "error unix - - n - - error",
                 "retry unix - - n - - error", "scache unix - - n - 1 scache", "proxymap unix - - n - - proxymap", "postlog unix-dgram n - n - 1 postlogd"]
        with open(os.path.join(folder, "config/master.cf"), "w") as master:
            master.write("\n".join(names) + "\n")
        os.makedirs(os.path.join(folder, "queue"))
        os.makedirs(os.path.join(folder, "data"))
        shutil.chown(os.path.join(folder, "data"), "postfix")
        config = os.path.join(folder, "config")
        subprocess.run(["postfix", "-c", config, "start"], check=True, capture_output=True)
        self.addCleanup(subprocess.run, ["postfix", "-c", config, "abort"], capture_output=True)
        sent = subprocess.run(["sendmail", "-C", config, "-f", "alice@example.com", "bob@example.com"], input=f"Subject: by postfix\n\n{level}\n", text=True, capture_output=True)
        self.assertEqual(sent.returncode, 0, sent.stderr)


class Bytes(unittest.TestCase):
    def test_come_back_as_they_were_sent(self):
        with MailServer() as server:
            for raw in (b"Subject: x\r\n\r\nplain\r\n", b"\r\n", b"no headers\r\n", b"Subject: latin \xe9\r\n\r\n\xff\xfe\x00 bytes\r\n",
                        "Subject: ütf\r\n\r\n日本\r\n".encode(), b"X-B: 1\r\nX-A: 2\r\nX-B: 3\r\n\r\n.dots\r\n..\r\n", b"a: b\r\n\r\n" + b"y" * 300_000 + b"\r\n"):
                identifier = urllib.parse.quote(server.send(raw), safe="")
                self.assertEqual(server.request("GET", f"/api/v3/messages/{identifier}/raw")[1], raw)
                download = server.request("GET", f"/api/v1/messages/{identifier}/download")[1]
                self.assertTrue(download.endswith(raw))
                trace = download[:-len(raw)].decode()
                self.assertRegex(trace, r"^Return-Path: <alice@example.com>\r\nReceived: from me by tabella.local \(Tabella\)\r\n +id \S+; .*\r\n$")
                self.assertEqual(server.request("GET", f"/api/v1/messages/{identifier}")[0].status, 200)

    def test_broken_messages_can_be_seen(self):
        with MailServer() as server:
            for raw in (b"", b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: multipart/mixed; boundary=y\r\n\r\n--y\r\n",
                        b"Content-Type: text/html\r\n\r\n<script>alert(1)</script><p onclick=x>hi\r\n", b"To: " + b"a:" * 5000 + b"\r\n\r\n",
                        b"Subject: =?utf-8?B?////?=\r\nContent-Transfer-Encoding: base64\r\n\r\n@@@@\r\n"):
                identifier = urllib.parse.quote(server.send(raw), safe="")
                for path in (f"/api/v1/messages/{identifier}", f"/api/v3/messages/{identifier}", f"/view/{identifier}", f"/view/{identifier}?tab=parts",
                             f"/view/{identifier}?tab=source", f"/view/{identifier}?tab=headers", "/", "/api/v2/messages", "/api/v3/messages"):
                    self.assertEqual(server.request("GET", path)[0].status, 200, (raw, path))

    def test_html_is_served_clean_and_in_a_sandbox(self):
        with MailServer() as server:
            html = ("<html><script>alert(1)</script><body onload=x><img src='https://evil/x.gif'><img src='cid:pic'>"
                    "<form action='https://evil'><p>kept</p></form></body></html>")
            message = email.message.EmailMessage(policy=email.policy.SMTP)
            message.set_content(html, subtype="html")
            message.add_related(b"\x89PNG\r\n", "image", "png", cid="<pic>")
            identifier = urllib.parse.quote(server.send(message.as_bytes()), safe="")
            response, content = server.request("GET", f"/api/v3/messages/{identifier}/html")
            policy = response.getheader("Content-Security-Policy")
            for part in ("sandbox", "default-src 'none'", "form-action 'none'"):
                self.assertIn(part, policy)
            self.assertNotIn("allow-scripts", policy)
            self.assertNotIn("allow-same-origin", policy)
            text = content.decode()
            self.assertIn("<p>kept</p>", text)
            for harm in ("<script", "onload", 'src="https://evil', "<form"):
                self.assertNotIn(harm, text)
            self.assertIn('src="data:image/png;base64,' + base64.b64encode(b"\x89PNG\r\n").decode() + '"', text, "the sandbox has no login to fetch it with")

    def test_parts_keep_their_charset(self):
        with MailServer() as server:
            message = email.message.EmailMessage(policy=email.policy.SMTP)
            message.set_content("Grüße\n", charset="iso-8859-1")
            message.add_attachment("Größe\n", charset="iso-8859-15", filename="a.txt")
            identifier = urllib.parse.quote(server.send(message.as_bytes()), safe="")
            for part, charset in ((0, "iso-8859-1"), (1, "iso-8859-15")):
                for path in (f"/api/v3/messages/{identifier}/parts/{part}", f"/api/v1/messages/{identifier}/mime/part/{part}/download"):
                    response, content = server.request("GET", path)
                    self.assertEqual(response.getheader("Content-Type"), f"text/plain; charset={charset}", path)
                    self.assertIn("Gr", content.decode(charset))


class MailHog(unittest.TestCase):
    """What MailHog's clients see."""

    def test_shapes(self):
        with MailServer() as server:
            server.send(simple("shape", "body", X_Empty="", To="Bob <bob@example.com>"))
            result = server.messages()
            self.assertEqual(list(result), ["total", "count", "start", "items"])
            item = result["items"][0]
            self.assertEqual(list(item), ["ID", "From", "To", "Content", "Created", "MIME", "Raw"])
            self.assertEqual(item["From"], {"Relays": None, "Mailbox": "alice", "Domain": "example.com", "Params": ""})
            self.assertEqual(item["Content"]["Body"], "body")
            self.assertEqual(item["Content"]["Headers"]["Subject"], ["shape"])
            self.assertEqual(item["Content"]["Headers"]["X-Empty"], [""])
            self.assertEqual(item["Content"]["Headers"]["Return-Path"], ["<alice@example.com>"])
            self.assertIsNone(item["MIME"])
            self.assertEqual(item["Raw"]["Helo"], "me")
            self.assertEqual(item["Raw"]["Data"], simple("shape", "body", X_Empty="", To="Bob <bob@example.com>")[:-2])
            self.assertEqual(server.call("GET", "/api/v1/messages"), [item])
            self.assertEqual(server.call("GET", "/api/v1/messages/" + urllib.parse.quote(item["ID"], safe="")), item)
            self.assertEqual(server.request("GET", "/api/v1/messages")[0].getheader("Content-Type"), "text/json")

    def test_pages_newest_first_and_any_offset(self):
        with MailServer() as server:
            for number in range(30):
                server.send(simple(f"number {number}"))
            server.wait_for_index(20)
            for number in range(30, 35):
                server.send(simple(f"number {number}"))

            def subjects(**parameters):
                return [item["Content"]["Headers"]["Subject"][0] for item in server.messages(**parameters)["items"]]

            self.assertEqual(subjects(), [f"number {n}" for n in range(34, -1, -1)])
            for start in (0, 3, 5, 6, 20, 33, 34):
                self.assertEqual(subjects(start=start, limit=2), [f"number {n}" for n in range(34 - start, max(32 - start, -1), -1)])
            self.assertEqual(server.messages(start=35)["items"], [])
            self.assertEqual(server.messages(start=1000)["total"], 35)
            self.assertEqual(server.messages(limit="x", start="-3")["count"], 35)

    def test_search_before_and_after_it_is_indexed(self):
        with MailServer() as server:
            server.send(simple("Quarterly report", "The quick brown fox", From="Finance <cfo@corp.example>"), sender="cfo@corp.example", to="board@corp.example")
            server.send(simple("=?utf-8?q?Caf=C3=A9?=", "na=C3=AFve =\r\nsplit", Content_Transfer_Encoding="quoted-printable", Content_Type="text/plain; charset=utf-8"))
            html = simple("html", "<p>Visit our <b>lovely</b> shop</p>", Content_Type="text/html")
            server.send(html, to="carol@example.net")

            def check():
                for query, kind, count in (("QUICK BROWN", "containing", 1), ("uick bro", "containing", 1), ("cfo@", "from", 1), ("finance", "from", 1),
                                           ("board", "to", 1), ("board", "from", 0), ("cafe", "containing", 1), ("naive split", "containing", 1),
                                           ("na=C3=AFve", "containing", 1), ("our lovely shop", "containing", 1), ("<b>lovely", "containing", 1),
                                           ("example", "to", 3), ("zzz", "containing", 0), ("o", "containing", 3), ("fo", "containing", 1), ("x", "containing", 3)):
                    self.assertEqual(server.search(query, kind)["total"], count, (query, kind))

            check()
            server.wait_for_index(3)
            check()
            self.assertEqual(server.request("GET", "/api/v2/search?kind=what&query=x")[0].status, 400)
            self.assertEqual(server.request("GET", "/api/v2/search?kind=to&query=")[0].status, 400)

    def test_totals_are_right_each_time(self):
        with MailServer() as server:
            # The pieces of "order of" are in all of them, the words themselves in every fourth.
            for number in range(200):
                server.send(simple(f"message {number}", "an order of ten" if number % 4 == 0 else "an order, der of, er o"))

            def check():
                for _ in range(5):
                    self.assertEqual([server.search("order of", limit=limit)["total"] for limit in (1, 10, 250)], [50, 50, 50])
                    self.assertEqual(server.search("order of", start=40)["count"], 10)
                    self.assertEqual(server.search("message", kind="containing", limit=1)["total"], 200)

            check()
            server.wait_for_index(100)
            check()
            server.wait_for_index(200)
            check()
            page = server.find('"order of" -ten')
            self.assertEqual((page["total"], page["exact"]), (0, True))

    def test_deleting(self):
        with MailServer() as server:
            ids = [server.send(simple(f"number {number}")) for number in range(10)]
            server.wait_for_index(10)
            late = [server.send(simple("late")), server.send(simple("later"))]
            for identifier in (ids[3], late[0]):
                response, content = server.request("DELETE", "/api/v1/messages/" + urllib.parse.quote(identifier, safe=""))
                self.assertEqual((response.status, content), (200, b""))
                self.assertEqual(server.request("GET", "/api/v1/messages/" + urllib.parse.quote(identifier, safe=""))[0].status, 404)
            self.assertEqual(server.request("DELETE", "/api/v1/messages/" + urllib.parse.quote(ids[3], safe=""))[0].status, 404)
            self.assertEqual(server.messages()["total"], 10)
            self.assertEqual([m["ID"] for m in server.messages()["items"]], [late[1]] + [i for i in reversed(ids) if i != ids[3]])
            self.assertEqual(server.search("number 3")["total"], 0)
            time.sleep(5)  # the indexer takes in the rest, and forgets what it need not remember
            self.assertEqual(server.messages()["total"], 10)
            response, content = server.request("DELETE", "/api/v1/messages")
            self.assertEqual((response.status, content), (200, b""))
            self.assertEqual(server.messages(), {"total": 0, "count": 0, "start": 0, "items": []})
            self.assertEqual(server.search("number")["total"], 0)
            for identifier in ids:
                self.assertEqual(server.request("GET", "/api/v1/messages/" + urllib.parse.quote(identifier, safe=""))[0].status, 404)
            server.send(simple("after"))
            self.assertEqual(server.messages()["total"], 1)

    def test_release_through_a_real_server(self):
        with MailServer() as server, MailServer() as outside:
            identifier = urllib.parse.quote(server.send(b"Subject: x\r\n\r\n.dot\r\n\xff8bit\r\n"), safe="")
            path = f"/api/v1/messages/{identifier}/release"
            how = {"Host": "127.0.0.1", "Port": str(outside.smtp), "Email": "someone@example.org"}
            response, content = server.request("POST", path, json.dumps(how))
            self.assertEqual((response.status, content), (200, b""))
            released = outside.find("")["messages"][0]
            self.assertEqual(released["envelope"]["to"], ["someone@example.org"])
            raw = outside.request("GET", f"/api/v3/messages/{urllib.parse.quote(released['id'], safe='')}/raw")[1]
            self.assertTrue(raw.endswith(b"Subject: x\r\n\r\n.dot\r\n\xff8bit\r\n"))
            how |= {"Name": "outside", "Save": True, "Username": "u", "Password": "hidden", "Mechanism": "CRAMMD5"}
            self.assertEqual(server.request("POST", path, json.dumps(how))[0].status, 200)
            saved = server.call("GET", "/api/v2/outgoing-smtp")
            self.assertEqual(saved["outside"]["Host"], "127.0.0.1")
            self.assertNotIn("hidden", json.dumps(saved))
            self.assertEqual(server.request("POST", path, json.dumps({"name": "outside", "email": "other@example.org"}))[0].status, 200)
            self.assertEqual(server.request("POST", path, json.dumps({"name": "nobody"}))[0].status, 400)
            self.assertEqual(server.request("POST", path, "not json")[0].status, 400)
            self.assertEqual(server.request("POST", path, json.dumps({"Host": "127.0.0.1", "Port": "1", "Email": "a@b.c"}))[0].status, 500)
            for wrong, status, reason in (({"Email": "some one@example.org"}, 400, "is no address"), ({"Host": "10.0.0.1"}, 403, "--outbound-allow 10.0.0.1"),
                                          ({"Host": "0xa9fea9fe"}, 403, "link-local")):
                response, content = server.request("POST", path, json.dumps({"Host": "127.0.0.1", "Port": str(outside.smtp), "Email": "a@b.c"} | wrong))
                self.assertEqual(response.status, status, content)
                self.assertIn(reason, json.loads(content)["error"])
            self.assertEqual(outside.messages()["total"], 3)

    def test_events_and_websocket_tell_of_each_message(self):
        with MailServer() as server:
            events = socket.create_connection(("127.0.0.1", server.http))
            events.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
            web = socket.create_connection(("127.0.0.1", server.http))
            web.sendall(b"GET /api/v2/websocket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
            head = self.read_until(web, b"\r\n\r\n")
            self.assertIn(b"101 ", head)
            self.assertIn(b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", head)
            self.read_until(events, b"\r\n\r\n")
            identifier = server.send(simple("live"))
            event = self.read_until(events, b"\n\n").decode()
            self.assertTrue(event.startswith("data: "))
            self.assertEqual(json.loads(event[6:])["ID"], identifier)
            first, length = self.read_exactly(web, 2)
            self.assertEqual(first, 0x81)
            size = struct.unpack(">H", self.read_exactly(web, 2))[0] if length == 126 else length
            frame = self.read_exactly(web, size)
            self.assertTrue(frame.endswith(b"\n"))
            self.assertEqual(json.loads(frame)["ID"], identifier)
            web.sendall(b"\x89\x82\x00\x00\x00\x00hi\x88\x80\x00\x00\x00\x00")  # a ping, and the end
            self.assertEqual(self.read_exactly(web, 4), b"\x8a\x02hi")
            events.close()
            web.close()

    def read_until(self, connection, end):
        data = b""
        connection.settimeout(30)
        while end not in data:
            piece = connection.recv(1)
            self.assertTrue(piece, data)
            data += piece
        return data

    def read_exactly(self, connection, count):
        data = b""
        while len(data) < count:
            data += connection.recv(count - len(data))
        return data

    def test_jim(self):
        with MailServer() as server:
            path = "/api/v2/jim"
            self.assertEqual(server.request("GET", path)[0].status, 404)
            self.assertEqual(server.request("DELETE", path)[0].status, 404)
            self.assertEqual(server.request("PUT", path, "{}")[0].status, 404)
            self.assertEqual(server.request("POST", path)[0].status, 201)
            self.assertEqual(server.request("POST", path)[0].status, 400)
            self.assertEqual(server.call("GET", path)["AcceptChance"], 0.99)
            self.assertEqual(server.request("PUT", path, '{"AcceptChance": 1, "RejectSenderChance": 1}')[0].status, 200)
            self.assertEqual(server.call("GET", path)["DisconnectChance"], 0)
            with smtplib.SMTP("127.0.0.1", server.smtp) as client:
                self.assertEqual(client.docmd("EHLO me")[0], 250)
                self.assertEqual(client.mail("a@x.org")[0], 550)
            self.assertEqual(server.request("PUT", path, '{"AcceptChance": 1, "RejectRecipientChance": 1, "LinkSpeedAffect": 1, "LinkSpeedMin": 2000, "LinkSpeedMax": 2001}')[0].status, 200)
            with smtplib.SMTP("127.0.0.1", server.smtp) as client:
                client.ehlo("me")
                client.mail("a@x.org")
                self.assertEqual(client.rcpt("b@y.org")[0], 550)
            self.assertEqual(server.request("PUT", path, '{"AcceptChance": 0}')[0].status, 200)
            with self.assertRaises(smtplib.SMTPServerDisconnected):
                smtplib.SMTP("127.0.0.1", server.smtp)
            self.assertEqual(server.request("PUT", path, "what")[0].status, 400)
            self.assertEqual(server.request("DELETE", path)[0].status, 200)
            server.send(simple("he is gone"))

    def test_wrong_paths_and_methods(self):
        with MailServer() as server:
            self.assertEqual(server.request("GET", "/api/v1/nothing")[0].status, 404)
            response, _ = server.request("PATCH", "/api/v1/messages")
            self.assertEqual((response.status, response.getheader("Allow")), (405, "GET, DELETE, OPTIONS"))
            self.assertEqual(server.request("OPTIONS", "/api/v2/messages")[0].status, 200)
            self.assertEqual(server.request("GET", "/api/v1/messages/%zz")[0].status, 400)
            for identifier in ("x", "1|x", "123456789012345678901234567890|x", urllib.parse.quote("1564364816345567660|msg1@localhost", safe="")):
                self.assertEqual(server.request("GET", f"/api/v1/messages/{identifier}")[0].status, 404)
            self.assertEqual(server.request("GET", "/healthz")[1], b"ok\n")


class Ours(unittest.TestCase):
    """What MailHog has not."""

    def test_search_syntax(self):
        with MailServer() as server:
            message = email.message.EmailMessage(policy=email.policy.SMTP)
            message["From"], message["To"], message["Cc"], message["Subject"] = "Ann <ann@a.org>", "bob@b.org", "cat@c.org", "Invoice 42"
            message["X-Tags"] = "billing, urgent"
            message.set_content("please pay\n")
            message.add_attachment(b"x" * 5000, maintype="application", subtype="pdf", filename="invoice.pdf")
            server.send(message.as_bytes(), sender="ann@a.org", to=["bob@b.org", "hidden@d.org"])
            server.send(simple("Lunch", "pizza or pasta", From="dan@d.org"), sender="dan@d.org", to="bob@b.org")

            def check():
                for query, count in (("from:ann", 1), ("to:bob", 2), ("cc:cat", 1), ("subject:invoice", 1), ('"please pay"', 1), ("please -invoice", 0),
                                     ("pizza !urgent", 1), ("has:attachment", 1), ("-has:attachment", 1), ("tag:billing", 1), ("-tag:billing", 1),
                                     ("tag:bill", 0), ("is:tagged", 1), ("-is:tagged", 1), ("attachment:invoice", 1), ("larger:4k", 1), ("smaller:4k", 1), ("after:1h", 2), ("before:1h", 0),
                                     ("after:2020-01-01 before:2120-01-01", 2), ("is:unread", 2), ("is:read", 0), ("inbox:bob@b.org", 2),
                                     ("inbox:HIDDEN@d.org", 1), ("inbox:bob", 0), ("addressed:d.org", 2), ("to:hidden", 1), ("pizza pasta", 1), ("pizza pay", 0),
                                     ("", 2), ("subject:lunch from:dan to:bob", 1), ("subject:unch", 1)):
                    self.assertEqual(server.find(query)["total"], count, query)

            check()
            server.wait_for_index(2)
            check()
            for wrong in ("is:blue", "has:hope", "before:soon", "larger:huge"):
                self.assertEqual(server.request("GET", "/api/v3/messages?query=" + wrong)[0].status, 400, wrong)
            self.assertEqual(server.call("GET", "/api/v3/tags"), {"tags": ["billing", "urgent"]})
            self.assertEqual(server.call("GET", "/api/v3/inboxes")["inboxes"], [{"name": "bob@b.org", "messages": 2}, {"name": "hidden@d.org", "messages": 1}])

    def test_read_and_tags(self):
        with MailServer() as server:
            identifier = server.send(simple("one"))
            server.send(simple("two"))
            path = "/api/v3/messages/" + urllib.parse.quote(identifier, safe="")
            changed = server.call("PUT", path, {"read": True, "tags": ["b", "a", "b"]})
            self.assertEqual((changed["read"], changed["tags"]), (True, ["a", "b"]))
            server.wait_for_index(2)
            self.assertEqual([server.find(q)["total"] for q in ("is:read", "is:unread", "tag:a", "tag:b")], [1, 1, 1, 1])
            server.call("PUT", path, {"read": False, "tags": ["b"]})
            self.assertEqual([server.find(q)["total"] for q in ("is:read", "is:unread", "tag:a", "tag:b")], [0, 2, 0, 1])
            self.assertEqual(server.call("GET", "/api/v3/stats"), {"messages": 2, "unread": 2})
            server.call("PUT", path, {"tags": 5}, expect=400)
            server.call("PUT", path, {}, expect=400)
            server.call("PUT", "/api/v3/messages/none", {"read": True}, expect=404)

    def test_ids_are_spelled_so_that_urls_can_have_them(self):
        with MailServer() as server:
            identifier = server.send(simple("one", "first", X_Tags="a"))
            spelled, short = identifier.replace("|", "~"), identifier.split("|")[1]
            found = server.find("")["messages"][0]
            self.assertEqual(found["id"], spelled)
            for _ in range(2):
                for name in (identifier, spelled, short):
                    name = urllib.parse.quote(name, safe="@~")
                    self.assertEqual(server.call("GET", f"/api/v3/messages/{name}")["id"], spelled)
                    self.assertEqual(server.call("GET", f"/api/v1/messages/{name}")["ID"], identifier, "MailHog's is as it was")
                    self.assertEqual(server.request("GET", f"/view/{name}")[0].status, 200)
                server.wait_for_index(1)
            whole = server.call("GET", f"/api/v3/messages/{spelled}")
            for url in (whole["raw"], whole["parts"][0]["url"]):
                self.assertNotIn("|", urllib.parse.unquote(url))
                self.assertEqual(server.request("GET", url)[0].status, 200)
            self.assertEqual(server.call("PUT", f"/api/v3/messages/{short}", {"read": True})["read"], True)
            self.assertEqual(server.find("is:read")["total"], 1)
            for wrong in ("none@nowhere", "1~none@nowhere", "~", "none"):
                self.assertEqual(server.request("GET", f"/api/v3/messages/{wrong}")[0].status, 404)
            self.assertEqual(server.request("DELETE", f"/api/v3/messages/{short}")[0].status, 204)
            self.assertEqual(server.messages()["total"], 0)

    def test_cursor_pages(self):
        with MailServer() as server:
            for number in range(25):
                server.send(simple(f"n {number}"))
            server.wait_for_index(10)
            seen, cursor = [], ""
            while True:
                page = server.call("GET", f"/api/v3/messages?limit=10&cursor={urllib.parse.quote(cursor)}")
                seen += [m["subject"] for m in page["messages"]]
                if len(seen) == 10:
                    server.send(simple("in between"))  # does not move the pages
                cursor = page["next"]
                if not cursor:
                    break
            self.assertEqual(seen, [f"n {n}" for n in range(24, -1, -1)])

    def test_delete_by_search_and_by_inbox(self):
        with MailServer() as server:
            for number in range(20):
                server.send(simple("spam" if number % 2 else "ham"), to=f"user{number % 4}@example.com")
            server.wait_for_index(5)
            self.assertEqual(server.call("DELETE", "/api/v3/messages?query=subject:spam"), {"deleted": 10})
            self.assertEqual(server.messages()["total"], 10)
            self.assertEqual(server.call("DELETE", "/api/v3/inboxes/user0@example.com/messages"), {"deleted": 5})
            self.assertEqual(server.call("GET", "/api/v3/inboxes/user2@example.com/messages")["total"], 5)
            server.call("DELETE", "/api/v3/messages", expect=400)
            self.assertEqual(server.messages()["total"], 5)

    def test_what_the_table_has_not_is_forgotten(self):
        with MailServer() as server:
            ids = [server.send(simple(f"number {number}", "all of them")) for number in range(30)]
            server.wait_for_index(30)
            server.delete_row(ids[29])
            page = server.messages()
            self.assertEqual((page["total"], page["count"], len(page["items"])), (29, 29, 29))
            self.assertEqual(server.call("GET", "/api/v3/stats")["messages"], 29, "by whoever looked first, for all")
            for identifier in ids[5:25]:
                server.delete_row(identifier)
            # This one used to look for them for ever.
            self.assertEqual(server.call("DELETE", "/api/v3/messages?query=all&timeout=30s"), {"deleted": 9})
            self.assertEqual(server.call("GET", "/api/v3/stats"), {"messages": 0, "unread": 0})
            self.assertEqual(server.find("number")["total"], 0)

    def test_rows_that_others_take_away_are_noticed(self):
        with MailServer() as server:
            ids = [server.send(simple(f"number {number}", "all of them")) for number in range(30)]
            server.wait_for_index(30)
            for identifier in ids[5:25]:
                server.delete_row(identifier)
            # Nobody has come across them: neither looks at messages.
            wait_until(lambda: server.call("GET", "/api/v3/stats") == {"messages": 10, "unread": 10}, 10)
            self.assertEqual(server.find("all of", limit=1)["total"], 10)
            self.assertEqual(server.metric("tabella_mail_removed_by_others_total"), 20)
            # Mail's own deletes need nothing.
            server.call("DELETE", "/api/v3/messages?query=number")
            server.request("DELETE", "/api/v1/messages")
            time.sleep(1)
            self.assertEqual(server.metric("tabella_mail_removed_by_others_total"), 20)

    def test_rows_that_others_put_are_noticed(self):
        with MailServer() as server, concurrent.futures.ThreadPoolExecutor() as pool:
            ids = [server.send(simple(f"number {number}", "all of them", X_Tags="kept")) for number in range(60)]
            server.wait_for_index(60)
            client = server.tables()
            rows = {row["ID"]["S"]: row for row in client.scan(TableName="tabella-mail", ConsistentRead=True)["Items"]}
            # A backup: some were deleted by mail, some by others, and all are put back. Besides, older and newer ones.
            for identifier in ids[10:20]:
                server.request("DELETE", "/api/v1/messages/" + urllib.parse.quote(identifier, safe=""))
            for identifier in ids[30:40]:
                server.delete_row(identifier)
            wait_until(lambda: server.call("GET", "/api/v3/stats")["messages"] == 40, 10)
            for identifier in ids[10:20] + ids[30:40]:
                client.put_item(TableName="tabella-mail", Item=rows[identifier])

            def put(nanoseconds, row):
                day = time.strftime("%Y-%m-%d", time.gmtime(nanoseconds / 1e9))
                client.put_item(TableName="tabella-mail", Item={**row, "CreatedDate": {"S": day}, "ID": {"S": f"{nanoseconds}|imported@elsewhere"}})

            first, row = int(ids[0].split("|")[0]), rows[ids[0]]
            for number in range(20):
                put(first - 86400 * 10**9 + number, row)  # before all
                put(int(ids[number].split("|")[0]) + 1, row)  # between them
            wait_until(lambda: server.call("GET", "/api/v3/stats")["messages"] == 100, 20)
            for query in ("all of", "tag:kept", "is:tagged", "inbox:bob@example.com", "subject:number"):
                self.assertEqual(server.find(query, limit=1)["total"], 100, query)
            found = [item["ID"] for item in server.messages(limit=250)["items"]]
            self.assertEqual(found, sorted(found, reverse=True))
            self.assertEqual(len(set(found)), 100)
            if not REMOTE:  # there it is looked for
                waiting = pool.submit(server.call, "GET", "/api/v3/wait?query=subject:number+after:1s&timeout=20s")
                time.sleep(1.5)
                put(time.time_ns(), row)
                self.assertEqual(waiting.result(30)["subject"], "number 0")

    def test_retention_by_count_gets_past_what_is_not_there(self):
        with MailServer() as server:
            ids = [server.send(simple(f"number {number}")) for number in range(20)]
            server.wait_for_index(20)
            for identifier in ids[:10]:
                server.delete_row(identifier)
            server.options += ["--mail-max-messages", "5"]
            server.restart()
            wait_until(lambda: server.call("GET", "/api/v3/stats")["messages"] == 5, 60)
            self.assertEqual([i["ID"] for i in server.messages()["items"]], ids[:14:-1])

    def test_reindex_builds_the_index_anew(self):
        with MailServer() as server:
            ids = [server.send(simple(f"number {number}", "all of them", X_Tags="kept")) for number in range(80)]
            server.call("PUT", "/api/v3/messages/" + urllib.parse.quote(ids[1], safe=""), {"read": True})
            server.wait_for_index(80)
            server.delete_row(ids[0])
            client = server.tables()
            for row in client.scan(TableName="tabella-mail-index", ConsistentRead=True)["Items"]:
                if row["part"]["S"].startswith(("segment|", "label")):
                    client.delete_item(TableName="tabella-mail-index", Key={"part": row["part"], "name": row["name"]})
            response, content = server.request("GET", "/api/v3/messages?query=all+of")
            self.assertEqual(response.status, 503)
            self.assertIn(b"tabella mail reindex", content)
            where = ["--store", server.dynamodb] if REMOTE else ["--data", server.folder.name]
            if not REMOTE:
                busy = subprocess.run([BINARY, "mail", "reindex", *where], capture_output=True, text=True)
                self.assertEqual(busy.returncode, 1)
                self.assertIn("in use by another process", busy.stderr)
                server.stop()
                time.sleep(2)  # until the last of them has settled
            done = subprocess.run([BINARY, "mail", "reindex", *where], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.startswith("79 messages, "), done.stdout)
            self.assertIn("rows of the old index removed", done.stderr)
            if not REMOTE:
                self.assertEqual(done.stdout, "79 messages, 79 of them in the index\n")
                server.start()
            self.assertEqual([server.find(q, limit=1)["total"] for q in ("all of", "subject:number", "tag:kept", "is:read", "")], [79, 79, 79, 1, 79])
            self.assertEqual([m["id"] for m in server.find("", limit=100)["messages"]], [i.replace("|", "~") for i in ids[:0:-1]])
            self.assertEqual(server.call("GET", "/api/v3/tags"), {"tags": ["kept"]})
            nowhere = subprocess.run([BINARY, "mail", "reindex", "--data", os.path.join(server.folder.name, "nothing")], capture_output=True, text=True)
            self.assertEqual((nowhere.returncode, os.path.exists(os.path.join(server.folder.name, "nothing"))), (1, False))

    @unittest.skipIf(REMOTE, "reads of another store wait, and so let others through")
    def test_a_long_search_lets_others_through(self):
        with MailServer("--mail-settle", "1h", "--threads", "1") as server, concurrent.futures.ThreadPoolExecutor() as pool:
            text = "lorem ipsum dolor sit amet, consetetur sadipscing elitr\r\n" * 1000
            with smtplib.SMTP("127.0.0.1", server.smtp) as client:
                for number in range(2000):
                    client.sendmail("a@x.org", ["b@y.org"], f"Subject: number {number}\r\n\r\n{text}")
                client.sendmail("a@x.org", ["b@y.org"], "Subject: large\r\n\r\n" + text * 400)
            for path in ("/api/v3/messages?query=nowhere&timeout=2m", "/api/v2/search?kind=containing&query=nowhere&timeout=2m", "/api/v3/inboxes", "/api/v3/messages?limit=1000"):
                begun, searching, others = time.monotonic(), pool.submit(server.request, "GET", path), 0
                while not searching.done():
                    self.assertEqual(server.request("GET", "/healthz")[0].status, 200)
                    others += 1
                self.assertEqual(searching.result()[0].status, 200, path)
                # Whoever holds the one thread lets one or two through, before and after; what is short proves nothing.
                self.assertTrue(others > 6 or time.monotonic() - begun < 0.2, f"{path}: {others}")
            self.assertEqual(server.request("GET", "/api/v3/messages?query=nowhere&timeout=20ms")[0].status, 503)

    def test_lists_of_large_messages_take_little_memory(self):
        with MailServer() as server:
            text = ("x" * 76 + "\r\n") * 160_000
            for number in range(3):
                server.send(f"Subject: large {number}\r\n\r\n{text}")
            before = server.memory()
            connections = [socket.create_connection(("127.0.0.1", server.http), timeout=60) for _ in range(12)]
            for connection in connections:
                connection.sendall(b"GET /api/v2/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            peak = 0
            for _ in range(40):
                time.sleep(0.1)
                peak = max(peak, server.memory())
            for connection in connections:
                connection.close()
            self.assertLess(peak - before, 600)  # 12 answers of 36 MB, which is 72 MB as JSON
            for item in server.messages()["items"]:
                self.assertEqual(item["Raw"]["Data"].split("\r\n\r\n", 1)[1], text[:-2])
                self.assertEqual(item["Content"]["Body"], text[:-2])
            response, content = server.request("GET", "/api/v1/messages/" + urllib.parse.quote(item["ID"], safe=""))
            self.assertEqual(json.loads(content), item)

    def test_listeners_that_do_not_read_are_dropped_and_slow_nobody(self):
        with MailServer() as server:
            listeners = []
            for number in range(100):
                connection = socket.socket()
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.connect(("127.0.0.1", server.http))
                handshake = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
                if number % 2:
                    connection.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
                else:
                    connection.sendall(b"GET /api/v2/websocket HTTP/1.1\r\nHost: x\r\n" + handshake + b"\r\n")
                listeners.append(connection)
            for connection in listeners:
                self.assertTrue(connection.recv(12).startswith(b"HTTP/1.1 "))
            begun = time.monotonic()
            with smtplib.SMTP("127.0.0.1", server.smtp) as client:
                for number in range(300):
                    client.sendmail("a@x.org", ["b@y.org"], f"Subject: number {number}\r\n\r\n" + ("y" * 76 + "\r\n") * 1200)
            self.assertLess(time.monotonic() - begun, 20)
            for connection in listeners[:4]:
                connection.settimeout(30)
                received = 0
                try:
                    while piece := connection.recv(1 << 20):
                        received += len(piece)
                except ConnectionResetError:
                    pass
                self.assertLess(received, 300 * 2 * 76 * 1200, "it was dropped before it had all")
            for connection in listeners:
                connection.close()

    def test_wait_returns_as_soon_as_it_comes(self):
        with MailServer() as server, concurrent.futures.ThreadPoolExecutor() as pool:
            server.call("GET", "/api/v3/wait?query=subject:later&timeout=100ms", expect=404)
            waiting = pool.submit(server.call, "GET", "/api/v3/wait?query=subject:later&timeout=60s")
            server.send(simple("earlier"))
            server.send(simple("later"))
            self.assertEqual(waiting.result(30)["subject"], "later")
            self.assertEqual(server.call("GET", "/api/v3/wait?query=subject:later")["subject"], "later")
            server.call("GET", "/api/v3/wait?query=is:odd", expect=400)

    def test_waiting_does_not_keep_the_process(self):
        with MailServer() as server, concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = pool.submit(server.request, "GET", "/api/v3/wait?query=never&timeout=300s")
            events = socket.create_connection(("127.0.0.1", server.http))
            events.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
            time.sleep(0.5)
            begun = time.monotonic()
            server.stop()
            self.assertLess(time.monotonic() - begun, 30)
            waiting.exception(10)
            events.close()

    def test_assertions(self):
        with MailServer() as server, concurrent.futures.ThreadPoolExecutor() as pool:
            welcome = {"query": "to:bob@example.com", "count": 1, "timeout": "20s",
                       "each": {"subject": {"equals": "Welcome"}, "text": {"contains": "confirm", "not_contains": "password"}, "header:X-Kind": {"starts_with": "tx"}}}
            result = pool.submit(server.call, "POST", "/api/v3/assert", welcome)
            time.sleep(0.2)
            server.send(simple("Welcome", "please confirm", X_Kind="txn"))
            self.assertTrue(result.result(30)["passed"])
            failed = server.call("POST", "/api/v3/assert", {"query": "welcome", "count": {"min": 2}, "each": {"subject": {"equals": "Goodbye"}}}, expect=417)
            self.assertFalse(failed["passed"])
            self.assertEqual(len(failed["failures"]), 2)
            self.assertIn("it is 'Welcome'", failed["failures"][1])
            self.assertTrue(server.call("POST", "/api/v3/assert", {"query": "nothing", "count": 0})["passed"])
            server.send(simple("Code", "<p>your code is <b>42</b></p>", Content_Type="text/html"))
            self.assertTrue(server.call("POST", "/api/v3/assert", {"query": "subject:code", "each": {"text": {"contains": "code is 42"}}})["passed"])
            for wrong in ({"each": {"colour": {}}}, {"count": "x"}, {"what": 1}, {"timeout": "long"}, [1]):
                server.call("POST", "/api/v3/assert", wrong, expect=400)

    def test_scenarios_play_in_order(self):
        with MailServer() as server:
            scenario = {"seed": 7, "steps": [{"to": "@example.com", "reply": "454 4.7.0 Try again", "times": 3},
                                             {"at": "message", "to": "@slow.org", "reply": "552 5.2.2 Full", "times": 1},
                                             {"at": "sender", "from": "bad@", "reply": "550 5.7.1 No", "times": 0}]}
            server.call("PUT", "/api/v3/scenario", scenario)
            codes = []
            for _ in range(5):
                with smtplib.SMTP("127.0.0.1", server.smtp) as client:
                    client.ehlo("me")
                    client.mail("a@x.org")
                    client.rcpt("other@x.org")
                    codes.append(client.rcpt("bob@example.com")[0])
            self.assertEqual(codes, [454, 454, 454, 250, 250])
            with self.assertRaises(AssertionError):
                server.send(simple("full"), to="x@slow.org")
            server.send(simple("fits"), to="x@slow.org")
            for _ in range(3):
                with smtplib.SMTP("127.0.0.1", server.smtp) as client:
                    client.ehlo("me")
                    self.assertEqual(client.mail("bad@x.org")[0], 550)
            playing = server.call("GET", "/api/v3/scenario")
            self.assertEqual(playing["steps"][0]["left"], 0)
            self.assertEqual(len(playing["happened"]), 7)
            for wrong in ({"steps": [{"reply": "250 fine"}]}, {"steps": [{"at": "noon"}]}, {"steps": 1}, {"steps": [{"foo": 1}]}):
                server.call("PUT", "/api/v3/scenario", wrong, expect=400)
            self.assertEqual(server.request("DELETE", "/api/v3/scenario")[0].status, 204)
            server.call("GET", "/api/v3/scenario", expect=404)

    def test_seeded_chances_fall_the_same_each_time(self):
        with MailServer() as server:
            def play():
                server.call("PUT", "/api/v3/scenario", {"seed": 3, "steps": [{"to": "@", "reply": "451 4.3.0 Maybe", "times": 0, "chance": 0.5}]})
                with smtplib.SMTP("127.0.0.1", server.smtp) as client:
                    client.ehlo("me")
                    client.mail("a@x.org")
                    return [client.rcpt(f"b{n}@y.org")[0] for n in range(30)]
            first = play()
            self.assertEqual(set(first), {250, 451})
            self.assertEqual(play(), first)

    def test_webhooks_are_signed_and_tried_again(self):
        calls, failures = [], [2]

        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                calls.append((dict(self.headers), body))
                failures[0] -= 1
                self.send_response(500 if failures[0] >= 0 else 204)
                self.end_headers()

            def log_message(self, *_):
                pass

        receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        with MailServer() as server:
            url = f"http://127.0.0.1:{receiver.server_address[1]}/hook"
            hook = server.call("POST", "/api/v3/webhooks", {"url": url, "secret": "whsec_" + base64.b64encode(b"key").decode(), "query": "subject:hooked"}, expect=201)
            server.call("POST", "/api/v3/webhooks", {"url": "nonsense"}, expect=400)
            refused = server.call("POST", "/api/v3/webhooks", {"url": "http://169.254.169.254/latest"}, expect=403)
            self.assertIn("--outbound-allow 169.254.169.254", refused["error"])
            time.sleep(2.5)  # processes learn of each other's hooks
            server.send(simple("other"))
            identifier = server.send(simple("hooked"))
            wait_until(lambda: len(calls) >= 3, 60)
            headers, body = calls[2]
            headers = {name.lower(): value for name, value in headers.items()}
            self.assertEqual(headers["webhook-id"], identifier)
            signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
            self.assertEqual(headers["webhook-signature"], "v1," + base64.b64encode(hmac.new(b"key", signed, hashlib.sha256).digest()).decode())
            self.assertEqual(json.loads(body)["data"]["subject"], "hooked")
            listed = server.call("GET", "/api/v3/webhooks")["webhooks"]
            self.assertEqual(listed, [{"id": hook["id"], "url": url, "query": "subject:hooked", "signed": True}])
            self.assertEqual(server.request("DELETE", f"/api/v3/webhooks/{hook['id']}")[0].status, 204)
            self.assertEqual(server.request("DELETE", f"/api/v3/webhooks/{hook['id']}")[0].status, 404)
        receiver.shutdown()

    def test_retention_by_count(self):
        with MailServer("--mail-max-messages", "10") as server:
            for number in range(25):
                server.send(simple(f"number {number}"))
            wait_until(lambda: server.messages()["total"] == 10, 60)
            self.assertEqual([i["Content"]["Headers"]["Subject"][0] for i in server.messages()["items"]], [f"number {n}" for n in range(24, 14, -1)])

    def test_retention_by_time_to_the_second(self):
        with MailServer("--mail-ttl", "6s") as server:
            identifier = server.send(simple("short-lived"))
            created = int(identifier.split("|")[0]) / 1e9
            server.wait_for_index(1)
            self.assertEqual(server.messages()["total"], 1)
            time.sleep(max(0, int(created) + 6 - time.time() + 0.05))
            self.assertEqual(server.messages()["total"], 0)
            self.assertEqual(server.search("short")["total"], 0)
            self.assertEqual(server.request("GET", "/api/v1/messages/" + urllib.parse.quote(identifier, safe=""))[0].status, 404)

    def test_messages_are_found_after_the_granularity_changed(self):
        for before, after in (("day", "hour"), ("hour", "day"), ("half-day", "hour")):
            with MailServer("--mail-partition", before) as server:
                ids = [server.send(simple(f"number {n}")) for n in range(3)]
                server.options[server.options.index("--mail-partition") + 1] = after
                server.restart()
                ids += [server.send(simple(f"number {n}")) for n in range(3, 6)]
                self.assertEqual([i["ID"] for i in server.messages()["items"]], ids[::-1], (before, after))
                server.wait_for_index(6)
                self.assertEqual([i["ID"] for i in server.messages()["items"]], ids[::-1], (before, after))
                self.assertEqual(server.search("number")["total"], 6)

    def test_long_texts_are_found_once_they_are_indexed(self):
        with MailServer() as server:
            server.send("Subject: long\r\n\r\n" + "".join(f"line {n} of a long text\r\n" for n in range(60_000)) + "needlexyzzy\r\n")
            server.send("Subject: cyrillic\r\nContent-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\nContent-Type: multipart/related; boundary=b\r\n\r\n"
                        "--b\r\nContent-Type: text/plain; charset=windows-1251\r\n\r\n".encode() + b"\xcf\xf0\xe8\xe2\xe5\xf2 \r\n" * 4000 + b"--b--\r\n--a--\r\n")
            for _ in range(2):
                self.assertEqual([server.find(q)["total"] for q in ("needlexyzzy", "long -needlexyzzy", "привет")], [1, 0, 1])
                server.wait_for_index(2)

    def test_everything_is_there_after_a_restart(self):
        with MailServer() as server:
            for number in range(12):
                server.send(simple(f"number {number}"))
            server.wait_for_index(5)
            before = server.messages()
            server.restart()
            self.assertEqual(server.messages(), before)
            self.assertEqual(server.search("number")["total"], 12)


class Guarded(unittest.TestCase):
    def test_the_auth_file_guards_all_but_health(self):
        with tempfile.NamedTemporaryFile("w") as users:
            users.write("ann:" + subprocess.run([BINARY, "bcrypt", "secret"], capture_output=True, text=True).stdout)
            users.flush()
            with MailServer("--auth-file", users.name) as server:
                good = {"Authorization": "Basic " + base64.b64encode(b"ann:secret").decode()}
                bad = {"Authorization": "Basic " + base64.b64encode(b"ann:wrong").decode()}
                for path in ("/", "/api/v2/messages", "/metrics", "/api/v1/events"):
                    self.assertEqual(server.request("GET", path)[0].status, 401)
                    self.assertEqual(server.request("GET", path, headers=bad)[0].status, 401)
                self.assertEqual(server.request("GET", "/api/v2/messages", headers=good)[0].status, 200)
                self.assertEqual(server.request("GET", "/api/v2/messages", headers=good)[0].status, 200)
                self.assertEqual(server.request("GET", "/healthz")[0].status, 200)

    def test_a_password_that_nobody_had_time_for_is_not_wrong(self):
        with tempfile.NamedTemporaryFile("w") as users:
            users.write("ann:" + subprocess.run([BINARY, "bcrypt", "secret"], capture_output=True, text=True).stdout)
            users.flush()
            with MailServer("--auth-file", users.name) as server, concurrent.futures.ThreadPoolExecutor(150) as pool:
                def log_in(password):
                    return server.request("GET", "/api/v2/messages", headers={"Authorization": "Basic " + base64.b64encode(f"ann:{password}".encode()).decode()})[0]

                wrong = [pool.submit(log_in, f"wrong {number}") for number in range(120)]
                right = [pool.submit(log_in, "secret") for _ in range(20)]
                self.assertLessEqual({answer.result().status for answer in right}, {200, 503})
                refused = [answer.result() for answer in wrong]
                self.assertLessEqual({answer.status for answer in refused}, {401, 503})
                self.assertLessEqual({answer.getheader("Retry-After") for answer in refused if answer.status == 503}, {"1"})
                self.assertEqual(log_in("secret").status, 200)

    def test_pages_of_others_may_not_change_anything(self):
        with MailServer() as server:
            server.send(simple("precious"))
            evil = {"Origin": "https://evil.example"}
            self.assertEqual(server.request("DELETE", "/api/v1/messages", headers=evil)[0].status, 403)
            self.assertEqual(server.request("POST", "/delete-all", headers=evil)[0].status, 403)
            own = {"Origin": f"http://127.0.0.1:{server.http}"}
            self.assertEqual(server.messages()["total"], 1)
            self.assertEqual(server.request("POST", "/delete-all", headers=own)[0].status, 303)
            self.assertEqual(server.messages()["total"], 0)

    def test_a_name_that_is_made_to_point_here_reads_nothing(self):
        with MailServer("--allow-host", "mail.example.com") as server:
            for host, status in (("evil.example.com", 403), ("evil.example.com:8025", 403), ("mail.example.com", 200), ("mailhog:8025", 200), ("localhost", 200)):
                self.assertEqual(server.request("GET", "/api/v2/messages", headers={"Host": host})[0].status, status, host)
            self.assertEqual(server.request("GET", "/healthz", headers={"Host": "evil.example.com"})[0].status, 200)

    def test_cors_and_web_path(self):
        with MailServer("--cors-origin", "https://app.example", "--web-path", "mail/") as server:
            response, _ = server.request("GET", "/mail/api/v2/messages")
            self.assertEqual(response.getheader("Access-Control-Allow-Origin"), "https://app.example")
            self.assertEqual(server.request("DELETE", "/mail/api/v1/messages", headers={"Origin": "https://app.example"})[0].status, 200)
            self.assertEqual(server.request("GET", "/api/v2/messages")[0].status, 404)
            self.assertEqual(server.request("GET", "/mail")[0].status, 200)


class AsMhdynamoHasIt(unittest.TestCase):
    def test_items_are_laid_out_as_the_document_says(self):
        with MailServer() as server:
            identifier = server.send(simple("stored", "body", X_Empty=""))
            client = boto3.client("dynamodb", endpoint_url=server.dynamodb, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
            table = client.describe_table(TableName="tabella-mail")["Table"]
            self.assertEqual(table["KeySchema"], [{"AttributeName": "CreatedDate", "KeyType": "HASH"}, {"AttributeName": "ID", "KeyType": "RANGE"}])
            self.assertEqual(client.describe_time_to_live(TableName="tabella-mail")["TimeToLiveDescription"]["AttributeName"], "Expires")
            item = client.scan(TableName="tabella-mail", ConsistentRead=True)["Items"][0]
            nanoseconds, short = identifier.split("|")
            self.assertEqual(item["ID"], {"S": identifier})
            self.assertEqual(item["CreatedDate"], {"S": time.strftime("%Y-%m-%d", time.gmtime(int(nanoseconds) / 1e9))})
            self.assertEqual(item["Expires"], {"N": str(int(nanoseconds) // 10**9 + 7 * 86400)})
            msg = item["Msg"]["M"]
            self.assertEqual(msg["ID"], {"S": short})
            self.assertEqual(msg["From"]["M"], {"Relays": {"NULL": True}, "Mailbox": {"S": "alice"}, "Domain": {"S": "example.com"}, "Params": {"NULL": True}})
            self.assertEqual(msg["Content"]["M"]["Headers"]["M"]["Subject"], {"L": [{"S": "stored"}]})
            self.assertEqual(msg["Content"]["M"]["Headers"]["M"]["X-Empty"], {"L": [{"NULL": True}]})
            self.assertEqual(msg["Content"]["M"]["Body"], {"S": "body"})
            self.assertEqual(msg["MIME"], {"NULL": True})
            self.assertEqual(msg["Raw"]["M"]["To"], {"L": [{"S": "bob@example.com"}]})
            self.assertRegex(msg["Created"]["S"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$")

    def test_what_mhdynamo_wrote_is_read(self):
        with MailServer() as server:
            client = boto3.client("dynamodb", endpoint_url=server.dynamodb, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
            now = time.time_ns()
            path = {"M": {"Relays": {"NULL": True}, "Mailbox": {"S": "x"}, "Domain": {"S": "y.z"}, "Params": {"NULL": True}}}
            client.put_item(TableName="tabella-mail", Item={
                "CreatedDate": {"S": time.strftime("%Y-%m-%d", time.gmtime(now / 1e9))}, "ID": {"S": f"{now}|msg1@localhost"}, "Expires": {"N": str(now // 10**9 + 1000)},
                "Msg": {"M": {"ID": {"S": "msg1@localhost"}, "Created": {"S": "2024-02-29T00:30:00.123456+02:00"}, "From": path, "To": {"L": [path]},
                              "Content": {"M": {"Headers": {"M": {"Subject": {"L": [{"S": "foreign"}]}}}, "Body": {"S": "body"}, "Size": {"N": "120"}, "MIME": {"NULL": True}}},
                              "MIME": {"NULL": True}, "Raw": {"M": {"From": {"S": "x@y.z"}, "To": {"L": [{"S": "x@y.z"}]}, "Data": {"S": "Subject: foreign\r\n\r\nbody"}, "Helo": {"S": "h"}}}}}})
            self.assertEqual(server.messages()["items"][0]["Content"]["Body"], "body")
            self.assertEqual(server.search("FOREIGN")["total"], 1)


class CommandLine(unittest.TestCase):
    def test_mailhogs_flags_and_variables(self):
        from mail_server import MailProcess, free_port
        with tempfile.TemporaryDirectory() as folder:
            smtp, http_port, dynamodb = free_port(), free_port(), free_port()
            process = subprocess.Popen([BINARY, "serve", "-data", folder, "-dynamodb", f"127.0.0.1:{dynamodb}", "-smtp-bind-addr", f"127.0.0.1:{smtp}",
                                        "-api-bind-addr", f"127.0.0.1:{http_port}", "-ui-bind-addr", f"127.0.0.1:{http_port}", "-storage", "memory", "-invite-jim", "-log-level", "warning"],
                                       env={**os.environ, "MH_HOSTNAME": "mailhog.example", "MH_UI_WEB_PATH": "x"}, stdout=subprocess.PIPE, text=True)
            try:
                while "Page and API" not in process.stdout.readline():
                    pass
                with socket.create_connection(("127.0.0.1", http_port)) as connection:
                    connection.sendall(b"GET /x/api/v2/jim HTTP/1.0\r\n\r\n")
                    self.assertIn(b"200 OK", connection.recv(1000))
            finally:
                process.terminate()
                process.communicate()
        for options, expected in ((["-storage", "mongodb"], "--storage"), (["-maildir-path", "x"], "--maildir-path"), (["--mail-ttl", "soon"], "--mail-ttl"),
                                  (["--mail-partition", "week"], "--mail-partition"), (["--smtp-require-tls"], "--smtp-tls-cert"), (["--smtp-max-size", "0"], "--smtp-max-size"),
                                  (["--auth-file", "/nonexistent"], "cannot be read"), (["--jim-accept", "2"], "between 0 and 1"), (["--hostname", "a b"], "--hostname")):
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([BINARY, "serve", "--data", folder, "--dynamodb", "127.0.0.1:0", "--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0", *options],
                                      capture_output=True, text=True, timeout=30)
            self.assertIn(expected, done.stderr, options)
            self.assertNotEqual(done.returncode, 0)

    def test_sendmail(self):
        with MailServer() as server:
            def sendmail(text, *arguments, **environment):
                return subprocess.run([BINARY, "sendmail", *arguments], input=text, text=True, capture_output=True,
                                      env={**os.environ, "TABELLA_SENDMAIL_SMTP": f"127.0.0.1:{server.smtp}", **environment})

            self.assertEqual(sendmail("Subject: one\n\nbody\n", "-i", "-f", "me@x.org", "you@y.org").returncode, 0)
            self.assertEqual(sendmail("To: A <a@y.org>, b@y.org\nBcc: c@y.org\nSubject: two\n\nbody\n.\nnot this\n", "-t", "-oem").returncode, 0)
            self.assertEqual(sendmail("just text\n", "d@y.org").returncode, 0)
            found = server.find("")["messages"]
            self.assertEqual(found[0]["snippet"], "just text ")
            self.assertEqual(found[1]["envelope"]["to"], ["a@y.org", "b@y.org", "c@y.org"])
            self.assertEqual(found[1]["bcc"], [])
            self.assertEqual(found[1]["snippet"].strip(), "body")
            self.assertEqual(found[2]["envelope"]["from"], "me@x.org")
            self.assertEqual(sendmail("", "x@y.org").returncode, 65)
            self.assertEqual(sendmail("Subject: x\n\n").returncode, 64)
            self.assertEqual(sendmail("Subject: x\n\n", "--what").returncode, 64)
            self.assertEqual(sendmail("Subject: x\n\n", "x@y.org", TABELLA_SENDMAIL_SMTP="127.0.0.1:1").returncode, 75)
            link = os.path.join(server.folder.name, "sendmail")
            os.symlink(os.path.abspath(BINARY), link)
            self.assertEqual(subprocess.run([link, "--smtp-addr", f"127.0.0.1:{server.smtp}", "e@y.org"], input="linked\n", text=True).returncode, 0)


@unittest.skipUnless(REMOTE, "several processes need a store that they share")
class SeveralProcesses(unittest.TestCase):
    def test_both_take_mail_and_both_show_all_of_it(self):
        with MailServer() as one:
            two = one.another().start()
            try:
                for number in range(40):
                    (one if number % 2 else two).send(simple(f"number {number}"))
                for _ in range(8):
                    for process in (one, two):
                        page = process.messages(limit=100)
                        self.assertEqual([i["Content"]["Headers"]["Subject"][0] for i in page["items"]], [f"number {n}" for n in range(39, -1, -1)])
                        self.assertEqual(process.search("number 1")["total"], 11)
                    time.sleep(1)  # while one or the other takes them into the index
                self.assertEqual(one.metric("tabella_mail_indexed_total") + two.metric("tabella_mail_indexed_total"), 40)
                with concurrent.futures.ThreadPoolExecutor() as pool:
                    waiting = pool.submit(two.call, "GET", "/api/v3/wait?query=subject:across&timeout=60s")
                    time.sleep(1)
                    one.send(simple("across"))
                    self.assertEqual(waiting.result(60)["subject"], "across")
                one.request("DELETE", "/api/v1/messages")
                self.assertEqual(two.messages()["total"], 0)
            finally:
                two.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""A Tabella with an outbox: on the embedded store; with OUTBOX_ON=remote, on another Tabella as its store; with OUTBOX_ON=mysql, with its
emails in a MariaDB. And what such an outbox talks to."""

import base64
import hashlib
import hmac
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ON = os.environ.get("OUTBOX_ON", "embedded")
if ON == "remote":
    os.environ["MAIL_ON"] = "remote"
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../mail"))
from mail_server import MailServer
from server import BINARY, free_port, wait_until

# With these nothing moves by itself any more.
DONE = {"SENT", "FAILED", "INVALID", "SENT-ACKNOWLEDGED", "FAILED-ACKNOWLEDGED"}


class Mariadb:
    """A server of this process alone; each outbox has a database of its own."""
    only = None

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tabella-test-")
        self.port, self.databases = free_port(), 0
        as_root = ["--user=root"] if os.geteuid() == 0 else []
        where = [f"--datadir={self.folder.name}/data", *as_root]
        subprocess.run(["mariadb-install-db", "--no-defaults", *where, "--skip-test-db", "--auth-root-authentication-method=normal"],
                       check=True, capture_output=True)
        program = shutil.which("mariadbd", path=os.environ["PATH"] + ":/usr/sbin")
        self.process = subprocess.Popen([program, "--no-defaults", *where, f"--socket={self.folder.name}/socket", f"--port={self.port}",
                                         "--bind-address=127.0.0.1", f"--pid-file={self.folder.name}/pid"], stderr=subprocess.DEVNULL)
        wait_until(self.answers)

    @classmethod
    def get(cls):
        cls.only = cls.only or cls()
        return cls.only

    @classmethod
    def stop(cls):
        if cls.only:
            cls.only.process.terminate()
            cls.only.process.wait()
            cls.only.folder.cleanup()

    def connect(self, database=None):
        import pymysql
        return pymysql.connect(unix_socket=f"{self.folder.name}/socket", user="root", database=database, autocommit=True)

    def answers(self):
        try:
            self.connect().close()
            return True
        except Exception:
            return False

    def make_database(self):
        self.databases += 1
        name = f"outbox_{self.databases}"
        with self.connect() as connection:
            connection.cursor().execute(f"CREATE DATABASE {name}")
        return name


class OutboxServer(MailServer):
    """`with OutboxServer("--outbox-mode", "relay", …) as server:`"""

    def __init__(self, *options, **more):
        self.submission = free_port()
        self.database = Mariadb.get().make_database() if ON == "mysql" else None
        defaults = {"--outbox-retry-first": "200ms", "--outbox-retry-longest": "1s", "--outbox-timeout": "10s",
                    "--submission": f"127.0.0.1:{self.submission}"}
        if self.database:
            defaults["--outbox-database"] = f"mysql://root@127.0.0.1:{Mariadb.get().port}/{self.database}"
        given = [word for option, value in defaults.items() if option not in options for word in (option, value)]
        super().__init__(*given, *options, **more)

    def query(self, statement, *values):
        """At the database."""
        with Mariadb.get().connect(self.database) as connection, connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall()

    def post(self, *emails, expect=201, **headers):
        """POST /outbox/emails; the answer."""
        response, content = self.request("POST", "/outbox/emails", json.dumps({"data": emails}), {name.replace("_", "-"): value for name, value in headers.items()})
        assert response.status == expect, f"{response.status} {content[:1000]!r}"
        return json.loads(content)

    def submit(self, **email):
        """One email that is accepted; its id."""
        return self.post(simple_email(**email))["results"][0]["id"]

    def show(self, identifier):
        return self.call("GET", f"/outbox/emails/{identifier}")

    def status(self, identifier):
        return self.show(identifier)["status"]

    def wait_for(self, identifier, *states, seconds=60):
        """Until it is in one of these states (or done); the email then."""
        wanted = set(states) or DONE
        deadline = time.monotonic() + seconds
        while (email := self.show(identifier))["status"] not in wanted:
            assert time.monotonic() < deadline, f"not {wanted} in time: {json.dumps(email, indent=1)}"
            time.sleep(0.02)
        return email

    def raw(self, identifier):
        response, content = self.request("GET", f"/outbox/emails/{identifier}/raw")
        assert response.status == 200, content
        return content

    def captured(self, query=""):
        """Messages in our own mail."""
        return self.find(query, limit=100)["messages"]


def simple_email(**more):
    return {"from": "Shop <shop@example.com>", "to": ["ann@example.org"], "subject": "Order 17", "body_text": "Thank you!\n", **more}


def at(seconds):
    """So many seconds from now, as a payload has it."""
    moment = time.time() + seconds
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment * 1000) % 1000:03}Z"


def quoted(text):
    return urllib.parse.quote(text, safe="")


class Receiver:
    """A server for callbacks and attachments: answers with the next status that it was told, then with 204."""

    def __init__(self, *statuses, otherwise=204, location=None, content=b"", content_type="text/plain"):
        self.statuses, self.otherwise, self.calls = list(statuses), otherwise, []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                receiver.calls.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else receiver.otherwise)
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/called"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *failure):
        self.server.shutdown()
        self.server.server_close()

    def bodies(self):
        return [json.loads(body) for _, body in self.calls]


def signature(secret, headers, body):
    """By standardwebhooks.com."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def certificate(folder, name="localhost"):
    """A certificate that only who is given it trusts, and its key."""
    cert, key = os.path.join(folder, name + ".pem"), os.path.join(folder, name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={name}",
                    "-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1"], check=True, capture_output=True)
    return cert, key

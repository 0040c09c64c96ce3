"""A MariaDB server of a test's own, in a temporary folder."""

import os
import shutil
import subprocess
import tempfile
import time

import pymysql

from server import free_port

PATH = os.environ["PATH"] + ":/usr/sbin"
# A server that is started as root wants to be told that this is meant.
AS_THIS_USER = ["--user=root"] if os.geteuid() == 0 else []


class Mariadb:
    """`with Mariadb() as database:` What it has acknowledged is on disk: a killed one comes back with it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tabella-mariadb-")
        self.port = free_port()
        self.process = None
        subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={self.folder}/data", "--skip-test-db", "--auth-root-authentication-method=normal",
                        *AS_THIS_USER], check=True, capture_output=True, env={**os.environ, "PATH": PATH})

    def start(self):
        with open(os.path.join(self.folder, "log"), "a") as log:
            self.process = subprocess.Popen(
                [shutil.which("mariadbd", path=PATH), "--no-defaults", f"--datadir={self.folder}/data", f"--socket={self.folder}/socket", f"--port={self.port}",
                 "--bind-address=127.0.0.1", f"--pid-file={self.folder}/pid", "--innodb-flush-log-at-trx-commit=1", *AS_THIS_USER], stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.connect().close()
            except pymysql.OperationalError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def connect(self, name=None):
        return pymysql.connect(host="127.0.0.1", port=self.port, user="root", database=name, charset="utf8mb4")

    def make(self, name):
        """A new database in it, as the outbox is told of it."""
        with self.connect() as connection:
            connection.cursor().execute(f"CREATE DATABASE {name}")
        return f"mysql://root@127.0.0.1:{self.port}/{name}"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *failure):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

"""A PostgreSQL server in a cluster of its own, for ./bench journal and ./bench inbox. It does not run as root."""

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile

import servers

POSTGRESQL_OPTIONS = {"listen_addresses": "127.0.0.1", "max_connections": 100, "fsync": "on", "synchronous_commit": "on", "shared_buffers": "512MB",
                      "max_wal_size": "4GB"}


def run(command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode != 0:
        raise SystemExit(f"{command[0]} failed: {result.stderr or result.stdout}")
    return result.stdout


class Cluster(servers.Server):
    """Durable: fsync and synchronous_commit are on."""

    def __init__(self, port):
        versions = sorted(os.listdir("/usr/lib/postgresql"), key=float)
        self.programs = os.path.join("/usr/lib/postgresql", versions[-1], "bin")
        self.user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        self.folder = self.reachable_folder()
        run([os.path.join(self.programs, "initdb"), "-D", self.folder, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale", "C"], cwd="/", **self.user)
        options = {**POSTGRESQL_OPTIONS, "port": port, "unix_socket_directories": self.folder}
        with open(os.path.join(self.folder, "postgresql.conf"), "a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in options.items())
        super().__init__("PostgreSQL", port, [os.path.join(self.programs, "postgres"), "-D", self.folder], cwd="/", **self.user)

    def reachable_folder(self):
        """Beside the others' data, unless its user cannot get there."""
        for parent in (servers.WORK, "/var/tmp"):
            folder = tempfile.mkdtemp(prefix="postgresql-", dir=parent)
            if not self.user:
                return folder
            os.chown(folder, pwd.getpwnam("postgres").pw_uid, -1)
            if subprocess.run(["test", "-w", folder], cwd="/", **self.user).returncode == 0:
                return folder
            os.rmdir(folder)
        raise SystemExit("there is no folder that the user postgres can write to")

    def answers(self):
        return subprocess.run([os.path.join(self.programs, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode == 0

    def psql(self, statement, **options):
        return run([os.path.join(self.programs, "psql"), "-X", "-q", "-t", "-h", "127.0.0.1", "-p", str(self.port), "-U", "bench", "-d", "postgres",
                    "-c", statement], **options)

    def pgbench(self, script, seconds, connections):
        """Transactions of a script on so many connections, in about so many seconds: how many, and the seconds they took."""
        file = os.path.join(servers.WORK, "pgbench.sql")
        with open(file, "w") as out:
            out.write(script)
        output = run([os.path.join(self.programs, "pgbench"), "-n", "-M", "prepared", "-h", "127.0.0.1", "-p", str(self.port), "-U", "bench",
                      "-c", str(connections), "-j", "1", "-T", str(seconds), "-f", file, "postgres"])
        done = int(re.search(r"transactions actually processed: (\d+)", output).group(1))
        if done == 0:
            raise SystemExit(f"PostgreSQL did nothing in {seconds} s:\n{output}")
        return done, done / float(re.search(r"tps = ([\d.]+)", output).group(1))

    def stop(self):
        self.process.send_signal(signal.SIGINT)  # it does not wait for its clients then
        super().stop()
        shutil.rmtree(self.folder, ignore_errors=True)

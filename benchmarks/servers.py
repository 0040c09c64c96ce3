"""The servers that ./bench starts and watches: Tabella, its peers, and nginx as the ceiling."""

import http.client
import json
import os
import shutil
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.path.join(ROOT, "build", "bench")
HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, "
                     "SignedHeaders=host;x-amz-date, Signature=0",
}


class Watched:
    """What a process costs: `self.process`, and those that it has started."""

    def pids(self):
        children = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True).stdout
        return [self.process.pid] + [int(pid) for pid in children.split()]

    def cpu_seconds(self):
        """Of its processes, and of those that have ended."""
        total = 0
        for pid in self.pids():
            try:
                with open(f"/proc/{pid}/stat") as stat:
                    fields = stat.read().rsplit(")", 1)[1].split()
            except FileNotFoundError:  # it has ended just now, and is among its parent's
                continue
            total += sum(int(field) for field in fields[11:15])
        return total / os.sysconf("SC_CLK_TCK")

    def costs(self):
        """Processor time of one process of ours: of the threads that work, and of those that compact the store's files."""
        work, compaction = 0, 0
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{task}/stat") as stat:
                thread, fields = stat.read().split("(", 1)[1].rsplit(")", 1)
            ticks = sum(int(field) for field in fields.split()[11:13])
            if thread.startswith("rocksdb:"):
                compaction += ticks
            else:
                work += ticks
        return [ticks / os.sysconf("SC_CLK_TCK") for ticks in (work, compaction)]

    def settle(self, at_most=300):
        """Until what is done behind a load (compaction, counting) is done; returns how long that took."""
        begun = time.monotonic()
        while time.monotonic() - begun < at_most:
            before = self.cpu_seconds()
            time.sleep(0.5)
            if self.cpu_seconds() - before < 0.03:
                break
        return time.monotonic() - begun

    def memory(self):
        total = 0
        for pid in self.pids():
            with open(f"/proc/{pid}/status") as status:
                total += next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        return total / 1024

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Server(Watched):
    """A process that listens on a port."""

    def __init__(self, name, port, command, **options):
        self.name, self.port = name, port
        started = time.monotonic()
        self.log = open(os.path.join(WORK, name.replace(" ", "-") + ".log"), "w")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, **options)
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() - started > 60:
                raise SystemExit(f"{name} did not start; see {self.log.name}")
            time.sleep(0.005)
        self.startup = time.monotonic() - started
        time.sleep(0.5)
        self.idle_memory = self.memory()

    def answers(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
            connection.request("GET", "/")
            connection.getresponse().read()
            return True
        except OSError:
            return False

    def call(self, operation, body, service="DynamoDB"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", "/", json.dumps(body),
                           {**HEADERS, "X-Amz-Target": f"{service}_20120810.{operation}"})
        response = connection.getresponse()
        text = response.read()
        if response.status != 200:
            raise SystemExit(f"{self.name}: {operation} answered {response.status}: {text.decode()}")
        return text

    def stop(self):
        super().stop()
        self.log.close()


def tabella(port, folder=None, keep=False):
    folder = folder or os.path.join(WORK, "data")
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return Server("Tabella", port, [os.path.join(ROOT, "build/release/tabella"), "serve", "--data", folder,
                                    "--dynamodb", f"127.0.0.1:{port}", "--http", "off", "--smtp", "off", "--log-level", "warning"])


def dynalite(port):
    script = os.path.join(WORK, "node_modules/dynalite/cli.js")
    if not os.path.exists(script):
        subprocess.run(["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", WORK, "dynalite"], check=True)
    return Server("dynalite", port, ["node", script, "--port", str(port), "--createTableMs", "1"])


def dynamodb_local(port):
    return Server("DynamoDB Local", port, [os.path.join(ROOT, "scripts/dynamodb_local.sh"), str(port)])


NGINX = """
daemon off; worker_processes auto; pid {work}/nginx.pid; error_log {work}/nginx-error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 1000000000; open_file_cache max=16;
  client_body_temp_path {work}/nginx-body; proxy_temp_path {work}/nginx-proxy; fastcgi_temp_path {work}/nginx-fastcgi;
  uwsgi_temp_path {work}/nginx-uwsgi; scgi_temp_path {work}/nginx-scgi;
  server {{ listen 127.0.0.1:{port}; root {work}/www; location / {{ try_files /answer =404; error_page 405 =200 /answer; }} }}
}}
"""


def nginx(port):
    os.makedirs(os.path.join(WORK, "www"), exist_ok=True)
    set_nginx_answer(b"ok")
    configuration = os.path.join(WORK, "nginx.conf")
    with open(configuration, "w") as file:
        file.write(NGINX.format(work=WORK, port=port))
    return Server("nginx", port, ["nginx", "-c", configuration, "-e", os.path.join(WORK, "nginx-error.log")])


def set_nginx_answer(body):
    path = os.path.join(WORK, "www", "answer")
    with open(path + ".new", "wb") as file:
        file.write(body)
    os.replace(path + ".new", path)
    time.sleep(0.1)

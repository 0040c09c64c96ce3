"""Run a real Prometheus Alertmanager for a test (Python stdlib only).

    with Alertmanager(config_text) as am:
        am.fire({"alertname": "DiskFull", "severity": "critical"}, {"summary": "disk full"})
        am.resolve({"alertname": "DiskFull", "severity": "critical"})

The binary is the one env ALERTMANAGER names, else /usr/bin/prometheus-alertmanager;
`available()` says whether it is there, for a test that wants to skip.
Give the config tiny times (see config_for): Alertmanager's defaults are minutes.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone

DEFAULT_BINARY = "/usr/bin/prometheus-alertmanager"

# Everything here is on loopback: no proxy for our calls, none handed to Alertmanager.
_PROXY_NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def binary():
    return os.environ.get("ALERTMANAGER") or DEFAULT_BINARY


def available():
    return shutil.which(binary()) is not None


def _free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def _rfc3339(moment):
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def config_for(receiver_yaml, group_wait="100ms", group_interval="200ms", repeat_interval="1h",
               group_by="['...']"):
    """A whole alertmanager.yml around one receiver's YAML (its lines, not indented).

    group_by ['...'] makes one group, so one notification, per alert.
    """
    body = "".join("    %s\n" % line for line in receiver_yaml.strip("\n").splitlines())
    return (
        "global:\n"
        "  resolve_timeout: 5m\n"
        "route:\n"
        "  receiver: test\n"
        "  group_by: %s\n"
        "  group_wait: %s\n"
        "  group_interval: %s\n"
        "  repeat_interval: %s\n"
        "receivers:\n"
        "  - name: test\n%s"
    ) % (group_by, group_wait, group_interval, repeat_interval, body)


class Alertmanager:
    def __init__(self, config_text, ready_timeout=20.0, extra_args=()):
        self.config_text = config_text
        self.ready_timeout = ready_timeout
        self.extra_args = list(extra_args)
        self.url = None
        self.process = None
        self.folder = None
        self._log = None
        self._last_log = ""
        self._started = {}  # labels -> startsAt, so a resolve names the same alert's start

    # -- life -----------------------------------------------------------------

    def __enter__(self):
        last = None
        for _ in range(3):  # the free port can be taken between our probe and its bind
            try:
                self._start()
                return self
            except _PortTaken as err:
                last = err
            except BaseException:
                self.stop()
                raise
            self.stop()
        raise RuntimeError(str(last))

    def __exit__(self, *exc):
        self.stop()
        return False

    def _start(self):
        path = shutil.which(binary())
        if path is None:
            raise FileNotFoundError("no alertmanager at %r (set ALERTMANAGER)" % binary())
        self.folder = tempfile.mkdtemp(prefix="alertmanager-")
        config = os.path.join(self.folder, "alertmanager.yml")
        with open(config, "w", encoding="utf-8") as out:
            out.write(self.config_text)
        os.mkdir(os.path.join(self.folder, "data"))
        port = _free_port()
        self.url = "http://127.0.0.1:%d" % port
        env = {k: v for k, v in os.environ.items() if k.lower() not in _PROXY_NAMES}
        self._log = open(os.path.join(self.folder, "log"), "wb")
        self.process = subprocess.Popen(
            [
                path,
                "--config.file=" + config,
                "--storage.path=" + os.path.join(self.folder, "data"),
                "--web.listen-address=127.0.0.1:%d" % port,
                # Names the client_url/externalURL in what it sends; else it is the host's name.
                "--web.external-url=" + self.url,
                "--cluster.listen-address=",  # empty: no gossip, no second port
                "--log.level=debug",
                *self.extra_args,
            ],
            cwd=self.folder, env=env, stdin=subprocess.DEVNULL,
            stdout=self._log, stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + self.ready_timeout
        while True:
            if self.process.poll() is not None:
                log = self.log()
                kind = _PortTaken if "address already in use" in log else RuntimeError
                raise kind("alertmanager ended with %s:\n%s" % (self.process.returncode, log))
            try:
                with _opener.open(self.url + "/-/ready", timeout=1) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                pass
            if time.monotonic() > deadline:
                raise TimeoutError("alertmanager not ready:\n" + self.log())
            time.sleep(0.02)

    def stop(self):
        if self.process is not None:
            if self.process.poll() is None:
                self.process.terminate()
                try:
                    self.process.wait(5)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait()
            self.process = None
        if self._log is not None:
            self._last_log = self.log()
            self._log.close()
            self._log = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def log(self):
        """What it has logged (debug level), also after stop()."""
        if self.folder is None:
            return self._last_log
        try:
            with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as src:
                return src.read()
        except FileNotFoundError:
            return self._last_log

    # -- alerts ---------------------------------------------------------------

    def fire(self, labels, annotations=None, starts_at=None, generator_url="http://prometheus.test/graph"):
        """Post a firing alert; it stays firing for an hour unless resolved."""
        key = tuple(sorted(labels.items()))
        now = datetime.now(timezone.utc)
        start = starts_at or self._started.get(key) or now
        self._started[key] = start
        self._post(labels, annotations, start, now + timedelta(hours=1), generator_url)

    def resolve(self, labels, annotations=None, generator_url="http://prometheus.test/graph"):
        """Post the same alert as ended now. Same labels = same alert.

        Alertmanager keeps the last posted annotations: none given here means
        the resolved notification carries none.
        """
        key = tuple(sorted(labels.items()))
        now = datetime.now(timezone.utc)
        start = self._started.pop(key, now - timedelta(seconds=1))
        self._post(labels, annotations, min(start, now), now, generator_url)

    def alerts(self):
        return self._json("GET", "/api/v2/alerts")

    def _post(self, labels, annotations, start, end, generator_url):
        self._json("POST", "/api/v2/alerts", [{
            "labels": dict(labels),
            "annotations": dict(annotations or {}),
            "startsAt": _rfc3339(start),
            "endsAt": _rfc3339(end),
            "generatorURL": generator_url,
        }])

    def _json(self, method, path, body=None):
        request = urllib.request.Request(
            self.url + path, method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with _opener.open(request, timeout=10) as answer:
                raw = answer.read()
        except urllib.error.HTTPError as err:
            raise RuntimeError("%s %s: %d %s" % (
                method, path, err.code, err.read().decode("utf-8", "replace"))) from None
        return json.loads(raw) if raw.strip() else None


class _PortTaken(RuntimeError):
    pass

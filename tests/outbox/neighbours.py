"""Servers of others that a delivery meets: Postfix and dnsmasq, each in a folder and on a port of its own."""

import base64
import os
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading

from outbox_server import free_port, wait_until


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Logins:
    """Says who may log in, by the protocol that Postfix speaks with Dovecot."""

    def __init__(self, users):
        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                self.wfile.write(b"VERSION\t1\t1\nMECH\tPLAIN\tplaintext\nSPID\t1\nCUID\t1\nCOOKIE\t0123456789abcdef0123456789abcdef\nDONE\n")
                for line in self.rfile:
                    verb, *words = line.decode().rstrip("\n").split("\t")
                    if verb == "AUTH":
                        answer = next(word.removeprefix("resp=") for word in words if word.startswith("resp="))
                        _, user, password = base64.b64decode(answer).decode().split("\0")
                        verdict = "OK" if users.get(user) == password else "FAIL"
                        self.wfile.write(f"{verdict}\t{words[0]}\tuser={user}\n".encode())

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Postfix:
    """Takes mail from those who log in under TLS, and hands all of it to one server."""

    can_run = os.geteuid() == 0 and shutil.which("postfix")  # it starts as root or not at all

    SERVICES = ("pickup unix n - n 60 1 pickup", "cleanup unix n - n - 0 cleanup", "qmgr unix n - n 300 1 qmgr", "rewrite unix - - n - - trivial-rewrite",
                "bounce unix - - n - 0 bounce", "defer unix - - n - 0 bounce", "trace unix - - n - 0 bounce", "verify unix - - n - 1 verify",
                "tlsmgr unix - - n 1000? 1 tlsmgr", "smtp unix - - n - - smtp", "relay unix - - n - - smtp", "error unix - - n - - error", "retry unix - - n - - error",
                "scache unix - - n - 1 scache", "proxymap unix - - n - - proxymap", "anvil unix - - n - 1 anvil", "postlog unix-dgram n - n - 1 postlogd")

    def __init__(self, certificate, users, next_hop):
        self.folder = tempfile.TemporaryDirectory(prefix="tabella-test-")
        self.port, self.logins = free_port(), Logins(users)
        where = self.folder.name
        os.chmod(where, 0o755)
        for name in ("config", "queue", "data"):
            os.mkdir(os.path.join(where, name))
        shutil.chown(os.path.join(where, "data"), "postfix")
        self.config = os.path.join(where, "config")
        settings = {"queue_directory": where + "/queue", "data_directory": where + "/data", "maillog_file": where + "/queue/log", "maillog_file_prefixes": where,
                    "inet_interfaces": "loopback-only", "mydestination": "", "mynetworks": "", "compatibility_level": "3.6", "multi_instance_name": "",
                    "relayhost": f"[127.0.0.1]:{next_hop}", "smtpd_tls_cert_file": certificate[0], "smtpd_tls_key_file": certificate[1],
                    "smtpd_tls_security_level": "encrypt", "smtpd_tls_received_header": "yes", "smtpd_sasl_auth_enable": "yes", "smtpd_sasl_type": "dovecot",
                    "smtpd_sasl_path": f"inet:127.0.0.1:{self.logins.port}", "smtpd_sasl_authenticated_header": "yes",
                    "smtpd_relay_restrictions": "permit_sasl_authenticated, reject"}
        self.write("main.cf", [f"{name} = {value}" for name, value in settings.items()])
        self.write("master.cf", [*self.SERVICES, f"127.0.0.1:{self.port} inet n - n - - smtpd"])

    def write(self, name, lines):
        with open(os.path.join(self.config, name), "w") as file:
            file.write("\n".join(lines) + "\n")

    def __enter__(self):
        subprocess.run(["postfix", "-c", self.config, "start"], check=True, capture_output=True)
        wait_until(lambda: is_open(self.port))
        return self

    def __exit__(self, *failure):
        subprocess.run(["postfix", "-c", self.config, "abort"], capture_output=True)
        self.logins.stop()
        self.folder.cleanup()


def is_free_for_udp(port):
    """Another program may have the same port for UDP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Dnsmasq:
    """Knows these records and nothing else: `Dnsmasq(mx=[("example.net", "mx.example.net", 10)], a={"mx.example.net": "127.0.0.1"})`."""

    def __init__(self, mx=(), a=None, null_mx=()):
        self.port = next(port for port in iter(free_port, None) if is_free_for_udp(port))
        self.address = f"127.0.0.1:{self.port}"
        self.options = ["--keep-in-foreground", "--conf-file=/dev/null", f"--port={self.port}", "--listen-address=127.0.0.1", "--bind-interfaces", "--no-resolv",
                        "--no-hosts", "--local=/#/", "--pid-file=", f"--user={'root' if os.geteuid() == 0 else ''}",
                        *(f"--mx-host={domain},{host},{preference}" for domain, host, preference in mx),
                        *(f"--host-record={host},{address}" for host, address in (a or {}).items()),
                        *(f"--dns-rr={domain},15,000000" for domain in null_mx)]

    def __enter__(self):
        program = shutil.which("dnsmasq", path=os.environ["PATH"] + ":/usr/sbin")
        self.process = subprocess.Popen([program, *self.options], stderr=subprocess.PIPE)
        wait_until(lambda: is_open(self.port))
        return self

    def __exit__(self, *failure):
        self.process.terminate()
        self.process.communicate()

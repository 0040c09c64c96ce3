"""An SMTP server that does what a test tells it to, and remembers what it took.

    with Sink({"sender": ["451 4.3.0 later"], "content": [RESET]}) as sink: …

A script says for each step what happens in place of the right thing, one time after the other; when it is used up, all goes well. The
steps in their order: greeting, hello, tls, login, sender, recipient (or "recipient ann@example.com", for her alone), data, middle (when a
part of the content has come), content (when all of it has), quit."""

import base64
import dataclasses
import email
import email.policy
import enum
import socket
import ssl
import struct
import threading
import time


class End(enum.Enum):
    """No reply at all."""
    SILENCE, RESET, CLOSE = range(3)


SILENCE, RESET, CLOSE = End


@dataclasses.dataclass
class Drip:
    """A reply, byte by byte."""
    reply: str = "250 2.0.0 " + 100 * "."
    pause: float = 0.2


@dataclasses.dataclass
class Hold:
    """The right reply, after a while."""
    seconds: float


@dataclasses.dataclass
class Letter:
    sender: str
    recipients: list
    data: bytes
    acknowledged: bool  # False: it was taken, but nobody was told
    secure: bool
    user: str
    session: int

    @property
    def message(self):
        return email.message_from_bytes(self.data, policy=email.policy.default)

    @property
    def id(self):
        """Of the outbox's email: its Message-ID is made of it."""
        return self.message["Message-ID"].strip("<>").split("@")[0]


class Over(Exception):
    """The connection has ended."""


class Sink:
    def __init__(self, script=None, *, host="127.0.0.1", port=0, certificate=None, users=None, pipelining=True, choose=None):
        """`users`: by name, their passwords; who is none of them may not send. `choose`: asked for each step, after the script."""
        self.script = {step: list(acts) for step, acts in (script or {}).items()}
        self.users, self.pipelining, self.choose = users, pipelining, choose
        self.tls = None
        if certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*certificate)
        self.letters, self.commands, self.sessions = [], [], 0
        self.lock = threading.Lock()
        self.listener = socket.create_server((host, port), backlog=200)
        self.host, self.port = self.listener.getsockname()

    def __enter__(self):
        threading.Thread(target=self.listen, daemon=True).start()
        return self

    def __exit__(self, *failure):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    @property
    def url(self):
        return f"smtp://{self.host}:{self.port}"

    def listen(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            self.sessions += 1
            threading.Thread(target=Session(self, connection, self.sessions).run, daemon=True).start()

    def act(self, *steps):
        """What is to be done wrong at the first of these steps that the script knows; nothing: it is done right."""
        with self.lock:
            for step in steps:
                if self.script.get(step):
                    return self.script[step].pop(0)
            return self.choose(steps[-1]) if self.choose else None

    def of(self, identifier):
        """What it took of an email."""
        with self.lock:
            return [letter for letter in self.letters if letter.id == identifier]


class Session:
    def __init__(self, sink, connection, number):
        self.sink, self.connection, self.number = sink, connection, number
        self.unread, self.user, self.secure = b"", "", False
        self.begin()

    def begin(self):
        self.sender, self.recipients = None, []

    def run(self):
        try:
            self.answer("greeting", "220 sink ESMTP")
            while True:
                line = self.line()
                self.sink.commands.append(line)
                verb, _, rest = line.partition(" ")
                getattr(self, "do_" + verb.lower(), self.do_unknown)(rest)
        except (Over, OSError):
            self.connection.close()

    # What is said.

    def answer(self, step, reply, *closer):
        """Whether the answer was yes, and said at once. `closer`: steps that go before, if the script knows them."""
        return self.perform(self.sink.act(*closer, step), reply)

    def perform(self, act, reply):
        if act is None or isinstance(act, str):
            return self.say(act or reply)
        if isinstance(act, Hold):
            time.sleep(act.seconds)
            return self.say(reply)
        if isinstance(act, Drip):
            for byte in act.reply + "\r\n":
                self.connection.sendall(byte.encode())
                time.sleep(act.pause)
            return False
        if act is End.SILENCE:
            while self.connection.recv(65536):
                pass
        if act is End.RESET:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Over

    def say(self, reply):
        self.connection.sendall(reply.encode() + b"\r\n")
        if reply.startswith("421"):
            raise Over
        return reply[0] in "23"

    # What is heard.

    def read(self):
        piece = self.connection.recv(65536)
        if not piece:
            raise Over
        self.unread += piece

    def take(self, end):
        self.unread, rest = self.unread[end:], self.unread[:end]
        return rest

    def line(self):
        while b"\r\n" not in self.unread:
            self.read()
        return self.take(self.unread.index(b"\r\n") + 2)[:-2].decode()

    def content(self):
        data = b"\r\n" + self.unread
        searched = 0
        while (end := data.find(b"\r\n.\r\n", searched)) < 0:
            searched = max(0, len(data) - 5)
            piece = self.connection.recv(1 << 20)
            if not piece:
                raise Over
            data += piece
        self.unread = data[end + 5:]
        return data[2:end + 2].replace(b"\r\n..", b"\r\n.")

    # Commands.

    def do_ehlo(self, _):
        self.begin()
        offers = ["sink", "8BITMIME", "SMTPUTF8", "SIZE 50000000"]
        offers += ["PIPELINING"] * self.sink.pipelining + ["STARTTLS"] * bool(self.sink.tls and not self.secure)
        offers += ["AUTH PLAIN"] * (self.sink.users is not None)
        self.answer("hello", "\r\n".join("250-" + offer for offer in offers[:-1]) + "\r\n250 " + offers[-1])

    def do_helo(self, _):
        self.begin()
        self.answer("hello", "250 sink")

    def do_starttls(self, _):
        if self.answer("tls", "220 2.0.0 go on"):
            self.connection = self.sink.tls.wrap_socket(self.connection, server_side=True)
            self.unread, self.secure = b"", True

    def do_auth(self, rest):
        _, user, password = base64.b64decode(rest.split(" ")[1]).decode().split("\0")
        right = self.sink.users.get(user) == password
        if self.answer("login", "235 2.7.0 welcome" if right else "535 5.7.8 no"):
            self.user = user

    def do_mail(self, rest):
        self.begin()
        if self.sink.users is not None and not self.user:
            return self.say("530 5.7.0 log in first")
        if self.answer("sender", "250 2.1.0 Ok"):
            self.sender = rest[rest.index("<") + 1:rest.index(">")]

    def do_rcpt(self, rest):
        address = rest[rest.index("<") + 1:rest.index(">")]
        if self.sender is None:
            return self.say("503 5.5.1 MAIL first")
        if self.answer("recipient", "250 2.1.5 Ok", "recipient " + address):
            self.recipients.append(address)

    def do_data(self, _):
        if not self.recipients:
            return self.say("554 5.5.1 no recipients")
        if not self.answer("data", "354 go on"):
            return
        if self.sink.script.get("middle"):
            self.read()
            self.answer("middle", "")
        data = self.content()
        act = self.sink.act("content")
        # One that it does not answer for is taken all the same: who sent it cannot know.
        if not isinstance(act, str) or act[0] == "2":
            told = act is None or isinstance(act, (str, Hold))
            with self.sink.lock:
                self.sink.letters.append(Letter(self.sender, self.recipients, data, told, self.secure, self.user, self.number))
        self.begin()
        self.perform(act, f"250 2.0.0 Ok: queued as {len(self.sink.letters)}")

    def do_rset(self, _):
        self.begin()
        self.say("250 2.0.0 Ok")

    def do_quit(self, _):
        self.answer("quit", "221 2.0.0 bye")
        raise Over

    def do_unknown(self, _):
        self.say("502 5.5.2 what?")

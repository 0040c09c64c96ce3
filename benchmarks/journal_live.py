"""How long an event takes from its append to those who follow: server-sent events of Tabella, XREAD BLOCK of Redis."""

import collections
import http.client
import re
import threading
import time

import journal_peers

PER_SECOND = 100
PATIENCE = 30

Delay = collections.namedtuple("Delay", "after_answer after_request")  # milliseconds


class Follower:
    """Notes when each event arrives, on a thread of its own. `arrive` blocks until some have, and says how many."""

    def __init__(self, arrive):
        self.arrive, self.times = arrive, []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while count := self.arrive():
                self.times.extend([time.monotonic()] * count)
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass  # the connection was closed: that is how it ends


def delays(append, followers, seconds):
    """Appends one by one, at a moderate rate: {name: [Delay…]}."""
    sent, answered = [], []
    begun = time.monotonic()
    for number in range(PER_SECOND * seconds):
        time.sleep(max(0.0, begun + number / PER_SECOND - time.monotonic()))
        sent.append(time.monotonic())
        append()
        answered.append(time.monotonic())
    deadline = time.monotonic() + PATIENCE
    for name, follower in followers.items():
        while len(follower.times) < len(sent):
            if time.monotonic() > deadline:
                raise SystemExit(f"{name}: {len(follower.times)} of {len(sent)} events arrived")
            time.sleep(0.01)
        if len(follower.times) > len(sent):
            raise SystemExit(f"{name}: {len(follower.times)} events arrived of {len(sent)} that were appended")
    return {name: [Delay(1000 * (there - answer), 1000 * (there - request)) for there, answer, request in zip(follower.times, answered, sent)]
            for name, follower in followers.items()}


def subscribe(port, path):
    """A stream of server-sent events: the connection, and how many have arrived."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", path, headers={"Accept": "text/event-stream"})
    response = connection.getresponse()
    if response.status != 200:
        raise SystemExit(f"{path}: {response.status} {response.read(300)!r}")
    rest = b""

    def arrive():
        nonlocal rest
        while piece := response.read1(65536):
            *lines, rest = (rest + piece).split(b"\n")
            # The empty line is what an event ends with; comments that keep the connection alive have no id.
            if count := sum(line.startswith(b"id:") for line in lines):
                return count
        return 0

    return connection, arrive


def follow_tabella(server, number, seconds):
    """A journal of its own for each round."""
    journal = f"live-{number}"
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)

    def append():
        connection.request("POST", f"/journal/{journal}/followed/events", '{"events":[{"data":' + journal_peers.PAYLOAD + "}]}",
                           {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        if response.status != 201:
            raise SystemExit(f"{server.name}: {response.status} {answer[:300]!r}")

    append()  # there is such a journal before it is followed
    time.sleep(1)
    followers, connections = {}, [connection]
    for name, path in (("all", f"/journal/{journal}/all/live"), ("one entity", f"/journal/{journal}/followed/events/live")):
        opened, arrive = subscribe(server.port, path)
        connections.append(opened)
        followers[name] = Follower(arrive)
    time.sleep(0.5)
    found = delays(append, followers, seconds)
    for opened in connections:
        opened.close()
    return found


def follow_redis(server, number, seconds):
    stream = f"live-{number}".encode()
    writer, reader = server.connect(), server.connect()
    payload = journal_peers.PAYLOAD.encode()
    last = b"$"

    def append():
        writer.sendall(b"*5\r\n$4\r\nXADD\r\n$%d\r\n%s\r\n$1\r\n*\r\n$4\r\ndata\r\n$%d\r\n%s\r\n" % (len(stream), stream, len(payload), payload))
        if not writer.recv(1000).startswith(b"$"):
            raise SystemExit("Redis refused an XADD")

    def arrive():
        nonlocal last
        reader.sendall(b"XREAD BLOCK 0 STREAMS %s %s\r\n" % (stream, last))
        answer = b""
        while not answer.endswith(payload + b"\r\n"):
            piece = reader.recv(65536)
            if not piece:
                return 0
            answer += piece
        ids = re.findall(rb"\r\n(\d+-\d+)\r\n", answer)
        last = ids[-1]
        return len(ids)

    followers = {"Redis XREAD": Follower(arrive)}
    time.sleep(0.5)
    found = delays(append, followers, seconds)
    reader.close()
    writer.close()
    return found

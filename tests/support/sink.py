"""The server that mail is sent to: it remembers what it took, by subject and recipient, and can be moody."""

import asyncio
import collections
import contextlib
import random
import re
import threading

SUBJECT = re.compile(rb"^Subject: *([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
ENDED = (asyncio.IncompleteReadError, ConnectionError)


class Gone(Exception):
    """It has closed the connection."""


class Sink:
    """`with Sink() as sink:` takes all mail on sink.port. A moody one refuses for now, is slow, drops connections, and has
    messages whose answer is lost or late. Recipients whose names begin with "refused" it never takes, those with "later" the
    second time."""

    def __init__(self, port, moody=False):
        self.port, self.moody = port, moody
        self.taken = collections.Counter()     # (subject, recipient): how often
        self.answered = collections.Counter()  # of those, how often it said so
        self.senders = {}                      # of those, who the last was from
        self.put_off = set()
        self.pause = 0  # seconds before it says so
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)

    def __enter__(self):
        self.thread.start()
        self.run(asyncio.start_server(self.talk, "127.0.0.1", self.port, limit=1 << 20))
        return self

    def __exit__(self, *failure):
        self.run(self.end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    async def end(self):
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def feels(self, chance):
        return self.moody and random.random() < chance

    async def talk(self, reader, writer):
        with contextlib.suppress(Gone, *ENDED):
            await Session(self, reader, writer).run()
        writer.close()


def address_in(line):
    return line[line.index("<") + 1:line.index(">")]


class Session:
    """One connection."""

    def __init__(self, sink, reader, writer):
        self.sink, self.reader, self.writer = sink, reader, writer
        self.sender = self.recipients = None  # of the message under way

    async def run(self):
        if self.sink.feels(0.01):
            raise Gone
        await self.say("421 4.3.2 not now" if self.sink.feels(0.01) else "220 sink ESMTP")
        while True:
            line = (await self.reader.readuntil(b"\r\n")).decode().strip()
            if self.sink.feels(0.02):
                await asyncio.sleep(random.uniform(0.02, 0.2))
            await self.answer(line)

    async def answer(self, line):
        word = line.upper()[:4]
        if word == "EHLO":
            await self.say("250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 ENHANCEDSTATUSCODES")
        elif word == "MAIL":
            self.sender, self.recipients = address_in(line), None if self.sink.feels(0.03) else []
            await self.say("250 2.1.0 ok" if self.recipients is not None else "451 4.3.0 busy")
        elif word == "RCPT":
            await self.take_recipient(address_in(line))
        elif word == "DATA":
            await self.take_data()
        elif word == "QUIT":
            if not self.sink.feels(0.1):
                await self.say("221 2.0.0 bye")
            raise Gone
        elif word in ("RSET", "NOOP", "HELO"):
            await self.say("250 2.0.0 ok")
        else:
            await self.say("502 5.5.2 what?")

    async def take_recipient(self, address):
        if self.recipients is None:
            await self.say("503 5.5.1 MAIL first")
        elif address.startswith("refused"):
            await self.say("554 5.7.1 never")
        elif self.sink.feels(0.05) or (address.startswith("later") and address not in self.sink.put_off):
            self.sink.put_off.add(address)
            await self.say("450 4.2.1 not now")
        else:
            self.recipients.append(address)
            await self.say("250 2.1.5 ok")

    async def take_data(self):
        if not self.recipients:
            await self.say("503 5.5.1 RCPT first")
            return
        await self.say("354 go on")
        if self.sink.feels(0.01):
            await self.reader.read(100)
            raise Gone
        content = bytearray()
        while not content.endswith(b"\r\n.\r\n"):
            content += await self.reader.readuntil(b"\r\n")
        if self.sink.feels(0.02):
            await self.say("452 4.3.1 no room")
            return
        subject = SUBJECT.search(content).group(1).decode()
        taken = [(subject, address) for address in self.recipients]
        self.recipients = None
        self.sink.taken.update(taken)
        self.sink.senders.update(dict.fromkeys(taken, self.sender))
        if self.sink.feels(0.01):
            raise Gone
        await asyncio.sleep(3 if self.sink.feels(0.005) else self.sink.pause)
        self.sink.answered.update(taken)
        await self.say("250 2.0.0 taken")
        if self.sink.feels(0.02):
            raise Gone

    async def say(self, text):
        self.writer.write(text.encode() + b"\r\n")
        await self.writer.drain()

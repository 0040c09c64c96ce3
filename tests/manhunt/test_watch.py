"""`tabella manhunt watch` in a terminal: a phone rings, is answered, and the timeline shows it."""

import os
import pty
import select
import subprocess
import time
import unittest

from manhunt_server import BINARY, Domain, ManhuntServer, free_port


class Screen:
    """A program in a terminal of its own."""

    def __init__(self, *arguments):
        self.primary, secondary = pty.openpty()
        self.process = subprocess.Popen([BINARY, *arguments], stdin=secondary, stdout=secondary, stderr=secondary)
        os.close(secondary)
        self.seen = ""

    def until(self, text, seconds=20):
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < deadline, f"{text!r} is not shown: {self.seen[-2000:]!r}"
            if select.select([self.primary], [], [], 0.2)[0]:
                self.seen += os.read(self.primary, 65536).decode(errors="replace")

    def press(self, key):
        self.seen = ""
        os.write(self.primary, key.encode())

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.primary)


class Watch(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(ManhuntServer())
        self.domain = Domain(self.server)
        self.watch = ("manhunt", "watch", "--url", f"http://127.0.0.1:{self.server.http}")

    def test_a_phone_is_answered(self):
        ann = self.domain.contact("Ann", ("phone", "+390612345678"), ("text", "+390612345678", "1m"))
        with Screen(*self.watch) as screen:
            screen.until("No phone rings")
            search = self.domain.search(ann, metadata={"summary": "Disk full \x1b[31m on db1"})
            screen.until("Disk full  [31m on db1")  # nothing that a message says is obeyed by the terminal
            screen.until("+390612345678")
            screen.until("planned")
            screen.press("a")
            screen.until("accepted")
            screen.until("successful (simulator)")
            self.assertEqual(self.domain.find(search)["status"], "successful")
            screen.press("q")
            screen.until("\x1b[?1049l")
            self.assertEqual(screen.process.wait(10), 0)

    def test_of_several_one_is_chosen(self):
        ann, bob = self.domain.contact("Ann", ("phone", "+390611111111")), self.domain.contact("Bob", ("phone", "+390622222222"))
        first, second = self.domain.search(ann), None
        self.domain.ring(first)
        second = self.domain.search(bob)
        self.domain.ring(second)
        with Screen(*self.watch, "--domain", "shop") as screen:
            screen.until("Bob +390622222222")
            screen.press("2")
            screen.until("> 2")
            screen.press("d")
            screen.until("failed (declined)")
        self.assertEqual(self.domain.find(first)["status"], "active")
        self.assertEqual(self.domain.find(second)["status"], "failed")

    def test_without_a_terminal_it_is_printed_once(self):
        search = self.domain.search(self.domain.contact("Ann", ("phone", "+390612345678")))
        self.domain.ring(search)
        printed = subprocess.run([BINARY, *self.watch, "--once"], capture_output=True, text=True, timeout=20)
        self.assertEqual(printed.returncode, 0, printed.stderr)
        self.assertIn("phone  Ann +390612345678 (shop)", printed.stdout)
        self.assertIn("fails, if nobody answers", printed.stdout)

    def test_a_server_that_is_not_there(self):
        url = f"http://127.0.0.1:{free_port()}"
        refused = subprocess.run([BINARY, "manhunt", "watch", "--url", url], capture_output=True, text=True, timeout=20)
        self.assertEqual(refused.returncode, 1)
        self.assertIn(f"{url} cannot be watched", refused.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)

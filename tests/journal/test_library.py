"""The library as a program outside of the tree uses it: installs what BUILD has built, builds examples/bank against that and
runs it, in a folder and on a server."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from journal_server import JournalServer

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.environ.get("BUILD", os.path.join(SOURCE, "build/release"))


def call(*command, expect=0):
    """Runs a command to its end; what it prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if (done.returncode == 0) != (expect == 0):
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Bank:
    """One that runs, and is given command after command."""

    def __init__(self, program, place):
        self.process = subprocess.Popen([program, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0, self.process.returncode


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tabella-library-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.prefix = os.path.join(cls.folder, "installed")
        call("cmake", "--install", BUILD, "--prefix", cls.prefix)
        # Nothing of the tree is to be needed: not even the example is built where it is.
        shutil.copytree(os.path.join(SOURCE, "examples/bank"), os.path.join(cls.folder, "bank"))
        cls.configure("built", "clang-19", "clang++-19")
        call("cmake", "--build", os.path.join(cls.folder, "built"))
        cls.program = os.path.join(cls.folder, "built/bank")

    @classmethod
    def configure(cls, into, c, cxx, expect=0):
        linker = ["-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold"] if shutil.which("mold") and "clang" in cxx else []
        return call("cmake", "-G", "Ninja", "-S", os.path.join(cls.folder, "bank"), "-B", os.path.join(cls.folder, into), f"-DCMAKE_PREFIX_PATH={cls.prefix}",
                    f"-DCMAKE_C_COMPILER={c}", f"-DCMAKE_CXX_COMPILER={cxx}", "-DCMAKE_BUILD_TYPE=Debug", *linker, expect=expect)

    def bank(self, place, *command):
        done = subprocess.run([self.program, place, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_what_is_installed_does_not_know_where_it_was_built(self):
        package = os.path.join(self.prefix, "lib")
        for folder, _, files in os.walk(package):
            for name in files:
                if name.endswith(".cmake"):
                    with open(os.path.join(folder, name)) as file:
                        self.assertNotIn(SOURCE, file.read(), name)

    def test_a_bank_remembers(self):
        place = os.path.join(self.folder, "data")
        self.assertEqual(self.bank(place, "open", "alice"), "done: alice is at event 1")
        self.assertEqual(self.bank(place, "open", "alice"), "not done: there is such an account already")
        self.assertEqual(self.bank(place, "deposit", "alice", "100"), "done: alice is at event 2")
        self.assertEqual(self.bank(place, "withdraw", "alice", "101"), "not done: there is only 100")
        self.assertEqual(self.bank(place, "deposit", "bob", "1"), "not done: there is no such account")
        self.bank(place, "open", "bob")
        self.assertEqual(self.bank(place, "transfer", "alice", "bob", "60", "rent"), "done: bob is at event 2")
        # By its id it is known, although there would not be enough for a second one.
        self.assertEqual(self.bank(place, "transfer", "alice", "bob", "60", "rent"), "done before: bob is at event 2")
        self.assertEqual(self.bank(place, "transfer", "alice", "bob", "60"), "not done: there is only 40")
        lines = self.bank(place, "statement", "alice").splitlines()
        self.assertEqual([re.sub(r"\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\s+", " ", line).split() for line in lines[:-1]],
                         [["1", "opened", "0"], ["2", "deposited", "100"], ["3", "withdrawn", "40"]])
        self.assertEqual(lines[-1], "alice has 40")
        self.assertEqual(self.bank(place, "statement", "bob").splitlines()[-1], "bob has 60")

    def test_more_events_than_a_snapshot_has(self):
        place = os.path.join(self.folder, "many")
        with Bank(self.program, place) as bank:
            bank.ask("open alice")
            for number in range(2, 251):
                self.assertEqual(bank.ask("deposit alice 1"), f"done: alice is at event {number}")
        with Bank(self.program, place) as bank:
            self.assertEqual(bank.ask("withdraw alice 250"), "not done: there is only 249")
            self.assertEqual(bank.ask("withdraw alice 249"), "done: alice is at event 251")

    def test_two_instances_fence_each_other(self):
        with JournalServer() as server, Bank(self.program, server.dynamodb) as first, Bank(self.program, server.dynamodb) as second:
            self.assertEqual(first.ask("open alice"), "done: alice is at event 1")
            self.assertEqual(second.ask("deposit alice 10"), "done: alice is at event 2")
            # Not even a command that it could have decided by what it knows.
            answer = first.ask("deposit alice 5")
            self.assertRegex(answer, "^not done: another instance has taken over alice of journal bank: its epoch is 2, ours 1;")
            # Recovered, it knows what the other has done, and is the writer.
            self.assertEqual(first.ask("withdraw alice 11"), "not done: there is only 10")
            self.assertEqual(first.ask("withdraw alice 10"), "done: alice is at event 3")
            self.assertRegex(second.ask("deposit alice 1"), "^not done: another instance has taken over alice")
            self.assertEqual(second.ask("withdraw alice 1"), "not done: there is only 0")
            # The server shows the same events, and gives them their positions.
            self.assertEqual(server.data("bank/alice"), [{"amount": 0}, {"amount": 10}, {"amount": 10}])
            server.wait_for_position("bank", 3)

    def test_another_compiler_is_told(self):
        if not shutil.which("g++"):
            self.skipTest("there is no other compiler")
        said = self.configure("other", "gcc", "g++", expect=1)
        self.assertIn("Tabella is for C++23 with clang 19 or newer", re.sub(r"\s+", " ", said))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Holds src/ to src/layers.txt: rooms include only rooms below them, heavy headers stay with their owners, no two files
of a room have a local name in common (they may be compiled as one), and every header compiles alone (--headers)."""

import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

SRC = pathlib.Path(__file__).resolve().parent.parent / "src"
INCLUDE = re.compile(r'^\s*#include\s+[<"]([^>"]+)[>"]', re.MULTILINE)


def read_rules():
    rooms, owners = {}, {}
    for line in (SRC / "layers.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        if words[0] == "room":
            rooms[words[1]] = set(words[3:]) | {words[1]}
        elif words[0] == "owner":
            owners[words[1]] = set(words[2:])
    return rooms, owners


def check_includes(rooms, owners):
    for path in sorted(SRC.rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        name = path.relative_to(SRC).as_posix()
        room = name.split("/")[0]
        if room not in rooms:
            yield f"{name}: room '{room}' is not in layers.txt"
            continue
        for included in INCLUDE.findall(path.read_text()):
            target = included.split("/")[0]
            if "/" in included and target in rooms and (SRC / included).exists() and target not in rooms[room]:
                yield f"{name}: {room}/ may not include {target}/ ({included})"
            for prefix, allowed in owners.items():
                if included.startswith(prefix) and name not in allowed:
                    yield f"{name}: {included} belongs to {', '.join(sorted(allowed))}"


LOCAL = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
DEFINED = re.compile(r"^(?:(?:struct|class|enum class|enum) (\w+)|using (\w+) =|[^\s#/}].*?\b(k[A-Z]\w*)(?:\{|\[| =)|[^\s#/}(=]*(?: [^\s(=]+)* [&*]?(\w+)\()", re.MULTILINE)


def names_in(text):
    return {next(filter(None, found)) for found in DEFINED.findall(text)}


def check_local_names():
    """A helper of one file would also hide a function of base/ from the others: those names are taken."""
    taken = collections.defaultdict(dict)
    for path in sorted(SRC.glob("base/*.h")):
        for name in names_in(path.read_text()):
            taken[None][name] = path.name
    for path in sorted(SRC.rglob("*.cpp")):
        group = (path.parent.name, path.name.endswith("_test.cpp"))
        for name in set().union(*(names_in(text) for text in LOCAL.findall(path.read_text()))):
            other = taken[group].setdefault(name, path.name) if name not in taken[None] else taken[None][name]
            if other != path.name:
                yield f"{path.relative_to(SRC)}: the local name {name} is also in {other}"


class HeaderCheck:
    """Compiles every header alone. Most of that would be the same headers again and again: those that many others
    include are precompiled, and each of the others begins with the largest of them that it includes, by itself or by way
    of others. So none sees more than it includes."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.includes = {path.relative_to(SRC).as_posix(): INCLUDE.findall(path.read_text()) for path in sorted(SRC.rglob("*.h"))}
        self.reached = {name: self.reach(name, set()) for name in self.includes}
        users = collections.Counter(header for reached in self.reached.values() for header in reached)
        self.shared = sorted((name for name in self.includes if users[name] >= 15), key=lambda name: -len(self.reached[name]))

    def reach(self, name, reached):
        for included in self.includes.get(name, []):
            if included not in reached:
                reached.add(included)
                self.reach(included, reached)
        return reached

    def compile(self, name, *options):
        source = self.folder / (name.replace("/", ".") + ".cpp")
        source.write_text(f'#include "{name}"\n')
        result = subprocess.run(["clang++-19", "-std=c++23", "-I", str(SRC), "-DBOOST_ASIO_NO_DEPRECATED", *options, str(source)],
                                capture_output=True, text=True)
        return f"{name}: does not compile alone:\n{result.stderr}" if result.returncode != 0 else None

    def pch_of(self, name):
        return str(self.folder / (name.replace("/", ".") + ".pch"))

    # clang 19 crashes when one is made on top of another, so each begins from nothing.
    def precompile(self, name):
        return self.compile(name, "-x", "c++-header", "-o", self.pch_of(name))

    def check(self, name):
        beginning = next((header for header in self.shared if header in self.reached[name]), None)
        return self.compile(name, "-fsyntax-only", *(["-include-pch", self.pch_of(beginning)] if beginning else []))

    def problems(self):
        unprotected = [f"{name}: has no #pragma once" for name in self.includes if "#pragma once" not in (SRC / name).read_text()]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            problems = list(filter(None, pool.map(self.precompile, self.shared)))
            if not problems:
                problems = list(filter(None, pool.map(self.check, self.includes.keys() - self.shared)))
        return unprotected + problems


def main():
    problems = [*check_includes(*read_rules()), *check_local_names()]
    if "--headers" in sys.argv:
        with tempfile.TemporaryDirectory() as folder:
            problems += HeaderCheck(folder).problems()
    print("\n".join(problems) or "layers are respected")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()

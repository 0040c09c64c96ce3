#!/usr/bin/env python3
"""Holds src/ to src/layers.txt: rooms include only rooms below them, heavy headers stay with their owners, and
every header compiles alone (--headers)."""

import pathlib
import re
import subprocess
import sys
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


def check_header(path):
    name = path.relative_to(SRC).as_posix()
    if "#pragma once" not in path.read_text():
        return f"{name}: has no #pragma once"
    result = subprocess.run(
        ["clang++-19", "-std=c++23", "-fsyntax-only", "-I", str(SRC), "-DBOOST_ASIO_NO_DEPRECATED", "-x", "c++", str(path),
         "-Wno-pragma-once-outside-header"], capture_output=True, text=True)
    return None if result.returncode == 0 else f"{name}: does not compile alone:\n{result.stderr}"


def main():
    problems = list(check_includes(*read_rules()))
    if "--headers" in sys.argv:
        with ThreadPoolExecutor(2) as pool:
            problems += filter(None, pool.map(check_header, sorted(SRC.rglob("*.h"))))
    print("\n".join(problems) or "layers are respected")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()

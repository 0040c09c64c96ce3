"""./bench store: one Store asked by 64 coroutines on one thread — embedded, remote to a Tabella, remote to DynamoDB
Local — and wrk with 64 connections on one thread against the same Tabella, all in one run. Ratios are what counts.

  ./bench store [--seconds 4] [--rounds 3]
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess

import servers

OPERATIONS = ["GetItem", "PutItem", "Query"]
PROGRAM = os.path.join(servers.ROOT, "build/release/benchmarks/store_bench")
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "request.lua")
TARGET = 0.6  # of wrk


def ask(store, *arguments):
    result = subprocess.run([PROGRAM, store, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{store}: {result.stderr}")
    return result.stdout


def wrk(port, operation, seconds):
    keys = 100 if operation == "Query" else 10_000
    text = subprocess.run(["wrk", "-t1", "-c64", f"-d{seconds}", "-s", SCRIPT, f"http://127.0.0.1:{port}", "--", operation, str(keys)],
                          capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in text:
        raise SystemExit(text)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.makedirs(servers.WORK, exist_ok=True)
    folder = os.path.join(servers.WORK, "embedded")
    shutil.rmtree(folder, ignore_errors=True)
    tabella, local = servers.tabella(18000), servers.dynamodb_local(18001)
    stores = {"embedded": f"embedded:{folder}", "remote to Tabella": f"http://127.0.0.1:{tabella.port}",
              "remote to DynamoDB Local": f"http://127.0.0.1:{local.port}"}
    try:
        for name, store in stores.items():
            print(f"preparing: {name}", flush=True)
            ask(store, "prepare")
        figures = {(o, name): [] for o in OPERATIONS for name in [*stores, "wrk to Tabella"]}
        for number in range(options.rounds):
            for operation in OPERATIONS:
                print(f"round {number + 1} of {options.rounds}: {operation}", flush=True)
                for name, store in stores.items():
                    figures[operation, name].append(float(ask(store, operation, options.seconds)))
                figures[operation, "wrk to Tabella"].append(wrk(tabella.port, operation, options.seconds))
        print("timers", flush=True)
        late = {name: ask(store, "timers", options.seconds).split() for name, store in stores.items()}
    finally:
        tabella.stop()
        local.stop()
    print(f"\n{'requests/s':24}" + "".join(f"{o:>12}" for o in OPERATIONS))
    median = {key: statistics.median(values) for key, values in figures.items()}
    for name in [*stores, "wrk to Tabella"]:
        print(f"{name:24}" + "".join(f"{median[o, name]:12.0f}" for o in OPERATIONS))
    # Round by round: what disturbs the machine disturbs both.
    ratio = {o: statistics.median(a / b for a, b in zip(figures[o, "remote to Tabella"], figures[o, "wrk to Tabella"])) for o in OPERATIONS}
    print(f"\n{'remote / wrk':24}" + "".join(f"{ratio[o]:12.2f}" for o in OPERATIONS) + f"   target {TARGET}")
    print(f"{'remote / embedded':24}" + "".join(f"{median[o, 'remote to Tabella'] / median[o, 'embedded']:12.2f}" for o in OPERATIONS))
    print(f"{'Tabella / DynamoDB Local':24}" + "".join(
        f"{median[o, 'remote to Tabella'] / median[o, 'remote to DynamoDB Local']:12.1f}" for o in OPERATIONS))

    print(f"\n{'timers fire late by, ms':24}{'median':>12}{'99 %':>12}{'worst':>12}")
    for name, figures in late.items():
        print(f"{name:24}" + "".join(f"{figure:>12}" for figure in figures))


if __name__ == "__main__":
    main()

"""./bench journal: events appended, read and followed, beside Redis Streams (appendfsync always) and a table of PostgreSQL
(synchronous_commit on), in one run on one disk. Ratios are what counts; absolute figures are the machine's.

  ./bench journal [--seconds 4] [--rounds 3] [--only append|batches|replay|history|live] [--history 200000]

append    an event of 256 bytes in a request at 64 connections, over HTTP and in process
batches   10 and 100 events in a request; Redis has as many in its pipeline
replay    all events of one entity, in process and as NDJSON
history   what an append costs with 10 events in the journal and with --history (10000000 for the figure of the docs)
live      from an append to its subscribers
"""

import argparse
import contextlib
import os
import statistics
import time

import engine
import journal_live
import journal_peers
import servers

PORT = 8600
REPLAYED = 200_000
FEW = 10
SMALL_BATCH, LARGE_BATCH = 80, 1000  # of a history: one transaction, and several
APPENDS_PER_ENTITY = 20


class Verdicts:
    """What the design wants, and what came out."""

    def __init__(self):
        self.rows = []

    def add(self, what, value, target, form, least=True):
        reached = value >= target if least else value <= target
        self.rows.append((what, form.format(value), ("≥ " if least else "≤ ") + form.format(target), "reached" if reached else "not reached"))

    def print(self):
        if not self.rows:
            return
        print("\n| figure | measured | target | |\n|---|---:|---:|---|")
        for row in self.rows:
            print(f"| {' | '.join(row)} |")


def in_turns(options, subjects, measure, say):
    """A round is one measurement of each, so that a slow moment of the machine hits all: {name: [figure…]}."""
    figures = {subject.name: [] for subject in subjects}
    for number in range(options.rounds):
        for subject in subjects:
            figure = measure(subject)
            figures[subject.name].append(figure)
            print(f"round {number + 1} of {options.rounds}: {subject.name}: {say(figure)}", flush=True)
    return figures


def ratio(ours, theirs, value):
    """Round by round."""
    return statistics.median(value(a) / value(b) for a, b in zip(ours, theirs))


@contextlib.contextmanager
def started(*makers):
    """They are stopped whatever happens, also if one of them does not start."""
    with contextlib.ExitStack() as stack:
        subjects = []
        for make in makers:
            subjects.append(make())
            stack.callback(subjects[-1].stop)
        yield subjects


def tabella(name="Tabella", port=PORT):
    return lambda: journal_peers.Tabella(name, port)


def redis():
    return journal_peers.Redis(PORT + 10)


def everyone():
    return started(tabella(), journal_peers.InProcess, redis, lambda: journal_peers.PostgreSQL(PORT + 11))


def rate(load):
    return load.rate


def print_loads(title, figures):
    median = lambda loads, value: statistics.median(value(load) for load in loads)
    against = lambda loads, peer: "" if loads is figures[peer] else f"{ratio(loads, figures[peer], rate):.2f}"
    print(f"\n| {title} | events/s | p99 ms | processor µs/event | of a core for the generator | against Redis | against PostgreSQL |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, loads in figures.items():
        p99 = f"{median(loads, lambda load: load.p99):.1f}" if loads[0].p99 is not None else ""
        client = f"{median(loads, lambda load: load.client):.2f}" if loads[0].client else ""
        print(f"| {name} | {median(loads, rate):,.0f} | {p99} | {median(loads, lambda load: load.cost):.1f} | {client} | "
              f"{against(loads, 'Redis')} | {against(loads, 'PostgreSQL')} |")
    print(flush=True)


def measure_appends(options, subjects, batch):
    for subject in subjects:
        subject.append(1, batch)  # warm-up
    figures = in_turns(options, subjects, lambda subject: subject.append(options.seconds, batch),
                       lambda load: f"{load.rate:,.0f} events/s, {load.cost:.1f} µs of processor time each")
    print_loads("one event in a request" if batch == 1 else f"{batch} events in a request", figures)
    return figures


def append(options, verdicts):
    with everyone() as subjects:
        figures = measure_appends(options, subjects, 1)
    verdicts.add("append over HTTP against Redis", ratio(figures["Tabella"], figures["Redis"], rate), 0.5, "{:.2f}")
    verdicts.add("append in process against Redis", ratio(figures["in process"], figures["Redis"], rate), 1, "{:.2f}")


def batches(options, _):
    with everyone() as subjects:
        for batch in (10, 100):
            measure_appends(options, subjects, batch)


def replay(options, verdicts):
    with everyone() as subjects:
        for subject in subjects:
            print(f"{REPLAYED:,} events of one entity: {subject.name}", flush=True)
            subject.load_one(REPLAYED)
        if (lines := subjects[0].replayed_lines()) != REPLAYED:
            raise SystemExit(f"{lines} lines for {REPLAYED} events")
        for subject in subjects:
            subject.replay(REPLAYED)  # warm-up
        figures = in_turns(options, subjects, lambda subject: subject.replay(REPLAYED), lambda found: f"{found:,.0f} events/s")
    medians = {name: statistics.median(found) for name, found in figures.items()}
    print("\n| replay | events/s | against Redis | against PostgreSQL |\n|---|---:|---:|---:|")
    for name, found in medians.items():
        print(f"| {name} | {found:,.0f} | {found / medians['Redis']:.2f} | {found / medians['PostgreSQL']:.2f} |")
    verdicts.add("replay in process, events/s", medians["in process"], 500_000, "{:,.0f}")
    verdicts.add("replay as NDJSON, events/s", medians["Tabella"], 200_000, "{:,.0f}")


def load_history(server, count):
    """Half of them are one entity's."""
    begun, said = time.monotonic(), 0

    def progress(done, total):
        nonlocal said
        if done - said >= max(total // 10, 100_000):
            said = done
            print(f"  {done:,} of {total:,} after {time.monotonic() - begun:.0f} s", flush=True)

    half = count // 2
    server.load(half, "bench", lambda _: "long", LARGE_BATCH, lambda done: progress(done, half))
    said = 0
    entities = max(half // (SMALL_BATCH * APPENDS_PER_ENTITY), 1)
    # Appends that are under way together are to different entities.
    server.load(count - half, "bench", lambda number: f"loaded-{number % max(entities, journal_peers.LOADERS)}", SMALL_BATCH,
                lambda done: progress(done, count - half))
    print(f"{server.name}: loaded in {time.monotonic() - begun:.0f} s, settled after {server.settle(3600):.0f} s more; "
          f"{server.memory():.0f} MB in memory", flush=True)


def history(options, verdicts):
    kinds = {"64 connections, 1,000 entities": {}, "one connection, the long entity": {"connections": 1, "entities": 1, "pid": "long"}}
    with started(tabella(f"with {FEW} events"), tabella(f"with {options.history:,} events", PORT + 2)) as (few, many):
        for server, count in ((few, FEW), (many, options.history)):
            load_history(server, count)
        found = {}
        for kind, where in kinds.items():
            print(f"appending: {kind}", flush=True)
            for server in (few, many):
                server.append(1, 1, **where)  # warm-up
            found[kind] = in_turns(options, [few, many], lambda server: server.append(options.seconds, 1, **where),
                                   lambda load: f"{load.cost:.1f} µs of processor time for an append, {load.rate:,.0f}/s")
    print(f"\n| processor µs/append | {few.name} | {many.name} | ratio |\n|---|---:|---:|---:|")
    for kind, figures in found.items():
        for what, cost in (("", lambda load: load.cost), (", compaction aside", lambda load: load.cost - load.compaction)):
            costs = [statistics.median(cost(load) for load in figures[server.name]) for server in (few, many)]
            grown = ratio(figures[many.name], figures[few.name], cost)
            print(f"| {kind}{what} | {costs[0]:.1f} | {costs[1]:.1f} | {grown:.2f} |")
            verdicts.add(f"cost with {options.history:,} events against {FEW}; {kind}{what}", grown, 1.25, "{:.2f}", least=False)


def live(options, verdicts):
    delays = {}  # of each kind of subscriber: those of all rounds
    with started(tabella(), redis) as (ours, theirs):
        for number in range(options.rounds):
            for follow, server in ((journal_live.follow_tabella, ours), (journal_live.follow_redis, theirs)):
                for name, found in follow(server, number, options.seconds).items():
                    delays.setdefault(name, []).extend(found)
                    print(f"round {number + 1} of {options.rounds}: {name}: {statistics.median(one.after_answer for one in found):.2f} ms", flush=True)
    print("\n| arrival at a subscriber, ms | after the answer: median | 99 % | worst | after the request: median | 99 % |\n|---|---:|---:|---:|---:|---:|")
    for name, found in delays.items():
        answer, request = sorted(one.after_answer for one in found), sorted(one.after_request for one in found)
        at = lambda values, part: values[min(int(len(values) * part), len(values) - 1)]
        print(f"| {name} | {at(answer, 0.5):.2f} | {at(answer, 0.99):.2f} | {answer[-1]:.2f} | {at(request, 0.5):.2f} | {at(request, 0.99):.2f} |")
        if name != "Redis XREAD":
            # The commit is between the request and the answer: this is the most that it can be.
            verdicts.add(f"request to subscriber, ms: {name}", at(request, 0.5), 5, "{:.2f}", least=False)


FIGURES = {"append": append, "batches": batches, "replay": replay, "history": history, "live": live}


def main():
    parser = argparse.ArgumentParser(prog="./bench journal", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=list(FIGURES))
    parser.add_argument("--history", type=int, default=200_000, metavar="EVENTS")
    options = parser.parse_args()
    os.makedirs(servers.WORK, exist_ok=True)
    print(f"machine: {engine.machine()}; {options.rounds} rounds of {options.seconds} s, medians", flush=True)
    verdicts = Verdicts()
    for name, figure in FIGURES.items():
        if options.only in (None, name):
            print(f"\n{name}", flush=True)
            figure(options, verdicts)
    verdicts.print()


if __name__ == "__main__":
    main()

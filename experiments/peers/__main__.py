"""acep and its peers in one run, on one core: ``python -m experiments.peers [WORKLOAD ...] [--environment FOLDER]``.

Writes ``docs/results/peers.md`` and ``peers.csv``, or where ``--output`` says.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

import pyarrow as pa

import acep
from experiments.bench import measured
from experiments.machine import described, pin
from experiments.measure import Measured
from experiments.peers.cases import CASES, Case
from experiments.peers.files import write_events
from experiments.peers.java import ROOT, Outcome, compiled, run_java
from experiments.results import RESULTS, short, table, write
from experiments.workload import Workload
from experiments.workloads import WORKLOADS

__all__ = ["Compared", "body", "main"]

WORDS = """Written by `python -m experiments.peers`; [how to read it](../internals/benchmarks.md). One core for
everything, one
process for each line; loading is not counted, nor is a peer's start. Events a second are of processor time and, in
brackets, of wall time, in the best run. *count*: there are as many matches as were counted without an engine;
*bindings*: those of the first events are the reference engine's, event by event. The last column is how many times the
peer's events a second acep reaches, for a peer that means the same."""
HEAD = ("", "engine", "events", "events/s", "matches", "matches/s", "checked", "acep", "meaning")


@dataclass(frozen=True)
class Compared:
    """A peer's outcome; whether its number of matches is right, and what it bound in the first events (``None``: not
    looked at)."""

    case: Case
    outcome: Outcome
    count: bool | None
    bindings: bool | None


def bound(line: str) -> frozenset[tuple[str, tuple[int, ...]]]:
    """Read a match as a program writes it.

    >>> sorted(bound("a=0,3 b=7"))
    [('a', (0, 3)), ('b', (7,))]
    """
    pairs = (pair.split("=") for pair in line.split())
    return frozenset((name, tuple(map(int, ids.split(",")))) for name, ids in pairs)


def same_bindings(lines: Sequence[str], stream: pa.Table, workload: Workload) -> bool:
    """Return whether the matches of a short stream, one a line, are those of the reference runtime."""
    (query,) = workload.queries
    ours = [frozenset(match.bindings.items()) for match in acep.match(stream, acep.parse(query), engine="reference")]
    theirs = [bound(line) for line in lines]
    return len(theirs) == len(set(theirs)) and set(theirs) == set(ours)


def compare(
    case: Case, workload: Workload, stream: pa.Table, file: Path, classpath: str | None, limit: float
) -> Compared:
    """Run a peer, and look at what it found; where it fails, the outcome says why."""
    dump = file.with_suffix(".txt")
    dump.unlink(missing_ok=True)
    try:
        return _compare(case, workload, stream, file, dump, classpath, limit)
    except (OSError, RuntimeError, TypeError, ValueError, KeyError) as error:  # of what a program said: others go on
        return Compared(case, Outcome(error=f"{type(error).__name__}: {error}"), None, None)


def _compare(
    case: Case, workload: Workload, stream: pa.Table, file: Path, dump: Path, classpath: str | None, limit: float
) -> Compared:
    if classpath is None:
        raise RuntimeError(f"the program for {case.jars} could not be compiled")
    arguments = [str(file), case.pattern, str(case.window), str(limit), str(workload.small), str(dump)]
    outcome = run_java(classpath, case.program, arguments, 12 * limit + 60)
    if outcome.error or not case.same:
        return Compared(case, outcome, None, None)
    count = outcome.matches == workload.expected(stream.slice(0, outcome.rows))
    lines = dump.read_text().splitlines() if case.binds else None
    bindings = None if lines is None else same_bindings(lines, stream.slice(0, workload.small), workload)
    return Compared(case, outcome, count, bindings)


def _ours(one: Measured) -> Sequence[str]:
    if one.error:
        return (one.name, f"acep ({one.engine})", "", "", "", "", "", "", one.error)
    return (
        one.name,
        f"acep ({one.engine})",
        f"{one.rows:,}" + (f" of {one.of:,}" if one.rows < one.of else ""),
        f"{short(one.rows / one.cpu)} ({short(one.rows / one.seconds)})",
        f"{one.matches:,}",
        short(one.matches / one.cpu),
        "count" if one.expected == one.matches else f"not {one.expected}",
        "",
        "",
    )


def _theirs(one: Compared, ours: Measured) -> Sequence[str]:
    outcome, case = one.outcome, one.case
    if outcome.error:
        return (case.workload, case.peer, "", "", "", "", "", "", f"{case.meaning}; {outcome.error}")
    checks = {"count": one.count, "bindings": one.bindings}
    right = case.same and one.count and one.bindings is not False and not ours.error
    speed = outcome.rows / outcome.cpu
    return (
        case.workload,
        case.peer,
        f"{outcome.rows:,}" + (f" of {ours.of:,}" if outcome.rows < ours.of else ""),
        f"{short(speed)} ({short(outcome.rows / outcome.seconds)})",
        f"{outcome.matches:,}",
        short(outcome.matches / outcome.cpu),
        ", ".join(name if held else f"{name} differs" for name, held in checks.items() if held is not None),
        f"{short(ours.rows / ours.cpu / speed)} times" if right else "",
        case.meaning,
    )


def body(ours: Sequence[Measured], peers: Sequence[Compared]) -> str:
    """Return the tables of the page, one for each workload."""
    parts = []
    for name, ones in groupby(ours, key=lambda one: one.name):
        mine = list(ones)
        rows = [*map(_ours, mine), *(_theirs(one, mine[0]) for one in peers if one.case.workload == name)]
        parts.append(f"## {WORKLOADS[name].about}\n\n{table(HEAD, rows)}")
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 where a peer that should mean the same found something else."""
    parser = argparse.ArgumentParser(prog="python -m experiments.peers", description=(__doc__ or "").partition("\n")[0])
    known = tuple(dict.fromkeys(case.workload for case in CASES))
    parser.add_argument("names", nargs="*", metavar="WORKLOAD", help=", ".join(known))
    parser.add_argument("--environment", type=Path, default=ROOT / ".venv-peers", help="where the peers are installed")
    parser.add_argument(
        "--engine", action="append", help="acep's: auto (the default), native, reference; may be repeated"
    )
    parser.add_argument(
        "--limit", type=float, default=5.0, help="seconds of a processor that a run may take: else on a prefix (5)"
    )
    parser.add_argument("--output", type=Path, help="folder for peers.md, peers.csv and raw/peers.json")
    given = parser.parse_args(arguments)
    names = given.names or list(known)
    if strange := set(names) - set(known):
        parser.error(f"no peer runs {', '.join(sorted(strange))}; there are {', '.join(known)}")
    machine = described()
    ours: list[Measured] = []
    peers: list[Compared] = []
    folder_of = given.output or (None if given.names else RESULTS)
    with tempfile.TemporaryDirectory() as folder:
        classpaths: dict[str, str | None] = {}
        for jars in ("flink", "siddhi"):
            try:
                classpaths[jars] = compiled(jars, given.environment)
            except RuntimeError as error:
                print(f"without {jars}: {error}", file=sys.stderr)
                classpaths[jars] = None
        if not any(classpaths.values()):
            parser.error("no peer can be run")
        pin()
        for name in names:
            workload = WORKLOADS[name]
            stream = workload.events()
            file = Path(folder) / f"{name}.events"
            write_events(stream, file)
            ours += [measured(workload, engine, given.limit, 1.0) for engine in given.engine or ["auto"]]
            print("  ".join(_ours(ours[-1])), flush=True)
            for case in CASES:
                if case.workload == name:
                    peers.append(compare(case, workload, stream, file, classpaths[case.jars], given.limit))
                    print("  ".join(_theirs(peers[-1], ours[-1])), flush=True)
            if folder_of:  # again after each workload: what was measured outlives a run that is stopped
                rows = {"acep": [asdict(one) for one in ours], "peers": [asdict(one) for one in peers]}
                text = body(ours, peers)
                write(folder_of, "peers", title="Peers", words=WORDS, machine=machine, body=text, rows=rows)
    if folder_of:
        print(f"written to {folder_of}")
    return int(any(one.count is False or one.bindings is False for one in peers))


if __name__ == "__main__":
    sys.exit(main())

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
from experiments.bench import measure_workload
from experiments.machine import describe_machine, pin
from experiments.measure import Measured
from experiments.peers.cases import CASES, Case
from experiments.peers.files import write_events
from experiments.peers.java import ROOT, Outcome, compile_program, run_java
from experiments.results import RESULTS, shorten, table, write
from experiments.workload import Workload
from experiments.workloads import WORKLOADS

__all__ = ["Compared", "main", "write_body"]

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


def parse_match(line: str) -> frozenset[tuple[str, tuple[int, ...]]]:
    """Read a match as a program writes it.

    >>> sorted(parse_match("a=0,3 b=7"))
    [('a', (0, 3)), ('b', (7,))]
    """
    pairs = (pair.split("=") for pair in line.split())
    return frozenset((name, tuple(map(int, ids.split(",")))) for name, ids in pairs)


def same_bindings(lines: Sequence[str], stream: pa.Table, workload: Workload) -> bool:
    """Return whether the matches of a short stream, one a line, are those of the reference runtime."""
    (query,) = workload.queries
    our_matches = [
        frozenset(match.bindings.items()) for match in acep.match(stream, acep.parse(query), engine="reference")
    ]
    peer_matches = [parse_match(line) for line in lines]
    return len(peer_matches) == len(set(peer_matches)) and set(peer_matches) == set(our_matches)


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
    count = outcome.matches == workload.count_expected(stream.slice(0, outcome.rows))
    lines = dump.read_text().splitlines() if case.binds else None
    bindings = None if lines is None else same_bindings(lines, stream.slice(0, workload.small), workload)
    return Compared(case, outcome, count, bindings)


def _acep_line(measurement: Measured) -> Sequence[str]:
    if measurement.error:
        return (measurement.name, f"acep ({measurement.engine})", "", "", "", "", "", "", measurement.error)
    return (
        measurement.name,
        f"acep ({measurement.engine})",
        f"{measurement.rows:,}" + (f" of {measurement.of:,}" if measurement.rows < measurement.of else ""),
        f"{shorten(measurement.rows / measurement.cpu)} ({shorten(measurement.rows / measurement.seconds)})",
        f"{measurement.matches:,}",
        shorten(measurement.matches / measurement.cpu),
        "count" if measurement.expected == measurement.matches else f"not {measurement.expected}",
        "",
        "",
    )


def _peer_line(peer: Compared, acep_result: Measured) -> Sequence[str]:
    outcome, case = peer.outcome, peer.case
    if outcome.error:
        return (case.workload, case.peer, "", "", "", "", "", "", f"{case.meaning}; {outcome.error}")
    checks = {"count": peer.count, "bindings": peer.bindings}
    right = case.same and peer.count and peer.bindings is not False and not acep_result.error
    speed = outcome.rows / outcome.cpu
    return (
        case.workload,
        case.peer,
        f"{outcome.rows:,}" + (f" of {acep_result.of:,}" if outcome.rows < acep_result.of else ""),
        f"{shorten(speed)} ({shorten(outcome.rows / outcome.seconds)})",
        f"{outcome.matches:,}",
        shorten(outcome.matches / outcome.cpu),
        ", ".join(name if is_right else f"{name} differs" for name, is_right in checks.items() if is_right is not None),
        f"{shorten(acep_result.rows / acep_result.cpu / speed)} times" if right else "",
        case.meaning,
    )


def write_body(acep_results: Sequence[Measured], peers: Sequence[Compared]) -> str:
    """Return the tables of the page, one for each workload."""
    parts = []
    for name, measurements in groupby(acep_results, key=lambda measurement: measurement.name):
        workload_results = list(measurements)
        rows = [
            *map(_acep_line, workload_results),
            *(_peer_line(peer, workload_results[0]) for peer in peers if peer.case.workload == name),
        ]
        parts.append(f"## {WORKLOADS[name].about}\n\n{table(HEAD, rows)}")
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 where a peer that should mean the same found something else."""
    parser = argparse.ArgumentParser(prog="python -m experiments.peers", description=(__doc__ or "").partition("\n")[0])
    workload_names = tuple(dict.fromkeys(case.workload for case in CASES))
    parser.add_argument("names", nargs="*", metavar="WORKLOAD", help=", ".join(workload_names))
    parser.add_argument("--environment", type=Path, default=ROOT / ".venv-peers", help="where the peers are installed")
    parser.add_argument(
        "--engine", action="append", help="acep's: auto (the default), native, reference; may be repeated"
    )
    parser.add_argument(
        "--limit", type=float, default=5.0, help="seconds of a processor that a run may take: else on a prefix (5)"
    )
    parser.add_argument("--output", type=Path, help="folder for peers.md, peers.csv and raw/peers.json")
    options = parser.parse_args(arguments)
    names = options.names or list(workload_names)
    if strange := set(names) - set(workload_names):
        parser.error(f"no peer runs {', '.join(sorted(strange))}; there are {', '.join(workload_names)}")
    machine = describe_machine()
    acep_results: list[Measured] = []
    peers: list[Compared] = []
    results_folder = options.output or (None if options.names else RESULTS)
    with tempfile.TemporaryDirectory() as folder:
        classpaths: dict[str, str | None] = {}
        for jars in ("flink", "siddhi"):
            try:
                classpaths[jars] = compile_program(jars, options.environment)
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
            acep_results += [
                measure_workload(workload, engine, options.limit, 1.0) for engine in options.engine or ["auto"]
            ]
            print("  ".join(_acep_line(acep_results[-1])), flush=True)
            for case in CASES:
                if case.workload == name:
                    peers.append(compare(case, workload, stream, file, classpaths[case.jars], options.limit))
                    print("  ".join(_peer_line(peers[-1], acep_results[-1])), flush=True)
            if results_folder:  # again after each workload: what was measured outlives a run that is stopped
                rows = {"acep": [asdict(result) for result in acep_results], "peers": [asdict(peer) for peer in peers]}
                text = write_body(acep_results, peers)
                write(results_folder, "peers", title="Peers", words=WORDS, machine=machine, body=text, rows=rows)
    if results_folder:
        print(f"written to {results_folder}")
    return int(any(peer.count is False or peer.bindings is False for peer in peers))


if __name__ == "__main__":
    sys.exit(main())

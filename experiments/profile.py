"""Where the time goes on each workload, by layer: ``python -m experiments.profile [NAME ...] [--output FOLDER]``.

A workload calls a few hundred functions a batch and no function an event, so that a profiler of calls costs next to
nothing. What functions of C or of other packages take belongs to the module that called them; the core's are not seen
as functions, so that their time is that of the few functions of ``native_session.py`` that call them.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from experiments.machine import described, pin
from experiments.measure import FIRST
from experiments.results import RESULTS, short, table, write
from experiments.workload import run
from experiments.workloads import chosen

__all__ = ["LAYERS", "Profile", "main", "profiled"]

USUAL = ("w1", "w2", "w3", "v")
LAYERS = {
    "loading": ("tables.py", "columns.py", "batch.py", "times.py"),
    "codes": ("native_session.py:_codes",),
    "core": tuple(f"native_session.py:{one}" for one in ("push", "advance", "finish")),
    "taking": tuple(
        f"native_session.py:{one}" for one in ("take", "blocks", "take_counts", "total", "take_compressed")
    ),
    "order": ("found.py", "found_columns.py"),
    "output": ("matches.py", "batches.py", "arrow.py", "bindings.py", "writing.py", "workload.py"),
    "query": ("pattern", "automaton", "plan", "lark"),
}
"""Layers by the file, the folder or the function that calls the core; ``rest``: others."""
WORDS = """Written by `python -m experiments.profile`; [how to read it](../benchmarks.md). Shares of processor time on
one core. *loading*: tables to columns; *codes*: texts to numbers; *core*: the pass over the events (bit vectors,
partitions, the engine); *taking*: matches made and handed over as arrays; *order*: of the output; *output*: the Arrow
table; *query*: text to plan, once a run; *rest*: what is between them."""


@dataclass(frozen=True)
class Profile:
    """``cpu``: seconds of processor time; ``shares`` of it by layer."""

    name: str
    rows: int
    matches: int
    cpu: float
    shares: dict[str, float]


def layer(file: str, function: str) -> str | None:
    """The layer of a function as :mod:`pstats` names it; ``None``: that of its caller.

    >>> layer("/x/acep/engine/tables.py", "batch_of"), layer("~", "<built-in method numpy.array>")
    ('loading', None)
    >>> layer("/x/acep/engine/native_session.py", "push"), layer("/x/acep/plan/json.py", "loads")
    ('core', 'query')
    """
    path = Path(file)
    names = {f"{path.name}:{function}", *path.parts[-2:]} if {"acep", "experiments"} & set(path.parts) else set()
    return next((of for of, known in LAYERS.items() if names.intersection(known)), None)


def profiled(name: str, engine: str = "auto", scale: float = 1.0) -> Profile:
    """Profile a workload on the first share of its stream, after a short run that warms up."""
    (workload,) = chosen([name])
    stream = workload.events()
    events = stream.slice(0, max(1, round(stream.num_rows * scale)))
    run(workload, events.slice(0, FIRST), engine)
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    done = run(workload, events, engine)
    profile.disable()
    spent: Counter[str] = Counter()
    for (file, _, function), (_, _, own, _, callers) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if found := layer(file, function):
            spent[found] += own
            continue
        told = 0.0
        for (caller, _, called), (_, _, part, _) in callers.items():
            spent[layer(caller, called) or "rest"] += part
            told += part
        spent["rest"] += max(0.0, own - told)
    total = sum(spent.values())
    return Profile(name, events.num_rows, done.matches, total, {of: spent[of] / total for of in (*LAYERS, "rest")})


def body(profiles: Sequence[Profile]) -> str:
    """The shares as a Markdown table."""
    rows = [
        [
            *(one.name, f"{one.rows:,}", short(one.matches), short(one.rows / one.cpu)),
            *(f"{share:.0%}" for share in one.shares.values()),
        ]
        for one in profiles
    ]
    return table(("", "events", "matches", "events/s", *LAYERS, "rest"), rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.profile", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("names", nargs="*", help=f"workloads, groups or patterns ({' '.join(USUAL)})")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--scale", type=float, default=1.0, help="the share of each stream to use (1)")
    parser.add_argument("--output", type=Path, help="where to write profiles.json and profiles.md")
    given = parser.parse_args(arguments)
    pin()
    profiles = []
    for workload in chosen(given.names or USUAL):
        profiles.append(profiled(workload.name, given.engine, given.scale))
        print(body(profiles).splitlines()[-1], flush=True)
    if folder := given.output or (None if given.names else RESULTS):
        rows = [asdict(one) for one in profiles]
        page = write(
            folder, "profiles", title="Profiles", words=WORDS, machine=described(), body=body(profiles), rows=rows
        )
        print(f"written to {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measure the time of each workload by layer: ``python -m experiments.profile [NAME ...] [--output FOLDER]``.

A workload calls a few hundred functions a batch and no function an event, so that a profiler of calls costs little
there; parsing and planning are many small calls, which it makes several times as long, so that they are timed without
it, as a run on one event. What functions of C or of other packages take belongs to the module that called them; the
core's are not seen as functions, so that their time is that of the few functions of ``session.py`` that call
them. Where ``perf`` is there, and the core has symbols (``make profile``), :mod:`experiments.sampling` looks into it.
"""

from __future__ import annotations

import argparse
import cProfile
import math
import pstats
import resource
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from experiments.machine import describe_machine, pin
from experiments.measure import FIRST
from experiments.results import RESULTS, shorten, table, write
from experiments.sampling import INSIDE, take_samples, why_not_sampled
from experiments.workload import Workload, run
from experiments.workloads import choose_workloads

__all__ = ["LAYERS", "Profile", "main", "profile_workload"]

USUAL = (
    *(
        "w1",
        "w2",
        "w3",
        "v",
        "expt1-p3s3",
        "expt2-p3s3-1000",
        "expt3-p2s3",
        "expt4-p3s3",
        "expt5-p3s3",
        "expt6-p1s3-500",
    ),
    *("pset-stock-6", "ponco-20", "pnyse-20"),
)
SIZES = (1_000, 10_000, 100_000, 1_000_000)
SAMPLED = 1.5  # seconds of processor time that are sampled, at least, by running short workloads again
AGAIN = 40
LAYERS = {
    "loading": ("tables.py", "columns.py", "batch.py", "times.py"),
    "codes": ("session.py:_codes",),
    "core": tuple(f"session.py:{method}" for method in ("push", "advance", "finish")),
    "taking": tuple(f"session.py:{method}" for method in ("take", "blocks", "take_counts", "total", "take_compressed")),
    "order": ("records.py", "found_columns.py"),
    "output": ("matches.py", "batches.py", "arrow.py", "bindings.py", "writing.py", "workload.py"),
    "query": ("pattern", "automaton", "plan", "lark"),
}
"""Layers by the file, the folder or the function that calls the core; ``rest``: others."""
SHOWN = (*(name for name in LAYERS if name != "query"), "rest")
WORDS = """Written by `make profile`; what follows from it is in [profiles](../internals/profiles.md). Shares of
processor time on one core."""
OUTSIDE_WORDS = """*start*: a run on one event, mostly text to plan, as a share of the whole run. The shares after
*slower* are of what else the run does, by calls of Python, put to the module that made them: *loading*: tables to
columns; *codes*: texts to numbers; *core*: the pass over the events; *taking*: matches made and handed over as arrays
(and, where they come as record batches, the pass too); *order*: of the output; *output*: the Arrow table; *rest*: what
is between them. *slower*: how many times as long this part took under the profiler; where it is far from 1, small
calls of Python seem to take more than they do, or that run had new pages where the others used theirs again. *faults*:
pages touched for the first time, for a thousand events. Of several queries each counts the events anew."""
INSIDE_WORDS = """Samples of `perf`, by the source file of the core they fall into, and of the rest by library; a layer
under 1 % has no figure. *columns in*: columns, the tables of plans, the loop over events; *classes*: which events an
arc can take; *programs*: predicates in blocks; *nodes*: the node engine (looking at live nodes, their predicates,
making new ones, putting them in place); *chains*: cells of trails; *walk*: enumeration; *kernel*: mostly page faults,
of which the first run of a process has more than the later ones that are sampled too;
*memory*: `memcpy`, `malloc`."""
SIZE_WORDS = """Nanoseconds of processor time an event, on the first events of the stream; the best of some runs. What a
run takes whatever its size, for parsing and planning, weighs on the first columns."""


@dataclass(frozen=True)
class Profile:
    """``cpu``: seconds of processor time of a run without a profiler, ``start`` of one on a single event; ``shares`` of
    a profiled one by layer, without the query, which took ``slower`` times as long; ``inside`` of samples, where there
    are any, whose number is ``samples``; ``sizes``: nanoseconds an event by the number of events; ``faults``: pages
    that were touched for the first time."""

    name: str
    rows: int
    queries: int
    matches: int
    touches: int | None
    cpu: float
    start: float
    slower: float
    faults: int
    shares: dict[str, float]
    inside: dict[str, float] | None
    samples: int
    sizes: dict[int, float]


def layer(file: str, function: str) -> str | None:
    """Return the layer of a function as :mod:`pstats` names it; ``None``: that of its caller.

    >>> layer("/x/acep/events/tables.py", "batch_of"), layer("~", "<built-in method numpy.array>")
    ('loading', None)
    >>> layer("/x/acep/native/session.py", "push"), layer("/x/acep/plan/json.py", "loads")
    ('core', 'query')
    """
    path = Path(file)
    names = {f"{path.name}:{function}", *path.parts[-2:]} if {"acep", "experiments"} & set(path.parts) else set()
    return next((layer_name for layer_name, members in LAYERS.items() if names.intersection(members)), None)


def profile_workload(name: str, engine: str = "auto", scale: float = 1.0) -> Profile:
    """Profile a workload on the first share of its stream, after a short run that warms up."""
    (workload,) = choose_workloads([name])
    stream = workload.events()
    events = stream.slice(0, max(1, round(stream.num_rows * scale)))
    run(workload, events.slice(0, FIRST), engine)
    sizes = {rows: _time_run(workload, events.slice(0, rows), engine) for rows in SIZES if rows < events.num_rows}
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    outcome = run(workload, events, engine)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    cpu = _time_run(workload, events, engine)
    sizes[events.num_rows] = cpu
    start = _time_run(workload, events.slice(0, 1), engine)
    calls = _by_calls(workload, events, engine)
    taken_by_calls = sum(calls.values())
    inside: Counter[str] = Counter()
    if why_not_sampled() is None:
        times = min(AGAIN, math.ceil(SAMPLED / cpu))
        inside = take_samples(lambda: [run(workload, events, engine) for _ in range(times)])
    n_samples = sum(inside.values())
    return Profile(
        name,
        events.num_rows,
        len(workload.queries),
        outcome.matches,
        outcome.touches,
        cpu,
        start,
        taken_by_calls / (cpu - start),
        faults,
        {layer_name: calls[layer_name] / taken_by_calls for layer_name in SHOWN},
        {layer_name: inside[layer_name] / n_samples for layer_name in INSIDE} if n_samples else None,
        n_samples,
        {rows: seconds / rows / len(workload.queries) * 1e9 for rows, seconds in sizes.items()},
    )


def _time_run(workload: Workload, events: pa.Table, engine: str) -> float:
    """Return seconds of processor time: the best of up to nine runs within a second, of one at least."""
    spent: list[float] = []
    while len(spent) < 9 and sum(spent) < 1:
        start = time.process_time()
        run(workload, events, engine)
        spent.append(time.process_time() - start)
    return min(spent)


def _by_calls(workload: Workload, events: pa.Table, engine: str) -> dict[str, float]:
    """Return seconds by layer under the profiler, without those of the query."""
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    run(workload, events, engine)
    profile.disable()
    spent: Counter[str] = Counter()
    for (file, _, function), (_, _, own_seconds, _, callers) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if layer_name := layer(file, function):
            spent[layer_name] += own_seconds
            continue
        from_callers = 0.0
        for (caller, _, called), (_, _, part, _) in callers.items():
            spent[layer(caller, called) or "rest"] += part
            from_callers += part
        spent["rest"] += max(0.0, own_seconds - from_callers)
    return {layer_name: float(spent[layer_name]) for layer_name in SHOWN}


def write_body(profiles: Sequence[Profile]) -> str:
    """Return the tables of the page."""
    rows = []
    for profile in profiles:
        passed = profile.rows * profile.queries
        rows.append(
            [
                *(
                    profile.name,
                    f"{profile.rows:,}",
                    f"{profile.queries}",
                    shorten(profile.matches),
                    shorten(passed / profile.cpu),
                ),
                *(
                    shorten(profile.cpu / passed * 1e9),
                    shorten(profile.cpu / profile.touches * 1e9 if profile.touches else None),
                ),
                *(
                    shorten(profile.faults / passed * 1000),
                    f"{profile.start / profile.cpu:.0%}",
                    f"{profile.slower:.2f}",
                ),
                *(f"{share:.0%}" for share in profile.shares.values()),
            ]
        )
    head = ("", "events", "queries", "matches", "events/s", "ns/event", "ns/touch", "faults", "start", "slower", *SHOWN)
    outside = f"## By layer of Python\n\n{OUTSIDE_WORDS}\n\n{table(head, rows)}"
    return "\n\n".join((outside, _inside_table(profiles), f"## By size\n\n{SIZE_WORDS}\n\n{_sizes_table(profiles)}"))


def _inside_table(profiles: Sequence[Profile]) -> str:
    """Return only layers that have a share somewhere."""
    looked = [(profile, profile.inside) for profile in profiles if profile.inside is not None]
    if not looked:
        return f"## Inside the core\n\nNot measured: {why_not_sampled()}."
    shown = [
        layer_name
        for layer_name in INSIDE
        if layer_name == "other" or any(inside[layer_name] >= 0.01 for _, inside in looked)
    ]
    rows = [
        [
            profile.name,
            *(f"{inside[layer_name]:.0%}" if inside[layer_name] >= 0.01 else "" for layer_name in shown),
            f"{profile.samples:,}",
        ]
        for profile, inside in looked
    ]
    return f"## Inside the core\n\n{INSIDE_WORDS}\n\n{table(('', *shown, 'samples'), rows)}"


def _sizes_table(profiles: Sequence[Profile]) -> str:
    rows = [
        [
            profile.name,
            *(shorten(profile.sizes.get(size)) for size in SIZES),
            f"{shorten(profile.sizes[profile.rows])} ({shorten(profile.rows)})" if profile.rows not in SIZES else "",
        ]
        for profile in profiles
    ]
    return table(("", *(f"{size:,}" for size in SIZES), "all"), rows)


def _summary_line(profile: Profile) -> str:
    shares = sorted((profile.inside or profile.shares).items(), key=lambda item: -item[1])
    main_layers = ", ".join(f"{layer_name} {share:.0%}" for layer_name, share in shares if share >= 0.03)
    return f"{profile.name}: {shorten(profile.rows * profile.queries / profile.cpu)} events/s; {main_layers}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.profile", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("names", nargs="*", help=f"workloads, groups or patterns ({' '.join(USUAL)})")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--scale", type=float, default=1.0, help="the share of each stream to use (1)")
    parser.add_argument("--output", type=Path, help="folder for profiles.md, profiles.csv and raw/profiles.json")
    options = parser.parse_args(arguments)
    pin()
    profiles = []
    for workload in choose_workloads(options.names or USUAL):
        profiles.append(profile_workload(workload.name, options.engine, options.scale))
        print(_summary_line(profiles[-1]), flush=True)
    if folder := options.output or (None if options.names else RESULTS):
        rows = [asdict(profile) for profile in profiles]
        page = write(
            folder,
            "profiles",
            title="Profiles",
            words=WORDS,
            machine=describe_machine(),
            body=write_body(profiles),
            rows=rows,
        )
        print(f"written to {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

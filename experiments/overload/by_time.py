"""Measure what a budget finds in how much time: ``python -m experiments.overload.by_time [NAME ...]``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from time import process_time
from typing import Any

import acep
from acep.pattern.tree import Query
from experiments.charts import Panel, chart
from experiments.machine import limit_memory
from experiments.overload.figure import MEMORY, Figure, write_figure
from experiments.overload.workload import Overload
from experiments.overload.workloads import choose_workloads
from experiments.results import RESULTS, table

__all__ = ["SEARCH", "WINDOW", "Point", "draw_picture", "find_best", "main", "measure_times", "write_body"]

SEARCH, HISTORY, WINDOW = "search", "history", "a shorter window"
RULES = ("random", "newest-per-state", "oldest", "clear")
ALLOWED = (1.3, 0.8, 0.5, 0.3, 0.2, 0.1, 0.05)
"""Allowances, as shares of what the way itself needs for the exact result."""
WINDOWS = (0.75, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05)
TIMES = (1.0, 0.5, 0.25, 0.1)
REPEATS = 2
EPOCH = datetime(1970, 1, 1)
WORDS = f"""Written by `python -m experiments.overload.by_time`. What `acep.match` finds of the match points and match
bundles of the second half of each stream, by its processor time as a share of that of the exact run. *{SEARCH}*: the
default under `Budget(work=)`, cold. *{HISTORY}*: partial matches, chosen by a history of the first half. The other
policies keep partial matches by a rule. *{WINDOW}*: an exact run with a part of the window. Each way has allowances of
{", ".join(f"{share:g}" for share in ALLOWED)} times what it needs itself, or parts of the window of
{", ".join(f"{part:g}" for part in WINDOWS)}; the best of {{}} runs by time. The tables give the highest recall in at
most a share of the time; *none*: no run took so little."""

Points = frozenset[tuple[str, int]]


@dataclass(frozen=True)
class Point:
    """One way to save time on one workload: ``share`` of the allowance or of the window, ``time`` as a share of the
    exact run's, and the shares of match ``points`` and ``bundles`` found. ``exact``: seconds of the exact run."""

    workload: str
    way: str
    seed: int
    share: float
    time: float
    points: float
    bundles: float
    exact: float
    all_points: int


def measure_times(workload: Overload, seed: int = 0, repeats: int = REPEATS) -> Iterator[Point]:
    """Measure all ways on one workload."""
    train, test = workload.halves()
    query, span = workload.query, workload.span

    def match(**options: Any) -> acep.Points:
        return acep.match(test, query, output="points", seed=seed, **options)

    match()  # what the first run imports and compiles is no part of the time
    exact_time, exact = _time_best(lambda: acep.match(test, query, output="points"), repeats)
    points = _points_of(exact)
    bundles = _bundles_of(exact, span)

    def point(way: str, share: float, timed: tuple[float, acep.Points]) -> Point:
        points_found = _points_of(timed[1])
        n_bundles = sum(not bundle.isdisjoint(points_found) for bundle in bundles)
        return Point(
            workload.name,
            way,
            seed,
            share,
            time=timed[0] / exact_time,
            points=len(points_found & points) / max(1, len(points)),
            bundles=n_bundles / max(1, len(bundles)),
            exact=exact_time,
            all_points=len(points),
        )

    ways: dict[str, dict[str, Any]] = {SEARCH: {}, HISTORY: {"history": acep.learn(train, query)}}
    ways |= {rule: {"policy": rule} for rule in RULES}
    for way, options in ways.items():
        need = match(budget=acep.Budget(work=1e9), **options).report.work / max(1, test.num_rows)
        for share in ALLOWED:
            budget = acep.Budget(work=max(share * need, 1e-9))
            yield point(way, share, _time_best(lambda b=budget, o=options: match(budget=b, **o), repeats))  # type: ignore[misc]
    for part in WINDOWS:
        shorter = _with_window(query, part)
        yield point(WINDOW, part, _time_best(lambda q=shorter: acep.match(test, q, output="points"), repeats))  # type: ignore[misc]


def _time_best(run: Callable[[], acep.Points], repeats: int) -> tuple[float, acep.Points]:
    """Return the least processor time of some runs, and what was found."""
    times, answer = [], None
    for _ in range(repeats):
        begin = process_time()
        answer = run()
        times.append(process_time() - begin)
    assert answer is not None
    return min(times), answer


def _with_window(query: Query, part: float) -> Query:
    assert query.within is not None
    amount = max(1, int(query.within.amount * Fraction(part)))
    return replace(query, within=replace(query.within, amount=amount))


def _points_of(points: acep.Points) -> Points:
    """Return the key and the time, in ticks, of each match point."""
    return frozenset((str(point.key), _ticks(point.point)) for point in points)


def _ticks(time: int | datetime) -> int:
    return time if isinstance(time, int) else (time.replace(tzinfo=None) - EPOCH) // timedelta(microseconds=1)


def _bundles_of(points: acep.Points, span: int) -> list[Points]:
    """Return the match points of each bundle: those of a partition that are within a window of the one before."""
    by_key: dict[str, list[int]] = {}
    for key, tick in _points_of(points):
        by_key.setdefault(key, []).append(tick)
    bundles: list[set[tuple[str, int]]] = []
    for key, times in by_key.items():
        last: int | None = None
        for tick in sorted(times):
            if last is None or tick - last > span:
                bundles.append(set())
            bundles[-1].add((key, tick))
            last = tick
    return [frozenset(bundle) for bundle in bundles]


def find_best(rows: Iterable[Point], limit: float, measure: str) -> float | None:
    """Return the highest recall of the rows that took at most a share of the time, with 5 % for the clock.

    >>> rows = [Point("w", "x", 0, s, time=s, points=s / 2, bundles=1, exact=1, all_points=5) for s in (1, 0.5)]
    >>> find_best(rows, 0.5, "points"), find_best(rows, 0.1, "points")
    (0.25, None)
    """
    return max((getattr(row, measure) for row in rows if row.time <= 1.05 * limit), default=None)


def _by_seed(rows: Sequence[Point], limit: float, measure: str) -> list[float | None]:
    seeds = sorted({row.seed for row in rows})
    return [find_best([row for row in rows if row.seed == seed], limit, measure) for seed in seeds]


def _cell(recalls: Sequence[float | None]) -> str:
    shares = [recall for recall in recalls if recall is not None]
    if len(shares) < len(recalls) or not shares:
        return "none"
    spread = f" ({min(shares):.2f} to {max(shares):.2f})" if max(shares) - min(shares) >= 0.005 else ""
    return f"{fmean(shares):.2f}{spread}"


def write_body(rows: Sequence[Point]) -> str:
    """Return the tables of the page."""
    ways = list(dict.fromkeys(row.way for row in rows))
    workloads = list(dict.fromkeys(row.workload for row in rows))
    parts = []
    for measure in ("points", "bundles"):
        lines = []
        for way in ways:
            means: list[str] = []
            for limit in TIMES:
                recalls = [
                    recall or 0.0
                    for name in workloads
                    for recall in _by_seed([r for r in rows if (r.way, r.workload) == (way, name)], limit, measure)
                ]
                means.append(f"{fmean(recalls):.3f}")
            lines.append((way, *means))
        head = ("", *(f"{limit:.0%} of the time" for limit in TIMES))
        words = "Means over workloads; where no run took so little, nothing counts as found."
        parts.append(f"## Match {measure}\n\n{words}\n\n{table(head, lines)}")
    for limit in TIMES[1:]:
        lines = []
        for name in workloads:
            points = [row for row in rows if row.workload == name]
            cells = [_cell(_by_seed([row for row in points if row.way == way], limit, "points")) for way in ways]
            lines.append((name, f"{1000 * points[0].exact:.0f}", *cells))
        head = ("", "exact, ms", *ways)
        parts.append(f"## Match points by workload, in {limit:.0%} of the time\n\n{table(head, lines)}")
    return "\n\n".join(parts)


def draw_picture(rows: Sequence[Point]) -> str:
    """Draw the recall by time, as means over workloads."""
    times = [0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0]
    ways = list(dict.fromkeys(row.way for row in rows))
    groups: dict[tuple[str, str, int], list[Point]] = {}
    for row in rows:
        groups.setdefault((row.way, row.workload, row.seed), []).append(row)

    def series(measure: str) -> Mapping[str, Sequence[tuple[float, float]]]:
        return {
            way: [
                (
                    limit,
                    fmean(
                        find_best(points, limit, measure) or 0.0 for (its, *_), points in groups.items() if its == way
                    ),
                )
                for limit in times
            ]
            for way in ways
        }

    title = "recall of match {} by share of the exact run's time"
    return chart(
        [Panel(title.format(measure), series(measure), "time") for measure in ("points", "bundles")], columns=2
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write, as the other figures."""
    parser = argparse.ArgumentParser(prog="python -m experiments.overload.by_time", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="workloads, * and ? as in file names")
    parser.add_argument("--seeds", type=int, default=1, help="seeds of what is drawn by chance (1)")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"runs of which the fastest counts ({REPEATS})")
    parser.add_argument("--output", type=Path, help="folder for the results")
    options = parser.parse_args(arguments)
    try:
        workloads = [workload for workload in choose_workloads(options.names) if options.names or not workload.control]
    except ValueError as error:
        parser.error(str(error))
    folder = options.output or (None if options.names else RESULTS)
    rows: list[Point] = []
    for workload in workloads:
        for seed in range(options.seeds):
            rows += measure_times(workload, seed, options.repeats)
        points = [row for row in rows if row.workload == workload.name]
        cells = [
            f"{way} {_cell(_by_seed([row for row in points if row.way == way], 0.5, 'points'))}"
            for way in dict.fromkeys(row.way for row in points)
        ]
        print(f"{workload.name:24s} in half of the time: {', '.join(cells)}", flush=True)
        if folder:
            words = WORDS.format(options.repeats)
            write_figure(
                folder, Figure("by_time", "Recall by processor time", words, rows, write_body(rows), draw_picture(rows))
            )
    return 0


if __name__ == "__main__":
    limit_memory(MEMORY)
    sys.exit(main())

"""Hand-written automata: ``python -m experiments.automata [--rows N] [--output FOLDER]``.

Measures queries Q1 to Q3 of the 2010 paper (section 6 and appendix D) on one core: the throughput by the window, beside
the paper's automaton of two states (CAN) and joins that feed back (IPM); by the size of a push; by the interval of
changes of arcs, beside an operator that is restarted; and by the share of events that are ignored.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

import acep
from acep.pattern.spelling import expression_text
from acep.pattern.tree import GraphArc
from experiments.charts import Panel, chart
from experiments.joins import Joins
from experiments.machine import describe_machine, pin
from experiments.results import RESULTS, table, write_csv, write_page

__all__ = ["Changing", "Ignoring", "Pushing", "Window", "events", "main", "query", "two_state_automaton", "write_body"]

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "automata"
TICKS = "+--+-++-"
"""The rises and falls of query Q3."""
DROP = "-0.25"
WINDOWS = (500, 1_000, 2_000)
INTERVALS = (10, 100, 1_000)
SHARES = (0.0, 0.3, 0.6, 0.8, 0.9)
PUSH = 50_000
PUSHES = (1_000, 10_000, 100_000)
CHANGED_PUSH = 10_000
WAYS = {"afa": "automaton", "can": "two states", "ipm": "joins"}
ACTIVE = 500  # events of the window of the changing query
REPEATS = 5
RISES = {"q1": 0.5, "q2": 0.7, "q3": 0.5}


@dataclass(frozen=True)
class Window:
    """The events a second of a ``query`` with a ``window`` of so many events, by ``way``: the automaton (``afa``),
    that of two states (``can``) or joins (``ipm``); the ``matches`` of all events."""

    query: str
    window: int
    way: str
    rate: float
    matches: int


@dataclass(frozen=True)
class Pushing:
    """The events a second of a ``query`` with a window of 1,000 events in pushes of ``push``."""

    query: str
    push: int
    rate: float


@dataclass(frozen=True)
class Changing:
    """The events a second of Q3 if an arc is replaced every ``interval`` events (0: never) in pushes of ``push``, with
    the operator as it runs (``change``; ``ahead``: the changes inside a push are declared before it) or a new one that
    is fed the events of the window (``restart``)."""

    interval: int
    push: int
    way: str
    rate: float
    matches: int


@dataclass(frozen=True)
class Ignoring:
    """The events a second of Q1 for one V-shape if a ``share`` of the events is irrelevant, and the partial matches
    made for each event: these pass by an ``ignorable`` arc, or are bound by an ordinary one (``bound``)."""

    share: float
    way: str
    rate: float
    made: float
    matches: int


def events(rows: int, rises: float, irrelevant: float = 0.0, seed: int = 1) -> pa.Table:
    """Return the price of a stock: it rises or falls by a normal amount (.70, .30; at least .01), at first 100. Of an
    ``irrelevant`` event the price stays.

    >>> events(3, 0.5).column_names
    ['ts', 'symbol', 'price', 'change', 'before']
    """
    rng = np.random.default_rng(seed)
    change = np.where(rng.random(rows) < rises, 1, -1) * np.maximum(rng.normal(0.7, 0.3, rows), 0.01)
    change[rng.random(rows) < irrelevant] = 0
    price = 100 + np.cumsum(change)
    symbol = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int8), ["S"])
    columns = {"ts": np.arange(rows), "symbol": symbol, "price": price, "change": change, "before": price - change}
    return pa.table(columns)


def query(name: str, window: int) -> acep.Automaton:
    """Return a query of ``examples/automata`` for a fall of a quarter dollar and a window of so many events."""
    text = (EXAMPLES / f"{name}.toml").read_text(encoding="utf-8").replace("<= -2", f"<= {DROP}")
    return replace(acep.Automaton.from_toml(text), window=f"{window} events")


def two_state_automaton(name: str, window: int) -> acep.Automaton:
    """Return the same query as an automaton of two states and an end, whose registers hold the state (section 3)."""
    options: dict[str, Any] = {"final": "end", "keys": "symbol", "window": f"{window} events"}
    drop, up, down = f"e.change <= {DROP}", "e.change > 0", "e.change < 0"
    turned, rose = "floor((3 + sign(e.change)) / 2)", "floor((1 + sign(e.change)) / 2)"
    if name == "q3":
        fence = " OR ".join(
            f"(r.q = {position} AND {up if tick == '+' else down})" for position, tick in enumerate(TICKS[1:-1], 1)
        )
        first, last = (up if tick == "+" else down for tick in (TICKS[0], TICKS[-1]))
        arcs = [
            acep.arc("begin", "loop", first, {"q": 1}),
            acep.arc("loop", "loop", fence, {"q": "r.q + 1"}),
            acep.arc("loop", "end", f"r.q = {len(TICKS) - 1} AND {last}"),
        ]
        return acep.Automaton(arcs, registers={"q": 0}, **options)
    if name == "q1":
        shapes = "r.shapes + floor(r.q / 2) * (1 - floor((1 + sign(e.change)) / 2))"
        go_on = f"e.change != 0 AND (r.q > 0 OR {down}) AND (r.q < 2 OR {up} OR r.shapes + 1 < 2)"
        sets = {"q": turned, "level": "r.level - sign(e.change)", "shapes": shapes}
        last = f"{up} AND r.q > 0 AND r.shapes + 1 = 2 AND r.level - 1 = 0"
        arcs = [
            acep.arc("begin", "loop", drop),
            acep.arc("loop", "loop", go_on, sets),
            acep.arc("loop", "end", last),
        ]
        return acep.Automaton(arcs, registers={"q": 0, "level": 0, "shapes": 0}, **options)
    shapes = f"r.shapes + (2 - r.q) * {rose}"
    arcs = [
        acep.arc("begin", "loop", drop, {"q": 1, "target": "e.before"}),
        acep.arc("loop", "loop", f"{down} OR ({up} AND e.price < r.target)", {"q": turned, "shapes": shapes}),
        acep.arc("loop", "end", f"{up} AND e.price >= r.target", {"shapes": shapes}),
    ]
    return acep.Automaton(arcs, registers={"q": 0, "target": float, "shapes": 0}, **options)


def measure_windows(rows: int) -> list[Window]:
    """Measure each query with each window, all ways in alternation. A repetition takes all of them before the next one
    begins, so that a time in which the machine is slow does not fall on one figure."""
    streams = {name: events(rows, rises) for name, rises in RISES.items()}
    automata_by_query = {
        (name, window): (query(name, window), two_state_automaton(name, window)) for name in RISES for window in WINDOWS
    }
    times: dict[tuple[str, int, str], list[float]] = {}
    matches: dict[tuple[str, int, str], int] = {}
    for _ in range(REPEATS):
        for (name, window), automata in automata_by_query.items():
            for way in WAYS:
                if way == "ipm":
                    spent, n_matches = _run_joins(automata[0], streams[name])
                else:
                    automaton = automata[0 if way == "afa" else 1]
                    spent, n_matches, _ = _time_pushes(acep.Matcher(automaton, type=None), streams[name], PUSH)
                times.setdefault((name, window, way), []).append(spent)
                matches[name, window, way] = n_matches
    for name, window in automata_by_query:
        if len(match_counts := {matches[name, window, way] for way in WAYS}) > 1:
            raise AssertionError(f"{name}, {window}: {match_counts}")
    return [Window(*case, rows / median(spent), matches[case]) for case, spent in times.items()]


def measure_pushes(rows: int) -> list[Pushing]:
    """Measure each query with a window of 1,000 events, in pushes of several sizes in alternation."""
    streams = {name: events(rows, rises) for name, rises in RISES.items()}
    times: dict[tuple[str, int], list[float]] = {}
    for _ in range(REPEATS):
        for name, stream in streams.items():
            for push in PUSHES:
                spent, *_ = _time_pushes(acep.Matcher(query(name, 1_000), type=None), stream, push)
                times.setdefault((name, push), []).append(spent)
    return [Pushing(*case, rows / median(spent)) for case, spent in times.items()]


def _time_pushes(matcher: Any, stream: pa.Table, push: int) -> tuple[float, int, int]:
    """Return the processor time of all pushes, and the matches and partial matches."""
    parts = [stream.slice(start, push) for start in range(0, len(stream), push)]
    started = time.process_time()
    for part in parts:
        matcher.push(part)
    matcher.finish()
    spent = time.process_time() - started
    return spent, matcher.report.matches or 0, matcher.report.made


def _run_joins(automaton: acep.Automaton, stream: pa.Table) -> tuple[float, int]:
    """Return the processor time of joins that feed back, and the matches."""
    joins, started = Joins(automaton), time.process_time()
    for start in range(0, len(stream), PUSH):
        joins.push(stream.slice(start, PUSH))
    return time.process_time() - started, joins.matches


def arcs_of(ticks: Sequence[str]) -> list[GraphArc]:
    """The arcs of Q3 for other rises and falls."""
    return [arc_of(position, tick) for position, tick in enumerate(ticks)]


def arc_of(position: int, tick: str) -> GraphArc:
    """The arc of Q3 at a place, for a rise or a fall."""
    return acep.arc(str(position), str(position + 1), f"e.change {'>' if tick == '+' else '<'} 0")


def measure_changes(rows: int) -> Iterator[Changing]:
    """Replace an arc of Q3 every so many events, in all ways, beside pushes of as many events without a change."""
    stream = events(rows, 0.5)
    for interval in INTERVALS:
        prefix, match_counts = stream.slice(0, min(rows, interval * 2_000)), dict[str, int]()
        large = CHANGED_PUSH, ("none", "ahead")
        for push, ways in ((interval, ("none", "change")), (interval, ("restart",)), large):
            times: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(REPEATS):
                # Pushes in turn, so that what else the machine does slows all ways alike.
                steps = [
                    list(step)
                    for step in zip(*(_run_with_changes(prefix, interval, push, way) for way in ways), strict=True)
                ]
                for way, measurements in zip(ways, zip(*steps, strict=True), strict=True):
                    times[way].append(sum(spent for spent, _ in measurements))
                    match_counts[way] = sum(matches for _, matches in measurements)
            for way in ways:
                rate = len(prefix) / median(times[way])
                yield Changing(0 if way == "none" else interval, push, way, rate, match_counts[way])
        if (
            match_counts["change"] != match_counts["ahead"]
        ):  # a restart takes the new arcs also for the events of the window
            raise AssertionError(f"every {interval}: {match_counts}")


def _run_with_changes(stream: pa.Table, interval: int, push: int, way: str) -> Iterator[tuple[float, int]]:
    """Yield for each push the processor time, with the changes before it, and the matches."""
    rng, ticks = np.random.default_rng(2), [*TICKS]
    arcs = {(position, tick): arc_of(position, tick) for position in range(len(ticks)) for tick in "+-"}
    options: dict[str, Any] = {"type": None, "dynamic": way != "restart"}
    automaton_options: dict[str, Any] = {"final": str(len(ticks)), "keys": "symbol", "window": f"{ACTIVE} events"}
    matcher = acep.Matcher(acep.Automaton(arcs_of(ticks), **automaton_options), **options)
    for start in range(0, len(stream), push):
        started = time.process_time()
        for since in range(start, min(start + push, len(stream)), interval):
            position = int(rng.integers(len(ticks)))
            if not since or way == "none":
                continue
            old = ticks[position]
            ticks[position] = "-" if old == "+" else "+"
            if way == "restart":
                # Matches of these events alone were given before, so they do not count.
                matcher = acep.Matcher(acep.Automaton(arcs_of(ticks), **automaton_options), **options)
                matcher.push(stream.slice(max(0, start - ACTIVE), min(start, ACTIVE)))
            else:
                ahead = since if way == "ahead" else None
                matcher.change(add=[arcs[position, ticks[position]]], remove=[arcs[position, old]], since=ahead)
        matches = len(matcher.push(stream.slice(start, push)))
        yield time.process_time() - started, matches


def measure_ignored(rows: int) -> Iterator[Ignoring]:
    """Measure Q1 for one V-shape with a share of irrelevant events, in both ways in alternation."""
    automaton = query("q1", 500)
    arcs = [acep.arc(a.source, a.target, _one_shape(a), dict(_transfers_of(a)), bind=a.var) for a in automaton.arcs]
    passing = {
        way: [acep.arc(state, state, "e.change = 0", ignorable=way == "ignorable") for state in ("falling", "rising")]
        for way in ("ignorable", "bound")
    }
    for share in SHARES:
        stream = events(rows, 0.5, share)
        times: dict[str, list[float]] = {way: [] for way in passing}
        counts_by_way: dict[str, tuple[int, int]] = {}
        for _ in range(REPEATS):
            for way, passing_arcs in passing.items():
                matcher = acep.Matcher(replace(automaton, arcs=[*arcs, *passing_arcs]), type=None)
                spent, *counts = _time_pushes(matcher, stream, PUSH)
                times[way].append(spent)
                counts_by_way[way] = counts[0], counts[1]
        for way, (n_matches, n_partial_matches) in counts_by_way.items():
            yield Ignoring(share, way, rows / median(times[way]), n_partial_matches / rows, n_matches)


def _one_shape(arc: GraphArc) -> str | None:
    """The fence of an arc of Q1 for one V-shape."""
    return None if arc.fence is None else expression_text(arc.fence).replace("= 2", "= 1").replace("< 2", "< 1")


def _transfers_of(arc: GraphArc) -> Iterator[tuple[str, str]]:
    return ((name, expression_text(value)) for name, value in arc.transfer)


WORDS = f"""Written by `python -m experiments.automata`; [how to write automata](../howto/automata.md). Query Q1 looks
for a fall of ${DROP[1:]} and two V-shapes, Q2 for V-shapes until the price is regained, Q3 for eight rises and falls
(`examples/automata`); prices rise with a probability of .5 (Q2: .7) by a normal amount. Rates are events a second of
one core, the median of {REPEATS} runs, with one key, in pushes of {PUSH:,}. The paper gives 200,000 (Q3: 350,000) on a
machine of 2010.

![Automata](automata.svg)"""
BY_WINDOW = """## By the window

The automaton; one of two states whose registers hold the state (the paper's CAN); and joins that feed back (its IPM,
`experiments/joins.py`): all partial matches of a push that are equally long are joined with arcs and events at once, in
numpy. All three find the same matches."""
BY_PUSH = """## By the size of a push

The automaton with a window of 1,000 events. Each push costs some work of its own, whatever its size."""
BY_INTERVAL = f"""## By the interval of changes

Q3 with a window of {ACTIVE}: an arc is replaced after so many events, which are one push. Without a change; with
`Matcher.change`; with a new `Matcher` that is fed the window again. Then in pushes of {CHANGED_PUSH:,}: without a
change, and with the changes inside a push declared before it (`since=`)."""
BY_SHARE = """## By the share of irrelevant events

Q1 for one V-shape and a window of 500. Irrelevant events pass by an ignorable arc, or an ordinary arc binds them: the
rates, and the partial matches made for each event."""


def write_body(
    window_rows: Sequence[Window],
    push_rows: Sequence[Pushing],
    change_rows: Sequence[Changing],
    ignore_rows: Sequence[Ignoring],
) -> str:
    """The tables of the page."""
    by_way = [window_rows[start : start + len(WAYS)] for start in range(0, len(window_rows), len(WAYS))]
    first = [
        (group[0].query, f"{group[0].window:,}", *(f"{window.rate:,.0f}" for window in group), f"{group[0].matches:,}")
        for group in by_way
    ]
    sizes = [
        (name, *(f"{row.rate:,.0f}" for row in sorted(push_rows, key=lambda row: row.push) if row.query == name))
        for name in RISES
    ]
    groups = [change_rows[start : start + 5] for start in range(0, len(change_rows), 5)]
    second = [(f"{group[0].push:,}", *(f"{row.rate:,.0f}" for row in group)) for group in groups]
    third = [
        (
            f"{ignorable.share:g}",
            f"{ignorable.rate:,.0f}",
            f"{bound.rate:,.0f}",
            f"{ignorable.made:.2f}",
            f"{bound.made:.2f}",
        )
        for ignorable, bound in zip(ignore_rows[::2], ignore_rows[1::2], strict=True)
    ]
    parts = (
        BY_WINDOW,
        table(("query", "window", *WAYS.values(), "matches"), first),
        BY_PUSH,
        table(("query", *(f"{push:,}" for push in PUSHES)), sizes),
        BY_INTERVAL,
        table(("events", "no change", "change", "restart", "large, no change", "large, ahead"), second),
        BY_SHARE,
        table(("irrelevant", "ignorable", "bound", "made", "made, bound"), third),
    )
    return "\n\n".join(parts)


def draw_picture(
    window_rows: Sequence[Window], change_rows: Sequence[Changing], ignore_rows: Sequence[Ignoring]
) -> str:
    """The same as charts, in millions of events a second."""
    by_window = {
        f"{name}, {label}": [(row.window, row.rate / 1e6) for row in window_rows if (row.query, row.way) == (name, way)]
        for name in RISES
        for way, label in WAYS.items()
    }
    by_interval = {
        way: [
            (np.log10(row.interval or row.push), row.rate / 1e6)
            for row in change_rows
            if row.way == way and row.push < CHANGED_PUSH
        ]
        for way in ("none", "change", "restart")
    }
    by_interval["ahead"] = [(np.log10(row.interval), row.rate / 1e6) for row in change_rows if row.way == "ahead"]
    by_share = {
        way: [(row.share, row.rate / 1e6) for row in ignore_rows if row.way == way] for way in ("ignorable", "bound")
    }
    panels = [
        Panel("million events a second", by_window, "window", high=None),
        Panel("changes", by_interval, "log10 of the interval", high=None),
        Panel("irrelevant events", by_share, "share", high=None),
    ]
    return chart(panels, 3)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.automata", description=(__doc__ or "")[:23])
    parser.add_argument("--rows", type=int, default=400_000, help="events of a stream")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the page, its picture and its rows")
    options = parser.parse_args(arguments)
    pin()
    window_rows, push_rows = measure_windows(options.rows), measure_pushes(options.rows)
    change_rows, ignore_rows = list(measure_changes(options.rows)), list(measure_ignored(options.rows))
    options.output.mkdir(parents=True, exist_ok=True)
    rows: dict[str, Sequence[Any]] = {
        "window": window_rows,
        "pushes": push_rows,
        "changes": change_rows,
        "ignored": ignore_rows,
    }
    write_csv(
        options.output / "automata.csv",
        {name: [asdict(row) for row in table_rows] for name, table_rows in rows.items()},
    )
    (options.output / "automata.svg").write_text(draw_picture(window_rows, change_rows, ignore_rows), encoding="utf-8")
    contents: dict[str, Any] = {
        "words": WORDS,
        "machine": describe_machine(),
        "body": write_body(window_rows, push_rows, change_rows, ignore_rows),
    }
    print(write_page(options.output, "automata", title="Hand-written automata", **contents))
    return 0


if __name__ == "__main__":
    sys.exit(main())

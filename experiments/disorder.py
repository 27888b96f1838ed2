"""Late events: ``python -m experiments.disorder [--rows N] [--output FOLDER]``.

Measures the throughput and the events that are kept against the share of late events, and the size and latency of the
output against the speculation, all in one process and on one core (2010 paper, section 6.2).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

import acep
from experiments.charts import Panel, chart
from experiments.machine import describe_machine, pin
from experiments.results import RESULTS, table, write_csv, write_page

__all__ = ["Output", "Rate", "delay_events", "events", "main", "measure_outputs", "measure_rates", "write_body"]

SEQ = "PATTERN SEQ(A a, B b, C c) WHERE partition_contiguity(a, b, c) { [k] } WITHIN %d"
RISE = (
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) "
    "{ [k] AND a[1].x > 0.9 AND a[i].x > a[i-1].x } WITHIN %d"
)
QUERIES = {"seq": SEQ, "rise": RISE}
WINDOWS = {1: 500, 10_000: 100_000}  # by number of keys: some ten events of a key, or 500 of the only one
SHARES = (0.0, 0.01, 0.05, 0.2)
BY = 1_000  # positions that a late event is late at most
SPECULATIONS = (0, 125, 250, 500, 750, "inf")
PUSH = 1_000
REPEATS = 5
BLOCKS = "SEQ(A a, ~D d, B b) WHERE skip_till_next_match(a, b) { [k] }"


@dataclass(frozen=True)
class Rate:
    """The processor time of a push of a stream with a ``share`` of late events, against that of the stream in order
    without ``lateness``: the ``ratio`` of rates. ``kept``: the most events kept. ``taken_back``: retractions for each
    match of the result."""

    query: str
    keys: int
    share: float
    ratio: float
    kept: int
    taken_back: float


@dataclass(frozen=True)
class Output:
    """The output with a ``speculation``: ``rows`` and retractions for each match of the result, and the mean time from
    the last event of a match to the greatest time seen when it was given, in events."""

    speculation: str
    rows: float
    taken_back: float
    latency: float


def events(rows: int, keys: int, seed: int = 1) -> pa.Table:
    """Events of five types, one for each tick, with a key and a number."""
    rng = np.random.default_rng(seed)
    kinds = pa.array(np.array(list("ABCDE"))[rng.integers(0, 5, rows)])
    columns = {"ts": np.arange(rows), "type": kinds, "k": rng.integers(0, keys, rows), "x": rng.random(rows)}
    return pa.table(columns)


def delay_events(stream: pa.Table, share: float, seed: int = 2) -> pa.Table:
    """Bring a share of the events late by 1 to :data:`BY` positions."""
    rng = np.random.default_rng(seed)
    moved = np.arange(len(stream)) + np.where(rng.random(len(stream)) < share, rng.integers(1, BY + 1, len(stream)), 0)
    return stream.take(pa.array(np.argsort(moved, kind="stable"))).combine_chunks()


def cut_pushes(stream: pa.Table) -> list[pa.Table]:
    """Cut a stream into pushes."""
    return [stream.slice(start, PUSH) for start in range(0, len(stream), PUSH)]


def measure_rates(rows: int) -> Iterator[Rate]:
    """Measure each query with few and many keys; runs of one comparison alternate."""
    for keys, window in WINDOWS.items():
        stream = events(rows, keys)
        for name, text in QUERIES.items():
            query, matchers = acep.parse(text % window), dict[float, acep.Matcher[Any]]()
            times: dict[float | None, list[float]] = {}
            for _ in range(REPEATS):
                times.setdefault(None, []).append(_time_pushes(acep.Matcher(query), stream)[0])
                for share in SHARES:
                    matcher = acep.Matcher(query, lateness=2 * BY, speculation="inf")
                    spent, peak_kept = _time_pushes(matcher, delay_events(stream, share))
                    times.setdefault(share, []).append(spent)
                    matchers[share] = matcher
            for share in SHARES:
                ratio = median(plain / spent for plain, spent in zip(times[None], times[share], strict=True))
                report = matchers[share].report
                taken_back = report.retracted / max(report.matches or 0, 1)
                yield Rate(name, keys, share, ratio, peak_kept, taken_back)


def _time_pushes(matcher: Any, stream: pa.Table) -> tuple[float, int]:
    """Return the processor time of all pushes but the first tenth, and the most events kept."""
    peak_kept, parts = 0, cut_pushes(stream)
    started = time.process_time()
    for number, part in enumerate(parts):
        if number == len(parts) // 10:
            started = time.process_time()
        matcher.push(part)
        peak_kept = max(peak_kept, matcher.held or 0)
    return time.process_time() - started, peak_kept


def measure_outputs(rows: int) -> Iterator[Output]:
    """Push one event of twenty late, with each speculation."""
    query = acep.parse(f"PATTERN {BLOCKS} WITHIN 2000")
    stream = delay_events(events(rows, 50), 0.05)
    for speculation in SPECULATIONS:
        matcher = acep.Matcher(query, lateness=BY, speculation=speculation)
        n_rows = taken_back = waited = greatest = 0
        for start in range(0, len(stream), 50):
            part = stream.slice(start, 50)
            greatest = max(greatest, int(part["ts"].to_numpy().max()))
            for match in matcher.push(part):
                n_rows, taken_back = n_rows + 1, taken_back + (match.op < 0)
                waited += greatest - match.end if match.op > 0 else 0
        n_final = n_rows - 2 * taken_back
        yield Output(str(speculation), n_rows / n_final, taken_back / n_final, waited / (n_rows - taken_back))


WORDS = f"""Written by `python -m experiments.disorder`; [how it works](../internals/disorder.md). One event comes for
each tick, of five types, in pushes of {PUSH:,}; a late one comes 1 to {BY:,} positions late. Queries: `{SEQ % 500}` and
`{RISE % 500}`, with one key, and with 10,000 keys and a window of 100,000. A ratio is the median over {REPEATS} runs in
alternation.

![Late events](disorder.svg)"""


def write_body(rate_rows: Sequence[Rate], output_rows: Sequence[Output]) -> str:
    """The tables of the page."""
    first = [
        (f"{row.query}, {row.keys:,}", f"{row.share:g}", f"{row.ratio:.2f}", f"{row.kept:,}", f"{row.taken_back:.3f}")
        for row in rate_rows
    ]
    second = [
        (row.speculation, f"{row.rows:.3f}", f"{row.taken_back:.3f}", f"{row.latency:,.0f}") for row in output_rows
    ]
    rate = (
        'The rate with `speculation="inf"` against that of a `Matcher` without `lateness` on the stream in order; the '
        "most events kept; retractions for each match."
    )
    output = (
        f"`{BLOCKS}` within 2,000 ticks, 50 keys, one event of twenty late. Rows of output and retractions for each "
        "match of the result, and the mean delay of a match in ticks."
    )
    parts = (
        f"## Against the share of late events\n\n{rate}",
        table(("query, keys", "late", "rate", "events kept", "taken back"), first),
        f"## Against the speculation\n\n{output}",
        table(("speculation", "rows", "taken back", "delay"), second),
    )
    return "\n\n".join(parts)


def draw_picture(rate_rows: Sequence[Rate], output_rows: Sequence[Output]) -> str:
    """The same as charts."""
    names = dict.fromkeys((row.query, row.keys) for row in rate_rows)
    series = {
        f"{query}, {keys:,}": [(row.share, row.ratio) for row in rate_rows if (row.query, row.keys) == (query, keys)]
        for query, keys in names
    }
    longest = max(row.latency for row in output_rows) or 1.0
    places = [(BY if row.speculation == "inf" else int(row.speculation), row) for row in output_rows]
    output = {
        "taken back for each match": [(x, row.taken_back) for x, row in places],
        "delay, of the longest": [(x, row.latency / longest) for x, row in places],
    }
    return chart([Panel("rate", series, "late", high=None), Panel("output", output, "speculation", high=None)], 2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.disorder", description=(__doc__ or "")[:12])
    parser.add_argument("--rows", type=int, default=300_000, help="events of a stream")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the page, its picture and its rows")
    options = parser.parse_args(arguments)
    pin()
    rate_rows = list(measure_rates(options.rows))
    output_rows = list(measure_outputs(min(options.rows, 100_000)))
    options.output.mkdir(parents=True, exist_ok=True)
    rows = {"late": [asdict(row) for row in rate_rows], "speculation": [asdict(row) for row in output_rows]}
    write_csv(options.output / "disorder.csv", rows)
    (options.output / "disorder.svg").write_text(draw_picture(rate_rows, output_rows), encoding="utf-8")
    contents: dict[str, Any] = {
        "words": WORDS,
        "machine": describe_machine(),
        "body": write_body(rate_rows, output_rows),
    }
    print(write_page(options.output, "disorder", title="Late events and revisions", **contents))
    return 0


if __name__ == "__main__":
    sys.exit(main())

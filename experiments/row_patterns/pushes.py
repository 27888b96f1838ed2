"""Measure streams: clauses by ``acep.Matcher``, by the rows of a push, the number of keys and the length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

import numpy as np
import pyarrow as pa

import acep

__all__ = ["CLAUSES", "KEYS", "PUSHES", "Pushed", "measure_pushes"]

PUSHES = {1: 1_000, 100: 20_000, 10_000: 250_000}
"""The smallest number of rows, which is doubled twice, for each number of rows in a push."""
KEYS = (1, 1_000)
CLAUSES = {
    "V-shape": "PARTITION BY k ORDER BY i MEASURES FIRST(i) AS s, LAST(D.i) AS b, LAST(U.i) AS e PATTERN (S D+ U+) "
    "DEFINE D AS price < PREV(price), U AS price > PREV(price)",
    "sessions": "PARTITION BY k ORDER BY i MEASURES count(*) AS n PATTERN (A B*) DEFINE B AS ts - PREV(ts) <= 10",
}


@dataclass(frozen=True)
class Pushed:
    """The least processor seconds of a clause over a stream of ``rows`` rows with so many keys, ``push`` rows in each
    push, and the rows out."""

    clause: str
    push: int
    keys: int
    rows: int
    size: int
    cpu: float


def _rows(n: int, keys: int) -> pa.Table:
    """Return rows whose keys take turns. One row in fifty of a key comes later than its session lasts."""
    draw, i = np.random.default_rng(1), np.arange(n)
    times = np.cumsum(np.where(draw.random(n // keys + 1) < 0.02, 100, 1))
    return pa.table({"i": i, "k": i % keys, "ts": times[i // keys], "price": draw.integers(0, 100, n)})


def _push_all(clause: str, pushes: list[pa.Table]) -> int:
    matcher = acep.Matcher(clause)
    size = sum(len(matcher.push(part)) for part in pushes)
    return size + len(matcher.finish())


def measure_pushes(clause: str, push: int, keys: int, scale: float = 1.0, repeats: int = 3) -> list[Pushed]:
    """Measure a clause at three lengths of the stream, by turns. Raises :class:`AssertionError` where a stream gives
    another number of rows than one batch."""
    shortest = max(int(PUSHES[push] * scale), 8)
    runs: dict[int, Callable[[], int]] = {}
    sizes: dict[int, int] = {}
    for n in (shortest, 2 * shortest, 4 * shortest):
        rows = _rows(n, keys)
        pushes = [rows.slice(start, push) for start in range(0, n, push)]
        runs[n] = lambda pushes=pushes: _push_all(CLAUSES[clause], pushes)  # type: ignore[misc]
        sizes[n] = len(acep.match_recognize(rows, CLAUSES[clause]))
    times: dict[int, list[float]] = {n: [] for n in runs}
    for _ in range(repeats):
        for n, run in runs.items():
            start = process_time()
            size = run()
            times[n].append(process_time() - start)
            assert size == sizes[n], (clause, push, keys, n, size, sizes[n])
    return [Pushed(clause, push, keys, n, sizes[n], min(each)) for n, each in times.items()]

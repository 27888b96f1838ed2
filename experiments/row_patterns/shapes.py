"""The shapes of MATCH_RECOGNIZE that are measured, and the same questions as window functions and expressions.

They are those of DuckDB's published benchmark of the clause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["FALL_AND_RISE", "SHAPES", "Shape"]

Columns = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """A clause over generated rows. ``columns`` makes them for a number of rows; ``rows`` is the smallest number, which
    is doubled twice. ``expression``: the same question for polars, ``sql``: as window functions over the rows ``t``;
    both give as many rows out."""

    name: str
    rows: int
    clause: str
    columns: Callable[[int], Columns]
    expression: Callable[[Any, Any], Any] | None = None
    sql: str = ""


def _scramble(i: Any) -> Any:
    return i * 2654435761 % 1000003


def _steps(n: int) -> Columns:
    return {"i": np.arange(n), "price": np.cumsum(np.random.default_rng(1).integers(-3, 4, n))}


def _visits(n: int) -> Columns:
    i = np.arange(n)
    return {"visitor": i // 1000, "seq": i, "ts": i * 10 + (i // 50) * 1000}


def _clicks(n: int) -> Columns:
    i = np.arange(n)
    actions = pa.array(["browse", "select", "checkout", "idle"])
    return {"visitor": i // 10, "seq": i, "action": actions.take(pa.array(i % 4))}


def _no_refund(n: int) -> Columns:
    i = np.arange(n)
    return {"i": i, "v": (i % 3000) // 1000}


def _crimes(n: int) -> Columns:
    draw = np.random.default_rng(1)
    names = pa.array(["ROBBERY", "BATTERY", "MOTOR VEHICLE THEFT", "THEFT", "NARCOTICS", "ASSAULT", "OTHER"])
    kinds = draw.choice(7, n, p=[0.03, 0.18, 0.06, 0.22, 0.1, 0.07, 0.34])
    times = np.cumsum(draw.exponential(110, n)).astype(np.int64) * 1_000_000
    return {
        "id": np.arange(n), "at": pa.array(times, pa.timestamp("us")), "kind": names.take(pa.array(kinds)),
        "lat": 41.65 + 0.37 * draw.random(n), "lon": -87.8 + 0.27 * draw.random(n),
    }  # fmt: skip


def _sessions_of_polars(pl: Any, frame: Any) -> Any:
    gap = pl.col("ts") - pl.col("ts").shift(1).over("visitor")
    begins = (gap.is_null() | (gap > 100)).cum_sum().alias("session")
    return frame.with_columns(begins).group_by("visitor", "session").agg(pl.len())


def _pairs_of_polars(pl: Any, frame: Any) -> Any:
    return frame.filter((pl.col("v") == 0) & (pl.col("v").shift(-1) == 1)).select("i")


def _pairs_of_partitions_of_polars(pl: Any, frame: Any) -> Any:
    following = pl.col("v").shift(-1).over("p")
    return frame.filter((pl.col("v") == 0) & (following == 1)).select("p", "i")


def _funnels_of_polars(pl: Any, frame: Any) -> Any:
    second, third = (pl.col("action").shift(-steps).over("visitor") for steps in (1, 2))
    steps = (pl.col("action") == "browse") & (second == "select") & (third == "checkout")
    return frame.filter(steps).select("visitor", "seq")


def _ranges_of_polars(pl: Any, frame: Any) -> Any:
    ordered = frame.sort("s", "e")
    before = pl.col("e").cum_max().shift(1)
    begins = (before.is_null() | (pl.col("s") > before)).cum_sum().alias("range")
    ranges = ordered.with_columns(begins).group_by("range")
    return ranges.agg(pl.col("s").first(), pl.col("e").max(), pl.len())


PAIRS_SQL = "SELECT i FROM (SELECT i, v, lead(v) OVER (ORDER BY i) AS w FROM t) AS u WHERE v = 0 AND w = 1"
PAIRS_OF_PARTITIONS_SQL = """SELECT p, i
FROM (SELECT p, i, v, lead(v) OVER (PARTITION BY p ORDER BY i) AS w FROM t) AS u
WHERE v = 0 AND w = 1"""
SESSIONS_SQL = """SELECT visitor, session, count(*) AS n FROM (
  SELECT visitor, sum(new) OVER (PARTITION BY visitor ORDER BY seq) AS session FROM (
    SELECT visitor, seq, CASE WHEN ts - lag(ts) OVER (PARTITION BY visitor ORDER BY seq) <= 100 THEN 0 ELSE 1 END AS new
    FROM t) AS u) AS w
GROUP BY visitor, session"""
FUNNELS_SQL = """SELECT visitor, seq FROM (
  SELECT visitor, seq, action, lead(action) OVER (PARTITION BY visitor ORDER BY seq) AS second,
    lead(action, 2) OVER (PARTITION BY visitor ORDER BY seq) AS third FROM t) AS u
WHERE action = 'browse' AND second = 'select' AND third = 'checkout'"""
RANGES_SQL = """SELECT min(s) AS a, max(e) AS b, count(*) AS n FROM (
  SELECT s, e, sum(new) OVER (ORDER BY s, e ROWS UNBOUNDED PRECEDING) AS merged FROM (
    SELECT s, e, CASE WHEN s <= max(e) OVER (ORDER BY s, e ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
      THEN 0 ELSE 1 END AS new FROM t) AS u) AS w
GROUP BY merged"""
FALL_AND_RISE = """ORDER BY row_time MEASURES S.id AS s, LAST(D.id) AS b, LAST(U.id) AS e
ONE ROW PER MATCH AFTER MATCH SKIP TO FIRST E PATTERN (S D+ U+ E)
DEFINE D AS (LAST(D.price, 1) IS NULL AND D.price < S.price) OR D.price < LAST(D.price, 1),
  U AS (LAST(U.price, 1) IS NULL AND U.price > LAST(D.price)) OR U.price > LAST(U.price, 1),
  E AS E.price <= LAST(U.price)"""
"""The V-shape for Flink SQL, which has no PREV, and no greedy last variable."""

NEAR = "lon BETWEEN R.lon - 0.05 AND R.lon + 0.05 AND lat BETWEEN R.lat - 0.02 AND R.lat + 0.02"
SHAPES = (
    Shape("scan", 500_000, "ORDER BY i MEASURES A.i AS s PATTERN (A B) DEFINE A AS v = 0, B AS v = 1",
          lambda n: {"i": np.arange(n), "v": np.arange(n) % 5}, _pairs_of_polars, PAIRS_SQL),
    Shape("partitions of 100 rows", 500_000,
          "PARTITION BY p ORDER BY i MEASURES A.i AS s PATTERN (A B) DEFINE A AS v = 0, B AS v = 1",
          lambda n: {"i": np.arange(n), "p": np.arange(n) // 100, "v": np.arange(n) % 5},
          _pairs_of_partitions_of_polars, PAIRS_OF_PARTITIONS_SQL),
    Shape("quantifiers, all rows", 125_000,
          "ORDER BY i MEASURES CLASSIFIER() AS c ALL ROWS PER MATCH PATTERN (A+ B+ A+) "
          "DEFINE A AS v < 12, B AS v >= 12",
          lambda n: {"i": np.arange(n), "v": np.arange(n) % 17}),
    Shape("navigation", 50_000, "ORDER BY i MEASURES count(*) AS n PATTERN (A B+) DEFINE B AS v > LAST(A.v)",
          lambda n: {"i": np.arange(n), "v": np.arange(n) * 2654435761 % 1000}),
    Shape("((A+)+ B) without B", 500_000,
          "ORDER BY i MEASURES count(*) AS n PATTERN ((A+)+ B) DEFINE A AS v = 0, B AS v = 1",
          lambda n: {"i": np.arange(n), "v": np.zeros(n, np.int64)}),
    Shape("four steps without the last", 50_000,
          "ORDER BY i MEASURES count(*) AS n PATTERN (B+ S+ C+ R) "
          "DEFINE B AS v = 0, S AS v = 1, C AS v = 2, R AS v = 3",
          _no_refund),
    Shape("sessions", 250_000,
          "PARTITION BY visitor ORDER BY seq MEASURES count(*) AS n PATTERN (A B*) DEFINE B AS ts - PREV(ts) <= 100",
          _visits, _sessions_of_polars, SESSIONS_SQL),
    Shape("funnel", 250_000, "PARTITION BY visitor ORDER BY seq MEASURES FIRST(seq) AS s PATTERN (B S C) DEFINE "
          "B AS action = 'browse', S AS action = 'select', C AS action = 'checkout'",
          _clicks, _funnels_of_polars, FUNNELS_SQL),
    Shape("V-shape", 250_000, "ORDER BY i MEASURES FIRST(i) AS s, LAST(D.i) AS b, LAST(U.i) AS e PATTERN (S D+ U+) "
          "DEFINE D AS price < PREV(price), U AS price > PREV(price)", _steps),
    Shape("above the mean so far", 250_000,
          "ORDER BY i MEASURES count(*) AS n PATTERN (A+) DEFINE A AS v >= avg(A.v)",
          lambda n: {"i": np.arange(n), "v": _scramble(np.arange(n)) % 100}),
    Shape("merged ranges", 250_000,
          "ORDER BY s, e MEASURES FIRST(s) AS a, max(e) AS b, count(*) AS n PATTERN (J* L) "
          "DEFINE J AS NEXT(s) <= max(e)",
          lambda n: {"s": np.arange(n) * 2 + _scramble(np.arange(n)) % 3,
                     "e": np.arange(n) * 2 + _scramble(np.arange(n)) % 3 + 1 + _scramble(np.arange(n)) % 4},
          _ranges_of_polars, RANGES_SQL),
    Shape("crime sequence", 50_000, "ORDER BY at MEASURES R.id AS r, B.id AS b, M.id AS m AFTER MATCH SKIP TO NEXT ROW "
          f"PATTERN (R Z* B Z* M) DEFINE R AS kind = 'ROBBERY', B AS kind = 'BATTERY' AND {NEAR}, "
          f"M AS kind = 'MOTOR VEHICLE THEFT' AND {NEAR} AND at - R.at <= INTERVAL '30' MINUTE", _crimes),
)  # fmt: skip

"""What a bucket has done since the stream began: part of its state, and told to Spark, which adds it up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep.engine.found import Counts
from acep.learning.recall import Tally

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["MOST", "TOLD", "Totals", "counts_in", "observed"]

MOST = 2**63 - 1
COUNTS = ("matches", "nodes", "deciding", "shed", "touches")  # of a query
TALLIES = ("points", "bundles")
SUMS = tuple(one.name for one in fields(Tally))
NUMBERS = [f"{tally}_{name}" for tally in TALLIES for name in SUMS]

# What a bucket tells; the last three have so many numbers, or one text, for each query.
LONGS = ("events", "late", "memory", "allowance", "held", "state", "reference")
LISTS = {"counts": pa.list_(pa.int64()), "tallies": pa.list_(pa.float64()), "unknown": pa.list_(pa.string())}
TOLD = pa.schema({name: pa.int64() for name in LONGS} | LISTS)


@dataclass
class Totals:
    """Since the stream began: events taken in, late ones refused, the most bytes of ``memory`` that were held where it
    is bounded, and the ``allowance`` of touches, 0 without a budget; of each of the job's ``queries`` its work, what
    was shed, what is known of its recall, and its matches (at most :data:`MOST`; where match points are asked for and
    no match is made, these)."""

    events: int = 0
    late: int = 0
    memory: int = 0
    allowance: float = 0.0
    queries: list[Counts] = field(default_factory=list)

    def sum(self, name: str) -> int:
        """Of all queries, one of :data:`COUNTS`."""
        return sum(getattr(one, name) for one in self.queries)

    def told(self, held: int, state: int, reference: bool) -> dict[str, Any]:
        """The values of :data:`TOLD`: rows ``held``, ``state`` in bytes, whether the ``reference`` engine runs."""
        numbers = [
            self.events,
            self.late,
            self.memory,
            round(min(self.allowance, MOST / 2)),
            held,
            state,
            int(reference),
        ]
        counts = [getattr(one, name) for one in self.queries for name in COUNTS]
        tallies = [getattr(_tally(one, t), name) for one in self.queries for t in TALLIES for name in SUMS]
        return dict(zip(TOLD.names, [*numbers, counts, tallies, [one.unknown for one in self.queries]], strict=True))

    def dump(self) -> dict[str, Any]:
        """As JSON-like data."""
        queries = [
            {name: getattr(one, name) for name in (*COUNTS, "unknown")}
            | {name: _tally(one, name).to_arrays() for name in TALLIES}
            for one in self.queries
        ]
        return {name: getattr(self, name) for name in ("events", "late", "memory", "allowance")} | {"queries": queries}

    @classmethod
    def load(cls, data: Mapping[str, Any], queries: int) -> Totals:
        """The totals of so many queries. Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError` for what
        is none."""
        if len(data["queries"]) != queries:
            raise ValueError("totals of other queries")
        counts = [
            _counts({n: int(one[n]) for n in COUNTS}, [Tally.from_arrays(one[n]) for n in TALLIES], str(one["unknown"]))
            for one in data["queries"]
        ]
        return cls(int(data["events"]), int(data["late"]), int(data["memory"]), float(data["allowance"]), counts)


def _tally(counts: Counts, name: str) -> Tally:
    return getattr(counts, name) or Tally()


def _counts(numbers: Mapping[str, int], tallies: Sequence[Tally], unknown: str) -> Counts:
    counts = Counts(known=(tallies[0], tallies[1]), unknown=unknown)
    for name, number in numbers.items():
        setattr(counts, name, number)
    return counts


def observed(names: Sequence[str], told: str = "", *, bounded: bool) -> list[Column]:
    """What Spark adds up over the buckets of a job whose queries have these ``names``; ``told`` goes before the names
    of the columns of :data:`TOLD`. Where nothing is ``bounded`` there is no recall to estimate."""
    from pyspark.sql import functions as sf

    def total(column: Any, name: str) -> Column:
        return sf.coalesce(sf.sum(column), sf.lit(0)).alias(name)

    def at(column: str, place: int) -> Column:
        return sf.get(sf.col(told + column), sf.lit(place))

    out = [total(told + name, name) for name in LONGS]
    for i in range(len(names)):
        out += [total(at("counts", i * len(COUNTS) + k), f"{name}_{i}") for k, name in enumerate(COUNTS)]
        tallies = NUMBERS if bounded else []
        out += [total(at("tallies", i * len(NUMBERS) + k), f"{name}_{i}") for k, name in enumerate(tallies)]
        out.append(sf.max(at("unknown", i)).alias(f"unknown_{i}"))
    return [*out, sf.count(told + "events").alias("buckets"), sf.lit(json.dumps(names)).alias("names")]


def counts_in(row: Mapping[str, Any]) -> list[tuple[str, Counts]]:
    """Of each query, with its name, what :func:`observed` says of all buckets."""
    found = []
    for i, name in enumerate(json.loads(row["names"])):
        numbers = {count: int(row[f"{count}_{i}"]) for count in COUNTS}
        numbers |= {count: int(row[count]) for count in ("events", "late", "memory")}
        tallies = [Tally(*(float(row.get(f"{tally}_{part}_{i}", 0)) for part in SUMS)) for tally in TALLIES]
        found.append((name, _counts(numbers, tallies, row[f"unknown_{i}"] or "")))
    return found

"""Count what a bucket has done since the stream began, and sum the counts of all buckets on the driver."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from acep.learning.estimation.recall import Tally
from acep.matches.records import Counts

__all__ = ["COMPACT", "MAX_COUNT", "METRICS_COLUMN", "Totals", "counts_in", "metrics_in", "sum_metrics"]

MAX_COUNT = 2**63 - 1
COUNTS = ("matches", "nodes", "deciding", "shed", "skipped", "withheld", "touches", "retracted")  # for each query
TALLIES = ("points", "bundles")
SUMS = tuple(attribute.name for attribute in fields(Tally))

SINCE = ("events", "late", "ahead", "duplicates", "memory", "allowance")  # since the stream began
NOW = ("held", "state", "live", "reference")  # after a micro-batch
COMPACT = (",", ":")  # JSON separators: more than 8 KB reach the driver some 40 ms later
METRICS_COLUMN = "__told"  # column with the metrics of buckets, as JSON


@dataclass
class Totals:
    """Counts of a bucket since the stream began, part of its state: events accepted, ``late`` events and events too far
    ``ahead`` that were refused, rows left out as ``duplicates``, the greatest number of bytes of ``memory`` under a
    memory budget, and the ``allowance`` of transition evaluations (0 without a budget). Each of the job's ``queries``
    has its work, what was shed, the sums for its recall, and its matches (at most :data:`MAX_COUNT`; match points where
    only these are counted). ``newest_idle``: the newest time of events that did not travel to a bucket of the stream,
    as no query can use them, in ticks (``None``: there was none)."""

    events: int = 0
    late: int = 0
    ahead: int = 0
    duplicates: int = 0
    memory: int = 0
    allowance: float = 0.0
    queries: list[Counts] = field(default_factory=list)
    newest_idle: int | None = None

    def see_idle(self, tick: int | None) -> None:
        """Remember the newest time of events without a use."""
        self.newest_idle = max((t for t in (tick, self.newest_idle) if t is not None), default=None)

    def sum(self, name: str) -> int:
        """Sum one of :data:`COUNTS` over all queries."""
        return sum(getattr(counts, name) for counts in self.queries)

    def to_json(self, now: Mapping[str, Any]) -> str:
        """Return the totals as JSON, with current metrics (``now``): rows ``held``, the ``state`` in bytes, ``live``
        partial matches, whether the ``reference`` runtime runs, the ``watermark`` in milliseconds, and others."""
        since = {name: getattr(self, name) for name in SINCE} | {"allowance": round(min(self.allowance, MAX_COUNT / 2))}
        queries = [
            {name: getattr(counts, name) for name in COUNTS}
            | {tally: _sums(_tally(counts, tally)) for tally in TALLIES}
            | {"unknown": counts.unknown}
            for counts in self.queries
        ]
        return json.dumps(since | dict(now) | {"queries": queries}, separators=COMPACT)

    def dump(self) -> dict[str, Any]:
        """Return the totals as JSON-like data."""
        queries = [
            {name: getattr(counts, name) for name in (*COUNTS, "unknown")}
            | {name: _tally(counts, name).to_arrays() for name in TALLIES}
            for counts in self.queries
        ]
        newest = {} if self.newest_idle is None else {"newest_idle": self.newest_idle}
        return {name: getattr(self, name) for name in SINCE} | {"queries": queries} | newest

    @classmethod
    def load(cls, data: Mapping[str, Any], queries: int) -> Totals:
        """Read the data of :meth:`dump` for so many queries. Raises :class:`KeyError`, :class:`TypeError` or
        :class:`ValueError` for other data."""
        if len(data["queries"]) != queries:
            raise ValueError("totals of other queries")
        counts = []
        for stored in data["queries"]:
            numbers = {name: int(stored.get(name, 0)) for name in COUNTS}  # the first versions had fewer
            tallies = [Tally.from_arrays(stored[name]) for name in TALLIES]
            counts.append(_counts(numbers, tallies, str(stored["unknown"])))
        events, late, memory = (int(data[name]) for name in ("events", "late", "memory"))
        ahead, duplicates = (int(data.get(name, 0)) for name in ("ahead", "duplicates"))  # earlier versions had none
        newest = None if data.get("newest_idle") is None else int(data["newest_idle"])
        return cls(events, late, ahead, duplicates, memory, float(data["allowance"]), counts, newest)


def _sums(tally: Tally) -> list[float]:
    """Return the sums of a tally, or an empty list if they are all 0."""
    sums = [getattr(tally, name) for name in SUMS]
    return sums if any(sums) else []


def _tally(counts: Counts, name: str) -> Tally:
    return getattr(counts, name) or Tally()


def _counts(numbers: Mapping[str, int], tallies: Sequence[Tally], unknown: str) -> Counts:
    counts = Counts(tallies=(tallies[0], tallies[1]), unknown=unknown)
    for name, number in numbers.items():
        setattr(counts, name, number)
    return counts


def sum_metrics(row: Mapping[str, Any]) -> dict[str, int]:
    """Sum the metrics of all buckets in a row (``told``, a line each); return the sums with the number of ``buckets``
    and the greatest ``watermark``."""
    metrics = metrics_in(row)
    sums = {name: sum(bucket.get(name, 0) for bucket in metrics) for name in (*SINCE, *NOW)}
    return sums | {"buckets": len(metrics), "watermark": max((bucket["watermark"] for bucket in metrics), default=0)}


def counts_in(row: Mapping[str, Any]) -> list[tuple[str, Counts]]:
    """Return the name and the summed counts of each query over all buckets in a row with the ``names`` as JSON."""
    metrics, sums = metrics_in(row), sum_metrics(row)
    counts = []
    for i, name in enumerate(json.loads(row["names"])):
        parts = [bucket["queries"][i] for bucket in metrics]
        numbers = {count: sum(part.get(count, 0) for part in parts) for count in COUNTS}
        numbers |= {count: sums[count] for count in ("events", "late", "ahead", "duplicates", "memory")}
        tallies_by_kind = [[part[tally] for part in parts if part[tally]] for tally in TALLIES]
        tallies = [Tally(*map(math.fsum, zip(*stored_tallies, strict=True))) for stored_tallies in tallies_by_kind]
        counts.append((name, _counts(numbers, tallies, max((part["unknown"] for part in parts), default=""))))
    return counts


def metrics_in(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the metrics of each bucket in a row of Spark's observed metrics."""
    return [json.loads(line) for line in str(row["told"]).splitlines()]

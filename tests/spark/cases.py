"""Cases of the corpus, and random ones, cut into micro-batches: what both routes of a stream are tried on."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

import acep
from acep.streaming.job import Job
from tests.complaints import difference
from tests.corpus import Case, load_all
from tests.random_cases import Case as RandomCase
from tests.runner.streams import final
from tests.spark.by_hand import as_rows, numbered, rows_of, rows_that_differ, the_job

__all__ = ["GOOD", "Streamed", "complaint_of_stream", "of_corpus", "of_random", "shuffled_within", "split"]

GOOD = [case for case in load_all() if case.raises is None]
CASES_BY_NAME = {case.id: case for case in GOOD}


@dataclass(frozen=True)
class Streamed:
    """A ``job`` over micro-batches of a ``table``, none of whose events is late by a ``delay`` of so many ticks, and
    the ``exact`` rows of the result; ``rng`` goes on after what was drawn for it."""

    job: Job
    table: pa.Table
    batches: list[pa.Table]
    delay: int
    exact: list[dict[str, Any]]
    rng: random.Random

    @property
    def delay_ms(self) -> int:
        """The same on the clock of the watermark."""
        return -(-self.delay * self.job.tick_ms[0] // self.job.tick_ms[1])


def of_corpus(case: Case) -> Streamed:
    """A case of the corpus in the order of its events."""
    job, table, exact = _plan_of_corpus(case.id)
    rng = random.Random(case.id)
    order = sorted(range(table.num_rows), key=table.column("__order").to_pylist().__getitem__)
    return Streamed(job, table, rows_of(table, order, split(len(order), rng)), 0, exact, rng)


@cache
def _plan_of_corpus(name: str) -> tuple[Job, pa.Table, list[dict[str, Any]]]:
    """Return the job of a case of the corpus, its table, and the exact rows, for all tests that ask for them."""
    case = CASES_BY_NAME[name]
    query, options = (acep.regex if case.letters else acep.parse)(case.text, **case.query_options), case.stream_options
    table = numbered(case.table(), **options)
    named = {name: value for name, value in options.items() if name != "seq"}
    job = the_job(table, query, **{"buckets": 3} | named)
    return job, table, as_rows(acep.match(case.table(), query, **options))


def of_random(case: RandomCase, seed: int, output: str = "matches") -> Streamed:
    """A random case in disorder."""
    query, options = case.query(), case.stream
    if output == "matches":
        exact = as_rows(acep.match(case.table(), query, **options))
    elif output == "count":
        exact = [{"count": acep.match(case.table(), query, output="count", **options)}]
    else:
        exact = [final(one) for one in acep.match(case.table(), query, output=output, **options)]
        exact = [{name: value for name, value in row.items() if value or name != "key"} for row in exact]
    table = numbered(case.table(), **{name: value for name, value in options.items() if name != "unit"})
    named = {name: value for name, value in options.items() if name != "seq"}
    job = the_job(table, query, output=output, **named)
    rng = random.Random(seed)
    delay = rng.randint(1, 12)
    batches = rows_of(table, shuffled_within(table, job.schema.ts, delay, rng), split(table.num_rows, rng))
    return Streamed(job, table, batches, delay, exact, rng)


def complaint_of_stream(streamed: Streamed, rows: list[dict[str, Any]], totals: Mapping[str, int]) -> str:
    """Say how rows and totals of a run differ from the exact ones; of the totals only those that there are."""
    wanted = {"late": 0, "matches": len(streamed.exact)}
    checked = {name: totals[name] for name in wanted if name in totals}
    complaint = difference(checked, {name: wanted[name] for name in checked}, ("run", "exact"))
    complaint = complaint or rows_that_differ(rows, streamed.exact, ("run", "exact"))
    return f"{complaint}\ndelay {streamed.delay}" if complaint else ""


def shuffled_within(table: pa.Table, ts: str, delay: int, rng: random.Random) -> list[int]:
    """Rows in an order in which none comes ``delay`` ticks or more after a later one."""
    ticks = [int(t) for t in table.column(ts).cast(pa.int64()).to_pylist()]
    return sorted(range(len(ticks)), key=lambda row: ticks[row] + rng.uniform(0, delay))


def split(size: int, rng: random.Random) -> list[int]:
    """Sizes of micro-batches that so many rows fall into, without that of the last one."""
    sizes: list[int] = []
    while sum(sizes) < size:
        sizes.append(rng.randint(0, 1 + size // 3))
    return sizes[:-1]

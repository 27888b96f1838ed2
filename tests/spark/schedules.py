"""Schedules of runs and micro-batches, what is certain after each, and the ways in which a stream can be taken.

A schedule is a list of steps: a run, a micro-batch, or a row. Each way is a function that takes the micro-batches of
one run, in a process that has just begun, and returns the rows that the run gives.
"""

from __future__ import annotations

import ast
import random
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

import acep
from acep.streaming import live_buckets
from tests.complaints import table_of_rows
from tests.runner.streams import Stream, fast_disk
from tests.spark.by_hand import State, as_rows, stream, the_job
from tests.spark.by_hand_files import FileStream

__all__ = [
    "WAYS",
    "Run",
    "Step",
    "Truth",
    "certain_by_run",
    "net",
    "random_schedule",
    "runs_of",
    "table_of",
    "text_of",
    "way_of",
]

COLUMNS = pa.schema(
    {"ts": pa.int64(), "type": pa.string(), "k": pa.string(), "n": pa.int64(), "sent": pa.int64(), "op": pa.int64()}
)
WAYS = ("store", "files", "each", "driver", "follow")

Step = Literal["run", "micro-batch"] | Mapping[str, Any]
Run = list[pa.Table]


def table_of(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as a table. A column that a row has not is null, but ``op`` is 1, and it was ``sent`` as number ``n``."""
    return pa.Table.from_pylist([{"op": 1, "sent": row["n"]} | row for row in rows], COLUMNS)


def runs_of(schedule: Sequence[Step]) -> list[Run]:
    """The micro-batches of each run. Rows before the first one begin it."""
    runs: list[list[list[Mapping[str, Any]]]] = []
    for step in schedule:
        if step == "run":
            runs.append([])
            continue
        runs = runs or [[]]
        if isinstance(step, str):
            runs[-1].append([])
            continue
        if not runs[-1]:
            runs[-1].append([])
        runs[-1][-1].append(step)
    return [[table_of(rows) for rows in micro_batches] for micro_batches in runs]


def text_of(schedule: Sequence[Step]) -> str:
    """A schedule as text, a line a step."""
    rows = [step if isinstance(step, Mapping) else {"ts": step} for step in schedule]
    return table_of_rows(rows)


def random_schedule(rng: random.Random, delay: int, *, takes_back: bool = False) -> list[Step]:
    """A schedule of runs with none, one, two or many micro-batches. Keys fall silent; rows come in disorder, some of
    them too late; some have no key, no type, or a type that no pattern has, and some micro-batches have no rows. With
    ``takes_back`` some rows take back events that came before."""
    steps: list[Step] = []
    clock, number, events = 1_000, 0, list[dict[str, Any]]()
    for _ in range(rng.randint(3, 6)):
        steps.append("run")
        for _ in range(rng.choice([0, 1, 1, 1, 2, 5])):
            steps.append("micro-batch")
            clock += rng.choice([0, 1, delay, 3 * delay, 40 * delay])
            keys = rng.sample("pqrstuvw", rng.choice([1, 1, 2, 8]))
            for _ in range(rng.choice([0, 1, 1, 3, 12])):
                clock += rng.choice([0, 0, 1, 2, 5])
                ts = max(0, clock - rng.choice([0, 0, 0, rng.randint(0, delay), rng.randint(0, 4 * delay)]))
                row = {"ts": ts, "type": rng.choice("aabbcz"), "k": rng.choice(keys), "n": number}
                if takes_back and events and rng.random() < 0.2:
                    row = events.pop(rng.randrange(len(events))) | {"op": -1, "sent": number}
                else:
                    events.append(row)
                steps.append(row)
                number += 1
            if rng.random() < 0.3:
                beat = {"ts": clock, "type": rng.choice([None, "z", "a"]), "k": None, "n": number}
                steps.append(beat)
                number += 1
    return steps


@dataclass
class Truth:
    """What is certain of a stream: the matches that no later event within the allowed disorder can change.

    All events before the newest time so far less the ``delay`` are final; one that comes with a later micro-batch is
    not used. A match is certain once its events are final, and if the pattern ends with a negation, its window, too;
    ``waits`` is the length of that. Matches of one key end in the order in which they begin, as a match waits for those
    that end before it: its bundle depends on them.
    """

    query: Any
    delay: int
    waits: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    newest: int | None = None

    def push(self, table: pa.Table) -> None:
        """Take in a micro-batch."""
        bound = None if self.newest is None else self.newest - self.delay
        rows = table.to_pylist()
        self.rows += [row for row in rows if bound is None or row["ts"] < 0 or row["ts"] >= bound]
        self.newest = max((row["ts"] for row in rows), default=self.newest or 0)
        if bound is not None:
            self.newest = max(self.newest, bound + self.delay)

    def matches(self) -> list[dict[str, Any]]:
        """The matches that are certain now."""
        if self.newest is None:
            return []
        bound = self.newest - self.delay
        final = sorted((row for row in self.rows if row["ts"] < bound), key=lambda row: (row["ts"], row["sent"]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # events of some type may be yet to come
            rows = as_rows(acep.match(table_of(final), self.query, seq="sent", id="n"))
        return [row for row in rows if not self.waits or row["start"] + self.waits < bound]


@cache
def _certain_texts(query: Any, delay: int, waits: int, schedule: str) -> list[list[str]]:
    truth, texts = Truth(query, delay, waits), list[list[str]]()
    for micro_batches in runs_of(ast.literal_eval(schedule)):
        for table in micro_batches:
            truth.push(table)
        texts.append(net(truth.matches()))
    return texts


def certain_by_run(query: Any, delay: int, waits: int, schedule: Sequence[Step]) -> list[list[str]]:
    """The matches that are certain after each run of a schedule, as ``net`` gives them. All ways ask for the same."""
    return _certain_texts(query, delay, waits, repr([*schedule]))


def net(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows of a result less those that are taken back, by their keys and bindings."""
    texts: list[str] = []
    for row in rows:
        bindings = {variable: list(ids) for variable, ids in sorted(row["bindings"].items())}
        text = f"{(row.get('key') or {}).get('k')} {bindings}"
        if row.get("op", 1) > 0:
            texts.append(text)
        else:
            texts.remove(text)
    return sorted(texts)


def way_of(
    name: str, query: Any, folder: Path, delay: int, rng: random.Random, needs: str = "", **options: Any
) -> Callable[[Run], list[dict[str, Any]]]:
    """A way to take the runs of a stream. Events whose type is not among ``needs`` stay behind where they can ("": all
    are needed)."""
    if name == "follow":
        return _follow(query, folder, delay, **options)
    empty = COLUMNS.empty_table()
    job = the_job(empty, query, **{"seq": "sent", "id": "n", "buckets": rng.choice([1, 3, 8])} | options)
    if name == "store":
        states: dict[int, State] = {}

        def run_in_store(micro_batches: Run) -> list[dict[str, Any]]:
            live_buckets.forget_live()
            return stream(job, micro_batches, delay, end=False, rng=rng, states=states)[0]

        return run_in_store
    needed = (lambda row: row["type"] is not None and row["type"] in needs) if needs and name != "files" else None
    files = FileStream(job, folder, delay, partitions=rng.choice([1, 2, 8]), rng=rng, way=name, needed=needed)  # type: ignore[arg-type]

    def run_in_files(micro_batches: Run) -> list[dict[str, Any]]:
        live_buckets.forget_live()
        files.run = uuid.UUID(int=files.run.int + 1)
        return [row for table in micro_batches for row in files.push(table)]

    return run_in_files


def _follow(query: Any, folder: Path, delay: int, **options: Any) -> Callable[[Run], list[dict[str, Any]]]:
    """The way of ``acep.follow``: a file is a micro-batch."""
    followed = Stream(folder, query, **{"seq": "sent", "id": "n", "watermark": delay, "max_files": 1} | options)
    n_files = n_lines = 0

    def run(micro_batches: Run) -> list[dict[str, Any]]:
        nonlocal n_files, n_lines
        for table in micro_batches:
            followed.put(f"{n_files:04}.parquet", table)
            n_files += 1
        with fast_disk():
            followed.follow()
        rows = followed.lines()[n_lines:]
        n_lines += len(rows)
        return rows

    return run

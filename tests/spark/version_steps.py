"""A stream in buckets whose query is replaced on the way, as a list of steps: drawn, run, compared, printed.

Steps are rows, ``Version`` and ``PUSH``, which ends a micro-batch. Any of them may be left out, so that failing ones
can be shrunk.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa

from acep.streaming import live_buckets
from tests.complaints import difference, fail_if_wrong_on_rows, table_of_rows
from tests.random_automata import random_rows
from tests.random_versions import Chain, Versions, accepted, random_chain, told_of
from tests.spark.by_hand import stream, the_job
from tests.spark.by_hand_files import FileStream

__all__ = ["DELAY", "ROLES", "SCHEMA", "net_matches", "row_of", "try_versions"]

ROLES = {"seq": "came", "id": "id"}
DELAY = 4
FIRST = 1000  # the first time of a stream, greater than each delay
PUSH = "push"
SCHEMA = pa.schema(
    {"ts": pa.int64(), "type": pa.string(), "k": pa.int64(), "x": pa.int64(), "id": pa.int64(), "came": pa.int64()}
)

Row = dict[str, Any]


@dataclass(frozen=True)
class Version:
    """A version that comes with the next micro-batch in so many copies.

    It holds from the next time on, from ``after`` ticks later or from ``before`` ticks earlier.
    """

    chain: Chain
    copies: int
    after: int | None = None
    before: int | None = None


Step = Row | Version | str


@dataclass(frozen=True)
class Setting:
    """The first version of a query, the window of all of them, and the options of the stream."""

    seed: int
    first: Chain
    within: int
    options: dict[str, Any]

    def title(self) -> str:
        """Say what the steps do not."""
        return f"seed {self.seed}, {self.options}\nfirst: {text_of(self.first, self.within)}"

    def text_of_steps(self, steps: Sequence[Step]) -> str:
        """Print steps: rows as a table, with the other steps among them."""
        head, *cells = table_of_rows(step for step in steps if isinstance(step, dict)).split("\n")
        lines = iter(cells)
        return "\n".join([head, *(next(lines) if isinstance(step, dict) else self._line(step) for step in steps)])

    def _line(self, step: Version | str) -> str:
        if isinstance(step, str):
            return step
        since = "" if step.after is None else f" {step.after} later"
        since = since if step.before is None else f" {step.before} earlier"
        return f"{step.copies} x version{since}: {text_of(step.chain, self.within)}"


@dataclass
class Stream:
    """What the steps so far make: micro-batches, the texts that come with each, and the versions with their times."""

    setting: Setting
    batches: list[list[Row]] = field(default_factory=list)
    texts: list[list[str]] = field(default_factory=list)
    versions: Versions = field(init=False)
    newest: int | None = None
    number: int = 1
    rows_to_push: list[Row] = field(default_factory=list)
    texts_to_push: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.versions = [(0, self.setting.first)]

    def take(self, step: Step) -> None:
        """Take a step in."""
        if isinstance(step, dict):
            self.rows_to_push.append(step)
        elif isinstance(step, Version):
            self.replace(step)
        else:
            self.push()

    def replace(self, version: Version) -> None:
        """Let a version come; one that holds from an earlier time replaces those since then."""
        next_time = max(self.versions[-1][0], 0 if self.newest is None else self.newest + 1)
        since = None if version.after is None else next_time + version.after
        if version.before is not None and self.newest is not None:
            since = self.newest - version.before
            self.versions = [(begin, chain) for begin, chain in self.versions if begin < since]
        self.versions.append((next_time if since is None else since, version.chain))
        self.number += 1
        self.texts_to_push += [row_of(self.number, text_of(version.chain, self.setting.within), since)] * version.copies

    def push(self) -> None:
        """End a micro-batch."""
        if self.rows_to_push or self.texts_to_push:
            self.batches.append(self.rows_to_push)
            self.texts.append(self.texts_to_push)
            times = [row["ts"] for row in self.rows_to_push]
            self.newest = max(times if self.newest is None else [*times, self.newest], default=None)
            self.rows_to_push, self.texts_to_push = [], []

    def tables(self) -> list[pa.Table]:
        """Return the micro-batches."""
        tables = [pa.Table.from_pylist(rows, SCHEMA) for rows in self.batches]
        if "op" in self.setting.options:
            ops = [pa.array([1] * table.num_rows, pa.int8()) for table in tables]
            tables = [table.append_column("op", op) for table, op in zip(tables, ops, strict=True)]
        return tables

    def run(self, route: str, folder: Path) -> list[Row]:
        """Return the rows of the result, by a route of Spark."""
        tables, rng = self.tables(), Random(f"run {self.setting.seed}")
        schema = tables[0].schema if tables else SCHEMA
        text = text_of(self.setting.first, self.setting.within)
        job = the_job(schema.empty_table(), text, dynamic=True, **self.setting.options)
        live_buckets.forget_live()
        if route == "own":
            rows, _, _ = stream(job, tables, DELAY, rng=rng, versions=self.texts)
            return rows
        files = FileStream(job, Path(mkdtemp(dir=folder)), DELAY, rng=rng)
        batches = zip(tables, self.texts, strict=True)
        return [row for table, texts in batches for row in files.push(table, texts)] + files.end()


def text_of(chain: Chain, within: int) -> str:
    """Return the query of a chain in each partition by ``k``."""
    text = chain.text(within)
    if " WHERE " in text:
        return text.replace(" WHERE ", " WHERE [k] AND ")
    return text.replace(" WITHIN", " WHERE [k] WITHIN")


def row_of(number: int, text: str, since: int | None = None) -> str:
    """Return a version as a row of a stream."""
    text = text if since is None else f"-- since: {since}\n{text}"
    return json.dumps({"number": number, "text": text})


def matches_of_versions(versions: Versions, rows: list[Row], within: int) -> Counter[str]:
    """Return the matches that the versions accept in each partition."""
    matches = Counter[str]()
    for k in {row["k"] for row in rows}:
        partition = sorted((row for row in rows if row["k"] == k), key=lambda row: (row["ts"], row["came"]))
        matches += accepted(versions, partition, within)
    return matches


def net_matches(rows: list[Row]) -> Counter[str]:
    """Return how often each match was given and not taken back, by its bindings."""
    matches = Counter[str]()
    for row in rows:
        matches[told_of(dict(row["bindings"]), row["error"])] += row.get("op", 1)
    return +matches


def matches_kept_by_id(rows: list[Row]) -> Counter[str]:
    """Return the matches in a table that is kept by their ids, or all of them, where none is taken back."""
    if any("op" not in row for row in rows):
        return net_matches(rows)
    table = dict[Any, Row]()
    for row in rows:
        if row["op"] > 0:
            table[row["id"]] = row
        else:
            table.pop(row["id"], None)
    return net_matches([row | {"op": 1} for row in table.values()])


def draw(seed: int) -> tuple[Setting, list[Step]]:
    """Draw a stream of three partitions with disorder of up to 3 ticks, and versions on the way."""
    rng = Random(seed)
    within, chain, speculation = rng.choice((2, 4, 8)), random_chain(rng), rng.choice((0, 2, "inf"))
    rows = [row | {"k": k, "ts": row["ts"] + FIRST} for k in range(3) for row in random_rows(rng, 14)]
    rows.sort(key=lambda row: row["ts"] + rng.randrange(4))
    rows = [{name: row.get(name) for name in ("ts", "type", "k", "x")} for row in rows]
    rows = [row | {"id": number, "came": number} for number, row in enumerate(rows)]
    options: dict[str, Any] = {"speculation": speculation, "buckets": rng.choice((1, 3))} | ROLES
    options |= {"op": "op"} if rng.random() < 0.3 else {}
    setting, steps, at = Setting(seed, chain, within, options), list[Step](), 0
    while at < len(rows):
        if rng.random() < 0.5:
            chain = random_chain(rng, like=chain)
            after = rng.randrange(4) if rng.random() < 0.4 else None
            before = rng.randrange(DELAY + 1) if speculation and at and rng.random() < 0.5 else None
            steps.append(Version(chain, rng.choice((1, 2)), None if before is not None else after, before))
        batch = rows[at : at + rng.randrange(1, 12)]
        steps += [*batch, PUSH]
        at += len(batch)
    return setting, steps


def complaint_of(setting: Setting, route: str, folder: Path, seen: Counter[str], steps: Sequence[Step]) -> str:
    """Say how a route's matches differ from those that the versions accept, each in its time; count what occurred."""
    changing = Stream(setting)
    for step in [*steps, PUSH]:
        changing.take(step)
    rows = changing.run(route, folder)
    wanted = matches_of_versions(
        changing.versions, [row for batch in changing.batches for row in batch], setting.within
    )
    seen["a replaced query has matches"] += bool(wanted) and len(changing.versions) > 1
    seen["a version reaches back"] += any(isinstance(step, Version) and step.before is not None for step in steps)
    names = (route, "versions")
    return difference(net_matches(rows), wanted, names) or difference(matches_kept_by_id(rows), wanted, names)


def try_versions(route: str, seeds: range, folder: Path) -> Counter[str]:
    """Compare the streams of seeds with what their versions accept; return what occurred."""
    seen = Counter[str]()
    for seed in seeds:
        setting, steps = draw(seed)
        complaint = partial(complaint_of, setting, route, folder, seen)
        fail_if_wrong_on_rows(steps, setting.title(), complaint, setting.text_of_steps)
    return seen

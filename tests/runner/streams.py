"""Streams cut into files of a folder, and the results of a follower read back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

import acep
from acep.output.json_records import match_record
from acep.output.writing import write_table
from acep.streaming import live_buckets

__all__ = ["Stream", "fast_disk", "final", "lines_of", "put", "results", "the_same"]

FIRST = 1_700_000_000


def _leave_unsynced(_: int) -> None:
    """Stand for ``os.fsync``. A mock would keep a note of each call."""


@contextmanager
def fast_disk() -> Iterator[None]:
    """Be on a disk that need not be waited for."""
    with mock.patch("os.fsync", _leave_unsynced):
        yield


def put(folder: Path, name: str, rows: pa.Table | str) -> Path:
    """Move a file into a folder, whole; its time of modification is in the order of the calls."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{name}.tmp"
    if isinstance(rows, str):
        draft.write_text(rows, encoding="utf-8")
    elif name.endswith(".parquet"):
        pq.write_table(rows, draft)
    else:
        with draft.open("w", encoding="utf-8") as text:
            text.writelines(json.dumps(row) + "\n" for row in rows.to_pylist())
    at = FIRST + sum(1 for _ in folder.rglob("*"))
    os.utime(draft, (at, at))
    draft.replace(folder / name)
    return folder / name


class Stream:
    """A folder for events, one for the state and one for results, below ``root``, and a query that follows it."""

    def __init__(self, root: Path, query: Any, **options: Any) -> None:
        self.events, self.state, self.found = root / "events", root / "state", root / "found"
        self.events.mkdir(parents=True, exist_ok=True)
        self.query, self.options = query, options
        self.told: list[Any] = []

    def follow(self, **more: Any) -> acep.Followed:
        """Take all files that are there, as a process would that has just begun."""
        live_buckets.forget_live()
        options = {"once": True, "tell": self.told.append} | self.options | more
        return acep.follow(self.events, self.query, state=self.state, into=self.found, **options)

    def put(self, name: str, rows: pa.Table | str) -> Path:
        """Move a file of events into the folder."""
        return put(self.events, name, rows)

    def lines(self) -> list[dict[str, Any]]:
        """All results, in the order of the micro-batches."""
        return results(self.found)


def results(folder: Path) -> list[dict[str, Any]]:
    """The rows of all files of results, as JSON has them."""
    out = []
    for file in sorted(folder.iterdir()):
        assert not file.name.startswith("."), "a draft was left"
        if file.suffix == ".parquet":
            text = file.with_suffix(".jsonl-again")
            with text.open("w", encoding="utf-8") as stream:
                write_table(pq.read_table(file), stream, "jsonl")
            out += [json.loads(line) for line in text.read_text(encoding="utf-8").splitlines()]
            text.unlink()
        else:
            out += [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return out


def lines_of(matches: Iterable[Any]) -> list[dict[str, Any]]:
    """Matches of one process as JSON has them."""
    return [json.loads(json.dumps(match_record(match))) for match in matches]


def the_same(found: Sequence[dict[str, Any]], exact: Sequence[dict[str, Any]]) -> bool:
    """Whether both hold the same rows, in whatever order."""
    one, other = (sorted(json.dumps(row, sort_keys=True) for row in rows) for rows in (found, exact))
    return one == other


def final(one: Any) -> dict[str, Any]:
    """The fields of a match point or bundle of matches that are not taken back."""
    return {name: value for name, value in vars(one).items() if name != "change"}

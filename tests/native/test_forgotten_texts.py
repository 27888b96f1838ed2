"""What a stream of ever new texts leaves behind: over each OUTPUT, window and kind of ids, the texts, ids and keys that
a session keeps do not become more, and no match lacks its texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.native import codes, id_dictionary
from acep.native.session import NativeSession
from acep.ordered.ordered_stream import OrderedStreamExecutor
from tests.thinned import thinned

pytest.importorskip("acep.native._native")

OUTPUTS = ("ALL", "NON OVERLAP", "LONGEST NON OVERLAP", "EARLIEST MAXIMAL")
WINDOWS = ("WITHIN 40", "WITHIN 3 EVENTS", "WITHIN 40 EVENTS")
IDS = ("none", "integer", "text")
FEW = 200  # texts and ids beyond which a test releases unused ones, instead of 10,000
ROWS = 16_000
STEP = 2_000
BLOCK = 256  # rows between two looks at idle partitions

QUERIES = {
    "by key": "SEQ(a p, b q) WHERE skip_till_any_match(p, q) { [k] } @ RETURN p.name AS first, q.name AS last",
    "tied by a text": "SEQ(a p, b q) WHERE NOT q.k != p.k @ RETURN p.name AS first, q.name AS last",
    "with a negation": "SEQ(a p, ~d n, b q) WHERE [k] AND n.name = p.name @ RETURN p.name AS first, q.name AS last",
    "in a series": "(a | b)+ p[] WHERE partition_contiguity(p[]) { [k] } @ RETURN p[1].name AS first, "
    "p[p.LEN].name AS last",
    "chosen late": "SEQ(a p, b q, ~e n) WHERE [k] @ RETURN p.name AS first, q.name AS last",
}
"""With the window in place of ``@``. A key has four events: a, b, c and d."""


def rows(at: int, size: int, ids: str) -> pa.Table:
    """Events ``at`` and the following ones, of which each four have a key that never comes again."""
    numbers = np.arange(at, at + size)
    columns = {
        "ts": numbers,
        "type": np.array(list("abcd"))[numbers % 4],
        "k": [f"key {number // 4}" for number in numbers],
        "name": [f"name {number // 2}" for number in numbers],
    }
    if ids != "none":
        columns["id"] = numbers if ids == "integer" else [f"event {number}" for number in numbers]
    return pa.table(columns)


@dataclass(frozen=True)
class Kept:
    """How many texts, text ids and partition keys a session holds, and the bytes of its engines."""

    texts: int
    ids: int
    keys: int
    bytes: int

    @classmethod
    def of(cls, session: NativeSession) -> Kept:
        tables = range(len(session.key_tables))
        keys = sum(len(session._session.numbers(table)) for table in tables)
        return cls(len(session._codes), len(session._encoder.id_texts), keys, session.bytes)

    @classmethod
    def of_ordered(cls, executor: Any) -> Kept:
        """Return the same of the events that are kept where chosen matches are found in their order."""
        assert isinstance(executor, OrderedStreamExecutor)
        chunks = executor.chunks.chunks
        columns = [column for chunk in chunks for column in (chunk.batch.types, *chunk.batch.columns.values())]
        texts = sum(len(column.texts or ()) for column in columns if column is not None)
        ids = sum(len(chunk) for chunk in chunks if isinstance(chunk.batch.ids, list))
        return cls(texts, ids, len(executor.partitions), sum(map(len, chunks)))

    @classmethod
    def most(cls, parts: Sequence[Kept]) -> Kept:
        """Return the most of each number."""
        return cls(*(max(getattr(part, field.name) for part in parts) for field in fields(cls)))


def kept_after(query: str, ids: str, events: int, step: int) -> Iterator[Kept]:
    """Yield what is kept after each ``step`` events; each match must have the texts of its events."""
    matcher = acep.Matcher(f"PATTERN {query}", **({} if ids == "none" else {"id": "id"}))  # type: ignore[arg-type]
    matches = 0
    for at in range(0, events, step):
        matches += checked(matcher.push(rows(at, step, ids)))
        tables = matcher._tables
        assert tables.stream is not None
        session, executors = tables.stream._session, tables.stream._executors
        yield Kept.of_ordered(executors[0]) if session is None else Kept.of(session)
    matches += checked(matcher.finish())
    assert matches >= events // 4


def checked(matches: acep.Matches) -> int:
    """Return how many matches there are, each of which has the texts of its events."""
    for match in matches:
        bound = sorted(
            int(str(number).removeprefix("event ")) for numbers in match.bindings.values() for number in numbers
        )
        assert match.values == {"first": f"name {bound[0] // 2}", "last": f"name {bound[-1] // 2}"}
        assert match.key in ({}, {"k": f"key {bound[0] // 4}"})
    return len(matches)


CASES = [(name, window, output, ids) for name in QUERIES for window in WINDOWS for output in OUTPUTS for ids in IDS]


def query_of(name: str, window: str, output: str) -> str:
    return f"{QUERIES[name].replace('@', window)} OUTPUT {output}"


def is_flat(name: str, window: str) -> bool:
    """Return whether memory is flat: not if a key waits for more events of its own than it has."""
    return name == "tied by a text" or window != "WITHIN 40 EVENTS"


@pytest.mark.long
@pytest.mark.parametrize("case", thinned(CASES, 23, pytest.mark.whole), ids=", ".join)
def test_texts_ids_and_keys_are_forgotten(case: tuple[str, str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes, "FEW", FEW)
    monkeypatch.setattr(id_dictionary, "FEW", FEW)
    *query, ids = case
    sizes = list(kept_after(query_of(*query), ids, 4 * ROWS, STEP))
    twice, four_times = (Kept.most(sizes[n * ROWS // STEP // 2 : n * ROWS // STEP]) for n in (2, 4))
    if ids != "text" or four_times.bytes == 0:  # the ordered engine may need no event that has come
        assert four_times.ids == 0
    else:
        assert four_times.ids > 0
    if not is_flat(*query[:2]):  # such a key may go on whenever another event of it comes
        assert four_times.keys > ROWS // 2
        return
    for field in ("texts", "ids", "bytes"):  # buffers double, and what leaks would be twice as much
        assert getattr(four_times, field) <= 1.5 * getattr(twice, field), (field, sizes)
    assert four_times.keys <= 1024 + BLOCK


@pytest.mark.long
def test_texts_are_forgotten_where_runs_end_with_their_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such runs leave no partial match, but their events were bound."""
    test_texts_ids_and_keys_are_forgotten(("in a series", "WITHIN 3 EVENTS", "NON OVERLAP", "none"), monkeypatch)


LARGE = [("by key", *case) for case in product(WINDOWS[:2], OUTPUTS, IDS)] + [
    ("tied by a text", *WINDOWS[2:], *case) for case in product(OUTPUTS, IDS)
]


@pytest.mark.whole
@pytest.mark.parametrize("case", LARGE, ids=", ".join)
def test_memory_is_flat_over_two_million_events(case: tuple[str, str, str, str]) -> None:
    """With half a million short-lived keys, and nothing made small for the test."""
    *query, ids = case
    sizes = list(kept_after(query_of(*query), ids, 2_000_000, 50_000))
    half, last = Kept.most(sizes[: len(sizes) // 2]), Kept.most(sizes[len(sizes) // 2 :])
    for field in ("texts", "ids", "keys", "bytes"):
        assert getattr(last, field) <= 1.1 * getattr(half, field), field

"""Texts of a stream that several plans read: kept while one may look back at them, and else forgotten."""

from __future__ import annotations

import pyarrow as pa

import acep
from acep.events.tables import batch_of, schema_of
from acep.native.codes import FEW
from acep.native.session import NativeSession
from acep.plan.compile import compile_query

WINDOWED = "PATTERN SEQ(A a, B b) WHERE [visit] WITHIN 10"
LASTING = "PATTERN SEQ(First f, Last l) RETURN f.name AS first, l.name AS last"


def test_texts_are_kept_for_the_plan_that_needs_them() -> None:
    size = 1_000
    schema = schema_of(_batch(0, size).schema)
    plans = [compile_query(acep.parse(text), schema) for text in (WINDOWED, LASTING)]
    session = NativeSession(plans, ["nodes", "nodes"])
    windowed, held, at = 0, [], 0
    for number in range(60):
        matches, found = session.push(batch_of(_batch(at, size, last=number == 59), schema, ("visit", "name"), base=at))
        windowed += len(matches)
        held.append(len(session._codes))
        at += size
    assert windowed == at // 2 - 2  # the first and the last pair are other events
    # Half of the events make a visit of a name of its own; only so many may wait to be forgotten.
    assert max(held) < 2 * FEW < at // 2
    assert [column.to_list() for column in found.values] == [["the first"], ["the last"]]


def _batch(at: int, size: int, *, last: bool = False) -> pa.Table:
    kinds, names = ["A", "B"] * (size // 2), ["someone"] * size
    if at == 0:
        kinds[0], names[0] = "First", "the first"
        kinds[1] = "First too"
    if last:
        kinds[-1], names[-1] = "Last", "the last"
    return pa.table(
        {
            "ts": range(at, at + size),
            "type": kinds,
            "visit": [f"visit {(at + i) // 2}" for i in range(size)],
            "name": names,
        }
    )

"""A stream over several plans: order, the passing of time, what is kept and what is freed."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.events.batch import Batch, batch_of_events
from acep.events.records import Events
from acep.events.tables import schema_of
from acep.matches.records import Found
from acep.pattern.expressions import Value
from acep.plan.compile import Plan, compile_query
from acep.runtime.executors import ReferenceExecutor
from acep.runtime.stream import Stream

SCHEMA = schema_of(pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.int64()}))


def plan(text: str) -> Plan:
    return compile_query(acep.parse(text), SCHEMA)


def events(text: str, keys: list[int | None] | None = None, first: int = 0) -> Batch:
    words = text.split()
    given = Events(
        ts=[int(w[1:]) for w in words],
        types=[w[0] for w in words],
        ids=list(range(first, first + len(words))),
        columns={"k": list(keys or [1] * len(words))},
    )
    return batch_of_events(given, SCHEMA)


def ids(found: list[Sequence[Found]]) -> list[list[tuple[int | str, ...]]]:
    return [[tuple(i for i, _ in f.trail) for f in each] for each in found]


def test_each_plan_gives_its_own_matches() -> None:
    stream = Stream([plan("PATTERN SEQ(A a, B b) WITHIN 9"), plan("PATTERN SEQ(B b) WITHIN 9")])
    assert ids(stream.push(events("A1 B2 B3"))) == [[(0, 1), (0, 2)], [(1,), (2,)]]
    assert ids(stream.finish()) == [[], []]
    assert stream.counts.events == 3
    assert stream.counts.matches == 4


def test_a_trailing_negation_is_decided_when_time_has_passed() -> None:
    text = "PATTERN SEQ(A a, B b, ~C c) WHERE [k] WITHIN 10"
    by_clock = Stream([plan(text)])
    assert ids(by_clock.push(events("A1 B5"))) == [[]]
    assert ids(by_clock.advance(10)) == [[]]
    assert ids(by_clock.advance(11)) == [[(0, 1)]]
    by_event = Stream([plan(text)])
    assert ids(by_event.push(events("A1 B5"))) == [[]]
    assert ids(by_event.push(events("A11", [2], 2))) == [[]], "a C may still come at 11"
    assert ids(by_event.push(events("A12", [2], 3))) == [[(0, 1)]]
    broken = Stream([plan(text)])
    assert ids(broken.push(events("A1 B5 C11 A12"))) == [[]]
    assert ids(broken.finish()) == [[]]


def test_matches_of_a_partition_come_in_the_order_of_their_match_points() -> None:
    """A match that is certain waits for one that ends before it and is not."""
    stream = Stream([plan("PATTERN (SEQ(A a, ~C c) | B b) WITHIN 10")])
    assert ids(stream.push(events("A1 B2"))) == [[]]
    assert ids(stream.advance(11)) == [[(0,), (1,)]]


def test_an_older_event_is_refused_and_nothing_is_taken_in() -> None:
    stream = Stream([plan("PATTERN SEQ(A a, B b) WITHIN 9")])
    stream.push(events("A5"))
    before = stream.snapshot()
    with pytest.raises(acep.DataError, match=r"event 1 of the batch \(ts 4\) is older"):
        stream.push(events("B6 B4"))
    assert stream.snapshot() == before
    assert ids(stream.push(events("B5", first=1))) == [[(0, 1)]]
    stream.advance(7)
    with pytest.raises(acep.DataError, match="is older"):
        stream.push(events("B7"))
    assert ids(stream.push(events("B8", first=2))) == [[(0, 2)]]


def test_a_tie_is_older_by_its_order() -> None:
    stream = Stream([plan("PATTERN SEQ(A a, B b) WITHIN 9")])
    one = events("A5")
    stream.push(replace(one, order=np.array([7])))
    with pytest.raises(acep.DataError, match="is older"):
        stream.push(replace(one, order=np.array([6])))


def test_order_is_seen_between_batches_within_one_and_at_the_end_of_time() -> None:
    last = 2**63 - 1
    stream = Stream([plan("PATTERN SEQ(A a, B b) WITHIN 9")], "reference")
    tied = events("A5 A5 A6")
    stream.push(replace(tied, order=np.array([7, 7, 1])))
    with pytest.raises(acep.DataError, match=r"event 1 of the batch \(ts 6\) is older .* \(ts 6\)"):
        stream.push(replace(events("A6 A6"), order=np.array([2, 1])))
    stream.advance(last - 1)
    assert ids(stream.push(events(f"A{last}", first=3))) == [[]]
    stream.advance(last)
    with pytest.raises(acep.DataError, match=rf"event 0 of the batch \(ts {last}\) is older .* \(ts {last + 1}\)"):
        stream.push(events(f"B{last}", first=4))


def test_idle_keys_are_freed() -> None:
    stream = Stream([plan("PATTERN SEQ(A a, ~C c, B b, ~D d) WHERE [k] WITHIN 10")], "reference")
    (plain,) = stream._executors
    assert isinstance(plain, ReferenceExecutor)
    words = [f"{t}{i}" for i in range(0, 4000, 4) for t in "AB"]
    keys: list[int | None] = [i // 2 for i in range(2000)]
    sizes = []
    for at in range(0, 2000, 100):
        stream.push(events(" ".join(words[at : at + 100]), keys[at : at + 100]))
        sizes.append(len(plain.runtime.partitions))
    assert max(sizes) < 70
    stream.advance(5000)
    assert not plain.runtime.partitions
    assert len(stream.snapshot()) < 300


def test_an_event_without_a_key_keeps_its_place_in_the_stream() -> None:
    stream = Stream([plan("PATTERN SEQ(A a, B b) WHERE strict_contiguity { [k] }")])
    assert ids(stream.push(events("A1 A2 B3", [1, None, 1]))) == [[]]
    assert ids(stream.push(events("A4 B5", [1, 1], 3))) == [[(3, 4)]]


def test_without_ids_events_are_numbered_in_their_partition() -> None:
    stream = Stream([plan("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 100")])
    part = events("A1 A2 B3 B4", [1, 2, 1, 2])
    assert ids(stream.push(replace(part, ids=None))) == [[(0, 1), (0, 1)]]
    late = events("A500 B501", [1, 1])
    assert ids(stream.push(replace(late, ids=None))) == [[(2, 3)]]


def test_inner_matches_reach_an_outer_query_in_order() -> None:
    text = (
        "FROM (PATTERN SEQ(A a, ~C c) WITHIN 10) AS X, (PATTERN SEQ(B b) WITHIN 1) AS Y PATTERN SEQ(X x, Y y) WITHIN 50"
    )
    stream = Stream([plan(text)])
    assert ids(stream.push(events("A1 B2 B3"))) == [[]]
    assert ids(stream.advance(11)) == [[(0, 1), (0, 2)]]


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("window", ["WITHIN 12", "WITHIN 5 EVENTS", ""])
def test_live_partial_matches_are_those_whose_window_is_not_over(engine: str, window: str) -> None:
    # With a negation no event is kept back from the engine until its window may hold a match.
    text = "PATTERN SEQ(A a, ~D d, B b, C c) WHERE skip_till_any_match(a, b, c) {"
    text += " [k] AND b.x > a.x AND c.x > a.x + b.x }"
    schema = schema_of(pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.int64(), "x": pa.int64()}))
    stream = Stream([compile_query(acep.parse(f"{text} {window}"), schema)], engine)
    rng = random.Random(7)
    values = rng.sample(range(1000), 200)
    rows: list[tuple[int, str, int, int]] = []
    most = 0
    for start in range(0, 200, 20):
        some = [(start + i, rng.choice("ABCX"), rng.randrange(3), values[start + i]) for i in range(20)]
        columns: dict[str, list[Value]] = {"k": [row[2] for row in some], "x": [row[3] for row in some]}
        given = Events([row[0] for row in some], [row[1] for row in some], list(range(start, start + 20)), columns)
        stream.push(batch_of_events(given, schema))
        rows += some
        most = max(most, stream.live)
        assert stream.live == alive(rows, window)
        assert Stream.restore(stream.plans, stream.snapshot(), engine).live == stream.live
    assert most > 5
    if window == "WITHIN 12":
        stream.advance(400)
    else:
        stream.finish()
    assert stream.live == 0


def alive(rows: list[tuple[int, str, int, int]], window: str) -> int:
    """Partial matches of one A, or of an A and a B, which another event may go on with."""
    found = 0
    for key in {row[2] for row in rows}:
        own = [row for row in rows if row[2] == key]
        for i, (ts, kind, _, x) in enumerate(own):
            inside = {"": True, "WITHIN 12": rows[-1][0] - ts <= 12, "WITHIN 5 EVENTS": len(own) - 1 - i <= 4}[window]
            if kind == "A" and inside:
                found += 1 + sum(1 for later in own[i + 1 :] if later[1] == "B" and later[3] > x)
    return found


def test_partial_matches_that_are_held_as_one_are_one() -> None:
    wanted = plan("PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { [k] } WITHIN 9")
    for output in ("matches", "count", "points"):
        stream = Stream([wanted], "native", output)
        stream.push(events("A1 A2 A3 A4", [1, 1, 1, 2]))
        assert stream.live == 2
        stream.advance(12)
        assert stream.live == 1, "that of key 2, until 13"
    reference = Stream([wanted], "reference")
    reference.push(events("A1 A2 A3 A4", [1, 1, 1, 2]))
    assert reference.live == 4


@pytest.mark.parametrize(("zone", "mark"), [(None, ""), (dt.UTC, "Z")])
def test_the_error_of_an_event_out_of_order_shows_its_time_as_in_the_input(zone: dt.tzinfo | None, mark: str) -> None:
    matcher = acep.Matcher("PATTERN A a")
    matcher.push({"ts": [dt.datetime(2024, 3, 1, 10, tzinfo=zone)], "type": ["A"]})
    with pytest.raises(acep.DataError) as caught:
        matcher.push({"ts": [dt.datetime(2024, 2, 1, tzinfo=zone)], "type": ["A"]})
    assert f"(ts 2024-02-01 00:00:00{mark})" in str(caught.value)
    assert f"(ts 2024-03-01 10:00:00{mark})" in str(caught.value)
    assert "lateness=" in str(caught.value)

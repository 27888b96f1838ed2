"""Thresholds of units: what is admitted does not depend on batches, and what is left out invents no match."""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import replace
from unittest import mock

import mmh3
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import acep
from acep.errors import SnapshotError
from acep.events.tables import schema_of
from acep.matches.matches import Match
from acep.overload.batch_log import Decision, RunningTotals, decide
from acep.overload.key_utility import CellUtility
from acep.overload.unit_admission import ALL, CELLS, SHIFT, UnitAdmission, why_not_shed_early
from acep.plan.compile import compile_query

SPAN = 5
DELAY = 4
Batches = list[list[tuple[int, int]]]
thresholds = st.sampled_from((0, ALL // 256, ALL // 4, ALL // 2, 3 * ALL // 4, ALL))
cells = st.sampled_from((None, (), (0,), (1,), (0, 2)))
"""Which of three keys are favoured from now on, ``None``: as before. A key's cell is its own number."""


def unit_of(key: int, tick: int, length: int) -> tuple[int, int]:
    """The hash of a unit, and its beginning."""
    offset = mmh3.hash(f"{key}", signed=False) % length
    number = (tick - offset) // length
    return mmh3.hash(f"{key} {number}", signed=False), number * length + offset


@st.composite
def streams(draw: st.DrawFn) -> Batches:
    """Micro-batches of (key, time), in disorder within the delay."""
    times = sorted(draw(st.lists(st.integers(0, 200), min_size=1, max_size=60)))
    late = draw(st.lists(st.integers(0, DELAY), min_size=len(times), max_size=len(times)))
    rows = [
        (draw(st.integers(0, 2)), time)
        for time, _ in sorted(zip(times, late, strict=True), key=lambda both: both[0] + both[1])
    ]
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=12)))
    return [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


@given(streams(), st.data())
def test_a_row_is_admitted_by_the_thresholds_of_event_time(batches: Batches, data: st.DataObject) -> None:
    """The thresholds that are kept say the same as all thresholds there were; the pieces say it too."""
    now, seen, steps = UnitAdmission(SPAN, delay=DELAY), None, [(-(2**62), (ALL, ()))]
    for batch in batches:
        threshold, favoured = data.draw(thresholds), None if now.changing or seen is None else data.draw(cells)
        now = now.with_threshold(seen, threshold, favoured)
        new = threshold, steps[-1][1][1] if favoured is None else favoured
        steps = [(-(2**62), new)] if seen is None else [*(s for s in steps if s[0] < seen), (seen, new)]
        now = UnitAdmission.load(json.loads(json.dumps(now.dump())))
        for key, tick in batch:
            if seen is not None and tick < seen - DELAY:
                continue
            hashed, begin = unit_of(key, tick, now.length)
            last = now.last_cut(begin, tick)
            starts = [since for since, _ in steps]
            bear = steps[max(0, bisect_left(starts, begin) - 1) : max(0, bisect_left(starts, last) - 1) + 1]
            expected = all(hashed < value * (64 if key in favoured else 1) for _, (value, favoured) in bear)
            assert now.admits(hashed=hashed, begin=begin, tick=tick, cell=key) == expected
            held = next(inner for since, inner in now.pieces(seen) if last > since)
            values = next(values for since, values in held if begin > since)
            shifted = [v << (SHIFT if key in f else 0) for v, f in zip(values, now.favoured, strict=True)]
            assert (hashed < min(shifted)) == expected
        seen = max([seen, *(tick for _, tick in batch)], key=lambda one: -1 if one is None else one)


@given(streams(), st.data())
def test_the_chance_of_a_row_is_the_mean_over_where_its_unit_may_begin(batches: Batches, data: st.DataObject) -> None:
    now, seen = UnitAdmission(SPAN, delay=DELAY), None
    for batch in batches:
        favoured = None if now.changing or seen is None else data.draw(cells)
        now = now.with_threshold(seen, data.draw(thresholds), favoured)
        seen = max([seen, *(tick for _, tick in batch)], key=lambda one: -1 if one is None else one)
    tick = data.draw(st.integers(seen - DELAY, seen + 2 * now.length)) if seen is not None else 0
    for cell in range(3):
        each = []
        for begin in range(tick - now.length + 1, tick + 1):
            below = [n for n in range(257) if now.admits(hashed=n * ALL // 256 - 1, begin=begin, tick=tick, cell=cell)]
            each.append(max(below) / 256)
        assert now.chances(tick)[cell] == pytest.approx(sum(each) / len(each))


QUERIES = (
    "PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { [k] } WITHIN 5",
    "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) { [k] } WITHIN 5",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { [k] } WITHIN 5",
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match(a, b[]) { [k] } WITHIN 5",
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match(a, b[]) { [k] } WITHIN 5",
    "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [k] } WITHIN 5",
    "PATTERN SEQ(A a, ~(C c), B b) WHERE skip_till_next_match(a, b) { [k] } WITHIN 5",
    "PATTERN SEQ(A a, C c, B b) WHERE partition_contiguity(a, c, b) { [k] } WITHIN 5",
)


def plain(match: Match) -> str:
    """A match without its bundle, which begins later where its first match point was shed."""
    return f"{match.key} {match.start} {match.end} {match.error} {match.bindings}"


@pytest.mark.parametrize("errors", [0, 1])
@pytest.mark.parametrize("query", QUERIES)
@given(streams(), st.data())
def test_no_match_is_invented(query: str, errors: int, batches: Batches, data: st.DataObject) -> None:
    rows, kept, seen = [], [], None
    own, decision = UnitAdmission(SPAN, delay=DELAY), Decision()
    for batch in batches:
        # A budget may be taken away and given again between micro-batches.
        bounded, decision = data.draw(st.booleans()), replace(decision, carried=RunningTotals(seen=seen))
        chosen = CellUtility.empty(), data.draw(cells)
        with mock.patch.object(CellUtility, "choose", return_value=chosen):
            decision = decide(decision, own if bounded else None, data.draw(thresholds) / ALL, DELAY)
        now = decision.admission or own
        for key, tick in batch:
            hashed, begin = unit_of(key, tick, now.length)
            row = {"ts": tick, "type": data.draw(st.sampled_from("ABC")), "k": key, "n": len(rows)}
            if seen is None or tick >= seen - DELAY:
                rows.append(row)
                if now.admits(hashed=hashed, begin=begin, tick=tick, cell=key):
                    kept.append(row)
        seen = max([seen, *(tick for _, tick in batch)], key=lambda one: -1 if one is None else one)
    schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.int64(), "n": pa.int64()})
    parts = [sorted(part, key=lambda row: row["ts"]) for part in (rows, kept)]
    every, some = (pa.Table.from_pylist(part, schema=schema) for part in parts)
    budget = acep.Budget(errors=errors)
    found = [plain(match) for match in acep.match(some, query, seq="n", id="n", budget=budget)] if kept else []
    exact = {plain(match) for match in acep.match(every, query, seq="n", id="n", budget=budget)}
    assert set(found) <= exact
    assert not why_not_shed_early([compile_query(acep.parse(query), schema_of(schema, seq="n", id="n"))], ids=True)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 5", "without partition"),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { [k] }", "no window"),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { [k] } WITHIN 5 EVENTS", "no window"),
        ("PATTERN SEQ(A a, ~(B b)) WHERE skip_till_any_match(a) { [k] } WITHIN 5", "negation"),
        ("PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { [k] } WITHIN 5", "without partition"),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { [k] } WITHIN 5 OUTPUT NON OVERLAP", "chosen"),
    ],
)
def test_what_must_be_carried_whole(query: str, reason: str) -> None:
    schema = schema_of(pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.int64(), "n": pa.int64()}), id="n")
    assert reason in why_not_shed_early([compile_query(acep.parse(query), schema)], ids=True)


def test_events_that_are_numbered_are_carried() -> None:
    schema = schema_of(pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.int64()}))
    plan = compile_query(acep.parse(QUERIES[0]), schema)
    assert "numbered" in why_not_shed_early([plan], ids=False)


def test_thresholds_that_fall_and_rise_for_long_stay_few() -> None:
    now = UnitAdmission(1000, delay=10)
    for i in range(5000):
        now = now.with_threshold(10 * i, (i * 7919) % ALL)
        assert len(now.since) <= 60


@pytest.mark.parametrize("own", [UnitAdmission(SPAN, seed=1, delay=DELAY), None])
def test_units_that_are_cut_short_stay_so_under_the_seed_and_delay_they_were_cut_by(own: UnitAdmission | None) -> None:
    decision = Decision(
        UnitAdmission(SPAN, since=(0, 9), thresholds=(ALL, 7), delay=DELAY), carried=RunningTotals(seen=9)
    )
    with pytest.raises(SnapshotError, match="another seed= or watermark="):
        decide(decision, own, 1.0, DELAY if own else DELAY + 1)
    later = replace(decision, carried=RunningTotals(seen=1000))
    (rising,) = (decide(later, None, 1.0, DELAY).admission,)
    assert rising is not None
    assert rising.thresholds == (7, ALL)
    ended = decide(Decision(rising, carried=RunningTotals(seen=2000)), None, 1.0, DELAY)
    assert ended.admission is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"favoured": [[CELLS]]},
        {"favoured": [[], []]},
        {"favoured": [[], []], "begins": [0, 9]},
        {"favoured": [["a"]]},
        {"begins": [1]},
        {"thresholds": [ALL + 1]},
        {"since": [1, 0], "thresholds": [0, 0]},
    ],
)
def test_what_is_no_admission_is_refused(wrong: dict[str, object]) -> None:
    told = UnitAdmission(SPAN).dump()
    earlier = {name: told[name] for name in ("span", "since", "thresholds", "seed", "delay")}
    assert UnitAdmission.load(told) == UnitAdmission.load(earlier) == UnitAdmission(SPAN)
    with pytest.raises((KeyError, TypeError, ValueError)):
        UnitAdmission.load(UnitAdmission(SPAN).dump() | wrong)

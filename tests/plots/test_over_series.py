"""A match over a series: the line has the events of its key around it, and the marks are where its events are."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import acep
from acep.plots import match_over_series
from acep.plots.over_series import MOST_MARKS, MOST_POINTS
from tests.case_counts import CaseCounts

pytest.importorskip("matplotlib")

EVENTS: dict[str, Any] = {
    "ts": [1, 2, 3, 4, 5, 6, 20],
    "type": ["a", "a", "x", "b", "b", "x", "a"],
    "k": [1, 2, 1, 1, 2, 1, 1],
    "price": [7.0, 8.0, 9.5, 6.0, 5.0, None, 4.0],
}
QUERY = acep.regex("ab", within=5, by="k")


def line_of(ax: Any) -> list[tuple[float, float]]:
    return [tuple(point) for point in ax.get_lines()[0].get_xydata().tolist()]


def marks_of(ax: Any) -> dict[str, set[tuple[float, float]]]:
    """The marked points of each variable, by the colours of the legend."""
    names = {
        handle.get_color(): text.get_text()
        for handle, text in zip(ax.get_legend().legend_handles, ax.get_legend().get_texts(), strict=True)
    }
    return {names[one.get_color()]: {tuple(p) for p in one.get_xydata().tolist()} for one in ax.get_lines()[1:]}


def test_the_line_has_the_events_of_the_key_and_the_marks_those_of_the_match() -> None:
    first, second = acep.match(EVENTS, QUERY)
    ax = match_over_series(EVENTS, first, "price", context=10)
    assert line_of(ax) == [(1, 7.0), (3, 9.5), (4, 6.0), (20, 4.0)]  # the event without a value is left out
    assert marks_of(ax) == {"a": {(1.0, 7.0)}, "b": {(4.0, 6.0)}}
    assert ax.get_title(loc="left") == "match of k=1"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("ts", "price")
    near = match_over_series(EVENTS, second, "price", context=0)
    assert line_of(near) == [(2, 8.0), (5, 5.0)]
    assert len(line_of(match_over_series(EVENTS, first, "price"))) == 3  # to 1.5 before and after


def test_of_a_key_of_two_attributes_the_line_has_the_events_with_both_of_its_values() -> None:
    rows: dict[str, Any] = {
        "ts": [1, 2, 3, 4],
        "type": ["a", "x", "x", "b"],
        "shop": ["u", "v", "u", "u"],
        "till": [1, 1, 2, 1],
        "price": [7.0, 8.0, 9.0, 6.0],
    }
    (match,) = acep.match(rows, acep.regex("ab", within=5, by=["shop", "till"]))
    assert line_of(match_over_series(rows, match, "price")) == [(1, 7.0), (4, 6.0)]


def test_events_of_another_key_at_the_same_times_are_refused() -> None:
    rows = {"ts": [1, 1, 2, 2], "type": ["A"] * 4, "k": ["x", "y", "x", "y"], "p": [1, 100, 2, 200]}
    (one, _) = acep.match(rows, "PATTERN SEQ(A a, A b) WHERE [k] AND b.p > a.p WITHIN 5")
    swapped = {name: [values[place] for place in (1, 0, 3, 2)] for name, values in rows.items()}
    match_over_series(rows, one, "p")
    with pytest.raises(acep.DataError, match="do not have the key of the match"):
        match_over_series(swapped, one, "p")


def test_each_mark_is_at_its_event(cases: CaseCounts) -> None:
    chance = random.Random(3)
    seen = Counter[str]()
    for _ in range(cases(40)):
        size = 60
        ts = sorted(chance.randrange(100) for _ in range(size))
        table = {
            "ts": ts,
            "type": chance.choices("abx", k=size),
            "k": chance.choices(["u", "v"], k=size),
            "v": [chance.choice([None, chance.random()]) for _ in range(size)],
        }
        order = chance.sample(range(size), size)
        mixed: dict[str, Any] = {name: [column[row] for row in order] for name, column in table.items()}
        names = {}
        if chance.random() < 0.5:
            mixed["name"] = [f"e{chance.random()}" for _ in range(size)]
            names = {"id": "name"}
        found = acep.match(mixed, acep.regex("ab+", within=9, by="k", strategy="skip_till_next_match"), **names)
        for match in found[:2]:
            ax = match_over_series(mixed, match, "v", context=0.5, **names)
            rows = range(size)
            at = {name: row for row, name in enumerate(mixed["name"] if names else rows)}
            expected = {
                variable: {
                    (float(mixed["ts"][at[e]]), mixed["v"][at[e]]) for e in bound if mixed["v"][at[e]] is not None
                }
                for variable, bound in match.bindings.items()
            }
            marks = marks_of(ax) if all(expected.values()) else None
            assert marks in (expected, None)
            free = round(0.5 * (match.end - match.start))
            own = [
                (float(mixed["ts"][row]), mixed["v"][row])
                for row in rows
                if mixed["k"][row] == match.key["k"] and mixed["v"][row] is not None
            ]
            if match.end > match.start:
                line = [one for one in own if match.start - free <= one[0] <= match.end + free]
                assert sorted(line_of(ax)) == sorted(line)
            seen["all marks are drawn"] += marks is not None
            seen["several events of a variable"] += any(len(bound) > 1 for bound in match.bindings.values())
    cases.expect(seen, "all marks are drawn", "several events of a variable", least=6)


def test_a_bound_event_without_a_value_is_a_dotted_line() -> None:
    events = EVENTS | {"price": [7.0, 8.0, 9.5, None, 5.0, 3.0, 4.0]}
    ax = match_over_series(events, acep.match(events, QUERY)[0], "price")
    (dotted,) = [one for one in ax.collections if hasattr(one, "get_segments")]
    assert [segment[:, 0].tolist() for segment in dotted.get_segments()] == [[4.0, 4.0]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_times_of_the_calendar(unit: str, zone: str | None) -> None:
    begin = dt.datetime(2024, 5, 1, 10)
    times = [begin + dt.timedelta(minutes=n) for n in range(7)]
    events = pa.table(
        EVENTS | {"ts": pa.array(times, pa.timestamp(unit)).cast(pa.timestamp(unit, zone)), "k": pa.array(EVENTS["k"])}
    )
    found = acep.match(events, acep.regex("ab", within="5 minutes", by="k"))
    ax = match_over_series(events, found[0], "price")
    days = (begin - dt.datetime(1970, 1, 1)) / dt.timedelta(days=1)
    assert [x for x, _ in line_of(ax)] == pytest.approx([days + n / 1440 for n in (0, 2, 3)])
    assert ax.get_xlabel() == ("ts" if zone is None else "ts (UTC)")


@pytest.mark.parametrize(
    ("unit", "ticks", "told"),
    [
        (1, [0.0, 2.0, 3.0], "ts (µs from 2024-05-01T10:00:00.000101)"),
        (50_000, [0.0, 100.0, 150.0], "ts (ms from 2024-05-01T10:00:00.050100)"),
    ],
)
def test_a_span_below_a_second_is_counted_from_its_beginning(unit: int, ticks: list[float], told: str) -> None:
    start = np.datetime64("2024-05-01T10:00:00.000100", "us")
    events = EVENTS | {"ts": [start + np.timedelta64(n * unit, "us") for n in EVENTS["ts"]]}
    found = acep.match(events, acep.regex("ab", within="300 ms", by="k"))
    ax = match_over_series(events, found[0], "price")
    assert [x for x, _ in line_of(ax)] == ticks
    assert ax.get_xlabel() == told


def test_large_integers_stay_apart() -> None:
    events = EVENTS | {"ts": [2**62 + n for n in EVENTS["ts"]]}
    ax = match_over_series(events, acep.match(events, QUERY)[0], "price")
    assert [x for x, _ in line_of(ax)] == [0.0, 2.0, 3.0]
    assert ax.get_xlabel() == f"ts (from {2**62 + 1})"


def test_columns_of_other_kinds() -> None:
    events = pa.table(
        {
            "at": pa.array([{"t": n} for n in EVENTS["ts"]]),
            "type": EVENTS["type"],
            "k": pa.array(EVENTS["k"]).dictionary_encode(),
            "price": pa.array([Decimal(n) / 4 for n in range(7)], pa.decimal128(9, 2)),
        }
    )
    query = acep.parse("PATTERN SEQ(a p, b q) WHERE p.price < q.price WITHIN 5")
    ax = match_over_series(events, acep.match(events, query, ts="at.t")[0], "price", ts="at.t", context=0)
    assert line_of(ax)[-1] == (4.0, 0.75)


DAY = dt.datetime(2024, 5, 1)
KEYS = {
    "decimal": pa.array([Decimal("1.50"), Decimal("2.25")], pa.decimal128(9, 2)),
    "date": pa.array([DAY.date(), dt.date(2024, 5, 2)]),
    "timestamp": pa.array([DAY, DAY + dt.timedelta(1)], pa.timestamp("ms", "Europe/Berlin")),
    "nanoseconds": pa.array([1, 2]).cast(pa.timestamp("ns")),
    "bool": pa.array([True, False]),
    "float": pa.array([0.1, 0.3], pa.float32()),
    "small": pa.array([1, 2], pa.uint8()),
    "text": pa.array(["a", "b"], pa.large_string()),
    "view": pa.array(["a", "b"], pa.string_view()),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_all_kinds(kind: str) -> None:
    column = pa.array([KEYS[kind][n % 2].as_py() for n in range(4)], KEYS[kind].type)
    events = pa.table({"ts": [1, 2, 3, 4], "type": list("aabb"), "k": column, "v": range(4)})
    found = acep.match(events, acep.regex("ab", within=5, by="k"))
    lines = [line_of(match_over_series(events, match, "v", context=5)) for match in found]
    assert lines == [[(1, 0), (3, 2)], [(2, 1), (4, 3)]]


@pytest.mark.parametrize("values", [[1e308, -1e308], [1e308, 1e308], [5e-324, 0], [float("inf"), 1.0], [None, None]])
def test_values_that_no_axis_can_have(values: list[float | None]) -> None:
    events = pa.table({"ts": [1, 2], "type": ["a", "b"], "v": pa.array(values, pa.float64())})
    ax = match_over_series(events, acep.match(events, acep.regex("ab", within=5))[0], "v")
    assert b"</svg>" in acep.plots.images.as_image(ax.figure, "svg")
    drawn = [y for _, y in line_of(ax)]
    assert drawn == [value for value in values if value is not None and abs(value) < 1e300]


def test_a_match_that_takes_no_time_has_its_neighbours() -> None:
    events = {"ts": list(range(100)), "type": ["a"] * 100, "v": list(range(100))}
    found = acep.match(events, acep.regex("a", within=5))
    assert [y for _, y in line_of(match_over_series(events, found[50], "v"))] == list(range(30, 71))


def test_a_file_of_events(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    pa.csv.write_csv(pa.table(EVENTS), path)
    assert len(line_of(match_over_series(path, acep.match(path, QUERY)[0], "price"))) == 3


def test_other_events_are_refused() -> None:
    found = acep.match(EVENTS, QUERY)
    shifted = EVENTS | {"ts": [n + 1 for n in EVENTS["ts"]]}
    with pytest.raises(acep.DataError, match="times of the bound events are not those of the match"):
        match_over_series(shifted, found[0], "price")
    short = {name: column[:3] for name, column in EVENTS.items()}
    with pytest.raises(acep.DataError, match="binds the event 3, which is not among the events"):
        match_over_series(short, found[0], "price")
    with pytest.raises(acep.DataError, match="the ids of the events are string"):
        match_over_series(EVENTS, found[0], "price", id="type")
    with pytest.raises(acep.DataError, match="binds the event 0, which is not among"):
        match_over_series(EVENTS, found[0], "price", id="k")
    with pytest.raises(acep.DataError, match="no column `prize`") as told:
        match_over_series(EVENTS, found[0], "prize")
    assert told.value.hint == "did you mean `price`?"
    with pytest.raises(acep.DataError, match="`type` is string, and a column of numbers") as told:
        match_over_series(EVENTS, found[0], "type")
    assert told.value.hint == "such as ts, k, price"
    with pytest.raises(acep.DataError, match="one match is drawn") as told:
        match_over_series(EVENTS, found, "price")  # type: ignore[arg-type]
    assert told.value.hint == "take one of them, such as found[0]"


@pytest.mark.long
def test_very_many_events_are_thinned_and_the_title_says_so() -> None:
    size = 300_000
    chance = np.random.default_rng(1)
    values = chance.random(size)
    values[123_456] = 9.0
    types = np.full(size, "b")
    types[0] = "a"
    events = pa.table({"ts": np.arange(size), "type": types, "v": values})
    query = acep.parse("PATTERN SEQ(a p, b+ q[]) WHERE skip_till_next_match(p, q[]) { q[i].v > 0.99 } WITHIN 300000")
    match = max(acep.match(events, query), key=lambda one: one.end)
    bound = sum(map(len, match.bindings.values()))
    assert bound > 5 * MOST_MARKS
    ax = match_over_series(events, match, "v")
    line = line_of(ax)
    assert MOST_POINTS / 2 < len(line) <= MOST_POINTS
    assert (123_456.0, 9.0) in line  # the greatest of a stretch is never left out
    marked = sum(len(one.get_xdata()) for one in ax.get_lines()[1:])
    assert MOST_MARKS / 2 < marked <= MOST_MARKS
    shown = ax.get_title(loc="left").splitlines()[1]
    assert shown == f"{len(line):,} of {size:,} events drawn; {marked:,} of {bound:,} bound events marked"


def test_a_user_may_name_anything() -> None:
    events = {"$t^$": [1, 2], "type": ["_a", "b"], "<$x_{$>": [1.0, 2.0], "k": ["$\\frac$"] * 2}
    query = acep.parse("PATTERN SEQ(_a _p, b q) WHERE [k] WITHIN 5")
    ax = match_over_series(events, acep.match(events, query, ts="$t^$")[0], "<$x_{$>", ts="$t^$")
    text = acep.plots.images.as_image(ax.figure, "svg").decode()
    assert "&lt;$x_{$&gt;" in text
    assert "k=$\\frac$" in text
    assert [one.get_text() for one in ax.get_legend().get_texts()] == [" _p", "q"]

"""A time line: bars from the start to the end of matches, in the row of their key."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

import acep
from acep.plots import timeline
from acep.plots.time_line import LANES, MOST_BARS
from tests.case_counts import CaseCounts

pytest.importorskip("matplotlib")


def bars_of(ax: Any) -> list[tuple[float, float, float, float]]:
    """Left, right, bottom and top of each bar, in the order of drawing."""
    found = []
    for patch in ax.patches:
        for polygon in np.split(patch.get_path().vertices, len(patch.get_path().vertices) // 5):
            (left, low), (right, high) = polygon[:4].min(axis=0), polygon[:4].max(axis=0)
            found.append((left, right, low, high))
    return found


def rows_of(ax: Any) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def match(key: dict[str, Any], start: Any, end: Any, error: Any = 0, number: int = 0, op: int = 1) -> acep.Match:
    return acep.Match(key, start, end, error, {"a": (number,)}, end, op=op)


def test_a_bar_is_a_match_in_the_row_of_its_key(cases: CaseCounts) -> None:
    chance = random.Random(1)
    seen = Counter[str]()
    for _ in range(cases(40)):
        found = [
            match({"k": chance.randrange(4)}, start, start + chance.choice([0, 1, 5, 20]), chance.randrange(3), n)
            for n, start in enumerate(chance.randrange(200) for _ in range(chance.randrange(1, 60)))
        ]
        ax = timeline(found)
        bars = bars_of(ax)
        rows = rows_of(ax)
        drawn = Counter((rows[round((low + high) / 2)], left, right) for left, right, low, high in bars)
        assert drawn == Counter((str(one.key["k"]), one.start, one.end) for one in found)
        assert all(abs(low - round((low + high) / 2)) <= 0.4 for _, _, low, high in bars)
        overlap = [
            (one, other)
            for one in bars
            for other in bars
            if one < other and one[0] <= other[1] and other[0] <= one[1] and one[2] < other[3] and other[2] < one[3]
        ]
        # Bars may lie over each other only where more than eight are there at once.
        for one, _ in overlap:
            row = [bar for bar in bars if round((bar[2] + bar[3]) / 2) == round((one[2] + one[3]) / 2)]
            most = max(sum(bar[0] <= at <= bar[1] for bar in row) for at in range(221))
            assert most > LANES
        seen["crowded"] += bool(overlap) or len(bars) > 30
    cases.expect(seen, "crowded", least=6)


def test_errors_are_coloured_and_named() -> None:
    ax = timeline([match({}, n, n + 3, n % 3, n) for n in range(9)])
    assert rows_of(ax) == ["all events"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2"]
    assert len({patch.get_facecolor() for patch in ax.patches}) == 3
    assert ax.get_title(loc="left") == "9 matches"
    many = timeline([match({}, n, n, n / 2, n) for n in range(100)])
    assert [text.get_text() for text in many.get_legend().get_texts()][:2] == ["0 to 6", "6.5 to 12.5"]
    assert timeline([match({}, 1, 2)]).get_legend() is None


def test_several_queries_are_coloured_by_their_names() -> None:
    events = {"ts": [1, 2, 3, 4], "type": list("abab"), "k": [1, 1, 1, 1]}
    queries = {"_up $x": acep.regex("ab", within=5, by="k"), "down": acep.regex("ba", within=5, by="k")}
    ax = timeline(acep.match(events, queries))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [" _up $x", "down"]
    assert [len(patch.get_path().vertices) // 5 for patch in ax.patches] == [3, 1]
    assert "_up $x" in acep.plots.images.as_image(ax.figure, "svg").decode()


def test_keys_of_several_attributes_and_of_several_queries() -> None:
    assert rows_of(timeline([match({"a": "x", "b": 2}, 1, 2)])) == ["x, 2"]
    ax = timeline({"p": [match({"a": "x"}, 1, 2)], "q": [match({"b": "x"}, 3, 4)]})
    assert rows_of(ax) == ["a=x", "b=x"]
    long = [match({"a": "x" * 60 + end}, 1, 2) for end in "pq"]
    assert len(rows_of(timeline(long))) == 2, "keys that differ at their end are two"


def test_the_keys_that_have_the_most_matches_are_shown() -> None:
    found = [match({"k": k}, 10 * k + n, 10 * k + n, 0, n) for k in range(60) for n in range(1 + (k % 7 == 0))]
    ax = timeline(found, most_keys=9)
    assert rows_of(ax) == [str(k) for k in range(0, 60, 7)]
    assert (
        ax.get_title(loc="left")
        == "69 matches\nthe 9 of 60 keys that have the most of them; diamonds: 18 too short for a bar"
    )


def test_the_axis_has_the_name_of_the_time_column() -> None:
    found = acep.match({"When": [1, 2], "type": ["a", "b"]}, acep.regex("ab", within=5), ts="When")
    assert timeline(found).get_xlabel() == "When"
    assert timeline(found, ts="time").get_xlabel() == "time"


def test_times_of_the_calendar_and_other_times() -> None:
    day = dt.datetime(2024, 5, 1)
    ax = timeline([match({}, day, day + dt.timedelta(hours=6))])
    (bar,) = bars_of(ax)
    assert bar[1] - bar[0] == pytest.approx(0.25)
    zoned = timeline([match({}, day.replace(tzinfo=dt.UTC), day.replace(tzinfo=dt.UTC) + dt.timedelta(hours=6))])
    assert bars_of(zoned)[0][:2] == bar[:2]
    assert zoned.get_xlabel() == "ts (UTC)"
    for first, last in ((dt.date(1, 1, 2), dt.date(9999, 12, 30)), (-(2**63), 2**63 - 1), (dt.date.max, dt.date.max)):
        if first is dt.date.max:
            with pytest.raises(acep.DataError, match="beyond the years"):
                timeline([match({}, first, last)])
            continue
        acep.plots.images.as_image(timeline([match({}, first, last)]).figure, "svg")
    with pytest.raises(acep.DataError, match="integers as times, and others dates"):
        timeline([match({}, 1, 2), match({}, day, day)])


def diamonds_of(ax: Any) -> dict[float, float]:
    """The width in points of each diamond, by its place on the axis of time."""
    marks = [line for line in ax.lines if line.get_marker() == "D"]
    return {float(at): line.get_markersize() * 2**0.5 for line in marks for at in line.get_xdata()}


@pytest.mark.parametrize("users", [1, 8, 40])
def test_each_match_of_a_month_is_seen_and_none_is_drawn_longer_than_it_is(users: int) -> None:
    begin, day = dt.datetime(2024, 5, 1), dt.timedelta(days=1)
    lengths = [dt.timedelta(0), dt.timedelta(seconds=20), dt.timedelta(minutes=90), 2 * day]
    found = [
        match({"user": n % users}, start, start + lengths[n % 4], n % 3, n)
        for n, start in enumerate(begin + n * 0.9 * day for n in range(32))
    ]
    ax = timeline(found)
    bars = {left: right - left for left, right, _, _ in bars_of(ax)}
    assert sorted(bars.values()) == pytest.approx(sorted((one.end - one.start) / day for one in found), abs=1e-6)
    ax.figure.canvas.draw()
    point = (ax.get_xlim()[1] - ax.get_xlim()[0]) / (ax.get_window_extent().width * 72 / ax.figure.dpi)
    diamonds, wide = diamonds_of(ax), [left for left, width in bars.items() if width >= 1]
    assert len(diamonds) == 24
    assert all(2.9 <= size <= 6.1 for size in diamonds.values())
    assert all(width / point > 3.5 for left, width in bars.items() if left in wide)
    assert ax.get_title(loc="left").splitlines() == ["32 matches", "diamonds: 24 too short for a bar"]


def test_matches_of_no_time_at_one_moment_are_seen() -> None:
    ax = timeline([match({}, 5, 5)])
    assert diamonds_of(ax) == {5.0: pytest.approx(6, abs=0.1)}
    assert ax.get_title(loc="left") == "1 match\ndiamonds: 1 too short for a bar"


def test_matches_that_were_taken_back_are_not_drawn() -> None:
    matcher = acep.Matcher(acep.regex("a(b|c)", within=10, strategy="skip_till_next_match"), lateness=5, speculation=5)
    found = [*matcher.push({"ts": [1, 4], "type": ["a", "c"]}), *matcher.push({"ts": [2], "type": ["b"]})]
    found += matcher.finish()
    assert [one.op for one in found].count(-1) == 1
    standing = {(one.start, one.end) for one in found if one.op > 0} - {(1, 4)}
    ax = timeline(found)
    assert {bar[:2] for bar in bars_of(ax)} == standing
    assert ax.get_title(loc="left") == "1 match\n1 taken back, not drawn"


def test_no_matches_are_said_to_be_none() -> None:
    ax = timeline(acep.match({"ts": [1], "type": ["a"]}, acep.regex("ab", within=5)))
    assert ax.get_title(loc="left") == "no matches"
    acep.plots.images.as_image(ax.figure, "png")


def test_very_many_matches_are_thinned_and_the_title_says_so() -> None:
    size = 1_500
    events = {"ts": list(range(2 * size)), "type": ["a"] * size + ["b"] * size, "k": [n % 50 for n in range(2 * size)]}
    found = acep.match(events, acep.parse("PATTERN SEQ(a x, b y) WHERE [k]"))
    assert len(found) == 45_000
    ax = timeline(found)
    drawn = len(bars_of(ax))
    assert MOST_BARS / 2 < drawn <= MOST_BARS
    title, notes = ax.get_title(loc="left").splitlines()
    assert title == "45,000 matches"
    assert re.search("of them chosen; the 40 of 50 keys that have the most of them(; diamonds: .*)?$", notes)
    sampled = timeline(found[::100], of=len(found))
    assert sampled.get_title(loc="left").startswith("45,000 matches\n450 of them chosen")

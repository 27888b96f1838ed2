"""The columns of a page: matches, their rows and those in between, and walks, against what is found without them."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.pages.event_rows import MOST_COLUMNS, ROWS_OF_MATCH, event_rows
from acep.pages.exact_values import page_axis
from acep.pages.page_data import MOST_BYTES, MOST_MATCHES, MOST_ROWS, PageData, PageSource, as_json, page_data
from acep.pages.shown_columns import ShownColumn, choose_matches, column_of_values, match_columns
from acep.pages.walks import find_walk, steps_of_query
from tests.case_counts import CaseCounts

QUERIES = [
    "PATTERN SEQ(a p, b+ q[], a r) WHERE skip_till_next_match(p, q[], r) { [user] } WITHIN 9",
    "PATTERN SEQ(a p, b q, a r) WHERE [user] AND r.x > p.x WITHIN 8 RETURN r.x - p.x AS rise",
    "PATTERN SEQ(a p, (b q | x s), a r) WITHIN 5",
]


def stream(seed: int, n_events: int = 80) -> dict[str, list[Any]]:
    rng = random.Random(seed)
    return {
        "ts": sorted(rng.choices(range(n_events), k=n_events)),
        "type": rng.choices("abx", k=n_events),
        "user": rng.choices(["u", "v", None], [5, 5, 1], k=n_events),
        "x": rng.choices([1.5, 2.0, None, 7.25], k=n_events),
    }


def data_of(events: Any, query: Any, **options: Any) -> tuple[PageData, Any]:
    parsed = acep.parse(query) if isinstance(query, str) else query
    matches = acep.match(events, parsed, **options)
    chosen, step = choose_matches(matches, MOST_MATCHES)
    return page_data(PageSource(chosen, matches.report, len(matches), step, parsed, matches.rows.frame())), matches


@pytest.mark.parametrize("query", QUERIES)
def test_columns_are_those_of_the_reference(query: str, cases: CaseCounts) -> None:
    n_matches = n_between = 0
    for seed in range(cases(200)):
        events = stream(seed)
        parsed = acep.parse(query, errors=seed % 2)
        data, _ = data_of(events, parsed)
        expected = acep.match(events, parsed, engine="reference")
        assert data.matches.numbers == tuple(range(0, len(expected), max(1, -(-len(expected) // MOST_MATCHES))))
        for place, number in enumerate(data.matches.numbers):
            check_match(data, place, expected[number], events)
        table = {column.name: column for column in data.matches.table}
        for name in expected.returns:
            values = [expected[number].values[name] for number in data.matches.numbers]
            assert list(table[name].texts) == ["null" if value is None else str(value) for value in values]
        n_matches += len(expected)
        n_between += data.rows.variables.count(-1)
    assert n_matches > 10
    assert n_between > 10


def check_match(data: PageData, place: int, match: acep.Match, events: dict[str, list[Any]]) -> None:
    """Compare the columns of a match with the match, and its rows with all rows of its key from the first bound to the
    last."""
    columns, rows = data.matches, data.rows
    assert (columns.start[place], columns.end[place], columns.errors[place]) == (match.start, match.end, match.error)
    assert columns.lanes[columns.lane[place]] == ", ".join(map(str, match.key.values()))
    shown = range(rows.offsets[place], rows.offsets[place + 1])
    row_numbers = [int(rows.table[0].texts[rows.rows[i]]) for i in shown]
    names = [rows.names[rows.variables[i]] if rows.variables[i] >= 0 else None for i in shown]
    bound = {row: variable for variable, ids in match.bindings.items() for row in ids}
    inside = range(min(bound), max(bound) + 1)
    expected_rows = [row for row in inside if all(events[name][row] == value for name, value in match.key.items())]
    assert (rows.counts[place], rows.n_bound[place]) == (len(expected_rows), len(bound))
    assert set(row_numbers) <= set(expected_rows)
    if len(expected_rows) <= len(shown):
        assert row_numbers == expected_rows
    bound_rows = [(row, name) for row, name in zip(row_numbers, names, strict=True) if name]
    assert set(bound_rows) <= set(bound.items())
    if len(bound) <= len(shown):
        assert bound_rows == sorted(bound.items())
        assert [rows.steps[i] for i in shown if rows.steps[i] >= 0] == [*range(len(bound))]
    assert len(data.walks[place]) == len(bound)


def test_rows_of_a_stream_that_is_out_of_order_and_has_ids() -> None:
    events = {"ts": [3, 1, 2, 1], "n": [0, 1, 0, 0], "type": list("bxxa"), "name": ["p", "q", "r", "s"]}
    matches = acep.match(events, "PATTERN SEQ(a first, b last) WITHIN 9", seq="n", id="name")
    rows = event_rows(matches, matches.rows.frame(), page_axis(1, 3, calendar=False), 100)
    assert [rows.table[0].texts[row] for row in rows.rows] == ["s", "q", "r", "p"]
    assert rows.variables == (0, -1, -1, 1)
    assert rows.times == (3.0, 1.0, 2.0, 1.0) or [rows.times[row] for row in rows.rows] == [1.0, 1.0, 2.0, 3.0]


def test_a_long_match_shows_its_ends_and_says_how_much_is_left_out() -> None:
    n_events = 5_000
    events = {"ts": list(range(n_events)), "type": ["a", *"x" * (n_events - 2), "b"]}
    data, _ = data_of(events, "PATTERN SEQ(a p, b q) WITHIN 9999")
    assert data.rows.counts == (n_events,)
    assert len(data.rows.rows) == ROWS_OF_MATCH
    assert data.rows.table[0].texts[0] == "0"
    assert data.rows.table[0].texts[-1] == str(n_events - 1)
    assert data.notes == (f"at most {ROWS_OF_MATCH} rows of each match are shown, and 1 match has more",)


def test_more_bound_rows_than_are_shown() -> None:
    n_events = 1_000
    events = {"ts": list(range(n_events)), "type": ["a", *"b" * (n_events - 2), "c"]}
    query = "PATTERN SEQ(a p, b+ q[], c r) WHERE strict_contiguity(p, q[], r) { } WITHIN 9999"
    data, matches = data_of(events, query.replace(" { }", ""))
    assert len(matches) == 1
    assert (data.rows.n_bound, len(data.rows.rows)) == ((n_events,), ROWS_OF_MATCH)
    assert data.rows.steps[0] == 0
    assert data.rows.steps[-1] == n_events - 1


def test_of_many_matches_some_are_shown_and_it_says_which() -> None:
    n_events = 4_500
    events = {"ts": list(range(n_events)), "type": ["a", "b", "x"] * (n_events // 3), "x": list(range(n_events))}
    data, matches = data_of(events, acep.regex("ab", within=1))
    assert len(matches) == 1_500
    assert data.matches.numbers == tuple(range(0, 1_500, 2))
    assert data.matches.total == 1_500
    assert "shown: 750 of 1,500 matches, one of every 2 in output order, beginning with match 0" in data.notes
    assert data.title == "1,500 matches"


@pytest.mark.long
def test_the_data_are_bounded_whatever_the_events_have() -> None:
    n_events = 3_000
    columns = {f"column {number}": ["é<&" * 100] * n_events for number in range(40)}
    events = pa.table({"ts": range(n_events), "type": ["a", "b", "x"] * (n_events // 3), **columns})
    data, matches = data_of(events, acep.regex("ab", within=1))
    assert len(matches) == 1_000
    assert len(as_json(data).encode()) <= MOST_BYTES
    assert 100 <= len(data.matches.numbers) < 1_000
    assert len(data.rows.rows) <= MOST_ROWS
    assert len(data.rows.table) == MOST_COLUMNS
    assert any(note.startswith("shown: ") for note in data.notes)
    assert "15 of 42 columns of the events are shown" in data.notes


def test_times_of_the_calendar_and_the_unit_of_durations() -> None:
    times = pa.array([0, 90_000_000, 200_000_000], pa.timestamp("us", "UTC"))
    events = pa.table({"ts": times, "type": ["a", "b", "b"]})
    matches = acep.match(events, "PATTERN SEQ(a p, b q) WITHIN 1 hour")
    columns = match_columns(matches, range(2), 2)
    assert (columns.calendar, columns.unit, columns.lengths) == (True, "min", (1.5, 200 / 60))
    assert columns.end == (90_000.0, 200_000.0)
    assert columns.axis.note == "(UTC)"
    table = {column.name: column.texts for column in columns.table}
    assert table["duration"] == ("1 min 30 s", "3 min 20 s")
    assert table["start"] == ("1970-01-01 00:00:00Z",) * 2


def test_bars_of_a_key_that_overlap_are_side_by_side() -> None:
    events = {"ts": [0, 1, 2, 3, 9, 10], "type": list("aabbab")}
    columns = match_columns(acep.match(events, "PATTERN SEQ(a p, b q) WITHIN 4"), range(5), 5)
    bars = sorted(zip(columns.start, columns.end, columns.sub_lane, strict=True))
    for n, (start, end, place) in enumerate(bars):
        for other_start, other_end, other_place in bars[n + 1 :]:
            assert place != other_place or other_start > end or start > other_end
    assert columns.depths == (4,)


def test_a_walk_goes_along_arcs_and_ends_where_the_pattern_may(cases: CaseCounts) -> None:
    n_walks = 0
    for seed in range(cases(200)):
        rng = random.Random(seed)
        query = acep.regex(rng.choice(["a(b|c)+d", "ab*c", "a{1,3}b", "(ab|ba)c"]), within=20, errors=seed % 3)
        events = {"ts": list(range(40)), "type": rng.choices("abcd", k=40)}
        steps = steps_of_query(query)
        for match in acep.match(events, query, limit=50):
            variables = [variable for _, variable in match._record.trail]  # type: ignore[union-attr]
            walk = find_walk(steps, variables)
            assert len(walk) == len(variables)
            for source, target, variable in zip((0, *walk), walk, variables, strict=False):
                assert target in [state for state, _ in steps.onward[source, variable]]
            assert walk[-1] in steps.ends
            n_walks += 1
    assert n_walks > 10


def test_the_walk_of_a_hand_written_automaton() -> None:
    up = acep.arc("begin", "middle", "e.x > 1", bind="up")
    down = acep.arc("middle", "end", "e.x < 1", bind="down")
    query = acep.Automaton([up, down], final="end").query
    data, matches = data_of({"ts": [1, 2], "x": [5, 0]}, query, type=None)
    assert len(matches) == 1
    assert data.walks == ((1, 2),)


def test_json_has_no_character_that_begins_or_ends_a_tag() -> None:
    events = {"ts": [1, 2], "type": list("ab"), "note": ["</script><script>alert(1)</script>", "\u2028<!--&amp;"]}
    data, _ = data_of(events, acep.regex("ab", within=5))
    text = as_json(data)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text)["rows"]["table"][-1]["texts"] == ["</script><script>alert(1)</script>", "\\u2028<!--&amp;"]


def column_of(data: PageData, name: str) -> ShownColumn:
    return next(column for column in data.matches.table if column.name == name)


def test_times_of_nanoseconds_stay_exact() -> None:
    begin = 1_700_000_000_000_000_000
    times = pa.array([begin, begin + 1, begin + 5, begin + 8], pa.timestamp("ns"))
    data, _ = data_of(pa.table({"ts": times, "type": list("abab")}), "PATTERN SEQ(a p, b q) WITHIN 3 ns")
    assert column_of(data, "duration").texts == ("1 ns", "3 ns")
    assert column_of(data, "start").ranks == (0, 1)
    assert (data.matches.unit, data.matches.start, data.matches.end) == ("ns", (0.0, 5.0), (1.0, 8.0))
    assert data.matches.axis.note.startswith("(ns from 2023-11-14T22:13:20")
    assert data.rows.times == (0.0, 1.0, 5.0, 8.0)


def test_values_have_exact_ranks_and_kinds() -> None:
    values = [2**53 + 1, 2**53, None, -(2**53)]
    assert column_of_values("x", values).ranks == (2, 1, None, 0)
    assert column_of_values("x", [float("inf"), 1.0, float("-inf")]).ranks == (2, 1, 0)
    assert column_of_values("x", [Decimal("10.0"), Decimal(9)]).ranks == (1, 0)
    spans = column_of_values("x", [timedelta(minutes=90), timedelta(minutes=2)], unit="min")
    assert (spans.kind, spans.numbers, spans.ranks) == ("duration", (90.0, 2.0), (1, 0))
    moments = [datetime(2024, 5, 1, 0, 0, 0, 500_000, tzinfo=UTC), datetime(2024, 5, 1, tzinfo=UTC)]
    assert column_of_values("x", moments).ranks == (1, 0)


def test_keys_with_equal_texts_have_lanes_of_their_own() -> None:
    events = {
        "ts": [1, 2, 3, 4],
        "type": list("abab"),
        "x": ["u, v", "u, v", "u", "u"],
        "y": ["w", "w", "v, w", "v, w"],
    }
    data, _ = data_of(events, acep.regex("ab", within=1, by=["x", "y"]))
    assert data.matches.lane == (0, 1)
    assert data.matches.lanes == ("u, v, w", "u, v, w (key 2)")


def test_columns_have_distinct_names() -> None:
    events = {"ts": [1, 2], "type": list("ab"), "error": ["u", "u"]}
    data, _ = data_of(events, "PATTERN SEQ(a p, b q) WHERE [error] WITHIN 5 RETURN q.error AS duration, q.ts AS error")
    names = [column.name for column in data.matches.table]
    assert names == ["match", "key_error", "start", "end", "duration", "error", "value_duration", "value_error"]


def test_the_title_says_that_matches_were_limited() -> None:
    events = {"ts": [1, 2, 3, 4], "type": list("abab")}
    data, _ = data_of(events, acep.regex("ab", within=1), limit=1)
    assert data.title == "1 match; not exact: no more were asked for"
    assert acep.match(events, acep.regex("ab", within=1))[:1].page().data.title == "1 of 2 matches"


def test_rows_that_are_left_out_leave_gaps() -> None:
    n_events = 5_000
    events = {"ts": list(range(n_events)), "type": ["a", *"x" * (n_events - 2), "b"]}
    data, _ = data_of(events, "PATTERN SEQ(a p, b q) WITHIN 9999")
    assert sum(data.rows.gaps) > 100
    assert data_of({"ts": [1, 2, 3], "type": list("axb")}, "PATTERN SEQ(a p, b q) WITHIN 9")[0].rows.gaps == (0, 0, 0)

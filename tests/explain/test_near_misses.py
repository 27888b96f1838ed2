"""Which near miss is shown: the one that lacks the fewest events, then the fewest conditions, in each way to ask."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import acep
from acep.errors import DataError
from acep.explain.recorder import MOST_LOOKS
from tests.case_counts import CaseCounts
from tests.complaints import case_text, fail_if_wrong, fail_if_wrong_on_rows
from tests.random_cases import Case, random_case

# Repetitions ------------------------------------------------------------------------------------

PASSES = {
    "ts": [0, 1, 2, 3, 4, 5, 6, 7, 8, 60],
    "type": list("pppspppppp"),
    "x": [1, 2, 3, 99, 1, 2, 3, 4, 5, 6],
}


@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match", "partition_contiguity"])
def test_a_condition_is_blamed_and_not_the_window_of_the_longest_repetition(strategy: str) -> None:
    report = acep.why(PASSES, f"PATTERN SEQ(p+ p[], s s) WHERE {strategy}(p[], s) {{ s.x > 100 }} WITHIN 20")
    assert report.bound == {"p": (0, 1, 2)}
    assert [(failure.id, failure.reason) for failure in report.failed][:1] == [
        (3, "s.x > 100 does not hold (s.x = 99)")
    ]


def test_the_event_for_which_most_conditions_held_comes_first() -> None:
    rows = {
        "ts": [0, 1, 2, 3, 4],
        "type": list("apppb"),
        "x": [0, 9, 5, 1, 50],
        "y": [1, 2, 1, 2, 1],
    }
    query = "PATTERN SEQ(a a, p p) WHERE p.x > 6 AND p.y <= a.y AND p.x < 8 WITHIN 20"
    report = acep.why(rows, query)
    assert [(failure.id, failure.reason) for failure in report.failed] == [
        (2, "p.x > 6 does not hold (p.x = 5)"),
        (1, "p.y <= a.y does not hold (p.y = 2, a.y = 1); p.x < 8 does not hold (p.x = 9)"),
        (3, "p.x > 6 does not hold (p.x = 1); p.y <= a.y does not hold (p.y = 2, a.y = 1)"),
    ]


def test_an_equality_that_follows_from_another_is_not_said_beside_it() -> None:
    rows = {"ts": [0, 1, 2], "type": list("abc"), "x": [1, 1, 2], "y": [1, 1, 1]}
    report = acep.why(rows, "PATTERN SEQ(a p, b q, c r) WHERE p.x + 0 = q.x AND q.x = r.x AND r.x = p.y WITHIN 9")
    (failure,) = report.failed
    assert failure.reason == ("q.x = r.x does not hold (q.x = 1, r.x = 2); r.x = p.y does not hold (r.x = 2, p.y = 1)")


def test_the_event_of_a_repetition_that_fails_a_condition_is_named() -> None:
    """The last event of `q` does satisfy it, so that its value would explain nothing."""
    rows = {"ts": [0, 1, 2, 3], "type": list("abbc"), "x": [0, 9, 1, 5]}
    report = acep.why(rows, "PATTERN SEQ(a p, b{2} q[], c r) WHERE r.x > q[i].x WITHIN 9")
    assert [failure.reason for failure in report.failed] == ["r.x > q[i].x does not hold (r.x = 5, q[1].x = 9)"]


def test_conjuncts_of_having_are_told_apart() -> None:
    rows = {"ts": [0, 1, 2], "type": list("aab"), "x": [3, 2, 1]}
    report = acep.why(rows, "PATTERN SEQ(a+ p[], b q) WITHIN 9 HAVING count(p[]) > 1 AND sum(p[].x) < 5")
    assert report.bound == {"p": (0, 1), "q": (2,)}
    assert [failure.reason for failure in report.failed] == ["sum(p[].x) < 5 does not hold (sum(p[].x) = 5)"]
    report = acep.why(rows, "PATTERN SEQ(a+ p[], b q) WITHIN 9 HAVING count(p[]) > 1 AND p[1].x < 3")
    assert report.failed[0].reason == "p[1].x < 3 does not hold (p[1].x = 3)"


# A definition -----------------------------------------------------------------------------------

STEPS = ("p", "q", "r")
CONDITIONS: dict[str, tuple[set[str], Callable[[dict[str, Any]], bool]]] = {
    "p.y < 3": ({"p"}, lambda of: of["p"]["y"] < 3),
    "q.x > p.x": ({"p", "q"}, lambda of: of["q"]["x"] > of["p"]["x"]),
    "q.y < 3": ({"q"}, lambda of: of["q"]["y"] < 3),
    "r.x > q.x": ({"q", "r"}, lambda of: of["r"]["x"] > of["q"]["x"]),
    "r.y <> p.y": ({"p", "r"}, lambda of: of["r"]["y"] != of["p"]["y"]),
    "r.x > 8": ({"r"}, lambda of: of["r"]["x"] > 8),
}
CHAIN = f"PATTERN SEQ(a p, b q, c r) WHERE {' AND '.join(CONDITIONS)} WITHIN 12"


def asked_at(step: int) -> list[Callable[[dict[str, Any]], bool]]:
    """The conditions that are decided when a step is bound."""
    so_far = set(STEPS[: step + 1])
    return [holds for names, holds in CONDITIONS.values() if names <= so_far and STEPS[step] in names]


def prefixes(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[int, ...]]:
    """The row numbers of each partial match, by definition."""
    yield ()
    for size in range(1, len(STEPS) + 1):
        for chosen in combinations(range(len(rows)), size):
            of = {STEPS[step]: rows[place] for step, place in enumerate(chosen)}
            is_of_types = all(rows[place]["type"] == "abc"[step] for step, place in enumerate(chosen))
            is_in_window = rows[chosen[-1]]["ts"] - rows[chosen[0]]["ts"] <= 12
            if is_of_types and is_in_window and all(holds(of) for step in range(size) for holds in asked_at(step)):
                yield chosen


def complaint_of_nearest(rows: Sequence[dict[str, Any]]) -> str:
    """Say what is wrong with the near miss that is shown, by all partial matches of the definition."""
    report = acep.why(pa.Table.from_pylist([*rows]), CHAIN)
    partial_matches = [*prefixes(rows)]
    matches = [chosen for chosen in partial_matches if len(chosen) == len(STEPS)]
    if report.matches != len(matches):
        return f"{report.matches} matches, not {len(matches)}\n{report}"
    matched = {place for chosen in matches for place in chosen}
    misses: list[tuple[int, int, int, tuple[int, ...], int]] = []
    for chosen in partial_matches:
        if len(chosen) == len(STEPS):
            continue
        step = len(chosen)
        for place in range(chosen[-1] + 1 if chosen else 0, len(rows)):
            row = rows[place]
            is_late = bool(chosen) and row["ts"] - rows[chosen[0]]["ts"] > 12
            if row["type"] != "abc"[step] or is_late or (matches and {*chosen, place} <= matched):
                continue
            of = {STEPS[number]: rows[bound] for number, bound in enumerate(chosen)} | {STEPS[step]: row}
            results = [holds(of) for holds in asked_at(step)]
            if not all(results):
                misses.append((-step, results.count(False), -results.count(True), chosen, place))
    longest = max((len(c) for c in partial_matches if len(c) < 3 and (not matches or not {*c} <= matched)), default=0)
    shown = tuple(place for ids in report.bound.values() for place in ids)
    if not misses or -min(misses)[0] < longest:  # nothing was tried on a partial match that came further
        return "" if len(shown) == longest else f"a partial match of {longest} events is not shown\n{report}"
    best = min(misses)[:3]
    if not report.failed:
        return f"no event is shown that failed\n{report}"
    first = (shown, report.failed[0].id)
    if first not in [(chosen, place) for *rank, chosen, place in misses if tuple(rank) == best]:
        return f"{first} is not the nearest miss: {min(misses)}\n{report}"
    n_said = report.failed[0].reason.count("does not hold")
    return "" if n_said == best[1] else f"{n_said} conditions are said, not {best[1]}\n{report}"


def test_the_nearest_miss_is_that_of_the_definition(cases: CaseCounts) -> None:
    for seed in range(cases(400)):
        rng = random.Random(seed)
        rows = [
            {"ts": 2 * place, "type": rng.choice("aabbc"), "x": rng.randrange(10), "y": rng.randrange(4)}
            for place in range(rng.randrange(1, 9))
        ]
        fail_if_wrong_on_rows(rows, f"# seed {seed}", complaint_of_nearest, case_text("nearest_miss", CHAIN))


# Types ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "note"),
    [
        ("SEQ(P+ p[], s s)", "no event is of type `P`, so that nothing matches; did you mean `p`?"),
        ("SEQ(p+ p[], shot s)", "no event is of type `shot`, so that nothing matches; known: `p`, `s`"),
        ("SEQ(p+ p[], (S|t) s)", "no event is of type `S`, so that nothing matches; did you mean `s`?"),
    ],
)
def test_a_type_that_no_event_has_is_named(pattern: str, note: str) -> None:
    report = acep.why(PASSES, f"PATTERN {pattern} WITHIN 20")
    assert note in report.notes
    assert note in str(report).splitlines()
    assert acep.why(PASSES, "PATTERN SEQ(p+ p[], s s) WHERE s.x > 100 WITHIN 20").notes == ()


def test_a_type_of_another_key_is_not_said_to_be_misspelt() -> None:
    rows = {"ts": [1, 2, 3], "type": list("aab"), "k": [1, 2, 2]}
    report = acep.why(rows, "PATTERN SEQ(a p, b q) WHERE [k] WITHIN 9", key={"k": 1})
    assert report.notes == ()
    assert report.ended == "no event of type b came before the stream ended"


# Keys -------------------------------------------------------------------------------------------

KEYED = {
    "ts": [1, 2, 3, 4, 5, 6, 7],
    "type": list("abababa"),
    "k": list("uuuuvvw"),
    "x": [1, 2, 5, 4, 3, 1, 0],
}
PAIRS = "PATTERN SEQ(a p, b q) WHERE [k] AND q.x > p.x WITHIN 20"


def test_a_key_with_matches_shows_them_and_the_nearest_of_the_rest() -> None:
    assert str(acep.why(KEYED, PAIRS, key={"k": "u"})).splitlines() == [
        "k=u: 4 events, 2 matches",
        "  match: p=0 q=1",
        "  match: p=0 q=3",
        "nearest of the rest: p=2; q (type b) is needed next",
        "  event 3 is no q: q.x > p.x does not hold (q.x = 4, p.x = 5)",
        "then the stream ended",
        "  event 2: ts=3, type=a, k=u, x=5",
        "  event 3: ts=4, type=b, k=u, x=4",
    ]


def test_many_matches_are_cut() -> None:
    rows = {"ts": list(range(11)), "type": ["a"] + ["b"] * 10}
    lines = str(acep.why(rows, "PATTERN SEQ(a p, b q) WITHIN 20")).splitlines()
    assert lines[0] == "the stream: 11 events, 10 matches"
    assert lines[4:] == ["  ... and 7 more", "every event that the pattern can bind is in a match"]


def test_events_for_which_nothing_waited_are_named() -> None:
    rows = {"ts": [0, 1, 2, 50, 60], "type": list("babbc")}
    report = acep.why(rows, "PATTERN SEQ(a p, b q) WITHIN 20")
    assert report.matches == 1
    assert str(report).splitlines()[-1] == "no partial match waited for the other events that it can bind: 0, 3"


def test_of_all_keys_the_nearest_without_a_match_is_shown() -> None:
    report = acep.why(KEYED, PAIRS)
    assert (report.key, report.keys, report.matches) == ({"k": "v"}, 3, 0)
    assert str(report).startswith("k=v, the nearest of 3 keys: 2 events, no match\n")
    assert [failure.id for failure in report.failed] == [5]


def test_where_all_keys_have_matches_the_nearest_is_shown_too() -> None:
    rows = {"ts": [1, 2, 3, 4], "type": list("abab"), "k": list("uuvv"), "x": [1, 2, 3, 4]}
    assert acep.why(rows, PAIRS).matches == 1


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        ({"ts": [1], "type": ["a"], "k": [None], "x": [1]}, "nothing is bound: no event has a value of k"),
        ({"ts": [], "type": [], "k": [], "x": []}, "nothing is bound: no event has a value of k"),
    ],
)
def test_no_event_has_a_key(rows: dict[str, list[Any]], state: str) -> None:
    table = pa.table(
        {name: pa.array(values, pa.string() if name == "type" else pa.int64()) for name, values in rows.items()}
    )
    assert acep.why(table, PAIRS).state == state


# Rows -------------------------------------------------------------------------------------------


NEXT = "event {}, the next row that was named, could not be bound"


def test_rows_that_are_no_match_are_followed_to_the_one_that_failed() -> None:
    assert str(acep.why(KEYED, PAIRS, rows=[2, 3])).splitlines() == [
        "k=u: 4 events, no match of rows 2, 3",
        "furthest: p=2; q (type b) is needed next",
        "  event 3 is no q: q.x > p.x does not hold (q.x = 4, p.x = 5)",
        "then event 3, the next row that was named, could not be bound",
        "  event 2: ts=3, type=a, k=u, x=5",
        "  event 3: ts=4, type=b, k=u, x=4",
    ]


def test_a_match_of_the_rows_is_shown() -> None:
    report = acep.why(KEYED, PAIRS, rows=[1])
    assert (report.matches, report.examples) == (1, ({"p": (0,), "q": (1,)},))
    assert str(report).startswith("k=u: 4 events, 1 match of row 1 and others\n  match: p=0 q=1\n")


def test_a_match_of_exactly_the_rows_comes_before_those_with_more_events() -> None:
    events = {"ts": [1, 2, 3], "type": ["a", "a", "b"]}
    query = "PATTERN SEQ(a+ p[], b q) WITHIN 9"
    report = acep.why(events, query, rows=[0, 2])
    assert (report.matches, report.examples) == (1, ({"p": (0,), "q": (2,)},))
    assert str(report).startswith("the stream: 3 events, 1 match of rows 0, 2\n")
    several = acep.why(events, query, rows=[2])
    assert str(several).startswith("the stream: 3 events, 3 matches of row 2 and others\n")


@pytest.mark.parametrize(
    ("pattern", "rows", "bound", "failure", "ended"),
    [
        (
            "SEQ(a p, b q) WITHIN 9",
            [1, 2],
            {},
            "its type is b, not a",
            "the first row that was named could not begin a match",
        ),
        ("SEQ(a p, b q, c r) WITHIN 9", [0, 2], {"p": (0,)}, "its type is a, not b", NEXT.format(2)),
        ("SEQ(a p, b q, d r) WITHIN 3", [0, 1], {"p": (0,), "q": (1,)}, None, "no other row was named"),
        (
            "SEQ(a p, b q, c r) WITHIN 4",
            [0, 1, 5],
            {"p": (0,), "q": (1,)},
            "it comes 5 after event 0, and the window is 4",
            NEXT.format(5),
        ),
        (
            "SEQ(a p, b q, c r) WITHIN 3 EVENTS",
            [0, 1, 5],
            {"p": (0,), "q": (1,)},
            "it is number 6 from event 0 on, and the window is 3 EVENTS",
            NEXT.format(5),
        ),
        (
            "SEQ(a p, b q) WHERE skip_till_next_match WITHIN 9",
            [0, 3],
            {"p": (0,)},
            None,
            "event 1, which was not named, had to be bound to q: skip till next match",
        ),
        (
            "SEQ(a p, c r) WHERE partition_contiguity(p, r) { r.x > 2 } WITHIN 9",
            [4, 5],
            {"p": (4,)},
            "r.x > 2 does not hold (r.x = 2)",
            NEXT.format(5),
        ),
        (
            "SEQ(a p, c r) WHERE partition_contiguity WITHIN 9",
            [0, 5],
            {"p": (0,)},
            None,
            "partition contiguity: event 1 came in between",
        ),
        (
            "SEQ(a p, ~b n, c r) WHERE n.ts > 2 WITHIN 9",
            [0, 5],
            {"p": (0,), "r": (5,)},
            "no such b may come there",
            "a negation is broken",
        ),
        (
            "SEQ(a p, b q) WITHIN 9 OUTPUT NON OVERLAP",
            [0, 3],
            {"p": (0,), "q": (3,)},
            None,
            "the output chose between it and others: p=0 q=1 overlaps with it",
        ),
        (
            "SEQ(a p, b q, c r) WITHIN 9 HAVING r.x > 5",
            [0, 1, 5],
            {"p": (0,), "q": (1,), "r": (5,)},
            "r.x > 5 does not hold (r.x = 2)",
            "HAVING leaves it out",
        ),
        ("a p WITHIN 9", [0, 2], {"p": (0,)}, None, NEXT.format(2)),
        ("a+ p[] WITHIN 9", [0, 1], {"p": (0,)}, "its type is b, not a", NEXT.format(1)),
    ],
)
def test_each_way_in_which_rows_are_no_match(
    pattern: str, rows: list[int], bound: dict[str, tuple[int, ...]], failure: str | None, ended: str
) -> None:
    table = {"ts": [0, 1, 2, 3, 4, 5], "type": list("ababac"), "x": [0, 0, 0, 0, 0, 2]}
    report = acep.why(table, f"PATTERN {pattern}", rows=rows)
    assert (report.matches, report.bound, report.ended) == (0, bound, ended), report
    assert [one.reason for one in report.failed] == ([failure] if failure else []), report


def test_rows_of_several_keys_or_of_none() -> None:
    report = acep.why(KEYED, PAIRS, rows=[0, 5])
    assert report.state == (
        "nothing is bound: all events of a match have one value of k, and the rows have several: k=u (event 0), "
        "k=v (event 5)"
    )
    null = {**KEYED, "k": [None, *KEYED["k"][1:]]}
    assert "event 0 has no value of k" in acep.why(null, PAIRS, rows=[0, 1]).state
    assert "is of k=u, not of k=v" in acep.why(KEYED, PAIRS, rows=[0, 1], key={"k": "v"}).state
    assert acep.why(KEYED, PAIRS, rows=[4, 5], key={"k": "v"}).failed[0].id == 5


def test_rows_are_named_by_ids_numbers_or_truth_values() -> None:
    frame = pd.DataFrame(KEYED).assign(name=list("ABCDEFG"))
    by_number = str(acep.why(frame, PAIRS, rows=[3, 2, 3]))
    assert str(acep.why(frame, PAIRS, rows=frame.index[[2, 3]])) == by_number
    assert str(acep.why(frame, PAIRS, rows=(frame["k"] == "u") & (frame["ts"] > 2))) == by_number
    assert str(acep.why(frame, PAIRS, rows=pa.array([2, 3]))) == by_number
    by_name = acep.why(frame, PAIRS, rows=["C", "D"], id="name")
    assert by_name.failed[0].id == "D"
    assert str(acep.why(frame, PAIRS, rows=frame["x"].between(4, 5), id="name")) == str(by_name)
    assert str(acep.why(frame, PAIRS, rows="C", id="name")) == str(acep.why(frame, PAIRS, rows=["C"], id="name"))


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([0, 99], {}, "there is no event 99"),
        ([-1], {}, "there is no event -1"),
        ([], {}, "rows= names no event"),
        ([False] * 7, {}, "rows= names no event"),
        ([True], {}, "rows= has 1 truth values, and there are 7 rows"),
        (["Z"], {"id": "name"}, "there is no event Z"),
        (object(), {}, "there is no event"),
        ({"a": 1}, {}, "there is no event a"),
    ],
)
def test_rows_that_are_none(rows: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        acep.why({**KEYED, "name": list("ABCDEFG")}, PAIRS, rows=rows, **options)


def test_what_is_said_of_rows_is_true(cases: CaseCounts) -> None:
    for seed in range(cases(250)):
        case = random_case(seed)
        if not case.query().sources:
            fail_if_wrong(case, partial(complaint_of_rows, seed))


def complaint_of_rows(seed: int, case: Case) -> str:
    """Say what is wrong with the report on some rows of the first key that has two events."""
    rng, query = random.Random(seed), case.query()
    matches = acep.match(case.table(), query, **case.stream)
    names = [row["id"] if "id" in case.stream else place for place, row in enumerate(case.events)]
    places = sorted(
        range(len(names)), key=lambda p: (case.events[p]["ts"], case.events[p]["seq"] if "seq" in case.stream else p)
    )
    keys = {place: tuple(case.events[place][name] for name in matches.keys) for place in places}
    for key in dict.fromkeys(keys.values()):
        of_key = [names[place] for place in places if keys[place] == key]
        if len(of_key) < 2 or any(value is None or value != value for value in key):
            continue
        chosen = sorted(rng.sample(range(len(of_key)), rng.randrange(1, min(4, len(of_key)) + 1)))
        rows = [of_key[number] for number in chosen]
        report = acep.why(case.table(), query, rows=rows, **case.stream)
        binding = [match for match in matches if {*rows} <= {i for ids in match.bindings.values() for i in ids}]
        exact = [match for match in binding if {*rows} == {i for ids in match.bindings.values() for i in ids}]
        bound = {i for ids in report.bound.values() for i in ids}
        failed = {failure.id for failure in report.failed if failure.arc[0] != "~"}
        if report.matches != len(exact or binding):
            return f"{report.matches} matches of {rows}, not {len(exact or binding)}\n{report}"
        if binding and (" and others" in str(report)) != (not exact):
            return f"it is not said whether the matches bind exactly {rows}\n{report}"
        if binding:
            continue
        if bound != {*rows[: len(bound)]}:
            return f"not the first of the rows {rows} are bound\n{report}"
        if not failed <= {rows[len(bound)] if len(bound) < len(rows) else rows[-1]}:
            return f"another event than the next of the rows {rows} failed\n{report}"
        if report.ended == "it was found" or not report.ended:
            return f"no reason is said\n{report}"
        return ""
    return ""


# Bounds and displays ----------------------------------------------------------------------------


@pytest.mark.long
def test_the_work_is_bounded_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """2^n partial matches: after so many transition evaluations no further events are looked at."""
    assert MOST_LOOKS <= 300_000
    monkeypatch.setattr("acep.explain.recorder.MOST_LOOKS", 10_000)
    rows = {"ts": list(range(200)), "type": ["a"] + ["b"] * 198 + ["c"], "x": [0] * 200}
    report = acep.why(rows, "PATTERN SEQ(a p, b+ q[], c r) WHERE r.x > 0 WITHIN 500")
    assert report.events == 200
    assert report.looked_at is not None
    assert 10 < report.looked_at < 20
    assert f"only the first {report.looked_at} events were looked at" in str(report)
    assert "the stream ended" not in str(report)
    named = acep.why(rows, "PATTERN SEQ(a p, b+ q[], c r) WHERE r.x > 0 WITHIN 500", rows=[0, 5, 9, 199])
    assert named.failed[0].reason == "r.x > 0 does not hold (r.x = 0)"
    keyed = {**rows, "k": [place % 2 for place in range(200)], "type": ["a", "a"] + ["b"] * 196 + ["c", "c"]}
    noted = acep.why(keyed, "PATTERN SEQ(a p, b+ q[], c r) WHERE [k] AND r.x > 0 WITHIN 500").notes
    assert len(noted) == 1
    assert "of 200 events were looked at" in noted[0]


@pytest.mark.parametrize("output", ["ALL", "NON OVERLAP", "EARLIEST MAXIMAL"])
def test_events_that_were_not_matched_are_said(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    """The last event ends 2^199 - 1 matches, so that it is not matched; rows are followed all the same."""
    monkeypatch.setattr("acep.explain.recorder.MOST_LOOKS", 1_000)
    monkeypatch.setattr("acep.explain.key_matches.MOST_TOUCHES", 50_000)
    monkeypatch.setattr("acep.explain.key_matches.MOST_MATCHES", 1_000)
    rows = {"ts": list(range(200)), "type": ["a"] + ["b"] * 198 + ["c"]}
    query = f"PATTERN SEQ(a p, b+ q[], c r) WITHIN 500 OUTPUT {output}"
    report = acep.why(rows, query)
    assert (report.matches, report.unmatched > 0) == (0, True)
    assert f"\nthe last {report.unmatched} events were not matched, which would take too long\n" in str(report)
    of_rows = acep.why(rows, query, rows=[0, 5, 9, 199])
    if output == "ALL":
        assert (of_rows.matches, of_rows.examples) == (1, ({"p": (0,), "q": (5, 9), "r": (199,)},))
    else:
        assert of_rows.ended == "nothing refuses it, but the output may choose others"
    assert acep.why(rows, query, rows=[0, 5, 9]).ended == "no other row was named"


def test_matches_are_counted_beyond_what_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Near misses are looked for in the first events of a key; the matches of another key do not count."""
    monkeypatch.setattr("acep.explain.recorder.MOST_LOOKS", 200)
    monkeypatch.setattr("acep.explain.key_matches.MOST_MATCHES", 50)
    rows = {"ts": list(range(200)), "type": [*"a" * 20, *"b" * 80] * 2, "k": [1] * 100 + [2] * 100, "x": [0] * 200}
    rows["x"][-1] = 1
    query = "PATTERN SEQ(a p, b q) WHERE [k] AND (p.k = 1 OR q.x > 0) WITHIN 500"
    report = acep.why(rows, query, key={"k": 2})
    assert report.looked_at is not None
    assert report.looked_at < report.events == 100
    assert (report.matches, report.unmatched) == (20, 0)
    assert report.examples[0] == {"p": (100,), "q": (199,)}


def test_a_long_repetition_is_shown_by_its_ends() -> None:
    rows = {"ts": list(range(100)), "type": ["b"] * 100, "x": list(range(100))}
    query = "PATTERN SEQ(b+ q[], c r) WHERE partition_contiguity(q[], r) WITHIN 500"
    lines = str(acep.why(rows, query)).splitlines()
    assert "q=0,1,2,3,4,...,95,96,97,98,99 (100 events); " in lines[2]
    assert len(lines) == 4 + 10


def test_a_notebook_shows_the_report() -> None:
    report = acep.why(KEYED, PAIRS)
    assert isinstance(report, acep.Furthest)
    assert repr(report) == str(report)
    assert report._repr_html_().startswith("<pre ")


def test_files_are_read(tmp_path: Any) -> None:
    path = tmp_path / "events.csv"
    pd.DataFrame(KEYED).to_csv(path, index=False)
    assert str(acep.why(path, PAIRS, rows=[2, 3])) == str(acep.why(KEYED, PAIRS, rows=[2, 3]))


def test_variable_and_type_are_told_apart_where_they_have_other_names() -> None:
    """`sx` is the type that the pattern asks for, `s` the one that the events have, and its variable is called `s`."""
    table = {"ts": [1, 2, 3], "type": ["p", "s", "s"]}
    lines = str(acep.why(table, "PATTERN SEQ(p p, sx s) WITHIN 9")).splitlines()
    assert "furthest: p=0; s (type sx) is needed next" in lines
    assert any("`sx`" in line and "`s`" in line for line in lines)
    (failure,) = acep.why(table, "PATTERN SEQ(p p, sx s) WITHIN 9", rows=[0, 1]).failed
    assert (failure.arc, failure.reason) == ("s (type sx)", "its type is s, not sx")
    text = str(acep.why(table, "PATTERN SEQ(p p, (sx s | (t | u) v)) WITHIN 9"))
    assert "s (type sx) or v (type t or u) is needed next" in text

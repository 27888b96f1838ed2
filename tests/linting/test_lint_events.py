"""Each rule fires on what it is for, and not beside it; an error means that nothing matches; examples are clean."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from acep.errors import AcepError
from acep.linting import duplicate_rules
from acep.linting.lint import RULES
from examples import data as streams
from examples import examples
from tests.case_counts import CaseCounts
from tests.complaints import fail_if_wrong
from tests.random_cases import Case, random_case
from tests.test_census import hold

N = 60


def rows(**columns: list[Any]) -> dict[str, list[Any]]:
    plain = {"ts": [10 * n for n in range(N)], "type": list("AB" * (N // 2)), "k": [n // 2 % 10 for n in range(N)]}
    return plain | {"x": list(range(N))} | columns


def twice(given: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The rows, delivered twice."""
    return {name: column * 2 for name, column in given.items()}


def with_last_again(given: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The rows, and the last one again."""
    return {name: [*column, column[-1]] for name, column in given.items()}


LONG = {"ts": [10 * n for n in range(600)], "type": ["A", "B"] * 300, "k": [n // 2 % 10 for n in range(600)]}
NESTED = [[{"n": n}] for n in range(N)]
KEYED = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 300"
TEAMS = rows(type=list("AABB" * (N // 4)), k=[0] * N, x=[1, 2] * (N // 2))
SIDES = rows(type=list("AABB" * (N // 4)), k=[0, 1] * (N // 2))
SINCE = "PATTERN A a WHERE a.ts >="
NOON = "PATTERN A a WHERE hour(a.ts) >= 12 WITHIN 3 days"
FALL = "PATTERN SEQ(ANY a, ANY b) WHERE partition_contiguity(a, b) { [k] AND b.x < a.x } WITHIN 300"
RISE = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match(a, b[]) AND [k] AND"
TIMES = [1_700_000_000 + 10 * n for n in range(N)]
# code, severity, a query and rows (with options) that it speaks of, and others of which it does not.
PAIRS: list[tuple[str, str, tuple[Any, ...], tuple[Any, ...]]] = [
    ("type_never", "error", ("PATTERN SEQ(A a, C c) WHERE [k] WITHIN 300", rows()), (KEYED, rows())),
    ("type_never", "warning", ("PATTERN SEQ(A a, C? c, B b) WHERE [k] WITHIN 300", rows()), (KEYED, rows())),
    (
        "negation_never", "warning",
        ("PATTERN SEQ(A a, ~C c, B b) WHERE [k] WITHIN 300", rows()),
        ("PATTERN SEQ(A a, ~A c, B b) WHERE [k] WITHIN 300", rows()),
    ),
    (
        "attribute_null", "warning",
        ("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 300", rows(x=[n if n % 2 else None for n in range(N)])),
        ("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 300", rows(x=[n if n != 7 else None for n in range(N)])),
    ),
    (
        "numbers_as_text", "warning",
        ("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 300", rows(x=[str(n) for n in range(N)])),
        ("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 300", rows(x=[f"v{n}" for n in range(N)])),
    ),
    (
        "null_breaks", "warning",
        (FALL, rows(x=[n if n != 7 else None for n in range(N)])),
        (FALL.replace("partition_", "strict_"), rows()),
    ),
    (
        "time_in_utc", "warning",
        (NOON, rows(ts=pa.array(TIMES, pa.timestamp("s", "Europe/Berlin")))),
        (NOON, rows(ts=pa.array(TIMES, pa.timestamp("s", "UTC")))),
    ),
    (
        "time_in_utc", "warning",
        (f"{SINCE} '2023-11-14'", rows(ts=pa.array(TIMES, pa.timestamp("s", "Europe/Berlin")))),
        (f"{SINCE} '2023-11-14 00:00+01:00'", rows(ts=pa.array(TIMES, pa.timestamp("s", "Europe/Berlin")))),
    ),
    (
        "time_in_utc", "warning",
        (f"{SINCE} TIMESTAMP '2023-11-14 00:00'", rows(ts=pa.array(TIMES, pa.timestamp("s", "Europe/Berlin")))),
        (f"{SINCE} '2023-11-14 00:00'", rows(ts=pa.array(TIMES, pa.timestamp("s")))),
    ),
    ("key_null", "error", (KEYED, rows(k=[None if n % 4 < 5 else n for n in range(N)])), (KEYED, rows())),
    (
        "key_null", "warning",
        (KEYED, rows(k=[None if n % 4 == 0 else n % 7 for n in range(N)])),
        (KEYED, rows(k=[None if n == 4 else n % 7 for n in range(N)])),
    ),
    (
        "key_unique", "error",
        (KEYED, rows(k=list(range(N)))),
        ("PATTERN A a WHERE [k] WITHIN 300", rows(k=list(range(N)))),
    ),
    (
        "key_unique", "error",
        ("PATTERN SEQ(A a, B b) WHERE NOT b.x != a.x WITHIN 300", rows()),
        ("PATTERN SEQ(A a, B b) WHERE NOT b.k != a.k WITHIN 300", rows()),
    ),
    ("key_dominant", "warning", (KEYED, rows(k=[1] * 57 + [2] * 3)), (KEYED, rows(k=[1] * 50 + [2] * 10))),
    (
        "predicate_never", "error",
        ("PATTERN SEQ(A a, B b) WHERE [k] AND a.x > 1000 WITHIN 300", rows(), {"many": True}),
        ("PATTERN SEQ(A a, B b) WHERE [k] AND a.x > 50 WITHIN 300", rows(), {"many": True}),
    ),
    (
        "predicate_never", "warning",
        ("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x + 1000 WITHIN 3000", rows(), {"many": True}),
        ("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 3000", rows(), {"many": True}),
    ),
    (
        "predicate_always", "note",
        ("PATTERN SEQ(A a, B b) WHERE [k] AND a.x >= 0 WITHIN 300", rows(), {"many": True}),
        ("PATTERN SEQ(A a, B b) WHERE [k] AND a.x >= 2 WITHIN 300", rows(), {"many": True}),
    ),
    (
        "equality_no_partition", "note",
        ("PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [k] AND b.x = a.x } WITHIN 300", TEAMS),
        ("PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { [k] AND b.x = a.x } WITHIN 300", TEAMS),
    ),
    (
        "equality_no_partition", "note",
        ("PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [k] AND NOT b.x != a.x } WITHIN 300", TEAMS),
        ("PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [k] AND b.x = a.x } WITHIN 300", rows(k=[0] * N)),
    ),
    (
        "equality_no_partition", "note",
        ("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 300 OUTPUT LONGEST NON OVERLAP", TEAMS),
        ("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 300", TEAMS),
    ),
    (
        "equality_no_partition", "note",
        ("PATTERN SEQ(A a, B b) WHERE [k] AND b.x = a.x WITHIN 4 EVENTS", TEAMS),
        ("PATTERN SEQ(A a, ~B n, B b) WHERE [k] AND b.x = a.x WITHIN 4 EVENTS", TEAMS),
    ),
    (
        "strict_over_all", "note",
        ("PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { [k] } WITHIN 300", SIDES),
        ("PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { [k] } WITHIN 300", rows(k=[0] * N)),
    ),
    (
        "strict_over_all", "note",
        ("PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { [k, x] } WITHIN 300", TEAMS),
        ("PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [k, x] } WITHIN 300", TEAMS),
    ),
    (
        "errors_lack", "warning",
        (acep.parse("PATTERN SEQ(A a, B b, C c) WHERE [k] WITHIN 300", errors=1), rows()),
        ("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 300", rows()),
    ),
    (
        "errors_lack", "note",
        (acep.parse(f"{KEYED}", errors=1), rows()),
        (acep.parse(f"{KEYED}", errors=1, weights={"a": 2, "b": 2}), rows()),
    ),
    (
        "condition_unasked", "note",
        (acep.parse(KEYED.replace("[k]", "[k] AND b.x > a.x"), errors=1), rows()),
        (acep.parse(KEYED.replace("[k]", "[k] AND b.x > 1"), errors=1), rows()),
    ),
    (
        "condition_unasked", "note",
        (acep.parse("PATTERN SEQ(A a, B b, A c) WHERE b.x > a.x AND c.x > b.x WITHIN 30", errors=1), rows()),
        (acep.parse("PATTERN SEQ(A a, B b, A c) WHERE b.k = a.k AND c.k = b.k WITHIN 30", errors=1), rows()),
    ),
    ("first_free", "warning", (f"{RISE} b.x > PREV(b.x) WITHIN 300", rows()), (f"{RISE} b.x > a.x WITHIN 300", rows())),
    (
        "first_free", "warning",
        (f"{RISE} b.x > prev(b.x, 2) WITHIN 300", rows()),
        (f"{RISE} b.x > prev(b.x) AND b[1].x > a.x WITHIN 300", rows()),
    ),
    (
        "first_free", "warning",
        ("PATTERN ANY+ a[] WHERE partition_contiguity(a[]) { [k] AND a.x > PREV(a.x) } WITHIN 300", rows()),
        ("PATTERN ANY+ a[] WHERE partition_contiguity(a[]) { [k] AND a[i].x > a[i-1].x } WITHIN 300", rows()),
    ),
    (
        "first_free", "note",
        (f"{RISE} b[i-1].x < b[i].x AND b.x > 3 WITHIN 300", rows()),
        (f"{RISE} b[i-1].x < b[i].x AND a.x < b.x WITHIN 300", rows()),
    ),
    (
        "first_free", "note",
        (f"{RISE} b.x > avg(b[..i-1].x) AND b.ts > a.ts WITHIN 300", rows()),
        (f"{RISE} b.x > avg(b[..i-1].x) AND b[1].x > a.x WITHIN 300", rows()),
    ),
    (
        "first_free", "warning",
        (f"FROM ({RISE} b.x > PREV(b.x) WITHIN 300 RETURN a.x AS x) AS T PATTERN SEQ(T s, T t) WITHIN 300", rows()),
        (f"FROM ({RISE} b.x > a.x WITHIN 300 RETURN a.x AS x) AS T PATTERN SEQ(T s, T t) WITHIN 300", rows()),
    ),
    ("window_short", "error", ("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5", rows()), (KEYED, rows())),
    (
        "window_short", "warning",
        (
            KEYED.replace("300", "1"),
            rows(ts=[min(100 * (n // 2), 2801) for n in range(N)], type=list("AABB") * 15, k=[0, 1] * 30),
        ),
        (KEYED, rows(ts=list(range(N)))),
    ),
    ("window_long", "warning", (KEYED.replace("300", "10000"), rows()), (KEYED, rows())),
    (
        "window_narrow", "error",
        ("PATTERN SEQ(A a, B b, A c) WHERE [k] WITHIN 2 EVENTS", rows()),
        ("PATTERN SEQ(A a, B b, A c) WHERE [k] WITHIN 3 EVENTS", rows()),
    ),
    (
        "ties_unordered", "warning",
        (KEYED, rows(ts=[n // 4 for n in range(N)], k=[1 + n // 30 for n in range(N)])),
        (KEYED, rows(ts=[n // 4 for n in range(N)], k=[1 + n // 30 for n in range(N)]), {"seq": "x"}),
    ),
    ("unit_suspect", "warning", (KEYED, rows(ts=TIMES), {"unit": "ms"}), (KEYED, rows(ts=TIMES), {"unit": "s"})),
    ("id_twice", "error", (KEYED, rows(x=[n // 2 for n in range(N)]), {"id": "x"}), (KEYED, rows(), {"id": "x"})),
    ("rows_twice", "warning", (KEYED, twice(rows())), (KEYED, twice(rows()) | {"x": list(range(2 * N))})),
    ("rows_twice", "warning", (KEYED, twice(rows(x=NESTED))), (KEYED, twice(rows()) | {"x": NESTED + NESTED[::-1]})),
    ("rows_twice", "warning", (KEYED, twice(rows())), (KEYED, twice(rows()), {"id": "x"})),
    ("rows_twice", "warning", (KEYED, with_last_again(rows())), (KEYED, rows())),
    ("rows_twice", "note", (KEYED, with_last_again(LONG)), (KEYED, LONG)),
    ("rows_twice", "note", (KEYED, with_last_again(LONG | {"y": [[{"n": n}] for n in range(600)]})), (KEYED, LONG)),
    ("out_of_order", "note", (KEYED, rows(ts=[10 * (n ^ 1) for n in range(N)])), (KEYED, rows())),
    (
        "any_match_repetition", "warning",
        ("PATTERN SEQ(A a, B+ b[]) WHERE [k] WITHIN 300", rows()),
        ("PATTERN SEQ(A a, B+ b[], A c) WHERE skip_till_next_match(a, b[], c) { [k] } WITHIN 300", rows()),
    ),
    ("query", "error", (KEYED.replace("[k]", "a.nothing > 1"), rows()), (KEYED, rows())),
    ("data", "error", (KEYED, rows(ts=[None] + [10 * n for n in range(1, N)])), (KEYED, rows())),
]  # fmt: skip


def look(query: str, given: dict[str, list[Any]], options: dict[str, Any] | None = None) -> acep.Findings:
    options = dict(options or {})
    if options.pop("many", False):  # enough events to try conditions on
        given = {name: [*column, *column, *column] for name, column in given.items()}
        given["ts"] = [10 * n for n in range(len(given["ts"]))]
    return acep.lint(given, query, **options)


@pytest.mark.parametrize(("code", "severity", "wrong", "right"), PAIRS, ids=[f"{p[0]}-{p[1]}" for p in PAIRS])
def test_a_rule_fires_where_it_should_and_only_there(code: str, severity: str, wrong: Any, right: Any) -> None:
    found = [one for one in look(*wrong) if one.code == code]
    assert {one.severity for one in found} == {severity}
    assert all(one.hint for one in found)
    assert [one for one in look(*right) if one.code == code] == []


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_rows_that_are_equal_are_told_by_all_columns_of_files(
    tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def file(name: str, given: dict[str, list[Any]]) -> str:
        frame, path = pd.DataFrame(given), str(tmp_path / f"{name}.{form}")
        if form == "csv":
            frame.to_csv(path, index=False)
        elif form == "jsonl":
            frame.to_json(path, orient="records", lines=True)
        else:
            frame.to_parquet(path)
        return path

    once = rows(ts=[n // 30 for n in range(N)], k=[1] * N)  # the columns that the query reads are often equal
    again, other = file("again", twice(once)), file("other", once)
    assert "rows_twice" in acep.lint(again, KEYED).codes
    assert "rows_twice" not in acep.lint([other], KEYED).codes
    assert main(["lint", KEYED, again, "--strict"]) == 1
    assert "60 of 120 rows are equal to one before them in every column" in capsys.readouterr().out
    monkeypatch.setattr("acep.linting.reading.MAX_VALUES", 4 * 2 * N - 1)  # then nothing is known
    assert "rows_twice" not in acep.lint(again, KEYED).codes


@pytest.mark.parametrize(
    "column", [pa.array(["p", "q"] * N).dictionary_encode(), pa.nulls(2 * N)], ids=["codes", "nulls"]
)
def test_rows_are_compared_by_columns_of_any_type(column: pa.Array) -> None:
    again = pa.table(twice(rows())).append_column("z", column)
    assert "rows_twice" in acep.lint(again, KEYED).codes


def test_rows_with_many_fields_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acep.linting.duplicate_rules.VALUES", 7)
    wide = [{f"k{i}": n * 10 + i for i in range(3)} for n in range(N)]
    (finding,) = [one for one in look(KEYED, twice(rows(o=wide))) if one.code == "rows_twice"]
    assert finding.message == "60 of 120 rows are equal to one before them in every column"
    nested = pa.table({"o": wide + wide[:1]})
    assert duplicate_rules._rows_again(nested) == [N]


def test_a_column_that_no_query_reads_may_be_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(f'{{"ts": {n}, "type": "A", "k": {n}, "z": {z}}}\n' for n, z in enumerate(("1", "[2]"))))
    assert "type_never" in acep.lint(path, KEYED).codes


def test_each_rule_has_an_example() -> None:
    assert {rule.__name__ for rule in RULES} <= {pair[0] for pair in PAIRS}


def test_the_roles_of_columns_with_other_names() -> None:
    given = {"When": [10 * n for n in range(N)], "what": list("AB" * (N // 2))}
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { b.ts - a.ts < 50 AND a.type != b.type } WITHIN 300"
    assert acep.lint(given, text, ts="When", type="what").codes == ["no_partition"]


def test_the_nearest_spelling_and_the_place() -> None:
    (found,) = [
        one for one in acep.lint(rows(), "PATTERN SEQ(A a, b x) WHERE [k] WITHIN 300") if one.code == "type_never"
    ]
    assert str(found).splitlines() == [
        "error: no event is of type `b`, so that nothing matches [type_never] (line 1, column 18)",
        "  PATTERN SEQ(A a, b x) WHERE [k] WITHIN 300",
        "                   ^",
        "hint: did you mean `B`?",
    ]


def test_a_condition_is_marked_where_it_stands() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE [k] AND a.x > 1000 WITHIN 300"
    (found,) = [one for one in look(text, rows(), {"many": True}) if one.code == "predicate_never"]
    assert found.span is not None
    assert "a.x > 1000"[:3] in text[found.span.start : found.span.end + 10]


def test_texts_of_which_only_some_are_numbers_are_no_finding() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 300"
    versions = [f"{n}" if n % 2 else f"{n}-beta" for n in range(N)]
    assert "numbers_as_text" not in acep.lint(rows(x=versions), text).codes


def test_an_equality_and_a_partition_are_two_questions_with_two_numbers() -> None:
    for condition in ("b.x = a.x", "NOT b.x != a.x", "a.x IN (b.x)"):
        text = f"PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) {{ [k] AND {condition} }} WITHIN 300"
        (found,) = [one for one in acep.lint(TEAMS, text) if one.code == "equality_no_partition"]
        equal, parted = (len(acep.match(TEAMS, one)) for one in (text, text.replace("[k]", "[k, x]")))
        asked = "with [x], which ignores events of another `x` in between,"
        assert f"That gives {equal} matches; {asked} there would be {parted}" in found.message
        assert (equal, parted) == (0, 30)
        assert found.hint == "leave it as it is, or write [x] if the other question is meant"


def test_strict_and_partition_contiguity_are_two_questions_with_two_numbers() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { [k] } WITHIN 300"
    strict, parted = (len(acep.match(SIDES, one)) for one in (text, text.replace("strict_", "partition_")))
    assert (strict, parted) == (0, 30)
    hints = acep.lint(SIDES, text)
    (hit,) = [one for one in hints if one.code == "strict_over_all"]
    assert hit.message == (
        "strict contiguity looks at the whole stream: an event of another `k` between two others breaks contiguity. "
        "That gives 0 matches; with partition contiguity, which ignores events of another `k` in between, there would "
        "be 30"
    )
    assert hit.hint == "leave it as it is, or write partition_contiguity if the other question is meant"
    other_hints = [one.hint for one in hints if one.code != "strict_over_all"]
    assert not any("partition contiguity" in str(one) or "partition_contiguity" in str(one) for one in other_hints)


def test_a_query_with_too_many_matches_to_count_has_no_hint_of_a_partition() -> None:
    given = {"ts": list(range(2000)), "type": ["A"] * 2000, "x": [0, 1] * 1000}
    text = "PATTERN A+ a[] WHERE a[i].x = a[i-1].x WITHIN 500 EVENTS"
    assert "equality_no_partition" not in acep.lint(given, text).codes


def test_what_an_error_budget_does_on_the_events_is_said_with_shares() -> None:
    given = {"ts": list(range(100)), "type": ["p", "p"] * 49 + ["p", "s"], "x": list(range(100))}
    text = "PATTERN SEQ(p{2} p[], ~n n, s s) WHERE strict_contiguity { s.x > p[1].x AND n.x = s.x } WITHIN 9"
    found = acep.lint(given, acep.parse(text, errors=1))
    matches = acep.match(given, acep.parse(text, errors=1))
    lack = [sum(var not in one.bindings for one in matches) / len(matches) for var in ("s",)]
    (said,) = [one.message for one in found if one.code == "errors_lack"]
    assert said.startswith(f"with errors=1, of {len(matches)} matches {lack[0]:.0%} lack `s`")
    asked = [one.message for one in found if one.code == "condition_unasked"]
    assert f"`s.x > p[1].x` is not asked where `s` is missing: in {lack[0]:.0%} of {len(matches)} matches" in asked
    assert any("so that the negation `n` cannot be broken there" in one for one in asked)


@pytest.mark.parametrize("together", [False, True])
def test_each_variable_that_is_missing_often_enough_is_in_the_hint_with_its_share(together: bool) -> None:
    """With two errors both variables of a condition may be missing from one match."""
    given = {"ts": list(range(100)), "type": list("pqnxx" * 20), "x": list(range(100))}
    query = acep.parse(
        "PATTERN SEQ(p p, q q, n n) WHERE skip_till_any_match { n.x > p.x } WITHIN 3", errors=1 + together
    )
    matches, hints = acep.match(given, query), acep.lint(given, query)
    shares = {var: sum(var not in one.bindings for one in matches) / len(matches) for var in "pqn"}
    (unasked,) = [one for one in hints if one.code == "condition_unasked"]
    number = sum(not {"p", "n"} <= one.bindings.keys() for one in matches) / len(matches)
    assert f"in {number:.0%} of {len(matches)} matches" in unasked.message
    assert f"({shares['p']:.0%} lack `p`, {shares['n']:.0%} lack `n`)" in unasked.message
    needed = acep.match(given, replace(query, weights=(("p", None), ("n", None))))
    assert unasked.hint == (
        'a condition that must hold needs its events, as by weights={"p": math.inf, "n": math.inf}: that asks another '
        f"question ({len(matches)} matches as it is, {len(needed)} with these weights)"
    )
    (lacking,) = [one for one in hints if one.code == "errors_lack"]
    for var in "pqn":
        assert shares[var] >= 0.05
        assert f"{shares[var]:.0%} lack `{var}`" in lacking.message
        assert f'"{var}": math.inf' in str(lacking.hint)


def test_the_hint_of_a_condition_that_is_not_asked_removes_it() -> None:
    text = "PATTERN SEQ(A a, B b, A c) WHERE b.x > a.x AND c.x > b.x WITHIN 30"
    (finding, *_) = [f for f in acep.lint(rows(), acep.parse(text, errors=1)) if f.code == "condition_unasked"]
    assert finding.hint is not None
    assert 'as by weights={"a": math.inf, "b": math.inf}: ' in finding.hint
    needed = acep.parse(text, errors=1, weights={"a": math.inf, "b": math.inf})
    asked = [f.message for f in acep.lint(rows(), needed) if f.code == "condition_unasked"]
    assert not any("`b.x > a.x`" in message for message in asked)


@pytest.mark.parametrize(
    ("condition", "first"),
    [
        ("b.x > PREV(b.x)", "b[1].x > a.x"),
        ("PREV(b.x) > b.x", "b[1].x < a.x"),
        ("b[i].x != b[i-1].x", "b[1].x != a.x"),
    ],
)
def test_the_remedy_of_a_first_event_that_is_free(condition: str, first: str) -> None:
    text = f"PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match(a, b[]) {{ [k] AND {condition} }} WITHIN 300"
    (found,) = [one for one in acep.lint(rows(), text) if one.code == "first_free"]
    assert found.hint == f"say what holds for the first one too, as in {first}: that asks another question"
    assert found.span is not None
    assert text[found.span.start : found.span.end] == condition
    tied = acep.lint(rows(), text.replace(condition, f"{condition} AND {first}"))
    assert "first_free" not in tied.codes


def test_a_suspect_unit_of_a_plain_window_is_in_the_hint() -> None:
    given = rows(ts=[1000 * one for one in TIMES])
    (found,) = [one for one in acep.lint(given, KEYED.replace("300", "5")) if one.code == "window_short"]
    assert "looks like ms" in found.hint


def test_a_measured_gap_is_written_with_three_digits() -> None:
    """In exact microseconds nobody can read it."""
    given = rows(ts=[dt.datetime(2024, 5, 1) + n * dt.timedelta(seconds=97, microseconds=123_457) for n in range(N)])
    (found,) = [one for one in acep.lint(given, KEYED.replace("300", "1 s")) if one.code == "window_short"]
    assert "the least gap is 1.62 min" in found.message


def spoilt_case(seed: int) -> Case:
    """The random case of a seed; of some a type is missing, or the key of each event is another."""
    case, rng = random_case(seed), Random(seed)
    kind, missing = rng.randrange(4), rng.choice("ABCDE")
    if kind == 0:
        return replace(case, events=[row for row in case.events if row["type"] != missing])
    if kind == 1:
        return replace(case, events=[row | {"k": number} for number, row in enumerate(case.events)])
    return case


@pytest.mark.long
def test_findings_of_each_severity_are_drawn() -> None:
    def severities_of(seed: int) -> set[str]:
        case = spoilt_case(seed)
        with suppress(AcepError):  # the query is refused
            return {finding.severity for finding in acep.lint(case.table(), case.query(), **case.stream)} or {"none"}
        return {"refused"}

    hold({"error": 0.055, "warning": 0.46, "note": 0.06, "none": 0.015}, severities_of, 150)


def test_an_error_means_that_nothing_matches(cases: CaseCounts) -> None:
    """On random queries and streams, some of them spoilt, against the reference runtime."""
    seen = Counter[str]()

    def complaint_of(case: Case) -> str:
        table, query = case.table(), case.query()
        findings = acep.lint(table, query, **case.stream)
        errors = [finding for finding in findings if finding.severity == "error"]
        seen["an error" if errors else "no error"] += 1
        if not errors:
            return ""
        try:
            matches = acep.match(table, query, engine="reference", **case.stream)
        except AcepError as error:
            refused = {finding.code for finding in findings} & {"query", "data", "id_twice"}
            return "" if refused else f"refused: {error}"
        return f"{len(matches)} matches, but {[str(error) for error in errors]}" if matches else ""

    for seed in range(cases(300)):
        with suppress(AcepError):  # the query is refused
            fail_if_wrong(spoilt_case(seed), complaint_of)
    cases.expect(seen, "an error", "no error", least=20)


# The findings on the examples with data: all are of the query alone, and true of it.
EXAMPLES = {
    "cluster_jobs/crash_loop": ["last_repetition"],
    "har_phone_watch/swing_peaks": ["last_repetition"],
    "stock_tweet_tokens/buy_point": ["last_repetition"] * 2 + ["repetitions_share_events"] * 2,
    "stock_tweet_tokens/tech2_then_fund2_1d": ["no_window"] * 2 + ["last_repetition", "composed"],
    "stock_tweet_tokens/tech2_then_fund2_3d": ["no_window"] * 2 + ["last_repetition", "composed"],
}


@pytest.mark.long
@pytest.mark.parametrize("name", ["cluster_jobs", "har_phone_watch", "stock_tweet_tokens"])
def test_the_examples_give_no_false_alarm(name: str) -> None:
    table = pq.read_table(streams.FOLDER / f"{name}.parquet")
    looked = [one for one in examples() if one.stream == name]
    assert looked
    for example in looked:
        found = acep.lint(table, example.query, seq="arrival_seq")
        assert found.codes == EXAMPLES.get(example.key, []), str(found)
    without = acep.lint(table, looked[0].query)
    more = ["ties_unordered"] if name == "stock_tweet_tokens" else []
    assert sorted(without.codes) == sorted([*EXAMPLES.get(looked[0].key, []), *more])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table(rows()), path)
    assert main(["lint", KEYED, str(path)]) == 0
    assert capsys.readouterr().out == "60 events: nothing looks wrong\n"
    assert main(["lint", KEYED, str(path), "--strict"]) == 0
    wrong = ["lint", KEYED.replace("B b", "b x"), str(path)]
    assert main(wrong) == 0
    assert "[type_never]" in capsys.readouterr().out
    assert main([*wrong, "--strict", "--json", str(tmp_path / "found.json")]) == 1
    told = json.loads((tmp_path / "found.json").read_text())
    assert [one["code"] for one in told] == ["type_never"]
    assert re.search(r"did you mean `B`", told[0]["hint"])
    assert main(["lint", KEYED, str(tmp_path / "none.csv")]) == 2


def test_hand_written_automata_and_streams_without_events() -> None:
    automaton = acep.Automaton([acep.arc("s", "t", "e.x > 1"), acep.arc("t", "end", "e.x > 2")], final="end")
    assert "query" not in acep.lint(rows(), automaton).codes
    assert acep.lint({name: [] for name in rows()}, KEYED).codes == ["data"]
    assert acep.lint({}, KEYED).codes == ["data"]


def test_a_slice_is_a_list_of_findings() -> None:
    found = acep.lint(rows(k=list(range(N))), KEYED)
    assert found[:1].codes == found.codes[:1]
    assert replace(found[0], text="") != found[0]
    assert repr(found) == str(found)

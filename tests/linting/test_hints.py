"""A hint either changes no match, or asks what was meant, or says that it asks another question, with the numbers."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import acep
from acep.linting.lint import RULES
from acep.pattern.tree import Query
from acep.plan.lint import rules as plan_rules
from tests.linting.test_lint_events import PAIRS, look
from tests.plan.test_lint import LETTERS
from tests.plan.test_lint import PAIRS as PLAN_PAIRS

ANOTHER = "asks another question"
# The kind of each rule's hint. "same": its proposal changes no match; "asks": it asks the reader for the meaning, and
# names no change but for a query without matches; "says": it says that it asks another question; "counts": and gives
# both numbers.
KINDS = {
    "type_never": "asks", "negation_never": "asks", "attribute_null": "says", "null_breaks": "counts",
    "numbers_as_text": "counts", "key_null": "says", "key_unique": "asks", "key_dominant": "same",
    "predicate_never": "asks", "predicate_always": "same", "equality_no_partition": "counts",
    "strict_over_all": "counts", "errors_lack": "counts", "condition_unasked": "counts", "first_free": "says",
    "window_short": "asks", "window_long": "asks", "window_narrow": "asks", "ties_unordered": "says",
    "time_in_utc": "says", "unit_suspect": "counts", "id_twice": "says", "rows_twice": "counts",
    "out_of_order": "same", "query": "asks", "data": "asks",
    "any_match_repetition": "counts", "last_repetition": "counts", "repetitions_share_events": "says",
    "no_window": "counts", "no_partition": "same", "nearly_partitioned": "counts", "one_order": "same",
    "single_events_match": "counts", "begins_anywhere": "counts", "large_set": "says", "many_states": "says",
    "each_value_kept": "says", "decided_late": "says", "bare_name_in_set": "says", "leading_negation": "says",
    "trailing_negation": "counts", "composed": "says", "chosen_from_all": "says",
}  # fmt: skip
QUESTIONS = ("did you mean", "known: ", "the events have no types", "check ")


def hold_kind(finding: acep.linting.report.DataFinding) -> None:
    kind, text = KINDS[finding.code], f"{finding.message} {finding.hint}"
    if kind == "same":
        assert "other question" not in finding.hint or "leave it as it is" in finding.hint
    elif kind == "asks" and finding.severity != "error":
        assert finding.hint.startswith(QUESTIONS) or "did you mean" in finding.hint or ANOTHER in finding.hint
    elif kind == "says":
        assert ANOTHER in finding.hint or finding.severity == "error"
    elif kind == "counts" and "leave it if that is meant" not in finding.hint:
        assert "other question" in finding.hint
        assert "as it is, " in finding.hint or "there would be" in text


def test_the_kind_of_the_hint_of_each_rule_is_given() -> None:
    names = {rule.__name__ for rule in (*RULES, *plan_rules.RULES)}
    assert names | {"query", "data"} == KINDS.keys()


@pytest.mark.parametrize("pair", PAIRS, ids=[f"{pair[0]}-{pair[1]}" for pair in PAIRS])
def test_the_hints_of_events(pair: Any) -> None:
    for example in pair[2:]:
        for finding in look(*example):
            hold_kind(finding)


def events(query: Query) -> dict[str, list[Any]]:
    """Return a few events of the types of the rules' examples, with their attributes."""
    rng, n = Random(5), 60
    of_letters = {"type": rng.choices("abc", k=n), "user": rng.choices([1, 2], k=n)}
    names = [*"ABCDEFG", "Stock", "rdp"]
    columns: dict[str, list[Any]] = {
        "ts": list(range(n)),
        "type": rng.choices(names, k=n),
        "L": rng.choices("CPB", k=n),
    }
    for name in ("k", "x", "id", "symbol", "volume", "user"):
        columns[name] = rng.choices([1, 2, 3], k=n)
    return columns | (of_letters if query.letters else {})


# Without those that take seconds to compile or to count, whose hints name no changed query.
TEXTS = [
    (rule, acep.parse(costly))
    for rule, costly, _ in PLAN_PAIRS
    if "FROM" not in costly and rule not in ("large_set", "bare_name_in_set")
]
TEXTS += [
    (rule, acep.regex(text, **{"within": 5, "by": "user", **options}))
    for text, options, hits in LETTERS
    for rule in sorted(hits)
    if rule != "many_states"
]


@pytest.mark.parametrize(("rule", "query"), TEXTS, ids=[f"{rule}-{n}" for n, (rule, _) in enumerate(TEXTS)])
def test_the_numbers_are_those_of_match(rule: str, query: Query) -> None:
    rows = events(query)
    unit = {"unit": "s"} if query.within is not None and query.within.unit == "ns" else {}
    findings = [finding for finding in acep.lint(rows, query, **unit) if finding.code == rule]
    assert findings
    for finding in findings:
        hold_kind(finding)
    remarks = [remark for remark in plan_rules.lint(query) if remark.rule == rule]
    for remark, finding in zip(remarks, findings, strict=True):
        assert finding.hint.startswith(remark.hint)
        for name, changed in remark.changes:
            if "more matches than are counted" not in finding.hint:
                assert f"({len(acep.match(rows, query, **unit)):,} match" in finding.hint
            if f"too many to count with {name}" not in finding.hint:
                assert f"{len(acep.match(rows, changed, **unit)):,} with {name}" in finding.hint


def hint_of(code: str, rows: Any, query: str, **options: Any) -> str:
    (hint,) = [finding.hint for finding in acep.lint(rows, query, **options) if finding.code == code]
    return hint


def without(rows: dict[str, list[Any]], name: str, type: str | None = None) -> dict[str, list[Any]]:
    """Return the rows in which a column is not null, or the type is another one."""
    n = len(rows["ts"])
    places = [i for i in range(n) if rows[name][i] is not None or (type is not None and rows["type"][i] != type)]
    return {column: [values[i] for i in places] for column, values in rows.items()}


def with_nulls(name: str) -> dict[str, list[Any]]:
    rng, n = Random(3), 400
    rows = {"ts": list(range(n)), "type": rng.choices("ab", k=n), "k": rng.choices([1, 2], k=n)}
    rows["x"] = rng.choices(range(9), k=n)
    return rows | {name: rng.choices([None, None, 1, 2], k=n)}


@pytest.mark.parametrize("end", ["", " WITHIN 3 EVENTS", " WITHIN 2"])
def test_events_without_a_key_break_strict_contiguity(end: str) -> None:
    rows, text = with_nulls("k"), f"PATTERN SEQ(a p, b q) WHERE strict_contiguity {{ [k] }}{end}"
    before, after = (len(acep.match(events, text)) for events in (rows, without(rows, "k")))
    assert before != after
    assert hint_of("key_null", rows, text).endswith(
        f"each asks another question ({before} matches as it is, {after} with these events dropped)"
    )


@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match", "partition_contiguity"])
@pytest.mark.parametrize("end", ["", " WITHIN 3 EVENTS", " WITHIN 9", " WITHIN 9 OUTPUT NON OVERLAP"])
@pytest.mark.parametrize("pattern", ["a p, b q", "a p, ~b n, a q", "a p, b q, ~a n"])
def test_elsewhere_events_without_a_key_change_no_match(strategy: str, end: str, pattern: str) -> None:
    if pattern.endswith("~a n") and not end:
        end = " WITHIN 7"
    rows, text = with_nulls("k"), f"PATTERN SEQ({pattern}) WHERE {strategy} {{ [k] }}{end}"
    matches = [acep.match(events, text, id="ts") for events in (rows, without(rows, "k"))]
    assert [one.bindings for one in matches[0]] == [one.bindings for one in matches[1]]
    assert "to drop them changes no match" in hint_of("key_null", rows, text)


def test_rows_with_null_that_are_dropped_leave_others_next_to_each_other() -> None:
    rows = with_nulls("x")
    text = "PATTERN SEQ(a p, b q) WHERE partition_contiguity { [k] AND q.x > p.x }"
    for finding in (one for one in acep.lint(rows, text) if one.code == "null_breaks"):
        type = "a" if "`p.x`" in finding.message else "b"
        before, after = (len(acep.match(events, text)) for events in (rows, without(rows, "x", type)))
        assert before != after
        assert f"({before} matches as it is, {after} with these rows dropped)" in finding.hint


@pytest.mark.parametrize("end", ["", " HAVING p.x < r.x OUTPUT NON OVERLAP"])
def test_another_strategy_and_a_bound_are_other_questions(end: str) -> None:
    rng, n = Random(4), 600
    rows = {"ts": list(range(n)), "type": rng.choices("abc", k=n), "k": rng.choices(range(6), k=n)}
    rows["x"] = rng.choices(range(9), k=n)
    text = f"PATTERN SEQ(a p, b+ q[], c r) WHERE [k] WITHIN 60{end}"
    next_match = text.replace("[k]", "skip_till_next_match { [k] }")
    numbers = [len(acep.match(rows, each)) for each in (text, next_match, text.replace("b+", "b{1,5}"))]
    assert numbers[0] > numbers[1] or end
    assert hint_of("any_match_repetition", rows, text).endswith(
        f"each asks another question ({numbers[0]:,} matches as it is, {numbers[1]:,} with skip till next match, "
        f"{numbers[2]:,} with {{1,5}})"
    )
    (finding,) = [one for one in plan_rules.lint(acep.parse(text)) if one.rule == "any_match_repetition"]
    assert finding.hint.endswith("such as {1,5}: each asks another question")


def test_numbers_that_are_read_as_numbers_are_counted() -> None:
    rng, n = Random(4), 60
    numbers = rng.choices(range(200), k=n)
    rows = {"ts": list(range(n)), "type": rng.choices("ab", k=n), "x": [str(number) for number in numbers]}
    text = "PATTERN SEQ(a p, b q) WHERE q.x > p.x WITHIN 9"
    before, after = (len(acep.match(events, text)) for events in (rows, rows | {"x": numbers}))
    assert before != after
    assert f"({before} matches as it is, {after} with numbers)" in hint_of("numbers_as_text", rows, text)


def test_rows_that_come_twice_are_counted_without_them() -> None:
    rng, n = Random(4), 60
    rows = {"ts": list(range(n)), "type": rng.choices("ab", k=n)}
    twice = {name: column + column[10:30] for name, column in rows.items()}
    text = "PATTERN SEQ(a p, b q) WITHIN 9"
    before, after = (len(acep.match(events, text)) for events in (twice, rows))
    assert f"({before} matches as it is, {after} with these rows dropped)" in hint_of("rows_twice", twice, text)


@pytest.mark.parametrize(("late", "text"), [(1, "1 event is older than one before it,"), (2, "2 events are older")])
def test_the_number_of_late_events_is_in_the_right_form(late: int, text: str) -> None:
    ts = list(range(100, 160)) + list(range(late))
    (note,) = [
        one for one in acep.lint({"ts": ts, "type": ["a"] * len(ts)}, "PATTERN a p") if one.code == "out_of_order"
    ]
    assert note.message.startswith(text)


def test_a_condition_is_only_called_idle_where_all_events_were_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"ts": list(range(200)), "type": ["a"] * 200, "x": [1] * 199 + [0]}
    monkeypatch.setattr("acep.linting.predicate_rules.MAX_EVENTS", 100)
    (finding,) = [one for one in acep.lint(rows, "PATTERN a p WHERE p.x > 0") if one.code == "predicate_always"]
    assert finding.message == "`p.x > 0` is true of the first 100 events that `p` can bind"
    assert ANOTHER in finding.hint

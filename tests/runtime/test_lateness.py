"""A Matcher that takes events in any order within a lateness, and takes back events by id."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import AcepError, DataError, QueryError, SnapshotError
from tests.case_counts import CaseCounts
from tests.complaints import case_text, difference, fail_if_wrong_on_rows

QUERIES = (
    "SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [k] }",
    "SEQ(a p, ~b n, a q) WHERE skip_till_any_match(p, q) { [k] AND q.x >= p.x }",
    "SEQ(a p, a q, ~b n) WHERE skip_till_next_match(p, q) { [k] }",
    "SEQ(a p, b+ q[], a r) WHERE partition_contiguity(p, q[], r) { [k] }",
    "{a p, b q, ANY r} WHERE skip_till_any_match(p, q, r) { [k] AND r.x > p.x }",
)
LATENESS = 5


def rows_of(rng: Random, size: int) -> list[dict[str, Any]]:
    """Events in the order of time, with many ties."""
    times = sorted(rng.randrange(size) for _ in range(size))
    return [
        {"ts": ts, "type": rng.choice("ab"), "k": rng.randrange(2), "x": rng.randrange(4), "id": i, "op": 1}
        for i, ts in enumerate(times)
    ]


def disordered(rng: Random, rows: list[dict[str, Any]], by: int) -> list[dict[str, Any]]:
    """Bring rows late by up to ``by`` ticks; rows of one time stay in order, as there is no other order of ties."""
    moved: dict[int, int] = {}
    key = [moved.setdefault(row["ts"], row["ts"] + rng.randrange(by + 1)) for row in rows]
    return [rows[i] for i in sorted(range(len(rows)), key=lambda i: (key[i], i))]


def pushes(rng: Random, rows: list[dict[str, Any]]) -> list[pa.Table]:
    """Cut rows into pushes of 1 to 9."""
    cut, parts = 0, []
    while cut < len(rows):
        size = rng.randrange(1, 10)
        parts.append(pa.Table.from_pylist(rows[cut : cut + size]))
        cut += size
    return parts


def told(found: Any) -> list[tuple[Any, ...]]:
    return [(str(one.key), one.start, one.end, one.error, str(one.bindings)) for one in found]


def pushed(matcher: acep.Matcher, parts: list[pa.Table]) -> list[tuple[Any, ...]]:
    out = [row for part in parts for row in told(matcher.push(part))]
    return out + told(matcher.finish())


@pytest.mark.parametrize("text", QUERIES)
def test_disorder_within_the_lateness_changes_nothing(text: str, cases: CaseCounts) -> None:
    for seed in range(cases(100)):
        title = f"# seed {seed}, in some disorder"
        text_of = case_text(f"seed_{seed}", f"PATTERN {text} WITHIN 6", errors=seed % 2)
        fail_if_wrong_on_rows(rows_of(Random(seed), 40), title, partial(complaint_of_disorder, text, seed), text_of)


def complaint_of_disorder(text: str, seed: int, rows: list[dict[str, Any]]) -> str:
    """Say what is given of events that come late, and what of the same events in order."""
    rng, query = Random(seed), acep.parse(f"PATTERN {text} WITHIN 6", errors=seed % 2)
    matcher = acep.Matcher(query, id="id", lateness=LATENESS)
    answer = pushed(matcher, pushes(rng, disordered(rng, rows, LATENESS)))
    wanted = told(acep.match(pa.Table.from_pylist(rows), query, id="id")) if rows else []
    counts = (matcher.report.late, matcher.report.events)
    complaint = difference(sorted(answer), sorted(wanted), ("in disorder", "in order"))
    return complaint or difference(counts, (0, len(rows)), ("late and in all, counted", "late and in all"))


@pytest.mark.parametrize("text", QUERIES)
def test_events_that_are_taken_back_never_were(text: str, cases: CaseCounts) -> None:
    """Retractions before and after their events, and corrections, which insert the id again with other values."""
    for seed in range(cases(100)):
        rng = Random(seed)
        stream: list[dict[str, Any]] = []
        for row in rows_of(rng, 40):
            stream.append(row)
            if rng.random() < 0.3:
                stream.insert(rng.choice((len(stream) - 1, len(stream))), row | {"op": -1})
                if stream[-1]["op"] == -1 and rng.random() < 0.5:
                    stream.append(row | {"x": rng.randrange(4)})
        title = f"seed {seed}\nPATTERN {text} WITHIN 6"
        fail_if_wrong_on_rows(stream, title, partial(complaint_of_retractions, text, seed))


def complaint_of_retractions(text: str, seed: int, stream: list[dict[str, Any]]) -> str:
    """Say what is given of events of which some are taken back, and what of those that are left."""
    query = acep.parse(f"PATTERN {text} WITHIN 6")
    left: dict[int, tuple[int, dict[str, Any]]] = {}
    gone_before: Counter[int] = Counter()
    for place, row in enumerate(stream):
        if row["op"] == -1 and left.pop(row["id"], None) is None:
            gone_before[row["id"]] += 1
        elif row["op"] == 1 and gone_before[row["id"]]:
            gone_before[row["id"]] -= 1
        elif row["op"] == 1:
            left[row["id"]] = (place, row)
    # Ties are in the order of their last arrival.
    rows = [row | {"n": place} for place, row in sorted(left.values(), key=lambda pair: (pair[1]["ts"], pair[0]))]
    matcher = acep.Matcher(query, id="id", lateness=LATENESS, op="op")
    answer = pushed(matcher, pushes(Random(seed), stream))
    wanted = told(acep.match(pa.Table.from_pylist(rows), query, id="id", seq="n")) if rows else []
    return difference(sorted(answer), sorted(wanted), ("given", "without what was taken back"))


def test_late_events_are_counted_and_can_be_had() -> None:
    matcher = acep.Matcher(acep.regex("ab", within=9), lateness=3)
    assert len(matcher.push({"ts": [1, 10], "type": ["a", "b"]})) == 0
    assert matcher.late.num_rows == 0
    matcher.push({"ts": [6, 7], "type": ["a", "a"]})  # 10 - 3: at 7 an event is not late
    assert matcher.late.to_pydict() == {"ts": [6], "type": ["a"]}
    assert [one.bindings for one in matcher.finish()] == [{"a": (0,), "b": (1,)}, {"a": (3,), "b": (1,)}]
    report = matcher.report
    assert (report.events, report.late, report.exact) == (3, 1, False)


def test_a_push_takes_in_all_of_its_events_before_it_decides() -> None:
    matcher = acep.Matcher(acep.regex("ab", within=9), lateness=0)
    found = matcher.push({"ts": [5, 1, 3], "type": ["x", "a", "b"]})
    assert [one.bindings for one in found] == [{"a": (1,), "b": (2,)}]


def test_punctuation_decides_what_waits() -> None:
    query = acep.parse("PATTERN SEQ(a p, ~b q) WITHIN 5")
    matcher = acep.Matcher(query, lateness=100)
    assert len(matcher.push({"ts": [1], "type": ["a"]})) == 0
    assert len(matcher.advance(5)) == 0
    assert len(matcher.advance(6)) == 1
    matcher.push({"ts": [6, 7], "type": ["a", "a"]})
    assert matcher.late["ts"].to_pylist() == [6]


@pytest.mark.parametrize("speculation", [0, 1, "inf"])
def test_an_event_after_a_punctuation_is_late_whatever_the_speculation(speculation: int | str) -> None:
    matcher = acep.Matcher(acep.regex("ab", within=9), lateness=100, speculation=speculation)
    given = [*matcher.push({"ts": [5], "type": ["b"]}), *matcher.advance(4)]
    given += matcher.push({"ts": [3], "type": ["a"]})
    assert matcher.late["ts"].to_pylist() == [3]
    assert [*given, *matcher.finish()] == []


def test_punctuation_has_the_form_of_the_times() -> None:
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    table = pa.table({"ts": pa.array([start, start + dt.timedelta(seconds=1)]), "type": ["a", "b"]})
    matcher = acep.Matcher(acep.regex("ab", within="5 s"), lateness="10 s")
    assert len(matcher.push(table)) == 0
    assert len(matcher.advance(start)) == 0
    assert len(matcher.advance(start + dt.timedelta(seconds=1))) == 1


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_snapshot_holds_what_is_held(engine: str) -> None:
    rng = Random(5)
    rows = rows_of(rng, 60)
    stream = [row for row in rows for row in ([row, row | {"op": -1}] if row["id"] % 5 == 0 else [row])]
    query = acep.parse(f"PATTERN {QUERIES[0]} WITHIN 6")
    options: dict[str, Any] = {"id": "id", "lateness": LATENESS, "op": "op", "engine": engine}
    parts, whole, out = pushes(rng, stream), acep.Matcher(query, **options), []
    matcher = acep.Matcher(query, **options)
    for part in parts:
        out += told(matcher.push(part))
        data, matcher = matcher.snapshot(), acep.Matcher(query, **options)
        matcher.restore(data)
    assert out + told(matcher.finish()) == pushed(whole, parts)
    with pytest.raises(SnapshotError):
        acep.Matcher(query, id="id", engine=engine).restore(data)


def test_blocks_and_batches_of_other_types_are_held_too() -> None:
    matcher = acep.Matcher(acep.regex("ab", within=9), lateness=5)
    small = pa.table({"ts": pa.array([2], pa.int32()), "type": pa.array(["b"]).dictionary_encode()})
    assert sum(len(one) for one in matcher.blocks(small)) == 0
    assert sum(len(one) for one in matcher.blocks({"ts": [1, 9], "type": ["a", "x"]})) == 1


@pytest.mark.parametrize("name", ["ts", "id", "n"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lateness": 5},
        {"lateness": 5, "speculation": 2},
        {"lateness": 5, "speculation": "inf"},
        {"lateness": 5, "op": "op"},
        {"seq_gaps": True},
    ],
)
def test_a_null_is_named_by_the_row_among_all_that_came(options: dict[str, Any], name: str) -> None:
    """Whatever is held, late, or taken back."""
    matcher = acep.Matcher(acep.regex("ab", within=9), seq="n", id="id", **options)
    rows = [{"ts": 10 * n, "type": "a", "id": n, "n": n, "op": 1} for n in range(7)]
    matcher.push(rows[:3])
    if options.get("lateness") is not None:
        matcher.push([rows[0] | {"id": 70, "n": 70}])  # late
    before = 3 + (options.get("lateness") is not None)
    for _ in range(2):  # a push that is refused counts no rows
        with pytest.raises(DataError, match=rf"column `{name}` is null in row {before + 2} \(rows count from 0\)"):
            matcher.push([rows[3], rows[4], rows[5] | {name: None}])
    restored = acep.Matcher(acep.regex("ab", within=9), seq="n", id="id", **options)
    restored.restore(matcher.snapshot())
    with pytest.raises(DataError, match=rf"is null in row {before} \("):
        restored.push([rows[3] | {name: None}])


@pytest.mark.parametrize("options", [{}, {"lateness": 100}, {"lateness": 100, "speculation": "inf"}])
def test_a_decimal_that_does_not_fit_is_named_by_the_same_row(options: dict[str, Any]) -> None:
    def rows(*values: str) -> pa.Table:
        held = pa.array([Decimal(value) for value in values], pa.decimal128(30, 2))
        return pa.table({"ts": [1] * len(held), "type": ["a"] * len(held), "x": held})

    matcher = acep.Matcher("PATTERN SEQ(a p, b q) WHERE q.x > p.x WITHIN 9", **options)
    matcher.push(rows("1", "2", "3"))
    with pytest.raises(DataError, match=r"in row 4 \(rows count from 0\) does not fit"):
        matcher.push(rows("4", "1" + "0" * 25))


ONE = {"ts": 5, "type": "a", "id": 1, "op": 1}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([ONE, ONE], "comes twice"),
        ([ONE | {"op": 0}], r"\+1 and -1"),
        ([ONE | {"op": None}], r"\+1 and -1"),
        ([ONE, ONE | {"op": -1, "ts": 6}], "another time"),
        ([ONE | {"op": -1}, ONE | {"op": -1}], "retracted twice"),
        ([ONE | {"ts": None}], "`ts` is null"),
        ([ONE | {"id": None}, ONE], "`id` is null"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_taken_in(rows: list[dict[str, Any]], message: str) -> None:
    matcher = acep.Matcher(acep.regex("ab", within=9), id="id", op="op", lateness=5)
    matcher.push(pa.Table.from_pylist([{"ts": 5, "type": "a", "id": 0, "op": 1}]))
    with pytest.raises(DataError, match=message):
        matcher.push(pa.Table.from_pylist(rows))
    matcher.push(pa.Table.from_pylist([{"ts": 6, "type": "b", "id": 1, "op": 1}]))
    assert [one.bindings for one in matcher.finish()] == [{"a": (0,), "b": (1,)}]


def test_a_retraction_of_an_event_that_never_came_is_told() -> None:
    matcher = acep.Matcher(acep.regex("ab", within=9), id="id", op="op", lateness=1)
    matcher.push(pa.Table.from_pylist([ONE | {"op": -1}]))
    with pytest.warns(acep.DataWarning, match=r"never came or were final, first id 1"):
        matcher.push(pa.Table.from_pylist([ONE | {"ts": 9, "id": 2}]))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"op": "op"}, QueryError, "op= takes back events by id"),
        ({"op": "op", "lateness": 3}, QueryError, "op= takes back events by id"),
        ({"lateness": "soon"}, QueryError, "is not a window"),
        ({"lateness": "3 EVENTS"}, DataError, "no span of time"),
        ({"lateness": -1}, QueryError, "positive length"),
        ({"lateness": "3 s"}, DataError, "how long a tick"),
        ({"lateness": 3, "op": "missing", "id": "id"}, DataError, "no column `missing`"),
        ({"lateness": 3, "ts": "in.at"}, DataError, "a field of another"),
    ],
)
def test_wrong_options(options: dict[str, Any], kind: type[AcepError], message: str) -> None:
    with pytest.raises(kind, match=message):
        acep.Matcher(acep.regex("ab", within=9), **options).push(
            {"ts": [1], "type": ["a"], "id": [1], "in": [{"at": 1}]}
        )


def test_without_lateness_there_is_no_punctuation() -> None:
    matcher = acep.Matcher(acep.regex("ab", within=9))
    with pytest.raises(QueryError, match="lateness="):
        matcher.advance(3)
    assert matcher.late is None


UNSORTED = {
    "view": pa.array(["u", "v", "w", "x"], pa.string_view()),
    "bytes": pa.array([b"u", b"v", b"w", b"x"], pa.binary_view()),
    "runs": pa.RunEndEncodedArray.from_arrays([3, 4], ["u", "v"]),
    "map": pa.array([[("u", 1)]] * 4, pa.map_(pa.string(), pa.int64())),
    "half": pa.array([1, 2, 3, 4], pa.float32()).cast(pa.float16()),
    "struct": pa.array([{"u": "v"}] * 4, pa.struct([("u", pa.string_view())])),
    "list": pa.array([["u"]] * 4, pa.list_(pa.string_view())),
    "coded": pa.array([1, 2, 1, 2]).dictionary_encode(),
}


@pytest.mark.parametrize("speculation", [0, 1, "inf"])
@pytest.mark.parametrize("name", UNSORTED)
def test_columns_of_any_type_may_be_late(name: str, speculation: int | str) -> None:
    table = pa.table({"ts": [5, 5, 7, 1], "type": ["a", "a", "b", "a"], name: UNSORTED[name]})
    matcher = acep.Matcher("PATTERN SEQ(a p, b q)", lateness=2, speculation=speculation)
    found = list(matcher.push(table.slice(0, 3))) + list(matcher.push(table.slice(3)))
    assert matcher.late[name].to_pylist() == table[name].to_pylist()[3:]
    assert [one.bindings for one in [*found, *matcher.finish()]] == [{"p": (0,), "q": (2,)}, {"p": (1,), "q": (2,)}]


@pytest.mark.parametrize("speculation", [0, 1, "inf"])
def test_tables_say_what_was_given_whatever_the_speculation(speculation: int | str) -> None:
    matcher = acep.Matcher("PATTERN SEQ(a p, b q)", lateness=2, speculation=speculation)
    found = matcher.push({"ts": [1, 2, 9], "type": ["a", "b", "x"]})
    (row,) = found.to_arrow().to_pylist()
    assert (row["op"], row["id"]) == (1, found[0].id)
    assert (row["bundle"] is None) == (speculation != 0)
    assert "op" not in acep.match({"ts": [1, 2], "type": ["a", "b"]}, "PATTERN SEQ(a p, b q)").to_arrow().column_names


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("first", [-(2**63), -(2**63) + 3, 2**63 - 12])
@pytest.mark.parametrize(
    "query",
    [f"PATTERN SEQ({negation}A a, B b) WITHIN 5{unit}" for negation in ("", "~C c, ") for unit in ("", " EVENTS")],
)
def test_times_near_the_ends_of_64_bits_are_revised(query: str, first: int, engine: str) -> None:
    given = [(first + 2, "A"), (first + 6, "B"), (first + 3, "B"), (first + 4, "A"), (first + 8, "A"), (first + 7, "B")]
    rows = [{"ts": ts, "type": kind} for ts, kind in given]
    matcher = acep.Matcher(query, lateness=4, speculation="inf", engine=engine)
    found = [match.op for at in range(0, 6, 2) for match in matcher.push(rows[at : at + 2])]
    found += [match.op for tick in (first + 9, 2**63 - 1) for match in matcher.advance(tick)]
    found += [match.op for match in matcher.finish()]
    assert sum(found) == len(acep.match(sorted(rows, key=lambda row: row["ts"]), query)) > 0

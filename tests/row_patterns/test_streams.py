"""A clause over a stream gives the rows that it gives over a table, however the stream is cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import acep
from acep.errors import AcepError, DataError, QueryError, SnapshotError
from acep.row_patterns import clause_stream, match_rows, row_search
from acep.row_patterns.clause_stream import ClauseStream
from acep.row_patterns.kept_rows import KeptRows
from acep.row_patterns.match_rows import match_table
from acep.row_patterns.stream_time import time_column
from acep.tables.clause_tables import ClauseTables
from tests.case_counts import CaseCounts
from tests.each_case import by_file
from tests.row_patterns.corpus.cases import Case
from tests.row_patterns.random_cases import random_case
from tests.row_patterns.test_corpus import CLAUSES, compare
from tests.row_patterns.test_differential import table_of

pytestmark = pytest.mark.usefixtures("shared_plans")
N_RANDOM, N_PARTS = 3_000, 6
TIMES = (pa.types.is_integer, pa.types.is_timestamp, pa.types.is_date)


def stream_table(case: Case) -> pa.Table | None:
    """Return the rows of a case in the order of time; ``None`` if they are no stream."""
    try:
        name = time_column(match_rows.plan_clause(case.table.schema, case.text))
    except QueryError:
        return None
    column = case.table.column(name)
    if column.null_count or not any(is_time(column.type) for is_time in TIMES):
        return None
    return case.table.take(pc.sort_indices(case.table, sort_keys=[(name, "ascending")]))


def batches_of(table: pa.Table, size: int) -> list[pa.Table]:
    """Return rows in batches of a size; one batch if there are none."""
    return [table.slice(begin, size) for begin in range(0, max(table.num_rows, 1), size)]


def run_stream(text: str, batches: Sequence[pa.Table], *, restores: bool = False) -> pa.Table:
    """Return all that a matcher gives; after each batch it may go on from a snapshot."""
    matcher = acep.Matcher(text)
    results = []
    for batch in batches:
        results.append(matcher.push(batch))
        if restores:
            data, matcher = matcher.snapshot(), acep.Matcher(text)
            matcher.restore(data)
    return pa.concat_tables([*results, matcher.finish()])


SIZES = (1, 7)
"""Of the batches of a case of the corpus, one for the case in turn; after batches of 7 rows a snapshot goes on."""
TURNS = {case.id: turn for turn, case in enumerate(CLAUSES)}


@pytest.mark.parametrize("turn", [0, pytest.param(1, marks=pytest.mark.whole)])
@by_file(CLAUSES)
def test_corpus(case: Case, turn: int) -> None:
    size = SIZES[(TURNS[case.id] + turn) % len(SIZES)]
    if (table := stream_table(case)) is not None:
        compare(case, run_stream(case.text, batches_of(table, size), restores=size == 7))


@pytest.mark.long
@by_file(CLAUSES)
def test_corpus_in_one_batch(case: Case) -> None:
    if (table := stream_table(case)) is not None:
        compare(case, run_stream(case.text, [table]))


@by_file(CLAUSES)
@pytest.mark.long
def test_corpus_by_the_reference_engine(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_search, "USE_NATIVE", False)
    if (table := stream_table(case)) is not None:
        compare(case, run_stream(case.text, batches_of(table, 2)))


@pytest.mark.long
def test_most_cases_of_the_corpus_are_streams() -> None:
    assert sum(stream_table(case) is not None for case in CLAUSES) > 0.9 * len(CLAUSES)


def random_streams(part: int, count: int) -> Iterator[tuple[Random, str, pa.Table]]:
    """Yield the clauses and tables of random cases that are streams, in the order of time."""
    for seed in range(part, count, N_PARTS):
        case = random_case(seed)
        table = table_of(case.columns, case.rows, case.kinds, case.unit)
        try:
            name = time_column(match_rows.plan_clause(table.schema, case.text))
        except QueryError:
            continue
        if name == "ts" and not table.column("ts").null_count:
            yield Random(seed), case.text, table.take(pc.sort_indices(table, sort_keys=[("ts", "ascending")]))


def random_batches(rng: Random, table: pa.Table) -> list[pa.Table]:
    """Return rows in batches of random sizes, some of them empty."""
    size = rng.choice([1, 2, 3, 5])
    cuts = sorted(rng.randint(0, table.num_rows) for _ in range(table.num_rows // size))
    return [table.slice(begin, end - begin) for begin, end in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]


def outcome(text: str, batches: Sequence[pa.Table], **options: object) -> pa.Table | None:
    """Return what a matcher gives for batches; ``None`` where a match cannot be answered for."""
    matcher = acep.Matcher(text, **options)  # type: ignore[arg-type]
    try:
        return pa.concat_tables([*map(matcher.push, batches), matcher.finish()])
    except DataError:
        return None


def texts_of(table: pa.Table) -> list[str]:
    """Return a text for each row."""
    return [repr(list(row.values())) for row in table.to_pylist()]


def same_rows(text: str, stream: pa.Table | None, table: pa.Table) -> str | None:
    """Say how the rows of a stream differ from those of the whole table, ``None`` if they do not."""
    try:
        expected = match_table(match_rows.plan_clause(table.schema, text), table)
    except DataError as error:
        return None if stream is None else f"the stream gives {texts_of(stream)}, not {error}"
    if stream is None:
        return f"the stream raises an error, not {texts_of(expected)}"
    if stream.schema != expected.schema:
        return f"the stream has {stream.schema}, not {expected.schema}"
    rows, expected_rows = texts_of(stream), texts_of(expected)
    return None if sorted(rows) == sorted(expected_rows) else f"the stream gives {rows}, not {expected_rows}"


@pytest.mark.parametrize("part", range(N_PARTS))
def test_random_streams(part: int, cases: CaseCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clause_stream, "LEAST_WALK", 1 + part % 3)  # 1: each open match is walked on
    count = 0
    for rng, text, table in random_streams(part, cases(N_RANDOM)):
        count += 1
        batches = random_batches(rng, table)
        difference = same_rows(text, outcome(text, batches), table)
        assert difference is None, f"{difference}\n{text}\n{[batch.to_pylist() for batch in batches]}"
    cases.expect({"streams": count}, "streams", least=N_RANDOM // N_PARTS // 3)


def rows_by_push(text: str, batches: Sequence[pa.Table]) -> list[list[str]]:
    """Return what each push gives, the last of them the end of the stream, until a match cannot be answered for."""
    matcher = acep.Matcher(text)
    rows: list[list[str]] = []
    with suppress(DataError):
        rows += (texts_of(matcher.push(batch)) for batch in batches)
        rows.append(texts_of(matcher.finish()))
    return rows


@pytest.mark.parametrize("part", range(N_PARTS))
def test_a_walk_gives_rows_as_early_as_a_search(part: int, cases: CaseCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    for rng, text, table in random_streams(part, cases(N_RANDOM)):
        batches = random_batches(rng, table)
        rows = []
        for least in (1, 1_000):
            monkeypatch.setattr(clause_stream, "LEAST_WALK", least)
            rows.append(rows_by_push(text, batches))
        assert rows[0] == rows[1], f"{text}\n{[batch.to_pylist() for batch in batches]}"


def disordered(rng: Random, table: pa.Table) -> tuple[pa.Table, int]:
    """Return rows with numbers ``i`` in another order, and by how much their times are out of order. Rows of one time
    stay in their order, which is that of the stream."""
    times = table.column("ts").cast(pa.int64()).to_pylist()
    span = rng.choice([1, 3, 10]) * (max(times) - min(times)) // 12 if times else 0
    delays = {time: time + rng.randint(0, span) for time in times}
    order = sorted(range(len(times)), key=lambda row: (delays[times[row]], row))
    shuffled = table.take(pa.array(order, pa.int64()))
    greatest, lateness = -(2**62), 0
    for row in order:
        greatest = max(greatest, times[row])
        lateness = max(lateness, greatest - times[row])
    return shuffled, lateness


@pytest.mark.parametrize("part", range(N_PARTS))
def test_random_streams_out_of_order(part: int, cases: CaseCounts) -> None:
    for rng, text, table in random_streams(part, cases(N_RANDOM)):
        if not pa.types.is_integer(table.schema.field("ts").type):
            continue
        shuffled, lateness = disordered(rng, table)
        batches = random_batches(rng, shuffled)
        difference = same_rows(text, outcome(text, batches, lateness=lateness), table)
        assert difference is None, f"{difference}\n{text}\n{[batch.to_pylist() for batch in batches]}"


@pytest.mark.parametrize("part", range(N_PARTS))
def test_random_streams_that_are_revised(part: int, cases: CaseCounts) -> None:
    """At each moment the rows given, less those taken back, are those of the rows so far in the order of time."""
    retracted = 0
    for rng, text, rows in random_streams(part, cases(N_RANDOM // 2)):
        if not pa.types.is_integer(rows.schema.field("ts").type):
            continue
        table = rows.append_column("id", pa.array(range(rows.num_rows), pa.int64()))
        if same_rows(text, outcome(text, [rows]), rows) is not None or outcome(text, [rows]) is None:
            continue  # it ends in an error
        with_ops, corrected = corrections(rng, table)
        retracted += check_revisions(rng, text, with_ops, corrected)
    cases.expect({"retracted": retracted}, "retracted")


def corrections(rng: Random, table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return rows out of order, some of which come and are taken back (``op`` -1), and those that are left."""
    shuffled, _ = disordered(rng, table)
    arrivals: list[tuple[float, int, dict[str, object]]] = []
    left = []
    for place, row in enumerate(shuffled.to_pylist()):
        arrivals.append((place, 1, row))
        if rng.random() < 0.2:
            arrivals.append((place + rng.random() * 4, -1, row))
        else:
            left.append(row["id"])
    arrivals.sort(key=lambda arrival: (arrival[0], -arrival[1]))
    rows = [row | {"op": sign} for _, sign, row in arrivals]
    stays = pc.is_in(table.column("id"), value_set=pa.array(left, pa.int64()))
    schema = table.schema.append(pa.field("op", pa.int64()))
    return pa.Table.from_pylist(rows, schema=schema), table.filter(stays)


def check_revisions(rng: Random, text: str, rows: pa.Table, corrected: pa.Table) -> int:
    """Assert that what is given, less what is taken back, is right; return how many rows were taken back."""
    matcher = acep.Matcher(text, id="id", op="op", lateness="inf", speculation="inf")
    current_rows: list[str] = []
    retracted, so_far = 0, []
    for batch in [*random_batches(rng, rows), None]:
        try:
            result = matcher.finish() if batch is None else matcher.push(batch)
        except DataError:
            return 0  # rows that are taken back may lead to a match that AFTER MATCH SKIP cannot go on from
        for sign, content in changes_of(result):
            if sign > 0:
                current_rows.append(content)
            else:
                current_rows.remove(content)
                retracted += 1
        if rng.random() < 0.3 and batch is not None:
            data = matcher.snapshot()
            matcher = acep.Matcher(text, id="id", op="op", lateness="inf", speculation="inf")
            matcher.restore(data)
        so_far += [] if batch is None else batch.to_pylist()
        if batch is not None:
            expected = stream_so_far(text, so_far, corrected.schema)
            assert expected is None or sorted(current_rows) == sorted(expected), (
                f"{current_rows}, not {expected}\n{text}\n{so_far}"
            )
    whole = match_table(match_rows.plan_clause(corrected.schema, text), corrected)
    assert sorted(current_rows) == sorted(texts_of(whole)), text
    return retracted


def changes_of(result: pa.Table) -> list[tuple[int, str]]:
    """Return the sign of each row, and its content."""
    ops = result.column("op").to_pylist()
    return list(zip(ops, texts_of(result.drop_columns(["op"])), strict=True))


def stream_so_far(text: str, rows: Sequence[dict[str, object]], schema: pa.Schema) -> list[str] | None:
    """Return what a matcher has given for the rows that are left, in order; ``None`` where it raises an error."""
    gone = {row["id"] for row in rows if row["op"] == -1}
    left = [{name: row[name] for name in schema.names} for row in rows if row["op"] == 1 and row["id"] not in gone]
    left.sort(key=lambda row: row["ts"])  # type: ignore[arg-type, return-value]
    try:
        return texts_of(acep.Matcher(text).push(pa.Table.from_pylist(left, schema=schema)))
    except AcepError:
        return None


def rows_searched(text: str, table: pa.Table, size: int) -> int:
    """Return how many rows a stream searches, those that it searches again among them."""
    stream = ClauseStream(match_rows.plan_clause(table.schema, text), table.schema)
    for batch in batches_of(table, size):
        stream.push(batch, batch.column("ts")[-1].as_py())
    stream.finish()
    return stream.searched_rows


@pytest.mark.parametrize(
    "text",
    [
        "ORDER BY ts MEASURES count(*) AS n PATTERN (A B*) DEFINE B AS ts - PREV(ts) < 10",
        "ORDER BY ts MEASURES count(*) AS n PATTERN (A+ C) DEFINE A AS x = 1, C AS x = 2",
        "ORDER BY ts MEASURES count(*) AS n PATTERN (A B+ C) DEFINE B AS x = 1 AND NEXT(x) = 1, C AS x = 2",
        "PARTITION BY k ORDER BY ts MEASURES count(*) AS n PATTERN (A+ C) WITHIN 1000000 DEFINE A AS x = 1, C AS x = 2",
        "ORDER BY ts MEASURES count(*) AS n PATTERN (A B*? C) DEFINE A AS ts = 0, C AS x = 2",
        "ORDER BY ts MEASURES count(*) AS n PATTERN (A+ B) DEFINE A AS sum(A.x) < 1000000, B AS x > 5",
        "ORDER BY ts MEASURES count(*) AS n PATTERN (A+? B) DEFINE A AS sum(A.x) < 1000000, B AS sum(A.x) > 900000",
        "ORDER BY ts MEASURES count(*) AS n PATTERN (S A+ B) DEFINE A AS count(A.*) = 1 OR A.x >= LAST(A.x, 1)",
        "ORDER BY ts MEASURES count(*) AS n PATTERN (S A* B) DEFINE A AS PREV(S.x) IS NULL, B AS x < S.x",
        "PARTITION BY k ORDER BY ts MEASURES k AS n PATTERN (A+ C) WITHIN 9999 DEFINE A AS max(A.k) = k, C AS x > 1",
    ],
)
def test_a_long_open_match_costs_time_that_grows_with_its_rows(text: str) -> None:
    searched = []
    for n_rows in (400, 800, 1_600):
        table = pa.table({"ts": range(n_rows), "x": [1] * n_rows, "k": ["a", "b"] * (n_rows // 2)})
        searched.append(rows_searched(text, table, 20))
    assert searched[2] < 3 * 1_600
    assert searched[2] - searched[1] < 2.2 * (searched[1] - searched[0])


def test_rows_of_one_time_are_read_once_while_they_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    row_columns = clause_stream.row_columns
    monkeypatch.setattr(
        clause_stream,
        "row_columns",
        lambda plan, rows, *other: read.append(rows.num_rows) or row_columns(plan, rows, *other),
    )
    matcher = acep.Matcher("ORDER BY ts, x MEASURES FIRST(x) AS a, LAST(x) AS z PATTERN (A B+) DEFINE B AS x > PREV(x)")
    for x in range(50):
        assert matcher.push({"ts": [7], "x": [50 - x]}) == {"a": [], "z": []}
    assert sum(read) == 50
    matcher.push({"ts": [8], "x": [0]})
    assert matcher.finish() == {"a": [1], "z": [50]}


KINDS_CLAUSE = """PARTITION BY k ORDER BY ts MEASURES FIRST(ts) AS a, LAST(k) AS label, LAST(xs) AS xs, k AS key_again
    PATTERN (A B) DEFINE B AS ts > A.ts"""


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_columns_of_all_kinds_of_text(kind: pa.DataType) -> None:
    table = pa.table({"k": pa.array([*"xyxyz"]), "ts": range(5), "xs": [[n] for n in range(5)]})
    rows = table.set_column(0, "k", table.column("k").cast(kind))
    expected = acep.match_recognize(table, KINDS_CLAUSE).to_pylist()
    assert acep.match_recognize(rows, KINDS_CLAUSE).to_pylist() == expected
    for options in ({}, {"lateness": 1}, {"lateness": 1, "speculation": "inf"}):
        parts = run_options(KINDS_CLAUSE, rows, options)
        assert sorted(map(repr, parts)) == sorted(map(repr, expected))


def run_options(text: str, rows: pa.Table, options: dict[str, object]) -> list[dict[str, object]]:
    """Return what a matcher with options gives for one row after the other, from snapshot to snapshot."""
    matcher = acep.Matcher(text, **options)  # type: ignore[arg-type]
    results = []
    for batch in batches_of(rows, 1):
        results += matcher.push(batch).to_pylist()
        data, matcher = matcher.snapshot(), acep.Matcher(text, **options)  # type: ignore[arg-type]
        matcher.restore(data)
    results += matcher.finish().to_pylist()
    return [{name: value for name, value in row.items() if name != "op"} for row in results]


@pytest.mark.parametrize(
    ("pattern", "given_at"),
    [
        ("A B+", {4: ["1-3"]}),
        ("A B+?", {2: ["1-2"]}),
        ("A B+ C", {4: ["1-4"]}),
        ("A B*) WITHIN (3", {4: ["1-3"]}),
    ],
)
@pytest.mark.parametrize("ends_elsewhere", [False, True])
def test_when_a_match_is_given(pattern: str, given_at: dict[int, list[str]], ends_elsewhere: bool) -> None:
    """The table in docs/reference/sql.md#streams: a greedy quantifier waits for the row that ends it."""
    matcher = acep.Matcher(
        f"PARTITION BY k ORDER BY i MEASURES FIRST(i) AS start, LAST(i) AS stop PATTERN ({pattern.replace('(3', '3')}"
        + ("" if "WITHIN" in pattern else ")")
        + " DEFINE A AS c = 'a', B AS c = 'b'"
    )
    last = (9, "c", "other") if ends_elsewhere else (4, "c", "k")
    matches = {}
    for i, letter, key in [(1, "a", "k"), (2, "b", "k"), (3, "b", "k"), last]:
        rows = matcher.push([{"i": i, "c": letter, "k": key}]).to_pylist()
        if rows:
            matches[i] = [f"{row['start']}-{row['stop']}" for row in rows]
    is_decided_by_time = "WITHIN" in pattern
    if ends_elsewhere and 4 in given_at:
        given_at = {9: given_at[4]} if is_decided_by_time else {}
    assert matches == given_at


UP = "ORDER BY ts MEASURES FIRST(ts) AS a, LAST(ts) AS z PATTERN (A B+) DEFINE B AS x > PREV(x)"


def test_a_batch_without_rows_settles_no_types() -> None:
    matcher = acep.Matcher(UP)
    assert matcher.push({"ts": [], "x": []}) == {"a": [], "z": []}
    assert matcher.push({"ts": [1, 2], "x": [1, 2]}) == {"a": [], "z": []}
    assert matcher.push({"ts": [], "x": []}) == {"a": [], "z": []}
    assert matcher.finish() == {"a": [1], "z": [2]}


@pytest.mark.parametrize(
    ("text", "options", "names"),
    [
        (UP, {}, ["a", "z"]),
        (UP, {"lateness": 3, "speculation": 1}, ["a", "z", "op"]),
        (f"SELECT z AS stop FROM t MATCH_RECOGNIZE ({UP})", {}, ["stop"]),  # noqa: S608 - the statement of a test
        ("PARTITION BY x ORDER BY ts ALL ROWS PER MATCH PATTERN (A)", {}, ["x", "ts"]),
    ],
)
def test_a_result_without_rows_has_the_columns_of_the_clause(
    text: str, options: dict[str, object], names: list[str]
) -> None:
    pd = pytest.importorskip("pandas")
    rows = {"ts": [], "x": []}
    for batch in (rows, pa.table(rows), pd.DataFrame(rows, dtype=object)):
        matcher = acep.Matcher(text, **options)  # type: ignore[arg-type]
        for result in (matcher.push(batch), matcher.push(batch), matcher.finish()):
            assert list(result.column_names if isinstance(result, pa.Table) else result) == names
    matcher = acep.Matcher(text, **options)  # type: ignore[arg-type]
    assert matcher.push({"other": []}) == {}  # the columns are not known yet
    assert [*matcher.push({"ts": [1, 2], "x": [1, 2]})] == names


def push_all(text: str, *batches: object, **options: object) -> None:
    matcher = acep.Matcher(text, **options)  # type: ignore[arg-type]
    for batch in batches:
        matcher.push(batch)


def zoned(zone: str | None) -> pa.Table:
    return pa.table({"ts": pa.array([5], pa.timestamp("s", zone)), "x": [1]})


@pytest.mark.parametrize(
    ("text", "batches", "options", "message"),
    [
        (UP, [{"ts": [3, 2], "x": [1, 2]}], {}, "event 1 of the batch .ts 2. is older"),
        (UP, [{"ts": [3], "x": [1]}, {"ts": [2], "x": [1]}], {}, "event 0 of the batch .ts 2. is older"),
        (UP, [{"ts": [3], "x": [1]}, {"ts": [4]}], {}, "other columns than before"),
        (UP, [{"ts": [3], "x": [1]}, {"ts": [4], "x": ["q"]}], {}, "other types than before"),
        (UP, [{"ts": [1, None], "x": [1, 2]}], {}, "`ts` is null in row 1"),
        (UP, [{"ts": [1.5], "x": [1]}], {}, "must hold integers, timestamps or dates"),
        (
            UP,
            [zoned("UTC"), zoned(None)],
            {"lateness": "1 h"},
            "now timestamp.s., and was timestamp.s, tz=UTC. before",
        ),
        (UP, [{"ts": [1], "x": [1]}], {"lateness": "5 s"}, "how long a tick"),
        (UP, [{"ts": [1], "x": [1]}], {"ts": "x"}, "the clause has the times in `ts`"),
        (UP, [], {"threads": 2}, "threads= is not for MATCH_RECOGNIZE"),
        ("SELECT count(*) FROM t MATCH_RECOGNIZE (ORDER BY ts PATTERN (A))", [], {}, "takes columns of one clause"),
        ("MATCH_RECOGNIZE (ORDER BY ts PATTERN (A)) AS m", [], {}, "the clause ends before"),
        ("ORDER BY ts PATTERN (A)", [{"ts": [1]}], {}, "the result has no columns"),
        ("ORDER BY ts + 1 MEASURES 1 AS n PATTERN (A)", [{"ts": [1]}], {}, "the first key of ORDER BY"),
        (UP.replace("AS a", "AS op"), [{"ts": [1], "x": [1]}], {"lateness": 1, "speculation": 1}, "`op` tells rows"),
    ],
)
def test_what_a_stream_refuses(text: str, batches: list[object], options: dict[str, object], message: str) -> None:
    with pytest.raises(AcepError, match=message):
        push_all(text, *batches, **options)


def test_a_push_that_is_refused_takes_nothing_in() -> None:
    matcher = acep.Matcher(UP)
    matcher.push({"ts": [1], "x": [1]})
    with pytest.raises(DataError):
        matcher.push({"ts": [2, 1], "x": [2, 3]})
    matcher.push({"ts": [2], "x": [2]})
    assert matcher.finish() == {"a": [1], "z": [2]}


WIDE = pa.decimal128(38, 2)
LARGE = 2**64 - 1


@pytest.mark.parametrize("options", [{}, {"lateness": 1}, {"lateness": 1, "speculation": "inf"}])
@pytest.mark.parametrize(("kind", "value"), [(WIDE, Decimal(10) ** 30), (pa.uint64(), LARGE)])
def test_a_value_that_is_refused_leaves_the_stream_as_it_was(
    options: dict[str, object], kind: pa.DataType, value: object
) -> None:
    matcher = acep.Matcher(UP, **options)  # type: ignore[arg-type]
    current_rows = Counter[str]()

    def count(result: pa.Table) -> None:
        for row in result.to_pylist():
            sign = row.pop("op", 1)
            current_rows[repr(row)] += sign

    rows = lambda ts, x: pa.table({"ts": [ts], "x": pa.array([x], kind)})  # noqa: E731
    count(matcher.push(rows(1, 1)))
    with pytest.raises(DataError, match=r"row 0|beyond 64 bits"):
        matcher.push(rows(2, value))
    for ts, x in [(2, 2), (3, 3), (9, 1)]:
        count(matcher.push(rows(ts, x)))
    count(matcher.finish())
    assert +current_rows == {repr({"a": 1, "z": 3}): 1}


def test_a_stream_that_has_ended_in_an_error_gives_no_snapshot() -> None:
    """Else it would go on behind a match that nothing can go on from, without a word."""
    matcher = acep.Matcher(
        "ORDER BY ts MEASURES LAST(ts) AS z AFTER MATCH SKIP TO B PATTERN (A B* C) DEFINE B AS x = 2, C AS x = 3"
    )
    for call in (lambda: matcher.push({"ts": [1, 2], "x": [1, 3]}), matcher.snapshot, matcher.finish):
        with pytest.raises(DataError, match="AFTER MATCH SKIP"):
            call()


@pytest.mark.long
def test_a_pattern_may_have_too_many_states_for_a_stream() -> None:
    text = "ORDER BY ts MEASURES count(*) AS n PATTERN (A{100000})"
    assert acep.match_recognize({"ts": [1]}, text) == {"n": []}
    with pytest.raises(QueryError, match="more than 200000 states on a stream") as caught:
        acep.Matcher(text).push({"ts": [1]})
    assert caught.value.code == "query_size"


def test_time_may_pass_to_its_end() -> None:
    for text in (UP, UP.replace("ts MEAS", "ts, x MEAS"), UP.replace(" DEFINE", " WITHIN 5 DEFINE")):
        matcher = acep.Matcher(text, lateness=1)
        current_rows = [matcher.push({"ts": [1, 2], "x": [1, 2]}), matcher.advance(2**63 - 1), matcher.finish()]
        assert [rows["z"] for rows in current_rows if rows["z"]] == [[2]]


def test_a_first_batch_that_is_refused_settles_no_columns() -> None:
    matcher = acep.Matcher(UP)
    with pytest.raises(DataError, match="is older"):
        matcher.push({"ts": [2, 1], "x": ["a", "b"], "y": [1, 2]})
    assert matcher.push({"ts": [1, 2], "x": [1, 2]}) == {"a": [], "z": []}
    with pytest.raises(DataError, match="other types than before") as caught:
        matcher.push({"ts": [3], "x": ["c"]})
    assert "cast=" in str(caught.value.hint)
    assert matcher.finish() == {"a": [1], "z": [2]}


def test_blanks_and_comments_of_a_clause_do_not_matter_to_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    spaced = UP.replace(" ", "\n  ").replace("PATTERN", "/* the rise */ PATTERN") + " -- to its end\n"
    matchers = acep.Matcher(UP), acep.Matcher(spaced)
    for matcher in matchers:
        matcher.push({"ts": [1, 2], "x": [1, 2]})
    snapshots = [matcher.snapshot() for matcher in matchers]
    with monkeypatch.context() as earlier_version:
        of_text = property(lambda tables: tables._fingerprint_of(tables.text))
        earlier_version.setattr(ClauseTables, "fingerprint", of_text)
        snapshots.append(matchers[1].snapshot())
    for data in snapshots:
        restored = acep.Matcher(spaced)
        restored.restore(data)
        assert restored.finish() == pa.table({"a": [1], "z": [2]})


def test_snapshots_are_of_one_clause_and_its_options() -> None:
    matcher = acep.Matcher(UP)
    matcher.push({"ts": [1, 2], "x": [1, 2]})
    data = matcher.snapshot()
    for text, options in (
        (UP.replace("A B+", "A  B*"), {}),
        (UP.replace("> P", "> - P"), {}),
        (UP, {"lateness": 3}),
        (UP, {"cast": {"x": "int"}}),
    ):
        with pytest.raises(SnapshotError, match="another query"):
            acep.Matcher(text, **options).restore(data)  # type: ignore[arg-type]
    rng = Random(4)
    for _ in range(200):
        damaged = bytearray(data)
        damaged[rng.randrange(12, len(data))] ^= rng.randint(1, 255)  # behind magic, version and what is reserved
        with pytest.raises(SnapshotError):
            acep.Matcher(UP).restore(bytes(damaged))


def test_a_clause_is_no_query() -> None:
    with pytest.raises(QueryError, match="a clause of SQL"):
        acep.match({"ts": [1], "x": [1]}, UP)


@pytest.mark.parametrize(
    ("clause", "text"),
    [
        ("PATTERN (A)", "on a stream rows come in the order of time, and the clause has no ORDER BY"),
        (
            "ORDER BY ts PATTERN (A+) WITHIN 3",
            "keeps the rows from the first open match on: WITHIN bounds",
        ),
        ("ORDER BY ts PATTERN (^ A $) DEFINE A AS NEXT(x, 2) > x", "waits for 2 more rows; waits for the end where"),
        (
            "ORDER BY ts PATTERN (A B+) DEFINE B AS x > A.x AND NEXT(x) > 1",
            "searches an open match anew with each push",
        ),
        ("ORDER BY ts PATTERN (A B+) DEFINE B AS replace(k, 'a', 'b') > A.k", "searches an open match anew"),
    ],
)
def test_explain_says_what_a_stream_keeps(clause: str, text: str) -> None:
    line = acep.explain_clause({"ts": [1], "x": [1], "k": ["a"]}, clause).splitlines()[-1]
    assert line.startswith("stream: ")
    assert text in line


def test_a_few_rows_are_taken_without_a_copy_of_the_others() -> None:
    table = pa.table({"x": range(1000)})
    rows = KeptRows(table.schema).add(table, np.arange(1000))
    for code in range(500):
        taken, _, rows = rows.take(np.arange(1000) == code)
        assert taken.to_pydict() == {"x": [code]}
        assert rows.chunks[0][0] is table
    taken, codes, rows = rows.take(np.arange(1000) < 510)
    assert (taken.num_rows, codes.tolist(), len(rows)) == (10, [*range(500, 510)], 490)
    assert rows.chunks[0][0].num_rows == 490


def test_texts_of_earlier_rows_are_forgotten() -> None:
    """Open matches that have bound texts are searched anew then, and given as before."""
    table = pa.table({"ts": range(30_000), "k": [f"{n:08}" for n in range(30_000)]})
    clause = "ORDER BY ts MEASURES LAST(k) AS last, count(*) AS n PATTERN (A+ B) DEFINE A AS max(A.k) = k, B AS k < A.k"
    stream = ClauseStream(match_rows.plan_clause(table.schema, clause), table.schema)
    codes = stream.evaluator.codes
    for batch in batches_of(table, 3_000):
        assert not stream.push(batch, batch.column("ts")[-1].as_py()).num_rows
    assert stream.searched_rows < 3 * 30_000
    last = pa.table({"ts": [30_000], "k": ["0"]})
    assert stream.push(last, 30_000).to_pylist() == [{"last": "0", "n": 30_001}]
    for n in range(40_000, 80_000, 1_000):
        rows = pa.table({"ts": range(n, n + 1_000), "k": [f"{-m}" for m in range(n, n + 1_000)]})
        stream.push(rows, n + 999)
        assert codes is None or len(codes) < 2 * 30_000 + 20_000


@pytest.mark.parametrize("seen_early", [True, False])
def test_rows_of_the_newest_time_wait_under_a_speculation_where_there_are_more_keys(seen_early: bool) -> None:
    keys = "ts" if seen_early else "ts, n"
    clause = f"PARTITION BY k ORDER BY {keys} MEASURES LAST(n) AS n PATTERN (A)"
    matcher = acep.Matcher(clause, lateness=10, speculation="inf")
    counts = [
        len(matcher.push({"k": ["a", "b", "b"], "ts": [1, 2, 2], "n": [1, 2, 3]})["n"]),
        len(matcher.push({"k": ["a"], "ts": [3], "n": [4]})["n"]),
        len(matcher.finish()["n"]),
    ]
    assert counts == ([3, 1, 0] if seen_early else [1, 2, 1])

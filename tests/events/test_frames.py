"""Every kind of object that holds events becomes the same table."""

from __future__ import annotations

import contextlib
import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.errors import AcepError, DataError
from acep.events import frames, row_dicts
from acep.events.frames import unread_columns
from acep.events.tables import events_of, schema_of, to_table

ROWS = [{"ts": 1, "type": "a", "x": 1.5}, {"ts": 2, "type": "b", "x": None}]
COLUMNS = {"ts": [1, 2], "type": ["a", "b"], "x": [1.5, None]}


class Stream:
    """Any object that offers the Arrow PyCapsule interface."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Batch:
    """Any object that offers one batch."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self.batch.__arrow_c_array__(requested_schema)


def _pandas() -> Any:
    return pytest.importorskip("pandas").DataFrame(COLUMNS)


def _polars() -> Any:
    return pytest.importorskip("polars").DataFrame(COLUMNS)


MAKERS = {
    "table": lambda: pa.table(COLUMNS),
    "batch": lambda: pa.RecordBatch.from_pydict(COLUMNS),
    "reader": lambda: pa.table(COLUMNS).to_reader(),
    "stream": lambda: Stream(pa.table(COLUMNS)),
    "array": lambda: Batch(pa.RecordBatch.from_pydict(COLUMNS)),
    "rows": lambda: ROWS,
    "generator": lambda: (row for row in ROWS),
    "columns": lambda: COLUMNS,
    "columns of numpy": lambda: {"ts": np.array([1, 2]), "type": ["a", "b"], "x": np.array([1.5, np.nan])},
    "structured": lambda: np.array([(1, "a", 1.5), (2, "b", np.nan)], [("ts", "i8"), ("type", "U1"), ("x", "f8")]),
    "pandas": _pandas,
    "polars": _polars,
    "polars lazy": lambda: _polars().lazy(),
    "columns of pandas": lambda: dict(_pandas().items()),
    "columns of polars": lambda: _polars().to_dict(),
}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_every_source_gives_the_same_events(maker: Any) -> None:
    table = to_table(maker())
    events = events_of(table, schema_of(table.schema), ("x",))
    assert (events.ts, events.types, events.ids) == ([1, 2], ["a", "b"], [0, 1])
    assert events.columns == {"x": [1.5, None]}


def test_a_named_index_of_pandas_is_a_column() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"ts": [3, 1], "type": ["a", "b"]}).set_index("ts")
    assert to_table(frame).column_names == ["type", "ts"]
    assert to_table(frame.reset_index()).column_names == ["ts", "type"]
    unnamed = pandas.DataFrame({"ts": [3, 1]}, index=[7, 9])
    assert to_table(unnamed).column_names == ["ts"]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (3, "cannot be read from a int"),
        ("events.csv", "a table, not str"),
        (np.zeros(3), "cannot be read from a ndarray"),
        ([1, 2], "row 0 of the events is a int"),
        ({"x": [1, 2], "y": [1]}, "differ in length: `x` 2, `y` 1"),
        ({"x": "text"}, "column `x` is a str"),
        ({"x": np.array(5)}, "column `x` is a ndarray, not a list"),
        ({"\udc80": [1]}, r"the column name '\\udc80' is no text"),
        ([{"\udc80": 1}], r"the column name '\\udc80' is no text"),
    ],
)
def test_what_is_no_table(events: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        to_table(events)


def forms_of(values: list[Any]) -> dict[str, Any]:
    """Return events with these values in each form that can have them."""
    columns = {"ts": [*range(len(values))], "type": ["A"] * len(values), "x": values}
    forms: dict[str, Any] = {
        "dict": columns,
        "rows": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    }
    with contextlib.suppress(ImportError):
        import pandas as pd

        forms["pandas"] = pd.DataFrame(columns | {"x": pd.Series(values, dtype=object)})
    with contextlib.suppress(ImportError):
        import polars as pl

        forms["polars"] = pl.DataFrame(columns | {"x": pl.Series(values, dtype=pl.Object)})
    return forms


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "a"], "mixes int and str"),
        ([object(), object()], "holds object, which Arrow does not have"),
        ([dt.datetime(2024, 1, 1), object()], "mixes datetime and object"),
        ([dt.datetime(2024, 1, 1), dt.date(2024, 1, 1)], "mixes dates and times without a zone"),
        ([{"a": 1}, 5], "mixes dict and int"),
        ([1j, 2j], "holds complex, which Arrow does not have"),
        ([2**70, 1], "has an integer beyond 64 bits"),
        (["\ud800", "b"], "cannot be read"),
    ],
    ids=["mixed", "objects", "time and object", "date and time", "dict", "complex", "large", "surrogate"],
)
def test_a_column_that_cannot_be_read_is_refused_only_where_it_is_used(values: list[Any], message: str) -> None:
    for form, events in forms_of(values).items():
        assert len(acep.match(events, "PATTERN SEQ(A a, A b) WITHIN 5")) == 1, form
        reason = "holds Python objects" if form == "polars" else message
        for query in ("PATTERN SEQ(A a, A b) WHERE a.x = b.x WITHIN 5", "PATTERN SEQ(A a, A b) WHERE [x] WITHIN 5"):
            with pytest.raises(AcepError, match=f"column `x` {reason}"):
                acep.match(events, query)
        for role in ("ts", "type", "seq", "id"):
            with pytest.raises(DataError, match=f"column `x` {reason}"):
                acep.match(events, "PATTERN SEQ(A a, A b) WITHIN 5", **{role: "x"})
        for name in ("x", "x.id"):
            with pytest.raises(DataError, match=f"column `x` {reason}"):
                acep.Matcher("PATTERN SEQ(A a, A b) WITHIN 5", cast={name: "string"}).push(events)
        matcher = acep.Matcher("PATTERN SEQ(A a, A b) WHERE a.x = b.x WITHIN 5")
        matcher.push({"ts": [0], "type": ["A"], "x": [1.5]})
        with pytest.raises(DataError, match=f"column `x` {reason}"):
            matcher.push(events)


def test_any_name_of_a_column_of_pandas_is_text() -> None:
    pandas = pytest.importorskip("pandas")
    for name in (5, None, pandas.NA, ("a", "b"), frozenset(), int, lambda: 1):
        frame = pandas.DataFrame([[1, 2]], columns=pandas.Index(["ts", name], dtype=object, tupleize_cols=False))
        assert to_table(frame).column_names == ["ts", str(name)]
    with pytest.raises(DataError, match="is no text"):
        to_table(pandas.DataFrame({"\udc80": [1]}))


@pytest.mark.parametrize("events", [{"ts": [1], 1: [2], "1": [3]}, [{"ts": 1, 1: 2, "1": 3}]], ids=["columns", "rows"])
def test_two_names_that_are_one_text(events: Any) -> None:
    with pytest.raises(DataError, match="two columns are called `1`"):
        to_table(events)


def test_rows_may_name_different_columns() -> None:
    table = to_table([{"ts": 1}, {"ts": 2, "x": 1}, {"ts": 3, "x": 0.5}])
    assert table.to_pydict() == {"ts": [1, 2, 3], "x": [None, 1.0, 0.5]}


@pytest.mark.parametrize(
    "values",
    [
        *(
            [1, 5],
            [0.5, None],
            ["a", "b"],
            [True, False],
            [None, None],
            [b"raw", None],
            [dt.datetime(2024, 1, 1), None],
        ),
        *([{"a": 1}, {"b": "x"}], [[1], []], [1, "mixed"], [2**70, 1]),
    ],
    ids=repr,
)
def test_columns_that_few_rows_have_are_those_of_all_rows(values: list[Any]) -> None:
    """Of keys that few rows have only the entries are looked at."""
    rows: list[dict[str, Any]] = [{"ts": i, f"k{i}": values[0], "x": values[i % 2]} for i in range(20)]
    rows += [{"ts": i} for i in range(20, 30)]
    table = to_table(rows)
    by_columns = to_table(
        {name: [row.get(name) for row in rows] for name in ["ts", "x", *(f"k{i}" for i in range(20))]}
    )
    assert table.select(sorted(table.column_names)) == by_columns.select(sorted(by_columns.column_names))
    assert unread_columns(table.schema) == unread_columns(by_columns.schema)


# Many keys ---------------------------------------------------------------------------------------


def distinct_keys(n_rows: int) -> list[dict[str, Any]]:
    """Return rows that have a key of their own each."""
    return [{"ts": i, "type": "a", f"k{i}": 1} for i in range(n_rows)]


def test_rows_with_distinct_keys_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values that are looked at, and the cells that are made, do not grow faster than the rows."""
    monkeypatch.setattr(row_dicts, "CELLS", 1_000)
    work = 0
    array_of = frames.array_of

    def counted(values: Any) -> Any:
        nonlocal work
        work += len(values)
        return array_of(values)

    monkeypatch.setattr(frames, "array_of", counted)
    costs = []
    for n_rows in (1_000, 2_000, 4_000):
        work = 0
        rows = distinct_keys(n_rows)
        assert acep.match(rows, "PATTERN SEQ(a x, a y) WITHIN 1", output="count") == n_rows - 1
        table = to_table(rows, ["ts", "type"])
        assert table.column_names == ["ts", "type"]
        costs.append(work)
    assert costs[1] <= 2.4 * costs[0]
    assert costs[2] <= 2.4 * costs[1]


def test_only_the_entries_of_sparse_rows_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    work = []
    array_of = frames.array_of
    monkeypatch.setattr(frames, "array_of", lambda values: work.append(len(values)) or array_of(values))
    table = to_table(distinct_keys(300))
    assert (table.num_rows, table.num_columns, table.column("k7").to_pylist()) == (
        300,
        302,
        [None] * 7 + [1] + [None] * 292,
    )
    assert sum(work) == 900


def test_rows_with_too_many_distinct_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_dicts, "CELLS", 1_000)
    rows = distinct_keys(1_000)
    with pytest.raises(DataError, match="1,000 dicts with 1,002 different keys make 1,002,000 cells") as wrong:
        to_table(rows)
    assert "keys that are not used" in str(wrong.value.hint)
    with pytest.raises(DataError, match="different keys"):
        acep.Matcher("PATTERN SEQ(a x, a y) WITHIN 1").push(rows)
    query = "PATTERN SEQ(a x, a y) WHERE y.k8 = 1 WITHIN 1"
    matches = acep.match(rows, query)
    assert [match.end for match in matches] == [8]
    with pytest.raises(DataError, match="were not kept") as wrong:
        matches.events(matches[0])
    assert "acep" not in str(wrong.value.hint)
    needed = [{name: row.get(name) for name in ("ts", "type", "k8")} for row in rows]
    assert matches.events(matches[0], needed).column("ts").to_pylist() == [7, 8]
    assert {finding.code for finding in acep.lint(rows, query)} == {
        finding.code for finding in acep.lint(needed, query)
    }
    with pytest.raises(AcepError, match="unknown column `k8x`") as missing:
        acep.match(rows, "PATTERN SEQ(a x, a y) WHERE y.k8x = 1 WITHIN 1")
    assert "`k8`" in str(missing.value.hint)


@pytest.mark.parametrize("depth", [1, 2])
def test_dicts_in_a_column_with_too_many_distinct_keys(monkeypatch: pytest.MonkeyPatch, depth: int) -> None:
    monkeypatch.setattr(row_dicts, "CELLS", 1_000)
    values: list[dict[str, Any]] = [{f"k{i}": 1, "id": 1} for i in range(1_000)]
    values = values if depth == 1 else [{"inner": value} for value in values]
    name = "dev.id" if depth == 1 else "dev.inner.id"
    for form, events in forms_of(values).items():
        assert acep.match(events, "PATTERN SEQ(A a, A b) WITHIN 1", output="count") == 999, form
        if form != "polars":
            with pytest.raises(AcepError, match=r"`x` has dicts with 1,00\d different keys in 1,000 rows"):
                acep.match(events, f"PATTERN SEQ(A a, A b) WHERE [{name.replace('dev', 'x')}] WITHIN 1")


def test_a_field_of_a_column_that_cannot_be_read() -> None:
    """The error says why the column cannot be read."""
    rows = [{"ts": 1, "type": "A", "dev": {"id": 1}}, {"ts": 2, "type": "A", "dev": 5}]
    with pytest.raises(AcepError, match=r"unknown column `dev.id`: column `dev` mixes dict and int") as wrong:
        acep.match(rows, "PATTERN SEQ(A a, A b) WHERE [dev.id] WITHIN 5")
    assert wrong.value.hint == "give it one type"


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None, None],
        [1, None, -(2**63)],
        (1, 2, 3),
        [1, 2.5, None],
        [True, None, False],
        ["ä", None, ""],
        [dt.datetime(2024, 1, 1), None],
        [b"raw"],
        *(np.array([1, 2, 3], kind) for kind in ("i1", "u2", "i8", "f4", ">i4", "?")),
        np.arange(6)[::2],
        np.array(["2024-01-01", "NaT"], "M8[us]"),
        np.array(["2024-01-01"], "M8[D]"),
        np.array(["a", "b"]),
    ],
    ids=repr,
)
def test_a_column_is_what_arrow_makes_of_it(values: Any) -> None:
    if isinstance(values, np.ndarray) and not values.dtype.isnative:
        expected = pa.array(values.astype(values.dtype.newbyteorder("=")))
        values = values.astype(values.dtype.newbyteorder("="))
    else:
        expected = pa.array(values)
    assert to_table({"x": values}).column("x").combine_chunks().equals(expected)


@pytest.mark.parametrize("values", [[2**63], [2**64], [10**400, 0.5]])
def test_integers_beyond_64_bits_are_not_lost(values: list[Any]) -> None:
    table = to_table({"x": values})
    if "x" in table.column_names:
        assert table.column("x").to_pylist() == values
    else:
        assert [*unread_columns(table.schema)] == ["x"]


@pytest.mark.parametrize(
    ("values", "message", "hint"),
    [
        (np.array([1j]), "is complex128, which Arrow does not have", "cast it to text or numbers"),
        ([1j], "holds complex, which Arrow does not have", "cast it to text or numbers"),
        ([np.complex64(1)], "holds complex64, which Arrow does not have", "cast it to text or numbers"),
        (np.zeros(1, np.longdouble), "is float128, which Arrow does not have", "cast it to text or numbers"),
        (np.array([1], "M8[M]"), "is datetime64[M], which Arrow does not have", "make it datetime64[s], [ms]"),
        (np.array([1], "m8[W]"), "is timedelta64[W], which Arrow does not have", "make it timedelta64[s]"),
        (np.array([1], ">i8"), "is >i8, which Arrow does not have", "give its bytes the order of this machine"),
        (np.zeros((1, 2)), "has 2 dimensions", "give one value for each row"),
        ([object()], "holds object, which Arrow does not have", "cast it to text or numbers"),
        ([2**70], "has an integer beyond 64 bits", "make it text, or float"),
    ],
)
def test_what_arrow_does_not_have_is_said_in_words_of_its_own(values: Any, message: str, hint: str) -> None:
    with pytest.raises(DataError) as wrong:
        acep.match({"ts": values, "type": ["a"]}, "PATTERN SEQ(a x, b y) WITHIN 1")
    assert wrong.value.message == f"column `ts` {message}"
    assert str(wrong.value.hint).startswith(hint)


def test_a_sparse_column_of_pandas_is_refused_with_the_remedy() -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(DataError, match=r"column `ts` is Sparse\[int64, 0\], which Arrow does not have") as wrong:
        acep.match({"ts": pd.arrays.SparseArray([1]), "type": ["a"]}, "PATTERN SEQ(a x, b y) WITHIN 1")
    assert wrong.value.hint == "make it dense: to_dense()"


@pytest.mark.parametrize("name", ["Int128", "UInt128"])
def test_a_column_of_128_bits_of_polars_matters_where_it_is_used(name: str) -> None:
    pl = pytest.importorskip("polars")
    if not hasattr(pl, name):
        pytest.skip("this polars has no such type")
    wide = getattr(pl, name)
    series = pl.Series("z", [1, 2], dtype=wide)
    lists = pl.Series("zs", [[1], None], dtype=pl.List(wide))
    frame = pl.DataFrame({"i": [1, 2], "ts": [1, 2], "z": series, "zs": lists})
    for rows in (frame, frame.lazy(), {"i": [1, 2], "ts": [1, 2], "z": series}):
        result = acep.match_recognize(rows, "ORDER BY i MEASURES LAST(i) AS n PATTERN (A B)")
        assert [*result["n"]] == [2]
        assert len(acep.match(rows, "PATTERN SEQ(any a, any b) WITHIN 5")) == 1
        reason = f"column `z` is {name}, which Arrow does not have"
        with pytest.raises(acep.AcepError, match=reason) as error:
            acep.match_recognize(rows, "ORDER BY i MEASURES LAST(z) AS n PATTERN (A)")
        assert error.value.hint == "cast it to Int64, or to text"
        with pytest.raises(acep.AcepError, match=reason):
            acep.match(rows, "PATTERN SEQ(any a) WHERE a.z > 1 WITHIN 5")

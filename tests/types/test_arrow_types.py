"""The page of types says what is so; other libraries give the types that it says."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.errors import AcepError
from acep.events.files.reading import read_events
from acep.events.frames import to_table
from tests.types.arrow_types import BEGIN, END, PAGE, ROLES, SAMPLES, outcome, table_lines

QUERY = acep.parse("PATTERN SEQ(a p, b q) WHERE [x] RETURN q.x AS x")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_type_is_exact_or_refused_in_every_role(name: str) -> None:
    wrong = {role: found for role in ROLES if (found := outcome(name, role)) not in ("exact", "refused")}
    assert not wrong


@pytest.mark.long
def test_the_page_has_the_table() -> None:
    listed = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].split("\n")[1:-1]
    assert listed == table_lines()


def test_every_type_of_arrow_is_in_the_table() -> None:
    kinds = {made([values[0]]).type.id for made, values in SAMPLES.values()}
    missing = {name for name in dir(pa.lib) if name.startswith("Type_") and getattr(pa.lib, name) not in kinds}
    # Each of these is an extension, a wrapping or a list like one that is there, or has no class in pyarrow.
    assert missing <= {"Type_LARGE_LIST_VIEW", "Type_INTERVAL_MONTHS", "Type_INTERVAL_DAY_TIME", "Type_EXTENSION"}


class Colour(enum.Enum):
    """What a polars Enum is made of."""

    RED = "red"


def pandas_of(values: list[Any], dtype: Any) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"ts": [1, 2], "type": ["a", "b"], "x": pandas.Series(values, dtype=dtype)})


def polars_of(values: list[Any], name: str, *args: Any) -> Any:
    polars = pytest.importorskip("polars")
    held = getattr(polars, name)(*args) if args else getattr(polars, name)
    return polars.DataFrame({"ts": [1, 2], "type": ["a", "b"], "x": polars.Series(values, dtype=held)})


BIG = 2**53 + 1
MOMENT = dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC)
GIVEN: dict[str, tuple[Callable[[], Any], Any]] = {
    "pandas Int64": (lambda: pandas_of([BIG] * 2, "Int64"), BIG),
    "pandas UInt8": (lambda: pandas_of([255] * 2, "UInt8"), 255),
    "pandas boolean": (lambda: pandas_of([True] * 2, "boolean"), True),
    "pandas Float32": (lambda: pandas_of([0.5] * 2, "Float32"), 0.5),
    "pandas string": (lambda: pandas_of(["é"] * 2, "string"), "é"),
    "pandas category": (lambda: pandas_of(["é"] * 2, "category"), "é"),
    "pandas categories of integers": (lambda: pandas_of([BIG] * 2, "category"), BIG),
    "pandas datetime": (lambda: pandas_of([MOMENT] * 2, "datetime64[ns, Europe/Berlin]"), MOMENT),
    "pandas decimals": (lambda: pandas_of([Decimal("1.10")] * 2, object), Decimal("1.10")),
    "pandas dates": (lambda: pandas_of([MOMENT.date()] * 2, object), MOMENT.date()),
    "pandas Arrow decimals": (
        lambda: pandas_of([Decimal("1.10")] * 2, pytest.importorskip("pandas").ArrowDtype(pa.decimal128(9, 2))),
        Decimal("1.10"),
    ),
    "polars Decimal": (lambda: polars_of([Decimal("1.10")] * 2, "Decimal", 38, 2), Decimal("1.10")),
    "polars Categorical": (lambda: polars_of(["red"] * 2, "Categorical"), "red"),
    "polars Enum": (lambda: polars_of(["red"] * 2, "Enum", ["red"]), "red"),
    "polars UInt64": (lambda: polars_of([BIG] * 2, "UInt64"), BIG),
    "polars Date": (lambda: polars_of([MOMENT.date()] * 2, "Date"), MOMENT.date()),
    "polars Datetime": (lambda: polars_of([MOMENT] * 2, "Datetime", "ns", "Europe/Berlin"), MOMENT),
    "dict of decimals": (
        lambda: {"ts": [1, 2], "type": ["a", "b"], "x": [Decimal("1.1"), Decimal("1.10")]},
        Decimal("1.10"),
    ),
    "dict of integers": (lambda: {"ts": [1, 2], "type": ["a", "b"], "x": [BIG, BIG]}, BIG),
}


@pytest.mark.parametrize("name", GIVEN)
def test_types_of_other_libraries_are_exact(name: str) -> None:
    make, value = GIVEN[name]
    (one,) = acep.match(make(), QUERY)
    assert (one.key, one.values) == ({"x": value}, {"x": value})
    assert type(one.key["x"]) is type(one.values["x"]) is type(value)


@pytest.mark.parametrize(
    ("name", "args", "value"),
    [("Time", (), dt.time(1)), ("Binary", (), b"a"), ("Object", (), Colour.RED)],
    ids=["Time", "Binary", "Object"],
)
def test_types_of_polars_that_are_refused(name: str, args: tuple[Any, ...], value: Any) -> None:
    frame = polars_of([value] * 2, name, *args)
    for events in (frame, frame.lazy(), {column: frame[column] for column in frame.columns}):
        with pytest.raises(AcepError, match=r"column `x`|cannot be read"):
            acep.match(events, QUERY)


FILES: dict[str, tuple[str, Any, pa.DataType]] = {
    "csv integer": (f"ts,type,x\n1,a,{BIG}\n2,b,{BIG}\n", BIG, pa.int64()),
    "csv double": ("ts,type,x\n1,a,1.1\n2,b,1.1\n", 1.1, pa.float64()),
    "csv bool": ("ts,type,x\n1,a,true\n2,b,true\n", True, pa.bool_()),
    "csv date": ("ts,type,x\n1,a,2024-02-29\n2,b,2024-02-29\n", dt.date(2024, 2, 29), pa.date32()),
    "csv text": ("ts,type,x\n1,a,e\u0301\n2,b,e\u0301\n", "e\u0301", pa.string()),
    "jsonl integer": (f'{{"ts":1,"type":"a","x":{BIG}}}\n{{"ts":2,"type":"b","x":{BIG}}}\n', BIG, pa.int64()),
    "jsonl double": ('{"ts":1,"type":"a","x":1.1}\n{"ts":2,"type":"b","x":1.1}\n', 1.1, pa.float64()),
    "jsonl text": ('{"ts":1,"type":"a","x":"é"}\n{"ts":2,"type":"b","x":"é"}\n', "é", pa.string()),
}


@pytest.mark.parametrize("name", FILES)
def test_types_of_files_are_exact(name: str, tmp_path: Path) -> None:
    text, value, held = FILES[name]
    path = tmp_path / f"x.{name.split(maxsplit=1)[0]}"
    path.write_text(text, encoding="utf-8")
    table = read_events(path)
    assert table.schema.field("x").type == held
    (one,) = acep.match(table, QUERY)
    assert one.key == one.values == {"x": value}


def twice(name: str) -> pa.Table:
    """Two events with the lesser value of a type."""
    make, (low, _) = SAMPLES[name]
    return pa.table({"ts": [1, 2], "type": ["a", "b"], "x": make([low, low])})


def writes(name: str) -> bool:
    """Whether this release of Arrow writes the type to Parquet."""
    try:
        pq.write_table(twice(name), pa.BufferOutputStream())
    except pa.ArrowNotImplementedError:
        return False
    return True


# Parquet has no bool8.
IN_PARQUET = [n for n in SAMPLES if n != "bool8" and outcome(n, "`RETURN`") == "exact" and writes(n)]


def test_arrow_writes_nearly_every_type_to_parquet() -> None:
    left = {name for name in SAMPLES if outcome(name, "`RETURN`") == "exact"} - {"bool8", *IN_PARQUET}
    older = {"decimal32(9, 2)", "decimal64(18, 2)", "string_view"}  # of these alone older releases know nothing
    assert left - older == {"run-end encoded int64", "run-end encoded string"}


@pytest.mark.parametrize("name", IN_PARQUET)
def test_parquet_gives_what_arrow_gives(name: str, tmp_path: Path) -> None:
    table = twice(name)
    pq.write_table(table, tmp_path / "x.parquet")
    read = acep.match(to_table(read_events(tmp_path / "x.parquet")), QUERY)
    assert list(read) == list(acep.match(table, QUERY))


ORDERED = pa.DictionaryArray.from_arrays(pa.array([0, 2]), pa.array(["S", "M", "L"]), ordered=True)


@pytest.mark.parametrize(
    "condition", ["y.size > x.size", "y.size BETWEEN 'A' AND 'Z'", "least(x.size, y.size) = 'L'", "max(y.size) = 'L'"]
)
def test_categories_in_an_order_are_not_compared_as_texts(condition: str) -> None:
    events = pa.table({"ts": [1, 2], "type": ["a", "b"], "size": ORDERED})
    with pytest.raises(acep.QueryError, match="the categories of `size` have an order of their own"):
        acep.match(events, f"PATTERN SEQ(a x, b y) WHERE {condition}")
    for equal in ("y.size != x.size", "y.size = 'L'", "coalesce(x.size, y.size) = 'S'", "x.size IN ('S', 'M')"):
        assert acep.match(events, f"PATTERN SEQ(a x, b y) WHERE {equal}").count() == 1

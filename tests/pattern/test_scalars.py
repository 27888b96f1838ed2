"""Each entry of SCALARS is whole: the pages name it, engines agree on its example, and one of its own runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.functions.addresses import ADDRESSES
from acep.functions.choices import CHOICES
from acep.functions.numbers import NUMBERS
from acep.functions.scalar_function import Example, Fixed, Formula, Gives, ScalarFunction, Takes
from acep.functions.scalars import SCALARS
from acep.functions.texts import TEXTS
from acep.functions.times import TIMES
from acep.pattern import expressions as ex
from acep.pattern.scalar_calls import scalar_call
from acep.pattern.spelling import expression_text
from acep.plan.assume import assumed_plan
from acep.plan.lower.bytecode_words import Op
from tests.test_imports import ROOT

IN_QUERIES = {name: entry for name, entry in SCALARS.items() if entry.is_in_queries}
ENGINES = ("native", "reference")
each_entry = pytest.mark.parametrize("entry", SCALARS.values(), ids=list(SCALARS))
each_in_queries = pytest.mark.parametrize("entry", IN_QUERIES.values(), ids=list(IN_QUERIES))
each_engine = pytest.mark.parametrize("engine", ENGINES)
# Functions of times that SQL has in other ways, which differ among engines.
NOT_IN_SQL = ("dayofweek",)


def value_text(value: Any) -> str:
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value}'"
    return expression_text(ex.Literal(value))


def row_of(entry: ScalarFunction) -> str:
    """The row of the table in docs/reference/language.md."""
    values = ", ".join(f"`{value_text(value)}`" for value in entry.example.values.values())
    return f"| `{entry.example.call}` | {entry.sentence} | {values} gives `{value_text(entry.example.gives)}` |"


def table_with(columns: dict[str, pa.Array]) -> pa.Table:
    """One event, whose time is a timestamp."""
    return pa.table({"ts": [datetime(2026, 1, 1)], "type": ["A"], **columns})


def table_of(entry: ScalarFunction) -> pa.Table:
    values = {name: pa.array([value]) for name, value in entry.example.values.items()}
    nothing = {name: array.cast(pa.int64()) for name, array in values.items() if pa.types.is_null(array.type)}
    return table_with({**values, **nothing})


def formula_names(formula: Formula | None) -> Iterator[str]:
    if isinstance(formula, tuple):
        yield formula[0]
        for part in formula[1:]:
            yield from formula_names(part)


def test_the_table_of_the_language_is_that_of_the_entries() -> None:
    text = (ROOT / "docs/reference/language.md").read_text(encoding="utf-8")
    start = text.index("| function | gives | example |")
    rows = text[start : text.index("\n\n", start)].splitlines()[2:]
    assert rows == [row_of(entry) for entry in IN_QUERIES.values()]
    synonyms = [synonym for entry in IN_QUERIES.values() for synonym in entry.synonyms]
    assert [synonym for synonym in synonyms if f"`{synonym}`" not in text] == []


@each_entry
def test_the_page_of_sql_names_it(entry: ScalarFunction) -> None:
    text = (ROOT / "docs/reference/sql.md").read_text(encoding="utf-8").lower()
    name = {"sql time text": "to_char"}.get(entry.name, entry.name.removeprefix("sql "))
    assert entry.name in NOT_IN_SQL or re.search(rf"(?<![a-z_]){name}(?![a-z_])", text)


@each_entry
def test_it_says_how_it_is_computed(entry: ScalarFunction) -> None:
    assert (entry.formula is None) == (entry.of_values is not None)
    assert {*formula_names(entry.formula)} <= {*SCALARS, *"+-*/%", "and", "or", "not", "case"} - {entry.name}
    assert {*entry.operations} <= {"integer", "float", "pair"}
    operations = {name for kind, name in entry.operations.items() if kind != "pair" and name}
    assert operations <= {op.name for op in Op}
    assert {*entry.fixed} <= {*range(1, len(entry.takes))}
    assert entry.required is None or entry.required <= len(entry.takes)


def test_no_name_means_two_functions() -> None:
    names = [name for entry in SCALARS.values() for name in (entry.name, *entry.synonyms)]
    nodes = [node for entry in SCALARS.values() for node in entry.nodes]
    assert len(names) == len(set(names))
    assert len(nodes) == len(set(nodes))
    assert len(SCALARS) == sum(map(len, (NUMBERS, CHOICES, TEXTS, ADDRESSES, TIMES)))


@each_engine
@each_in_queries
def test_its_example_holds_in_queries(entry: ScalarFunction, engine: str) -> None:
    text = f"PATTERN A a WHERE {entry.example.call} = :gives RETURN {entry.example.call} AS value"
    query = acep.parse(text, parameters={"gives": entry.example.gives})
    (match,) = acep.match(table_of(entry), query, engine=engine)
    assert match.values == {"value": entry.example.gives}
    assert type(match.values["value"]) is type(entry.example.gives)


@pytest.mark.parametrize(
    "entry", [entry for name, entry in SCALARS.items() if name not in NOT_IN_SQL], ids=lambda e: e.name
)
def test_its_example_holds_in_sql(entry: ScalarFunction) -> None:
    call = re.sub(r"\ba\.", "A.", entry.example.call)
    table = table_of(entry)
    if entry.name == "sql time text":
        table = table.set_column(2, "t", table["t"].cast(pa.timestamp("us")))
    clause = f"ORDER BY ts MEASURES {call} AS value PATTERN (A) DEFINE A AS {call} IS NOT NULL"
    assert acep.match_recognize(table, clause).to_pylist() == [{"value": entry.example.gives}]


@each_engine
@each_in_queries
def test_a_null_gives_null(entry: ScalarFunction, engine: str) -> None:
    kinds = {"text": pa.string(), "time": pa.timestamp("us"), "condition": pa.bool_()}
    kind = kinds.get(entry.takes[0], pa.float64())
    table = table_with(dict.fromkeys(entry.example.values, pa.array([None], kind)))
    text = f"PATTERN A a RETURN {entry.example.call} AS value"
    (match,) = acep.match(table, text, engine=engine)
    constants = {"least": 5, "greatest": 5, "coalesce": 0}
    assert match.values["value"] == constants.get(entry.name)


@pytest.mark.parametrize("name", [name for name, entry in IN_QUERIES.items() if entry.takes[0] != "value"])
def test_a_value_of_another_type_is_refused(name: str) -> None:
    entry = IN_QUERIES[name]
    table = table_with(dict.fromkeys(entry.example.values, pa.array([True])))
    text = f"PATTERN A a RETURN {entry.example.call} AS value"
    with pytest.raises(acep.QueryError, match=r"needs .*, not a bool") as caught:
        acep.match(table, text)
    assert caught.value.column == text.index("(a.") + 2


@each_in_queries
def test_a_wrong_number_of_arguments_is_refused(entry: ScalarFunction) -> None:
    args = ["a.x"] * (entry.counts[1] + 1)
    with pytest.raises(acep.QueryError, match=rf"`{entry.name}` takes .* arguments?, not {len(args)}"):
        acep.parse(f"PATTERN A a RETURN {entry.name}({', '.join(args)}) AS value")


ROWS = {
    "ts": [1, 2, 3, 4],
    "type": ["a", "b", "b", "b"],
    "x": [1.0, 8.0, None, 4.0],
    "n": [1, 8, None, 4],
    "s": ["ab", "xyz", None, ""],
}
FAHRENHEIT = ScalarFunction(
    "fahrenheit", ("number",), "float", "a temperature", Example("fahrenheit(a.x)", {"x": 100.0}, 212.0),
    formula=("+", ("*", "celsius", 1.8), ("abs", -32)), arguments=("celsius",),
)  # fmt: skip


@each_engine
@pytest.mark.parametrize("column", ["x", "n"])
def test_one_that_others_write_runs_on_every_engine(column: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALARS, "fahrenheit", FAHRENHEIT)
    call = f"fahrenheit(b.{column})"
    text = f"PATTERN SEQ(a a, b b) WHERE {call} > fahrenheit(a.x) + 10 RETURN {call} AS f"
    values = [match.values for match in acep.match(ROWS, text, engine=engine)]
    assert values == [{"f": 8 * 1.8 + 32}]
    clause = "ORDER BY ts MEASURES FAHRENHEIT(B.x) AS f PATTERN (B) DEFINE B AS FAHRENHEIT(x) > 40"
    assert acep.match_recognize(ROWS, clause) == {"f": [8 * 1.8 + 32]}


def test_one_that_others_write_takes_decimals_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALARS, "fahrenheit", FAHRENHEIT)
    table = pa.table(ROWS).set_column(2, "x", pa.array([Decimal(1), Decimal(8), None, Decimal(4)], pa.decimal128(9, 1)))
    texts = ["PATTERN b a WHERE fahrenheit(a.x) = 46.4", "PATTERN b a WHERE a.x * 1.8 + abs(-32) = 46.4"]
    for text in texts:
        assert [match.bindings for match in acep.match(table, text)] == [{"a": (1,)}]


def test_nested_calls_that_double_are_refused() -> None:
    twice = ScalarFunction(
        "twice", ("number",), "float", "", Example("twice(a.x)", {"x": 1}, 2), formula=("+", "x", "x"), arguments=("x",)
    )
    expr: ex.Expr = ex.Attribute("a", None, "x")
    for _ in range(11):
        expr = scalar_call(twice, (expr,), None)
    with pytest.raises(acep.QueryError, match="more than 5000 parts"):
        scalar_call(twice, (expr,), None)


@each_engine
@pytest.mark.parametrize("entry", [
    ScalarFunction("log2", ("number",), "float", "", Example("", {}, None), math.log2),
    ScalarFunction("reversed", ("text",), "text", "", Example("", {}, None), lambda text: text[::-1]),
], ids=lambda entry: entry.name)  # fmt: skip
def test_one_with_values_of_its_own_runs_on_every_engine_over_single_attributes(
    entry: ScalarFunction, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCALARS, entry.name, entry)
    column, other = ("x", "2.5") if entry.name == "log2" else ("s", "'zy'")
    call = f"{entry.name}(b.{column})"
    text = f"PATTERN SEQ(a a, b b) WHERE {call} > {other} RETURN {call} AS value"
    values = [match.values["value"] for match in acep.match(ROWS, text, engine=engine)]
    assert values == ([3.0] if column == "x" else ["zyx"])
    text = f"PATTERN b b WHERE {call} IS NULL"
    assert [match.bindings["b"] for match in acep.match(ROWS, text, engine=engine)] == [(2,)]
    if entry.name == "reversed":  # sqlglot knows LOG2
        clause = "ORDER BY ts MEASURES REVERSED(B.s) AS v PATTERN (B) DEFINE B AS x = 8"
        assert acep.match_recognize(ROWS, clause) == {"v": ["zyx"]}


def test_a_constant_is_one_of_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(number: int) -> None:
        if number < 0:
            raise acep.QueryError("it is below zero", hint="take another one")

    entry = ScalarFunction("shifted", ("number", "integer"), "integer", "", Example("shifted(a.x, 2)", {"x": 1}, 4),
                           lambda x, n: x << n, fixed={1: Fixed("a number", int, check)})  # fmt: skip
    monkeypatch.setitem(SCALARS, "shifted", entry)
    for argument, message in (("a.x", "`shifted` needs a number"), ("TRUE", "`shifted` needs a number"),
                              ("'2'", "`shifted` needs a number"), ("-1", "it is below zero")):  # fmt: skip
        with pytest.raises(acep.QueryError, match=message) as caught:
            acep.parse(f"PATTERN A a WHERE shifted(a.x, {argument}) = 4")
        assert (caught.value.line, caught.value.column) == (1, 32)
    assert assumed_plan(acep.parse("PATTERN A a WHERE shifted(a.x, 2) = 4")).predicates


COLUMNS = {
    "t": pa.array([datetime(2026, 5, 1), None, datetime(2027, 6, 1)], pa.timestamp("ms")),
    "d": pa.array([Decimal("1.25"), None, Decimal("2.50")], pa.decimal128(9, 2)),
    "b": pa.array([True, None, False]),
    "i": pa.array([1, None, 3]),
    "f": pa.array([1.5, None, math.nan]),
    "u": pa.array([1, None, 3], pa.duration("ms")),
}


@each_engine
@pytest.mark.parametrize(
    ("takes", "gives", "call", "values"),
    [
        ("time", "integer", "own(a.t)", [1_777_593_600_000, None, 1_811_808_000_000]),
        ("number", "float", "own(a.d)", [1.25, None, 2.5]),
        ("length", "argument", "own(a.d)", [1.25, None, 2.5]),
        ("number", "float", "own(a.f)", [1.5, None, None]),
        ("length", "argument", "own(a.i)", [1, None, 3]),
        ("length", "argument", "own(a.u) > 2 ms", [False, None, True]),
        ("condition", "condition", "own(a.b)", [True, None, False]),
        ("condition", "condition", "own(a.i > 2)", [False, None, True]),
        ("value", "condition", "own(a.b)", [True, None, False]),
    ],
)
def test_one_with_values_of_its_own_gets_those_of_each_type(
    takes: Takes, gives: Gives, call: str, values: list[Any], engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def value_of(value: Any, *tick_ns: Any) -> Any:
        assert tick_ns == ((10**6,) if takes == "time" else ())
        return value

    monkeypatch.setitem(SCALARS, "own", ScalarFunction("own", (takes,), gives, "", Example("", {}, None), value_of))
    table = pa.table({"ts": pa.array([datetime(2026, 1, 1)] * 3, pa.timestamp("ms")), "type": ["A"] * 3, **COLUMNS})
    matches = acep.match(table, f"PATTERN A a RETURN {call} AS value", engine=engine)
    assert [match.values["value"] for match in matches] == values

"""Flat tables of matches: the same values as the nested ones, in plain columns that are the same for every result."""

from __future__ import annotations

import io
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pytest

import acep
from acep.matches.arrow import matches_table
from acep.matches.flat import Layout, flat_table
from acep.matches.match_form import MatchForm
from acep.matches.matches import Matches
from acep.matches.records import Found
from acep.plan.schema import Schema
from tests.case_counts import CaseCounts
from tests.complaints import fail_if_wrong
from tests.random_cases import Case, random_case

QUERY = "PATTERN SEQ(A a, B+ b[], C? c) WHERE [k] WITHIN 9 RETURN count(b[]) AS many, a.x AS x"
ROWS = {"ts": [1, 2, 3, 4], "type": ["A", "B", "B", "C"], "k": ["u"] * 4, "x": [1.5, None, None, None]}
BIG = 2**53 + 1  # a float cannot hold it


def test_columns_and_values() -> None:
    table = acep.match(ROWS, QUERY).to_arrow(flat=True)
    assert table.schema.remove_metadata() == pa.schema(
        {
            "k": pa.string(),
            "start": pa.int64(),
            "end": pa.int64(),
            "error": pa.int64(),
            "a": pa.int64(),
            "b_first": pa.int64(),
            "b_last": pa.int64(),
            "c": pa.int64(),
            "bundle": pa.int64(),
            "many": pa.int64(),
            "x": pa.float64(),
        }
    )
    rows = {(row["b_first"], row["b_last"], row["c"]): row for row in table.to_pylist()}
    assert set(rows) == {(1, 1, None), (1, 2, None), (2, 2, None), (1, 1, 3), (1, 2, 3), (2, 2, 3)}
    named = {"k": "u", "start": 1, "end": 4, "error": 0, "a": 0, "b_first": 1, "b_last": 2, "c": 3, "bundle": 2}
    assert rows[1, 2, 3] == named | {"many": 2, "x": 1.5}
    table.validate(full=True)


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("errors", [0, 0.5])
def test_the_schema_of_no_match_is_that_of_any_other(engine: str, errors: float) -> None:
    query = acep.parse(QUERY, errors=errors, weights={"a": 0.5})
    some = acep.match(ROWS, query, engine=engine)
    none = acep.match(pa.table(ROWS).slice(3), "PATTERN A z" if errors else query, engine=engine)
    none = acep.match(pa.table(ROWS).slice(0, 0), query, engine=engine) if errors else none
    assert len(some) > len(none) == 0
    for options in ({"flat": True}, {"explode": True}):
        assert none.to_arrow(**options).schema.remove_metadata() == some.to_arrow(**options).schema.remove_metadata()
        assert some[:0].to_polars(**options).schema == some.to_polars(**options).schema
        full, empty = some.to_pandas(**options), none.to_pandas(**options)
        assert full.dtypes.equals(empty.dtypes)
        assert full.attrs["acep"]["exact"] is True
    whole = [one for one in some if one.error == int(one.error)]
    assert (len(whole) < len(some)) is (errors > 0)


def test_ids_stay_integers_in_pandas() -> None:
    found = acep.match(ROWS | {"no": [BIG, BIG + 2, BIG + 4, BIG + 6]}, QUERY, id="no")
    frame = found.to_pandas(flat=True)
    assert frame["c"].isna().any()
    assert {*frame["c"].dropna()} == {BIG + 6}
    assert (str(frame["a"].dtype), str(frame["start"].dtype)) == ("Int64", "int64")
    assert {*found.to_pandas(explode=True)["event"]} == {BIG, BIG + 2, BIG + 4, BIG + 6}


def test_names_that_are_given_already() -> None:
    rows = ROWS | {"end": ["u"] * 4, "B": ["u"] * 4}
    query = "PATTERN SEQ(A a, B+ b[]) WHERE [end] AND [B] WITHIN 9 RETURN count(b[]) AS start, a.x AS A, a.ts AS b_last"
    table = acep.match(rows, query).to_arrow(flat=True)
    assert table.column_names == [
        "key_end", "B", "start", "end", "error", "variable_a", "variable_b_first", "variable_b_last", "bundle",
        "value_start", "A", "b_last",
    ]  # fmt: skip
    assert table["b_last"].to_pylist() == [1] * len(table)
    exploded = acep.match(rows | {"match": ["u"] * 4}, "PATTERN A a WHERE [match]").to_arrow(explode=True)
    assert exploded.column_names[:5] == ["match", "variable", "position", "event", "key_match"]
    query = "PATTERN SEQ(A a, B b) WHERE [x] AND [value_x] WITHIN 9 RETURN a.ts AS X"
    found = acep.match({"ts": [1], "type": ["A"], "x": ["u"], "value_x": ["u"]}, query)
    for options in ({"flat": True}, {"explode": True}):
        with pytest.raises(acep.QueryError, match="two columns of the flat table would be called `value_X`"):
            found.to_arrow(**options)


def test_other_kinds_of_columns() -> None:
    rows = pa.table(
        {
            "at": pa.array([0, 86_400_000_000], pa.timestamp("us", "UTC")),
            "type": ["A", "B"],
            "price": pa.array([Decimal("1.50"), Decimal("2.25")], pa.decimal128(9, 2)),
            "dev": [{"id": 7}, {"id": 7}],
            "no": ["x", "y"],
        }
    )
    query = "PATTERN SEQ(A a, B b) WHERE [dev.id] WITHIN 2 days RETURN b.price AS price, a.at AS began"
    (row,) = acep.match(rows, query, ts="at", id="no").to_arrow(flat=True).to_pylist()
    assert row["dev.id"] == 7
    assert (row["a"], row["b"], row["price"]) == ("x", "y", Decimal("2.25"))
    assert row["began"] == row["start"] == rows["at"][0].as_py()


def test_matches_that_may_be_taken_back_and_queries_that_change() -> None:
    query = "PATTERN SEQ(A a, ~C c, B b) WITHIN 9"
    matcher = acep.Matcher(query, lateness=9, speculation="inf")
    given = [matcher.push({"ts": [ts], "type": [kind]}) for ts, kind in ((1, "A"), (3, "B"), (2, "C"))]
    rows = [row for some in given for row in some.to_arrow(flat=True).to_pylist()]
    assert [(row["op"], row["a"], row["b"], row["bundle"]) for row in rows] == [(1, 0, 1, None), (-1, 0, 1, None)]
    assert rows[0]["id"] == rows[1]["id"] == given[1][0].id
    assert given[1].to_pandas(flat=True)["bundle"].isna().all()
    matcher = acep.Matcher("PATTERN SEQ(A a, B b, C c) WITHIN 9", dynamic=True)
    matcher.push({"ts": [1, 2], "type": ["A", "B"]})
    matcher.replace("PATTERN SEQ(A a, B b, D d) WITHIN 9")
    (row,) = matcher.push({"ts": [3, 4], "type": ["C", "D"]}).to_arrow(flat=True).to_pylist()
    assert (row["a_first"], row["b_last"], row["c_first"], row["d_last"]) == (0, 1, None, 3)


def test_matches_without_a_layout_have_the_variables_that_are_bound() -> None:
    found = [Found((), 1, 9, 0, (("a", (0, 3)), ("b", (7,))), 9), Found((), 2, 9, 1, (("c", (4,)),), 9)]
    matches = Matches(found, MatchForm(Schema(())))
    names = ["start", "end", "error", "a_first", "a_last", "b_first", "b_last", "c_first", "c_last", "bundle"]
    assert matches.to_arrow(flat=True).column_names == names
    assert matches.to_arrow(explode=True)["event"].to_pylist() == [0, 3, 7, 4]


def test_bindings_that_a_layout_does_not_fit_are_refused() -> None:
    table = matches_table(Matches([Found((), 1, 9, 0, (("a", (0, 3)),), 9)], MatchForm(Schema(()))))
    with pytest.raises(acep.DataError, match="`a` binds more than one event"):
        flat_table(table, Layout(("a",), frozenset()))
    with pytest.raises(acep.DataError, match="a variable that the query did not have"):
        flat_table(table, Layout(("b",), frozenset()))


def test_a_hand_written_automaton_and_letters() -> None:
    falls = acep.Automaton(
        [
            acep.arc("begin", "down", bind="top"),
            acep.arc("down", "down", bind="low"),
            acep.arc("down", "end", bind="low"),
        ],
        final="end",
    )
    table = acep.match({"ts": [1, 2, 3], "x": [3, 2, 1]}, falls, type=None).to_arrow(flat=True)
    assert table.column_names == [
        "start", "end", "error", "top_first", "top_last", "low_first", "low_last", "bundle", "state"
    ]  # fmt: skip
    assert {*table["state"].to_pylist()} == {"end"}
    letters = acep.match({"ts": [1, 2], "type": ["a", "b"]}, acep.regex("ab", within=5)).to_arrow(flat=True)
    assert letters.select(["a", "b"]).to_pylist() == [{"a": 0, "b": 1}]


# Random queries ------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_flat_and_exploded_tables_agree_with_the_bindings(engine: str, cases: CaseCounts) -> None:
    seen = Counter[str]()

    def complaint_of(case: Case) -> str:
        matches = acep.match(case.table(), case.query(), engine=engine, **case.stream)[:80]
        try:
            check_rows(matches, seen)
            check_exploded_rows(matches)
            check_csv(matches.to_arrow(flat=True))
        except AssertionError as error:
            return f"{error}\n{matches.to_arrow(flat=True).to_pylist()}"
        return ""

    for seed in range(cases(300)):
        fail_if_wrong(random_case(seed), complaint_of)
    cases.expect(seen, "matches", "several events bound", "nothing bound", "a key", "RETURN", least=11)


def check_rows(matches: acep.Matches, seen: Counter[str]) -> None:
    """Assert that a flat row has what its match has; count what occurred."""
    layout, flat = matches.layout, matches.to_arrow(flat=True)
    assert layout is not None
    flat.validate(full=True)
    assert not any(pa.types.is_nested(field.type) for field in flat.schema)
    assert matches.to_arrow().num_rows == flat.num_rows
    for match, row in zip(matches, flat.to_pylist(), strict=True):
        cells = dict(row)
        plain = dict(zip((*match.key, *match.values), (*match.key.values(), *match.values.values()), strict=True))
        for name, value in (("start", match.start), ("end", match.end), ("bundle", match.bundle)):
            assert cells.pop(name) == value
        assert cells.pop("error") == match.error
        for var in layout.variables:
            ids = match.bindings.get(var, ())
            columns = {f"{var}_first": ids[:1], f"{var}_last": ids[-1:]} if var in layout.repeated else {var: ids}
            clash = {*map(str.lower, columns)} & {*map(str.lower, plain)}
            for name, bound in columns.items():
                assert [cells.pop(f"variable_{name}" if clash else name)] == [*(bound or [None])]
            seen["nothing bound"] += not ids
            seen["several events bound"] += len(ids) > 1
        assert len(cells) == len(plain)
        assert [*map(repr, cells.values())] == [*map(repr, (*match.key.values(), *match.values.values()))]
        seen["a key"] += bool(match.key)
        seen["RETURN"] += bool(match.values)
    seen["matches"] += len(matches)


def check_exploded_rows(matches: acep.Matches) -> None:
    """Assert that the rows of bound events are the bindings."""
    bindings: list[dict[str, list[Any]]] = [{} for _ in matches]
    spans: dict[int, Any] = {}
    for row in matches.to_arrow(explode=True).to_pylist():
        bound = bindings[row["match"]].setdefault(row["variable"], [])
        assert row["position"] == len(bound)
        bound.append(row["event"])
        spans[row["match"]] = (row["start"], row["end"], row["bundle"])
    assert bindings == [{var: [*ids] for var, ids in match.bindings.items()} for match in matches]
    assert spans == {i: (match.start, match.end, match.bundle) for i, match in enumerate(matches)}


def check_csv(flat: pa.Table) -> None:
    """Assert that a flat table comes back from CSV."""
    text = io.BytesIO()
    pc.write_csv(flat, text)
    kinds = {name: field.type for name, field in zip(flat.column_names, flat.schema, strict=True)}
    options = pc.ConvertOptions(column_types=kinds, strings_can_be_null=True, quoted_strings_can_be_null=False)
    read = pc.read_csv(io.BytesIO(text.getvalue()), convert_options=options)
    if flat.num_rows:
        assert read.cast(flat.schema.remove_metadata()).equals(flat.replace_schema_metadata())


def test_parts_of_a_table_and_slices() -> None:
    found = acep.match({"ts": range(60), "type": ["A", "B", "C"] * 20, "k": [1] * 60, "x": [1.0] * 60}, QUERY)[5:90]
    layout = found.layout
    assert layout is not None
    whole = matches_table(found)
    parts = pa.concat_tables([whole.slice(at, 10) for at in range(0, whole.num_rows, 10)])
    assert parts.column("bindings").num_chunks > 3
    assert flat_table(parts, layout).equals(flat_table(whole, layout))
    assert flat_table(parts, layout).slice(10, 5).equals(found[10:15].to_arrow(flat=True).replace_schema_metadata())

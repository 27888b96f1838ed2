"""Matches as columns behave as the same matches in a list: records, order, tables, files, bundles and pages."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep.events.tables import attribute_tick, schema_of
from acep.matches import arrow
from acep.matches.found_columns import FoundColumns, concatenate, sort_matches
from acep.matches.match_form import MatchForm
from acep.matches.matches import Matches
from acep.matches.records import Found, output_order
from acep.native import compiled
from acep.output import writing
from acep.output.writing import write_matches
from acep.plan.schema import Kind, Schema
from tests.matches.as_columns import columns_of

VARIABLES = ("b", "long name", "ä")
COLUMNS = {
    "ts": pa.int64(), "type": pa.string(), "id": pa.int64(), "name": pa.string(),
    "i": pa.int64(), "f": pa.float64(), "s": pa.string(), "flag": pa.bool_(), "day": pa.date32(),
    "at": pa.timestamp("ns"),
}  # fmt: skip
SCHEMAS = [
    schema_of(pa.schema(COLUMNS)),
    schema_of(pa.schema(COLUMNS | {"ts": pa.int32()}), unit="d"),
    schema_of(pa.schema(COLUMNS | {"ts": pa.timestamp("ms", "UTC")})),
    schema_of(pa.schema(COLUMNS | {"ts": pa.timestamp("ns")})),
    schema_of(pa.schema({k: v for k, v in COLUMNS.items() if k != "at"} | {"ts": pa.date32()})),
]


def bindings_of(trail: Sequence[tuple[Any, str]]) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    bound = {var: tuple(i for i, v in trail if v == var) for var in VARIABLES}
    return tuple((var, ids) for var, ids in bound.items() if ids)


FINITE = st.floats(allow_nan=False, allow_infinity=False)


def value_of(kind: Kind, few: bool, day: int) -> st.SearchStrategy[Any]:
    texts = (
        st.sampled_from(["x", "", "line\n", 'a "b", c\n', "ä"])
        if few
        else st.text(st.characters(codec="utf-8"), max_size=4)
    )
    of = {
        Kind.INT: st.integers(-2, 2) if few else st.integers(-(2**63), 2**63 - 1),
        Kind.FLOAT: st.sampled_from([0.0, 0.5, 1e300]) if few else FINITE,
        Kind.STRING: texts,
        Kind.BOOL: st.booleans(),
        Kind.TIMESTAMP: st.integers(-3, 3).map(lambda days: days * day),
    }
    return of[kind] if few else st.none() | of[kind]


@st.composite
def both(draw: st.DrawFn) -> tuple[Matches, Matches]:
    """The same matches with a list of them and with columns."""
    schema = draw(st.sampled_from(SCHEMAS))
    names = [name for name in ("i", "f", "s", "flag", "day", "at") if schema.kind(name)]
    keys = tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=3)))
    kinds = [kind for name in keys if (kind := schema.kind(name))]
    returned = [Kind.INT, Kind.FLOAT, Kind.STRING, Kind.BOOL, *([Kind.TIMESTAMP] if schema.instants else [])]
    returns = tuple(draw(st.lists(st.sampled_from(returned), max_size=3)))
    texts, scale = draw(st.booleans()), draw(st.sampled_from([1, 1, 2, 6]))
    schema = replace(schema, id="name" if texts else "id")
    event: st.SearchStrategy[Any] = st.sampled_from(["e1", "e10", "é", '"']) if texts else st.integers(-3, 2**40)
    day = int(86400 * 10**9 / (attribute_tick(schema) or 1))
    step = {"timestamp[ns]": day + 7, "timestamp[ms, tz=UTC]": day // 1000}.get(str(schema.times[0][1]), day)
    fixed = draw(st.none() | st.integers(1, 3))
    found = []
    for _ in range(draw(st.integers(0, 12))):
        size = fixed or draw(st.integers(1, 4))
        trail = tuple((draw(event), draw(st.sampled_from(VARIABLES))) for _ in range(size))
        start, end, bundle = (draw(st.integers(-3, 3)) * (step if schema.instants else 1) for _ in range(3))
        error = Fraction(draw(st.integers(0, 7)), scale)
        found.append(
            Found(
                key=tuple(draw(value_of(kind, True, day)) for kind in kinds),
                start=start,
                end=end,
                error=int(error) if error.denominator == 1 else error,
                bindings=bindings_of(trail),
                bundle=bundle,
                values=tuple(draw(value_of(kind, False, day)) for kind in returns),
                trail=trail,
            )
        )
    columns = columns_of(found, scale, VARIABLES, kinds, returns)
    about: dict[str, Any] = {
        "schema": schema,
        "keys": keys,
        "returns": tuple(f"r{i}" for i in range(len(returns))),
        "return_kinds": returns,
    }
    return Matches(found, MatchForm(**about)), Matches(columns, MatchForm(**about))


@pytest.mark.long
@given(both())
def test_columns_are_the_list(pair: tuple[Matches, Matches]) -> None:
    listed, columns = (m.found for m in pair)
    assert isinstance(columns, FoundColumns)
    assert list(columns) == listed
    assert [columns[i] for i in range(-len(listed), len(listed))] == [*listed, *listed]
    for part in (slice(1, 5), slice(None, None, 2), slice(None, None, -3), slice(5, 2), slice(-2, None)):
        assert list(columns[part]) == listed[part]
        assert isinstance(columns[part], FoundColumns)
    assert list(concatenate([columns[:3], columns[3:3], columns[3:]])) == listed
    for end in (len(listed), -len(listed) - 1):
        with pytest.raises(IndexError):
            columns[end]


@given(both())
def test_the_order_is_that_of_the_list(pair: tuple[Matches, Matches]) -> None:
    listed, columns = (m.found for m in pair)
    assert isinstance(columns, FoundColumns)
    inorder = sort_matches(columns)
    assert list(inorder) == sorted(listed, key=output_order)
    assert sort_matches(inorder) is inorder


@given(both(), st.sampled_from([1, 3, 1 << 22]))
def test_matches_are_the_same(pair: tuple[Matches, Matches], part: int) -> None:
    listed, columns = pair
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow, "PART", part)
        tables = [m.to_arrow() for m in pair]
    tables[1].validate(full=True)
    assert tables[0].schema == tables[1].schema
    assert tables[0].equals(tables[1])
    if part == 1 and len(listed):
        assert tables[1].column("bindings").num_chunks == len(listed)
    assert listed.bundles() == columns.bundles()
    assert listed.points() == columns.points()
    assert (repr(listed), listed._repr_html_()) == (repr(columns), columns._repr_html_())
    assert (list(listed), len(listed), listed.count()) == (list(columns), len(columns), columns.count())
    assert list(listed[1:3]) == list(columns[1:3])
    assert columns == listed


@given(both(), st.sampled_from(["jsonl", "csv"]))
def test_files_are_the_same(pair: tuple[Matches, Matches], form: str) -> None:
    files = [io.StringIO(), io.StringIO()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "FEW", 0)
        for matches, file in zip(pair, files, strict=True):
            write_matches(matches, file, form)
    assert files[0].getvalue() == files[1].getvalue()


def test_pandas() -> None:
    pytest.importorskip("pandas")
    found = [Found((), 1, 2, 0, (("b", (0,)), ("ä", (1,))), 2, (), ((1, "ä"), (0, "b")))]
    frame = Matches(columns_of(found, 1, VARIABLES, ()), MatchForm(Schema(()))).to_pandas()
    assert frame["bindings"].tolist() == [{"b": (0,), "ä": (1,)}]


def test_parts_of_different_plans_are_told_apart() -> None:
    found = [Found((), 1, 2, 0, (("b", (0,)),), 2, (), ((0, "b"),))]
    with pytest.raises(ValueError, match="different plans"):
        concatenate([columns_of(found, 1, VARIABLES, ()), columns_of(found, 2, VARIABLES, ())])


def test_without_the_core_the_order_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    trail = ((1, "b"), (0, "ä"))
    found = [Found((), 1, end, 0, bindings_of(trail), 2, (), trail) for end in (3, 2)]
    monkeypatch.setattr(compiled, "_MODULE", None)
    assert list(sort_matches(columns_of(found, 1, VARIABLES, ()))) == found[::-1]

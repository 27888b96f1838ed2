"""Matches as a list, as tables, as bundles and points, and as a page."""

from __future__ import annotations

import datetime as dt
import sys
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.events.tables import events_of, schema_of
from acep.matches.match_form import MatchForm
from acep.matches.matches import Bundle, Match, Matches, Point, Report
from acep.matches.records import Counts, Found
from acep.plan.schema import Kind, Schema

INTEGERS = schema_of(pa.schema({"ts": pa.int32(), "type": pa.string(), "k": pa.string(), "name": pa.string()}))
FOUND = [
    Found(("x",), 1, 4, 0, (("a", (0,)), ("b", (3, 4))), 4),
    Found(("y",), 1, 4, 1, (("a", (1,)),), 4),
    Found(("x",), 2, 4, Fraction(2), (("b", (3,)),), 4),
    Found(("x",), 2, 9, 3, (("a", (8,)),), 4),
    Found(("x",), 20, 30, 1, (("a", (20,)),), 30),
]
MATCHES = Matches(FOUND, MatchForm(INTEGERS, keys=("k",)))


def times(held: pa.DataType, other: pa.DataType | None = None) -> Matches:
    """A match of two events one second apart, its key a time."""
    schema = schema_of(pa.schema({"ts": held, "type": pa.string(), "day": other or pa.date32()}))
    second = int(10**9 / schema.tick_ns) if schema.tick_ns else 1
    found = Found((86400 * second,), 86400 * second, 86401 * second, Fraction(1, 2), (("a", (0, 1)),), 86401 * second)
    return Matches([found], MatchForm(schema, keys=("day",)))


def test_a_list_of_matches() -> None:
    assert len(MATCHES) == MATCHES.count() == 5
    first = MATCHES[0]
    assert first == Match({"k": "x"}, 1, 4, 0, {"a": (0,), "b": (3, 4)}, 4)
    assert MATCHES[-1].start == 20
    assert [m.error for m in MATCHES] == [0, 1, 2, 3, 1]
    assert isinstance(MATCHES[2].error, int)
    assert first in MATCHES
    assert MATCHES.count(first) == 1
    assert MATCHES.index(MATCHES[3]) == 3
    with pytest.raises(IndexError):
        MATCHES[5]
    assert not Matches([], MatchForm(INTEGERS))


def test_a_slice_is_matches_again() -> None:
    tail = MATCHES[3:]
    assert isinstance(tail, Matches)
    assert list(tail) == list(MATCHES)[3:]
    assert tail == MATCHES[3:]
    assert tail != MATCHES
    assert tail.report is MATCHES.report


def test_a_match_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        MATCHES[0].error = 3  # type: ignore[misc]


def test_bundles_and_points() -> None:
    assert MATCHES.bundles() == [
        Bundle({"k": "x"}, 4, 9, 3, 0),
        Bundle({"k": "y"}, 4, 4, 1, 1),
        Bundle({"k": "x"}, 30, 30, 1, 1),
    ]
    assert MATCHES.points() == [
        Point({"k": "x"}, 4, 0),
        Point({"k": "y"}, 4, 1),
        Point({"k": "x"}, 9, 3),
        Point({"k": "x"}, 30, 1),
    ]
    assert Matches([], MatchForm(INTEGERS)).bundles() == []


@pytest.mark.parametrize(
    ("held", "start", "end"),
    [
        (pa.timestamp("s"), dt.datetime(1970, 1, 2), dt.datetime(1970, 1, 2, 0, 0, 1)),
        (
            pa.timestamp("us", "UTC"),
            dt.datetime(1970, 1, 2, tzinfo=dt.UTC),
            dt.datetime(1970, 1, 2, 0, 0, 1, tzinfo=dt.UTC),
        ),
        (pa.timestamp("ns"), dt.datetime(1970, 1, 2), dt.datetime(1970, 1, 2, 0, 0, 1)),
        (pa.date32(), dt.date(1970, 1, 2), dt.date(1970, 1, 2)),
        (pa.date64(), dt.date(1970, 1, 2), dt.date(1970, 1, 2)),
    ],
    ids=str,
)
def test_times_are_those_of_the_input(held: pa.DataType, start: Any, end: Any) -> None:
    for other in (None, pa.timestamp("ns")):
        matches = times(held, other)
        match = matches[0]
        assert (match.start, match.end, match.bundle) == (start, end, end)
        table = matches.to_arrow()
        assert table.schema.field("start").type == held
        assert table.schema.field("bundle").type == held
        assert table.schema.field("key").type.field("day").type == (other or pa.date32())
        assert matches.bundles()[0].end == end
        assert np.datetime64(match.key["day"]) == np.datetime64("1970-01-02")


@pytest.mark.parametrize("unit", [None, "s", "d"])
def test_a_time_as_key_beside_an_integer_ts(unit: str | None) -> None:
    table = pa.table({"ts": [1], "day": pa.array([dt.date(2024, 1, 2)])})
    schema = schema_of(table.schema, unit=unit)
    (day,) = events_of(table, schema, ("day",)).columns["day"]
    matches = Matches([Found((day,), 1, 1, 0, (("a", (0,)),), 1)], MatchForm(schema, keys=("day",)))
    assert matches[0].key == {"day": dt.date(2024, 1, 2)}
    assert matches.to_arrow().to_pylist()[0]["key"] == {"day": dt.date(2024, 1, 2)}
    assert matches.to_arrow().schema.field("start").type == pa.int64()


def test_the_arrow_table() -> None:
    table = MATCHES.to_arrow()
    assert table.schema == pa.schema(
        {
            "key": pa.struct({"k": pa.string()}),
            "start": pa.int32(),
            "end": pa.int32(),
            "error": pa.int64(),
            "bindings": pa.map_(pa.string(), pa.list_(pa.int64())),
            "bundle": pa.int32(),
        }
    )
    assert table.to_pylist()[0] == {
        "key": {"k": "x"},
        "start": 1,
        "end": 4,
        "error": 0,
        "bindings": [("a", [0]), ("b", [3, 4])],
        "bundle": 4,
    }
    table.validate(full=True)
    empty = MATCHES[:0].to_arrow()
    assert (empty.schema, empty.num_rows) == (table.schema, 0)


def test_fractional_errors_text_ids_and_no_key() -> None:
    schema = schema_of(pa.schema({"ts": pa.int64(), "name": pa.string()}), id="name")
    matches = Matches([Found((), 1, 1, Fraction(1, 2), (("a", ("e1",)),), 1)], MatchForm(schema))
    table = matches.to_arrow()
    assert table.schema.field("error").type == pa.float64()
    assert table.schema.field("bindings").type == pa.map_(pa.string(), pa.list_(pa.string()))
    assert table.column("key").to_pylist() == [{}]
    assert matches[0].error == 0.5


def test_values_of_return() -> None:
    found = [Found((), 1, 2, 0, (("a", (i,)),), 2, (i, None, 5)) for i in range(2)]
    schema = schema_of(pa.schema({"ts": pa.timestamp("s")}))
    kinds = (Kind.FLOAT, Kind.STRING, Kind.TIMESTAMP)
    matches = Matches(found, MatchForm(schema, returns=("n", "s", "at"), return_kinds=kinds))
    assert matches[1].values == {"n": 1, "s": None, "at": dt.datetime(1970, 1, 1, 0, 0, 5)}
    held = matches.to_arrow().schema.field("values").type
    assert held == pa.struct({"n": pa.float64(), "s": pa.string(), "at": pa.timestamp("s")})
    guessed = Matches(found, MatchForm(schema, returns=("n", "s", "at")))
    assert guessed[0].values["at"] == 5
    assert guessed.to_arrow().schema.field("values").type.field("n").type == pa.int64()


def test_every_kind_of_key() -> None:
    columns = {"ts": pa.int64(), "b": pa.bool_(), "i": pa.int8(), "f": pa.float32(), "s": pa.large_string()}
    schema = schema_of(pa.schema(columns))
    matches = Matches([Found((True, 1, 2.0, "x"), 1, 1, 0, (), 1)], MatchForm(schema, keys=("b", "i", "f", "s")))
    assert matches.to_arrow().column("key").to_pylist() == [{"b": True, "i": 1, "f": 2.0, "s": "x"}]
    unknown = Matches([Found((7,), 1, 1, 0, (), 1)], MatchForm(Schema(()), keys=("inner",)))
    assert unknown.to_arrow().column("key").to_pylist() == [{"inner": 7}]


def test_pandas() -> None:
    pytest.importorskip("pandas")
    frame = MATCHES.to_pandas()
    assert list(frame.columns) == ["key", "start", "end", "error", "bindings", "bundle"]
    assert frame["bindings"][0] == {"a": (0,), "b": (3, 4)}
    assert frame["key"][1] == {"k": "y"}
    assert len(Matches([], MatchForm(INTEGERS)).to_pandas()) == 0


def test_polars() -> None:
    pytest.importorskip("polars")
    frame = MATCHES.to_polars()
    assert frame.columns == ["key", "start", "end", "error", "bindings", "bundle"]
    assert list(frame["bindings"][0]) == [{"key": "a", "value": [0]}, {"key": "b", "value": [3, 4]}]
    assert Matches([], MatchForm(INTEGERS)).to_polars().columns[0] == "start"


def test_the_text() -> None:
    assert repr(MATCHES[:2]) == "2 matches in 2 bundles\n  k=x  1..4  a=0 b=3,4\n  k=y  1..4  a=1  error=1"
    assert repr(MATCHES[:1]) == "1 match in 1 bundle\n  k=x  1..4  a=0 b=3,4"
    assert repr(MATCHES[:0]) == "no matches"
    many = Matches(FOUND * 5, MatchForm(INTEGERS, keys=("k",)))
    assert repr(many).endswith("\n  ...")
    assert len(repr(many).splitlines()) == 12


def test_the_page_is_escaped() -> None:
    hostile = "<script>alert(1)</script>"
    found = [Found((hostile,), 1, 2, 0, ((hostile, (hostile,)),), 2, (hostile,))] * 12
    schema = Schema(((hostile, Kind.STRING),))
    html = Matches(found, MatchForm(schema, keys=(hostile,), returns=(hostile,)))._repr_html_()
    assert "<script>" not in html
    assert html.count("&lt;script&gt;") == 2 + 10 * 4
    assert html.count("<tr>") == 11
    assert "... and 2 more" in html
    assert "exact: nothing was shed" in html
    assert "no matches" in Matches([], MatchForm(schema))._repr_html_()


def test_the_report() -> None:
    report = Report.of(Counts(events=10, nodes=4, touches=9, matches=2), 0.5)
    assert report.exact
    assert (report.made, report.kept, report.shed, report.interval) == (4, 4, 0, (1.0, 1.0))
    assert (
        str(report) == "10 events, 2 matches in 0.50 s (20 events/s)\n4 nodes made, 9 touches; exact: nothing was shed"
    )
    late = Report.of(Counts(events=10, late=1, nodes=4, touches=9, matches=2))
    assert not late.exact
    assert str(late) == "10 events, 2 matches; 1 event came too late\n4 nodes made, 9 touches; nothing was shed"
    lossy = Report(
        events=1, made=1, shed=2000, work=1, matches=1, recall=0.3, interval=(0.251, 0.349), bundle_interval=(0, 1)
    )
    first = "1 event, at least 1 match\n1 node made, 1 touch (0 of them to decide); 2,000 shed\nnot exact: "
    points = "between 25 % and 35 % of the match points (likely 30 %)"
    assert str(lossy) == f"{first}{points} were found (90 % confidence)"
    wide = replace(lossy, recall=None, interval=(0.48, 1.0), bundle_recall=0.999, bundle_interval=(0.99, 1.0))
    both = (
        "between 48 % and 100 % of the match points and between 99.0 % and 100.0 % of the match bundles (likely 99.9 %)"
    )
    assert str(wide) == f"{first}{both} were found (90 % confidence)"
    unknown = replace(lossy, recall=None, interval=(0, 1), unknown="too little was watched")
    assert str(unknown) == f"{first}matches may be missing: too little was watched"
    assert not lossy.exact


def test_what_is_chosen_is_chosen_by_name() -> None:
    for output in (None, 5, ["matches"], np.array(["x", "y"]), "x"):
        with pytest.raises(acep.QueryError, match="unknown output"):
            acep.match({"ts": [1]}, acep.regex("a", within=5), output=output)  # type: ignore[arg-type]
        with pytest.raises(acep.EngineError, match="there is no engine"):
            acep.Matcher(acep.regex("a", within=5), engine=output)  # type: ignore[arg-type]


def test_a_value_that_is_text_or_number_is_refused() -> None:
    query = acep.parse("PATTERN A a WITHIN 5 RETURN coalesce(NULL, a.x, 'none') AS x")
    with pytest.raises(acep.QueryError, match="an int cannot be compared with a string"):
        acep.match({"ts": [1, 2], "type": ["A", "A"], "x": [None, 5]}, query)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_frame_of_a_package_that_is_not_installed_is_one_error(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    matches = acep.match({"ts": [1, 2], "type": ["A", "B"]}, "PATTERN SEQ(A a, B b) WITHIN 5")
    monkeypatch.setitem(sys.modules, package, None)
    for options in ({}, {"flat": True}, {"explode": True}):
        with pytest.raises(
            acep.EngineError, match=f"^{package} is not installed, and to_{package}.. needs it"
        ) as error:
            getattr(matches, f"to_{package}")(**options)
        assert error.value.hint == f"pip install 'acep[{package}]'"

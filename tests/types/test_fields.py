"""A field of a struct column is an attribute, wherever events come from; what cannot be used is said by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from acep.errors import AcepError, DataError, QueryError

ROWS: list[dict[str, Any]] = [
    {"at": {"ts": 1, "no": 10}, "dev": {"id": "u", "kind": "a", "in": {"x": 5}}},
    {"at": {"ts": 2, "no": 11}, "dev": {"id": "v", "kind": "a", "in": {"x": 6}}},
    {"at": {"ts": 3, "no": 12}, "dev": {"id": "u", "kind": "b", "in": None}},
    {"at": {"ts": 4, "no": 13}, "dev": {"id": "u", "kind": "b", "in": {"x": 7}}},
    {"at": {"ts": 5, "no": 14}, "dev": None},
]
QUERY = acep.parse(
    "PATTERN SEQ(a x, b y) WHERE [dev.id] AND y.dev.in.x > x.dev.in.x WITHIN 9 "
    "RETURN y.dev.in.x AS v, max(y[].dev.in.x) AS m"
)
NAMES = {"ts": "at.ts", "type": "dev.kind", "seq": "at.no", "id": "at.no"}


def polars(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(rows)


def pandas(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(rows)


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("of", [pa.Table.from_pylist, list, pandas, polars], ids=["arrow", "dicts", "pandas", "polars"])
def test_fields_in_every_role(of: Callable[[Any], Any], engine: str) -> None:
    rows = of(ROWS)
    (one,) = acep.match(rows, QUERY, engine=engine, **NAMES)
    assert (one.key, one.start, one.end, one.bindings) == ({"dev.id": "u"}, 1, 4, {"x": (10,), "y": (13,)})
    assert one.values == {"v": 7, "m": 7}


def test_fields_batch_by_batch() -> None:
    table = pa.Table.from_pylist(ROWS)
    matcher = acep.Matcher(QUERY, **NAMES)
    found = [one for i in range(5) for one in matcher.push(table.slice(i, 1))]
    assert [one.bindings for one in found] == [{"x": (10,), "y": (13,)}]


def test_fields_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "x.parquet")
    for name in ("x.jsonl", "x.parquet"):
        options = [word for role, column in NAMES.items() for word in (f"--{role}", column)]
        asked = "PATTERN SEQ(a x, b y) WHERE [dev.id] AND y.dev.in.x > x.dev.in.x WITHIN 9 RETURN y.dev.in.x AS v"
        assert main(["match", asked, str(tmp_path / name), *options]) == 0
        found = json.loads(capsys.readouterr().out.splitlines()[0])
        assert (found["key"], found["bindings"], found["values"]) == ({"dev.id": "u"}, {"x": [10], "y": [13]}, {"v": 7})


def test_a_column_of_that_very_name_goes_first() -> None:
    rows = pa.table({"ts": [1], "dev": [{"id": 1, "no": 3}], "dev.id": [2]})
    query = acep.parse('PATTERN SEQ(ANY x) WITHIN 1 RETURN x.dev.id AS i, x."dev.id" AS j, x.dev.no AS n')
    assert acep.match(rows, query)[0].values == {"i": 2, "j": 2, "n": 3}
    nested = pa.table({"ts": [1], "a.b": [{"c": 1}], "a": [{"b": {"c": 2, "d": 3}}]})
    with pytest.raises(QueryError, match=r"column `a\.b\.c` is the name of two fields"):
        acep.match(nested, acep.parse("PATTERN SEQ(ANY x) WHERE x.a.b.c = 1 WITHIN 1"))
    assert len(acep.match(nested, acep.parse("PATTERN SEQ(ANY x) WHERE x.a.b.d = 3 WITHIN 1"))) == 1


REFUSED: dict[str, tuple[Any, str]] = {
    "list": ([[1]], "is list<item: int64>, and a predicate needs single values"),
    "map": (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "is map<string, int64>"),
    "binary": ([b"x"], "is binary, and bytes are not compared"),
    "time": (pa.array([1], pa.time64("us")), r"is time64\[us\], and a time of day"),
    "struct": ([{"id": 1}], r"hint: name one of its fields, as in a\.x\.id"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("where", ["[x]", "a.x = 1", "count(a[].x) = 1", "a.x IS NULL"])
def test_a_column_that_cannot_be_used_is_no_unknown_one(name: str, where: str) -> None:
    values, message = REFUSED[name]
    with pytest.raises(AcepError, match=message) as caught:
        acep.match({"ts": [1], "x": values}, acep.parse(f"PATTERN SEQ(ANY+ a[]) WHERE {{{where}}} WITHIN 9"))
    assert "column `x`" in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("role", ["ts", "type", "seq", "id"])
def test_roles_say_what_they_cannot_hold(role: str) -> None:
    for values, _ in REFUSED.values():
        with pytest.raises(DataError, match="must hold") as caught:
            acep.match({"ts": [1], "x": values}, acep.parse("PATTERN SEQ(ANY a) WITHIN 9"), **{role: "x"})
        assert caught.value.hint

"""Decimals are exact: as keys, in comparisons, in arithmetic, in aggregates, and given back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import AcepError, DataError, QueryError
from acep.explain.why import why
from acep.output.writing import write_matches

Run = Callable[..., Any]
NEAR = [Decimal("90071992547409930.01"), Decimal("90071992547409930.02")]


@pytest.fixture(params=["native", "reference"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def table(**columns: Any) -> pa.Table:
    size = len(next(iter(columns.values())))
    return pa.table({"ts": [*range(size)], "type": ["a", "b"] * (size // 2), **columns})


def found(rows: Any, where: str, engine: str, returns: str = "") -> list[Any]:
    query = acep.parse(f"PATTERN SEQ(a x, b y) WHERE {where} WITHIN 9 {'RETURN ' + returns if returns else ''}")
    return [
        (m.bindings["x"][0], m.bindings["y"][0], *m.key.values(), *m.values.values())
        for m in acep.match(rows, query, engine=engine)
    ]


def test_near_decimals_are_two_keys_and_in_order(engine: str) -> None:
    rows = table(c=pa.array([NEAR[0], NEAR[1], NEAR[1], NEAR[0]], pa.decimal128(19, 2)))
    assert found(rows, "[c]", engine) == [(0, 3, NEAR[0])]
    assert found(rows, "x.c < y.c", engine) == [(0, 1)]
    wide = table(c=pa.array([Decimal(2**53), Decimal(2**53 + 1)], pa.decimal128(38, 0)))
    assert found(wide, "x.c = y.c", engine) == []


@pytest.mark.parametrize("held", [pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(19, 2), pa.decimal256(50, 2)])
def test_every_width_of_decimal(held: pa.DataType, engine: str) -> None:
    rows = table(c=pa.array([Decimal("-1.10"), Decimal("-1.10"), None, Decimal("2.5")], held))
    query = acep.parse("PATTERN SEQ(a x, b y) WHERE [c] WITHIN 9 RETURN y.c AS c")
    whole = acep.match(rows, query, engine=engine)
    assert [m.key for m in whole] == [{"c": Decimal("-1.10")}]
    given = whole.to_arrow()
    assert given.column("key").to_pylist() == [{"c": Decimal("-1.10")}]
    assert given.column("key").type.field("c").type == held
    assert given.column("values").to_pylist() == [{"c": Decimal("-1.10")}]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("x.p = 1.10", True),
        ("x.p = 1.1", True),
        ("x.p > 1.099999999999999999999", True),
        ("x.p < 1.100000000000000000001", True),
        ("x.p = 1.100000000000000000001", False),
        ("x.p IN (1.10, 7)", True),
        ("x.p NOT IN (1.105, 7)", True),
        ("x.p BETWEEN 1.10 AND 1.10", True),
        ("x.p + 0.001 = y.q", True),
        ("x.p * 3 = 3.3", True),
        ("x.p - y.q = -0.001", True),
        ("x.p < y.q", True),
        ("x.p = y.f", False),  # the double next to 1.1 is above it
        ("x.p < y.f", True),
        ("x.p != y.i AND x.p > y.i", True),
        ("y.big = 90071992547409930.01", True),
        ("y.big = 90071992547409930.02", False),
        ("y.big > 90071992547409930", True),
        ("y.n = 9007199254740993.0", True),
        ("y.n = 9007199254740992.0", False),
        ("x.p % 1 = 0.10", True),
        ("-x.p = -1.1", True),
        ("x.p < 1e300 AND x.p > -1e300", True),
    ],
)
def test_comparisons_are_exact(where: str, expected: bool, engine: str) -> None:
    rows = table(
        p=pa.array([Decimal("1.10"), None], pa.decimal128(10, 2)),
        q=pa.array([None, Decimal("1.101")], pa.decimal128(10, 3)),
        f=[None, 1.1],
        i=[None, 1],
        n=[None, 2**53 + 1],
        big=pa.array([None, NEAR[0]], pa.decimal128(19, 2)),
    )
    assert bool(found(rows, where, engine)) is expected


def test_values_of_return_are_exact(engine: str) -> None:
    rows = table(c=pa.array([Decimal("1.25"), Decimal("-2.75")], pa.decimal128(18, 2)), i=[3, 4], f=[0.5, 0.25])
    asked = {
        "x.c + y.c": Decimal("-1.50"),
        "x.c * y.c": Decimal("-3.4375"),
        "x.c * 1.10": Decimal("1.375"),
        "x.c - y.i": Decimal("-2.75"),
        "y.c % 1.5": Decimal("-1.25"),
        "x.c / y.c": 1.25 / -2.75,
        "x.c / 3": float(Decimal("1.25") / 3),
        "x.c + x.f": 1.75,
        "abs(y.c)": Decimal("2.75"),
        "sign(y.c)": -1,
        "floor(y.c)": -3,
        "ceil(y.c)": -2,
        "round(x.c)": Decimal("1.00"),
        "round(x.c, 1)": Decimal("1.30"),
        "least(x.c, y.c, 0)": Decimal("-2.75"),
        "greatest(x.c, 1.3)": Decimal("1.30"),
        "greatest(x.c, x.f)": 1.25,
        "coalesce(y.c, 0)": Decimal("-2.75"),
        "sqrt(x.c)": 1.25**0.5,
        "sum(x[].c)": Decimal("1.25"),
        "avg(x[].c)": 1.25,
        "min(y[].c)": Decimal("-2.75"),
        "first(y[].c)": Decimal("-2.75"),
        "count(y[].c)": 1,
    }
    returns = ", ".join(f"{text} AS v{i}" for i, text in enumerate(asked))
    with localcontext() as context:
        context.prec = 3  # of no account: no decimal is computed with
        ((_, _, *values),) = found(rows, "x.c > y.c", engine, returns)
    assert dict(zip(asked, values, strict=True)) == asked
    assert [type(value) for value in values] == [type(value) for value in asked.values()]


def test_an_average_of_both_infinities_is_null(engine: str) -> None:
    rows = table(c=[math.inf, -math.inf])
    assert found(rows, "x.c > y.c", engine, "x.c + y.c AS s") == [(0, 1, None)]
    query = acep.parse("PATTERN SEQ(ANY+ x[], b y) WITHIN 9 RETURN avg(x[].c) AS a, sum(x[].c) AS s")
    both = {"ts": [1, 2, 3], "type": ["a", "a", "b"], "c": [math.inf, -math.inf, 1.0]}
    given = {m.bindings["x"]: m.values for m in acep.match(both, query, engine=engine)}
    assert given[(0, 1)] == {"a": None, "s": None}
    assert given[(0,)] == {"a": math.inf, "s": math.inf}


def test_an_average_is_rounded_once(engine: str) -> None:
    numbers = [Decimal("92233720368547758.07"), Decimal("92233720368547758.05"), Decimal("0.03")]
    rows = {"ts": [1, 2, 3, 4], "type": list("aaab"), "c": pa.array([*numbers, None], pa.decimal128(19, 2))}
    query = acep.parse(
        "PATTERN SEQ(a+ x[], b y) WHERE partition_contiguity(x[], y) {x.c > 0} WITHIN 9 "
        "RETURN avg(x[].c) AS a, sum(x[].c) AS s"
    )
    (longest,) = [m for m in acep.match(rows, query, engine=engine) if len(m.bindings["x"]) == 3]
    units = [int(n * 100) for n in numbers]
    assert longest.values == {"a": sum(units) / 300, "s": None}  # a sum beyond 64 bits is null
    during = acep.parse(f"PATTERN SEQ(a+ x[], b y) WHERE {{avg(x[].c) = {sum(units) / 300!r}}} WITHIN 9")
    assert [m.bindings["x"] for m in acep.match(rows, during, engine=engine)] == [(0, 1, 2)]


@pytest.mark.parametrize(
    ("column", "where", "message"),
    [
        (pa.array([Decimal(10) ** 19] * 2, pa.decimal128(38, 0)), "[c]", "does not fit into 64 bits"),
        (pa.array([Decimal("1e-10")] * 2, pa.decimal128(38, 20)), "[c]", "9 decimal places are held, .* row 0 .* more"),
        (pa.array([None, Decimal("1e10")], pa.decimal128(38, 18)), "[c]", "row 1 .* not fit into 64 bits with 9"),
        (pa.array([Decimal(1)] * 2, pa.decimal128(18, 10)), "x.c * y.c > 0", "more than 18 decimal places"),
        (pa.array([Decimal(1)] * 2, pa.decimal128(38, 10)), "x.c * 1e30 > 0", "does not fit into 64 bits"),
        (pa.array([Decimal(1)] * 2, pa.decimal128(38, 10)), "least(x.c, 1e-19) > 0", "more than 18 decimal places"),
        (pa.array([Decimal(1)] * 2, pa.decimal128(38, 10)), "x.c = 'a'", "decimal of scale 9 cannot be compared"),
    ],
)
def test_what_does_not_fit_is_refused(column: pa.Array, where: str, message: str, engine: str) -> None:
    with pytest.raises(AcepError, match=message) as caught:
        found(table(c=column), where, engine)
    assert caught.value.hint or "compared" in message


def test_an_integer_sum_of_decimals_beyond_64_bits_is_null(engine: str) -> None:
    rows = table(c=pa.array([Decimal("92233720368547758.07")] * 2, pa.decimal128(19, 2)))
    assert found(rows, "x.c = y.c", engine, "x.c + y.c AS s, x.c * 2 AS p") == [(0, 1, None, None)]


@pytest.mark.parametrize(
    ("held", "places"),
    [
        *((pa.decimal128(p, s), s) for p, s in ((18, 18), (19, 18), (19, 2), (38, 0), (38, 9))),
        *((pa.decimal128(p, s), kept) for p, s, kept in ((20, 12, 10), (30, 25, 13), (38, 18, 9), (38, 38, 18))),
        *((pa.decimal256(p, s), kept) for p, s, kept in ((76, 38, 9), (76, 76, 18), (60, 2, 2))),
    ],
)
def test_the_places_that_a_wide_decimal_keeps(held: pa.DataType, places: int, engine: str, tmp_path: Path) -> None:
    whole = min(10 ** (held.precision - held.scale) - 1, (2**63 - 1) // 10**places)
    low = Decimal(whole).scaleb(places) if whole * 10**places < 2**63 - 2 else Decimal(whole - 1).scaleb(places)
    near = [(low + i).scaleb(-places) for i in range(2)]
    rows = table(c=pa.array([near[0], near[1], near[1], near[0], None, None], held))
    query = acep.parse("PATTERN SEQ(a x, b y) WHERE [c] WITHIN 9 RETURN y.c AS c, min(x[].c) AS m")
    (one,) = matches = acep.match(rows, query, engine=engine)
    assert (one.bindings, one.key, one.values) == ({"x": (0,), "y": (3,)}, {"c": near[0]}, {"c": near[0], "m": near[0]})
    given = matches.to_arrow()
    assert given.column("key").to_pylist() == [one.key]
    assert given.column("values").to_pylist() == [one.values]
    own = held if held.precision > 19 else pa.decimal128(19, held.scale)
    assert [given.column(name).type.field("c").type for name in ("key", "values")] == [held, own]
    assert found(rows, "x.c < y.c", engine) == [(0, 1)]
    write_matches(matches, tmp_path / "m.jsonl")
    line = json.loads((tmp_path / "m.jsonl").read_text())
    assert line["key"] == {"c": f"{one.key['c']:f}"}
    assert [Decimal(line["values"][name]) for name in ("c", "m")] == near[:1] * 2


def test_values_of_several_scales_are_given_the_greatest(engine: str) -> None:
    rows = table(
        c=pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)),
        d=pa.array([Decimal("1.2500"), Decimal("-3.0001")], pa.decimal128(9, 4)),
        i=[2, 9 * 10**18],
    )
    asked = {
        "least(x.c, x.d, x.i)": Decimal("1.2500"),
        "greatest(x.c, x.i)": Decimal("2.00"),
        "least(x.c, y.c, y.d)": Decimal("-3.0001"),
        "coalesce(y.c, y.d)": Decimal("-3.0001"),
        "coalesce(y.c, x.i, y.d)": Decimal("2.0000"),
        "least(x.c, 1.125)": Decimal("1.125"),
        "CASE WHEN x.c > 1 THEN x.c ELSE x.d END": Decimal("1.2500"),
        "CASE WHEN x.c > 2 THEN x.c ELSE 1.125 END": Decimal("1.125"),
        "CASE WHEN y.c > 2 THEN y.i ELSE x.i END + x.c": Decimal("3.25"),
        "CASE WHEN x.i = 2 THEN x.c ELSE y.i END": Decimal("1.25"),
        "CASE WHEN y.i > 2 THEN y.i ELSE x.c END": None,
        "CAST(x.d AS text)": "1.2500",
        "concat(CAST(y.d AS text), '')": "-3.0001",
        "CAST(x.c AS integer)": 1,
        "CAST(y.d AS integer)": -3,
        "CAST(x.c AS float)": 1.25,
        "CASE WHEN floor(x.c) = 1 THEN lower('ONE') END": "one",
        # Beyond 64 bits on the way to the scale: null, and not the other value.
        "least(x.c, y.i)": None,
        "coalesce(y.i, x.d)": None,
        "greatest(x.d, y.i)": None,
    }
    returns = ", ".join(f"{text} AS v{i}" for i, text in enumerate(asked))
    ((_, _, *values),) = found(rows, "x.c = x.d", engine, returns)
    assert list(map(str, values)) == list(map(str, asked.values()))
    assert found(rows, "least(x.c, y.d) < -3 AND coalesce(y.c, y.d) = y.d", engine) == [(0, 1)]


def test_batches_of_one_scale(engine: str) -> None:
    query = acep.parse("PATTERN SEQ(a x, b y) WHERE [c] AND x.d < y.d WITHIN 9 RETURN y.d AS d")
    matcher = acep.Matcher(query, engine=engine)

    def part(ts: int, kind: str, c: str, d: str, scale: int = 2) -> pa.Table:
        cells = {name: pa.array([Decimal(x)], pa.decimal128(19, scale)) for name, x in (("c", c), ("d", d))}
        return pa.table({"ts": [ts], "type": [kind], **cells})

    matcher.push(part(1, "a", "1.10", "1.00"))
    matcher.push(part(2, "a", "1.11", "1.00"))
    other = acep.Matcher(query, engine=engine)
    other.restore(matcher.snapshot())
    for one in (matcher, other):
        with pytest.raises(DataError, match=r"is decimal128\(19, 3\), where decimals with 2 places were seen before"):
            one.push(part(3, "b", "1.1", "1.01", 3))
        # Fewer places lose nothing.
        given = one.push(part(3, "b", "1.1", "1.5", 1))
        assert [(m.key, m.values) for m in given] == [({"c": Decimal("1.10")}, {"d": Decimal("1.50")})]
    with pytest.raises(DataError, match="seen before"):
        matcher.push({"ts": [4], "type": ["b"], "c": [1.5], "d": [1.5]})


def test_decimals_are_written_exactly(engine: str, tmp_path: Path) -> None:
    rows = table(c=pa.array([NEAR[0]] * 2200, pa.decimal128(19, 2)))
    query = acep.parse("PATTERN SEQ(a x, b y) WHERE partition_contiguity(x, y) {[c]} WITHIN 1 RETURN x.c AS c")
    whole = acep.match(rows, query, engine=engine)
    assert len(whole) > 1000
    for matches in (whole, whole[:3]):  # by columns, and one by one
        write_matches(matches, tmp_path / "m.jsonl")
        line = json.loads((tmp_path / "m.jsonl").read_text().splitlines()[0])
        assert (line["key"], line["values"]) == ({"c": "90071992547409930.01"}, {"c": "90071992547409930.01"})
        write_matches(matches, tmp_path / "m.csv")
        cells = (tmp_path / "m.csv").read_text().splitlines()[1].split(",")
        assert (cells[0], cells[-1]) == ("90071992547409930.01", "90071992547409930.01")
    points = acep.match(rows, query, engine=engine, output="points")
    assert points[0].key == {"c": NEAR[0]}


def test_decimals_of_an_inner_query(engine: str) -> None:
    rows = table(c=pa.array([Decimal("1.10"), Decimal("1.10"), Decimal("1.10"), Decimal("1.2")], pa.decimal128(9, 2)))
    query = acep.parse(
        "FROM (PATTERN SEQ(a x, b y) WITHIN 9 RETURN x.c + y.c AS s) AS T "
        "PATTERN SEQ(T p, T q) WHERE p.s < q.s AND p.s = 2.2 WITHIN 9 RETURN q.s AS s"
    )
    assert {m.values["s"] for m in acep.match(rows, query, engine=engine)} == {Decimal("2.30")}


def test_a_failure_is_told_in_decimals() -> None:
    rows = table(c=pa.array([Decimal("1.10"), Decimal("1.05")], pa.decimal128(9, 2)))
    told = why(rows, acep.parse("PATTERN SEQ(a x, b y) WHERE y.c > x.c WITHIN 9"))
    assert "y.c > x.c does not hold (y.c = 1.05, x.c = 1.10)" in str(told)


def test_a_number_of_a_query_keeps_its_digits() -> None:
    from acep.pattern.printing import canonical

    one, two = (acep.parse(f"PATTERN SEQ(a x) WHERE x.c = 90071992547409930.0{i} WITHIN 9") for i in (1, 2))
    assert canonical(one) != canonical(two)
    assert canonical(acep.parse(canonical(one))) == canonical(one)
    with pytest.raises(QueryError, match="too large"):
        acep.parse("PATTERN SEQ(a x) WHERE x.c = 1e390 WITHIN 9")


def test_explain_says_what_was_written() -> None:
    from acep.events.tables import schema_of
    from acep.explain.stages import explain

    query = acep.parse("PATTERN SEQ(a x, b y) WHERE y.c > x.c + 0.5 AND x.c * 0.1 < y.c WITHIN 9")
    said = explain(query, schema_of(table(c=pa.array([Decimal("1.10")] * 2, pa.decimal128(9, 2))).schema))
    assert "y.c > x.c + 0.5" in said
    assert "decimal order" not in said

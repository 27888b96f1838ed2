"""Every type of Spark in every role: ``python -m tests.spark.spark_types`` writes the table of
``docs/reference/types.md``.

``yes``: the workers give what one process gives for the same values, which other tests hold against exact arithmetic.
``no``: the column is refused by an error that names it, before anything runs.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import types as st

import acep
from acep.errors import AcepError
from acep.spark.job import make_spark_job
from tests.spark.by_hand import as_rows, batch, same, stream, the_job

__all__ = ["BEGIN", "END", "EVERY", "PAGE", "ROLES", "SAMPLES", "outcome", "table_lines"]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "types.md"
BEGIN, END = "<!-- the table: python -m tests.spark.spark_types -->", "<!-- end of the table -->"
NEAR = (Decimal("90071992547409930.01"), Decimal("90071992547409930.02"))
WIDE = (Decimal("1234567890.000000001"), Decimal("1234567890.000000002"))
TIMES = (dt.datetime(2024, 3, 31, 0, 59, 59), dt.datetime(2024, 3, 31, 1, 0, 0))


class Place(st.UserDefinedType):
    """A type of a user's own."""

    @classmethod
    def sqlType(cls) -> st.DataType:  # noqa: N802 - Spark's name
        return st.LongType()

    @classmethod
    def module(cls) -> str:
        return __name__


def _newer(name: str, *args: Any) -> st.DataType | None:
    """A type that not every Spark has on which acep runs; ``None`` where this one has it not."""
    made = getattr(st, name, None)
    return None if made is None else made(*args)


# Of each type its Arrow type and two values, the lower one first; those that no query can use have none.
EVERY: dict[str, tuple[st.DataType | None, tuple[pa.DataType, Any, Any] | None]] = {
    "boolean": (st.BooleanType(), (pa.bool_(), False, True)),
    "byte": (st.ByteType(), (pa.int8(), -128, 126)),
    "short": (st.ShortType(), (pa.int16(), -(2**15), 2**15 - 2)),
    "integer": (st.IntegerType(), (pa.int32(), -(2**31), 2**31 - 2)),
    "long": (st.LongType(), (pa.int64(), 2**53, 2**53 + 1)),
    "float": (st.FloatType(), (pa.float32(), 0.5, 1.5)),
    "double": (st.DoubleType(), (pa.float64(), 0.1, 2.0**53)),
    "decimal(19,2)": (st.DecimalType(19, 2), (pa.decimal128(19, 2), *NEAR)),
    "decimal(38,0)": (st.DecimalType(38, 0), (pa.decimal128(38, 0), Decimal(2**53), Decimal(2**53 + 1))),
    "decimal(38,18)": (st.DecimalType(38, 18), (pa.decimal128(38, 18), *WIDE)),
    "decimal(38,20)": (st.DecimalType(38, 20), (pa.decimal128(38, 20), *WIDE)),
    "string": (st.StringType(), (pa.string(), "a", "b")),
    "varchar": (st.VarcharType(3), (pa.string(), "a", "b")),
    "char (without the blanks at its end)": (st.CharType(3), (pa.string(), "a", "b")),
    "string collate UTF8_LCASE, or any but UTF8_BINARY": (st.StringType("UTF8_LCASE"), None),
    "binary": (st.BinaryType(), None),
    "date": (st.DateType(), (pa.date32(), dt.date(2024, 2, 29), dt.date(2024, 3, 1))),
    "timestamp": (st.TimestampType(), (pa.timestamp("us", "UTC"), *(t.replace(tzinfo=dt.UTC) for t in TIMES))),
    "timestamp_ntz": (st.TimestampNTZType(), (pa.timestamp("us"), *TIMES)),
    "time": (_newer("TimeType", 6), None),
    "interval, day-time": (st.DayTimeIntervalType(), (pa.duration("us"), dt.timedelta(1), dt.timedelta(1, 0, 1))),
    "interval, year-month": (st.YearMonthIntervalType(), None),
    "interval, of the calendar": (st.CalendarIntervalType(), None),
    "array": (st.ArrayType(st.LongType()), None),
    "struct (its fields are columns)": (st.StructType([st.StructField("id", st.LongType())]), None),
    "map": (st.MapType(st.StringType(), st.LongType()), None),
    "variant": (st.VariantType(), None),
    "geometry, geography": (_newer("GeometryType", 0), None),
    "void": (st.NullType(), (pa.null(), None, None)),
    "a type of a user's own": (Place(), None),
}
SAMPLES = {name: (held, sample) for name, (held, sample) in EVERY.items() if held is not None}
LITERALS = {"string": "'a'", "varchar": "'a'", "char": "'a'", "boolean": "false", "daytimeinterval": "24 h"}
MOMENTS = ("date", "timestamp", "timestamp_ntz")


def _where(role: str, held: st.DataType) -> tuple[str, str, dict[str, str]]:
    """A predicate, RETURN and the names of columns that put the column ``x`` into a role."""
    kind = held.typeName()
    literal = "TIMESTAMP '2024-03-31 00:59:59'" if kind in MOMENTS else LITERALS.get(kind, "1")
    difference = "q.x - p.x >= 0 s" if kind in (*MOMENTS, "daytimeinterval") else "p.x - q.x < 1"
    return {
        "`ts`": ("p.n = q.n", "", {"ts": "x"}),
        "`type`": ("p.n = q.n", "", {"type": "x"}),
        "`seq`": ("p.n = q.n", "", {"seq": "x"}),
        "`id`": ("p.n = q.n", "", {"id": "x"}),
        "`[x]`": ("[x]", "", {}),
        "compared": ("p.x = q.x AND p.x <= q.x", "", {}),
        "`+ - *`": (difference, "", {}),
        "`max`": ("p.n = q.n", "RETURN max(q.x) AS m", {}),
        "`IN`": (f"p.x IN ({literal})", "", {}),
        "`RETURN`": ("p.n = q.n", "RETURN q.x AS v", {}),
    }[role]


ROLES = ("`ts`", "`type`", "`seq`", "`id`", "`[x]`", "compared", "`+ - *`", "`max`", "`IN`", "`RETURN`")


def outcome(name: str, role: str) -> str:
    """``yes`` where the column has the role, ``no`` where it is refused as it should be, else what is wrong."""
    held, sample = SAMPLES[name]
    where, returns, names = _where(role, held)
    query = acep.parse(f"PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) {{ {where} }} {returns}")
    columns = st.StructType([st.StructField("t", st.TimestampType()), st.StructField("what", st.StringType())])
    columns = columns.add("n", st.LongType()).add("row", st.LongType()).add("x", held)
    options = {"ts": "t", "type": "what", "seq": "row", "id": "row"} | names
    try:
        make_spark_job(columns, query, **options)
    except AcepError as error:
        named = "`x`" in error.message or role not in ("`ts`", "`type`", "`seq`", "`id`")
        return "no" if named else f"refused without its name: {error}"
    if sample is None:
        return "taken"
    return _compared(query, sample, options)


def _compared(query: acep.Query, sample: tuple[pa.DataType, Any, Any], options: dict[str, str]) -> str:
    """The answer of the workers against that of one process."""
    held, low, high = sample
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    table = pa.table(
        {
            "t": pa.array([start + dt.timedelta(seconds=i) for i in range(4)], pa.timestamp("us", "UTC")),
            "what": ["a", "a", "b", "b"],
            "n": [1, 1, 1, 1],
            "row": [0, 1, 2, 3],
            "x": pa.array([low, high, low, high] if "x" not in options.values() else [low, low, high, high], held),
        }
    )
    if options["id"] == "x":
        table = table.slice(1, 2)
    exact = as_rows(acep.match(table, query, **options))
    for buckets in (1, 8):
        job = the_job(table, query, **options, buckets=buckets)
        if not same(batch(job, table), exact):
            return f"another answer in {buckets} buckets of a batch"
        if not same(stream(job, [table], delay=10**7)[0], exact):
            return f"another answer in {buckets} buckets of a stream"
    return "yes"


def table_lines() -> list[str]:
    """The table of the page, of the types that this Spark has."""
    head = [f"| type | {' | '.join(ROLES)} |", "|---" * (len(ROLES) + 1) + "|"]
    return head + [f"| {name} | {' | '.join(outcome(name, role) for role in ROLES)} |" for name in SAMPLES]


if __name__ == "__main__":
    if lacking := sorted(EVERY.keys() - SAMPLES.keys()):
        raise SystemExit(f"the page tells of types that this Spark has not: {', '.join(lacking)}")
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    lines = "\n".join([BEGIN, *table_lines(), END])
    PAGE.write_text(before + lines + rest.partition(END)[2], encoding="utf-8")

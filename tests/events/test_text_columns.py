"""How a column of texts of CSV, TSV and JSON Lines gets its type: what is odd, what is null, and what is said of it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.errors import DataError, DataWarning
from tests.events.test_streams import make_tiny

LESS = "PATTERN SEQ(a p, b q) WHERE p.x < q.x WITHIN 1"
EQUAL = "PATTERN SEQ(a p, b q) WHERE p.x = q.x WITHIN 1"
SECOND, MICRO, NANO = (pa.timestamp(unit) for unit in ("s", "us", "ns"))
ZONED = pa.timestamp("s", "UTC")
TEXT = pa.string()
SIGN = ";"  # stands between cells of CSV, as these have commas


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(form: str, cells: Sequence[Any], name: str = "x") -> str:
    """Write a file with a column ``x``; in CSV a cell is written as it is."""
    path = f"{name}.{form}"
    rows = [(i, "ab"[i % 2], cell) for i, cell in enumerate(cells)]
    if form == "parquet":
        pq.write_table(pa.table({"ts": [i for i, *_ in rows], "type": [t for _, t, _ in rows], "x": cells}), path)
    elif form == "jsonl":
        Path(path).write_text(
            "".join(json.dumps(dict(zip(("ts", "type", "x"), row, strict=True))) + "\n" for row in rows)
        )
    else:
        sign = "\t" if form == "tsv" else SIGN
        lines = [sign.join(("ts", "type", "x")), *(sign.join((str(i), t, str(cell))) for i, t, cell in rows)]
        Path(path).write_text("\n".join(lines) + "\n")
    return path


def outcome(form: str, cells: Sequence[Any], **options: Any) -> tuple[pa.DataType | str, str]:
    """The type of the column, or the message of the error, and the first warning."""
    if form == "csv":
        options["delimiter"] = SIGN
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            column_type = acep.read_events(write(form, cells), **options).schema.field("x").type
        except DataError as wrong:
            return wrong.message, ""
    return column_type, next((str(w.message) for w in caught if issubclass(w.category, DataWarning)), "")


TIMES = ["2024-01-01T09:00:00-05:00", "2024-01-01T10:00:00Z"]
DAYS = ["2024-01-01", "2024-01-02"]
BIG = ["9007199254740992", "9007199254740993"]
FINE, FAR = "2024-01-01T00:00:00.123456789", "9999-01-01T00:00:00"

# The cells, the options, the type or a part of the error, and the line and the cell of the warning ("": there is none).
TABLE: list[tuple[list[str], dict[str, Any], pa.DataType | str, tuple[int, str] | str]] = [
    # One odd cell among times: what Arrow reads, and nothing else, is a time.
    (TIMES, {}, ZONED, ""),
    *(
        ([*DAYS, odd], {}, TEXT, (4, odd))
        for odd in (
            "2024-02-30", "2024-13-01", "2024-01-01T25:00", "2024-01-01T24:00:00", "2024-01-01T23:59:60", "2024-01-01T00:00:00.1234567890", "1600-01-01T00:00:00.123456789", "2024-01-01T10:00:00Z",
            "never", "10:00", "7", "true", "2024-01-01T1000",
        )
    ),
    *(([*TIMES, odd], {}, TEXT, (4, odd)) for odd in ("2024-02-30T00:00:00Z", "2024-01-01T10:00:00+25:00", "2024-01-01")),
    # A blank beside a date does not count, and beside a time it does.
    ([*DAYS, " 2024-01-03", "2024-01-04 "], {}, pa.date32(), ""),
    (["2024-01-01T10:00", "2024-01-02", " 2024-01-03"], {}, TEXT, (4, " 2024-01-03")),
    (["2024-01-01T10:00", "2024-01-02", " 2024-01-03T10:00"], {}, TEXT, (4, " 2024-01-03T10:00")),
    # One odd cell among numbers, and among truth values.
    *((["1", "2", odd], {}, TEXT, (4, odd)) for odd in ("７", "٧", "7\u00a0", "NA", "null", "N/A", "-", "0x1F", "1_000", "1,000")),
    *((["1", "2.5", odd], {}, TEXT, (4, odd)) for odd in ("NULL", "#N/A", "12 ms", "1e", "--1")),
    *((["true", "FALSE", odd], {}, TEXT, (4, odd)) for odd in ("TRUE ", " true", "yes", "tRue", "1")),
    # Blanks beside a number do not count; nan and inf are doubles.
    ([" 7", "8 ", "9"], {}, pa.int64(), ""),
    (["nan", "inf", "-Infinity", "1"], {}, pa.float64(), ""),
    # Half of the cells are enough, wherever they stand.
    ([f"never{i}" if i % 2 else f"2024-01-{i % 28 + 1:02}" for i in range(100)], {}, TEXT, (3, "never1")),
    ([f"never{i}" if i < 50 else str(i) for i in range(100)], {}, TEXT, (2, "never0")),
    ([f"{i} ms" if i % 10 == 3 else str(i) for i in range(500)], {}, TEXT, (5, "3 ms")),
    ([f"{i} ms" if i >= 450 else str(i) for i in range(500)], {}, TEXT, (452, "450 ms")),
    ([f"never{i}" if i < 51 else str(i) for i in range(100)], {}, TEXT, ""),
    # Decimals with a point where a comma was announced, and the other way round.
    (["1.5", "2.5", "3.5"], {"decimal": ","}, TEXT, (2, "1.5")),
    (["1,5", "2,5", "3,5"], {}, TEXT, (2, "1,5")),
    # A leading zero and a plus sign make texts, also beside decimals; "0", "0.5" and "-0.5" have none.
    *((["1234", "1.5", odd], {}, TEXT, (4, odd)) for odd in ("01234", "007", "+7", "-07", "00")),
    (["0", "0.5", "-0.5", "-0", "1e3", "7.", "+1.5"], {}, pa.float64(), ""),
    (["01234", "00001"], {}, TEXT, ""),
    (["1", "99999999999999999999", "2"], {}, TEXT, (3, "99999999999999999999")),
    # An integer that no double equals is refused beside decimals.
    *(([*BIG, odd], {}, f"line 3: `x` is {BIG[1]}, an integer that no float is equal to", "") for odd in ("inf", "1.5", "7.", "1e3", "-0.0", "nan")),
    (["1.5", *BIG], {}, "line 4", ""),
    (["12345678901234567", "0.5"], {}, "line 2: `x` is 12345678901234567, an integer", ""),
    ([BIG[0], "0.5"], {}, pa.float64(), ""),
    (BIG, {}, pa.int64(), ""),
    # Null is an empty cell, and what nulls= says; in quotation marks, too.
    (["1", "", '""', "2"], {}, pa.int64(), ""),
    (["1", "NA", '"NA"', "-", "2"], {"nulls": ["NA", "-"]}, pa.int64(), ""),
    (["a", "NA", "b"], {"nulls": ["NA"]}, TEXT, ""),
    (["2024-01-01", "null"], {"nulls": ["null"]}, pa.date32(), ""),
    (["1,5", "N"], {"nulls": ["N"], "decimal": ","}, pa.float64(), ""),
    (["1", "na"], {"nulls": ["NA"]}, TEXT, (3, "na")),
    (["1", "NA"], {"nulls": ["NA"], "cast": {"x": "string"}}, TEXT, ""),
    # Times of several units have the finest; what that does not reach is odd.
    ([*DAYS, "2024-01-03T00:00:00.5"], {}, MICRO, ""),
    (["2024-01-01T00:00:00.123456000", "2024-01-03T00:00:00"], {}, NANO, ""),
    ([FAR, "2024-01-03T00:00:00.5"], {}, MICRO, ""),
    ([FAR, FINE], {}, TEXT, (2, FAR)),
    ([FINE, *DAYS, FAR], {}, TEXT, (5, FAR)),
    ([FINE, "9999-01-01"], {}, TEXT, (3, "9999-01-01")),
]  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "tsv"])
@pytest.mark.parametrize("in_blocks", [False, True], ids=["whole", "in blocks"])
def test_the_type_of_a_column(monkeypatch: pytest.MonkeyPatch, form: str, in_blocks: bool) -> None:
    if in_blocks:
        make_tiny(monkeypatch)
    wrong = []
    for cells, options, expected, odd in TABLE:
        result, warning = outcome(form, cells, **options)
        is_expected = (
            expected in result if isinstance(expected, str) and isinstance(result, str) else result == expected
        )
        place = f"line {odd[0]}: `x` is {odd[1]!r}" if odd else ""
        if not is_expected or (place not in warning if odd else warning):
            wrong.append((cells[:5], options, str(result), warning))
    assert wrong == []

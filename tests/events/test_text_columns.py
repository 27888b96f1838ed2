"""How a column of texts of CSV, TSV and JSON Lines gets its type: what is odd, what is null, and what is said of it."""

from __future__ import annotations

import datetime as dt
import json
import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from acep.errors import AcepError, DataError, DataWarning
from acep.events.files.csv.cell_sorts import cell_sorts
from acep.events.files.csv.text_types import block_of, type_of_looks
from tests.case_counts import CASES
from tests.events.test_streams import make_tiny
from tests.thinned import thinned_product

LESS = "PATTERN SEQ(a p, b q) WHERE p.x < q.x WITHIN 1"
EQUAL = "PATTERN SEQ(a p, b q) WHERE p.x = q.x WITHIN 1"
SECOND, MICRO, NANO = (pa.timestamp(unit) for unit in ("s", "us", "ns"))
ZONED = pa.timestamp("s", "UTC")
TEXT = pa.string()
ARABIC, WIDE = "\u0667", "\uff17"  # digits that are not ASCII
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
            "2024-02-30", "2024-13-01", "2024-01-01T25:00", "2024-01-01T24:00:00", "2024-01-01T23:59:60",
            "2024-01-01T00:00:00.1234567890", "1600-01-01T00:00:00.123456789", "2024-01-01T10:00:00Z",
            "never", "10:00", "7", "true", "2024-01-01T1000",
        )
    ),
    *(([*TIMES, odd], {}, TEXT, (4, odd)) for odd in ("2024-02-30T00:00:00Z", "2024-01-01T10:00+25:00", "2024-01-01")),
    # A blank beside a date does not count, and beside a time it does.
    ([*DAYS, " 2024-01-03", "2024-01-04 "], {}, pa.date32(), ""),
    (["2024-01-01T10:00", "2024-01-02", " 2024-01-03"], {}, TEXT, (4, " 2024-01-03")),
    (["2024-01-01T10:00", "2024-01-02", " 2024-01-03T10:00"], {}, TEXT, (4, " 2024-01-03T10:00")),
    # One odd cell among numbers, and among truth values.
    *((["1", "2", odd], {}, TEXT, (4, odd)) for odd in (WIDE, ARABIC, "7\u00a0", "NA", "null", "N/A", "-")),
    *((["1", "2", odd], {}, TEXT, (4, odd)) for odd in ("0x1F", "1_000")),
    (["1", "2", "1,000"], {}, TEXT, (4, "1,000")),
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
    *(
        ([*BIG, odd], {}, f"line 3: `x` is {BIG[1]}, an integer that no float is equal to", "")
        for odd in ("inf", "1.5", "7.", "1e3", "-0.0", "nan")
    ),
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


@pytest.mark.long
@pytest.mark.parametrize(
    ("in_blocks", "form"),
    thinned_product([False, True], ["csv", "tsv"], every=3),
    ids=["whole-csv", "whole-tsv", "in blocks-csv", "in blocks-tsv"],
)
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


# A cell of the time column, other cells, the place and the cell of the error, and the cast of the hint, which works.
ROLES = [
    ("never", [str(i) for i in range(200)], "is not a time: 'never'", "int"),
    ("NA", [str(i) for i in range(9)], "is not a time: 'NA'", "int"),
    ("never", [f"2024-01-{i + 1:02}" for i in range(9)], "is not a time: 'never'", "timestamp"),
    ("2024-02-30", [f"2024-01-{i + 1:02}" for i in range(9)], "is not a time: '2024-02-30'", "timestamp"),
    (ARABIC, [str(i) for i in range(9)], f"is not a time: {ARABIC!r}", "int"),
    ("+7", [str(i) for i in range(9)], "is not a time: '+7'", ""),
    ("0x7", [str(i) for i in range(9)], "is not a time: '0x7'", ""),
    ("1e3", [str(i) for i in range(9)], "is '1e3', which is not written as an integer, and no time", "int"),
    ("nan", [str(i) for i in range(9)], "is 'nan', which is not written as an integer, and no time", "int"),
    (FAR, [FINE, FINE], f"is {FAR!r}; nanoseconds do not reach it, and {FINE!r} needs them", ""),
]  # fmt: skip


@pytest.mark.parametrize("in_blocks", [False, True], ids=["whole", "in blocks"])
@pytest.mark.parametrize(("odd", "times", "what", "cast"), ROLES)
def test_an_odd_time_is_named_and_its_hint_works(
    monkeypatch: pytest.MonkeyPatch, odd: str, times: list[str], what: str, cast: str, in_blocks: bool
) -> None:
    if in_blocks:
        make_tiny(monkeypatch)
    cells = [*times[:-1], odd, times[-1]]
    Path("x.csv").write_text("ts,type\n" + "".join(f"{cell},a\n" for cell in cells))
    with pytest.raises(DataError) as wrong:
        acep.read_events("x.csv")
    assert wrong.value.message == f"`x.csv`, line {len(cells)}: `ts` {what}"
    if cast:
        assert f'cast={{"ts": "{cast}"}} says' in str(wrong.value.hint)
        rows = acep.read_events("x.csv", cast={"ts": cast}, skip_bad_lines=True, max_skipped=0.5)
        assert len(rows) == len(times)
    if odd == "NA":
        rows = acep.read_events("x.csv", nulls=["NA"], skip_bad_lines=True, max_skipped=0.5)
        assert len(rows) == len(times)
        with pytest.raises(DataError, match=f"line {len(cells)}: `ts` is null"):
            acep.read_events("x.csv", nulls=["NA"])


def test_a_null_id_has_a_line_and_can_be_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.csv").write_text("ts,type,k\n1,a,7\n2,b,NA\n3,b,8\n")
    command = ["match", "PATTERN SEQ(a p, b q) WITHIN 9", "x.csv", "--count", "--id", "k", "--null", "NA"]
    assert main(command) == 2
    assert "`x.csv`, line 3: `k` is null" in capsys.readouterr().err
    assert main([*command, "--skip-bad-lines", "--max-skipped", "50%"]) == 0
    assert capsys.readouterr().out == "1\n"


@pytest.mark.filterwarnings("always::acep.errors.DataWarning")
def test_the_hint_of_a_text_for_null_is_typed_as_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["match", LESS, write("csv", ["1", "2", "3", "#N/A"]), "--delimiter", SIGN, "--count"]
    assert main(command) == 0
    assert "--null '#N/A' that it stands for null" in capsys.readouterr().err
    assert main([*command, "--null", "#N/A", "--null", "-"]) == 0
    streams = capsys.readouterr()
    assert (streams.out, streams.err) == ("1\n", "")


@pytest.mark.parametrize("nulls", ["NA", [1], None, b"NA"])
def test_nulls_are_a_list_of_texts(nulls: Any) -> None:
    with pytest.raises(DataError, match="nulls= takes a list of texts"):
        acep.read_events(write("csv", ["1"]), nulls=nulls)


ALPHABET = ["7", "0", "-", "+", ".", "e", "1", " ", ":", "2024-01-31", "2024-02-30", "T", "10:00", "Z", "+02:00", ".5",
            "x", "true", "False", "inf", "nan", "0x", ARABIC, "9999-12-31", ".123456789",
            "99999999999999999999", ","]  # fmt: skip


def test_a_cell_is_of_the_sort_that_the_reader_makes_of_it() -> None:
    """Each cell by itself, read by Arrow's CSV reader, against what whole-column operations say of all."""
    chance = random.Random(7)
    cells = sorted({"".join(chance.choices(ALPHABET, k=chance.randint(1, 3))) for _ in range(2_000)})
    sort_of = {cells[row]: sort for sort, rows in cell_sorts(pa.array(cells)).items() for row in rows}
    chosen = chance.sample(cells, CASES(400))
    wrong = []
    for cell in chosen:
        looks = block_of(pa.chunked_array([[cell]])).looks
        column_type, sort = type_of_looks(looks), sort_of[cell]
        is_number = pa.types.is_integer(column_type) or pa.types.is_floating(column_type)
        if looks & {"padded", "text", "zeros", "big"}:
            is_right = not is_number and sort in ("texts", "digits that are no plain numbers", "numbers with a comma")
            # Arrow tries nanoseconds only for fractions.
            is_right = is_right or (looks == {"text"} and cell.startswith("9999-12-31") and sort.startswith("times"))
        elif pa.types.is_time(column_type):
            is_right = sort == "times of day" or cell != cell.strip()
        else:
            kinds = {"numbers": is_number, "truth values": pa.types.is_boolean(column_type)}
            is_zoned = getattr(column_type, "tz", None) is not None
            is_time = pa.types.is_date(column_type) or pa.types.is_timestamp(column_type)
            kinds |= {"times": is_time and not is_zoned, "times with a zone": is_time and is_zoned}
            is_right = kinds.get(sort, False)
        if not is_right:
            wrong.append((cell, str(column_type), sort))
    assert wrong == []


def drawn_value(chance: random.Random, kind: str) -> Any:
    """A value as Parquet has it."""
    if kind == "integers":
        return chance.choice([chance.randint(0, 5), chance.randint(0, 5), 2**53, 2**53 + 1])
    if kind == "numbers":
        return chance.choice([1.0, 1.5, 2.0, -0.0, 0.1, 1e300])
    if kind == "truth values":
        return chance.random() < 0.5
    day = dt.datetime(2024, 1, chance.randint(1, 4), chance.choice([0, 10]))
    return day if kind == "times" else day.replace(tzinfo=dt.UTC)


ODD_CELLS = ["never", "NA", "", "-", "007", "2024-02-30", "10:00", "TRUE ", "7\u00a0", ARABIC, "2024-01-01T25:00", "x1"]


def text_of(value: Any) -> str:
    """A value as CSV has it."""
    if isinstance(value, dt.datetime):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else repr(value) if not isinstance(value, str) else value


def test_all_forms_give_the_same_matches_or_refuse() -> None:
    """Random columns with odd cells: Parquet has what a column ought to be, and the others the texts of its cells."""
    chance = random.Random(11)
    for _ in range(CASES(60)):
        kind = chance.choice(["integers", "numbers", "truth values", "times", "zoned times"])
        values: list[Any] = [drawn_value(chance, kind) for _ in range(chance.randint(4, 9))]
        n_odd = chance.choice([0, 0, 1, 1, 2])
        for row in chance.sample(range(len(values)), n_odd):
            values[row] = chance.choice(ODD_CELLS)
        odd = [value for value in values if isinstance(value, str) and value]
        cells = [text_of(value) for value in values]
        values = [None if value == "" else value for value in values]
        n_usual = sum(value is not None and not isinstance(value, str) for value in values)
        query = EQUAL if kind == "truth values" or chance.random() < 0.5 else LESS
        write("parquet", [None if value is None else text_of(value) for value in values] if odd else values)
        expected = acep.match("x.parquet", query, output="count")
        for form in ("csv", "tsv", "jsonl"):
            is_json = form == "jsonl"
            of_json = [text_of(v) if isinstance(v, dt.datetime) else v for v in values]
            path = write(form, of_json if is_json else cells)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    table = acep.read_events(path, **({"delimiter": SIGN} if form == "csv" else {}))
                    n_matches = acep.match(table, query, output="count")
                except AcepError:
                    # A mixture of numbers and texts in JSON, or of no column.
                    assert is_json, (form, cells)
                    continue
            assert n_matches == expected, (form, query, cells)
            if odd and 2 * n_usual >= n_usual + len(odd):
                assert any(f"`x` is {text!r}" in str(warning.message) for warning in caught for text in odd), cells


@pytest.mark.filterwarnings("always::acep.errors.DataWarning")
def test_a_refused_comparison_names_the_odd_cell(capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.csv").write_text("ts,type,x\n1,a,5\n2,b,7\n3,a,NA\n")
    query = "PATTERN SEQ(a p, b q) WHERE p.x < 7 WITHIN 9"
    assert main(["match", query, "x.csv", "--count"]) == 2
    error = capsys.readouterr().err.partition("acep: a string cannot be compared with an int")[2]
    assert "hint: `x.csv`, line 4: `x` is 'NA', and 2 values of the column are numbers" in error
    assert main(["match", query, "x.csv", "--count", "--null", "NA"]) == 0
    assert capsys.readouterr().out == "1\n"
    assert main(["lint", query, "x.csv"]) == 0
    assert "`x.csv`, line 4: `x` is 'NA'" in capsys.readouterr().err


@pytest.mark.parametrize(("role", "cell"), [("seq", "1e3"), ("seq", "nan"), ("id", "1.5"), ("id", "nan")])
def test_an_order_and_ids_with_decimals_name_the_cell(capsys: pytest.CaptureFixture[str], role: str, cell: str) -> None:
    Path("x.csv").write_text(f"ts,type,k\n1,a,7\n2,b,{cell}\n3,b,8\n")
    assert main(["match", "PATTERN SEQ(a p, b q) WITHIN 9", "x.csv", "--count", f"--{role}", "k"]) == 2
    assert f"`x.csv`, line 3: `k` is '{cell}', which is not written as an integer" in capsys.readouterr().err


def test_a_followed_folder_takes_texts_for_null_and_goes_on_with_them(capsys: pytest.CaptureFixture[str]) -> None:
    Path("in").mkdir()
    Path("in/1.csv").write_text("ts,type,x\n1,a,5\n2,b,NA\n")
    query = "PATTERN SEQ(a p, b q) WHERE q.x IS NULL WITHIN 9"
    command = ["follow", query, "in", "--state", "state", "--output", "out"]
    assert main([*command, "--null", "NA", "--once"]) == 0
    Path("in/2.csv").write_text("ts,type,x\n3,a,NA\n4,b,NA\n5,a,1\n")
    assert main([*command, "--null", "NA", "--end"]) == 0
    lines = [line for path in sorted(Path("out").iterdir()) for line in path.read_text().splitlines()]
    assert len(lines) == 3
    assert main([*command, "--null", "N", "--once"]) == 2
    assert "other options of reading" in capsys.readouterr().err


def test_logs_of_zeek_have_their_own_text_for_null_and_take_more() -> None:
    header = "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tconn\n"
    rows = "#fields\tts\tuid\tx\n#types\ttime\tstring\tcount\n1.5\ta\t-\n2.5\tNA\t7\n3.5\tb\tNA\n"
    Path("x.tsv").write_text(header + rows)
    assert acep.read_events("x.tsv", type=None, nulls=["NA"]).column("x").to_pylist() == [None, 7, None]
    assert acep.read_events("x.tsv", type=None, nulls=["NA"]).column("uid").to_pylist() == ["a", None, "b"]
    with pytest.raises(DataError, match="line 10: `x` is no int: 'NA'"):
        acep.read_events("x.tsv", type=None)

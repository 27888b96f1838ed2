"""Numbers of more digits than a double has are refused where they would become one, or cast."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep import Matcher
from acep.cli import main
from acep.errors import DataError
from acep.events.files.long_numbers import first_long, is_long, long_runs
from acep.events.files.reading import read_events

NEAR = ("90071992547409930.01", "90071992547409930.02")
ROWS = 20_000  # several blocks of both formats, which Arrow reads


def written(path: Path, name: str, values: list[str], *, more: str = "1") -> Path:
    """A file of rows with the texts ``values`` as ``c``, and ``more`` as ``d``."""
    events = enumerate(values)
    if name.endswith("csv"):
        text = "ts,type,c,d\n" + "".join(f"{i},{'ab'[i % 2]},{c},{more}\n" for i, c in events)
    else:
        text = "".join(f'{{"ts": {i}, "type": "{"ab"[i % 2]}", "c": {c}, "d": {more}}}\n' for i, c in events)
    (path / name).write_text(text)
    return path / name


@pytest.mark.parametrize(("name", "where"), [("e.csv", "line 3"), ("e.jsonl", "line 2")])
def test_a_long_number_is_refused_with_its_cast(tmp_path: Path, name: str, where: str) -> None:
    path = written(tmp_path, name, ["1.5", NEAR[1]])
    with pytest.raises(DataError, match=re.escape(f"{where}: `c` is {NEAR[1]}")) as caught:
        read_events(path)
    assert caught.value.hint == 'cast it: cast={"c": "decimal(19,2)"}, or to float for the nearest double'
    exact = read_events(path, cast={"c": "decimal(19,2)"})
    assert exact.column("c").to_pylist() == [Decimal("1.50"), Decimal(NEAR[1])]
    assert read_events(path, cast={"c": "float"}).column("c").to_pylist() == [1.5, float(NEAR[1])]
    assert read_events(path, cast={"c": "string"}).column("c").to_pylist() == ["1.5", NEAR[1]]
    with pytest.raises(DataError, match=re.escape(f"{where}: `c`")):
        read_events(path, skip_bad_lines=True)


EXACT = 2**53  # up to which all integers are doubles


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl"])
@pytest.mark.parametrize("first", ["1.5", "1"])
@pytest.mark.parametrize(
    ("integer", "cast"),
    [
        (str(EXACT + 1), "decimal(19,3)"),
        (str(-EXACT - 1), "decimal(19,3)"),
        (str(2**63 - 1), "string"),
        (str(2**70 + 1), "string"),
        ("1" + "0" * 400, "string"),
    ],
    ids=lambda text: text[:20],
)
def test_a_cast_of_an_integer_that_no_double_equals_is_refused_with_its_line(
    tmp_path: Path, name: str, first: str, integer: str, cast: str
) -> None:
    path = written(tmp_path, name, [first, integer, "2.5"])
    where = f"line {3 if name == 'e.csv' else 2}: `c` is no float"
    with pytest.raises(DataError, match=where) as caught:
        read_events(path, cast={"c": "float"})
    assert f"an integer that no double equals; {cast} holds it" in caught.value.message
    assert str(read_events(path, cast={"c": cast}).column("c")[1].as_py()).partition(".")[0] == integer
    kept = read_events(path, cast={"c": "float"}, skip_bad_lines=True, max_skipped=0.5)
    assert kept.column("c").to_pylist() == [float(first), 2.5]


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl"])
@pytest.mark.parametrize("number", [str(EXACT), str(-(2**63)), str(2**70), f"{EXACT + 1}.5", "0.1", "-0.0", "1e23"])
def test_a_cast_takes_integers_that_doubles_equal_and_the_doubles_nearest_to_fractions(
    tmp_path: Path, name: str, number: str
) -> None:
    path = written(tmp_path, name, ["1.5", number])
    assert read_events(path, cast={"c": "float"}).column("c").to_pylist() == [1.5, float(number)]


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl"])
def test_a_cast_of_an_integer_far_down_is_refused(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name, ["1.5"] * ROWS + [str(EXACT + 1), "1"])
    with pytest.raises(DataError, match=f"line {ROWS + 1 + (name == 'e.csv')}: `c` is no float"):
        read_events(path, cast={"c": "float"})


@pytest.mark.parametrize(
    "column",
    [
        pa.array([str(EXACT + 1)]),
        pa.array([f" +0{EXACT + 1} "]),
        pa.array([EXACT + 1]),
        pa.array([EXACT + 1], pa.uint64()),
        pa.array([Decimal(EXACT + 1)]),
        pa.array([str(EXACT + 1)], pa.string_view()),
        pa.array([str(EXACT + 1)]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type)[:12],
)
def test_a_cast_in_a_table_is_refused_by_the_same_rule(column: pa.Array) -> None:
    matcher = Matcher("PATTERN SEQ(a x, b y) WHERE x.c = y.c", cast={"c": "float"})
    with pytest.raises(DataError, match=r"in row 0 \(rows count from 0\), which is no float") as caught:
        matcher.push(pa.table({"ts": [1], "type": ["a"], "c": column}))
    assert caught.value.hint == 'mend it, or cast to another type: cast={"c": "decimal(19,3)"}'


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl"])
def test_only_columns_that_a_query_reads_are_refused(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, name, [*NEAR], more="1.5")
    assert main(["match", "PATTERN SEQ(a x, b y) WHERE [d] WITHIN 9", str(path), "--count"]) == 0
    assert main(["match", "PATTERN SEQ(a x, b y) WHERE [c] WITHIN 9", str(path), "--count"]) != 0
    assert "--cast 'c=decimal(19,2)'" in capsys.readouterr().err
    asked = ["match", "PATTERN SEQ(a x, b y) WHERE [c] WITHIN 9", str(path), "--count", "--cast"]
    assert [main([*asked, f"c={held}"]) for held in ("decimal(19,2)", "float")] == [0, 0]
    assert [line[-1] for line in capsys.readouterr().out.split()] == ["0", "1"]


@pytest.mark.long
@pytest.mark.parametrize(("name", "where"), [("e.csv", f"line {ROWS - 1}:"), ("e.jsonl", f"line {ROWS - 2}:")])
def test_a_long_number_far_down_is_named_by_its_row(tmp_path: Path, name: str, where: str) -> None:
    values = ["0.30000000000000004", "-12.345678901234567"] * (ROWS // 2)
    more = f'"{"x" * 250} 1234567890.12345678901234567890"'
    assert read_events(written(tmp_path, name, values, more=more)).num_rows == ROWS
    values[-3] = "-0.123456789012345678"
    path = written(tmp_path, name, values, more=more)
    with pytest.raises(DataError, match=f"{where}.*`c` is -0.123456789012345678") as caught:
        read_events(path)
    assert 'cast={"c": "decimal(19,18)"}' in str(caught.value.hint)


def test_a_field_of_json_is_refused_where_it_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "e.jsonl", ["1"] * 2, more=f'{{"x": {NEAR[0]}, "y": 1.5}}')
    with pytest.raises(DataError, match=r"line 1: `d.x` is 90071992547409930.01") as caught:
        read_events(path, columns=["ts", "type", "d.x"])
    assert 'cast={"d.x": "decimal(19,2)"}' in str(caught.value.hint)
    table = read_events(path, ["ts", "type", "d.x"], cast={"d.x": "decimal(19,2)"})
    assert str(table.column("d.x")[0]) == "90071992547409930.01"
    with pytest.raises(DataError, match=r"line 1: `d.x` is 90071992547409930.01") as caught:
        read_events(path)
    assert "as a text" in str(caught.value.hint)
    assert read_events(path, columns=["ts", "type", "d.y"]).num_rows == 2


@pytest.mark.parametrize(
    ("values", "held"),
    [
        (["0.30000000000000004", "1.50000000000000000000", "000000000000000000001.5"], pa.float64()),
        (["1.2345678901234567890e2", "-1234567.8901234567"], pa.float64()),
        (["1234567890123456789", "1"], pa.int64()),
        ([NEAR[0], "x"], pa.string()),
        (["12345678901234567890", "1"], pa.string()),
    ],
)
def test_what_is_not_refused(tmp_path: Path, values: list[str], held: pa.DataType) -> None:
    assert read_events(written(tmp_path, "e.csv", values)).column("c").type == held


def test_a_long_integer_among_doubles_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "e.csv", ["1234567890123456789", "1.5"])
    with pytest.raises(DataError, match=r"line 2: `c` is 1234567890123456789"):
        read_events(path)


NUMBERS = st.from_regex(r"-?(0|0{0,3}[1-9][0-9]{0,19})(\.[0-9]{0,25})?(e-?[0-9]{1,2})?", fullmatch=True)


@given(st.lists(st.none() | NUMBERS, max_size=9), st.integers(0, 3))
def test_long_numbers_are_those_of_more_than_17_digits(values: list[str | None], start: int) -> None:
    def long(text: str | None) -> bool:
        if text is None or "e" in text:
            return False
        whole, _, rest = text.removeprefix("-").partition(".")
        return len((whole + rest).strip("0")) > 17

    column = pa.chunked_array([pa.array(values, pa.string()).slice(start), pa.array(values, pa.string())])
    texts = [*values[start:], *values]
    wanted = next(((row, text) for row, text in enumerate(texts) if long(text)), None)
    assert first_long(column) == wanted
    assert [is_long(text) for text in texts if text is not None] == [long(text) for text in texts if text is not None]
    block = " ".join(f"[{text}]" for text in texts).encode()
    pointed = {text.removeprefix("-") for text in texts if text is not None and "." in text and long(text)}
    assert pointed <= {block[at:].split(b"]")[0].decode() for at in long_runs(block)}

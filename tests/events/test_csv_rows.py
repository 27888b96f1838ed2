"""Quotation marks in CSV: no row vanishes in a cell without a word, and what was skipped is counted."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import acep
from acep.errors import DataError
from acep.events.files.csv.csv_rows import RowCutter
from tests.events.test_streams import make_tiny

PAIR = "PATTERN SEQ(a x, b y) WITHIN 5"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(*rows: str) -> str:
    Path("x.csv").write_text("\n".join(("ts,type,note", *rows)) + "\n", encoding="utf-8")
    return "x.csv"


def refused(**how: Any) -> DataError:
    with pytest.raises(DataError) as raised:
        acep.read_events("x.csv", **how)
    return raised.value


@pytest.mark.long
@pytest.mark.parametrize("small", [True, False])
def test_a_stray_mark_does_not_make_rows_vanish(monkeypatch: pytest.MonkeyPatch, small: bool) -> None:
    if not small:
        make_tiny(monkeypatch)
    rows = [f"{i},{'ab'[i % 2]},note {i}" for i in range(1000)]
    rows[1], rows[499] = '1,b,"note 1', '499,b,note 499"'
    write(*rows)
    assert refused().message == "`x.csv`, line 3: quotation marks make one cell of lines that look like rows"
    assert refused().code == "data_value"
    with pytest.raises(DataError, match="line 3: quotation marks"):
        acep.match("x.csv", PAIR)
    table = acep.read_events("x.csv", skip_bad_lines=True)
    assert table.column("ts").to_pylist() == [0, *range(2, 1000)]
    assert len(acep.read_events("x.csv", multiline_cells=True)) == 502
    assert acep.read_events("x.csv", quote=None).column("note").to_pylist()[1] == '"note 1'


@pytest.mark.parametrize(
    ("rows", "message", "hint"),
    [
        (('1,a,"one', "2,b,two"), "line 2: a quotation mark begins a cell and is not closed", "quote=None"),
        (("1,a,one", '2,b,"two'), "line 3: a quotation mark begins a cell and is not closed", "close it"),
        (('1,a,"one', '2,b,"two"'), "line 2: text follows the quotation mark that closes a cell", "twice"),
        (('1,a,"on" e', "2,b,two"), "line 2: text follows the quotation mark that closes a cell", "twice"),
        (('1,"a,one', '2,b",two'), "line 2: quotation marks make one cell of lines", "multiline_cells"),
        (('"1,a,one', '2",b,two'), "line 2: text follows|line 2: quotation marks|line 2 has", None),
    ],
)
def test_each_stray_mark_is_told_with_its_line(rows: tuple[str, ...], message: str, hint: str | None) -> None:
    write(*rows)
    with pytest.raises(DataError, match=message) as raised:
        acep.read_events("x.csv")
    assert hint is None or hint in (raised.value.hint or "")


def test_marks_that_are_no_mistake_are_read() -> None:
    write('1,a,"two', 'lines, with a comma"', '2,b,12" screw', '3,c,"say ""x"""', '4,d,""', '5,e,"x"')
    notes = acep.read_events("x.csv").column("note").to_pylist()
    assert notes == ["two\nlines, with a comma", '12" screw', 'say "x"', None, "x"]


CELL = st.text(st.sampled_from('ab,"\n '), max_size=6)


@given(st.lists(st.tuples(CELL, CELL), max_size=8), st.booleans())
def test_what_is_written_as_csv_is_read(cells: list[tuple[str, str]], all_quoted: bool) -> None:
    with Path("x.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL)
        writer.writerows([("ts", "type", "note"), *((i, *pair) for i, pair in enumerate(cells))])
    with pytest.MonkeyPatch.context() as patch:
        make_tiny(patch)
        table = acep.read_events("x.csv", multiline_cells=True, cast={"note": "string"})
    assert [*zip(table["type"].to_pylist(), table["note"].to_pylist(), strict=True)] == [
        (left or None, right or None) for left, right in cells
    ]


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 8)), min_size=1, max_size=3))
def test_no_mark_makes_a_row_vanish(marks: list[tuple[int, int]]) -> None:
    """Marks are put at any places of a file without one: it is refused, or has all of its rows."""
    lines = ["ts,type,note", *(f"{i},{letter},n{i}" for i, letter in enumerate("abcabc"))]
    for line, place in marks:
        lines[line] = lines[line][:place] + '"' + lines[line][place:]
    Path("x.csv").write_text("\n".join(lines) + "\n")
    try:
        n_rows = acep.read_events("x.csv", cast={"ts": "string"}).num_rows
    except DataError as wrong:
        n_rows = 6 if "`x.csv`, line" in wrong.message else -1
    assert n_rows == 6


@given(st.text(st.sampled_from('a1,"\n'), max_size=24), st.integers(1, 5))
def test_pieces_do_not_depend_on_where_a_chunk_ends(text: str, size: int) -> None:
    def is_row(line: bytes) -> bool:
        return line.count(b",") == 1 and line.startswith(b"1")

    data = text.encode()
    cutter = RowCutter(b",", 12, is_row=is_row)
    whole = [(piece.line, piece.why is None) for piece in cutter.pieces([data]) if piece.why is not None]
    chunks = [data[i : i + size] for i in range(0, len(data), size)]
    assert [(p.line, p.why is None) for p in cutter.pieces(chunks) if p.why is not None] == whole
    kept = b"".join(piece.data for piece in cutter.pieces([data]) if piece.why is None)
    assert b"".join(piece.data for piece in cutter.pieces(chunks) if piece.why is None) == kept


def test_a_row_that_is_too_long() -> None:
    write("1,a,x", f"2,b,{'y' * 5000}", "3,c,z")
    assert "`x.csv`, line 3 is longer than 4,096 bytes" in refused(max_line=4096).message
    assert acep.read_events("x.csv", max_line="4 KB", skip_bad_lines=True, max_skipped=0.5).num_rows == 2
    assert acep.read_events("x.csv", max_line="8 KB").num_rows == 3
    assert "max_line='much' is no size" in refused(max_line="much").message


def test_lines_with_returns_and_blank_lines_are_counted() -> None:
    Path("x.csv").write_bytes(b"\r\n\r\nts,type\r\n1,a\r\n\r\n2,b,c\r\n")
    assert refused().message == "`x.csv`, line 6 has 3 cells, the header 2"
    Path("x.csv").write_bytes(b"ts,type\r1,a\r2,b\r")
    assert acep.read_events("x.csv").column("ts").to_pylist() == [1, 2]


# Dialects ----------------------------------------------------------------------------------------


def test_other_signs_between_cells() -> None:
    Path("x.csv").write_text("ts;type;x\n1;a;2,5\n2;b;1.234\n")
    with pytest.raises(DataError, match="has one column"):
        acep.read_events("x.csv")
    table = acep.read_events("x.csv", delimiter=";", decimal=",", cast={"x": "string"})
    assert table.column("x").to_pylist() == ["2,5", "1.234"]
    Path("x.tsv").write_text("ts\ttype\tx\n1\ta\t2.5\n")
    assert acep.read_events("x.tsv").to_pylist() == [{"ts": 1, "type": "a", "x": 2.5}]
    Path("x.tab").write_text("ts|type|x\n1|a|2.5\n")
    assert acep.read_events("x.tab", delimiter="|").to_pylist() == [{"ts": 1, "type": "a", "x": 2.5}]
    for wrong in ("ab", "", '"', "x", "\n", 5):
        assert "cannot stand between cells" in refused(delimiter=wrong).message


@pytest.mark.parametrize("small", [True, False])
def test_a_comma_before_decimals(monkeypatch: pytest.MonkeyPatch, small: bool) -> None:
    if not small:
        make_tiny(monkeypatch)
    rows = "".join(f"{i};a;{i},25;2024-01-0{i}\n" for i in range(1, 9))
    Path("x.csv").write_text("ts;type;x;day\n" + rows)
    how: dict[str, Any] = {"delimiter": ";", "decimal": ","}
    table = acep.read_events("x.csv", **how)
    assert table.column("x").to_pylist() == [i + 0.25 for i in range(1, 9)]
    assert str(table.column("day")[0]) == "2024-01-01"
    exact = acep.read_events("x.csv", **how, cast={"x": "decimal(5,2)"})
    assert str(exact.column("x")[0]) == "1.25"
    Path("x.csv").write_text("ts;type;x\n1;a;1.5\n2;b;1,5\n3;c;2,5\n")
    with pytest.warns(acep.DataWarning, match=r"line 2: `x` is '1.5', and 2 values of the column are numbers"):
        assert acep.read_events("x.csv", **how).column("x").to_pylist() == ["1.5", "1,5", "2,5"]
    assert "a comma cannot stand between cells" in refused(delimiter=",", decimal=",").message


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_encodings_with_a_mark(encoding: str, name: str) -> None:
    text = "ts,type\n1,\u00e4\n2,\U0001f600\n" if name == "x.csv" else '{"ts": 1, "type": "\u00e4"}\n'
    mark = "" if encoding in ("utf-16", "utf-32", "utf-8-sig") else "\ufeff"
    Path(name).write_bytes((mark + text).encode(encoding))
    with pytest.MonkeyPatch.context() as patch:
        make_tiny(patch)
        assert acep.read_events(name).column("type").to_pylist()[0] == "\u00e4"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_refused_as_such(encoding: str) -> None:
    Path("x.csv").write_bytes("ts,type\n1,a\n".encode(encoding))
    assert "is in UTF-16 or UTF-32, without the mark" in refused().message
    Path("x.csv").write_bytes("ts,type\n1,a\n".encode("utf-16")[:-1])
    assert "is no whole text in UTF-16" in refused().message


ZEEK = (
    "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tconn\n"
    "#open\t2024-01-01-00-00-00\n#fields\tts\tuid\tid.orig_h\tduration\tlocal\tservice\ttags\n"
    "#types\ttime\tstring\taddr\tinterval\tbool\tstring\tset[string]\n"
    '1591367999.305988\tC1\t10.0.0.1\t0.5\tT\tdns\ta,b\n1591368000.000000\t007\t10.0.0.2\t-\tF\t"q\t(empty)\n'
    "#close\t2024-01-01-01-00-00\n"
)


@pytest.mark.parametrize("small", [True, False])
def test_logs_of_zeek(monkeypatch: pytest.MonkeyPatch, small: bool) -> None:
    if not small:
        make_tiny(monkeypatch)
    Path("conn.log").write_text(ZEEK)
    table = acep.read_events("conn.log", format="zeek", type=None)
    rows = table.to_pylist()
    assert [str(row["ts"]) for row in rows] == ["2020-06-05 14:39:59.305988", "2020-06-05 14:40:00"]
    assert [(row["uid"], row["local"], row["duration"], row["service"], row["tags"]) for row in rows] == [
        ("C1", True, 0.5, "dns", "a,b"),
        ("007", False, None, '"q', ""),
    ]
    Path("conn.tsv").write_text(ZEEK)
    found = acep.match("conn.tsv", "PATTERN SEQ(dns a, ANY b) WHERE a.id.orig_h != b.id.orig_h", type="service")
    assert len(found) == 1
    Path("conn.tsv").write_text(ZEEK + ZEEK.replace("\tuid", "\tother"))
    with pytest.raises(DataError, match="line 18: other fields begin here"):
        acep.read_events("conn.tsv", type=None)
    Path("conn.tsv").write_text(ZEEK + ZEEK)
    assert acep.read_events("conn.tsv", type=None).num_rows == 4


def test_the_header_of_zeek_has_to_be_whole() -> None:
    Path("conn.tsv").write_text(ZEEK.replace("#types", "#typos"))
    with pytest.raises(DataError, match="no `#fields` with their `#types`"):
        acep.read_events("conn.tsv", type=None)


@pytest.mark.long
def test_marks_and_rows_of_random_text_end() -> None:
    """Lines of marks are read in time that grows with them, also where each of them is refused."""
    for line in ('"a\n', '""a\n', '1,"x\n', '"""\n', '1,a,"x"y\n'):
        text = "ts,type,note\n" + line * 50_000
        Path("x.csv").write_text(text)
        with pytest.raises(DataError):
            acep.read_events("x.csv", skip_bad_lines=True)

"""A file is cut at the end of a row, wherever its writer is."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from acep.errors import DataError
from acep.events.files.csv.csv_rows import RowCutter
from acep.events.files.options import Options
from acep.growing.row_ends import row_ends_of


def random_rows(rng: Random) -> str:
    """Rows of CSV, some with line ends, quotation marks and commas in their cells."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=rng.choice(["\n", "\r\n"]))
    for number in range(rng.randrange(1, 9)):
        writer.writerow([number, "".join(rng.choices('ab,"\n ', k=rng.randrange(6)))])
    return out.getvalue()


def test_rows_are_the_same_however_a_file_grows(cases: Callable[[int], int]) -> None:
    for seed in range(cases(2000)):
        rng = Random(seed)
        text = random_rows(rng)
        data, taken, pieces, n_bytes = text.encode(), 0, list[bytes](), 0
        while n_bytes < len(data):
            n_bytes = min(len(data), n_bytes + rng.randrange(1, 12))
            end = RowCutter(b",", 1 << 20).end_of_rows(data[taken:n_bytes])
            pieces.append(data[taken : taken + end])
            taken += end
        assert b"".join(pieces) == data, seed
        rows = [row for piece in pieces for row in csv.reader(io.StringIO(piece.decode(), newline=""))]
        assert rows == list(csv.reader(io.StringIO(text, newline=""))), seed


@pytest.mark.parametrize(
    ("head", "header"),
    [
        (b"ts,type\n", 8),
        (b"\n\nts,type\n1", 10),
        (b"\xef\xbb\xbfts,type\n1,a\n", 11),
        (b"ts,type", None),
        (b"\n\n", None),
        (b"", None),
        (b"#separator \\x09\n#fields\tts\n#types\ttime\n", None),
        (b"#separator \\x09\n#fields\tts\n#types\ttime\n1\n", 39),
    ],
)
def test_a_header_is_whole_or_waits(head: bytes, header: int | None, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(head)
    ends = row_ends_of(path, "csv", Options())
    assert (None if ends is None else ends.header) == header


@pytest.mark.parametrize(("limit", "size"), [(1, 5), (7, 5), (10, 10), (99, 12)])
def test_rows_are_bounded_by_bytes_but_for_one(limit: int, size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1234\n1234\n1\n123")
    ends = row_ends_of(path, "jsonl", Options())
    assert ends is not None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert len(ends.read(descriptor, 0, path.stat().st_size, limit, 0)) == size
        assert ends.read(descriptor, 12, path.stat().st_size, limit, 3) == b""
    finally:
        os.close(descriptor)


def test_a_row_that_is_too_long_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n" + b"2" * 100)
    ends = row_ends_of(path, "jsonl", Options(max_line=50))
    assert ends is not None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(DataError, match=r"a\.jsonl`, line 2 is longer than 50 bytes"):
            ends.read(descriptor, 2, 102, 10, 1)
    finally:
        os.close(descriptor)

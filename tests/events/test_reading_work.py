"""How much work the checks of plain CSV are: few cells are looked at one by one, and marks are looked at once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import acep
from acep.events.files import long_numbers
from acep.events.files.csv import cell_sorts, csv_files, quote_bits
from acep.events.files.csv.cell_sorts import FEW
from acep.events.files.csv.csv_rows import RowCutter
from acep.events.files.csv.quote_bits import encloses_cells_only
from acep.events.files.long_numbers import first_long, is_long
from acep.events.files.options import options_of
from acep.events.files.stream import open_events
from tests.case_counts import CASES

BLOCK = 1 << 14
ROWS = 4_000


def plain_events() -> pa.Table:
    """Return events as Arrow writes them: integers, doubles, times, truth values, names and addresses."""
    rng = np.random.default_rng(1)
    times = np.datetime64("2024-01-01T00:00:00", "us") + np.arange(ROWS) * 1_234_567
    return pa.table(
        {
            "ts": np.arange(ROWS),
            "type": pa.array(rng.choice(list("abcde"), ROWS)),
            "k": rng.integers(0, 100, ROWS),
            "x": rng.normal(size=ROWS),
            "at": times,
            "day": times.astype("datetime64[D]"),
            "is_new": pa.array(rng.random(ROWS) < 0.5),
            "user": pa.array([f"u{i}" for i in rng.integers(0, 500, ROWS)]),
            "ip": pa.array([f"10.0.{i % 256}.{i // 256}" for i in rng.integers(0, 60_000, ROWS)]),
        }
    )


def test_the_checks_of_plain_columns_look_at_few_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work: Counter[str] = Counter()

    def count(owner: Any, name: str, amount: Callable[..., int]) -> None:
        function = getattr(owner, name)

        def counting(*arguments: Any, **options: Any) -> Any:
            work[name] += amount(*arguments)
            return function(*arguments, **options)

        monkeypatch.setattr(owner, name, counting)

    count(cell_sorts, "matching", lambda texts, _: len(texts))
    count(cell_sorts, "_unread", lambda cells, _: len(cells))
    count(long_numbers, "is_long", lambda _: 1)
    count(long_numbers, "is_exact", lambda _: 1)
    count(quote_bits, "encloses_cells_only", lambda data, *_: len(data))
    count(RowCutter, "_walk", lambda *_: 1)
    monkeypatch.setattr(csv_files, "BLOCK", BLOCK)
    path, events = tmp_path / "x.csv", plain_events()
    csv.write_csv(events.drop_columns(["ip"]), path)
    table = acep.read_events(path)
    assert path.stat().st_size > 10 * BLOCK
    assert table.drop_columns(["type"]).equals(
        events.drop_columns(["type", "ip"]).cast(table.drop_columns(["type"]).schema)
    )
    assert work["encloses_cells_only"] < 1.01 * path.stat().st_size + csv_files.HEADER  # in the first pass only
    assert work["_walk"] == 1  # for the header
    assert work["matching"] == work["_unread"] == work["is_exact"] == 0
    assert work["is_long"] < ROWS / 100

    # Addresses begin as numbers do; large blocks of them are told from these by their bytes.
    monkeypatch.setattr(csv_files, "BLOCK", 1 << 20)
    csv.write_csv(events, path)
    work.clear()
    assert acep.read_events(path).column("ip").equals(events.column("ip"))
    assert work["matching"] == 0


def test_marks_are_looked_at_twice_if_a_cell_has_several_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "BLOCK", 1 << 10)
    notes = [f"note {i}" if i % 50 else "two\nlines, and no row" for i in range(500)]
    events = pa.table({"ts": range(500), "type": ["a"] * 500, "note": notes})
    csv.write_csv(events, tmp_path / "x.csv")
    assert acep.read_events(tmp_path / "x.csv").column("note").to_pylist() == notes


def test_marks_are_looked_at_again_if_the_file_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "BLOCK", 1 << 10)
    path = tmp_path / "x.csv"
    events = pa.table({"ts": range(300), "type": ["a"] * 300, "note": ["one line"] * 300})
    csv.write_csv(events, path)
    with open_events(path, options_of()) as stream:
        notes = ["some\nlines, and\nno row"] * 300
        csv.write_csv(events.set_column(2, "note", pa.array(notes)), path)
        assert stream.read_all().column("note").to_pylist() == notes


def test_a_quick_look_at_marks_finds_the_same_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(7)
    n_quick = 0
    for _ in range(CASES(2_000)):
        letters, cell = rng.choice(['a,"\n', 'a,"\r\n1', "ab"]), rng.choice(["ab", 'ab,"\n'])
        rows = ['"{}",{}\n'.format("".join(rng.choices(cell, k=rng.randrange(6))), rng.randrange(9)) for _ in range(20)]
        text = "".join(rng.choices(letters, k=rng.choice([3, 63, 64, 65, 130])))
        data = (text if rng.random() < 0.5 else "".join(rows)).encode()
        step = rng.randrange(1, 90)
        chunks = [data[start : start + step] for start in range(0, len(data), step)]
        cutter = RowCutter(b",", rng.choice([9, 10**6]), is_row=rng.choice([None, lambda line: line.count(b",") == 1]))
        pieces = list(cutter.pieces(chunks))
        n_quick += encloses_cells_only(data, b",", b"\n", at_end=True)
        with monkeypatch.context() as patch:
            patch.setattr(quote_bits, "encloses_cells_only", lambda *_, **__: False)
            assert list(cutter.pieces(chunks)) == pieces, (data, step)
    CASES.expect({"quick": n_quick}, "quick")


def test_bytes_of_texts_change_no_sort_of_cells() -> None:
    rng = random.Random(3)
    kinds = ["1", "-1.5e3", "+7", "007", ".5", "1.2.3", "10.0.0.1", "1f7", "nan", "Infinity", "TRUE", "False", "1,5",
             "2024-01-31", "2024-01-31T10:00:00.5Z", "2024-01-31 10:00:00+02:00", "10:00", " 3\t", "3/4", "-", "None",
             "1_0", "\u0667", "99999999999999999999", "", None, "u1"]  # fmt: skip
    cells = rng.choices(kinds, k=2 * FEW)
    sorts: dict[str, list[int]] = {}
    for start in range(0, len(cells), FEW // 2):
        for sort, rows in cell_sorts.cell_sorts(pa.array(cells[start : start + FEW // 2])).items():
            sorts[sort] = [*sorts.get(sort, []), *(start + rows).tolist()]
    assert {sort: rows.tolist() for sort, rows in cell_sorts.cell_sorts(pa.array(cells)).items()} == sorts


def test_the_first_long_number_of_random_ones() -> None:
    rng = random.Random(4)
    for _ in range(CASES(2_000)):
        heads = rng.choices(["", "-", "+", "0.", "-0.", "0.0", "-0.0000", "0", "1.", "-12.", "0.0.", " "], k=9)
        texts = [head + "".join(rng.choices("0123456789", k=rng.randrange(14, 21))) for head in heads]
        row = next((row for row, text in enumerate(texts) if is_long(text)), None)
        assert first_long(pa.chunked_array([texts])) == (None if row is None else (row, texts[row])), texts

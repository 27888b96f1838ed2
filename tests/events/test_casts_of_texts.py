"""A text is cast to a number by one rule, in every form of file and in tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.errors import DataError

# The digits 0 to 9 with a sign or without; white space beside them does not count, nor leading zeros.
INTEGERS = {"7": 7, " 7 ": 7, "\t7": 7, "\u00a07": 7, "+7": 7, "007": 7, "-07": -7, "0": 0, "-0": 0}
NO_INTEGERS = [
    "0x7",
    "0X7",
    "-0x7",
    "+0x7",
    "00x7",
    "1_000",
    "\u0663",
    "\uff19",
    "1,000",
    "1 000",
    "--7",
    "+-7",
    "+",
    "1e3",
    "7.0",
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(form: str, text: str, cast: str) -> Any:
    """Return the value that a text becomes by a cast."""
    table = pa.table({"ts": [1], "type": ["a"], "x": [text]})
    if form == "table":
        query = "PATTERN SEQ(a p) RETURN p.x AS x"
        return acep.Matcher(query, cast={"x": cast}).push(table)[0].values["x"]
    name = f"x.{form}"
    if form == "parquet":
        pq.write_table(table, name)
    elif form == "large":
        pq.write_table(table.cast(table.schema.set(2, pa.field("x", pa.large_string()))), name := "x.parquet")
    else:
        row = json.dumps({"ts": 1, "type": "a", "x": text}) + "\n"
        Path(name).write_text(row if form == "jsonl" else f'ts,type,x\n1,a,"{text}"\n')
    return acep.read_events(name, cast={"x": cast}).column("x")[0].as_py()


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "large", "table"])
def test_a_text_is_an_integer_by_one_rule(form: str) -> None:
    assert {text: read(form, text, "int") for text in INTEGERS} == INTEGERS
    for text in NO_INTEGERS:
        with pytest.raises(DataError, match="which is no int" if form == "table" else "`x` is no int: "):
            read(form, text, "int")


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "large", "table"])
@pytest.mark.parametrize("cast", ["float", "decimal(9,2)", "timestamp(s)"])
def test_other_numbers_have_the_same_digits_and_white_space(form: str, cast: str) -> None:
    plain = {text: read(form, str(number), cast) for text, number in INTEGERS.items()}
    assert {text: read(form, text, cast) for text in INTEGERS} == plain
    for text in NO_INTEGERS[:-2]:
        with pytest.raises(DataError):
            read(form, text, cast)

"""Read the declarative corpus of MATCH_RECOGNIZE: ``*.toml`` in this folder, one table ``[[case]]`` a case.

A case is a clause (or a statement of SQL), rows, and the result, worked out by hand from ISO/IEC 19075-5. Each case has
a ``name`` and a ``ruling``: the rule it follows from.

The rows, one of:

``rows = "aab"``
    One row a letter: a column ``c`` of letters, and ``i``, which counts from 1. Blanks separate partitions: ``p``
    counts these from 1, and ``i`` begins again in each. The empty text is no row.
``values = "10 8 - 9"``
    One row a number: a column ``x`` of numbers, and ``i``, which counts from 1.
``table = "ticks"`` (or a list of names, for a statement)
    A table of the same file, or of ``tables.toml``: ``[tables.ticks]`` with ``rows``, a line of names of columns and a
    line a row, and ``kinds`` for columns whose values do not tell their type.

What is asked, one of:

``clause``, ``sql``
    The text. A statement finds its tables by their names; letters and values are called ``t`` there.
``pattern``
    For letters and values alone: the pattern of a clause that is written by itself (:func:`short_clause`). A variable
    is one capital letter. Over letters, each from A to W has the condition that the row has its letter; from X on a
    variable takes any row, and so do all over values. ``define`` gives other conditions, ``subset``, ``skip`` and
    ``within`` the other parts.

The answer, one of:

``matches = "1:AAB 4:-"``
    For a ``pattern``: each match by its first ``i`` and its variables; ``-`` is an empty match. ``|`` separates
    partitions. The empty text is no match.
``expected``
    A line of the names of columns, then a line a row, in order. ``-`` is null; floats have a point; text that could be
    taken for something else stands in quotes. Where there are partitions, their order does not count.
``error = {message, at, code, is_data}``
    A part of the message, the text at its place, the code, and whether it is about the rows (default: the text). The
    first two are optional.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

__all__ = ["FOLDER", "Case", "CorpusError", "ExpectedError", "cell_text", "load_all", "matches_text", "short_clause"]

FOLDER = Path(__file__).parent

ROW_KEYS = {"rows", "values", "table"}
TEXT_KEYS = {"clause", "sql", "pattern"}
PART_KEYS = {"define", "subset", "skip", "within"}
ANSWER_KEYS = {"matches", "expected", "error"}
CASE_KEYS = {"name", "ruling"} | ROW_KEYS | TEXT_KEYS | PART_KEYS | ANSWER_KEYS
ERROR_KEYS = {"message", "at", "code", "is_data"}
KINDS = {
    "int": pa.int64(),
    "small": pa.int16(),
    "float": pa.float64(),
    "single": pa.float32(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "utc": pa.timestamp("us", tz="UTC"),
    "duration": pa.duration("s"),
    "list": pa.list_(pa.int64()),
}
CELL = re.compile(r'"[^"]*"|\[[^\]]*\]|\S+')
VARIABLE = re.compile(r"\b[A-Z]\b")


class CorpusError(ValueError):
    """An error for a case that is not well written."""


@dataclass(frozen=True)
class ExpectedError:
    """A refusal. ``at``: the text at its place; ``is_data``: it is about the rows."""

    message: str
    at: str | None
    code: str
    is_data: bool


@dataclass(frozen=True)
class Case:
    """A case. ``tables``: those that a statement names, or the only one of a clause. ``expected``: lines of cells, the
    first of them the names of columns. ``matches``: for each partition its matches, as (first row, variables)."""

    file: str
    name: str
    ruling: str
    text: str
    is_statement: bool
    tables: Mapping[str, pa.Table]
    pattern: Mapping[str, Any] | None
    expected: tuple[tuple[str, ...], ...] | None
    matches: str | None
    error: ExpectedError | None

    @property
    def id(self) -> str:
        """Return what the test is called."""
        return f"{self.file}:{self.name}"

    @property
    def table(self) -> pa.Table:
        """Return the table of a clause."""
        (table,) = self.tables.values()
        return table


def load_all(folder: Path = FOLDER) -> list[Case]:
    """Return the cases of all files, in the order of the names of files."""
    shared = _read(folder / "tables.toml").get("tables", {})
    return [
        case for path in sorted(folder.glob("*.toml")) if path.stem != "tables" for case in _cases_of_file(path, shared)
    ]


def _read(path: Path) -> dict[str, Any]:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise CorpusError(f"{path.name}: {error}") from None
    _check_keys(path.name, data, {"tables", "case"})
    return data


def _check_keys(where: str, raw: Mapping[str, Any], keys: Iterable[str]) -> None:
    if surplus := sorted(set(raw) - set(keys)):
        raise CorpusError(f"{where}: no such key: {', '.join(surplus)}")


def _cases_of_file(path: Path, shared: Mapping[str, Any]) -> list[Case]:
    data = _read(path)
    tables = {**shared, **data.get("tables", {})}
    return [_case(path.stem, raw, tables) for raw in data["case"]]


def _case(file: str, raw: dict[str, Any], tables: Mapping[str, Any]) -> Case:
    where = f"{file}:{raw.get('name', '?')}"
    _check_keys(where, raw, CASE_KEYS)
    for keys in ({"name"}, {"ruling"}, ROW_KEYS, TEXT_KEYS, ANSWER_KEYS):
        if len(keys & set(raw)) != 1:
            raise CorpusError(f"{where}: one of {', '.join(sorted(keys))} is needed")
    if "matches" in raw and "pattern" not in raw:
        raise CorpusError(f"{where}: `matches` belong to a `pattern`")
    if "pattern" not in raw and PART_KEYS & set(raw):
        raise CorpusError(f"{where}: the parts of a clause stand in its text")
    text = raw.get("clause") or raw.get("sql") or short_clause(raw)
    return Case(
        file=file,
        name=raw["name"],
        ruling=raw["ruling"],
        text=text,
        is_statement="sql" in raw,
        tables=_tables(where, raw, tables),
        pattern={key: raw[key] for key in raw if key in CASE_KEYS} if "pattern" in raw else None,
        expected=_lines(raw["expected"]) if "expected" in raw else None,
        matches=" ".join(raw["matches"].split()) if "matches" in raw else None,
        error=_error(where, raw["error"]) if "error" in raw else None,
    )


def _error(where: str, raw: Mapping[str, Any]) -> ExpectedError:
    _check_keys(f"{where}: error", raw, ERROR_KEYS)
    return ExpectedError(raw.get("message", ""), raw.get("at"), raw["code"], raw.get("is_data", False))


def short_clause(raw: Mapping[str, Any], measures: str | None = None) -> str:
    """Return the clause of a case with a ``pattern``.

    >>> short_clause({"rows": "ab", "pattern": "A X"}, "COUNT(*) AS size")
    "ORDER BY i MEASURES COUNT(*) AS size PATTERN (A X) DEFINE A AS c = 'a'"
    """
    conditions = dict(raw.get("define", {}))
    if "rows" in raw:
        for variable in VARIABLE.findall(raw["pattern"]):
            if variable < "X":
                conditions.setdefault(variable, f"c = '{variable.lower()}'")
    parts = [
        "PARTITION BY p" if " " in raw.get("rows", "") else "",
        "ORDER BY i",
        f"MEASURES {measures or 'MATCH_NUMBER() AS number, CLASSIFIER() AS variable'}",
        "" if measures else "ALL ROWS PER MATCH",
        f"AFTER MATCH SKIP {raw['skip']}" if "skip" in raw else "",
        f"PATTERN ({raw['pattern']})",
        f"WITHIN {raw['within']}" if "within" in raw else "",
        f"SUBSET {raw['subset']}" if "subset" in raw else "",
        "DEFINE " + ", ".join(f"{name} AS {condition}" for name, condition in conditions.items()) if conditions else "",
    ]
    return " ".join(part for part in parts if part)


def matches_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the matches of a result of :func:`short_clause` as a case writes them.

    >>> rows = [{"i": 1, "number": 1, "variable": "A"}, {"i": 2, "number": 1, "variable": "B"}]
    >>> matches_text([*rows, {"i": 3, "number": 2, "variable": None}])
    '1:AB 3:-'
    """
    partitions: dict[Any, dict[int, list[Mapping[str, Any]]]] = {}
    for row in rows:
        partitions.setdefault(row.get("p"), {}).setdefault(row["number"], []).append(row)
    shown = []
    for key in sorted(partitions, key=str):
        matches = partitions[key].values()
        shown.append(" ".join(f"{m[0]['i']}:{''.join(row['variable'] or '-' for row in m)}" for m in matches))
    return " | ".join(shown)


def _tables(where: str, raw: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, pa.Table]:
    if "rows" in raw:
        return {"t": _letters(raw["rows"])}
    if "values" in raw:
        cells = raw["values"].split()
        numbers = _column(where, "x", cells, "int" if set(cells) == {"-"} else None)
        return {"t": pa.table({"i": pa.array(range(1, len(numbers) + 1), pa.int64()), "x": numbers})}
    names = [raw["table"]] if isinstance(raw["table"], str) else raw["table"]
    if unknown := [name for name in names if name not in tables]:
        raise CorpusError(f"{where}: no such table: {', '.join(unknown)}")
    return {name: _table(name, tables[name]) for name in names}


def _letters(text: str) -> pa.Table:
    groups = text.split()
    letters = [letter for group in groups for letter in group]
    columns = {
        "i": pa.array([i + 1 for group in groups for i in range(len(group))], pa.int64()),
        "c": pa.array(letters, pa.string()),
    }
    if len(groups) > 1:
        columns = {"p": pa.array([p + 1 for p, g in enumerate(groups) for _ in g], pa.int64()), **columns}
    return pa.table(columns)


def _lines(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(CELL.findall(line)) for line in text.strip().splitlines())


def _table(name: str, raw: Mapping[str, Any]) -> pa.Table:
    _check_keys(f"table {name}", raw, {"rows", "kinds"})
    header, *lines = _lines(raw["rows"])
    if uneven := [line for line in lines if len(line) != len(header)]:
        raise CorpusError(f"table {name}: {len(header)} cells are needed, not {' '.join(uneven[0])}")
    kinds = raw.get("kinds", {})
    names = [column.strip('"') for column in header]
    columns = [[line[place] for line in lines] for place in range(len(names))]
    arrays = [
        _column(f"table {name}", column, cells, kinds.get(column))
        for column, cells in zip(names, columns, strict=True)
    ]  # fmt: skip
    return pa.table(arrays, names=names)


def _column(where: str, name: str, cells: list[str], kind: str | None) -> pa.Array:
    if kind is None:
        values = [_value(cell) for cell in cells]
        if {type(value) for value in values} == {int, float}:
            values = [None if value is None else float(value) for value in values]
        array = pa.array(values)
        if pa.types.is_null(array.type) and cells:
            raise CorpusError(f"{where}: the type of `{name}` is needed")
        return array
    if kind == "string":
        return pa.array([None if cell == "-" else cell.strip('"') for cell in cells], pa.string())
    if kind.startswith("decimal"):
        precision, scale = (int(part) for part in re.findall(r"\d+", kind))
        decimals = [None if cell == "-" else Decimal(cell) for cell in cells]
        return pa.array(decimals, pa.decimal128(precision, scale))
    if kind not in KINDS:
        raise CorpusError(f"{where}: no such type: {kind}")
    return pa.array([_value(cell) for cell in cells], KINDS[kind])


def _value(cell: str) -> Any:
    """Return the value of a cell of a table."""
    if cell == "-":
        return None
    if cell.startswith('"'):
        return cell.strip('"')
    if cell in ("true", "false"):
        return cell == "true"
    if re.fullmatch(r"-?\d+s", cell):
        return timedelta(seconds=int(cell[:-1]))
    if re.fullmatch(r"\[.*\]", cell):
        return [_value(part.strip()) for part in cell[1:-1].split(",") if part.strip()]
    for kind in (int, float, date.fromisoformat, datetime.fromisoformat):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def cell_text(value: Any) -> str:
    """Return a value of a result as a case writes it.

    >>> [cell_text(value) for value in (None, 1, 2.0, Decimal("1.50"), "up", "1", [1, None])]
    ['-', '1', '2.0', '1.50', 'up', '"1"', '[1,-]']
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value if CELL.fullmatch(value) and value[0] != '"' and isinstance(_value(value), str) else f'"{value}"'
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list):
        return f"[{','.join(cell_text(part) for part in value)}]"
    return format(value, "f") if isinstance(value, Decimal) else repr(value)

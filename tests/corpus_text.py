"""Writes a case as the corpus reads it: a query, its events, and the matches that the reference runtime gives.

``why`` and ``ruling`` are to be filled in. What the corpus cannot say, such as an option of another command, stands in
a comment.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

import acep
from acep.errors import AcepError, DataWarning, QueryError
from acep.pattern.tree import Query
from tests import corpus

__all__ = ["corpus_text", "table_of_rows", "to_comment", "to_toml"]

FILL_IN = "fill in"
MOST_MATCHES = 40
"""Of more matches only so many are listed, as ``contains`` of a ``count``."""


def corpus_text(
    name: str,
    text: str,
    events: pa.Table | Sequence[Mapping[str, Any]],
    *,
    letters: bool = False,
    options: Mapping[str, Any] | None = None,
    stream: Mapping[str, Any] | None = None,
) -> str:
    """Return a case with its matches: the text of a query with the options of its front end, and events with theirs.

    >>> print(corpus_text("seed_1", "PATTERN SEQ(A a, B b)", [{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}]))
    [[case]]
    name = "seed_1"
    why = "fill in"
    ruling = "fill in"
    query = "PATTERN SEQ(A a, B b)"
    events = \"\"\"
    label ts type
    A0    1  A
    B1    2  B
    \"\"\"
    # by the reference runtime: check it
    matches = ["a=A0 b=B1"]
    """
    table = events if isinstance(events, pa.Table) else pa.Table.from_pylist([*events])
    options, stream = dict(options or {}), dict(stream or {})
    labels, event_text = _events_and_labels(table, stream.get("type") or "type")
    query_options = corpus.LETTER_KEYS if letters else corpus.QUERY_KEYS
    settings = {name: value for name, value in {**options, **stream}.items() if value is not None}
    unknown = {name for name in settings if name not in query_options | corpus.STREAM_KEYS}
    lines = [
        "[[case]]",
        f"name = {to_toml(name)}",
        f"why = {to_toml(FILL_IN)}",
        f"ruling = {to_toml(FILL_IN)}",
        f"{'regex' if letters else 'query'} = {to_toml(text)}",
        *(f"{name} = {to_toml(value)}" for name, value in settings.items() if name not in unknown),
        *(f"# the corpus has no option {name} = {settings[name]!r}" for name in sorted(unknown)),
    ]
    lines += [
        f"# the corpus has no type {field.type}: column {field.name}"
        for field in table.schema
        if field.type not in corpus.SCHEMA.values()
    ]
    if schema := _schema(table, event_text.startswith("[")):
        lines.append(f"schema = {to_toml(schema)}")
    try:
        query = (acep.regex if letters else acep.parse)(text, **({"within": None} if letters else {}) | options)
        matches = _matches_text(query, table, labels, stream)
    except AcepError as error:
        kind = "query" if isinstance(error, QueryError) else "data"
        matches = f"raises = {to_toml({'error': kind, 'message': error.message})}"
    except Exception as error:  # noqa: BLE001
        matches = f"{to_comment(f'it fails: {error!r}')}\nmatches = []"
    return "\n".join([*lines, f"events = {event_text}", "# by the reference runtime: check it", matches])


def table_of_rows(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as ``events`` of the corpus: a line of names, then a line a row, ``-`` for null.

    Texts that would be read as something else stand in quotes; the corpus cannot read those with blanks.

    >>> print(table_of_rows([{"ts": 1, "type": "A"}, {"ts": 2, "type": None, "op": -1}]))
    ts type op
    1  A    -
    2  -    -1
    """
    rows = list(rows)
    names = [*dict.fromkeys(name for row in rows for name in row)]
    columns = [[name, *(_cell_text(row.get(name)) for row in rows)] for name in names]
    padded = [[cell.ljust(max(map(len, column))) for cell in column] for column in columns]
    return "\n".join(" ".join(line).rstrip() for line in zip(*padded, strict=True))


def to_comment(text: str) -> str:
    r"""Return lines as comments of a corpus file.

    >>> to_comment("found: 1\nwanted: 2")
    '# found: 1\n# wanted: 2'
    """
    return "\n".join(f"# {line}".rstrip() for line in text.splitlines())


def to_toml(value: Any) -> str:
    r"""Return a value as TOML.

    >>> print(to_toml({"a": 0.5, "b": float("inf"), "c d": True}), to_toml('"') + to_toml([1, "x"]))
    { a = 0.5, b = inf, "c d" = true } "\""[1, "x"]
    """
    if isinstance(value, Mapping):
        pairs = [
            f"{key if re.fullmatch(r'[A-Za-z0-9_-]+', str(key)) else to_toml(str(key))} = {to_toml(item)}"
            for key, item in value.items()
        ]
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    if isinstance(value, str):
        escaped = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        lines = escaped[1:-1].replace("\\n", "\n")
        return f'"""{lines}"""' if "\n" in lines[1:] and "\\" not in lines and lines[0] != "\n" else escaped
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, dt.date) else str(value)


# Events


def _events_and_labels(table: pa.Table, type_column: str) -> tuple[list[str], str]:
    """Return what rows are called in matches, and the events: as lines, or as tables where a cell has blanks."""
    rows = table.to_pylist()
    types = [str(row.get(type_column)) for row in rows]
    if not rows or any(isinstance(cell, str) and not _is_word(cell) for row in rows for cell in row.values()):
        filled = [{name: cell for name, cell in row.items() if cell is not None} for row in rows]
        return [str(i) for i in range(len(rows))], "[" + ",\n".join(map(to_toml, filled)) + "]"
    labels = [f"{name if re.fullmatch(r'[A-Za-z_]+', name) else 'e'}{i}" for i, name in enumerate(types)]
    lines = table_of_rows({"label": label, **row} for label, row in zip(labels, rows, strict=True))
    return labels, f'"""\n{lines}\n"""'


def _is_word(cell: str) -> bool:
    """Whether a text can stand in a line of cells."""
    return cell.split() == [cell] and '"""' not in cell and "\\" not in cell and cell.isprintable()


def _cell_text(cell: Any) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell if cell.split() == [cell] and corpus.cell_of(cell) == cell else f"'{cell}'"
    return to_toml(cell) if isinstance(cell, bool | dt.date) else str(cell)


def _schema(table: pa.Table, as_tables: bool) -> dict[str, str]:
    """Return the types of columns that their values do not tell; events as tables have no column of nulls."""
    names = {kind: name for name, kind in corpus.SCHEMA.items()}
    told_by_values = {pa.int64(), pa.string(), pa.float64(), pa.bool_(), pa.timestamp("us"), pa.date32()}
    schema = {}
    for field in table.schema:
        is_null = table[field.name].null_count == len(table)
        if field.type in names and (
            field.type != pa.int64() and not as_tables if is_null else field.type not in told_by_values
        ):
            schema[field.name] = names[field.type]
    return schema


# Matches


def _matches_text(query: Query, table: pa.Table, labels: list[str], stream: Mapping[str, Any]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        matches = list(acep.match(table, query, engine="reference", **stream))
    if query.sources:
        labels = [str(i) for i in range(len(table))]  # of a composed query ids are positions in the stream of matches
    ids = table[stream["id"]].to_pylist() if stream.get("id") and not query.sources else range(len(labels))
    label_of = dict(zip(ids, labels, strict=True))
    if any(id_ not in label_of for match in matches for ids in match.bindings.values() for id_ in ids):
        return f"count = {len(matches)}"
    texts = [*dict.fromkeys(_match_text(match, label_of) for match in matches)]
    if len(texts) <= MOST_MATCHES:
        return f"matches = {_lines_of(texts)}"
    return f"contains = {_lines_of(texts[:MOST_MATCHES])}\ncount = {len(matches)}"


def _lines_of(texts: list[str]) -> str:
    """Return a list of texts as TOML: a line each if they are several."""
    return to_toml(texts) if len(texts) < 2 else "\n".join(["[", *(f"    {to_toml(text)}," for text in texts), "]"])


def _match_text(match: Any, label_of: Mapping[Any, str]) -> str:
    words = [f"{name}={','.join(label_of[id_] for id_ in ids)}" for name, ids in match.bindings.items()]
    if match.error:
        words.append(f"!{match.error}")
    for prefix, cells in (("key", match.key), ("ret", dict(getattr(match, "values", None) or {}))):
        pairs = [f"{prefix}.{name}={_cell_text(cell)}" for name, cell in cells.items()]
        if all(_is_word(pair) and _is_plain(cell) for pair, cell in zip(pairs, cells.values(), strict=True)):
            words += pairs
    return " ".join(words)


def _is_plain(cell: Any) -> bool:
    """Whether a match of the corpus can say a value."""
    return cell is None or type(cell) in (bool, int, str) or (type(cell) is float and cell == cell)

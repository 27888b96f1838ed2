"""Reads the declarative corpus: ``tests/corpus/*.toml``, one table ``[[case]]`` a case.

A case is a query, a small stream, and *all* its matches, worked out by hand from
``docs/reference/semantics.md``. The short forms keep a case to a few lines:

``events``
    ``"A1 B2 B2"`` is one event a word: its type, then its ``ts``. Where no word has a ``ts`` it is 1, 2, ...
    Several lines are a table: a line of column names, then a line a row; ``-`` is null, ``NaN`` a float
    that is none. Without a column ``ts`` it is 1, 2, ...; a column ``label`` only names rows for ``matches``.
    A list of inline tables does as well. ``schema`` gives the types of columns where their values do not tell.
``matches``
    ``"a=A1 b=B2,B3 !1"`` binds ``a`` and ``b``, with error 1 (default 0). An event is named by its row (0-based), by
    its label, or, in the short form, by its word; ``B2'`` is the second event of that word. In a letter expression
    ``"a1 b4"`` is enough. ``@5`` asks for the bundle 5, ``key.k=7`` for a partition, ``ret.n=3`` for a value of RETURN;
    these are compared only where a case names them. ``start`` and ``end`` always are: the ``ts`` of the bound events.
    A list of inline tables ``{bind, error, bundle, key, ret}`` does as well.
``contains``, ``count``
    Where all matches are too many to list: some of them, and how many there are.
``ordered``
    Whether the order of ``matches`` is compared too.
``raises``
    What is said of a bad query or of bad data: ``{error = "query" | "data", message, line, column, hint}``, the
    texts as substrings, any of them optional but the first two.
"""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

__all__ = ["FOLDER", "Case", "CorpusError", "Match", "Raises", "cell_of", "load", "load_all"]

FOLDER = Path(__file__).with_name("corpus")

Cell = None | bool | int | float | str | dt.datetime | dt.date
Ref = int | str


class CorpusError(ValueError):
    """A case that is not well written."""


@dataclass(frozen=True)
class Match:
    """An expected match; ``bindings`` holds (variable, rows) in the order of variables' names."""

    bindings: tuple[tuple[str, tuple[int, ...]], ...]
    error: Fraction = Fraction(0)
    bundle: Cell = None
    key: tuple[tuple[str, Cell], ...] | None = None
    values: tuple[tuple[str, Cell], ...] | None = None

    @property
    def rows(self) -> tuple[int, ...]:
        """The bound rows, ascending."""
        return tuple(sorted(row for _, rows in self.bindings for row in rows))


@dataclass(frozen=True)
class Raises:
    """An expected complaint."""

    error: str
    message: str
    line: int | None = None
    column: int | None = None
    hint: str | None = None


@dataclass(frozen=True)
class Case:
    """One case. ``columns`` are the stream's columns in order, ``kinds`` the types of those for which the case gives
    one; ``query_options`` go to ``parse`` or ``regex``,
    ``stream_options`` (``ts``, ``type``, ``seq``, ``id``, ``unit``) to ``match``."""

    file: str
    name: str
    rulings: tuple[str, ...]
    why: str
    text: str
    letters: bool
    columns: tuple[tuple[str, tuple[Cell, ...]], ...]
    kinds: Mapping[str, str] = field(default_factory=dict)
    query_options: Mapping[str, Any] = field(default_factory=dict)
    stream_options: Mapping[str, Any] = field(default_factory=dict)
    matches: tuple[Match, ...] | None = None
    contains: tuple[Match, ...] = ()
    count: int | None = None
    ordered: bool = False
    raises: Raises | None = None

    @property
    def id(self) -> str:
        """What the test is called."""
        return f"{self.file}:{self.name}"

    def __len__(self) -> int:
        return len(self.columns[0][1]) if self.columns else 0

    def column(self, name: str) -> tuple[Cell, ...]:
        """The values of one column."""
        return dict(self.columns)[name]

    def table(self) -> pa.Table:
        """The stream, as Arrow."""
        return pa.table({name: _array(name, values, self.kinds.get(name)) for name, values in self.columns})


QUERY_KEYS = {"errors", "weights", "surplus"}
LETTER_KEYS = {"within", "by", "strategy", "output"} | QUERY_KEYS
STREAM_KEYS = {"ts", "type", "seq", "id", "unit"}
CASE_KEYS = (
    {
        "name",
        "ruling",
        "why",
        "query",
        "regex",
        "events",
        "matches",
        "contains",
        "count",
    }
    | {"ordered", "raises", "schema"}
    | LETTER_KEYS
    | STREAM_KEYS
)
MATCH_KEYS = {"bind", "error", "bundle", "key", "ret"}
RAISES_KEYS = {"error", "message", "line", "column", "hint"}
SCHEMA = {
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "s": pa.timestamp("s"),
    "ms": pa.timestamp("ms"),
    "us": pa.timestamp("us"),
    "ns": pa.timestamp("ns"),
    "utc": pa.timestamp("us", tz="UTC"),
}


def load_all(folder: Path = FOLDER) -> list[Case]:
    """Every case of every file, in the order of names of files."""
    return [case for path in sorted(folder.glob("*.toml")) for case in load(path)]


def load(path: Path) -> list[Case]:
    """The cases of one file."""
    with path.open("rb") as file:
        try:
            data = tomllib.load(file)
        except tomllib.TOMLDecodeError as bad:
            raise CorpusError(f"{path.name}: {bad}") from None
    _known(path.name, data, {"case"})
    return [_case(path.stem, raw) for raw in data.get("case", [])]


def _known(where: str, raw: Mapping[str, Any], known: Iterable[str]) -> None:
    if strange := sorted(set(raw) - set(known)):
        raise CorpusError(f"{where}: no such key: {', '.join(strange)}")


def _case(file: str, raw: dict[str, Any]) -> Case:
    where = f"{file}:{raw.get('name', '?')}"
    _known(where, raw, CASE_KEYS)
    for key in ("name", "ruling", "why", "events"):
        if key not in raw:
            raise CorpusError(f"{where}: `{key}` is missing")
    if ("query" in raw) == ("regex" in raw):
        raise CorpusError(f"{where}: one of `query` and `regex`")
    letters = "regex" in raw
    if not letters and (strange := (LETTER_KEYS - QUERY_KEYS) & set(raw)):
        raise CorpusError(f"{where}: {', '.join(sorted(strange))} stand in the text of a query")
    expected = {"matches", "raises"} & set(raw)
    if len(expected) > 1 or (not expected and "count" not in raw and "contains" not in raw):
        raise CorpusError(f"{where}: one of `matches`, `contains` with `count`, and `raises`")
    if "matches" in raw and {"count", "contains"} & set(raw):
        raise CorpusError(f"{where}: `matches` are all matches: no `count`, no `contains`")
    if "contains" in raw and "count" not in raw:
        raise CorpusError(f"{where}: `contains` needs `count`")
    if raw.get("ordered") and "matches" not in raw:
        raise CorpusError(f"{where}: `ordered` speaks of `matches`")
    ruling = raw["ruling"]
    columns, names = _events(where, raw["events"], raw.get("ts", "ts") == "ts")
    have = [name for name, _ in columns]
    kinds = raw.get("schema", {})
    _known(f"{where}: schema", kinds, have)
    if odd := sorted(set(kinds.values()) - set(SCHEMA)):
        raise CorpusError(f"{where}: a column is one of {', '.join(SCHEMA)}, not {', '.join(odd)}")
    stream = {"ts": "ts", "type": "type"} | {k: raw[k] for k in STREAM_KEYS if k in raw}
    if "raises" not in raw:
        for key in ("ts", "type", "seq", "id"):
            if stream.get(key) and stream[key] not in have:
                raise CorpusError(f"{where}: no column `{stream[key]}`")
    size = len(columns[0][1]) if columns else 0

    def matches(key: str) -> tuple[Match, ...]:
        found = tuple(_match(where, m, names, letters, size) for m in raw.get(key, []))
        if len({m.bindings for m in found}) < len(found):
            raise CorpusError(f"{where}: the same binding twice in `{key}`")
        return found

    return Case(
        file=file,
        name=raw["name"],
        rulings=(ruling,) if isinstance(ruling, str) else tuple(ruling),
        why=raw["why"],
        text=raw["regex"] if letters else raw["query"],
        letters=letters,
        columns=columns,
        kinds=kinds,
        query_options={k: raw[k] for k in raw if k in (LETTER_KEYS if letters else QUERY_KEYS)},
        stream_options=stream,
        matches=matches("matches") if "matches" in raw else None,
        contains=matches("contains"),
        count=raw.get("count"),
        ordered=raw.get("ordered", False),
        raises=_raises(where, raw["raises"]) if "raises" in raw else None,
    )


def _raises(where: str, raw: Any) -> Raises:
    if not isinstance(raw, dict) or not {"error", "message"} <= set(raw):
        raise CorpusError(f"{where}: `raises` needs `error` and `message`")
    _known(f"{where}: raises", raw, RAISES_KEYS)
    if raw["error"] not in ("query", "data"):
        raise CorpusError(f"{where}: `raises.error` is `query` or `data`")
    return Raises(**raw)


# Events -----------------------------------------------------------------------------------------

_WORD = re.compile(r"([A-Za-z_]+)(-?\d+)?")


def _events(where: str, raw: Any, timed: bool) -> tuple[tuple[tuple[str, tuple[Cell, ...]], ...], dict[str, int]]:
    """Columns, and what the rows are called; ``timed``: a missing column ``ts`` is filled in."""
    names: dict[str, int] = {}
    if isinstance(raw, list):
        heads = list(dict.fromkeys(key for row in raw for key in row)) or ["type", "ts"]
        table = {head: [row.get(head) for row in raw] for head in heads}
    elif "\n" in raw.strip():
        header, *lines = (line.split() for line in raw.strip().splitlines() if line.strip())
        for number, line in enumerate(lines):
            if len(line) != len(header):
                raise CorpusError(f"{where}: row {number} of `events` has {len(line)} cells, not {len(header)}")
        table = {head: [cell_of(line[c]) for line in lines] for c, head in enumerate(header)}
    else:
        words = [_WORD.fullmatch(word) for word in raw.split()]
        if None in words:
            raise CorpusError(f"{where}: an event is a type and a ts: {raw!r}")
        parts = [(word[1], word[2]) for word in words if word is not None]
        if len({ts is not None for _, ts in parts}) > 1:
            raise CorpusError(f"{where}: either every event has a ts or none")
        times = [int(ts) if ts is not None else row + 1 for row, (_, ts) in enumerate(parts)]
        for row, (kind, time) in enumerate(zip((kind for kind, _ in parts), times, strict=True)):
            name = f"{kind}{time}"
            while name in names:
                name += "'"
            names[name] = row
        table = {"type": [kind for kind, _ in parts], "ts": list(times)}
    size = len(next(iter(table.values()))) if table else 0
    if "label" in table:
        labels = [str(label) for label in table.pop("label")]
        names = {label: row for row, label in enumerate(labels)}
        if len(names) < size:
            raise CorpusError(f"{where}: the same label twice")
    if timed and "ts" not in table:
        table["ts"] = list(range(1, size + 1))
    return tuple((head, tuple(values)) for head, values in table.items()), names


def cell_of(text: str) -> Cell:
    """Return the value that a word of a corpus file stands for."""
    if text == "-":
        return None
    if text in ("true", "false"):
        return text == "true"
    if len(text) > 1 and text[0] == text[-1] == "'":  # a text, also where it is a number
        return text[1:-1]
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return dt.date.fromisoformat(text)
    if re.fullmatch(r"\d{4}-\d\d-\d\dT.*", text):
        return dt.datetime.fromisoformat(text)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _array(name: str, values: tuple[Cell, ...], kind: str | None) -> pa.Array:
    if kind is not None:
        if kind == "utc":
            return pa.array([_utc(v) for v in values], SCHEMA[kind])
        return pa.array(values, SCHEMA[kind])
    if any(isinstance(v, float) for v in values):
        values = tuple(float(v) if isinstance(v, int) else v for v in values)
    if not values:
        return pa.array([], pa.string() if name == "type" else pa.int64())
    if all(v is None for v in values):
        return pa.array(values, pa.string() if name == "type" else pa.int64())
    return pa.array(values, from_pandas=False)


def _utc(value: Cell) -> Cell:
    if isinstance(value, dt.datetime):
        return value if value.tzinfo else value.replace(tzinfo=dt.UTC)
    return value


# Matches ----------------------------------------------------------------------------------------


def _match(where: str, raw: Any, names: Mapping[str, int], letters: bool, size: int) -> Match:
    bind: dict[str, list[Ref]] = {}
    error: str | int | float = 0
    bundle: Cell = None
    key: dict[str, Cell] = {}
    ret: dict[str, Cell] = {}
    has_key = has_ret = False
    if isinstance(raw, str):
        for word in raw.split():
            left, equals, right = word.partition("=")
            if word.startswith("!"):
                error = word[1:]
            elif word.startswith("@"):
                bundle = cell_of(word[1:])
            elif left == "key" and not equals:
                has_key = True
            elif left.startswith("key."):
                key[left[4:]], has_key = cell_of(right), True
            elif left.startswith("ret."):
                ret[left[4:]], has_ret = cell_of(right), True
            elif equals:
                bind.setdefault(left, []).extend(right.split(","))
            elif letters:
                bind.setdefault(re.sub(r"-?\d+'*$", "", word), []).append(word)
            else:
                raise CorpusError(f"{where}: {word!r} in a match")
    else:
        _known(f"{where}: match", raw, MATCH_KEYS)
        bind, error, bundle = (
            raw.get("bind", {}),
            raw.get("error", 0),
            raw.get("bundle"),
        )
        key, has_key = raw.get("key", {}), "key" in raw
        ret, has_ret = raw.get("ret", {}), "ret" in raw
    rows = {var: tuple(_row(where, ref, names, size) for ref in refs) for var, refs in bind.items()}
    flat = [row for some in rows.values() for row in some]
    if not flat or len(set(flat)) < len(flat):
        raise CorpusError(f"{where}: a match binds at least one event, and none twice: {raw!r}")
    return Match(
        bindings=tuple(sorted(rows.items())),
        error=Fraction(str(error)),
        bundle=bundle,
        key=tuple(sorted(key.items())) if has_key else None,
        values=tuple(ret.items()) if has_ret else None,
    )


def _row(where: str, ref: Ref, names: Mapping[str, int], size: int) -> int:
    if isinstance(ref, str) and ref in names:
        return names[ref]
    try:
        row = int(ref)
    except ValueError:
        raise CorpusError(f"{where}: no event {ref!r}") from None
    if not 0 <= row < size:
        raise CorpusError(f"{where}: no row {row}")
    return row

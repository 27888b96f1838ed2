"""Flatten tables of matches: one plain column for each key, value and variable, or one row for each bound event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from acep.errors import DataError, QueryError
from acep.matches.found_columns import FoundColumns
from acep.pattern.walk import repeated_variables

if TYPE_CHECKING:
    import pyarrow as pa

    from acep.matches.matches import Matches
    from acep.plan.compile import Plan

__all__ = [
    "BINDINGS",
    "FIRST",
    "KEY",
    "LAST",
    "ONLY",
    "VALUES",
    "FlatColumn",
    "Layout",
    "check_flat",
    "flat_columns",
    "flat_record",
    "flat_table",
    "layout_of",
]

KEY, VALUES, BINDINGS = "key", "values", "bindings"  # the columns of to_arrow() that are nested
ONLY, FIRST, LAST = "only", "first", "last"  # parts of the bindings of a variable


@dataclass(frozen=True)
class Layout:
    """The part of a query on which the columns of its matches depend: the ``variables`` in pattern order, those of them
    that may bind more than one event (``repeated``), whether errors may be ``fractional``, and whether the query is
    ``composed``, so that its events are matches of other queries."""

    variables: tuple[str, ...]
    repeated: frozenset[str]
    fractional: bool = False
    composed: bool = False

    @classmethod
    def of_plans(cls, plans: Iterable[Plan]) -> Layout:
        """Return the layout that fits the matches of all of these plans."""
        plans = list(plans)
        return cls(
            tuple(dict.fromkeys(name for plan in plans for name in plan.variables)),
            frozenset(name for plan in plans for name in _find_repeated(plan)),
            any(plan.automaton.costs.scale != 1 for plan in plans),
            any(plan.sources for plan in plans),
        )


def _find_repeated(plan: Plan) -> Iterable[str]:
    # The versions of a query that changes may differ in it.
    return plan.variables if plan.dynamic else repeated_variables(plan.query.pattern)


def layout_of(matches: Matches) -> Layout:
    """Return the layout of the query of matches; if it is not known, that of the variables that are bound."""
    if matches.layout is not None:
        return matches.layout
    records = matches.found
    if isinstance(records, FoundColumns):
        return Layout(records.variables, frozenset(records.variables), records.scale != 1)
    names = tuple(dict.fromkeys(var for record in records for var, _ in record.bindings))
    return Layout(names, frozenset(names), any(record.error != int(record.error) for record in records))


@dataclass(frozen=True)
class FlatColumn:
    """A column of a flat table: its ``name``, and its source, which is a ``field`` of the column ``part``: ``KEY`` or
    ``VALUES``, or of the bindings the id ``ONLY``, ``FIRST`` or ``LAST`` of a variable; ``""``: the column itself."""

    name: str
    part: str
    field: str


def flat_columns(
    names: Sequence[str], fields: dict[str, list[str]], layout: Layout, more: Sequence[str] = ()
) -> list[FlatColumn]:
    """Return the columns of a flat table in order. ``names`` are those of the table of matches, ``fields`` those inside
    its columns ``key`` and ``values``; ``more`` are names that are given to other columns.

    A name is given once, also to readers that take ``A`` and ``a`` for one. Columns that are plain already keep theirs.
    Then come keys, values and variables: one whose name is given is called ``key_x``, ``value_x`` or ``variable_x``.

    Raises :class:`QueryError` if that name is given, too.

    >>> layout = Layout(("a", "b"), frozenset("a"))
    >>> [column.name for column in flat_columns(["key", "end", "bindings"], {"key": ["end"]}, layout)]
    ['key_end', 'end', 'a_first', 'a_last', 'b']
    """
    names_in_use = {name.lower() for name in (*more, *names)} - {KEY, VALUES, BINDINGS}
    columns_of_part: dict[str, list[FlatColumn]] = {name: [FlatColumn(name, "", name)] for name in names}

    def add(part: str, word: str, sources: list[tuple[str, dict[str, str]]]) -> None:
        columns_of_part[part] = []
        for source, ends in sources:
            for prefix in ("", f"{word}_"):
                names_by_kind = {kind: prefix + source + end for kind, end in ends.items()}
                if not names_in_use & {name.lower() for name in names_by_kind.values()}:
                    break
            else:
                raise QueryError(
                    f"two columns of the flat table would be called `{next(iter(names_by_kind.values()))}`",
                    hint="rename the variable, or the value of RETURN",
                )
            names_in_use.update(name.lower() for name in names_by_kind.values())
            columns_of_part[part] += [FlatColumn(name, kind, source) for kind, name in names_by_kind.items()]

    for part, word in ((KEY, "key"), (VALUES, "value")):
        if part in names:
            add(part, word, [(field, {part: ""}) for field in fields.get(part, ())])
    if BINDINGS in names:
        suffixes = {FIRST: "_first", LAST: "_last"}
        add(BINDINGS, "variable", [(v, suffixes if v in layout.repeated else {ONLY: ""}) for v in layout.variables])
    return [column for name in names for column in columns_of_part[name]]


def flat_table(table: pa.Table, layout: Layout, more: Sequence[str] = ()) -> pa.Table:
    """Return a table of matches with plain columns only, see :func:`flat_columns`.

    Raises :class:`QueryError` as :func:`flat_columns` does.

    >>> import pyarrow as pa
    >>> bound = pa.array([[("a", [0, 3]), ("b", [7])], [("b", [8])]], pa.map_(pa.string(), pa.list_(pa.int64())))
    >>> flat_table(pa.table({"start": [1, 2], "bindings": bound}), Layout(("a", "b"), frozenset("a"))).to_pylist()
    [{'start': 1, 'a_first': 0, 'a_last': 3, 'b': 7}, {'start': 2, 'a_first': None, 'a_last': None, 'b': 8}]
    """
    import pyarrow as pa

    names = table.column_names
    fields = {part: [f.name for f in table.schema.field(part).type] for part in (KEY, VALUES) if part in names}
    columns = flat_columns(names, fields, layout, more)
    inner: dict[tuple[str, str], Any] = {}
    for part, field_names in fields.items():
        # flatten() gives each field the nulls of its struct.
        structs, types = table.column(part), table.schema.field(part).type
        flat = structs.flatten() if structs.num_chunks else [pa.chunked_array([], field.type) for field in types]
        inner |= {(part, name): column for name, column in zip(field_names, flat, strict=True)}
    if BINDINGS in names:
        maps = table.column(BINDINGS)
        chunks = [_ids_of_variables(chunk, layout) for chunk in maps.chunks]
        kind = maps.type.item_type.value_type
        for column in columns:
            if column.part in (ONLY, FIRST, LAST):
                key = column.part, column.field
                inner[key] = pa.chunked_array([chunk[key] for chunk in chunks], kind)
    arrays = [inner[c.part, c.field] if c.part else table.column(c.field) for c in columns]
    return pa.Table.from_arrays(arrays, names=[c.name for c in columns])


def flat_record(record: Mapping[str, Any], columns: Sequence[FlatColumn]) -> dict[str, Any]:
    """Return the record of a match (:mod:`acep.output.json_records`) by the names of these columns.

    >>> record = {"end": 9, "bindings": {"a": [3, 4]}}
    >>> flat_record(record, flat_columns([*record], {}, Layout(("a", "b"), frozenset("a"))))
    {'end': 9, 'a_first': 3, 'a_last': 4, 'b': None}
    """
    ends = {ONLY: 0, FIRST: 0, LAST: -1}

    def value(column: FlatColumn) -> Any:
        if not column.part:
            return record[column.field]
        if column.part in ends:
            ids = record[BINDINGS].get(column.field)
            return ids[ends[column.part]] if ids else None
        return record[column.part][column.field]

    return {column.name: value(column) for column in columns}


def _ids_of_variables(chunk: pa.MapArray, layout: Layout) -> dict[tuple[str, str], pa.Array]:
    """Return the ids of the first and last event of each variable, or of the only one, null where none is bound."""
    import pyarrow as pa

    offsets, ends = chunk.offsets.to_numpy(), chunk.items.offsets.to_numpy()
    numbers = {name: number for number, name in enumerate(layout.variables)}
    entries = np.arange(offsets[0], offsets[-1])
    owners = np.repeat(np.arange(len(chunk)), np.diff(offsets))
    names = chunk.keys.slice(int(offsets[0]), len(entries)).dictionary_encode()
    codes = np.array([numbers.get(name, -1) for name in names.dictionary.to_pylist()], np.int64)
    codes = codes[names.indices.to_numpy()] if len(entries) else np.zeros(0, np.int64)
    if (codes < 0).any():
        raise DataError("a match binds a variable that the query did not have at first", hint="flat=False")
    ids_by_part: dict[tuple[str, str], pa.Array] = {}
    for name, number in numbers.items():
        entry_rows = entries[codes == number]
        first, last = ends[entry_rows], ends[entry_rows + 1] - 1
        if name not in layout.repeated and (last > first).any():
            raise DataError(f"`{name}` binds more than one event in a match", hint="flat=False")
        for kind, places in ((FIRST, first), (LAST, last)) if name in layout.repeated else ((ONLY, first),):
            of_row = np.full(len(chunk), -1, np.int64)
            of_row[owners[codes == number]] = places
            ids_by_part[kind, name] = chunk.items.values.take(pa.array(of_row, mask=of_row < 0))
    return ids_by_part


def check_flat(flat: Any, *, dynamic: bool) -> None:
    """Raise :class:`QueryError` if ``flat`` is no bool, or if the queries of a flat result change."""
    if not isinstance(flat, bool):
        raise QueryError("flat= is True or False", hint="flat=True", code="option_invalid")
    if flat and dynamic:
        raise QueryError(
            "the columns of a flat result are those of the variables, which a new version may change",
            hint="leave flat= out",
        )

"""Hold matches as columns, as the native core returns them; single :class:`Found` records are made only on access."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column
from acep.matches.records import Found
from acep.pattern.expressions import Value
from acep.plan.schema import Kind

__all__ = [
    "FoundColumns",
    "concatenate",
    "concatenate_columns",
    "ops_of",
    "ranks_of",
    "sort_matches",
    "values_at",
    "variables_of",
]

Ints = npt.NDArray[np.int64]

Sort = Callable[[Ints, Ints, Any, npt.NDArray[np.uint16], npt.NDArray[np.uint16]], Ints | None]

BLOCK = 4096
NUMBERS = ("start", "end", "bundle", "error")  # columns with a number for each match


@dataclass(frozen=True, eq=False)
class FoundColumns(Sequence[Found]):
    """n matches with m bound events, as a sequence of :class:`Found`.

    ``start``, ``end``, ``bundle``: (n,) int64 ticks. ``error``: (n,) int64, ``scale`` times the user's error.
    ``keys``: a column of n for each partition attribute. ``offsets``: (n + 1,) int64 from 0 to m; the events of match
    i are ``offsets[i]`` to ``offsets[i + 1]`` of ``ids`` ((m,) int64, or texts as objects) and ``vars`` ((m,) uint16,
    indices into ``variables``), in stream order. ``variables``: those of the plan, in pattern order.
    ``values``: a column of n for each value of RETURN. ``shape``: the part of ``vars`` of each match, if known to be
    the same for all. ``in_order``: whether the matches are known to be in output order, with those first that are
    taken back. ``ops``: (n,) int64, -1 for a match that is taken back, else 1 (``None``: none is). ``apart``: matches
    with the same bindings are told apart by their values.

    >>> zero = np.array([0])
    >>> trail = {"offsets": np.array([0, 2]), "ids": np.array([7, 9]), "vars": np.array([1, 0], np.uint16)}
    >>> FoundColumns(zero, zero + 4, zero + 4, zero + 3, 2, (), **trail, variables=("a", "b"))[0].bindings
    (('a', (9,)), ('b', (7,)))
    """

    start: Ints
    end: Ints
    bundle: Ints
    error: Ints
    scale: int
    keys: tuple[Column, ...]
    offsets: Ints
    ids: Any
    vars: npt.NDArray[np.uint16]
    variables: tuple[str, ...]
    values: tuple[Column, ...] = ()
    shape: tuple[int, ...] | None = None
    in_order: bool = False
    ops: Ints | None = None
    apart: bool = False

    def __len__(self) -> int:
        return len(self.start)

    def to_take_back(self) -> FoundColumns:
        """Return the matches as ones that are taken back."""
        return FoundColumns(**vars(self) | {"ops": np.full(len(self), -1)})  # in less time than dataclasses.replace

    def last(self, n_matches: int) -> FoundColumns:
        """Return the last matches, which are not taken back, in memory of their own unless they are all."""
        if n_matches == len(self):
            return self
        fields = vars(self._slice(len(self) - n_matches, len(self)))
        columns = {name: fields[name].copy() for name in (*NUMBERS, "ids", "vars")}
        lists = {name: tuple(column.copy() for column in fields[name]) for name in ("keys", "values")}
        return FoundColumns(**fields | columns | lists | {"ops": None})

    @property
    def taken_back(self) -> int:
        """Return the number of matches that are taken back."""
        return 0 if self.ops is None else int(np.count_nonzero(self.ops < 0))

    @overload
    def __getitem__(self, index: int) -> Found: ...
    @overload
    def __getitem__(self, index: slice) -> FoundColumns: ...
    def __getitem__(self, index: int | slice) -> Found | FoundColumns:
        if isinstance(index, slice):
            begin, stop, step = index.indices(len(self))
            return self._slice(begin, max(begin, stop)) if step == 1 else self.take(np.arange(begin, stop, step))
        row = operator.index(index)
        row += len(self) if row < 0 else 0
        if not 0 <= row < len(self):
            raise IndexError("there is no such match")
        return next(self._records(row, row + 1))

    def __iter__(self) -> Iterator[Found]:
        for begin in range(0, len(self), BLOCK):
            yield from self._records(begin, min(begin + BLOCK, len(self)))

    def take(self, indices: npt.NDArray[np.integer[Any]]) -> FoundColumns:
        """Return the matches with these indices, in that order."""
        match_indices = np.asarray(indices, np.intp)
        lengths = self.offsets[1:] - self.offsets[:-1]  # np.diff takes longer for few matches
        size = int(lengths[0]) if len(lengths) else 0
        if (lengths == size).all():
            offsets = np.arange(len(match_indices) + 1, dtype=np.int64) * size
            ids, codes = (
                c.reshape(-1, size).take(match_indices, 0).reshape(-1) if size else c[:0] for c in (self.ids, self.vars)
            )
        else:
            lengths = lengths.take(match_indices)
            offsets = np.zeros(len(match_indices) + 1, np.int64)
            lengths.cumsum(out=offsets[1:])
            rows = np.repeat(self.offsets.take(match_indices) - offsets[:-1], lengths)
            rows += np.arange(len(rows))
            ids, codes = self.ids.take(rows), self.vars.take(rows)
        return self._select(match_indices, offsets, ids, codes)

    def by_variable(self) -> FoundColumns:
        """Return the matches with the events of each sorted by variable; those of one variable stay in stream order."""
        if self.shape is not None:
            places = sorted(range(len(self.shape)), key=self.shape.__getitem__)
            if places == [*range(len(places))]:
                return self
            ids, codes = (c.reshape(-1, len(places))[:, places].reshape(-1) for c in (self.ids, self.vars))
            return replace(self, ids=ids, vars=codes, shape=tuple(sorted(self.shape)))
        codes = self.vars
        falls = codes[1:] < codes[:-1]
        inner = self.offsets[1:-1]
        falls[inner[(inner > 0) & (inner < len(codes))] - 1] = False
        if not falls.any():
            return self
        owners = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        order = np.lexsort((codes, owners))
        return replace(self, ids=self.ids[order], vars=codes[order])

    def _slice(self, begin: int, stop: int) -> FoundColumns:
        first, last = self.offsets[begin], self.offsets[stop]
        offsets = self.offsets[begin : stop + 1] - first
        return self._select(slice(begin, stop), offsets, self.ids[first:last], self.vars[first:last])

    def _select(self, rows: Any, offsets: Ints, ids: Any, codes: npt.NDArray[np.uint16]) -> FoundColumns:
        # Not by dataclasses.replace, which takes longer than the rest for few matches.
        return FoundColumns(
            start=self.start[rows],
            end=self.end[rows],
            error=self.error[rows],
            bundle=self.bundle[rows],
            scale=self.scale,
            keys=tuple(c.take(rows) for c in self.keys),
            offsets=offsets,
            ids=ids,
            vars=codes,
            variables=self.variables,
            values=tuple(c.take(rows) for c in self.values),
            shape=self.shape,
            in_order=self.in_order and isinstance(rows, slice),
            ops=None if self.ops is None else self.ops[rows],
            apart=self.apart,
        )

    def _records(self, begin: int, stop: int) -> Iterator[Found]:
        size = stop - begin
        rows = slice(begin, stop)
        keys = list(zip(*(values_at(c, rows) for c in self.keys), strict=True)) if self.keys else [()] * size
        values = list(zip(*(values_at(c, rows) for c in self.values), strict=True)) if self.values else [()] * size
        offsets = self.offsets[begin : stop + 1].tolist()
        first = offsets[0]
        ids = self.ids[first : offsets[-1]].tolist()
        codes = self.vars[first : offsets[-1]].tolist()
        numbers = zip(*(c[rows].tolist() for c in (self.start, self.end, self.error, self.bundle)), strict=True)
        names = self.variables
        ops = [1] * size if self.ops is None else self.ops[rows].tolist()
        for i, (start, end, error, bundle) in enumerate(numbers):
            low, high = offsets[i] - first, offsets[i + 1] - first
            trail, bound = ids[low:high], codes[low:high]
            grouped: dict[int, list[int | str]] = {}
            for event, var in zip(trail, bound, strict=True):
                grouped.setdefault(var, []).append(event)
            yield Found(
                key=keys[i],
                start=start,
                end=end,
                error=unscale_error(error, self.scale),
                bindings=tuple((names[var], tuple(grouped[var])) for var in sorted(grouped)),
                bundle=bundle,
                values=values[i],
                trail=tuple(zip(trail, (names[var] for var in bound), strict=True)),
                op=ops[i],
                apart=self.apart,
            )


def unscale_error(error: int, scale: int) -> int | Fraction:
    """Return a scaled error in the user's unit, like :meth:`acep.automaton.thompson.Costs.unscale`.

    >>> unscale_error(4, 2), unscale_error(3, 2)
    (2, Fraction(3, 2))
    """
    return error // scale if error % scale == 0 else Fraction(error, scale)


def values_at(column: Column, rows: slice | npt.NDArray[np.intp]) -> list[Value]:
    """Return some rows like :meth:`Column.to_list`, at a cost that does not depend on the number of texts."""
    values: list[Any] = column.values[rows].tolist()
    valid = [True] * len(values) if column.valid is None else column.valid[rows].tolist()
    if column.kind is Kind.STRING:
        texts = column.texts or ()
        return [texts[v] if ok else None for v, ok in zip(values, valid, strict=True)]
    if column.kind is Kind.BOOL:
        return [bool(v) if ok else None for v, ok in zip(values, valid, strict=True)]
    return [v if ok else None for v, ok in zip(values, valid, strict=True)]


def longest_text(matches: FoundColumns) -> int:
    """Return the length of the longest text in columns of matches, at least 1."""
    texts = [c.texts for c in (*matches.keys, *matches.values) if c.texts]
    ids = matches.ids if matches.ids.dtype == object else ()
    lengths = (len(text) for column_texts in (matches.variables, ids, *texts) for text in column_texts)
    return max(lengths, default=0) or 1


# Several ----------------------------------------------------------------------------------------


def concatenate(parts: Sequence[FoundColumns]) -> FoundColumns:
    """Concatenate the matches of one plan from several steps. There must be at least one part.

    Raises :class:`ValueError` for parts of different plans.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    variables = variables_of(parts)
    base = np.cumsum([0, *(p.offsets[-1] for p in parts)])
    numbers: dict[str, Any] = {name: np.concatenate([getattr(p, name) for p in parts]) for name in NUMBERS}
    return FoundColumns(
        **numbers,
        scale=first.scale,
        keys=tuple(concatenate_columns(columns) for columns in zip(*(p.keys for p in parts), strict=True)),
        offsets=np.concatenate([[0], *(p.offsets[1:] + b for p, b in zip(parts, base[:-1], strict=True))]),
        ids=np.concatenate([p.ids for p in parts if len(p.ids)] or [first.ids]),
        vars=np.concatenate([p.vars for p in parts]),
        variables=variables,
        values=tuple(concatenate_columns(columns) for columns in zip(*(p.values for p in parts), strict=True)),
        ops=None if all(p.ops is None for p in parts) else np.concatenate([ops_of(p) for p in parts]),
        apart=first.apart,
    )


def variables_of(parts: Sequence[FoundColumns]) -> tuple[str, ...]:
    """Return the variables of matches of one plan from several steps: a plan that changes may get more.

    Raises :class:`ValueError` for parts of different plans.
    """
    shapes = {(p.scale, tuple(c.kind for c in (*p.keys, *p.values))) for p in parts}
    variables = max((p.variables for p in parts), key=len)
    if any(p.variables != variables[: len(p.variables)] for p in parts):
        raise ValueError("matches of different plans")
    if len(shapes) > 1 or len({(len(p.keys), len(p.values)) for p in parts}) > 1:
        raise ValueError("matches of different plans")
    return variables


def taken_back(records: Sequence[Found]) -> int:
    """Return the number of matches that are taken back."""
    return records.taken_back if isinstance(records, FoundColumns) else sum(record.op < 0 for record in records)


def ops_of(matches: FoundColumns) -> Ints:
    """Return 1 for each match that is given, -1 for one that is taken back."""
    return np.ones(len(matches), np.int64) if matches.ops is None else matches.ops


def concatenate_columns(columns: Sequence[Column]) -> Column:
    """Concatenate columns of one kind. There must be one."""
    first = columns[0]
    valid = None
    if any(c.valid is not None for c in columns):
        valid = np.concatenate([np.ones(len(c), np.uint8) if c.valid is None else c.valid for c in columns])
    if first.kind is not Kind.STRING or all(c.texts is first.texts for c in columns):
        return Column(first.kind, np.concatenate([c.values for c in columns]), valid, first.texts)
    codes: dict[str, int] = {}
    numbers = []
    for column in columns:
        codes_of_column = np.array([codes.setdefault(t, len(codes)) for t in column.texts or ()], np.int64)
        numbers.append(codes_of_column[column.values] if len(codes_of_column) else column.values)
    return Column(first.kind, np.concatenate(numbers), valid, list(codes))


# Order ------------------------------------------------------------------------------------------


def sort_matches(matches: FoundColumns, sort: Sort | None = None) -> FoundColumns:
    """Return the matches in the order of :func:`acep.matches.records.output_order`; the sort is stable. ``sort`` does
    what :func:`order_in_python` does, in native code."""
    if matches.in_order:
        return matches
    places = _places(matches, sort or order_in_python)
    if matches.apart and _has_ties(matches, places):
        sort_keys = [sort_key for column in reversed(matches.values) for sort_key in _sort_keys(column)]
        matches = matches.take(np.lexsort(sort_keys))
        places = _places(matches, sort or order_in_python)
    if matches.ops is not None and 0 < matches.taken_back < len(matches):
        ops = matches.ops if places is None else matches.ops[places]
        last = np.argsort(ops, kind="stable")
        places = last if places is None else places[last]
    return matches if places is None else matches.take(places)


def _has_ties(matches: FoundColumns, places: Ints | None) -> bool:
    """Return whether some neighbours in an order may have the same events: the end, the first event and the number of
    events are compared."""

    def equals_previous(column: Any) -> Any:
        column = column if places is None else column[places]
        return column[1:] == column[:-1]

    is_same = equals_previous(matches.end)
    if is_same.any():
        is_same &= equals_previous(matches.offsets[1:] - matches.offsets[:-1])
    return bool(is_same.any() and (is_same & equals_previous(matches.ids[matches.offsets[:-1]])).any())


def _sort_keys(column: Column) -> list[npt.NDArray[Any]]:
    """Return sort keys of a column for ``lexsort``, the first one last: whether it is null, and the value."""
    values = column.values
    if column.kind is Kind.STRING and len(column.texts or ()):
        texts = list(column.texts or ())
        ranks = {text: rank for rank, text in enumerate(sorted(set(texts)))}
        values = np.array([ranks[text] for text in texts], np.int64)[values]
    if column.valid is None:
        return [values]
    return [np.where(column.valid != 0, values, 0), column.valid == 0]


def _places(matches: FoundColumns, sort: Sort) -> Ints | None:
    """Return the permutation that sorts the matches; ``None`` if they are in order."""
    ids = matches.ids
    if ids.dtype == object:
        texts = ids.tolist()
        rank_of = {text: rank for rank, text in enumerate(sorted(set(texts)))}
        ids = np.fromiter((rank_of[text] for text in texts), np.int64, len(texts))
    return sort(matches.end, matches.offsets, ids, matches.vars, ranks_of(matches.variables))


@lru_cache
def ranks_of(variables: tuple[str, ...]) -> npt.NDArray[np.uint16]:
    """Return the rank of each variable by its name."""
    names = {name: rank for rank, name in enumerate(sorted(variables))}
    return np.array([names[name] for name in variables], np.uint16)


def order_in_python(
    end: Ints, offsets: Ints, ids: Ints, codes: npt.NDArray[np.uint16], ranks: npt.NDArray[np.uint16]
) -> Ints | None:
    """Return the permutation that sorts matches stably by (end, ids, ranks of variables), like ``output_order`` of the
    native core; ``None`` if they are in order."""
    ends, bounds = end.tolist(), offsets.tolist()
    events, names = ids.tolist(), ranks[codes].tolist()

    def sort_key(i: int) -> tuple[int, list[int], list[int]]:
        trail = slice(bounds[i], bounds[i + 1])
        return ends[i], events[trail], names[trail]

    places = sorted(range(len(ends)), key=sort_key)
    return None if places == list(range(len(ends))) else np.array(places, np.int64)

"""Compute expressions over whole columns: keys, conditions and measures of a row pattern clause."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column, column_of_values
from acep.native import compiled
from acep.pattern import expressions as ex
from acep.pattern.evaluation import compile_expression
from acep.pattern.walk import leaves_of
from acep.plan.decimals import Typed
from acep.plan.lower.bytecode import CannotLower, lower_expression
from acep.plan.schema import Kind

__all__ = ["Evaluator", "kind_of_typed", "shift_rows", "take_rows", "truth_bits"]

Ints = npt.NDArray[np.int64]
T = TypeVar("T")
MOST_TEXTS, MOST_TEXT_BYTES = 10_000, 1 << 20
"""The texts, and their bytes, that may be there beside those that are needed."""
_KINDS = {"decimal": Kind.INT, "duration": Kind.INT}


def kind_of_typed(typed: Typed) -> Kind:
    """Return the kind of the column that holds the values of an expression."""
    return _KINDS.get(typed.kind) or Kind(typed.kind)


@dataclass
class Evaluator:
    """Compute expressions over columns by name; texts have one numbering. ``tick_ns``: the tick of times.

    An expression is lowered once for columns of some kinds: one evaluator serves all pushes of a stream."""

    tick_ns: Fraction | None
    codes: Any = field(init=False)
    _things: dict[tuple[int, Hashable], tuple[object, Any]] = field(init=False, default_factory=dict)

    _texts_needed: tuple[int, int] = field(init=False, default=(0, 0))

    def __post_init__(self) -> None:
        self.codes = None
        if compiled.native() is not None:
            from acep.native.codes import Codes

            self.codes = Codes()

    def forget_texts(self) -> bool:
        """Forget the texts of earlier rows if they are many more than :meth:`note_texts` noted; columns that were
        computed before do not need them. Return whether codes of texts are others from now on."""
        if self.codes is None:
            return False
        count, size = self._texts_needed
        if len(self.codes) <= 2 * count + MOST_TEXTS and self.codes.bytes <= 2 * size + MOST_TEXT_BYTES:
            return False
        self.codes.keep(np.zeros(self.codes.texts.capacity, np.uint8), None)
        return True

    def note_texts(self) -> None:
        """Note that the texts that there are now are needed: they are forgotten once there are twice as many."""
        if self.codes is not None:
            self._texts_needed = len(self.codes), self.codes.bytes

    def make_once(self, owner: object, use: Hashable, make: Callable[[], T]) -> T | None:
        """Return what is made of an owner for a use, once for all; ``None`` if the core has no such operation."""
        key = (id(owner), use)
        if key not in self._things:
            try:
                self._things[key] = owner, make()  # the owner stays, so that its id is of no other
            except CannotLower:
                self._things[key] = owner, None
        thing: T | None = self._things[key][1]
        return thing

    def column(self, typed: Typed, columns: Mapping[str, Column], size: int) -> Column:
        """Return the values of an expression over ``size`` rows of columns."""
        if isinstance(typed.expr, ex.Attribute):
            return columns[typed.expr.name]
        leaves = self.make_once(typed, "leaves", lambda: leaves_of(typed.expr)) or ()
        inputs = [columns[leaf.name] for leaf in leaves if isinstance(leaf, ex.Attribute)]
        if self.codes is not None:
            kinds = tuple(column.kind for column in inputs)
            lowered = self.make_once(typed, kinds, lambda: self._lower(typed, leaves, kinds))
            if lowered is not None:
                program, result = lowered
                words = [self.codes.words(column, 0) for column in inputs]
                values, valid = program.value(size, words, self.codes.texts)
                return self.codes.column(values, result, valid)  # type: ignore[no-any-return]
        run = self.make_once(typed, "run", lambda: compile_expression(typed.expr, self.tick_ns).run)
        assert run is not None
        rows = zip(*(column.to_list() for column in inputs), strict=True) if inputs else iter([()] * size)
        return column_of_values([run(row) for row in rows], kind_of_typed(typed))

    def truths(self, condition: ex.Expr, columns: Mapping[str, Column], size: int) -> npt.NDArray[np.uint8]:
        """Return 1 for each of ``size`` rows of columns where a condition is true, else 0."""
        typed = self.make_once(condition, "typed", lambda: Typed(condition, "bool"))
        assert typed is not None
        return truth_bits(self.column(typed, columns, size))

    def _lower(self, typed: Typed, leaves: Sequence[ex.Leaf], kinds: tuple[Kind, ...]) -> tuple[Any, Kind]:
        """Return the program of an expression, and the kind of its values."""
        from acep.native import _native

        program = lower_expression(typed.expr, leaves, kinds, self.tick_ns, self.codes.constant)
        return _native.BlockProgram(np.array(program.code, np.int64), program.slots, program.leaves), program.result


def take_rows(column: Column, rows: Ints) -> Column:
    """Return the values of a column at rows; null where the row is negative."""
    outside = rows < 0
    if not len(column):
        nothing: Any = np.zeros(len(rows), column.values.dtype)
        return Column(column.kind, nothing, np.zeros(len(rows), np.uint8), column.texts)
    inside = column.take(np.where(outside, 0, rows))
    if not outside.any():
        return inside
    valid = (~outside).astype(np.uint8) if inside.valid is None else np.where(outside, np.uint8(0), inside.valid)
    values: Any = inside.values.copy()
    values[outside] = 0
    return Column(column.kind, values, valid, column.texts)


def shift_rows(column: Column, partitions: Ints, shift: int) -> Column:
    """Return for each row the value at a distance in its partition; null where there is none. ``partitions``: the first
    row of each, and the end.

    >>> column = Column(Kind.INT, np.array([5, 6, 7, 8]))
    >>> shift_rows(column, np.array([0, 3, 4]), -1).to_list()
    [None, 5, 6, None]
    """
    size = len(column)
    distance = min(abs(shift), size)
    targets, sources = (slice(distance, None), slice(0, size - distance))
    targets, sources = (targets, sources) if shift < 0 else (sources, targets)
    values: Any = np.zeros(size, column.values.dtype)
    values[targets] = column.values[sources]
    valid = np.zeros(size, np.uint8)
    valid[targets] = 1 if column.valid is None else column.valid[sources]
    begins, ends = partitions[:-1], partitions[1:]
    if distance * len(begins) > size:  # most partitions are no longer than the distance
        places = np.arange(size) + shift
        sizes = ends - begins
        outside = np.flatnonzero((places < np.repeat(begins, sizes)) | (places >= np.repeat(ends, sizes)))
    else:
        edges = begins[:, None] + np.arange(distance) if shift < 0 else ends[:, None] - 1 - np.arange(distance)
        outside = edges[(edges < ends[:, None]) & (edges >= begins[:, None])]
    values[outside], valid[outside] = 0, 0
    return Column(column.kind, values, valid, column.texts)


def truth_bits(column: Column) -> npt.NDArray[np.uint8]:
    """Return 1 where a condition is true, 0 where it is false or null."""
    passes = (column.values != 0).astype(np.uint8) if column.kind is Kind.BOOL else np.zeros(len(column), np.uint8)
    return passes if column.valid is None else passes & column.valid

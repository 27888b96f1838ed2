"""Find the matches of a clause with the ordered engine of the native core (acep/native/src/ordered)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column
from acep.functions.aggregates import AGGREGATES
from acep.pattern import expressions as ex
from acep.pattern.sql.clause_tree import SkipMode
from acep.pattern.walk import leaves_of
from acep.plan.lower.bytecode import CannotLower, lower_expression
from acep.plan.ordered.ordered_plan import Condition, OrderedPlan
from acep.plan.ordered.pattern_states import StateKind
from acep.plan.ordered.row_references import LABEL, NUMBER, MatchNumber, MissingRows, RowAggregate, RowReference
from acep.plan.schema import Kind
from acep.reference.ordered_search import skip_error
from acep.row_patterns.match_batch import MatchBatch
from acep.row_patterns.row_values import Evaluator, kind_of_typed
from acep.row_patterns.search_limits import SearchLimits
from acep.row_patterns.sorted_rows import PartitionedRows

__all__ = ["MEMORY", "NativeTables", "lower_plan", "make_search", "search_natively"]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]
MEMORY = 1 << 30
"""The most bytes that a search takes for what it remembers; beyond it, it forgets and goes on."""

_SKIPS = {
    SkipMode.PAST_LAST: 0, SkipMode.TO_NEXT: 1, SkipMode.TO_FIRST: 2, SkipMode.TO_LAST: 3, SkipMode.TO_VARIABLE: 3,
}  # fmt: skip
_AGGREGATES = {name: entry.search_code for name, entry in AGGREGATES.items() if entry.search_code}
_TYPES = {Kind.FLOAT: 1, Kind.STRING: 2}
_CURRENT, _FIRST, _LAST, _COUNT_ROWS, _MATCH_NUMBER, _FIRST_LABEL, _LAST_LABEL = 0, 1, 2, 3, 8, 9, 10


class NativeTables:
    """The tables of a plan for the core: label sets, references and conditions, each once.

    ``kinds``: those of the columns. ``columns``: the names of the columns that references read, in the order of their
    numbers; the labels are one."""

    def __init__(self, plan: OrderedPlan, kinds: Mapping[str, Kind], evaluator: Evaluator) -> None:
        self.plan, self.kinds, self.evaluator = plan, kinds, evaluator
        self.sets: list[list[int]] = []
        self.columns: list[str] = []
        self.references: list[tuple[int, int, int, int, int, int]] = []
        self.conditions: list[tuple[int, Any, list[int]]] = []
        self.read: dict[int, set[int]] = {}  # by label
        for condition in plan.conditions:
            if not condition.is_local:
                self.add_condition(condition)
        self.skip_set = 0 if plan.skip_to is None else self.set_of(plan.skip_to)
        self.live = live_references(plan.states.states, self.read)

    def add_condition(self, condition: Condition) -> None:
        """Add a condition for each label of its variable. Raises :class:`CannotLower` if the core has no such
        operation."""
        from acep.native import _native

        leaves = [leaf for leaf in leaves_of(condition.typed.expr) if isinstance(leaf, ex.Attribute)]
        references = [self.plan.references[int(leaf.name[1:])] for leaf in leaves]
        numbers = [self.reference(reference) for reference in references]
        kinds = [self.kind(reference) for reference in references]
        program = lower_expression(
            condition.typed.expr, leaves, kinds, self.evaluator.tick_ns, self.evaluator.codes.constant
        )
        block = _native.BlockProgram(np.array(program.code, np.int64), program.slots, program.leaves)
        for label, (variable, _) in enumerate(self.plan.states.labels):
            if variable == condition.variable:
                self.conditions.append((label, block, numbers))
                self.read.setdefault(label, set()).update(numbers)

    def kind(self, reference: RowReference) -> Kind:
        """Return the kind of the values of a reference."""
        typed = self.plan.reference_types[self.plan.references.index(reference)]
        assert typed is not None
        return kind_of_typed(typed)

    def reference(self, reference: RowReference) -> int:
        """Return the number of a reference, which is added."""
        row = self._row(reference)
        if row not in self.references:
            self.references.append(row)
        return self.references.index(row)

    def _row(self, reference: RowReference) -> tuple[int, int, int, int, int, int]:
        if isinstance(reference, MatchNumber):
            return (_MATCH_NUMBER, 0, 0, 0, 0, 0)
        if isinstance(reference, MissingRows):  # no condition reads it
            raise CannotLower("MISSING_ROWS")
        if isinstance(reference, RowAggregate):
            return self._aggregate(reference)
        rows = self.set_of(reference.variables)
        if reference.column == LABEL:
            kind = _FIRST_LABEL if reference.is_first else _LAST_LABEL
            return (kind, rows, reference.offset, reference.shift, self.column(LABEL), 2)
        column = self.column(reference.column)
        kind_number = _TYPES.get(self.kinds[reference.column], 0)
        if reference.variables is None and not reference.is_first and reference.offset == 0:
            return (_CURRENT, 0, 0, reference.shift, column, kind_number)
        return (_FIRST if reference.is_first else _LAST, rows, reference.offset, reference.shift, column, kind_number)

    def _aggregate(self, reference: RowAggregate) -> tuple[int, int, int, int, int, int]:
        is_of_match = reference.column in (LABEL, NUMBER, *dict(self.plan.mapped))
        if reference.is_distinct or is_of_match or reference.function not in _AGGREGATES:
            raise CannotLower(reference.function)
        rows = self.set_of(reference.variables)
        if reference.column is None:
            return (_COUNT_ROWS, rows, 0, 0, 0, 0)
        kind = _TYPES.get(self.kinds[reference.column], 0)
        places = int(reference.texts[0]) if reference.texts else 0  # of an average
        return (_AGGREGATES[reference.function], rows, places, 0, self.column(reference.column), kind)

    def set_of(self, variables: frozenset[str] | None) -> int:
        """Return the number of a set of labels."""
        labels = [
            label for label, (name, _) in enumerate(self.plan.states.labels) if variables is None or name in variables
        ]
        if labels not in self.sets:
            self.sets.append(labels)
        return self.sets.index(labels)

    def column(self, name: str) -> int:
        """Return the number of a column."""
        if name not in self.columns:
            self.columns.append(name)
        return self.columns.index(name)

    def words(self, columns: Mapping[str, Column]) -> list[tuple[Any, Any]]:
        """Return the columns as the core takes them."""
        spellings = dict(self.plan.spellings)
        words = []
        for name in self.columns:
            if name == LABEL:
                texts = [spellings[variable] for variable, _ in self.plan.states.labels]
                words.append((self.evaluator.codes.constants(texts), None))
            else:
                words.append(self.evaluator.codes.words(columns[name], 0))
        return words


def lower_plan(plan: OrderedPlan, columns: Mapping[str, Column], evaluator: Evaluator) -> NativeTables | None:
    """Return the tables of a plan, which are made once for columns of the same kinds; ``None`` if the core cannot run
    some condition."""
    kinds = {name: column.kind for name, column in columns.items()}
    return evaluator.make_once(plan, tuple(kinds.items()), lambda: NativeTables(plan, kinds, evaluator))


def live_references(states: Sequence[tuple[int, int, int]], read: Mapping[int, set[int]]) -> list[list[int]]:
    """Return for each state the references that conditions read which can still be reached from it.

    >>> live_references([(0, 1, 0), (0, 2, 1), (5, 0, 0)], {1: {4}})
    [[4], [4], []]
    """
    before: list[list[int]] = [[] for _ in states]
    live: list[set[int]] = []
    for number, (kind, following, other) in enumerate(states):
        live.append(set(read.get(other, ())) if kind == StateKind.ROW else set())
        if kind != StateKind.ACCEPT:
            before[following].append(number)
        if kind == StateKind.SPLIT:
            before[other].append(number)
    pending = [number for number, references in enumerate(live) if references]
    while pending:
        number = pending.pop()
        for source in before[number]:
            if not live[number] <= live[source]:
                live[source] |= live[number]
                pending.append(source)
    return [sorted(references) for references in live]


def make_search(tables: NativeTables) -> Any:
    """Return a search for the pattern of a plan."""
    from acep.native import _native

    plan = tables.plan
    return _native.OrderedSearch(
        list(plan.states.states), len(plan.states.labels), tables.sets, tables.references, tables.conditions,
        tables.live, _SKIPS[plan.clause.skip.mode], tables.skip_set, MEMORY,
    )  # fmt: skip


def search_natively(
    tables: NativeTables,
    rows: PartitionedRows,
    columns: Mapping[str, Column],
    bits: Mapping[str, Bits],
    window: tuple[Ints | None, int],
    batch_rows: int,
    limits: SearchLimits | None = None,
) -> Iterator[MatchBatch]:
    """Yield the matches, about ``batch_rows`` rows of them at a time. ``window``: times, and the width."""
    plan = tables.plan
    skip = plan.clause.skip
    labels = plan.states.labels
    search = make_search(tables)
    local = [np.ascontiguousarray(bits[name]) if name in bits else None for name, _ in labels]
    times, width = window
    search.start(
        tables.words(columns), local, np.ascontiguousarray(rows.partitions), tables.evaluator.codes.texts,
        None if times is None else np.ascontiguousarray(times), width,
        [] if limits is None else limits.triples(), None if limits is None else len(labels) - 1,
    )  # fmt: skip
    while True:
        try:
            flat_matches = search.take(batch_rows)
        except ValueError as error:
            kind = error.args[0] if error.args else ""
            if kind in ("unbound", "first row"):
                raise skip_error(kind, skip.mode.value) from None
            raise
        if flat_matches is None:
            if limits is not None:
                limits.end_at(*search.ends())
                limits.open_labels = search.open_labels() if tables.conditions else None
            return
        partition, number, first, offsets, mapped = flat_matches
        yield MatchBatch(
            partition=partition,
            number=number,
            first=first,
            offsets=offsets,
            labels=mapped,
            begins=rows.partitions[partition],
            ends=rows.partitions[partition + 1],
        )

"""Make the plan of a MATCH_RECOGNIZE clause for given columns: all that an engine needs, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from acep.errors import QueryError
from acep.pattern import expressions as ex
from acep.pattern.expressions import Span, error_at, locate_errors
from acep.pattern.sql.clause_tree import (
    Clause,
    MatchSpan,
    Measure,
    RowsMode,
    first_exclusion,
    variables_of,
)
from acep.pattern.walk import leaves_of
from acep.plan.dates import gives_date
from acep.plan.decimals import Typed
from acep.plan.kinds import resolve
from acep.plan.ordered.clause_checks import check_computed, check_labels, checked_window, named_variables
from acep.plan.ordered.clause_leaves import ClauseLeaves, convert_key, reference_name
from acep.plan.ordered.missing_rows import allow_missing, and_parts, leave_out_missing
from acep.plan.ordered.pattern_states import PatternStates, compile_pattern
from acep.plan.ordered.reference_types import type_of_reference
from acep.plan.ordered.row_columns import ClauseColumns
from acep.plan.ordered.row_references import LABEL, NUMBER, Navigation, PartitionValue, RowAggregate, RowReference
from acep.plan.schema import Kind, Schema

__all__ = ["Condition", "OrderedPlan", "PlannedKey", "PlannedMeasure", "attribute_names", "make_plan"]


@dataclass(frozen=True)
class PlannedKey:
    """A column to order by."""

    column: str
    is_descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class PlannedMeasure:
    """A measure. ``reference``: the number of the reference whose value it is; else ``typed`` computes it.
    ``is_date``: its values are dates."""

    name: str
    typed: Typed | None
    reference: int | None
    is_date: bool = False


@dataclass(frozen=True)
class Condition:
    """A part of the condition of a variable (all parts must be true); ``references`` are those that it reads."""

    variable: str
    typed: Typed
    references: tuple[int, ...]
    is_local: bool


@dataclass(frozen=True)
class OrderedPlan:
    """The plan of a clause.

    ``names`` are the columns of the table, ``computed`` those that are computed of a row, ``mapped`` those of a mapped
    row and its label, ``dates`` those of dates, ``windows`` those of
    aggregates over partitions. ``width``: the window in ticks, or in units of the first key of ORDER
    BY. ``skip_to``: the variables of SKIP TO. ``spellings``: the variables by folded names, as CLASSIFIER gives them.
    """

    clause: Clause
    names: tuple[str, ...]
    schema: Schema
    computed: tuple[tuple[str, Typed], ...]
    mapped: tuple[tuple[str, Typed], ...]
    partition: tuple[str, ...]
    order: tuple[PlannedKey, ...]
    states: PatternStates
    conditions: tuple[Condition, ...]
    references: tuple[RowReference, ...]
    reference_types: tuple[Typed | None, ...]
    measures: tuple[PlannedMeasure, ...]
    spellings: tuple[tuple[str, str], ...]
    skip_to: frozenset[str] | None
    width: MatchSpan | None
    dates: frozenset[str]
    windows: tuple[tuple[PartitionValue, Typed], ...]

    @property
    def rows(self) -> RowsMode:
        """Return which rows are given."""
        return self.clause.rows

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """Return the columns of the result: of one row a match the keys of partitions and the measures; of all rows the
        keys of partitions and of the order, the measures, and the other columns of the table."""
        measures = [measure.name for measure in self.measures]
        if self.rows is RowsMode.ONE_ROW:
            return (*dict.fromkeys(self.partition), *measures)
        keys = dict.fromkeys((*self.partition, *(key.column for key in self.order if key.column in self.names)))
        return (*keys, *measures, *(name for name in self.names if name not in keys))

    @cached_property
    def columns_read(self) -> tuple[str, ...]:
        """Return the columns of the table, and fields of its structs, that keys, conditions and measures read."""
        names = [*self.partition, *(key.column for key in self.order)]
        for reference in self.references:
            if isinstance(reference, Navigation):
                names.append(reference.column)
            elif isinstance(reference, RowAggregate) and reference.column is not None:
                names += [reference.column, *reference.arguments]
        windows = [window for window, _ in self.windows]
        names += [window.column for window in windows if window.column is not None]
        not_read = {*dict(self.computed), *dict(self.mapped), *(window.name for window in windows), LABEL, NUMBER}
        sources = [name for _, typed in (*self.computed, *self.mapped) for name in attribute_names(typed.expr)]
        return tuple(name for name in dict.fromkeys((*sources, *names)) if name not in not_read)

    @cached_property
    def partition_sources(self) -> tuple[str, ...]:
        """Return the columns that the keys of partitions are computed of, and the keys, in an order of computation."""
        names, computed = dict.fromkeys(self.partition), dict(self.computed)
        for key in self.partition:
            pending = [key]
            while pending:
                name = pending.pop()
                names[name] = None
                pending += attribute_names(computed[name].expr) if name in computed else ()
        return (*(name for name in names if name not in computed), *(name for name in computed if name in names))


def attribute_names(expr: ex.Expr) -> tuple[str, ...]:
    """Return the columns that an expression names."""
    return tuple(leaf.name for leaf in leaves_of(expr) if isinstance(leaf, ex.Attribute))


def make_plan(
    clause: Clause, names: tuple[str, ...], schema: Schema, dates: frozenset[str] = frozenset(), input_name: str = ""
) -> OrderedPlan:
    """Make the plan of a clause over columns ``names`` of a schema whose times are instants; ``dates`` are days.
    ``input_name``: what the table is called in the clause.

    Raises :class:`QueryError` with the place of the first part that does not fit.
    """
    try:
        return _plan(clause, ClauseColumns(names, schema, set(dates), input_name=input_name))
    except QueryError as error:
        error.located(clause.text)
        raise
    except RecursionError:
        raise QueryError(
            "the clause is nested too deep", hint="leave out parentheses that change nothing", code="query_size"
        ) from None


def _plan(clause: Clause, columns: ClauseColumns) -> OrderedPlan:
    schema = columns.schema
    variables, unions = named_variables(clause)
    leaves = ClauseLeaves(columns, variables, unions)
    partition = tuple(convert_key(key, columns) for key in clause.partition)
    order = tuple(
        PlannedKey(convert_key(key.expression, columns), key.is_descending, bool(key.nulls_first))
        for key in clause.order
    )  # fmt: skip
    for planned, key in zip(order, clause.order, strict=True):
        with locate_errors(key.expression.span):
            columns.refuse_own_order(planned.column)
    leaves.time_key = order[0].column if order else None
    sources = (*clause.partition, *(key.expression for key in clause.order))
    for column, source in zip((*partition, *(key.column for key in order)), sources, strict=True):
        with locate_errors(source.span):
            columns.typed_column(column)  # the values of a key can be compared
    converted = [(d.variable.casefold(), leaves.convert(d.condition, d.variable.casefold()))
                 for d in clause.definitions]  # fmt: skip
    if clause.errors:
        converted = [(variable, part) for variable, expr in converted
                     for part in leave_out_missing(expr, variable, leaves)]  # fmt: skip
    expressions: list[ex.Expr] = []
    for measure in clause.measures:
        expressions.append(leaves.convert(measure.expression))
        leaves.measures[measure.name.casefold()] = expressions[-1]
    types = tuple(
        _placed_type(reference, span, columns) for reference, span in zip(leaves.references, leaves.spans, strict=True)
    )
    for expr in (*(expr for _, expr in converted), *expressions):
        check_computed(expr, leaves.references, types)
        check_labels(expr, leaves.references, clause)
    slots = _slot_schema(types, leaves)
    conditions = tuple(
        condition for variable, expr in converted for condition in _conditions(variable, expr, leaves.references, slots)
    )
    measures = tuple(
        _measure(measure, expr, types, slots, leaves)
        for measure, expr in zip(clause.measures, expressions, strict=True)
    )
    skip_to = None
    excluded = first_exclusion(clause.pattern)
    if clause.rows is RowsMode.UNMATCHED and excluded is not None:
        raise error_at("an exclusion is not possible with WITH UNMATCHED ROWS", excluded.span, "leave one of them out",
                       code="query_invalid")  # fmt: skip
    if clause.skip.variable is not None:
        skip_to = leaves.variable_set(clause.skip.variable, clause.skip.span)
    plan = OrderedPlan(
        clause, columns.names, schema, tuple(columns.computed.items()), tuple(columns.mapped.items()), partition, order,
        allow_missing(_compile_pattern(clause), clause.errors),
        conditions, tuple(leaves.references), types, measures, tuple(variables.items()), skip_to,
        checked_window(clause, order[0].column if order else None, columns), frozenset(columns.dates),
        tuple(columns.windows.items()),
    )  # fmt: skip
    _check_output(plan)
    return plan


def _compile_pattern(clause: Clause) -> PatternStates:
    """Return the states of the pattern; an error is about all of it."""
    spans = [variable.span for variable in variables_of(clause.pattern)]
    if not spans:
        return compile_pattern(clause.pattern)
    with locate_errors(Span(min(span.start for span in spans), max(span.end for span in spans))):
        return compile_pattern(clause.pattern)


def _placed_type(reference: RowReference, span: Span, columns: ClauseColumns) -> Typed | None:
    with locate_errors(span):
        return type_of_reference(reference, columns)


@dataclass(frozen=True)
class _SlotSchema(Schema):
    """The schema of the values of references; ``categories``: those that are categories in an order of their own, with
    their columns."""

    categories: tuple[tuple[str, str], ...] = ()

    def ordered_categories(self, name: str) -> str | None:
        """Return the column of categories in an order of their own that a name means; ``None`` if it means another."""
        return dict(self.categories).get(name)


def _slot_schema(types: tuple[Typed | None, ...], leaves: ClauseLeaves) -> Schema:
    """Return the schema of the values of references, as columns."""
    kinds, scales, durations, categories = [], [], [], []
    for number, (typed, reference) in enumerate(zip(types, leaves.references, strict=True)):
        name = reference_name(number)
        if (column := leaves.categories_of(reference)) is not None:
            categories.append((name, column))
        if typed is None:
            continue
        if typed.kind == "decimal":
            kinds.append((name, Kind.INT))
            scales.append((name, typed.scale))
        elif typed.kind == "duration":
            kinds.append((name, Kind.INT))
            durations.append(name)
        else:
            kinds.append((name, Kind(typed.kind)))
    return _SlotSchema(
        tuple(kinds), ts=" ", type=None, tick_ns=leaves.columns.schema.tick_ns, instants=True, scales=tuple(scales),
        durations=tuple(durations), categories=tuple(categories),
    )  # fmt: skip


def _conditions(variable: str, expr: ex.Expr, references: list[RowReference], slots: Schema) -> list[Condition]:
    """Return the parts of a condition that AND joins, those first that need only the row and its neighbours."""
    conditions = []
    for part in and_parts(expr):
        typed = resolve(part, slots, condition=True)
        numbers = tuple(int(leaf.name[1:]) for leaf in leaves_of(typed.expr) if isinstance(leaf, ex.Attribute))
        is_local = all(_is_local(references[number]) for number in numbers)
        conditions.append(Condition(variable, typed, numbers, is_local))
    return sorted(conditions, key=lambda condition: not condition.is_local)


def _is_local(reference: RowReference) -> bool:
    """Return whether a reference of DEFINE is to the row that is tested, or to one at a fixed distance."""
    return (
        isinstance(reference, Navigation)
        and reference.variables is None
        and not reference.is_first
        and reference.offset == 0
        and reference.column != LABEL
    )


def _measure(
    measure: Measure, expr: ex.Expr, types: tuple[Typed | None, ...], slots: Schema, leaves: ClauseLeaves
) -> PlannedMeasure:
    is_date = gives_date(expr, leaves.is_date)
    if isinstance(expr, ex.Attribute):
        number = int(expr.name[1:])
        return PlannedMeasure(measure.name, types[number], number, is_date)
    return PlannedMeasure(measure.name, resolve(expr, slots), None, is_date)


def _check_output(plan: OrderedPlan) -> None:
    seen: set[str] = set()
    for name in plan.output_names:
        if name.casefold() in seen:
            spans = [m.span for m in plan.clause.measures if m.name.casefold() == name.casefold()]
            raise error_at(f"two columns of the result are called `{name}`", spans[-1] if spans else None,
                           "give the measure another name", code="query_name")  # fmt: skip
        seen.add(name.casefold())

"""Write the tables of plans and the parts that they share: numbered columns, predicates as programs, named arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from acep.functions.aggregates import AGGREGATES
from acep.pattern import expressions as ex
from acep.pattern.walk import leaves_of
from acep.plan.compile import Plan
from acep.plan.computed import Computed
from acep.plan.derive import Derived
from acep.plan.lower.bytecode import BlockProgram, CannotLower, lower_expression
from acep.plan.schema import Kind

__all__ = ["EVENT", "PRESENCE", "EventClass", "NotNativeError", "SharedTables", "Triple", "Writer"]

EVENT, PRESENCE = range(2)
"""Sources of a condition on a single event: a column of the event, and 1 (0 where a column is null)."""

Triple = tuple[int, int, int]

PLAIN = (
    "check_program", "check_only", "check_turn", "crossing_negation", "accept_cost", "arc_number", "arc_target",
    "arc_var", "arc_class", "arc_blocking", "arc_history", "arc_first", "arc_last", "assign_program", "ignore_class",
    "ignore_first", "ignore_last", "end_class",
)  # fmt: skip
LISTS = (
    "check_sources", "check_loops", "crossing_entered", "accept", "accept_crossings", "frame_sources", "arc",
    "arc_gaps", "arc_leaving", "arc_binding", "arc_puts", "arc_crossings", "arc_resets", "assign_sources", "ignore",
    "ignore_binding", "end", "end_checks",
)  # fmt: skip
COMPLETION = (
    "kept", "order_by", "choice", "skip", "variable_rank", "negation_class", "negation_weight", "negation_since",
    "conjunct_program", "having", "returns",
)  # fmt: skip
COMPLETION_LISTS = (
    "negation_around", "negation_columns", "negation_conjuncts", "conjunct_refs", "conjunct_loops", "conjunct_least",
    "group_variables", "whole_refs",
)  # fmt: skip
"""The arrays, and arrays of lists, that the native core asks for even if they are empty: first those of all runs, then
those of complete ones (:mod:`acep.plan.lower.tables_completion`)."""


class NotNativeError(Exception):
    """Raised for a plan that the native core cannot run; the message is the reason."""


@dataclass(frozen=True)
class EventClass:
    """Conditions on a single event: one of ``types`` (empty: any type), and ``checks`` as (program, sources)."""

    types: tuple[str, ...]
    checks: tuple[tuple[int, tuple[Triple, ...]], ...]


@dataclass
class SharedTables:
    """The parts of tables that the plans of one stream share.

    ``programs_by_id``: the programs of expressions of plans that change, by their identity; each is kept with its
    expression.
    ``computed``: the columns that the user's own functions give.
    ``columns``: for each column its name, and its derivation if it is derived. ``keys``: for each partition
    table its columns, and whether it must count positions.
    """

    columns: dict[str, Derived | None] = field(default_factory=dict)
    programs: dict[BlockProgram, int] = field(default_factory=dict)
    classes: dict[EventClass, int] = field(default_factory=dict)
    keys: dict[tuple[int, ...], bool] = field(default_factory=dict)
    programs_by_id: dict[int, tuple[ex.Expr, int]] = field(default_factory=dict)
    computed: dict[str, Computed] = field(default_factory=dict)

    def copy(self) -> SharedTables:
        """Return a copy that may change on its own."""
        return SharedTables(
            dict(self.columns),
            dict(self.programs),
            dict(self.classes),
            dict(self.keys),
            dict(self.programs_by_id),
            dict(self.computed),
        )

    def column(self, name: str, derived: dict[str, Derived]) -> int:
        """Return the number of a column; assign a new number if necessary."""
        self.columns.setdefault(name, derived.get(name))
        return next(number for number, column in enumerate(self.columns) if column == name)


class _Lists:
    """Lists of integers, stored as one array with offsets."""

    def __init__(self) -> None:
        self.items: list[int] = []
        self.offsets = [0]

    def add(self, values: Sequence[int]) -> None:
        self.items.extend(values)
        self.offsets.append(len(self.items))


class Writer:
    """A builder of the arrays of one plan, which numbers the columns, programs and event classes they refer to."""

    def __init__(
        self, plan: Plan, shared: SharedTables, derived: dict[str, Derived], code_of_text: Callable[[str], int]
    ) -> None:
        self.plan = plan
        self.shared = shared
        shared.computed |= {column.name: column for column in plan.computed}
        self.derived = derived
        self.code_of_text = code_of_text
        self.lists: dict[str, _Lists] = {}
        self.plain: dict[str, list[int]] = {}

    def kind(self, name: str) -> Kind:
        """Return the kind of a column's words: INT for a column that contains only nulls."""
        kind = self._column_kind(name)
        return Kind.INT if kind is Kind.NULL else kind

    def _column_kind(self, name: str) -> Kind:
        return self.derived[name].kind if name in self.derived else self.plan.schema.engine_kind(name)

    def _leaf_kind(self, leaf: ex.Leaf) -> Kind:
        match leaf:
            case ex.Attribute(name=name):
                return self._column_kind(name)
            case ex.Length():
                return Kind.INT
            case ex.Aggregate(function=function, name=name):
                if AGGREGATES[function].gives in ("integer", "float"):
                    return Kind.INT if AGGREGATES[function].gives == "integer" else Kind.FLOAT
                assert name is not None
                return self._column_kind(name)

    def column(self, name: str) -> int:
        """Return the number of a column."""
        return self.shared.column(name, self.derived)

    def program(self, expr: ex.Expr) -> tuple[int, Kind]:
        """Return the number of an expression's program over ``leaves_of(expr)``, and the kind of its result.

        Raise :class:`NotNativeError` if there is no such program.
        """
        leaves = leaves_of(expr)
        kinds = [self._leaf_kind(leaf) for leaf in leaves]
        try:
            program = lower_expression(expr, leaves, kinds, self.plan.schema.tick_ns, self.code_of_text)
        except CannotLower as reason:
            raise NotNativeError(str(reason)) from None
        return self.shared.programs.setdefault(program, len(self.shared.programs)), program.result

    def event_class(self, types: tuple[str, ...], checks: Sequence[tuple[int, tuple[Triple, ...]]]) -> int:
        """Return the number of an event class."""
        event_class = EventClass(types, tuple(dict.fromkeys(checks)))
        return self.shared.classes.setdefault(event_class, len(self.shared.classes))

    def put(self, name: str, value: int) -> None:
        """Append a value to an array."""
        self.plain.setdefault(name, []).append(value)

    def add(self, name: str, values: Sequence[int]) -> None:
        """Append a list to an array of lists: the values go to ``name``, the offsets to ``name_at``."""
        if name not in self.lists:
            self.lists[name] = _Lists()
        self.lists[name].add(values)

    def arrays(self) -> dict[str, tuple[int, ...]]:
        """Return all arrays, also the empty ones that the native core asks for."""
        tables = {name: tuple(values) for name, values in self.plain.items()}
        for name, values in self.lists.items():
            tables |= {name: tuple(values.items), f"{name}_at": tuple(values.offsets)}
        for name in (*PLAIN, *COMPLETION):
            tables.setdefault(name, ())
        for name in (*LISTS, *COMPLETION_LISTS):
            tables.setdefault(name, ())
            tables.setdefault(f"{name}_at", (0,))
        return tables

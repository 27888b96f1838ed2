"""Write the tables about complete runs: negations, HAVING, RETURN, and the choice of output matches.

The semantics is that of :mod:`acep.reference.runtime`, :mod:`~acep.reference.bindings` and
:mod:`~acep.reference.choosing`.
"""

from __future__ import annotations

from collections.abc import Sequence

from acep.automaton.arcs import Crossing
from acep.automaton.thompson import Negated
from acep.functions.aggregates import AGGREGATES, SCALE
from acep.pattern import expressions as ex
from acep.pattern.tree import SKIP_PLACES, Output
from acep.pattern.walk import indexes, leaves_of, means_each, steps_back
from acep.plan.compile import Plan
from acep.plan.lower.bytecode_words import bits_of
from acep.plan.lower.tables_writer import EVENT, NotNativeError, Triple, Writer
from acep.plan.schema import Kind

__all__ = ["Negations", "completes", "needs_firsts", "write_output"]

CHOICES = (
    (Output.ALL,),
    (Output.NON_OVERLAP,),
    (Output.EARLIEST_MAXIMAL,),
    (Output.LONGEST_NON_OVERLAP, Output.LONGEST_AFTER_SKIP),
    (Output.SHORTEST_NON_OVERLAP, Output.SHORTEST_AFTER_SKIP),
)
"""The outputs of each number of ``Choice`` in tables.hpp."""

LENGTH, NTH, LAST, COUNT, SUM, ADD, MINIMUM, MAXIMUM, AVERAGE, MEAN, EACH, PREVIOUS, DISTINCT, SPREAD = range(14)
"""Ways in which a reference to the events of a variable gets its value (``How`` in tables.hpp)."""

OPERATIONS = {
    "nth": NTH, "last": LAST, "sum": SUM, "add": ADD, "minimum": MINIMUM, "maximum": MAXIMUM, "average": AVERAGE,
    "mean": MEAN, "distinct": DISTINCT, "spread": SPREAD,
}  # fmt: skip
"""The ways of aggregates, by their names in :attr:`acep.functions.aggregates.AggregateFunction.completion`."""

LIMIT = 2**63

CANDIDATE = -1
"""Number that stands for the variable of the event that may violate a negation."""


def completes(plan: Plan) -> bool:
    """Return whether a complete run needs further processing before it is output."""
    return bool(plan.automaton.negations or plan.having or plan.returns or plan.query.output is not Output.ALL)


def needs_firsts(plan: Plan) -> bool:
    """Return whether partial matches must store the position of their first event, as output waits for live runs. Those
    of a query that may change find it by their cells, if only for negations, which a later version may bring."""
    endless = bool(plan.automaton.negations) and plan.window.span is None and not plan.dynamic
    return plan.query.output is not Output.ALL or endless


class _Kept:
    """Columns that are kept with an event, numbered by place."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.columns: dict[int, int] = {}

    def place(self, name: str) -> int:
        return self.columns.setdefault(self.writer.column(name), len(self.columns))


class Negations:
    """The negations of a plan, and the crossings of arcs and accepting states.

    ``conjuncts``: for each negation, the conditions on the event that violates it. ``wholes`` are HAVING and RETURN.
    """

    def __init__(self, writer: Writer, conjuncts: Sequence[Sequence[ex.Expr]], results: Sequence[ex.Expr]) -> None:
        self.writer = writer
        self.kept_columns = _Kept(writer)
        self.numbers: dict[Crossing, int] = {}
        self.histories: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        plan = writer.plan
        for name in _kept_first(plan, results):
            self.kept_columns.place(name)
        self.never: set[int] = set()  # negations that no event can violate
        for variables in plan.automaton.groups:
            writer.add("group_variables", [plan.variables.index(v) for v in variables if v in plan.variables])
        for number, (negation, negation_conjuncts) in enumerate(zip(plan.automaton.negations, conjuncts, strict=True)):
            self._negation(number, negation, negation_conjuncts)

    def number_crossings(self, crossings: Sequence[Crossing]) -> list[int]:
        """Return the numbers of crossings, without those of negations that no event can violate."""
        numbers = []
        for crossing in crossings:
            if crossing.negation in self.never:
                continue
            if crossing not in self.numbers:
                self.numbers[crossing] = len(self.numbers)
                self.writer.put("crossing_negation", crossing.negation)
                self.writer.add("crossing_entered", crossing.entered)
            numbers.append(self.numbers[crossing])
        return numbers

    def history(self, crossings: Sequence[int], resets: Sequence[int]) -> int:
        """Return a number that identifies the crossings and resets before an event; 0 if there never are negations."""
        if not (self.writer.plan.automaton.negations or self.writer.plan.parts):
            return 0
        return self.histories.setdefault((tuple(crossings), tuple(resets)), len(self.histories))

    def _negation(self, number: int, negation: Negated, conjuncts: Sequence[ex.Expr]) -> None:
        writer, plan = self.writer, self.writer.plan
        alone: list[tuple[int, tuple[Triple, ...]]] = []
        general = []
        negation_columns = _Kept(writer)
        for expr in conjuncts:
            leaves = leaves_of(expr)
            if any(_exists_never(leaf, negation.var, plan) for leaf in leaves):
                self.never.add(number)
            elif all(isinstance(leaf, ex.Attribute) and leaf.var == negation.var for leaf in leaves):
                columns = [writer.column(leaf.name) for leaf in leaves if isinstance(leaf, ex.Attribute)]
                alone.append((writer.program(expr)[0], tuple((EVENT, c, 0) for c in columns)))
            else:
                general.append(self._conjunct(expr, negation.var, negation_columns))
        writer.put("negation_class", writer.event_class(negation.types, alone))
        budget = plan.automaton.costs.budget
        writer.put("negation_weight", -1 if negation.weight is None else min(negation.weight, budget + 1))
        writer.put("negation_since", -LIMIT if negation.since is None else min(negation.since, LIMIT - 1))
        writer.add("negation_around", negation.groups)
        writer.add("negation_columns", list(negation_columns.columns))
        writer.add("negation_conjuncts", general)

    def _conjunct(self, expr: ex.Expr, negated: str, negation_columns: _Kept) -> int:
        """Write a condition on the event and bound events, evaluated as in ``bindings._holds``; return its number."""
        writer, plan = self.writer, self.writer.plan
        leaves = leaves_of(expr)
        each_event, numbered = indexes(leaves, plan.kleene)
        loops = {var: i for i, var in enumerate(each_event)}
        refs: list[int] = []
        for leaf in leaves:
            kept_columns = negation_columns if leaf.var == negated else self.kept_columns
            refs += _ref(writer, kept_columns, leaf, CANDIDATE if leaf.var == negated else None, loops)
        writer.put("conjunct_program", writer.program(expr)[0])
        writer.add("conjunct_refs", refs)
        writer.add("conjunct_loops", [x for v, low in each_event.items() for x in (plan.variables.index(v), low)])
        min_counts = [(plan.variables.index(v), n) for v, n in numbered.items() if v != negated]
        writer.add("conjunct_least", [x for pair in min_counts for x in pair])
        return len(writer.plain["conjunct_program"]) - 1


def _kept_first(plan: Plan, results: Sequence[ex.Expr]) -> list[str]:
    """Return the columns that a query which may change keeps before those of negations: more of these may come, and
    values that are kept do not change their places."""
    if not plan.parts:
        return []
    leaves = [leaf for expr in results for leaf in leaves_of(expr) if not isinstance(leaf, ex.Length)]
    return [leaf.name for leaf in leaves if leaf.name is not None] + _order_by(plan)


def _order_by(plan: Plan) -> list[str]:
    """Return the column that is compared in place of ids, if any: the core numbers ids that are texts in another
    order."""
    identity = plan.schema.id
    texts = plan.query.output.is_sequential and identity and plan.schema.kind(identity) is Kind.STRING
    return [str(identity)] if texts else []


def write_output(
    writer: Writer, negations: Negations, having: ex.Expr | None, returns: Sequence[ex.Expr]
) -> tuple[Kind, ...]:
    """Write HAVING, RETURN and the choice of the output; return the kinds of the values of RETURN."""
    plan = writer.plan
    kinds = []
    results = ([having] if having is not None else []) + list(returns)
    for number, expr in enumerate(results):
        program, kind = writer.program(expr)
        writer.put("having" if having is not None and number == 0 else "returns", program)
        refs = [_ref(writer, negations.kept_columns, leaf, None, {}) for leaf in leaves_of(expr)]
        writer.add("whole_refs", [x for ref in refs for x in ref])
        kinds.append(kind)
    (choice,) = (number for number, outputs in enumerate(CHOICES) if plan.query.output in outputs)
    writer.put("choice", choice)
    skip = plan.query.skip
    writer.put("skip", 0 if skip is None else 1 + SKIP_PLACES.index(skip.place))
    writer.put("skip", plan.variables.index(skip.variable) if skip is not None and skip.variable else 0)
    for name in plan.variables:
        writer.put("variable_rank", sorted(plan.variables).index(name))
    for name in _order_by(plan):
        writer.put("order_by", negations.kept_columns.place(name))
    for column in negations.kept_columns.columns:
        writer.put("kept", column)
    return tuple(kinds[1:] if having is not None else kinds)


def _ref(writer: Writer, kept_columns: _Kept, leaf: ex.Leaf, var: int | None, loops: dict[str, int]) -> list[int]:
    """Return a reference as (variable, how, place, n, loop, has default, default); the default replaces a null."""
    loop, default = -1, None
    name = leaf.name if not isinstance(leaf, ex.Length) else None
    if means_each(leaf) and leaf.var in loops:
        loop = loops[leaf.var]
    n = 0
    match leaf:
        case ex.Length():
            how = LENGTH
        case ex.Attribute(index=index, name=name):
            if loop >= 0:
                steps = steps_back(index)
                if steps > 1:
                    raise NotNativeError("a condition on a negation refers to an event before the previous one")
                how = PREVIOUS if steps else EACH
            elif isinstance(index, int):
                how, n = NTH, index
            else:
                how = LAST
            if name in writer.derived and (value := writer.derived[name].compiled.run([None])) is not None:
                default = _word(value, writer)
        case ex.Aggregate(function="count"):
            how = LENGTH if leaf.name is None else COUNT
        case ex.Aggregate(function=function):
            assert leaf.name is not None
            kind = writer.kind(leaf.name)
            operations = AGGREGATES[function].completion
            if operations is None:
                raise NotNativeError(f"{function} is computed by the reference engine")
            form = {Kind.FLOAT: "float", Kind.STRING: "text"}.get(kind, "integer")
            operation, n = operations.get(form, operations["integer"])
            how = OPERATIONS[operation]
            if n == SCALE:
                n = writer.plan.schema.scale(leaf.name) or 0
    column = -1 if name is None else kept_columns.place(name)
    number = writer.plan.variables.index(leaf.var) if var is None else var
    return [number, how, column, n, loop, int(default is not None), default or 0]


def _word(value: bool | float | str, writer: Writer) -> int:
    if isinstance(value, str):
        return writer.code_of_text(value)
    return bits_of(value) if isinstance(value, float) else int(value)


def _exists_never(leaf: ex.Leaf, negated: str, plan: Plan) -> bool:
    """Return whether no such event exists: the second of the negated variable, or one of another negation."""
    if leaf.var != negated:
        return leaf.var not in plan.variables
    return isinstance(leaf, ex.Attribute) and isinstance(leaf.index, int) and leaf.index > 1

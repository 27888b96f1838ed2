"""Random clauses over small random tables: deterministic by seed, and small enough to be enumerated.

``random_case(seed)`` draws clauses until one ends soon enough; most that have no match, or end in an error, are drawn
anew. Values are few, so that conditions hold often, and floats are such that sums of them are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random

from tests.row_patterns import expressions as x
from tests.row_patterns import tree
from tests.row_patterns.enumerate import Answer, RowPatternError, TooManyStepsError, recognize
from tests.row_patterns.evaluate import Row
from tests.row_patterns.expressions import COLUMN_KINDS, Expression
from tests.row_patterns.random_expressions import ExpressionSource
from tests.row_patterns.random_patterns import Patterns
from tests.row_patterns.random_tables import random_table
from tests.row_patterns.text_of import text_of

__all__ = ["Case", "random_case"]

MAX_STEPS, MAX_STEPS_OF_LONG_CASE = 3_000, 30_000
N_ROWS = (0, 1, 2, 4, 6, 8, 10, 12, 14, 14)
N_ROWS_OF_LONG_CASE = (200, 256, 257, 300, 520)
NAMES = ("A", "B", "C", "D")
ORDERS = (
    *((tree.OrderKey("ts"),) for _ in range(8)),
    (tree.OrderKey("ts"), tree.OrderKey("x", nulls_first=True)),
    (tree.OrderKey("ts"), tree.OrderKey("y", is_descending=True, nulls_first=False)),
    (tree.OrderKey("ts", is_descending=True),),
    (tree.OrderKey("s", nulls_first=True), tree.OrderKey("ts", is_descending=True)),
    (tree.OrderKey("x"),),
    (tree.OrderKey("k"), tree.OrderKey("ts")),
    (tree.OrderKey("y", is_descending=True),),
    (),
)
PARTITIONS = ((), (), ("k",), ("k",), ("k",), ("k",), ("k", "s"), ("s",), ("x",))


@dataclass(frozen=True)
class Case:
    """A clause, its text, a table, and what the enumeration answers: the output, or the kind of an error.

    With a ``unit`` the column ``ts`` stands for times, so many seconds or minutes after 1970.
    """

    seed: int
    clause: tree.Clause
    text: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    unit: str | None
    answer: Answer | str

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each column."""
        return {name: "time" if name == "ts" and self.unit else COLUMN_KINDS[name] for name in self.columns}

    def paste(self) -> str:
        """Return the case as Python that can be pasted: the text of its clause, and its rows."""
        values = "\n".join(f"    {tuple(row.values())}," for row in self.rows)
        table = f"columns = {self.columns}\nunit = {self.unit!r}\nrows = [\n{values}\n]"
        return f"# seed {self.seed}\ntext = {self.text!r}\n{table}"


def random_case(seed: int, is_long: bool = False) -> Case:
    """Return the case of a seed; a long one has hundreds of rows."""
    max_steps = MAX_STEPS_OF_LONG_CASE if is_long else MAX_STEPS
    for attempt in count():
        rng = Random(f"{seed}/{attempt}")  # one of its own for each attempt
        columns, rows = random_table(rng, rng.choice(N_ROWS_OF_LONG_CASE if is_long else N_ROWS))
        unit = rng.choice(("SECOND", "MINUTE")) if rng.random() < 0.15 else None
        clause = random_clause(rng, unit)
        answer: Answer | str
        try:
            answer = recognize(clause, rows, columns, max_steps)
        except (TooManyStepsError, RecursionError):
            continue
        except RowPatternError as error:
            answer = error.kind
        if rng.random() < share_of(answer):
            return Case(seed, clause, text_of(clause, rng), columns, rows, unit, answer)
    raise AssertionError("attempts do not end")


def share_of(answer: Answer | str) -> float:
    """Return which share of the cases with such an answer is worth trying."""
    if isinstance(answer, str):
        return 0.8 if "unbound" in answer else 0.15
    if any(match.bindings for partition in answer.partitions for match in partition.matches):
        return 1.0
    return 0.2 if any(partition.matches for partition in answer.partitions) else 0.08


def random_clause(rng: Random, unit: str | None) -> tree.Clause:
    """Return a clause over the columns of a random table; with a unit ``ts`` stands for times."""
    rows = rng.choice((tree.ONE_ROW, tree.ONE_ROW, tree.ONE_ROW, *tree.ALL_ROWS, *tree.ALL_ROWS))
    names = rng.choice((NAMES, NAMES, NAMES, NAMES, ("UP", "DOWN", "X", "Z_1")))
    pattern = Patterns(rng, names[: rng.choice((1, 2, 2, 3, 3, 4))], rows != tree.UNMATCHED).draw_all()
    variables = tree.variables_of(pattern)
    subsets = tuple(random_subsets(rng, variables))
    readable = (*variables, *(subset.name for subset in subsets))
    order, partition = rng.choice(ORDERS), rng.choice(PARTITIONS)
    n_measures = rng.choice((1, 1, 2, 2, 2, 3, 3, 4, 4)) if rng.random() < 0.95 or not partition else 0
    may_limit = bool(order) and order[0] == tree.OrderKey("ts")
    return tree.Clause(
        pattern=pattern,
        definitions=tuple(random_definitions(ExpressionSource(rng, readable, False, unit is not None), variables)),
        measures=tuple(random_measures(ExpressionSource(rng, readable, True, unit is not None), n_measures)),
        partition=partition,
        order=order,
        rows=rows,
        skip=random_skip(rng, readable),
        subsets=subsets,
        within=tree.Within(rng.choice((0, 1, 2, 3, 4, 6)), unit) if may_limit and rng.random() < 0.2 else None,
    )


def random_subsets(rng: Random, variables: tuple[str, ...]) -> Iterator[tree.Subset]:
    """Yield no subset, one or two, which may overlap."""
    for name in ("U", "V")[: rng.choice((0, 0, 1, 2))]:
        yield tree.Subset(name, tuple(rng.sample(variables, rng.randint(1, len(variables)))))


def random_definitions(source: ExpressionSource, variables: tuple[str, ...]) -> Iterator[tree.Definition]:
    """Yield conditions for at least one of the variables."""
    rng = source.rng
    certain = rng.choice(variables)
    for name in rng.sample(variables, len(variables)):
        if name == certain or rng.random() < 0.75:
            yield tree.Definition(name, random_definition(source, name))


def random_definition(source: ExpressionSource, name: str) -> Expression:
    """Return a condition of a variable: half of them on its own row alone."""
    draw = source.rng.random()
    if draw < 0.15:
        return distance_condition(source.rng, name, source.rng.choice(source.names))
    if draw < 0.35:
        return source.condition(source.rng.choice((0, 1)), source.rng.choice((None, name)))
    if draw < 0.55:
        column = source.rng.choice("xys")
        function = source.rng.choice((x.Physical, x.Logical))
        names = ("PREV", "PREV", "NEXT") if function is x.Physical else ("LAST", "FIRST")
        variable = source.rng.choice((None, name, *source.names))
        navigation = function(source.rng.choice(names), x.Column(variable, column), source.rng.choice((None, 1, 1, 2)))
        comparison = x.Comparison(source.rng.choice(("<=", ">=", "<", ">", "=")), x.Column(name, column), navigation)
        if source.rng.random() < 0.5:
            return comparison
        return x.Junction("OR", comparison, x.IsNull(navigation))
    condition = source.condition(2)
    if source.rng.random() < 0.3:
        return x.Junction("OR", condition, x.Comparison("=", x.Column(None, "s"), x.Literal("a")))
    return condition


def distance_condition(rng: Random, name: str, other: str) -> Expression:
    """Return a condition that a row is near a row of another variable, or equal to it."""
    column, width = rng.choice((("x", x.Literal(1)), ("y", x.Literal(0.5)), ("s", None)))
    reference = rng.choice((x.Column(other, column), x.Logical("FIRST", x.Column(other, column))))
    if width is None:
        return x.Comparison("=", x.Column(name, column), reference)
    low, high = x.Arithmetic("-", reference, width), x.Arithmetic("+", reference, width)
    return rng.choice(
        (
            x.Between(x.Column(None, column), low, high),
            x.Comparison("<=", x.Arithmetic("-", x.Column(name, column), reference), width),
        )
    )


def random_measures(source: ExpressionSource, n_measures: int) -> Iterator[tree.Measure]:
    """Yield so many measures."""
    rng = source.rng
    usual = (x.Classifier(), x.MatchNumber(), x.Aggregate("count", x.Rows()), x.Logical("FIRST", x.Column(None, "ts")))
    for i in range(n_measures):
        if rng.random() < 0.25:
            yield tree.Measure(rng.choice(usual), f"m{i + 1}")
        else:
            kind = rng.choice(
                ("integer", "integer", "integer", "float", "float", "text", "text", "boolean", *source.kinds[4:])
            )
            expression = source.draw(kind)
            if expression == x.Literal(None):  # NULL alone has no type
                expression = x.IsNull(x.Column(None, "x"))
            yield tree.Measure(expression, f"m{i + 1}")


def random_skip(rng: Random, readable: tuple[str, ...]) -> tree.Skip:
    """Return where to go on; variables that cannot be the first row are likelier."""
    mode = rng.choice((*(tree.PAST_LAST,) * 6, *(tree.TO_NEXT,) * 3, *(tree.TO_FIRST,) * 4, *(tree.TO_LAST,) * 3))
    if mode in (tree.PAST_LAST, tree.TO_NEXT):
        return tree.Skip(mode)
    return tree.Skip(mode, rng.choice(readable[1:] if len(readable) > 1 else readable))

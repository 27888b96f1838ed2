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
from tests.row_patterns.text_of import text_of

__all__ = ["Case", "random_case"]

MAX_STEPS = 3_000
NAMES = ("A", "B", "C", "D")
SHORT_QUANTIFIERS = ((0, None), (1, None), (0, 1))
QUANTIFIERS = (
    *SHORT_QUANTIFIERS,
    *SHORT_QUANTIFIERS,
    (1, 1),
    (2, 2),
    (0, 2),
    (1, 2),
    (2, 3),
    (0, 3),
    (2, None),
    (3, None),
)
ORDERS = (
    *((tree.OrderKey("ts"),) for _ in range(8)),
    (tree.OrderKey("ts"), tree.OrderKey("x", nulls_first=True)),
    (tree.OrderKey("ts"), tree.OrderKey("y", is_descending=True, nulls_first=False)),
    (tree.OrderKey("ts", is_descending=True),),
    (tree.OrderKey("s", nulls_first=True), tree.OrderKey("ts", is_descending=True)),
    (tree.OrderKey("x"),),
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


def random_case(seed: int) -> Case:
    """Return the case of a seed."""
    for attempt in count():
        rng = Random(f"{seed}/{attempt}")  # one of its own for each attempt
        columns, rows = random_table(rng)
        unit = rng.choice(("SECOND", "MINUTE")) if rng.random() < 0.15 else None
        clause = random_clause(rng, unit)
        answer: Answer | str
        try:
            answer = recognize(clause, rows, columns, MAX_STEPS)
        except TooManyStepsError:
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


def random_table(rng: Random) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    """Return the names of a table's columns, and its rows."""
    columns = tuple(rng.sample(list(COLUMN_KINDS), len(COLUMN_KINDS))) if rng.random() < 0.3 else tuple(COLUMN_KINDS)
    n_rows, ts = rng.choice((0, 1, 2, 4, 6, 8, 10, 12, 14, 14)), rng.choice((0, 0, -3))
    step = rng.choice(((0, 1, 1, 2), (0, 0, 1), (1, 2, 3), (1,)))
    keys = rng.choice((("p", "q"), ("p", "p", None), ("p", "q", None)))
    has_nulls = rng.random() < 0.7
    nulls = (None,) if has_nulls else ()
    rows = []
    for _ in range(n_rows):
        ts += rng.choice(step)
        values = {
            "k": rng.choice(keys),
            "ts": ts,
            "x": rng.choice((0, 1, 1, 2, 2, 3, *nulls)),
            "y": rng.choice((0.0, 0.5, 0.5, 1.0, 1.5, *nulls)),
            "s": rng.choice(("a", "a", "b", "b", "c", *nulls)),
        }
        rows.append({name: values[name] for name in columns})
    if rng.random() < 0.3:
        rng.shuffle(rows)
    return columns, tuple(rows)


def random_clause(rng: Random, unit: str | None) -> tree.Clause:
    """Return a clause over the columns of a random table; with a unit ``ts`` stands for times."""
    rows = rng.choice((tree.ONE_ROW, tree.ONE_ROW, tree.ONE_ROW, *tree.ALL_ROWS, *tree.ALL_ROWS))
    names = rng.choice((NAMES, NAMES, NAMES, NAMES, ("UP", "DOWN", "X", "Z_1")))
    pattern = Patterns(rng, names[: rng.choice((1, 2, 2, 3, 3, 4))], rows != tree.UNMATCHED).draw_all()
    variables = tree.variables_of(pattern)
    subsets = tuple(random_subsets(rng, variables))
    readable = (*variables, *(subset.name for subset in subsets))
    order = rng.choice(ORDERS)
    may_limit = bool(order) and order[0] == tree.OrderKey("ts")
    return tree.Clause(
        pattern=pattern,
        definitions=tuple(random_definitions(ExpressionSource(rng, readable, False, unit is not None), variables)),
        measures=tuple(random_measures(ExpressionSource(rng, readable, True, unit is not None))),
        partition=rng.choice(PARTITIONS),
        order=order,
        rows=rows,
        skip=random_skip(rng, readable),
        subsets=subsets,
        within=tree.Within(rng.choice((0, 1, 2, 3, 4, 6)), unit) if may_limit and rng.random() < 0.2 else None,
    )


@dataclass
class Patterns:
    """Draws patterns over variables."""

    rng: Random
    names: tuple[str, ...]
    may_exclude: bool

    def draw_all(self) -> tree.Pattern:
        """Draw a pattern that has a variable."""
        while True:
            n_items = self.rng.choice((1, 2, 2, 3))
            items = [self.draw(2) for _ in range(n_items)]
            items = [tree.Anchor(True)] * (self.rng.random() < 0.05) + items
            items += [tree.Anchor(False)] * (self.rng.random() < 0.05)
            pattern = items[0] if len(items) == 1 else tree.Concatenation(tuple(items))
            if tree.variables_of(pattern):
                return pattern

    def draw(self, depth: int) -> tree.Pattern:
        """Draw a pattern of at most so many levels."""
        draw = self.rng.random()
        if depth == 0 or draw < 0.3:
            return self.leaf()
        if draw < 0.62:
            low, high = self.rng.choice(QUANTIFIERS)
            return tree.Quantified(self.draw(depth - 1), low, high, self.rng.random() < 0.3)
        if draw < 0.72 and self.may_exclude:
            self.may_exclude = False  # not one in another
            item = self.draw(depth - 1)
            self.may_exclude = True
            return tree.Exclusion(item)
        items = tuple(self.draw(depth - 1) for _ in range(self.rng.choice((2, 2, 3))))
        if draw < 0.78:
            return tree.Permute(items)
        return tree.Alternation(items) if draw < 0.9 else tree.Concatenation(items)

    def leaf(self) -> tree.Pattern:
        """Draw a variable, or now and then the empty pattern or an anchor."""
        draw = self.rng.random()
        if draw < 0.05:
            return tree.Empty()
        if draw < 0.07:
            return tree.Anchor(self.rng.random() < 0.5)
        return tree.Variable(self.rng.choice(self.names))


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
    if draw < 0.3:
        return source.condition(source.rng.choice((0, 1)), source.rng.choice((None, name)))
    if draw < 0.5:
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


def random_measures(source: ExpressionSource) -> Iterator[tree.Measure]:
    """Yield one to four measures."""
    rng = source.rng
    usual = (x.Classifier(), x.MatchNumber(), x.Aggregate("count", x.Rows()), x.Logical("FIRST", x.Column(None, "ts")))
    for i in range(rng.choice((1, 2, 3, 4))):
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

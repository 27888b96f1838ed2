"""A clause as SQL text, with spellings drawn at random: case, spaces, comments, optional words, quotes, parentheses.

>>> from tests.row_patterns.tree import Clause, Definition, Quantified, Variable
>>> from tests.row_patterns.expressions import Column, Comparison, Literal
>>> is_small = Comparison("<", Column("A", "x"), Literal(3))
>>> text_of(Clause(Quantified(Variable("A"), 1, None), (Definition("A", is_small),)))
'PATTERN ( A + ) DEFINE A AS A.x < 3'
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from random import Random

from tests.row_patterns import tree
from tests.row_patterns.expression_text import ExpressionWriter

__all__ = ["text_of"]

ROWS = {
    tree.ONE_ROW: ("ONE ROW PER MATCH",),
    tree.SHOW_EMPTY: ("ALL ROWS PER MATCH", "ALL ROWS PER MATCH SHOW EMPTY MATCHES"),
    tree.OMIT_EMPTY: ("ALL ROWS PER MATCH OMIT EMPTY MATCHES",),
    tree.UNMATCHED: ("ALL ROWS PER MATCH WITH UNMATCHED ROWS",),
}
DEFAULTS = (tree.ONE_ROW, tree.PAST_LAST)
OPERATORS = frozenset("<>=!+-*/{}?|^")


def text_of(clause: tree.Clause, rng: Random | None = None) -> str:
    """Return the text of a clause; without a generator always the plainest one."""
    return ClauseWriter(rng).write(clause)


def needs_gap(left: str, right: str) -> bool:
    """Say whether two tokens would become another one without a space between them."""
    ends = (left[-1], right[0])
    are_words = all(letter.isalnum() or letter in "_$.\"'" for letter in ends)
    return are_words or all(letter in OPERATORS for letter in ends)


class ClauseWriter(ExpressionWriter):
    """Writes clauses as lists of tokens."""

    def write(self, clause: tree.Clause) -> str:
        """Return the text of a clause."""
        tokens = list(self.clause(clause))
        gaps = (self.gap(needs_gap(left, right)) for left, right in pairwise(tokens))
        return "".join(chain.from_iterable(zip(tokens, (*gaps, ""), strict=True)))

    def gap(self, is_needed: bool) -> str:
        """Return what stands between two tokens."""
        if self.rng is None:
            return " "
        draw = self.rng.random()
        if draw < 0.01:
            return self.rng.choice((" /* a comment */ ", " -- a comment\n", "\t", "  \n"))
        return " " if is_needed or draw < 0.6 else ""

    def clause(self, clause: tree.Clause) -> Iterator[str]:
        """Yield the tokens of a clause."""
        if clause.partition:
            yield from self.words("PARTITION BY")
            yield from self.listing([self.column_name(name)] for name in clause.partition)
        if clause.order:
            yield from self.words("ORDER BY")
            yield from self.listing(self.order_key(key) for key in clause.order)
        if clause.measures:
            yield from self.words("MEASURES")
            yield from self.listing(self.measure(measure) for measure in clause.measures)
        if clause.rows not in DEFAULTS or self.chance(0.5):
            yield from self.words(self.choose(ROWS[clause.rows]))
        if clause.skip.mode not in DEFAULTS or self.chance(0.5):
            yield from self.skip(clause.skip)
        yield from self.words("PATTERN")
        yield from ("(", *self.pattern(clause.pattern, 0), ")")
        if clause.within is not None:
            yield from self.within(clause.within)
        if clause.subsets:
            yield from self.words("SUBSET")
            yield from self.listing(self.subset(subset) for subset in clause.subsets)
        yield from self.words("DEFINE")
        yield from self.listing(self.definition(definition) for definition in clause.definitions)

    def listing(self, items: Iterable[Iterable[str]]) -> Iterator[str]:
        """Yield the tokens of items with commas between them."""
        for i, item in enumerate(items):
            if i:
                yield ","
            yield from item

    def order_key(self, key: tree.OrderKey) -> Iterator[str]:
        """Yield the tokens of a column to order by."""
        yield self.column_name(key.name)
        if key.is_descending:
            yield from self.words("DESC")
        elif self.chance(0.3):
            yield from self.words("ASC")
        if key.nulls_first is not None:
            yield from self.words("NULLS FIRST" if key.nulls_first else "NULLS LAST")

    def measure(self, measure: tree.Measure) -> Iterator[str]:
        """Yield the tokens of a measure."""
        yield from self.expression(measure.expression)
        yield from self.words("AS")
        yield self.quoted(measure.name) if self.chance(0.1) else measure.name

    def skip(self, skip: tree.Skip) -> Iterator[str]:
        """Yield the tokens of AFTER MATCH SKIP."""
        yield from self.words("AFTER MATCH SKIP")
        if skip.variable is None:
            yield from self.words("PAST LAST ROW" if skip.mode == tree.PAST_LAST else "TO NEXT ROW")
            return
        if skip.mode == tree.TO_FIRST:
            yield from self.words("TO FIRST")
        else:
            yield from self.words(self.choose(("TO LAST", "TO")))
        yield self.variable_name(skip.variable)

    def within(self, within: tree.Within) -> Iterator[str]:
        """Yield the tokens of WITHIN."""
        yield from self.words("WITHIN")
        if within.unit is None:
            yield str(within.width)
        else:
            yield from (*self.words("INTERVAL"), f"'{within.width}'", *self.words(within.unit))

    def subset(self, subset: tree.Subset) -> Iterator[str]:
        """Yield the tokens of a subset."""
        yield from (self.variable_name(subset.name), "=", "(")
        yield from self.listing([self.variable_name(name)] for name in subset.members)
        yield ")"

    def definition(self, definition: tree.Definition) -> Iterator[str]:
        """Yield the tokens of a definition."""
        yield self.variable_name(definition.variable)
        yield from self.words("AS")
        yield from self.expression(definition.condition)

    def pattern(self, pattern: tree.Pattern, level: int) -> list[str]:
        """Return the tokens of a pattern in an alternation (0), a concatenation (1) or before a quantifier (2)."""
        match pattern:
            case tree.Alternation(items):
                tokens = self.joined(items, 1, "|")
                own_level = 0
            case tree.Concatenation(items):
                tokens = self.joined(items, 2, None)
                own_level = 1
            case tree.Quantified():
                tokens = [*self.pattern(pattern.item, 3), *self.quantifier(pattern)]
                own_level = 2
            case _:
                tokens, own_level = self.primary(pattern), 3
        return ["(", *tokens, ")"] if own_level < level or self.chance(0.04) else tokens

    def joined(self, items: tuple[tree.Pattern, ...], level: int, between: str | None) -> list[str]:
        """Return the tokens of several patterns."""
        tokens = self.pattern(items[0], level)
        for item in items[1:]:
            tokens += [between] if between else []
            tokens += self.pattern(item, level)
        return tokens

    def primary(self, pattern: tree.Pattern) -> list[str]:
        """Return the tokens of a pattern that needs no parentheses."""
        match pattern:
            case tree.Variable(name):
                return [self.quoted(name) if self.chance(0.1) else name]
            case tree.Anchor(at_start):
                return ["^" if at_start else "$"]
            case tree.Permute(items):
                return [*self.words("PERMUTE"), "(", *self.listing(self.pattern(item, 0) for item in items), ")"]
            case tree.Exclusion(item):
                return ["{-", *self.pattern(item, 0), "-}"]
            case _:
                return ["(", ")"]

    def quantifier(self, loop: tree.Quantified) -> list[str]:
        """Return the tokens of a quantifier."""
        low, high = str(loop.low), "" if loop.high is None else str(loop.high)
        spellings = [["{", low, ",", high, "}"] if high else ["{", low, ",", "}"]]
        if loop.low == 0 and high:
            spellings.append(["{", ",", high, "}"])
        if low == high:
            spellings.append(["{", low, "}"])
        short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((loop.low, loop.high))
        if short:
            spellings = [[short], [short], *spellings]
        tokens = list(self.choose(spellings))
        if loop.is_reluctant:
            tokens[-1] += "?"
        return tokens

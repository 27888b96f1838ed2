"""What a random case has, by name: the clauses, quantifiers, navigations, modes and skips, and what became of them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.row_patterns import expressions as x
from tests.row_patterns import tree
from tests.row_patterns.enumerate import Answer, Partition
from tests.row_patterns.random_cases import Case

__all__ = ["has_rows", "kinds_of_case"]

QUANTIFIER_NAMES = {(0, None): "*", (1, None): "+", (0, 1): "?"}


def has_rows(case: Case) -> bool:
    """Say whether a case has a match that is not empty."""
    return isinstance(case.answer, Answer) and any(
        match.bindings for partition in case.answer.partitions for match in partition.matches
    )


def kinds_of_case(case: Case) -> set[str]:
    """Return the kinds of things that a case has."""
    clause = case.clause
    kinds = {f"rows: {clause.rows}", f"skip: {clause.skip.mode}", *kinds_of_clauses(case)}
    kinds |= set(kinds_of_pattern(clause.pattern))
    for definition in clause.definitions:
        kinds |= {f"DEFINE {kind}" for kind in kinds_of_expression(definition.condition)}
    for measure in clause.measures:
        kinds |= {f"MEASURES {kind}" for kind in kinds_of_expression(measure.expression)}
    if isinstance(case.answer, Answer):
        for partition in case.answer.partitions:
            kinds |= set(kinds_of_partition(clause, partition))
    else:
        kinds.add(f"error: {case.answer}")
    return kinds


def kinds_of_clauses(case: Case) -> Iterator[str]:
    """Yield which clauses there are, and how they are made."""
    clause = case.clause
    variables = tree.variables_of(clause.pattern)
    yield f"{min(len(clause.partition), 2)} partition columns"
    yield f"{min(len(clause.order), 2)} order keys"
    yield f"{len(clause.subsets)} subsets"
    if any(key.is_descending for key in clause.order):
        yield "descending"
    if any(key.nulls_first for key in clause.order):
        yield "nulls first"
    if len(clause.definitions) < len(variables):
        yield "variable without definition"
    if clause.skip.variable is not None and clause.skip.variable not in variables:
        yield "skip to a subset"
    if clause.within is not None:
        yield "within a time" if clause.within.unit else "within a number"
    if not case.rows:
        yield "no rows"


def kinds_of_pattern(pattern: tree.Pattern) -> Iterator[str]:
    """Yield what a pattern has, itself included."""
    match pattern:
        case tree.Quantified(item, low, high, is_reluctant):
            name = QUANTIFIER_NAMES.get((low, high)) or f"{{{'n' if low else ''},{'m' if high else ''}}}"
            name = "{n}" if low == high else name
            yield f"quantifier {name}{'?' if is_reluctant else ''}"
            if isinstance(item, tree.Quantified):
                yield "quantifier of a quantifier"
            if matches_nothing(item):
                yield "loop whose iterations may be empty"
        case tree.Anchor(at_start):
            yield "anchor at the start" if at_start else "anchor at the end"
        case _:
            yield type(pattern).__name__.lower()
    match pattern:
        case tree.Concatenation(items) | tree.Alternation(items) | tree.Permute(items):
            for item in items:
                yield from kinds_of_pattern(item)
        case tree.Quantified(item=item) | tree.Exclusion(item):
            yield from kinds_of_pattern(item)


def matches_nothing(pattern: tree.Pattern) -> bool:
    """Say whether a pattern can match without a row."""
    match pattern:
        case tree.Variable():
            return False
        case tree.Concatenation(items) | tree.Permute(items):
            return all(map(matches_nothing, items))
        case tree.Alternation(items):
            return any(map(matches_nothing, items))
        case tree.Quantified(item, low):
            return low == 0 or matches_nothing(item)
        case tree.Exclusion(item):
            return matches_nothing(item)
    return True


def kinds_of_expression(expression: x.Expression) -> Iterator[str]:
    """Yield what an expression has."""
    for part in x.walk(expression):
        match part:
            case x.Logical(function, argument, offset, semantics):
                yield f"{semantics} {function}".removeprefix("None ")
                if offset:
                    yield f"{function} with an offset"
                if not isinstance(argument, x.Column):
                    yield f"{function} of an expression"
            case x.Physical(function, argument, offset):
                yield f"{function} of a navigation" if isinstance(argument, x.Logical) else function
                if offset is not None:
                    yield f"{function} with an offset"
            case x.Aggregate(function, argument, is_distinct, semantics):
                yield f"{semantics} {function}".removeprefix("None ")
                if is_distinct:
                    yield f"{function} DISTINCT"
                if isinstance(argument, x.Rows):
                    yield "count of *" if argument.variable is None else "count of A.*"
            case x.Classifier(variable):
                yield "CLASSIFIER" if variable is None else "CLASSIFIER of a variable"
            case x.Column(variable):
                yield "column" if variable is None else "column of a variable"
            case _:
                yield type(part).__name__.lower()


def kinds_of_partition(clause: tree.Clause, partition: Partition) -> Iterator[str]:
    """Yield what became of a partition."""
    if None in partition.key:
        yield "partition of null"
    keys = [tuple(row[key.name] for key in clause.order) for row in partition.rows]
    if clause.order and len(set(keys)) < len(keys):
        yield "ties"
    if len(partition.matches) > 1:
        yield "several matches"
    if any(not match.bindings for match in partition.matches):
        yield "empty match"
    if clause.rows in tree.ALL_ROWS and any(row.is_excluded for match in partition.matches for row in match.bindings):
        yield "rows left out"
    if clause.rows == tree.UNMATCHED and len({*covered_rows(partition)}) < len(partition.rows):
        yield "unmatched rows"
    if len([*covered_rows(partition)]) > len({*covered_rows(partition)}):
        yield "rows in several matches"


def covered_rows(partition: Partition) -> Iterator[int]:
    """Yield the rows of the matches, and those at which an empty match starts."""
    for match in partition.matches:
        yield from range(match.first, match.first + max(1, len(match.bindings)))

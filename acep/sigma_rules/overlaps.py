"""Say which rules one event may fulfil at once, and in which ways rules may share events."""

from __future__ import annotations

from collections.abc import Sequence

from acep.functions.like_patterns import compile_like
from acep.pattern import expressions as ex
from acep.pattern.spelling import expression_text
from acep.sigma_rules.refusals import refusal

__all__ = ["are_disjoint", "ways_to_share"]

MOST_WAYS = 60


def are_disjoint(first: Sequence[ex.Expr], second: Sequence[ex.Expr]) -> bool:
    """Return whether no event fulfils two lists of conditions on one variable, as far as single values show it.

    ``False``: there may be such an event.
    """
    values_of_first, values_of_second = _values_by_operand(first), _values_by_operand(second)
    return any(
        not any(_may_both_hold(value, other) for value in values for other in other_values)
        for operand, lists in values_of_first.items()
        for values in lists
        for other_values in values_of_second.get(operand, ())
    )


def _values_by_operand(conditions: Sequence[ex.Expr]) -> dict[str, list[list[ex.Expr]]]:
    """Return by the text of an operand what it must be: lists of constants and patterns, one of each list."""
    lists = dict[str, list[list[ex.Expr]]]()
    for condition in conditions:
        options = _options(condition)
        operands = {expression_text(operand) for operand, _ in options}
        if len(operands) == 1:
            lists.setdefault(operands.pop(), []).append([value for _, value in options])
    return lists


def _options(condition: ex.Expr) -> list[tuple[ex.Expr, ex.Expr]]:
    """Return the operands and values one of which a condition asks for, or nothing where it asks for something else."""
    match condition:
        case ex.Binary(op="=", left=operand, right=ex.Literal() as value):
            return [(operand, value)]
        case ex.In(operand=operand, values=values, negated=False):
            return [(operand, value) for value in values]
        case ex.Like(operand=operand, negated=False):
            return [(operand, condition)]
        case ex.Binary(op="or", left=left, right=right):
            first, second = _options(left), _options(right)
            return first + second if first and second else []
    return []


def _may_both_hold(value: ex.Expr, other: ex.Expr) -> bool:
    match value, other:
        case ex.Literal(value=constant), ex.Literal(value=other_constant):
            return constant == other_constant
        case ex.Literal(value=str() as text), ex.Like(pattern=pattern):
            return compile_like(pattern)(text)
        case ex.Like(pattern=pattern), ex.Literal(value=str() as text):
            return compile_like(pattern)(text)
        case ex.Like(pattern=pattern), ex.Like(pattern=other_pattern):
            (begin, end), (other_begin, other_end) = _ends(pattern), _ends(other_pattern)
            begins = begin.startswith(other_begin) or other_begin.startswith(begin)
            return begins and (end.endswith(other_end) or other_end.endswith(end))
    return True


def _ends(pattern: str) -> tuple[str, str]:
    r"""Return the plain texts with which each text of a pattern of LIKE begins and ends.

    >>> _ends(r"a\_b%c_d"), _ends(r"%\%")
    (('a_b', 'd'), ('', '%'))
    """
    plain_texts, text, is_escaped = list[str](), "", False
    for sign in pattern:
        if is_escaped or sign not in "\\%_":
            text, is_escaped = text + sign, False
        elif sign == "\\":
            is_escaped = True
        else:
            plain_texts.append(text)
            text = ""
    return (plain_texts or [text])[0], text


def ways_to_share(n_rules: int, may_share: Sequence[tuple[int, int]]) -> list[list[tuple[int, ...]]]:
    """Return the ways in which events may fulfil all of some rules: the rules of each event, which only those share
    that may. The first way is an event for each rule.

    Raises :class:`QueryError` if there are too many ways.

    >>> ways_to_share(3, [(0, 1)])
    [[(0,), (1,), (2,)], [(0, 1), (2,)]]
    """
    pairs = {frozenset(pair) for pair in may_share}
    ways: list[list[tuple[int, ...]]] = [[]]
    for rule in range(n_rules):
        longer = [[*way, (rule,)] for way in ways]
        for way in ways:
            for place, group in enumerate(way):
                if all(frozenset((rule, other)) in pairs for other in group):
                    longer.append([*way[:place], (*group, rule), *way[place + 1 :]])
        ways = longer
        if len(ways) > MOST_WAYS:
            raise refusal(
                "one event may fulfil several of its rules, in too many ways",
                "write fewer rules, or rules that ask one field for different values",
            )
    return ways

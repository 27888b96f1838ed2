"""Find which variables of a row pattern may have rows before those of another one."""

from __future__ import annotations

from acep.pattern.sql.clause_tree import (
    Alternation,
    Concatenation,
    Exclusion,
    Permutation,
    Quantified,
    RowPattern,
    RowVariable,
    variables_of,
)

__all__ = ["earlier_variables"]


def earlier_variables(pattern: RowPattern) -> dict[str, frozenset[str]]:
    """Return by variable those that may have rows before a row of it, all in lower case.

    >>> from acep.pattern.expressions import Span
    >>> a, b = RowVariable("A", Span(0, 1)), RowVariable("B", Span(2, 3))
    >>> {name: sorted(earlier) for name, earlier in earlier_variables(Concatenation((a, b))).items()}
    {'a': [], 'b': ['a']}
    >>> loop = Quantified(Concatenation((a, b)), 1, None)
    >>> {name: sorted(earlier) for name, earlier in earlier_variables(loop).items()}
    {'a': ['a', 'b'], 'b': ['a', 'b']}
    """
    earlier: dict[str, frozenset[str]] = {}
    _add_earlier(pattern, frozenset(), earlier)
    return earlier


def _add_earlier(pattern: RowPattern, before: frozenset[str], earlier: dict[str, frozenset[str]]) -> None:
    """Add to ``earlier`` what is before each variable of a part, before which ``before`` may have rows."""
    match pattern:
        case RowVariable(name=name):
            earlier[name.casefold()] = earlier.get(name.casefold(), frozenset()) | before
        case Concatenation(items=items):
            for item in items:
                _add_earlier(item, before, earlier)
                before |= _names(item)
        case Alternation(items=items):
            for item in items:
                _add_earlier(item, before, earlier)
        case Permutation(items=items):
            for place, item in enumerate(items):
                beside = (part for number, part in enumerate(items) if number != place)
                _add_earlier(item, before.union(*map(_names, beside)), earlier)
        case Quantified(item=item, high=high):
            may_repeat = high is None or high > 1
            _add_earlier(item, before | _names(item) if may_repeat else before, earlier)
        case Exclusion(item=item):
            _add_earlier(item, before, earlier)


def _names(pattern: RowPattern) -> frozenset[str]:
    return frozenset(variable.name.casefold() for variable in variables_of(pattern))

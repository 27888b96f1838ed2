"""Count what the changes that a hint proposes do to the matches of the events, and say it in the hint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from acep.errors import AcepError
from acep.linting.tried_matches import match_number
from acep.linting.view import LintView
from acep.pattern.tree import Query
from acep.plan.compile import compile_query

__all__ = ["numbers_text", "query_number", "with_numbers"]

TOO_MANY = "too many to count"


def query_number(view: LintView, query: Query) -> int | None:
    """Return the number of matches of a changed query; ``None`` where it cannot run on these events, or where counting
    takes too long."""
    try:
        return match_number(compile_query(query, view.without_ids.schema), view.batch)
    except AcepError:
        return None


def with_numbers(view: LintView, hint: str, changes: Iterable[tuple[str, Query]]) -> str:
    """Return a hint with the numbers of matches of the query as it is and of the changes that the hint proposes, by
    their names."""
    return f"{hint}{numbers_text(view, {name: query_number(view, query) for name, query in changes})}"


def numbers_text(view: LintView, numbers: Mapping[str, int | None]) -> str:
    """Return the end of a hint with the numbers of matches after each change, beside that of the query as it is;
    nothing where none could be counted."""
    if not len(view) or all(number is None for number in numbers.values()):
        return ""
    as_it_is = "more matches than are counted" if view.n_matches is None else _count(view.n_matches)
    changed = [f"{TOO_MANY if number is None else f'{number:,}'} with {name}" for name, number in numbers.items()]
    return f" ({as_it_is} as it is, {', '.join(changed)})"


def _count(number: int) -> str:
    return f"{number:,} match{'' if number == 1 else 'es'}"

"""Find what a query says of its matches otherwise than it seems: by equalities, contiguity and its error budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace

from acep.errors import QueryError
from acep.explain.partition_meaning import meaning_without, with_partition
from acep.linting.changed_matches import with_numbers
from acep.linting.report import Hit
from acep.linting.tried_matches import match_number
from acep.linting.view import LintView
from acep.matches.records import Found
from acep.pattern import expressions as ex
from acep.pattern.closure import as_equality, equality_classes, tied_attributes
from acep.pattern.printing import expression_text
from acep.pattern.tree import Query, Strategy
from acep.pattern.walk import min_bound_counts, negated_variables, variables, variables_in
from acep.plan.compile import compile_query
from acep.plan.lint.changes import with_infinite_weights
from acep.plan.lint.finding import ANOTHER

__all__ = ["condition_unasked", "equality_no_partition", "errors_lack", "strict_over_all"]

WARNED_SHARE = 0.5  # share of the matches that lack an event, from which on it is a warning
LISTED = 3  # variables and conditions that are named
OFTEN = 0.05  # share of the matches that lack a variable, from which on a hint names it


def equality_no_partition(view: LintView) -> Iterator[Hit]:
    """Find equalities that tie all events of a match but make no partition, where a partition has other matches."""
    query, plan = view.plan.query, view.without_ids
    if query.strategy is Strategy.STRICT_CONTIGUITY or not plan.tied:
        return
    if not (query.output.is_sequential or query.strategy.contiguous or plan.window.counted):
        return
    number = view.n_matches
    if number is None:
        return
    for name in tied_attributes(query):
        condition = _equality_of(query, name)
        try:
            parted = match_number(compile_query(replace(query, ties=(*query.ties, name)), plan.schema), view.batch)
        except QueryError:  # what an attribute may be compared with, but not be parted by
            continue
        if condition is None or parted is None or parted == number:
            continue
        yield Hit(
            "note",
            f"`{expression_text(condition)}` makes no partition: {meaning_without(query, name)}. "
            f"That gives {_count(number)}; with {with_partition(query, name)}, there would be {parted:,}",
            f"leave it as it is, or write [{name}] if the other question is meant",
            condition.span,
        )


def strict_over_all(view: LintView) -> Iterator[Hit]:
    """Find strict contiguity with partition attributes where partition contiguity has other matches."""
    query, plan = view.plan.query, view.without_ids
    if query.strategy is not Strategy.STRICT_CONTIGUITY or not plan.keys:
        return
    number = view.n_matches
    looser = replace(query, strategy=Strategy.PARTITION_CONTIGUITY)
    parted = None if number is None else match_number(compile_query(looser, plan.schema), view.batch)
    if number is None or parted is None or parted == number:
        return
    name = ", ".join(plan.keys)
    yield Hit(
        "note",
        f"strict contiguity looks at the whole stream: {meaning_without(query, name)}. That gives {_count(number)}; "
        f"with partition contiguity, which ignores events of another `{name}` in between, there would be {parted:,}",
        "leave it as it is, or write partition_contiguity if the other question is meant",
    )


def _equality_of(query: Query, name: str) -> ex.Expr | None:
    """Return the first equality of an attribute in the text."""
    for condition in query.where:
        match as_equality(condition):
            case ex.Binary(left=ex.Attribute(name=left), right=ex.Attribute(name=right)) if left == right == name:
                return condition
    return None


def errors_lack(view: LintView) -> Iterator[Hit]:
    """Find the events that matches lack, where an error budget lets them."""
    query, matches = view.plan.query, view.tried.matches
    if not query.errors or not matches:
        return
    needed = min_bound_counts(query.pattern)
    lacking = Counter(var for match in matches for var, number in needed.items() if _number(match, var) < number)
    if not lacking:
        return
    share = max(lacking.values()) / len(matches)
    parts = [
        f"{_share(count, len(matches))} {'lack' if needed[var] == 1 else f'have fewer than {needed[var]} of'} `{var}`"
        for var, count in lacking.most_common(LISTED)
    ]
    often = _is_frequent(lacking, len(matches))
    yield Hit(
        "warning" if share >= WARNED_SHARE else "note",
        f"with errors={float(query.errors):g}, of {_matches(view)} {', '.join(parts)}",
        with_numbers(
            view,
            f"what must be there has an infinite weight, as in {_infinite(often)}: {ANOTHER}",
            [("these weights", with_infinite_weights(query, often))],
        ),
        view.place(lacking.most_common(1)[0][0]),
    )


def condition_unasked(view: LintView) -> Iterator[Hit]:
    """Find conditions that are not asked of many matches, as an event that they speak of is missing. Of equalities that
    tie more events, those of the others are asked all the same."""
    query, matches = view.plan.query, view.tried.matches
    if not query.errors or not matches:
        return
    needed, negated = min_bound_counts(query.pattern), negated_variables(query.pattern)
    order = variables(query.pattern)
    for condition in query.where:
        names = variables_in(condition)
        missing_of = [[var for var in names if needed.get(var) and not _number(match, var)] for match in matches]
        absent = Counter(var for missing in missing_of for var in missing)
        unasked = sum(map(bool, missing_of))
        if len(names) < 2 or not absent or _ties_more(query, condition, names):
            continue
        lacking = sorted(absent, key=order.index)
        missing = " or ".join(f"`{var}`" for var in lacking)
        shares = ", ".join(f"{_share(absent[var], len(matches))} lack `{var}`" for var in lacking)
        what = next((f"the negation `{var}` cannot be broken" for var in names if var in negated), "")
        yield Hit(
            "note",
            f"`{expression_text(condition)}` is not asked where {missing} is missing"
            f"{f', so that {what} there' if what else ''}: in {_share(unasked, len(matches))} of "
            f"{_matches(view)}{f' ({shares})' if len(lacking) > 1 else ''}",
            with_numbers(
                view,
                f"a condition that must hold needs its events, as by {_infinite(lacking)}: {ANOTHER}",
                [("these weights", with_infinite_weights(query, lacking))],
            ),
            condition.span,
        )


def _ties_more(query: Query, condition: ex.Expr, names: Collection[str]) -> bool:
    """Return whether a condition is one of the equalities that tie more bound events than it speaks of."""
    equality = as_equality(condition)
    bound = {*variables(query.pattern)} - negated_variables(query.pattern)
    if equality is None or not set(names) <= bound:
        return False
    match equality:
        case ex.Binary(left=ex.Attribute(var=var, name=name), right=ex.Attribute()):
            classes = equality_classes(query, among=bound)
            members = [{(m.var, m.name) for m in group.members if isinstance(m, ex.Attribute)} for group in classes]
            return any(
                (var, name) in pairs and len({member_var for member_var, _ in pairs}) > len(names) for pairs in members
            )
    return False


def _is_frequent(lacking: Counter[str], total: int) -> list[str]:
    """Return the variables that many matches lack, or else the one that most do, in the order of the message.

    >>> _is_frequent(Counter(a=51, b=49, c=1), 100), _is_frequent(Counter(a=2, c=1), 100)
    (['a', 'b'], ['a'])
    """
    return [var for var, count in lacking.most_common(LISTED) if count >= OFTEN * total] or [
        max(lacking, key=lacking.__getitem__)
    ]


def _infinite(names: Collection[str]) -> str:
    """Return the option that lets none of some variables be missing.

    >>> _infinite(["n", "p"])
    'weights={"n": math.inf, "p": math.inf}'
    """
    weights = ", ".join(f'"{var}": math.inf' for var in names)
    return f"weights={{{weights}}}"


def _number(match: Found, var: str) -> int:
    """Return the number of events that a match binds to a variable."""
    return next((len(ids) for name, ids in match.bindings if name == var), 0)


def _matches(view: LintView) -> str:
    number = len(view.tried.matches)
    return _count(number) if view.tried.is_all else f"the first {number:,} matches"


def _count(number: int) -> str:
    return f"{number:,} match{'' if number == 1 else 'es'}"


def _share(part: int, total: int) -> str:
    """Return a share in percent, of which a small part of nothing is not 0, nor a large one all.

    >>> _share(1, 1000), _share(999, 1000), _share(1, 3)
    ('less than 1%', 'more than 99%', '33%')
    """
    if 0 < part < total / 100:
        return "less than 1%"
    return "more than 99%" if total > part > total * 0.99 else f"{part / total:.0%}"

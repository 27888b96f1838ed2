"""Find conditions that are never or always true of the events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from acep.linting.report import Hit
from acep.linting.view import LintView
from acep.pattern import expressions as ex
from acep.pattern.evaluation import Compiled
from acep.pattern.printing import expression_text
from acep.pattern.walk import kleene_variables, negated_variables
from acep.plan.lint.finding import ANOTHER
from acep.tables.absent_inputs import lacking_types

__all__ = ["predicate_always", "predicate_never"]

MAX_EVENTS = 20_000  # events that conditions are tried on
PAIRS = 5  # events before another one that it is paired with
FEW = 50  # tries below which nothing is said


def predicate_never(view: LintView) -> Iterator[Hit]:
    """Find conditions on one event, or on two, that are never true."""
    for compiled, tried, true in _try_conditions(view):
        if true or tried < FEW:
            continue
        names = list(dict.fromkeys(leaf.var for leaf in compiled.leaves))
        subject = (
            f"events that `{names[0]}` can bind" if len(names) == 1 else "pairs of events of a key within the window"
        )
        text = f"`{expression_text(compiled.written)}` is true of none of {tried:,} {subject}"
        needed = len(names) == 1 and _is_needed(view, names[0]) and not view.plan.query.errors
        severity = "error" if needed and tried == int(view.of_variable(names[0]).sum()) else "warning"
        if len(names) > 1 and _has_equality(compiled.written):
            continue  # equal values may be rare
        yield Hit(severity, text, "check the value, the unit and the attribute", compiled.written.span)


def predicate_always(view: LintView) -> Iterator[Hit]:
    """Find conditions on one event that are always true."""
    for compiled, tried, true in _try_conditions(view):
        names = {leaf.var for leaf in compiled.leaves}
        if (
            len(names) == 1
            and tried >= FEW
            and true == tried
            and not names & negated_variables(view.plan.query.pattern)
        ):
            var, condition = min(names), expression_text(compiled.written)
            if tried == view.of_variable(var).sum():
                text = f"`{condition}` is true of all {tried:,} events that `{var}` can bind: it filters nothing"
                hint = "check the value and the unit, or leave it out: of these events it changes no match"
            else:
                text = f"`{condition}` is true of the first {tried:,} events that `{var}` can bind"
                hint = f"check the value and the unit; to leave it out may give other matches: {ANOTHER}"
            yield Hit(
                "note",
                text,
                hint,
                compiled.written.span,
            )


def _try_conditions(view: LintView) -> Iterator[tuple[Compiled, int, int]]:
    """Yield each condition of the query on plain attributes of one or two variables, with the tries on events of the
    stream, and how many of them were true."""
    kleene = kleene_variables(view.plan.query.pattern)
    for compiled in (
        *view.plan.predicates,
        *(condition for conditions in view.plan.negated for condition in conditions),
    ):
        if compiled.written.span is None or not compiled.leaves or compiled.written not in view.plan.query.where:
            continue
        names = list(dict.fromkeys(leaf.var for leaf in compiled.leaves))
        plain = all(_is_plain(leaf) for leaf in compiled.leaves)
        if not plain or len(names) > 2 or (len(names) == 2 and set(names) & kleene):
            continue
        if len(names) == 1:
            yield compiled, *_on_events(view, compiled, names[0])
        else:
            yield compiled, *_on_pairs(view, compiled, names)


def _on_events(view: LintView, compiled: Compiled, var: str) -> tuple[int, int]:
    rows = np.flatnonzero(view.of_variable(var))[:MAX_EVENTS]
    values = [_values(view, leaf, rows) for leaf in compiled.leaves]
    return len(rows), sum(compiled.run(row_values) is True for row_values in zip(*values, strict=True))


def _on_pairs(view: LintView, compiled: Compiled, names: list[str]) -> tuple[int, int]:
    """Try pairs of two events of a partition within the window, each before the other once."""
    is_first, is_second = (view.of_variable(name) & (view.partitions >= 0) for name in names)
    candidates = np.flatnonzero(is_first | is_second)
    candidates = candidates[np.argsort(view.partitions[candidates], kind="stable")][:MAX_EVENTS]
    pairs = []
    for step in range(1, PAIRS + 1):
        first, last = candidates[:-step], candidates[step:]
        near = view.partitions[first] == view.partitions[last]
        window = view.plan.window
        if window.span is not None and not window.counted:
            near &= view.batch.ts[last] - view.batch.ts[first] <= window.span
        pairs += [(first[near], last[near]), (last[near], first[near])]
    left = np.concatenate([pair[0] for pair in pairs]) if pairs else candidates[:0]
    right = np.concatenate([pair[1] for pair in pairs]) if pairs else candidates[:0]
    fits = is_first[left] & is_second[right]
    rows = {names[0]: left[fits], names[1]: right[fits]}
    values = [_values(view, leaf, rows[leaf.var]) for leaf in compiled.leaves]
    true = sum(compiled.run(row_values) is True for row_values in zip(*values, strict=True))
    return len(rows[names[0]]), true


def _values(view: LintView, leaf: Any, rows: Any) -> list[Any]:
    return view.column(leaf.name).take(rows).to_list()


def _is_plain(leaf: ex.Leaf) -> bool:
    return isinstance(leaf, ex.Attribute) and leaf.index in (None, "i")


def _is_needed(view: LintView, var: str) -> bool:
    """Return whether no match can be without a variable."""
    pattern = view.plan.query.pattern
    types = {name for part in view.parts if part.var == var for name in part.types}
    return (
        bool(types)
        and any(name in types for name in lacking_types(pattern, types))
        and _has_types_alone(view, var, types)
    )


def _has_types_alone(view: LintView, var: str, types: set[str]) -> bool:
    """Return whether no other variable has these types."""
    return not any(types & set(part.types) for part in view.parts if part.var != var)


def _has_equality(expr: ex.Expr) -> bool:
    from acep.pattern.walk import children, levels

    return any(isinstance(inner, ex.Binary) and inner.op == "=" for inner, _ in levels(expr, children))

"""Warn of constructs that prevent the distribution of a query, or delay its matches."""

from __future__ import annotations

from collections.abc import Iterator

from acep.pattern.closure import equality_classes, tied_attributes
from acep.pattern.expressions import Attribute, Binary
from acep.pattern.printing import expression_text
from acep.pattern.tree import Strategy
from acep.pattern.walk import group_variables, negated_variables, variables
from acep.plan.lint.changes import with_condition, with_half_window
from acep.plan.lint.finding import ANOTHER, EACH_ANOTHER, ChangedQuery, QueryView, Remark

__all__ = ["composed", "leading_negation", "nearly_partitioned", "no_partition", "one_order", "trailing_negation"]


def no_partition(view: QueryView) -> Iterator[Remark]:
    """Warn of a missing partition attribute: each event meets all partial matches, on Spark all in one bucket."""
    plan = view.plan
    if plan.keys or plan.strict or plan.finer is not None or len(plan.automaton.letters) < 2:
        return
    yield Remark(
        "no attribute ties the events of a match together: the stream is one partition, on Spark one bucket, and every "
        "event meets the partial matches of all others",
        "`acep tune` tries what all events of a match have in common, and counts the matches of both queries",
    )


def one_order(view: QueryView) -> Iterator[Remark]:
    """Warn of strict contiguity, for which the order of the whole stream matters."""
    if not view.plan.strict:
        return
    strict = view.query.strategy is Strategy.STRICT_CONTIGUITY
    what = "strict contiguity" if strict else "partition contiguity without a partition attribute is strict: it"
    yield Remark(
        f"{what} looks at the order of the whole stream, which cannot be split over buckets",
        "leave it as it is where any event between two others is to break a match: no query that can be split can",
    )


def nearly_partitioned(view: QueryView) -> Iterator[Remark]:
    """Warn of an attribute that is equal in most variables, but not in all, so events of other values are looked at."""
    query = view.query
    all_variables, negated = set(variables(query.pattern)), negated_variables(query.pattern)
    tied, grouped = (*query.ties, *tied_attributes(query)), group_variables(query.pattern)
    for group in equality_classes(query):
        members = [m for m in group.members if isinstance(m, Attribute)]
        for name in dict.fromkeys(m.name for m in members if m.name not in tied):
            present = {m.var for m in members if m.name == name}
            full = {m.var for m in members if m.name == name and m.index is None and m.var not in grouped}
            missing = [v for v in variables(query.pattern) if v not in full]
            if not missing or len(all_variables) < 2 or not all_variables - negated <= present:
                continue
            var, added = missing[0], None
            other = next(v for v in all_variables if v != var and v in present)
            if var not in present:
                added = Attribute(var, None, name)
                why = f"`{name}` ties every variable but the negated `{var}`"
                hint = f"if only events of the same `{name}` are to break it, say so"
            elif var in grouped:
                why = f"`{name}` ties `{var}` only within an iteration of its group"
                hint = f"as it stands, iterations may differ in `{name}`; leave it if that is meant"
            else:
                why = f"`{name}` ties only one event of `{var}`"
                hint = f"if each event of `{var}` is to have that `{name}`, say so"
                added = Attribute(var, "i", name)
            changes = tuple[ChangedQuery, ...]()
            if added is not None:
                equality = Binary("=", added, Attribute(other, None, name))
                text = expression_text(equality)
                hint, changes = (
                    f"{hint}, as in {text}: {ANOTHER}",
                    (ChangedQuery(text, with_condition(query, equality)),),
                )
            yield Remark(f"{why}: events of every `{name}` are looked at", hint, view.place(var), changes)


def leading_negation(view: QueryView) -> Iterator[Remark]:
    """Warn of a negation before the first component, which looks back over a whole window."""
    for negation in view.plan.automaton.negations:
        if negation.leading:
            yield Remark(
                f"the negation of `{negation.var}` stands before everything: its events are kept for a whole window, "
                "and looked at again for each match",
                f"if only what comes after the first event counts, put the negation behind it: {ANOTHER}",
                view.place(negation.var),
            )


def trailing_negation(view: QueryView) -> Iterator[Remark]:
    """Warn of a negation after the last component, which is decided only when the window has passed."""
    for negation in view.plan.automaton.negations:
        if negation.trailing:
            yield Remark(
                f"the negation of `{negation.var}` stands after everything: each match waits until its window has "
                "passed",
                f"make the window as short as the question allows: unless no match is longer, {ANOTHER}",
                view.place(negation.var),
                with_half_window(view.query),
            )


def composed(view: QueryView) -> Iterator[Remark]:
    """Warn of a query over matches of other queries, which waits until those are certain."""
    if view.query.sources:
        yield Remark(
            "the matches of the inner queries are held back until no earlier one can come, and only then looked at; on "
            "Spark all of it is in one bucket",
            f"keep the windows of inner queries short; if one query can say it, write one: unless it means the same, "
            f"{EACH_ANOTHER}",
        )

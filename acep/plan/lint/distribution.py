"""Warn of constructs that prevent the distribution of a query, or delay its matches."""

from __future__ import annotations

from collections.abc import Iterator

from acep.pattern.closure import equality_classes, partition_attributes
from acep.pattern.expressions import Attribute
from acep.pattern.tree import Strategy
from acep.pattern.walk import group_variables, negated_variables, variables
from acep.plan.lint.finding import Looked, Remark

__all__ = ["composed", "leading_negation", "nearly_partitioned", "no_partition", "one_order", "trailing_negation"]


def no_partition(looked: Looked) -> Iterator[Remark]:
    """Warn of a missing partition attribute: each event meets all partial matches, on Spark all in one bucket."""
    plan = looked.plan
    if plan.keys or plan.strict or len(plan.automaton.letters) < 2:
        return
    yield Remark(
        "no attribute ties the events of a match together: the stream is one partition, on Spark one bucket, and every "
        "event meets the partial matches of all others",
        "if a match is about one thing, say so: [user]",
    )


def one_order(looked: Looked) -> Iterator[Remark]:
    """Warn of strict contiguity, for which the order of the whole stream matters."""
    if not looked.plan.strict:
        return
    strict = looked.query.strategy is Strategy.STRICT_CONTIGUITY
    what = "strict contiguity" if strict else "partition contiguity without a partition attribute is strict: it"
    yield Remark(
        f"{what} looks at the order of the whole stream, which cannot be split over buckets",
        "use partition contiguity with what a match is about: partition_contiguity { [user] }",
    )


def nearly_partitioned(looked: Looked) -> Iterator[Remark]:
    """Warn of an attribute that is equal in most variables, but not in all, so it does not partition the stream."""
    query = looked.query
    every, negated = set(variables(query.pattern)), negated_variables(query.pattern)
    known, grouped = partition_attributes(query), group_variables(query.pattern)
    for group in equality_classes(query):
        members = [m for m in group.members if isinstance(m, Attribute)]
        for name in dict.fromkeys(m.name for m in members if m.name not in known):
            present = {m.var for m in members if m.name == name}
            full = {m.var for m in members if m.name == name and m.index is None and m.var not in grouped}
            missing = [v for v in variables(query.pattern) if v not in full]
            if not missing or len(every) < 2 or not every - negated <= present:
                continue
            var = missing[0]
            if var not in present:
                why = f"`{name}` ties every variable but the negated `{var}`"
            elif var in grouped:
                why = f"`{name}` ties `{var}` only within an iteration of its group"
            else:
                why = f"`{name}` ties only one event of `{var}`"
            yield Remark(
                f"{why}: it does not partition the stream",
                f"if all events of a match have one `{name}`, say so: [{name}]",
                looked.place(var),
            )


def leading_negation(looked: Looked) -> Iterator[Remark]:
    """Warn of a negation before the first component, which looks back over a whole window."""
    for negation in looked.plan.automaton.negations:
        if negation.leading:
            yield Remark(
                f"the negation of `{negation.var}` stands before everything: its events are kept for a whole window, "
                "and looked at again for each match",
                "if only what comes after the first event counts, put the negation behind it",
                looked.place(negation.var),
            )


def trailing_negation(looked: Looked) -> Iterator[Remark]:
    """Warn of a negation after the last component, which is decided only when the window has passed."""
    for negation in looked.plan.automaton.negations:
        if negation.trailing:
            yield Remark(
                f"the negation of `{negation.var}` stands after everything: each match waits until its window has "
                "passed",
                "make the window as short as the question allows",
                looked.place(negation.var),
            )


def composed(looked: Looked) -> Iterator[Remark]:
    """Warn of a query over matches of other queries, which waits until those are certain."""
    if looked.query.sources:
        yield Remark(
            "the matches of the inner queries are held back until no earlier one can come, and only then looked at; on "
            "Spark all of it is in one bucket",
            "keep the windows of inner queries short; if one query can say it, write one",
        )

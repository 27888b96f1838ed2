"""Say what a query asks without an attribute as a partition, and what it would ask with it."""

from __future__ import annotations

from acep.pattern.tree import Query, Strategy

__all__ = ["meaning_without", "with_partition"]


def meaning_without(query: Query, name: str) -> str:
    """Return what a query asks of events that differ in an attribute, which is none of its partition.

    >>> from acep.pattern.text.sase import parse
    >>> meaning_without(parse("PATTERN SEQ(A a, B b) WHERE partition_contiguity"), "k")
    'an event of another `k` between two others breaks contiguity'
    """
    if query.strategy.contiguous:
        return f"an event of another `{name}` between two others breaks contiguity"
    if query.output.is_sequential:
        return f"of matches that overlap one is given, whatever their `{name}`"
    if _counts_events(query):
        return f"the window counts events of every `{name}`"
    return f"the events of a match may differ in `{name}`"


def with_partition(query: Query, name: str) -> str:
    """Return the partition attribute, and what the query would ask with it.

    >>> from acep.pattern.text.sase import parse
    >>> with_partition(parse("PATTERN SEQ(A a, B b) WHERE partition_contiguity"), "k")
    '[k], which ignores events of another `k` in between'
    """
    if query.strategy is Strategy.PARTITION_CONTIGUITY:
        return f"[{name}], which ignores events of another `{name}` in between"
    if query.output.is_sequential:
        return f"[{name}], which gives matches of each `{name}` by themselves"
    if _counts_events(query):
        return f"[{name}], which counts the events of one `{name}` only"
    return f"[{name}], which asks for one `{name}` in each match"


def _counts_events(query: Query) -> bool:
    return query.within is not None and query.within.unit == "events"

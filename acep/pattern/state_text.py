"""Write a query for the fingerprint of a state: its canonical text, marked where its meaning has changed."""

from __future__ import annotations

from acep.pattern.closure import tied_attributes
from acep.pattern.printing import canonical
from acep.pattern.spelling import tie_text
from acep.pattern.tree import Query

__all__ = ["state_text"]


def state_text(query: Query) -> str:
    """Return the canonical text for the fingerprint of a state. It has a mark on each query that finds other matches
    than it did when the first states were written, so that no earlier state of it goes on.

    >>> from acep.pattern.text.sase import parse
    >>> state_text(parse("PATTERN SEQ(A a, B b) WHERE b.x = a.x")).splitlines()[1:]
    ['no keys: x']
    """
    queries, lines = [query], [canonical(query)]
    for nested in queries:
        queries += [source.query for source in nested.sources]
        if tied := tied_attributes(nested):
            lines.append(f"no keys: {', '.join(map(tie_text, tied))}")
        if nested.errors and nested.strategy.contiguous:
            lines.append("errors pay for missing events")
    return "\n".join(lines)

"""Read from a bucket of a stream how many partial matches are in each state, and what its budget has given up."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from acep.errors import AcepError, printable
from acep.runtime.stream import Stream

if TYPE_CHECKING:
    from acep.streaming.buckets import Bucket

__all__ = ["MOST_QUERIES", "QueryFigures", "bucket_figures", "ended_figures"]

MOST_QUERIES = 20
MOST_STATES = 60


@dataclass(frozen=True)
class QueryFigures:
    """The partial matches of one query by ``states``, pairs of a name and a number (empty: ``note`` says why), and its
    ``shedding`` by the names of :class:`acep.runtime.stream_figures.SheddingFigures` (``None``: it has no bound)."""

    name: str
    states: tuple[tuple[str, int], ...] = ()
    note: str = ""
    shedding: dict[str, Any] | None = None


def bucket_figures(bucket: Bucket) -> tuple[QueryFigures, ...]:
    """Return the figures of each query of a bucket that has not ended, of the first 20 of them. A figure that an engine
    does not tell is left out, and a note says so."""
    stream: Any = bucket.stream
    if not isinstance(stream, Stream):
        return (QueryFigures("", note=_reason(bucket)),)
    figures = []
    for index, number in enumerate(bucket.part.queries[:MOST_QUERIES]):
        shedding = stream.shedding_figures(index)
        states: tuple[tuple[str, int], ...] = ()
        note = ""
        try:
            states = stream.live_by_state(index)
        except AcepError as error:
            note = error.message
        if len(states) > MOST_STATES:
            note, states = f"the first {MOST_STATES} of {len(states):,} states", states[:MOST_STATES]
        shown_states = tuple((printable(name[:80]), count) for name, count in states)
        shown_name = printable(bucket.job.names[number][:80])
        figures.append(QueryFigures(shown_name, shown_states, note, None if shedding is None else asdict(shedding)))
    if len(bucket.part.queries) > MOST_QUERIES:
        figures.append(QueryFigures("", note=f"and {len(bucket.part.queries) - MOST_QUERIES:,} more queries"))
    return tuple(figures)


def ended_figures(figures: tuple[QueryFigures, ...]) -> tuple[QueryFigures, ...]:
    """Return the figures of queries once their stream has ended, from the last ones before.

    >>> ended_figures((QueryFigures("up", (("1 (a)", 5),)),))
    (QueryFigures(name='up', states=(), note='', shedding=None),)
    """
    return tuple(replace(of_query, states=(), note="") for of_query in figures)


def _reason(bucket: Bucket) -> str:
    """Return why a stream of another kind does not tell states apart."""
    job = bucket.job
    if job.has_rules:
        return "the partial matches of rules are counted together"
    if job.clause is not None:
        return "a MATCH_RECOGNIZE clause has no states; the number is that of its open matches"
    if job.revised:
        return "where matches may be taken back, partial matches are counted together"
    return "the state came from another number of buckets, where partial matches are counted together"

"""Give the live partial matches of a query over a stream of tables to a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acep.errors import naming_query
from acep.matches.match_form import MatchForm
from acep.matches.matches import Matches
from acep.matches.partials.partial_columns import PartialColumns
from acep.matches.partials.partial_matches import PartialMatches

if TYPE_CHECKING:
    from acep.tables.table_stream import TableStream

__all__ = ["listed_partials"]


def listed_partials(tables: TableStream, number: int, limit: int, *, apart: bool) -> PartialMatches:
    """Return the ``limit`` last partial matches of query ``number``; ``apart``: each sequence of bound events.

    Raises :class:`EngineError` for an engine that keeps none with their events.
    """
    name, source = tables.query_set.names[number], tables.stream or tables.revised
    if source is None:
        return PartialMatches(PartialColumns.of_rows((), 0), tables.matches(number, []), (), query=name)
    plan = source.plans[number]
    with naming_query(name):
        columns = source.partial_matches(number, limit, apart=apart)
    matches = tables.matches(number, [])
    like = Matches((), MatchForm(matches.schema, keys=plan.keys, layout=matches.layout))
    span = None if plan.window.counted else plan.window.span
    return PartialMatches(columns, like, [state.name for state in plan.arcs.states], query=name, span=span)

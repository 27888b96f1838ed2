"""Define a match as a plain record, and the counters of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from acep.events.records import Id
from acep.pattern.expressions import Value

if TYPE_CHECKING:
    from acep.learning.estimation.recall import Tally

    Tallies = tuple[Tally | None, Tally | None]

__all__ = ["Counts", "Found", "output_order"]


@dataclass(frozen=True, slots=True)
class Found:
    """One match. ``key``: the values of the partition attributes; ``start`` and ``end``: the ticks of its first and
    last bound event; ``bindings``: (variable, ids) pairs in pattern order, bound variables only; ``bundle``: the first
    match point of its bundle; ``values``: those of RETURN; ``trail``: the chain of bound events, as (id, variable)
    pairs in stream order; ``op``: 1, or -1 if a match that was given is taken back; ``apart``: matches with the same
    bindings are told apart by their values."""

    key: tuple[Value, ...]
    start: int
    end: int
    error: int | Fraction
    bindings: tuple[tuple[str, tuple[Id, ...]], ...]
    bundle: int
    values: tuple[Value, ...] = ()
    trail: tuple[tuple[Id, str], ...] = ()
    op: int = 1
    apart: bool = False


def output_order(record: Found) -> tuple[int, int, tuple[Id, ...], tuple[str, ...], tuple[tuple[bool, Value], ...]]:
    """Return the sort key of the output: matches that are taken back first, then match point, then the ids and the
    variables in stream order, then the values that tell matches apart, null last."""
    values = tuple((v is None, 0 if v is None else v) for v in record.values) if record.apart else ()
    return record.op, record.end, tuple(i for i, _ in record.trail), tuple(v for _, v in record.trail), values


@dataclass
class Counts:
    """Work and losses since a stream began: ``events`` seen, those refused as ``late`` or too far ``ahead``, and rows
    left out as ``duplicates``; partial matches made (``nodes``); transition evaluations (``touches``, with those
    charged for ``deciding``); ``matches`` (if not ``counted``, only match points were requested); partial matches and
    events ``shed``, the events among them being ``skipped``; match points of which matches were ``withheld``; the most
    bytes held, if ``memory`` is bounded, and the most of the matches of a stretch of events (``match_memory``); the
    ``tallies`` for the recall of match points and bundles (``None``: ``unknown`` says why), or a function that is
    called once to get them; touches spent on ``recovering`` bundles, and how many were ``recovered``, or
    ``unrecovered`` for an insufficient budget; matches that were given and are ``retracted``, which do not count as
    ``matches``."""

    events: int = 0
    late: int = 0
    ahead: int = 0
    duplicates: int = 0
    nodes: int = 0
    touches: int = 0
    matches: int = 0
    shed: int = 0
    skipped: int = 0
    withheld: int = 0
    memory: int = 0
    match_memory: int = 0
    deciding: int = 0
    tallies: Tallies | Callable[[], Tallies] = field(default=(None, None), compare=False)
    unknown: str = ""
    recovering: int = 0
    recovered: int = 0
    unrecovered: int = 0
    counted: bool = True
    retracted: int = 0

    def replace(self, **numbers: int) -> Counts:
        """Return other counts with these numbers: what ``dataclasses.replace`` does, in less time.

        >>> Counts(events=3).replace(late=1).events
        3
        """
        counts = object.__new__(Counts)
        vars(counts).update(vars(self), **numbers)
        return counts

    @property
    def whole(self) -> bool:
        """Return whether nothing was given up for want of budget."""
        return self.shed == 0 and self.withheld == 0

    @property
    def points(self) -> Tally | None:
        """Return the tally for the recall of match points."""
        return self._get_tallies()[0]

    @property
    def bundles(self) -> Tally | None:
        """Return the tally for the recall of match bundles."""
        return self._get_tallies()[1]

    def _get_tallies(self) -> Tallies:
        if not isinstance(self.tallies, tuple):
            self.tallies = self.tallies()
        return self.tallies

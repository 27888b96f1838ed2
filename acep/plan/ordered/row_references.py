"""Define what the expressions of a row pattern clause refer to: rows of the match, aggregates of them, labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from acep.functions.aggregates import AGGREGATES

__all__ = [
    "CHOOSING",
    "LABEL",
    "NUMBER",
    "MatchNumber",
    "MissingRows",
    "Navigation",
    "PartitionValue",
    "RowAggregate",
    "RowReference",
]

LABEL = "classifier()"
"""The name of the column of labels: that of CLASSIFIER."""

NUMBER = "match_number()"
"""The name of the column of the numbers of matches."""

CHOOSING = tuple(name for name, entry in AGGREGATES.items() if entry.takes == "ordered")
"""The aggregates that give one of the values, unchanged."""


@dataclass(frozen=True)
class Navigation:
    """The value of ``column`` at a row of the match, or beside it.

    The row is the ``offset``-th first (``is_first``) or last of those that are mapped to ``variables`` (folded names;
    ``None``: all rows of the match), then ``shift`` rows on in the partition. ``is_final``: of all rows of the match,
    else of those up to the current row.
    """

    column: str
    variables: frozenset[str] | None
    is_first: bool = False
    offset: int = 0
    shift: int = 0
    is_final: bool = False


@dataclass(frozen=True)
class RowAggregate:
    """An aggregate over the rows that are mapped to ``variables`` (``None``: over all rows of the match).

    ``column`` is ``None`` for a count of rows. ``arguments`` are further columns (``max_by``, or keys to order by) and
    ``texts`` constants (the separator of ``string_agg``, the decimal places of ``avg``). ``order``: for each key
    whether it descends, and whether nulls come first."""

    function: str
    column: str | None
    variables: frozenset[str] | None
    is_distinct: bool = False
    is_final: bool = False
    arguments: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    order: tuple[tuple[bool, bool], ...] = ()


@dataclass(frozen=True)
class MatchNumber:
    """The number of the match in its partition, from 1."""


@dataclass(frozen=True)
class PartitionValue:
    """The value of an aggregate over all rows of a partition, as a column ``name`` of each row; ``column`` is ``None``
    for a count of rows. ``texts`` are as in :class:`RowAggregate`."""

    name: str
    function: str
    column: str | None
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class MissingRows:
    """How many rows of the pattern are missing in the match."""

    column: None = None


RowReference: TypeAlias = Navigation | RowAggregate | MatchNumber | MissingRows

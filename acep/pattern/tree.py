"""Define the syntax tree of a query, which the front ends produce and all later stages read.

All nodes are frozen dataclasses, independent of text, automata and events.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeAlias

from acep.display import clip_text, marked_breaks, page_of, text_of
from acep.pattern.expressions import Expr

__all__ = [
    "SKIP_PLACES",
    "Choice",
    "Component",
    "EventSet",
    "GraphArc",
    "GraphRegister",
    "Negation",
    "Node",
    "Output",
    "Query",
    "Repeat",
    "Sequence",
    "SkipTarget",
    "Source",
    "StateGraph",
    "Strategy",
    "Within",
]


LONGEST = 2_000  # characters of a query that are printed


class Strategy(Enum):
    """The event selection strategy (SASE+ 2008, section 2)."""

    STRICT_CONTIGUITY = "strict_contiguity"
    PARTITION_CONTIGUITY = "partition_contiguity"
    SKIP_TILL_NEXT_MATCH = "skip_till_next_match"
    SKIP_TILL_ANY_MATCH = "skip_till_any_match"

    @property
    def contiguous(self) -> bool:
        """Return whether gaps between bound events cost errors."""
        return self in (Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY)


class Output(Enum):
    """The selection of the matches that are returned (docs/reference/semantics.md, "Output")."""

    ALL = "all"
    NON_OVERLAP = "non_overlap"
    EARLIEST_MAXIMAL = "earliest_maximal"
    LONGEST_NON_OVERLAP = "longest_non_overlap"
    SHORTEST_NON_OVERLAP = "shortest_non_overlap"
    LONGEST_AFTER_SKIP = "longest_after_match_skip"
    SHORTEST_AFTER_SKIP = "shortest_after_match_skip"

    @property
    def is_sequential(self) -> bool:
        """Return whether a match that is given says where others may not begin."""
        return self not in (Output.ALL, Output.EARLIEST_MAXIMAL)

    @property
    def is_longest(self) -> bool:
        """Return whether of the matches with one first event the one that ends last is given."""
        return self in (Output.LONGEST_NON_OVERLAP, Output.LONGEST_AFTER_SKIP)

    @property
    def is_shortest(self) -> bool:
        """Return whether of the matches with one first event the one that ends first is given."""
        return self in (Output.SHORTEST_NON_OVERLAP, Output.SHORTEST_AFTER_SKIP)


SkipPlace: TypeAlias = Literal["next", "first", "last"]
SKIP_PLACES: tuple[SkipPlace, ...] = ("next", "first", "last")
"""The places of a :class:`SkipTarget`, by their numbers in the native core, which begin with 1."""


@dataclass(frozen=True)
class SkipTarget:
    """The first event with which another match may begin after one that is given: the ``"next"`` one after its first
    event, or the ``"first"`` or ``"last"`` one that it binds to a variable."""

    place: SkipPlace
    variable: str = ""


@dataclass(frozen=True)
class Component:
    """One event of a type in ``types`` (empty: any type) bound to ``var``."""

    var: str
    types: tuple[str, ...]


@dataclass(frozen=True)
class Negation:
    """No event of ``types`` (empty: any type) between its neighbours: ``~B b``."""

    var: str
    types: tuple[str, ...]


@dataclass(frozen=True)
class Repeat:
    """``item`` at least ``low`` and at most ``high`` times (``None``: without limit).

    ``?`` is ``{0,1}``, ``*`` is ``{0,}``, ``+`` is ``{1,}``. If ``item`` is a :class:`Component`, its variable is a
    Kleene variable (``a[]``); any other item is a group.
    """

    item: Node
    low: int
    high: int | None


@dataclass(frozen=True)
class Sequence:
    """``items`` one after another."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """Exactly one of ``items``."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class EventSet:
    """All of ``items`` in any order, with their events interleaved arbitrarily (match windows, 2012 paper).

    Each item is a :class:`Component` or a :class:`Repeat` of one.
    """

    items: tuple[Component | Repeat, ...]


@dataclass(frozen=True)
class GraphRegister:
    """A register of a hand-written automaton. ``kind`` is ``"int"``, ``"float"``, ``"string"``, ``"bool"``,
    ``"timestamp"`` or ``"duration"``; ``initial`` is its value at the start (``None``: null)."""

    name: str
    kind: str
    initial: bool | int | float | str | None


@dataclass(frozen=True)
class GraphArc:
    """An arc of a hand-written automaton from state ``source`` to state ``target`` (AFA 2010, section 2.2).

    ``fence`` must hold (``None``: always). ``transfer`` are (register, new value) pairs; the other registers keep
    their values. Both refer to the event as ``e`` and to the registers before the arc as ``r``. The event is bound to
    ``var``. An ``epsilon`` arc binds no event. An ``ignorable`` arc lets an event pass: it is not bound, and state and
    registers stay. Only events from ``since`` on and before ``until`` take the arc (``None``: without limit).
    """

    source: str
    target: str
    fence: Expr | None
    transfer: tuple[tuple[str, Expr], ...]
    var: str
    epsilon: bool = False
    ignorable: bool = False
    since: Expr | None = None
    until: Expr | None = None


@dataclass(frozen=True)
class StateGraph:
    """A hand-written automaton: the ``start`` state, the ``final`` ones, registers and arcs.

    ``dynamic``: arcs may come and go while the stream runs. ``named`` are then the states, and ``bound`` the variables,
    of the automaton before a change, whose numbers stay.
    """

    start: str
    final: tuple[str, ...]
    registers: tuple[GraphRegister, ...]
    arcs: tuple[GraphArc, ...]
    dynamic: bool = False
    named: tuple[str, ...] = ()
    bound: tuple[str, ...] = ()

    @cached_property
    def states(self) -> tuple[str, ...]:
        """Return the names of the states, in the order in which they are named."""
        ends = [name for arc in self.arcs for name in (arc.source, arc.target)]
        return tuple(dict.fromkeys([*self.named, self.start, *ends, *self.final]))

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Return the variables to which events are bound, in the order in which they are named."""
        bound = [arc.var for arc in self.arcs if not (arc.epsilon or arc.ignorable)]
        return tuple(dict.fromkeys([*self.bound, *bound]))


Node: TypeAlias = Component | Negation | Repeat | Sequence | Choice | EventSet | StateGraph


@dataclass(frozen=True)
class Within:
    """The window: a length of ``amount`` in ``unit``.

    ``unit`` is ``"events"`` (positions in the partition), ``"ticks"`` (the units of an integer ``ts``), or ``"ns"``
    (a duration in nanoseconds).
    """

    amount: Fraction
    unit: str


@dataclass(frozen=True)
class Source:
    """``FROM (query) AS type``: the matches of ``query`` as events of type ``type``."""

    query: Query
    type: str


@dataclass(frozen=True, repr=False)
class Query:
    """A whole query, checked and normalised as far as this is possible without the columns of a stream.

    ``where`` has the top-level conjuncts in the order written, and ``ties`` the attributes of ``[attr]``. ``weights``
    are (variable, weight) pairs; a weight of ``None`` means "may not be missing". ``text`` is the user's text.
    ``pattern`` is the root of the tree and ``within`` the window (``None``: no limit). ``having`` and ``returns``
    (pairs of a name and an expression) apply to complete matches; ``output`` selects among these, and ``skip`` says
    where the next one may begin if it is not after the last event (``None``: it is). ``sources`` are the queries of
    FROM, ``errors`` is the error budget, and ``surplus`` what each surplus event costs of it under contiguity
    (``None``: there may be none). ``letters``: it was written as a letter expression. If ``pattern`` is a
    :class:`StateGraph`, a window in time ends before its last tick.
    """

    text: str
    pattern: Node
    strategy: Strategy = Strategy.SKIP_TILL_ANY_MATCH
    where: tuple[Expr, ...] = ()
    ties: tuple[str, ...] = ()
    within: Within | None = None
    having: Expr | None = None
    returns: tuple[tuple[str, Expr], ...] = ()
    output: Output = Output.ALL
    skip: SkipTarget | None = None
    sources: tuple[Source, ...] = ()
    errors: Fraction = Fraction(0)
    weights: tuple[tuple[str, Fraction | None], ...] = ()
    letters: bool = False
    surplus: Fraction | None = None

    @property
    def graph(self) -> StateGraph | None:
        """Return the hand-written automaton, if the query is one."""
        return self.pattern if isinstance(self.pattern, StateGraph) else None

    @property
    def results(self) -> tuple[Expr, ...]:
        """Return the expressions that are evaluated on a complete match: HAVING, and the values of RETURN."""
        return (*([] if self.having is None else [self.having]), *(value for _, value in self.returns))

    def __repr__(self) -> str:
        return f"Query({self})"

    def __str__(self) -> str:
        return clip_text(marked_breaks(text_of(self)), LONGEST)

    def _repr_html_(self) -> str | None:
        return page_of(self)

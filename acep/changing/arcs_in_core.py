"""Change the arcs of an automaton in the native core itself: an arc of a form that is known only gets other times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import TypeAlias

from acep.pattern import expressions as ex
from acep.pattern.printing import arc_text
from acep.pattern.tree import GraphArc, StateGraph

__all__ = ["EARLIEST", "LATEST", "ArcsInCore"]

EARLIEST, LATEST = -(2**63), 2**63 - 1
"""The least and the greatest time of an event, in ticks."""
MOST = 60_000
"""The number of arcs, or of forms, from which on all are compiled."""
SPARE = 256
"""The number of arcs, beyond four times those that matter, from which on all are compiled before the core gets more."""

MOST_SAME = 4
"""The number of arcs of a form that are known by their identity; others are known by that of their expressions."""

_Key: TypeAlias = tuple[str, str, str, int, tuple[tuple[str, int], ...]]
_Numbers: TypeAlias = tuple[int, ...]


@dataclass(slots=True, eq=False)
class _KnownForm:
    """The form of arcs that differ in their times only: an ``arc`` without times. ``like`` are the numbers of
    one of them in the core, ``free`` those of arcs that are valid at no time any more. ``valid`` are those that matter,
    in the order in which they were added. ``same`` are arcs as they were given, which are known by their identity."""

    arc: GraphArc
    like: _Numbers
    same: list[GraphArc] = field(default_factory=list)
    free: list[_Numbers] = field(default_factory=list)
    valid: list[_ValidArc] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _ValidArc:
    """An arc of a form, valid from the tick ``since`` on and before ``until`` (:data:`LATEST`: without end). ``begins``
    and ``ends`` are these times as they were given (``None``: as ticks)."""

    form: _KnownForm
    numbers: _Numbers
    since: int
    until: int
    begins: ex.Expr | None
    ends: ex.Expr | None


@dataclass
class ArcsInCore:
    """The arcs of an automaton by their numbers in the core, which has ``many``. ``graph`` is the automaton as it was
    compiled, and ``arcs`` are those it has now, by their first number in the order in which they were added. ``forms``
    are known by the identities of their expressions, ``texts`` by their text, and ``seen`` by the identities of arcs.
    ``ended`` is a heap of the times at which arcs end, with their first numbers. ``apart``: the arcs have changed since
    the automaton was compiled."""

    graph: StateGraph
    many: int
    forms: dict[_Key, _KnownForm] = field(default_factory=dict)
    texts: dict[str, _KnownForm] = field(default_factory=dict)
    seen: dict[int, _KnownForm] = field(default_factory=dict)
    arcs: dict[int, _ValidArc] = field(default_factory=dict)
    ended: list[tuple[int, int]] = field(default_factory=list)
    apart: bool = False

    @classmethod
    def of(cls, graph: StateGraph, many: int, tick: Callable[[ex.Expr], int | None]) -> ArcsInCore | None:
        """Return the arcs of an automaton whose plan has ``many``; ``None`` for one with epsilon arcs, whose chains are
        known together only. ``tick`` returns the tick of a time, or ``None`` for one between two ticks."""
        if any(one.epsilon for one in graph.arcs):
            return None
        found = cls(graph, 0)
        for one, numbers in found._numbered(graph.arcs):
            since = EARLIEST if one.since is None else tick(one.since)
            until = LATEST if one.until is None else tick(one.until)
            if since is None or until is None or not EARLIEST <= since <= LATEST or not EARLIEST <= until <= LATEST:
                return None
            form = found._form(one) or found._new_form(one, numbers)
            own = found.arcs[numbers[0]] = _ValidArc(form, numbers, since, until, one.since, one.until)
            form.valid.append(own)
            if one.until is not None:
                heappush(found.ended, (until, numbers[0]))
        return found if found.many == many else None

    def _numbered(self, arcs: Sequence[GraphArc]) -> Iterable[tuple[GraphArc, _Numbers]]:
        """Yield the arcs that bind an event with their numbers, which follow those of the arcs so far: by the number of
        the state that they leave. Those from the start leave both state 0 and the state of its name."""
        leaving: dict[str, list[int]] = {}
        for place, one in enumerate(arcs):
            if not one.ignorable:
                leaving.setdefault(one.source, []).append(place)
        numbers: list[list[int]] = [[] for _ in arcs]
        for name in (self.graph.start, *self.graph.states):
            for place in leaving.get(name, ()):
                numbers[place].append(self.many)
                self.many += 1
        for one, own in zip(arcs, numbers, strict=True):
            if own:
                yield one, tuple(own)

    def _new_form(self, one: GraphArc, numbers: _Numbers) -> _KnownForm:
        plain = replace(one, since=None, until=None)
        form = self.forms[_key(one)] = self.texts[arc_text(plain)] = _KnownForm(plain, numbers, [one])
        self.seen[id(one)] = form
        return form

    def _form(self, one: GraphArc) -> _KnownForm | None:
        """Return the form of an arc, if it is known. The same object is known the next time."""
        if one.ignorable or one.epsilon:
            return None
        form = self.forms.get(key := _key(one))
        fresh = form is None
        if fresh and (form := self.texts.get(arc_text(replace(one, since=None, until=None)))) is not None:
            self.forms[key] = form
        if form is not None and (fresh or len(form.same) < MOST_SAME):
            form.same.append(one)
            self.seen[id(one)] = form
        return form

    def changed(
        self,
        add: Sequence[GraphArc],
        remove: Sequence[GraphArc],
        since: int,
        moment: ex.Expr | None,
        extend: Callable[[StateGraph], None],
    ) -> list[int] | None:
        """Add arcs and remove others from the tick ``since`` on, which was given as ``moment`` (``None``: as the tick).
        ``extend`` gives the core arcs of other forms besides, valid at no time yet, and may raise an error.

        Return the times of arcs as the core takes them: four words each (the number of an arc, that of one that it is
        like, the first and the last tick). Return ``None``, and change nothing, where all arcs must be compiled."""
        seen = self.seen
        gone: list[_ValidArc] = []
        for one in remove:
            form = seen.get(id(one)) or self._form(one)
            if form is None:
                return None
            for own in form.valid:
                if own.since <= since < own.until and own not in gone:
                    break
            else:
                return None
            gone.append(own)
        forms: list[_KnownForm | None] = []
        for one in add:
            if one.ignorable or one.epsilon or one.since is not None or one.until is not None:
                return None
            forms.append(seen.get(id(one)) or self._form(one))
        if self.many > min(4 * len(self.arcs) + SPARE, MOST) and not all(form and form.free for form in forms):
            return None  # to be rid of those that are valid at no time any more
        if len(self.forms) > MOST:
            return None
        if None in forms:
            fresh = {arc_text(one): one for one, form in zip(add, forms, strict=True) if form is None}
            graph = self.graph
            alone = replace(graph, arcs=tuple(fresh.values()), named=graph.states, bound=graph.variables)
            if alone.states != graph.states or alone.variables != graph.variables:
                return None
            extend(alone)
            for one, numbers in self._numbered(alone.arcs):
                self._new_form(one, numbers).free.append(numbers)
            forms = [self._form(one) for one in add]
        self.apart = True
        words: list[int] = []
        for own in gone:
            for number in own.numbers:
                words += (number, number, own.since, since - 1)
            if own.since < since:
                own.until, own.ends = since, moment
                heappush(self.ended, (since, own.numbers[0]))
            else:  # it was valid at no time
                self._free(own)
        for form in forms:
            assert form is not None
            like = form.like
            if form.free:
                numbers = form.free.pop()
            else:
                numbers = tuple(range(self.many, self.many + len(like)))
                self.many += len(like)
            own = self.arcs[numbers[0]] = _ValidArc(form, numbers, since, LATEST, moment, None)
            form.valid.append(own)
            for number, other in zip(numbers, like, strict=True):
                words += (number, other, since, LATEST)
        return words

    def forget(self, certain: int | None) -> None:
        """Forget the arcs that end at a tick before which no event is matched any more."""
        ended = self.ended
        while ended and certain is not None and ended[0][0] <= certain:
            until, number = heappop(ended)
            own = self.arcs.get(number)
            if own is not None and own.until == until:  # else it ended earlier than it was to end at first
                self._free(own)

    def _free(self, own: _ValidArc) -> None:
        form, numbers = own.form, own.numbers
        del self.arcs[numbers[0]]
        form.valid.remove(own)
        form.free.append(numbers)

    def graph_now(self, moment: Callable[[int], ex.Expr]) -> StateGraph:
        """Return the automaton with its arcs as they are now. ``moment`` returns the expression of a tick."""

        def told(given: ex.Expr | None, tick: int) -> ex.Expr | None:
            return given if given is not None or tick in (EARLIEST, LATEST) else moment(tick)

        now = [
            replace(own.form.arc, since=told(own.begins, own.since), until=told(own.ends, own.until))
            for own in self.arcs.values()
        ]
        passing = [one for one in self.graph.arcs if one.ignorable]
        graph = self.graph
        return replace(graph, arcs=(*passing, *now), named=graph.states, bound=graph.variables)


def _key(one: GraphArc) -> _Key:
    """Return the form of an arc, by the identities of its expressions, which are the same for the same text."""
    transfer = tuple([(name, id(value)) for name, value in one.transfer]) if one.transfer else ()
    return one.source, one.target, one.var, id(one.fence), transfer

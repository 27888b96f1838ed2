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
ARC_LIMIT = 60_000
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
    """The arcs of an automaton by their numbers in the core, which has ``arc_count``. ``graph`` is the automaton as it
    was compiled, and ``arcs`` are those it has now, by their first number in the order in which they were added.
    ``forms`` are known by the identities of their expressions, ``texts`` by their text, and ``seen`` by the identities
    of arcs. ``ended`` is a heap of the times at which arcs end, with their first numbers. ``apart``: the arcs have
    changed since the automaton was compiled."""

    graph: StateGraph
    arc_count: int
    forms: dict[_Key, _KnownForm] = field(default_factory=dict)
    texts: dict[str, _KnownForm] = field(default_factory=dict)
    seen: dict[int, _KnownForm] = field(default_factory=dict)
    arcs: dict[int, _ValidArc] = field(default_factory=dict)
    ended: list[tuple[int, int]] = field(default_factory=list)
    apart: bool = False

    @classmethod
    def from_graph(cls, graph: StateGraph, arc_count: int, tick: Callable[[ex.Expr], int | None]) -> ArcsInCore | None:
        """Return the arcs of an automaton whose plan has ``arc_count``; ``None`` for one with epsilon arcs, whose
        chains are known together only. ``tick`` returns the tick of a time, or ``None`` for one between two ticks."""
        if any(arc.epsilon for arc in graph.arcs):
            return None
        core_arcs = cls(graph, 0)
        for arc, numbers in core_arcs._number_arcs(graph.arcs):
            since = EARLIEST if arc.since is None else tick(arc.since)
            until = LATEST if arc.until is None else tick(arc.until)
            if since is None or until is None or not EARLIEST <= since <= LATEST or not EARLIEST <= until <= LATEST:
                return None
            form = core_arcs._known_form(arc) or core_arcs._new_form(arc, numbers)
            valid_arc = core_arcs.arcs[numbers[0]] = _ValidArc(form, numbers, since, until, arc.since, arc.until)
            form.valid.append(valid_arc)
            if arc.until is not None:
                heappush(core_arcs.ended, (until, numbers[0]))
        return core_arcs if core_arcs.arc_count == arc_count else None

    def _number_arcs(self, arcs: Sequence[GraphArc]) -> Iterable[tuple[GraphArc, _Numbers]]:
        """Yield the arcs that bind an event with their numbers, which follow those of the arcs so far: by the number of
        the state that they leave. Those from the start leave both state 0 and the state of its name."""
        leaving: dict[str, list[int]] = {}
        for index, arc in enumerate(arcs):
            if not arc.ignorable:
                leaving.setdefault(arc.source, []).append(index)
        numbers: list[list[int]] = [[] for _ in arcs]
        for name in (self.graph.start, *self.graph.states):
            for index in leaving.get(name, ()):
                numbers[index].append(self.arc_count)
                self.arc_count += 1
        for arc, arc_numbers in zip(arcs, numbers, strict=True):
            if arc_numbers:
                yield arc, tuple(arc_numbers)

    def _new_form(self, arc: GraphArc, numbers: _Numbers) -> _KnownForm:
        plain = replace(arc, since=None, until=None)
        form = self.forms[_key(arc)] = self.texts[arc_text(plain)] = _KnownForm(plain, numbers, [arc])
        self.seen[id(arc)] = form
        return form

    def _known_form(self, arc: GraphArc) -> _KnownForm | None:
        """Return the form of an arc, if it is known. The same object is known the next time."""
        if arc.ignorable or arc.epsilon:
            return None
        form = self.forms.get(key := _key(arc))
        is_new = form is None
        if is_new and (form := self.texts.get(arc_text(replace(arc, since=None, until=None)))) is not None:
            self.forms[key] = form
        if form is not None and (is_new or len(form.same) < MOST_SAME):
            form.same.append(arc)
            self.seen[id(arc)] = form
        return form

    def change(
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
        ended_arcs = self._valid_arcs(remove, since)
        if ended_arcs is None:
            return None
        forms: list[_KnownForm | None] = []
        for arc in add:
            if arc.ignorable or arc.epsilon or arc.since is not None or arc.until is not None:
                return None
            forms.append(self.seen.get(id(arc)) or self._known_form(arc))
        if self.arc_count > min(4 * len(self.arcs) + SPARE, ARC_LIMIT) and not all(
            form and form.free for form in forms
        ):
            return None  # to be rid of those that are valid at no time any more
        if len(self.forms) > ARC_LIMIT:
            return None
        if None in forms:
            if not self._add_forms([arc for arc, form in zip(add, forms, strict=True) if form is None], extend):
                return None
            forms = [self._known_form(arc) for arc in add]
        self.apart = True
        words = self._end_arcs(ended_arcs, since, moment)
        return words + self._begin_arcs(forms, since, moment)

    def _valid_arcs(self, arcs: Iterable[GraphArc], tick: int) -> list[_ValidArc] | None:
        """Return an arc of the form of each of some arcs, that is valid at a tick, each once; ``None`` if one of them
        has none."""
        valid_arcs: list[_ValidArc] = []
        for arc in arcs:
            form = self.seen.get(id(arc)) or self._known_form(arc)
            if form is None:
                return None
            for valid_arc in form.valid:
                if valid_arc.since <= tick < valid_arc.until and valid_arc not in valid_arcs:
                    break
            else:
                return None
            valid_arcs.append(valid_arc)
        return valid_arcs

    def _add_forms(self, arcs: Iterable[GraphArc], extend: Callable[[StateGraph], None]) -> bool:
        """Give the core arcs of new forms, valid at no time yet. Return whether it can have them: not with states or
        variables that the automaton does not have."""
        new_arcs = {arc_text(arc): arc for arc in arcs}
        graph = self.graph
        new_graph = replace(graph, arcs=tuple(new_arcs.values()), named=graph.states, bound=graph.variables)
        if new_graph.states != graph.states or new_graph.variables != graph.variables:
            return False
        extend(new_graph)
        for arc, numbers in self._number_arcs(new_graph.arcs):
            self._new_form(arc, numbers).free.append(numbers)
        return True

    def _end_arcs(self, arcs: Iterable[_ValidArc], since: int, moment: ex.Expr | None) -> list[int]:
        """Make arcs valid no longer from the tick ``since`` on, and return their words (:meth:`change`)."""
        words: list[int] = []
        for valid_arc in arcs:
            for number in valid_arc.numbers:
                words += (number, number, valid_arc.since, since - 1)
            if valid_arc.since < since:
                valid_arc.until, valid_arc.ends = since, moment
                heappush(self.ended, (since, valid_arc.numbers[0]))
            else:  # it was valid at no time
                self._free(valid_arc)
        return words

    def _begin_arcs(self, forms: Iterable[_KnownForm | None], since: int, moment: ex.Expr | None) -> list[int]:
        """Make an arc of each form valid from the tick ``since`` on, and return their words (:meth:`change`)."""
        words: list[int] = []
        for form in forms:
            assert form is not None
            if form.free:
                numbers = form.free.pop()
            else:
                numbers = tuple(range(self.arc_count, self.arc_count + len(form.like)))
                self.arc_count += len(form.like)
            valid_arc = self.arcs[numbers[0]] = _ValidArc(form, numbers, since, LATEST, moment, None)
            form.valid.append(valid_arc)
            for number, other in zip(numbers, form.like, strict=True):
                words += (number, other, since, LATEST)
        return words

    def forget(self, certain: int | None) -> None:
        """Forget the arcs that end at a tick before which no event is matched any more."""
        ended = self.ended
        while ended and certain is not None and ended[0][0] <= certain:
            until, number = heappop(ended)
            valid_arc = self.arcs.get(number)
            if valid_arc is not None and valid_arc.until == until:  # else it ended earlier than it was to end at first
                self._free(valid_arc)

    def _free(self, valid_arc: _ValidArc) -> None:
        form, numbers = valid_arc.form, valid_arc.numbers
        del self.arcs[numbers[0]]
        form.valid.remove(valid_arc)
        form.free.append(numbers)

    def current_graph(self, moment: Callable[[int], ex.Expr]) -> StateGraph:
        """Return the automaton with its arcs as they are now. ``moment`` returns the expression of a tick."""

        def as_moment(expression: ex.Expr | None, tick: int) -> ex.Expr | None:
            return expression if expression is not None or tick in (EARLIEST, LATEST) else moment(tick)

        arcs = [
            replace(
                valid_arc.form.arc,
                since=as_moment(valid_arc.begins, valid_arc.since),
                until=as_moment(valid_arc.ends, valid_arc.until),
            )
            for valid_arc in self.arcs.values()
        ]
        passing = [arc for arc in self.graph.arcs if arc.ignorable]
        graph = self.graph
        return replace(graph, arcs=(*passing, *arcs), named=graph.states, bound=graph.variables)


def _key(arc: GraphArc) -> _Key:
    """Return the form of an arc, by the identities of its expressions, which are the same for the same text."""
    transfer = tuple([(name, id(value)) for name, value in arc.transfer]) if arc.transfer else ()
    return arc.source, arc.target, arc.var, id(arc.fence), transfer

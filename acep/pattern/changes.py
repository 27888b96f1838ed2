"""Change a hand-written automaton while a stream runs: arcs come and go at a time (AFA 2010, section 2.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from acep.errors import QueryError
from acep.pattern import expressions as ex
from acep.pattern.automata import arc
from acep.pattern.graph_check import check_cycles, check_graph, check_registers
from acep.pattern.printing import arc_text
from acep.pattern.spelling import expression_text
from acep.pattern.tree import GraphArc, Query, StateGraph

__all__ = ["as_other_since", "changed", "difference", "graph_data", "graph_of"]


def changed(
    query: Query,
    add: Iterable[GraphArc],
    remove: Iterable[GraphArc],
    final: Iterable[str],
    since: ex.Expr | None,
    over: Callable[[ex.Expr], bool],
) -> Query:
    """Return an automaton with other arcs, of which those to ``add`` are valid from the time ``since`` on, and those to
    ``remove`` before it (``None``: no event has come, so that they never were). The new states in ``final`` are final.
    Arcs that end at a time that is ``over`` are left out.

    An arc that is removed is one that is valid at that time; else the first one that begins later.

    Raises :class:`QueryError` for an arc that is not there, or that would be valid before that time.
    """
    graph = query.graph
    assert graph is not None
    add, final = tuple(add), tuple(final)
    arcs = [one for one in graph.arcs if one.until is None or not over(one.until)]
    for gone in remove:
        at = _place(arcs, gone, since)
        if at is None:
            raise QueryError(
                f"there is no arc {arc_text(gone)}", hint="remove= takes arcs as they were added", code="query_change"
            )
        arcs[at : at + 1] = [] if since is None else [replace(arcs[at], until=since)]
    for one in add:
        if since is not None and one.since is not None and _at(one.since) < _at(since):
            raise QueryError(
                f"arc {one.source} -> {one.target} begins before the change",
                hint="events that have come take the arcs as they were; revise() reaches back to them",
                code="query_change",
            )
    fresh = [one if one.since is not None else replace(one, since=since) for one in add]
    for name in final:
        if not isinstance(name, str) or not name:
            raise QueryError(f"a state has a name, which {name!r} is not", code="query_change")
        if name in graph.states and name not in graph.final:
            raise QueryError(
                f"state `{name}` is not new, so it cannot become final",
                hint="give a state of another name",
                code="query_change",
            )
    return _with_arcs(query, [*arcs, *fresh], fresh, final, since)


def as_other_since(query: Query, other: Query, since: ex.Expr, over: Callable[[ex.Expr], bool]) -> Query:
    """Return an automaton that is as another one for events from the time ``since`` on, which may have come already.
    Arcs that end at a time that is ``over`` are left out.

    Raises :class:`QueryError` if they differ in more than arcs and new states.
    """
    _, _, final = difference(query, other)
    graph, new = query.graph, other.graph
    assert graph is not None
    assert new is not None
    arcs, missing, fresh = list[GraphArc](), list(new.arcs), list[GraphArc]()
    for one in graph.arcs:
        same = next((i for i, arc in enumerate(missing) if arc_text(arc) == _plain(one)), None)
        begun = one.since is None or _at(one.since) < _at(since)
        if begun and one.until is None and same is not None:
            arcs.append(one)
            del missing[same]
        elif begun and not (one.until is not None and over(one.until)):
            arcs.append(replace(one, until=since) if _lasts(one, since) else one)
    for one in missing:
        later = one.since is not None and _at(one.since) > _at(since)
        fresh.append(one if later else replace(one, since=since))
    return _with_arcs(query, [*arcs, *fresh], fresh, final, since)


def _with_arcs(
    query: Query, arcs: Sequence[GraphArc], fresh: Sequence[GraphArc], final: Iterable[str], since: ex.Expr | None
) -> Query:
    """Return an automaton with these arcs, which must be right from a time on, and more final states. The ``fresh``
    arcs were not there before."""
    graph = query.graph
    assert graph is not None
    after = replace(
        graph,
        arcs=tuple(arcs),
        final=tuple(dict.fromkeys([*graph.final, *final])),
        named=graph.states,
        bound=graph.variables,
    )
    check_registers(after, fresh)
    if any(one.epsilon for one in fresh):
        check_cycles(one for one in arcs if _lasts(one, since))
    return replace(query, pattern=after, text="")  # canonical() writes it where it is read


def difference(query: Query, other: Query) -> tuple[list[GraphArc], list[GraphArc], list[str]]:
    """Return what changes an automaton into another one: the arcs to add, those to remove, and new final states.

    Raises :class:`QueryError` if they differ in more than arcs and new states.
    """
    old, new = query.graph, other.graph
    if old is None or new is None:
        raise QueryError("only an automaton can replace an automaton", code="query_change")
    for name, one, two in (
        ("registers", old.registers, new.registers),
        ("start", old.start, new.start),
        ("keys", query.ties, other.ties),
        ("window", query.within, other.within),
    ):
        if one != two:
            raise QueryError(
                f"the automaton has another value of `{name}`",
                hint="only arcs and states may change",
                code="query_change",
            )
    for name in old.states:
        if name in new.states and (name in old.final) != (name in new.final):
            raise QueryError(
                f"state `{name}` is final in one of both only", hint="give a state of another name", code="query_change"
            )
    there = [_plain(one) for one in old.arcs if one.until is None]
    wanted = [_plain(one) for one in new.arcs]
    add = [one for one in new.arcs if _plain(one) not in there]
    remove = [one for one in old.arcs if one.until is None and _plain(one) not in wanted]
    return add, remove, [name for name in new.final if name not in old.states]


def _plain(one: GraphArc) -> str:
    """Return an arc as a text without the times for which it is valid."""
    return arc_text(replace(one, since=None, until=None))


def _place(arcs: Sequence[GraphArc], gone: GraphArc, since: ex.Expr | None) -> int | None:
    """Return the place of the arc that is removed at a time, as which ``gone`` was added; ``None``: there is none."""
    ends = gone.source, gone.target
    places = [i for i, one in enumerate(arcs) if (one.source, one.target) == ends and _lasts(one, since)]
    begun = [i for i in places if _begun(arcs[i], since)]
    plain = replace(gone, since=None, until=None)
    text = arc_text(plain)

    def same(one: GraphArc) -> bool:  # a fence that was written before is the same object, so that no text need be made
        at_once = one.fence is gone.fence and not gone.transfer and replace(one, since=None, until=None) == plain
        return at_once or _plain(one) == text

    return next((i for i in (*begun, *places) if same(arcs[i])), None)


def _begun(one: GraphArc, since: ex.Expr | None) -> bool:
    """Return whether an arc is valid at a time, or was before."""
    return one.since is None or since is None or _at(one.since) <= _at(since)


def _lasts(one: GraphArc, since: ex.Expr | None) -> bool:
    """Return whether an arc is still valid at a time."""
    return one.until is None or since is None or _at(one.until) > _at(since)


def _at(moment: ex.Expr) -> int:
    if isinstance(moment, ex.Timestamp):
        return moment.ns
    assert isinstance(moment, ex.Literal)
    assert isinstance(moment.value, int)
    return moment.value


# As data, for snapshots ---------------------------------------------------------------------------


def graph_data(graph: StateGraph) -> dict[str, Any]:
    """Return what can change of an automaton as JSON-like data."""
    return {
        "final": list(graph.final),
        "named": list(graph.named),
        "bound": list(graph.bound),
        "arcs": [
            [
                one.source,
                one.target,
                None if one.fence is None else expression_text(one.fence),
                {name: expression_text(value) for name, value in one.transfer},
                one.var,
                one.epsilon,
                one.ignorable,
                *(
                    None if moment is None else [type(moment).__name__, _at(moment)]
                    for moment in (one.since, one.until)
                ),
            ]
            for one in graph.arcs
        ],
    }


def graph_of(graph: StateGraph, data: Mapping[str, Any]) -> StateGraph:
    """Return an automaton that has changed, from :func:`graph_data`.

    Raises :class:`QueryError`, :class:`KeyError`, :class:`TypeError` or :class:`ValueError` for other data.
    """
    arcs = []
    for source, target, fence, transfer, var, epsilon, ignorable, since, until in data["arcs"]:
        bind = None if epsilon or ignorable else var
        one = arc(source, target, fence, transfer, bind=bind, epsilon=epsilon, ignorable=ignorable)
        arcs.append(replace(one, since=_moment(since), until=_moment(until)))
    found = replace(
        graph, arcs=tuple(arcs), final=_names(data["final"]), named=_names(data["named"]), bound=_names(data["bound"])
    )
    check_graph(found, everywhere=False)
    return found


def _names(data: Sequence[Any]) -> tuple[str, ...]:
    if not all(isinstance(name, str) for name in data):
        raise ValueError("names")
    return tuple(data)


def _moment(data: Any) -> ex.Expr | None:
    if data is None:
        return None
    kind, value = data
    return ex.Timestamp(int(value)) if kind == "Timestamp" else ex.Literal(int(value))

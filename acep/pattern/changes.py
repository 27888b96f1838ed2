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

__all__ = ["change_arcs", "difference", "graph_data", "graph_of", "replace_arcs_since"]


def change_arcs(
    query: Query,
    add: Iterable[GraphArc],
    remove: Iterable[GraphArc],
    final: Iterable[str],
    since: ex.Expr | None,
    is_over: Callable[[ex.Expr], bool],
) -> Query:
    """Return an automaton with other arcs, of which those to ``add`` are valid from the time ``since`` on, and those to
    ``remove`` before it (``None``: no event has come, so that they never were). The new states in ``final`` are final.
    Arcs that end at a time for which ``is_over`` is true are left out.

    An arc that is removed is one that is valid at that time; else the first one that begins later.

    Raises :class:`QueryError` for an arc that is not there, or that would be valid before that time.
    """
    graph = query.graph
    assert graph is not None
    add, final = tuple(add), tuple(final)
    arcs = [graph_arc for graph_arc in graph.arcs if graph_arc.until is None or not is_over(graph_arc.until)]
    for removed_arc in remove:
        index = _index_of_arc(arcs, removed_arc, since)
        if index is None:
            raise QueryError(
                f"there is no arc {arc_text(removed_arc)}",
                hint="remove= takes arcs as they were added",
                code="query_change",
            )
        arcs[index : index + 1] = [] if since is None else [replace(arcs[index], until=since)]
    for graph_arc in add:
        if since is not None and graph_arc.since is not None and _tick_or_ns(graph_arc.since) < _tick_or_ns(since):
            raise QueryError(
                f"arc {graph_arc.source} -> {graph_arc.target} begins before the change",
                hint="events that have come take the arcs as they were; revise() reaches back to them",
                code="query_change",
            )
    new_arcs = [graph_arc if graph_arc.since is not None else replace(graph_arc, since=since) for graph_arc in add]
    for name in final:
        if not isinstance(name, str) or not name:
            raise QueryError(f"a state has a name, which {name!r} is not", code="query_change")
        if name in graph.states and name not in graph.final:
            raise QueryError(
                f"state `{name}` is not new, so it cannot become final",
                hint="give a state of another name",
                code="query_change",
            )
    return _with_arcs(query, [*arcs, *new_arcs], new_arcs, final, since)


def replace_arcs_since(query: Query, other: Query, since: ex.Expr, is_over: Callable[[ex.Expr], bool]) -> Query:
    """Return an automaton that is as another one for events from the time ``since`` on, which may have come already.
    Arcs that end at a time for which ``is_over`` is true are left out.

    Raises :class:`QueryError` if they differ in more than arcs and new states.
    """
    _, _, final = difference(query, other)
    graph, new = query.graph, other.graph
    assert graph is not None
    assert new is not None
    arcs, unmatched_arcs, new_arcs = list[GraphArc](), list(new.arcs), list[GraphArc]()
    for graph_arc in graph.arcs:
        equal_index = next(
            (i for i, arc in enumerate(unmatched_arcs) if arc_text(arc) == _text_without_times(graph_arc)), None
        )
        has_begun = graph_arc.since is None or _tick_or_ns(graph_arc.since) < _tick_or_ns(since)
        if has_begun and graph_arc.until is None and equal_index is not None:
            arcs.append(graph_arc)
            del unmatched_arcs[equal_index]
        elif has_begun and not (graph_arc.until is not None and is_over(graph_arc.until)):
            arcs.append(replace(graph_arc, until=since) if _lasts(graph_arc, since) else graph_arc)
    for graph_arc in unmatched_arcs:
        begins_later = graph_arc.since is not None and _tick_or_ns(graph_arc.since) > _tick_or_ns(since)
        new_arcs.append(graph_arc if begins_later else replace(graph_arc, since=since))
    return _with_arcs(query, [*arcs, *new_arcs], new_arcs, final, since)


def _with_arcs(
    query: Query, arcs: Sequence[GraphArc], new_arcs: Sequence[GraphArc], final: Iterable[str], since: ex.Expr | None
) -> Query:
    """Return an automaton with these arcs, which must be right from a time on, and more final states. The
    ``new_arcs`` were not there before."""
    graph = query.graph
    assert graph is not None
    changed_graph = replace(
        graph,
        arcs=tuple(arcs),
        final=tuple(dict.fromkeys([*graph.final, *final])),
        named=graph.states,
        bound=graph.variables,
    )
    check_registers(changed_graph, new_arcs)
    if any(graph_arc.epsilon for graph_arc in new_arcs):
        check_cycles(graph_arc for graph_arc in arcs if _lasts(graph_arc, since))
    return replace(query, pattern=changed_graph, text="")  # canonical() writes it where it is read


def difference(query: Query, other: Query) -> tuple[list[GraphArc], list[GraphArc], list[str]]:
    """Return what changes an automaton into another one: the arcs to add, those to remove, and new final states.

    Raises :class:`QueryError` if they differ in more than arcs and new states.
    """
    old, new = query.graph, other.graph
    if old is None or new is None:
        raise QueryError("only an automaton can replace an automaton", code="query_change")
    for name, old_value, new_value in (
        ("registers", old.registers, new.registers),
        ("start", old.start, new.start),
        ("keys", query.ties, other.ties),
        ("window", query.within, other.within),
    ):
        if old_value != new_value:
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
    old_texts = [_text_without_times(graph_arc) for graph_arc in old.arcs if graph_arc.until is None]
    new_texts = [_text_without_times(graph_arc) for graph_arc in new.arcs]
    add = [graph_arc for graph_arc in new.arcs if _text_without_times(graph_arc) not in old_texts]
    remove = [
        graph_arc
        for graph_arc in old.arcs
        if graph_arc.until is None and _text_without_times(graph_arc) not in new_texts
    ]
    return add, remove, [name for name in new.final if name not in old.states]


def _text_without_times(graph_arc: GraphArc) -> str:
    """Return an arc as a text without the times for which it is valid."""
    return arc_text(replace(graph_arc, since=None, until=None))


def _index_of_arc(arcs: Sequence[GraphArc], removed_arc: GraphArc, since: ex.Expr | None) -> int | None:
    """Return the index of the arc that is removed at a time, as which ``removed_arc`` was added, or ``None``."""
    ends = removed_arc.source, removed_arc.target
    indices = [
        i
        for i, graph_arc in enumerate(arcs)
        if (graph_arc.source, graph_arc.target) == ends and _lasts(graph_arc, since)
    ]
    begun_indices = [i for i in indices if _has_begun(arcs[i], since)]
    plain = replace(removed_arc, since=None, until=None)
    text = arc_text(plain)

    def is_same(
        graph_arc: GraphArc,
    ) -> bool:  # a fence that was written before is the same object, so that no text need be made
        has_same_fence = (
            graph_arc.fence is removed_arc.fence
            and not removed_arc.transfer
            and replace(graph_arc, since=None, until=None) == plain
        )
        return has_same_fence or _text_without_times(graph_arc) == text

    return next((i for i in (*begun_indices, *indices) if is_same(arcs[i])), None)


def _has_begun(graph_arc: GraphArc, since: ex.Expr | None) -> bool:
    """Return whether an arc is valid at a time, or was before."""
    return graph_arc.since is None or since is None or _tick_or_ns(graph_arc.since) <= _tick_or_ns(since)


def _lasts(graph_arc: GraphArc, since: ex.Expr | None) -> bool:
    """Return whether an arc is still valid at a time."""
    return graph_arc.until is None or since is None or _tick_or_ns(graph_arc.until) > _tick_or_ns(since)


def _tick_or_ns(moment: ex.Expr) -> int:
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
                graph_arc.source,
                graph_arc.target,
                None if graph_arc.fence is None else expression_text(graph_arc.fence),
                {name: expression_text(value) for name, value in graph_arc.transfer},
                graph_arc.var,
                graph_arc.epsilon,
                graph_arc.ignorable,
                *(
                    None if moment is None else [type(moment).__name__, _tick_or_ns(moment)]
                    for moment in (graph_arc.since, graph_arc.until)
                ),
            ]
            for graph_arc in graph.arcs
        ],
    }


def graph_of(graph: StateGraph, data: Mapping[str, Any]) -> StateGraph:
    """Return an automaton that has changed, from :func:`graph_data`.

    Raises :class:`QueryError`, :class:`KeyError`, :class:`TypeError` or :class:`ValueError` for other data.
    """
    arcs = []
    for source, target, fence, transfer, var, epsilon, ignorable, since, until in data["arcs"]:
        bind = None if epsilon or ignorable else var
        graph_arc = arc(source, target, fence, transfer, bind=bind, epsilon=epsilon, ignorable=ignorable)
        arcs.append(replace(graph_arc, since=_moment(since), until=_moment(until)))
    changed_graph = replace(
        graph, arcs=tuple(arcs), final=_names(data["final"]), named=_names(data["named"]), bound=_names(data["bound"])
    )
    check_graph(changed_graph, everywhere=False)
    return changed_graph


def _names(data: Sequence[Any]) -> tuple[str, ...]:
    if not all(isinstance(name, str) for name in data):
        raise ValueError("names")
    return tuple(data)


def _moment(data: Any) -> ex.Expr | None:
    if data is None:
        return None
    kind, value = data
    return ex.Timestamp(int(value)) if kind == "Timestamp" else ex.Literal(int(value))

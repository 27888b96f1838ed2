"""Convert the state of a reference runtime to JSON-like data and back; shared trails are stored once, by number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from acep.automaton.arcs import Crossing
from acep.automaton.graph import OF_REGISTER
from acep.errors import SnapshotError
from acep.plan.schema import Kind
from acep.reference.choosing import Complete
from acep.reference.engine import CrossingHistory, Event, MatchNode, Trail
from acep.reference.program import UNBOUND
from acep.reference.runtime import Partition, ReferenceRuntime, Undecided

__all__ = ["dump_runtime", "load_runtime"]

Link: TypeAlias = Trail | CrossingHistory


def dump_runtime(runtime: ReferenceRuntime) -> dict[str, Any]:
    """Return the state of a reference runtime as data."""
    counts = runtime.counts
    return {
        "counts": [counts.events, counts.late, counts.nodes, counts.touches, counts.matches],
        "position": runtime.position,
        "clock": runtime.clock,
        "swept": runtime.swept,
        "keeps": runtime.keeps_positions,
        "partitions": [[_dump_value(key), _dump_partition(p)] for key, p in runtime.partitions.items()],
    }


def load_runtime(runtime: ReferenceRuntime, data: Any) -> None:
    """Fill a new reference runtime from data.

    Raises :class:`SnapshotError` if the data do not have the form of a state of this plan.
    """
    try:
        c = runtime.counts
        c.events, c.late, c.nodes, c.touches, c.matches = (_int(x) for x in data["counts"])
        runtime.position = _int(data["position"])
        runtime.clock = None if data["clock"] is None else _int(data["clock"])
        runtime.swept = None if data["swept"] is None else _int(data["swept"])
        runtime.keeps_positions = bool(data["keeps"])
        for key, partition in data["partitions"]:
            values = _load_value(key)
            _check_row(runtime, runtime.plan.keys, values)
            runtime.partitions[values] = _load_partition(runtime, values, partition)
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        raise SnapshotError("the snapshot does not hold a state of this query", code="state_damaged") from None


def _dump_value(value: Any) -> Any:
    """Return a value as JSON: tuples and UNBOUND are tagged, all else is JSON already."""
    if value is UNBOUND:
        return ["u"]
    if isinstance(value, tuple):
        return ["t", *map(_dump_value, value)]
    return value


def _load_value(value: Any) -> Any:
    if isinstance(value, list):
        if value == ["u"]:
            return UNBOUND
        if not value or value[0] != "t":
            raise ValueError("value")
        return tuple(map(_load_value, value[1:]))
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError("value")


def _int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("integer")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("text")
    return value


def _identity(runtime: ReferenceRuntime, value: Any) -> int | str:
    schema = runtime.plan.schema
    texts = schema.id is not None and schema.kind(schema.id) is Kind.STRING
    return _text(value) if texts else _int(value)


PYTHON_TYPES: dict[Kind, tuple[type, ...]] = {
    Kind.BOOL: (bool,),
    Kind.INT: (int,),
    Kind.FLOAT: (int, float),
    Kind.STRING: (str,),
    Kind.TIMESTAMP: (int,),
    Kind.NULL: (),
}


def _check_value(runtime: ReferenceRuntime, column: str, value: Any) -> None:
    """Raise :class:`ValueError` for a value that is neither null nor of its column's kind."""
    types = PYTHON_TYPES[runtime.plan.schema.engine_kind(column)]
    if value is not None and (not isinstance(value, types) or isinstance(value, bool) > (bool in types)):
        raise ValueError("value")


def _check_row(runtime: ReferenceRuntime, columns: tuple[str, ...], row: Any) -> None:
    if not isinstance(row, tuple):
        raise ValueError("row")
    for column, value in zip(columns, row, strict=True):
        _check_value(runtime, column, value)


def _check_registers(runtime: ReferenceRuntime, state: int, values: Any) -> None:
    if not isinstance(values, tuple):
        raise ValueError("registers")
    for register, value in zip(runtime.plan.program.layouts[state], values, strict=True):
        if value is UNBOUND:
            continue
        if register.kind in ("count", "nonnull"):
            _int(value)
        elif register.kind != "frames":
            _check_value(runtime, (OF_REGISTER if register.kind == "field" else "") + register.name, value)
        elif not isinstance(value, tuple) or not all(map(_is_frame, value)):
            raise ValueError("frames")


def _is_frame(value: Any) -> bool:
    return isinstance(value, tuple) and not any(isinstance(v, tuple) or v is UNBOUND for v in value)


def _dump_partition(partition: Partition) -> dict[str, Any]:
    trails: dict[int, int] = {}
    trail_rows: list[Any] = []
    histories: dict[int, int] = {}
    history_rows: list[Any] = []

    def trail_number(trail: Trail) -> int:
        return _number(trail, trails, trail_rows, lambda link: [link.var, _dump_event(link.event)])

    def history_number(history: CrossingHistory | None) -> int:
        if history is None:
            return -1
        return _number(
            history, histories, history_rows, lambda link: [_dump_crossings(link.crossings), list(link.resets)]
        )

    nodes = [
        [n.state, _dump_value(n.registers), n.error, trail_number(n.trail), history_number(n.history)]
        for n in partition.nodes
    ]
    undecided = [
        [trail_number(u.trail), [[e, history_number(h), _dump_crossings(c)] for e, h, c in u.options]]
        for u in partition.undecided
    ]
    return {
        "position": partition.position,
        "trails": trail_rows,
        "histories": history_rows,
        "nodes": nodes,
        "undecided": undecided,
        "recent": [[_dump_event(e), kind] for e, kind in partition.recent],
        "waiting": [_dump_complete(m) for m in partition.waiting],
        "ready": [_dump_complete(m) for m in partition.ready],
        "last": partition.last,
        "bundle": partition.bundle,
    }


def _number(link: Link, numbers: dict[int, int], rows: list[Any], describe: Callable[[Any], list[Any]]) -> int:
    """Return the number of a link of a chain. The link and those before it get numbers and rows, if they have none."""
    todo: list[Link] = []
    current: Link | None = link
    while current is not None and id(current) not in numbers:
        todo.append(current)
        current = current.previous
    number = -1 if current is None else numbers[id(current)]
    for new_link in reversed(todo):
        rows.append([number, *describe(new_link)])
        number = numbers[id(new_link)] = len(rows) - 1
    return number


@dataclass(frozen=True)
class _LoadedLinks:
    """The trails and the histories of a partition, by the numbers that its state has for them."""

    runtime: ReferenceRuntime
    trails: list[Trail]
    histories: list[CrossingHistory]

    def trail_at(self, number: Any) -> Trail:
        """Return a trail. Raises :class:`ValueError` for no number of one, as :meth:`history_at` does."""
        if not 0 <= _int(number) < len(self.trails):
            raise ValueError("trail")
        return self.trails[_int(number)]

    def history_at(self, number: Any, trail: Trail) -> CrossingHistory | None:
        """Return the history that goes with a trail, which has a link for each of its events; -1: there is none."""
        plan = self.runtime.plan
        if number == -1 and plan.parts and not plan.automaton.negations:
            return _empty_history(trail)  # an older state, to which no negation comes
        if not -1 <= _int(number) < len(self.histories) or (number < 0) == self.runtime.engine.keeps_history:
            raise ValueError("history")
        history = self.histories[number] if number >= 0 else None
        length, steps = 0, history
        while steps is not None:
            length, steps = length + 1, steps.previous
        if history is not None and length != len(trail.steps()):
            raise ValueError("history")
        return history


def _empty_history(trail: Trail) -> CrossingHistory | None:
    empty: CrossingHistory | None = None
    for _ in trail.steps():
        empty = CrossingHistory((), (), empty)
    return empty


def _load_links(runtime: ReferenceRuntime, data: Any) -> _LoadedLinks:
    plan = runtime.plan
    variables = set(plan.variables)
    trails: list[Trail] = []
    for previous_number, var, event in data["trails"]:
        if not -1 <= _int(previous_number) < len(trails) or var not in variables:
            raise ValueError("trail")
        trails.append(
            Trail(_load_event(runtime, event), var, trails[previous_number] if previous_number >= 0 else None)
        )
    histories: list[CrossingHistory] = []
    for previous_number, crossings, resets in data["histories"]:
        if not -1 <= _int(previous_number) < len(histories):
            raise ValueError("history")
        if any(not 0 <= _int(g) < len(plan.automaton.groups) for g in resets):
            raise ValueError("group")
        previous = histories[previous_number] if previous_number >= 0 else None
        histories.append(CrossingHistory(_load_crossings(runtime, crossings), tuple(resets), previous))
    return _LoadedLinks(runtime, trails, histories)


def _load_node(links: _LoadedLinks, data: Any) -> MatchNode:
    state, registers, error, trail, history = data
    if not 0 < _int(state) < len(links.runtime.plan.arcs.states):
        raise ValueError("state")
    values = _load_value(registers)
    _check_registers(links.runtime, state, values)
    bound = links.trail_at(trail)
    return MatchNode(state, values, _int(error), bound, links.history_at(history, bound))


def _load_undecided(links: _LoadedLinks, data: Any) -> Undecided:
    trail, options = data
    bound = links.trail_at(trail)
    if not options:
        raise ValueError("options")
    loaded = [(_int(e), links.history_at(h, bound), _load_crossings(links.runtime, c)) for e, h, c in options]
    return Undecided(bound, loaded)


def _load_partition(runtime: ReferenceRuntime, key: tuple[Any, ...], data: Any) -> Partition:
    links = _load_links(runtime, data)
    last = data["last"]
    if last is not None:
        point, position = last
        last = (_int(point), _int(position))
    recent = []
    for event, kind in data["recent"]:
        recent.append((_load_event(runtime, event), None if kind is None else _text(kind)))
    return Partition(
        position=_int(data["position"]),
        nodes=[_load_node(links, node) for node in data["nodes"]],
        recent=recent,
        undecided=[_load_undecided(links, undecided) for undecided in data["undecided"]],
        waiting=[_load_complete(runtime, key, m) for m in data["waiting"]],
        ready=[_load_complete(runtime, key, m) for m in data["ready"]],
        last=last,
        bundle=_int(data["bundle"]),
    )


def _dump_event(event: Event) -> list[Any]:
    return [event.position, event.ts, event.id, _dump_value(event.row)]


def _load_event(runtime: ReferenceRuntime, data: Any) -> Event:
    position, ts, identity, row = data
    values = _load_value(row)
    columns = runtime.plan.row if runtime.engine.keeps_rows else ()
    if runtime.plan.parts and isinstance(values, tuple):
        values += (None,) * (len(columns) - len(values))  # an earlier version read, or kept, fewer of them
    _check_row(runtime, columns, values)
    return Event(_int(position), _int(ts), _identity(runtime, identity), values)


def _dump_crossings(crossings: tuple[Crossing, ...]) -> list[Any]:
    return [[c.negation, list(c.entered)] for c in crossings]


def _load_crossings(runtime: ReferenceRuntime, data: Any) -> tuple[Crossing, ...]:
    loaded = []
    for negation, entered in data:
        if not 0 <= _int(negation) < len(runtime.plan.automaton.negations):
            raise ValueError("negation")
        loaded.append(Crossing(negation, tuple(_int(g) for g in entered)))
    return tuple(loaded)


def _dump_complete(match: Complete) -> list[Any]:
    return [match.error, _dump_value(match.values), [list(e) for e in match.events]]


def _load_complete(runtime: ReferenceRuntime, key: tuple[Any, ...], data: Any) -> Complete:
    error, values, events = data
    loaded = tuple((_int(p), _int(t), _identity(runtime, i), _text(v)) for p, t, i, v in events)
    if not loaded or any(v not in runtime.plan.variables for *_, v in loaded):
        raise ValueError("events")
    returned = _load_value(values)
    if not isinstance(returned, tuple) or len(returned) != len(runtime.plan.return_names):
        raise ValueError("values")
    return Complete(key, _int(error), returned, loaded)

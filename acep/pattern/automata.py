"""Build queries from hand-written automata: states, arcs with fences and transfers, registers (AFA 2010, section 2.2).

A fence and the new value of a register are expressions as in WHERE. They refer to the event as ``e`` and to the
registers before the arc as ``r``: ``e.price < r.low``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

from acep.display import page_of
from acep.errors import QueryError, suggest
from acep.pattern import expressions as ex
from acep.pattern.graph_check import EVENT, REGISTER, check_graph, references
from acep.pattern.printing import canonical
from acep.pattern.text.predicates import expression
from acep.pattern.text.syntax import branches, read
from acep.pattern.times import ns_of, read_timestamp, window_of
from acep.pattern.tree import GraphArc, GraphRegister, Query, StateGraph, Strategy
from acep.pattern.walk import without_places
from acep.storage.devices import bytes_of_file

__all__ = ["STATE", "Automaton", "arc", "moment_of"]

STATE: Final = "state"
"""The value of a match that names the final state."""
BOUND: Final = "events"
"""The variable of arcs that name none."""

_NAMED: Final[dict[str, type]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "text": str,
    "timestamp": datetime,
    "duration": timedelta,
}
_KINDS: Final[dict[type, str]] = {type_: "string" if type_ is str else name for name, type_ in _NAMED.items()}
_ARC: Final = ("from", "to", "fence", "transfer", "bind", "epsilon", "ignorable", "since", "until")
_PARTS: Final = ("start", "final", "registers", "keys", "window", "arc")
_PREFIX: Final = "PATTERN ANY x RETURN "
CACHE_SIZE: Final = 4096
"""The number of expressions that are kept parsed, and of arcs, as changes write the same ones again."""
_TEXT: Final = (str, type(None))
Moment = int | str | date


def arc(
    source: str,
    target: str,
    fence: str | None = None,
    transfer: Mapping[str, str | bool | float | None] | None = None,
    *,
    bind: str | None = None,
    epsilon: bool = False,
    ignorable: bool = False,
    since: Moment | None = None,
    until: Moment | None = None,
) -> GraphArc:
    """Return an arc of an automaton from one state to another.

    ``fence`` is the condition under which the arc is taken (``None``: always); ``transfer`` maps registers to their
    new values, as expressions or constants. ``bind`` names the variable to which the event is bound. An ``epsilon`` arc
    takes no event and sees registers only. An ``ignorable`` arc, from a state to itself, lets an event pass that is not
    bound. ``since`` and ``until`` are the times of the first event that may take the arc and of the first that may not.

    Raises :class:`~acep.errors.QueryError` for an expression or an option that is invalid.

    >>> down = arc("falling", "falling", "e.price < r.low", {"low": "e.price", "downs": "r.downs + 1"}, bind="down")
    >>> down.var, [name for name, _ in down.transfer]
    ('down', ['low', 'downs'])
    """
    plain = not (transfer or epsilon or ignorable) and since is None and until is None
    if plain and type(source) is type(target) is str and type(fence) in _TEXT and type(bind) in _TEXT:
        return _plain_arc(source, target, fence, bind)
    return _build_arc(source, target, fence, transfer or {}, bind, epsilon, ignorable, (since, until))


@lru_cache(CACHE_SIZE)
def _plain_arc(source: str, target: str, fence: str | None, bind: str | None) -> GraphArc:
    """Make an arc that is no more than its fence; the same arc is the same object."""
    return _build_arc(source, target, fence, {}, bind, False, False, (None, None))


def _build_arc(
    source: str,
    target: str,
    fence: str | None,
    transfer: Mapping[str, str | bool | float | None],
    bind: str | None,
    epsilon: bool,
    ignorable: bool,
    times: tuple[Moment | None, Moment | None],
) -> GraphArc:
    """Make an arc, valid from the first of the ``times`` on and before the second."""
    for name in (source, target):
        if not isinstance(name, str) or not name:
            raise QueryError(f"a state has a name, which {name!r} is not")
    where = f"arc {source} -> {target}"
    if bind is not None and (not isinstance(bind, str) or not bind):
        raise QueryError(f"{where}: bind={bind!r} is no name of a variable")
    if epsilon and (ignorable or bind is not None):
        raise QueryError(f"{where}: an epsilon arc takes no event", hint="leave ignorable and bind out")
    if ignorable and (bind is not None or transfer or source != target):
        hint = "leave bind and transfer out, and let it end where it begins"
        raise QueryError(f"{where}: an ignorable arc changes nothing and binds nothing", hint=hint)
    condition = None if fence is None else _expression(fence, f"{where}, fence")
    sets = []
    for name, value in transfer.items():
        transfer_place = f"{where}, transfer to `{name}`"
        sets.append(
            (
                name,
                _expression(value, transfer_place)
                if isinstance(value, str)
                else ex.Literal(_constant(value, transfer_place)),
            )
        )
    if epsilon and any(leaf.var == EVENT for expr in (condition, *(v for _, v in sets)) for leaf in references(expr)):
        raise QueryError(f"{where}: an epsilon arc takes no event, so it cannot refer to `{EVENT}`")
    since, until = [None if moment is None else moment_of(moment, where) for moment in times]
    return GraphArc(source, target, condition, tuple(sets), bind or BOUND, epsilon, ignorable, since, until)


@dataclass(frozen=True, repr=False)
class Automaton:
    """A hand-written automaton, which is used like a query.

    ``arcs`` are made by :func:`arc`. The automaton begins in the state ``start`` (that in which the first arc begins,
    if none is given) with the initial values of ``registers``. A register is declared by its initial value, or by a
    type for null (``int``, ``float``, ``str``, ``bool``, ``datetime``, ``timedelta``). It accepts events that follow
    each other in the partition and lead to a state of ``final``. All events have the same values of the attributes
    ``keys``, and the last one comes less than ``window`` after the first (AFA 2010, section 2.1: lifetimes
    ``[LE, LE + w)``).

    The values of a match are ``state``, the final state, and the registers.

    Raises :class:`~acep.errors.QueryError` for an automaton that is invalid.

    >>> import acep
    >>> falls = Automaton(
    ...     [
    ...         arc("begin", "falling", transfer={"low": "e.price"}),
    ...         arc("falling", "falling", "e.price < r.low", {"low": "e.price", "downs": "r.downs + 1"}),
    ...         arc("falling", "end", "e.price > r.low AND r.downs >= 2"),
    ...     ],
    ...     final="end",
    ...     registers={"low": float, "downs": 0},
    ...     window=10,
    ... )
    >>> found = acep.match({"ts": [1, 2, 3, 4], "price": [9.0, 8.0, 7.5, 8.0]}, falls, type=None)
    >>> [(m.bindings, m.values) for m in found]
    [({'events': (0, 1, 2, 3)}, {'state': 'end', 'low': 7.5, 'downs': 2})]
    """

    arcs: Several[GraphArc]
    final: str | Several[str] = field(kw_only=True)
    start: str | None = field(default=None, kw_only=True)
    registers: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    keys: str | Several[str] = field(default=(), kw_only=True)
    window: float | Fraction | str | timedelta | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        return f"Automaton({self.query})"

    def _repr_html_(self) -> str | None:
        return page_of(self)

    def __post_init__(self) -> None:
        _ = self.query  # an automaton that is invalid is refused where it is written

    @classmethod
    def from_toml(cls, source: str | Path) -> Automaton:
        """Read an automaton from a TOML file (a :class:`~pathlib.Path`) or its text.

        Raises :class:`~acep.errors.QueryError` for a text that is no such automaton.

        >>> Automaton.from_toml('''
        ... final = "end"
        ... registers = { last = "float" }
        ... window = "1 hour"
        ... [[arc]]
        ... from = "begin"
        ... to = "end"
        ... fence = "e.type = 'stop'"
        ... transfer = { last = "e.x" }
        ... ''').final
        'end'
        """
        import tomllib

        try:
            text = bytes_of_file(source).decode() if isinstance(source, Path) else source
            data = tomllib.loads(text)
        except OSError as error:
            raise QueryError(f"the automaton cannot be read: {error.strerror or error}", code="file_read") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise QueryError(f"this is no TOML: {error}", code="query_syntax") from None
        _check_names(data, _PARTS, "an automaton")
        arcs = data.get("arc", [])
        if not isinstance(arcs, list) or not all(isinstance(table, dict) for table in arcs):
            raise QueryError("the arcs of an automaton are tables", hint="write [[arc]] before each")
        registers = data.get("registers", {})
        if not isinstance(registers, dict):
            raise QueryError("the registers of an automaton are a table", hint='registers = { low = "float", n = 0 }')
        if "final" not in data:
            raise QueryError("an automaton needs final states", hint='final = "end"')
        # A text names a type; a text as initial value stands in a list.
        declared = {name: _read_initial_value(name, value) for name, value in registers.items()}
        options = {name: data[name] for name in ("final", "start", "keys", "window") if name in data}
        return cls([_arc_of(table) for table in arcs], registers=declared, **options)

    @cached_property
    def query(self) -> Query:
        """Return the automaton as a query."""
        if not self.arcs or not all(isinstance(graph_arc, GraphArc) for graph_arc in self.arcs):
            raise QueryError("an automaton needs arcs", hint='acep.arc("begin", "end", "e.x > 3")')
        registers = tuple(_register(name, value) for name, value in self.registers.items())
        final = (self.final,) if isinstance(self.final, str) else tuple(dict.fromkeys(self.final))
        graph = StateGraph(self.start or self.arcs[0].source, final, registers, tuple(self.arcs))
        check_graph(graph)
        keys = (self.keys,) if isinstance(self.keys, str) else tuple(dict.fromkeys(self.keys))
        within = window_of(self.window)
        if within is not None and within.amount == 0:
            raise QueryError("a window of 0 holds no event", hint="window=None is no limit")
        query = Query("", graph, Strategy.PARTITION_CONTIGUITY, ties=keys, within=within)
        return Query(canonical(query), graph, Strategy.PARTITION_CONTIGUITY, ties=keys, within=within)


def _check_names(data: Mapping[str, Any], names: Several[str], what: str) -> None:
    for name in data:
        if name not in names:
            raise QueryError(f"{what} has no `{name}`", hint=suggest(name, names), code="query_name")


def _arc_of(data: dict[str, Any]) -> GraphArc:
    _check_names(data, _ARC, "an arc")
    for name in ("from", "to"):
        if name not in data:
            raise QueryError(f"an arc needs `{name}`", hint='from = "begin", to = "end"')
    options = {name: data[name] for name in _ARC[2:] if name in data}
    for name, kind in (("fence", str), ("transfer", dict), ("epsilon", bool), ("ignorable", bool)):
        if name in options and not isinstance(options[name], kind):
            raise QueryError(f"arc {data['from']} -> {data['to']}: `{name}` is no {kind.__name__}")
    return arc(data["from"], data["to"], **options)


def _read_initial_value(name: str, value: Any) -> Any:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return value[0]
    if isinstance(value, str):
        if value not in _NAMED:
            hint = f"a type ({', '.join(_NAMED)}), a number, true or false, or a text in brackets"
            raise QueryError(f"register `{name}`: `{value}` is no type", hint=hint, code="query_type")
        return _NAMED[value]
    return value


def _register(name: str, value: Any) -> GraphRegister:
    if name == STATE:
        raise QueryError(f"a register cannot be called `{STATE}`", hint=f"the value `{STATE}` is the final state")
    if isinstance(value, type):
        if value not in _KINDS:
            raise QueryError(
                f"register `{name}`: no register holds a {value.__name__}",
                hint="int, float, str, bool, datetime, timedelta",
            )
        return GraphRegister(name, _KINDS[value], None)
    if isinstance(value, datetime):
        raise QueryError(f"register `{name}`: a time cannot be an initial value", hint="datetime: null at first")
    if isinstance(value, timedelta):
        hint = f"timedelta: null at first, and coalesce(r.{name}, 0 s) in an arc"
        raise QueryError(f"register `{name}`: a duration cannot be an initial value", hint=hint)
    initial_value = _constant(value, f"register `{name}`")
    if initial_value is None:
        raise QueryError(
            f"register `{name}` has no type", hint="give int, float, str, bool, datetime or timedelta for null"
        )
    return GraphRegister(name, _KINDS[type(initial_value)], initial_value)


def _constant(value: Any, where: str) -> bool | int | float | str | None:
    has_register_type = (
        value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))
    )
    if not has_register_type or (isinstance(value, int) and not -(2**63) <= value < 2**63):
        raise QueryError(
            f"{where}: {value!r} is no value of a register", hint="a number, a text, true or false", code="query_type"
        )
    constant: bool | int | float | str | None = value
    return constant


def _expression(text: Any, where: str) -> ex.Expr:
    """Parse an expression over ``e`` and ``r``."""
    if not isinstance(text, str):
        raise QueryError(f"{where}: an expression is a text, not {text!r}", code="option_invalid")
    try:
        return _parse(text)
    except QueryError as error:
        raise QueryError(f"{where}: {error.message}", hint=error.hint, code=error.code) from None
    except ValueError:
        raise QueryError(f"{where}: `{text[:60]}` is no expression", code="query_syntax") from None


@lru_cache(CACHE_SIZE)
def _parse(text: str) -> ex.Expr:
    """Parse an expression; the same text gives the same object."""
    (returns,) = branches(branches(read("sase", f"{_PREFIX}{text} AS y"))[0], "returns")
    (named,) = branches(returns)
    expr = expression(branches(named)[0])
    for leaf in references(expr):
        if not isinstance(leaf, ex.Attribute) or leaf.index is not None or leaf.var not in (EVENT, REGISTER):
            hint = f"`{EVENT}.price` is the event's, `{REGISTER}.low` a register's value before the arc"
            raise QueryError("an arc sees one event and the registers", hint=hint)
    return without_places(expr)


def moment_of(value: Any, where: str) -> ex.Expr:
    """Return a time of an arc as an expression. Raises :class:`~acep.errors.QueryError` for a value that is no time."""
    if isinstance(value, date):  # TOML has dates as well
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        return ex.Timestamp(ns_of(moment))
    if isinstance(value, str):
        return ex.Timestamp(read_timestamp(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return ex.Literal(value)
    raise QueryError(f"{where}: {value!r} is no time", hint="an integer, a text such as '2026-01-31 10:00', a datetime")

"""Match a hand-written automaton by joins of standard operators that feed back: the paper's IPM, as a baseline.

Partial matches are rows. One join pairs each with the arcs that leave its state, a second one with the event of the
next number; what comes out is fed back (AFA 2010, section 6.2). All rows of a push that are equally long are joined at
once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import acep
from acep.pattern import expressions as ex

__all__ = ["Joins"]

Columns = dict[str, npt.NDArray[Any]]
FIRST, NEXT = " first", " next"  # columns of partial matches: the number of their first event, and of the next one
OPERATIONS = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "=": np.equal, "!=": np.not_equal, "<": np.less,
    "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip
CALLS: dict[str, Any] = {"floor": np.floor, "sign": np.sign, "abs": np.abs}


class Joins:
    """An automaton over one partition whose window counts events, in order. ``matches`` counts those so far.

    >>> up = acep.arc("begin", "end", "e.x > 1")
    >>> joins = Joins(acep.Automaton([up], final="end", window="5 events"))
    >>> joins.push(pa.table({"x": [5, 0, 7]}))
    >>> joins.matches
    2
    """

    def __init__(self, automaton: acep.Automaton) -> None:
        graph, within = automaton.query.graph, automaton.query.within
        assert graph is not None
        assert within is not None
        self._graph, self._window = graph, int(within.amount)
        self._initial = {register.name: _constant(register.initial) for register in graph.registers}
        self._waiting: dict[str, Columns] = {}  # by state, partial matches whose next event is in the next push
        self._came = 0
        self.matches = 0

    def push(self, events: pa.Table) -> None:
        """Feed events."""
        columns = {name: events.column(name).to_numpy() for name in events.column_names if _is_numeric(events, name)}
        begin, end = self._came, self._came + len(events)
        numbers = np.arange(begin, end)
        registers = {name: np.full(len(numbers), value, np.float64) for name, value in self._initial.items()}
        rows = {state: waiting for state, waiting in self._waiting.items() if state != self._graph.start}
        rows[self._graph.start] = {FIRST: numbers, NEXT: numbers} | registers
        self._waiting, self._came = {}, end
        while rows:
            rows = self._join(rows, columns, begin, end)

    def _join(self, rows: Mapping[str, Columns], events: Columns, begin: int, end: int) -> dict[str, Columns]:
        """Join partial matches with arcs and events; return those that are fed back, by state."""
        parts_by_target: dict[str, list[Columns]] = {}
        for arc in self._graph.arcs:
            partials = rows.get(arc.source)
            if partials is None:
                continue
            event = {f"e.{name}": values[partials[NEXT] - begin] for name, values in events.items()}
            operands = event | {f"r.{name}": partials[name] for name in self._initial}
            keep = np.ones(len(partials[NEXT]), np.bool_) if arc.fence is None else _evaluate(arc.fence, operands)
            new_registers = {
                name: np.broadcast_to(_evaluate(expr, operands), keep.shape) for name, expr in arc.transfer
            }
            advanced = partials | {NEXT: partials[NEXT] + 1} | new_registers
            parts_by_target.setdefault(arc.target, []).append({name: values[keep] for name, values in advanced.items()})
        fed: dict[str, Columns] = {}
        for state, parts in parts_by_target.items():
            joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            if state in self._graph.final:
                stacked = np.stack([values.astype(np.float64) for values in joined.values()])
                self.matches += np.unique(stacked, axis=1).shape[1]
            joined = _keep_rows(joined, joined[NEXT] - joined[FIRST] < self._window)
            late = joined[NEXT] == end
            if late.any():
                self._put_aside(state, _keep_rows(joined, late))
            if not late.all():
                fed[state] = _keep_rows(joined, ~late)
        return fed

    def _put_aside(self, state: str, rows: Columns) -> None:
        waiting = self._waiting.get(state)
        self._waiting[state] = rows if waiting is None else {n: np.concatenate([waiting[n], rows[n]]) for n in rows}


def _keep_rows(rows: Columns, keep: npt.NDArray[np.bool_]) -> Columns:
    return {name: values[keep] for name, values in rows.items()}


def _evaluate(expr: ex.Expr, operands: Columns) -> Any:
    """Return the value of an expression for each row."""
    if isinstance(expr, ex.Literal):
        return expr.value
    if isinstance(expr, ex.Attribute):
        return operands[f"{expr.var}.{expr.name}"]
    if isinstance(expr, ex.Unary):
        return (
            np.logical_not(_evaluate(expr.operand, operands))
            if expr.op == "not"
            else -_evaluate(expr.operand, operands)
        )
    if isinstance(expr, ex.Binary):
        return OPERATIONS[expr.op](_evaluate(expr.left, operands), _evaluate(expr.right, operands))
    assert isinstance(expr, ex.Call)
    return CALLS[expr.name](*(_evaluate(argument, operands) for argument in expr.args))


def _constant(value: Any) -> float:
    return np.nan if value is None else float(value)


def _is_numeric(events: pa.Table, name: str) -> bool:
    column_type = events.schema.field(name).type
    return pa.types.is_integer(column_type) or pa.types.is_floating(column_type)

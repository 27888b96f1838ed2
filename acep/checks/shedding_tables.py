"""Check that the native core can use a shedding table: its shapes, types and ranges for a given setting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import AGES, SheddingTable, Term, TermKind, Ties

__all__ = ["mistakes"]

MAX_SIZE = 255
MOST_WAITS = 8
FIELDS = ("errors", "windows", "waits", "features")


def mistakes(shedding_table: Any, context: PolicyContext) -> Iterator[str]:
    """Yield the mistakes in a shedding table, each as one line.

    >>> context = PolicyContext(("", "a"), 1, 1, 9, False, ((), ()), (), (((0, 1),), ()), 1, True, "")
    >>> list(mistakes(SheddingTable.flat(context), context)), list(mistakes(None, context))
    ([], ['it gives a NoneType, not SheddingTable'])
    """
    if not isinstance(shedding_table, SheddingTable):
        yield f"it gives a {type(shedding_table).__name__}, not SheddingTable"
        return
    grid = shedding_table.grid
    if (grid.states, grid.span) != (context.states, context.span):
        yield f"grid has {grid.states} states and a window of {grid.span}, not {context.states} and {context.span}"
        return
    for name in FIELDS:
        limit = MOST_WAITS if name == "waits" else MAX_SIZE
        if not 1 <= getattr(grid, name) <= limit:
            yield f"grid.{name} is {getattr(grid, name)}, not 1 to {limit}"
    yield from _array("level", shedding_table.level, np.uint8, (grid.vectors,))
    yield from _array("decay", shedding_table.decay, np.float64, (context.states,), minimum=0.0)
    yield from _array("later", shedding_table.later, np.int8, (context.states, AGES))
    yield from _admit(shedding_table.admit, context)
    if shedding_table.terms and len(shedding_table.terms) != context.states:
        yield f"terms are of {len(shedding_table.terms)} states, not of {context.states}"
    else:
        for state, terms in enumerate(shedding_table.terms):
            for number, term in enumerate(terms):
                yield from (f"terms[{state}][{number}]{mistake}" for mistake in _term(term, context, state))
    if shedding_table.ties not in tuple(Ties):
        yield f"ties is {shedding_table.ties!r}, none of {', '.join(ties.name for ties in Ties)}"
    if not isinstance(shedding_table.noise, int | np.integer) or not 0 <= shedding_table.noise <= MAX_SIZE:
        yield f"noise is {shedding_table.noise!r}, not a whole number from 0 to {MAX_SIZE}"
    for name in ("sample", "shadow"):
        share = getattr(shedding_table, name)
        if not isinstance(share, int | float | np.floating) or not 0 <= share <= 1:
            yield f"{name} is {share!r}, not a share from 0 to 1"


def _array(name: str, array: Any, kind: type, shape: tuple[int, ...], minimum: float | None = None) -> Iterator[str]:
    if not isinstance(array, np.ndarray):
        yield f"{name} is a {type(array).__name__}, not an array"
    elif array.shape != shape:
        yield f"{name} has the shape {array.shape}, not {shape}"
    elif array.dtype != kind:
        yield f"{name} is of {array.dtype}, not of {np.dtype(kind)}"
    elif array.dtype.kind == "f" and not np.isfinite(array).all():
        yield f"{name} holds numbers that are not finite"
    elif minimum is not None and (array < minimum).any():
        yield f"{name} holds numbers below {minimum}"


def _admit(admit: Any, context: PolicyContext) -> Iterator[str]:
    if not isinstance(admit, np.ndarray) or admit.ndim != 2 or not 1 <= admit.shape[1] <= MAX_SIZE:
        yield f"admit is no array of event classes by 1 to {MAX_SIZE} places"
    elif len(admit):
        yield from _array("admit", admit, np.uint8, (context.classes, admit.shape[1]))
        if not context.loses_only:
            yield "admit keeps events out, and a skipped event may make matches (PolicyContext.loses_only)"


def _term(term: Any, context: PolicyContext, state: int) -> Iterator[str]:
    if not isinstance(term, Term) or term.kind not in tuple(TermKind):
        yield " is no Term"
        return
    kinds = {register.slot: register.kind for register in context.registers[state]}
    slots = {TermKind.PARTITION: [], TermKind.RATIO: [term.a, term.b], TermKind.DIFFERENCE: [term.a, term.b]}.get(
        term.kind, [term.a]
    )
    for slot in slots:
        register_kind = kinds.get(slot)
        if register_kind is None:
            yield f" speaks of slot {slot}, which holds no register that a policy is told of"
        elif (term.kind is TermKind.TEXT) != (register_kind == "text") and term.kind is not TermKind.HASHED:
            yield f" makes {term.kind.name} of slot {slot}, which holds {register_kind}"
        elif not term.hashed and term.floats != (register_kind == "float"):
            yield f" takes slot {slot} for {'a float' if term.floats else 'an int'}, and it holds {register_kind}"
    bounds, utilities = np.asarray(term.bounds), np.asarray(term.worth)
    if bounds.ndim != 1 or bounds.dtype != np.float64 or not np.isfinite(bounds).all() or (np.diff(bounds) < 0).any():
        yield ".bounds are no rising, finite float64 numbers"
    elif utilities.ndim != 1 or utilities.dtype.kind != "f" or not np.isfinite(utilities).all():
        yield ".worth holds numbers that are not finite"
    elif len(utilities) not in (0, term.bins + 1):
        yield f".worth has {len(utilities)} entries, not {term.bins + 1} (one for each bin, and one for no number)"

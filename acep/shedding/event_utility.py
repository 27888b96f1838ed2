"""The utility of single events by type and values, learned ahead: which events to keep if not all can be carried.

Where dropping an event cannot create a match, single events may be shed. An event falls into a *cell* by its type and
by the bins of up to two numeric attributes. The cells have an order, the most useful first. ``acep.learn`` finds the
order, and measures the recall of match points if only the first cells are kept (:mod:`acep.training.events`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import SnapshotError
from acep.pattern.tree import Strategy
from acep.plan.compile import Plan
from acep.plan.schema import Kind
from acep.storage.plain_data import from_bytes, to_bytes

__all__ = ["CELLS", "SECTION", "EventUtility", "bin_values", "is_sheddable", "numeric_attributes"]

SECTION = "events"
"""The name of the section of a history file."""
CELLS = 256  # most cells
GAIN = 0.1  # share of the loss under equal chances that an order must avoid, or it is not used
FULL = 0.7  # share of the wanted events that the first cells must come to, or an order is not used

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def is_sheddable(plan: Plan) -> bool:
    """Return whether any events of a stream can be left out without creating a match of the plan.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> text = "PATTERN SEQ(A a, {}B b) WHERE skip_till_{}_match(a, b) WITHIN 5 s"
    >>> [is_sheddable(assumed_plan(acep.parse(text.format(*one)))) for one in (("", "any"), ("", "next"))]
    [True, False]
    """
    if plan.query.strategy is not Strategy.SKIP_TILL_ANY_MATCH or plan.automaton.negations or plan.sources:
        return False
    return not (plan.window.counted or plan.chooses)


def numeric_attributes(plan: Plan) -> list[str]:
    """Return the attributes that predicates read, if they are integers or floats without a unit."""
    scaled = dict(plan.schema.scales)
    numeric = [name for name in plan.columns if plan.schema.kind(name) in (Kind.INT, Kind.FLOAT)]
    return [name for name in numeric if name not in scaled and name not in (*plan.keys, plan.schema.ts)]


def bin_values(values: Floats, edges: tuple[float, ...]) -> Ints:
    """Return the number of edges that each value reaches; a missing value (NaN) reaches none.

    >>> bin_values(np.array([1.0, 2.0, np.nan]), (2.0, 3.0)).tolist()
    [0, 1, 0]
    """
    return np.where(np.isnan(values), 0, np.searchsorted(edges, values, "right"))


@dataclass(frozen=True)
class EventUtility:
    """An order of cells for the query whose plan has the ``fingerprint``.

    The cell of an event is a mixed-radix number: the index of its type in ``types`` (any other type comes after them),
    then for each of ``bins``, pairs of an attribute and its edges, the number of edges that the value reaches.
    ``order`` has the cells, the most useful first, and ``events`` the share of the training events in each cell.
    ``recall`` has the recall of match points that was found if the first ``n_kept`` cells alone were kept.

    >>> order = EventUtility("", ("a",), (("x", (5.0,)),), (1, 0, 2, 3), (0.3, 0.2, 0.4, 0.1), (1, 2), (0.9, 1.0))
    >>> order.cells({"x": pa.array([7.0, None, 1.0])}, pa.array(["a", "a", "b"])).tolist()
    [1, 0, 2]
    >>> order.keep(0.6, np.array(order.events)), order.keep(0.1, np.array(order.events))
    (2, None)
    """

    fingerprint: str
    types: tuple[str, ...]
    bins: tuple[tuple[str, tuple[float, ...]], ...]
    order: tuple[int, ...]
    events: tuple[float, ...]
    n_kept: tuple[int, ...]
    recall: tuple[float, ...]

    def cells(self, columns: Mapping[str, Any] | pa.Table, types: Any) -> Ints:
        """Return the cell of each event from its Arrow columns and types."""
        import pyarrow.compute as pc

        type_index = pc.index_in(pc.cast(types, pa.string()), value_set=pa.array(self.types, pa.string()))
        cell = type_index.fill_null(len(self.types)).to_numpy(zero_copy_only=False).astype(np.int64)
        for name, edges in self.bins:
            values = pc.cast(columns[name], pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            cell = cell * (len(edges) + 1) + bin_values(values, edges)
        return np.asarray(cell, np.int64)

    def keep(self, share: float, events: Floats) -> int | None:
        """Return how many cells to keep if a ``share`` of the events can be kept; ``None`` if that would not find more
        match points than equal chances. ``events`` are the events in each cell, of shape ``(len(order),)``."""
        shares = self.cumulative_shares(events)
        n_cells = int(np.searchsorted(shares, share, "right")) - 1
        recall = np.interp(n_cells, (0, *self.n_kept, len(self.order)), (0.0, *self.recall, 1.0))
        return n_cells if shares[n_cells] >= FULL * share and recall >= share + GAIN * (1 - share) else None

    def cumulative_shares(self, events: Floats) -> Floats:
        """Return the share of the events in the first 0, 1, 2, ... cells, of shape ``(len(order) + 1,)``."""
        return np.append(0.0, np.cumsum(events[list(self.order)]) / events.sum())

    def to_bytes(self) -> bytes:
        """Return the contents of the file section."""
        names = ("fingerprint", "types", "bins", "order", "events", "n_kept", "recall")
        return to_bytes({"kept" if name == "n_kept" else name: getattr(self, name) for name in names})

    @classmethod
    def from_sections(cls, sections: Mapping[str, bytes]) -> Self | None:
        """Read the file section; return ``None`` if there is none. Raises :class:`SnapshotError` if it is damaged."""
        if SECTION not in sections:
            return None
        try:
            state = from_bytes(sections[SECTION])
            bins = tuple((str(name), _tuple_of(float, edges)) for name, edges in state["bins"])
            order, n_kept = (_tuple_of(int, state[name]) for name in ("order", "kept"))
            events, recall = (_tuple_of(float, state[name]) for name in ("events", "recall"))
            utility = cls(
                str(state["fingerprint"]), _tuple_of(str, state["types"]), bins, order, events, n_kept, recall
            )
        except (ValueError, TypeError, KeyError):
            raise SnapshotError(
                "the history is damaged: the utility of its events cannot be read", code="state_damaged"
            ) from None
        if not utility._is_sound():
            raise SnapshotError(
                "the history is damaged: the utility of its events makes no sense", code="state_damaged"
            )
        return utility

    def _is_sound(self) -> bool:
        size = len(self.types) + 1
        for _, edges in self.bins:
            size *= len(edges) + 1
        floats = np.array([*self.events, *self.recall])
        sound = size <= CELLS and sorted(self.order) == list(range(size)) and len(self.events) == size
        sound = sound and len(self.n_kept) == len(self.recall) and list(self.n_kept) == sorted(set(self.n_kept))
        sound = sound and all(0 < n_cells < size for n_cells in self.n_kept) and sum(self.events) > 0
        sound = sound and all(list(edges) == sorted(set(edges)) for _, edges in self.bins)
        return sound and bool(np.isfinite(floats).all() and (floats >= 0).all() and (floats <= 1).all())


def _tuple_of(kind: Callable[[Any], Any], values: Any) -> tuple[Any, ...]:
    return tuple(kind(value) for value in values)

"""Define the events that arrivals release with a push: those to match now, and those that are taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["ARRIVAL", "ReleasedEvents"]

ARRIVAL = "__arrival"
"""The column with the number of a row, in the order of arrival."""


@dataclass(frozen=True)
class ReleasedEvents:
    """The events that are released after a push. ``order``: the places of the ``rows`` in the order of the stream
    (``None``: they are in order). The first ``inserted`` in that order belong before some that were given earlier.
    ``removed``: the arrival numbers of events that were given earlier and are taken back. ``arrived``: the arrival
    numbers of the rows (``None``: the rows have a column of them)."""

    rows: pa.Table | None = None
    order: npt.NDArray[np.intp] | None = None
    inserted: int = 0
    removed: Sequence[int] = ()
    arrived: npt.NDArray[np.int64] | None = None

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """Return the arrival numbers of the rows, in the order of the stream."""
        if self.rows is None:
            return np.zeros(0, np.int64)
        numbers = self.rows.column(ARRIVAL).to_numpy() if self.arrived is None else self.arrived
        return numbers if self.order is None else numbers[self.order]

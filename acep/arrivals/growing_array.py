"""An array that grows at its end, at a constant cost for each value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Growing"]

FIRST = 1024  # values that there is room for at first


class Growing:
    """The values so far are :attr:`now`, a view that is valid until the next call of :meth:`extend`.

    >>> numbers = Growing(np.int64)
    >>> numbers.extend([1, 2, 3])
    >>> numbers.keep(np.array([0, 2]))
    >>> numbers.now.tolist()
    [1, 3]
    """

    def __init__(self, kind: npt.DTypeLike) -> None:
        self._all = np.empty(FIRST, kind)
        self.size = 0

    @property
    def now(self) -> Any:
        """Return the values, which may be written to."""
        return self._all[: self.size]

    @property
    def bytes(self) -> int:
        """Return the bytes that are reserved."""
        return int(self._all.nbytes)

    def extend(self, values: Any) -> None:
        """Add values at the end."""
        size = self.size + len(values)
        if size > len(self._all):
            grown = np.empty(2 * size, self._all.dtype)
            grown[: self.size] = self._all[: self.size]
            self._all = grown
        self._all[self.size : size] = values
        self.size = size

    def keep(self, places: npt.NDArray[np.intp], begin: int = 0) -> None:
        """Keep the values before ``begin`` and those at ``places``, which rise and are not before it."""
        self._all[begin : begin + len(places)] = self._all[places]
        self.size = begin + len(places)

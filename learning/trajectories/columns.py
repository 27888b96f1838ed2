"""Define tables of NumPy columns of one length: their types, their rows, and their form in stored state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from acep.learning.trajectories.match_vectors import Bools, Ints

__all__ = ["Table", "stored_name"]

KINDS: dict[str, type] = {"Ints": np.int64, "Floats": np.float64, "Bools": np.bool_}
"""The types of columns by the annotations of their fields."""

STORED_NAMES = {"trajectory": "life", "made_at": "made"}
"""The names in stored state of columns that were renamed since."""


@dataclass(frozen=True)
class Table:
    """One-dimensional columns of one length, each cast to its type; ``ValueError`` where a cast would lose data."""

    kinds: ClassVar[Mapping[str, type]] = {}
    """The types of the columns by name; each subclass has its own."""

    def __init_subclass__(cls) -> None:
        cls.kinds = {name: KINDS[kind] for name, kind in cls.__annotations__.items()}

    def __post_init__(self) -> None:
        columns = vars(self)
        for name, kind in self.kinds.items():
            columns[name] = _cast_column(columns[name], kind, name)
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of several lengths: {lengths}")

    @classmethod
    def empty(cls) -> Self:
        """Return a table without rows."""
        return cls(**{name: np.zeros(0, kind) for name, kind in cls.kinds.items()})

    def __len__(self) -> int:
        return len(getattr(self, next(iter(self.kinds))))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in self.kinds
        )

    __hash__ = None  # type: ignore[assignment]

    def rows(self, which: Ints | Bools) -> Self:
        """Return some rows, given by row numbers or by a mask."""
        selected = {name: getattr(self, name)[which] for name in self.kinds}
        # A mask keeps the order, so the rows need no new check.
        return self.without_checks(selected) if which.dtype == np.bool_ else replace(self, **selected)

    def without_checks(self, columns: Mapping[str, NDArray[Any]]) -> Self:
        """Return a table of columns that are known to be valid."""
        table = object.__new__(type(self))
        vars(table).update(columns)
        return table

    def append(self, other: Self) -> Self:
        """Return these rows followed by those of another table."""
        if not len(other) or not len(self):
            return self if len(self) else other
        united = {n: np.concatenate([getattr(self, n), getattr(other, n)]) for n in self.kinds}
        return replace(self, **united)

    def to_arrays(self, prefix: str = "") -> dict[str, NDArray[Any]]:
        """Return the columns by their names in stored state, each after ``prefix``."""
        return {prefix + stored_name(name): getattr(self, name) for name in self.kinds}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], prefix: str = "") -> Self:
        """Read the table of :meth:`to_arrays`. Raises :class:`ValueError` or :class:`KeyError` for other data."""
        return cls(**{name: arrays[prefix + stored_name(name)] for name in cls.kinds})


def stored_name(name: str) -> str:
    """Return the name of a column in stored state, which does not change with the code."""
    return STORED_NAMES.get(name, name)


def _cast_column(column: NDArray[Any], kind: type, name: str) -> NDArray[Any]:
    if column.ndim != 1:
        raise ValueError(f"{name} is not one-dimensional")
    if column.dtype == kind:
        return column
    if kind is np.bool_ or (len(column) and column.dtype.kind not in "iu" + "f" * (kind is np.float64)):
        raise ValueError(f"{name} is of type {column.dtype}")
    if column.dtype == np.uint64 and len(column) and column.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} is too large")
    return column.astype(kind)

"""Base class of tables that hold NumPy columns of one length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from acep.learning.trajectories.match_vectors import Bools, Ints

__all__ = ["Table", "names_of", "stored_name"]

_KINDS: dict[str, type] = {"weight": np.float64, "first": np.bool_}


@dataclass(frozen=True)
class Table:
    """One-dimensional columns of one length, each cast to its type; ``ValueError`` where a cast would lose data."""

    def __post_init__(self) -> None:
        for name in names_of(type(self)):
            object.__setattr__(self, name, _as(getattr(self, name), _KINDS.get(name, np.int64), name))
        lengths = {name: len(getattr(self, name)) for name in names_of(type(self))}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of several lengths: {lengths}")

    @classmethod
    def none(cls) -> Self:
        """Return a table without rows."""
        return cls(**{name: np.zeros(0, _KINDS.get(name, np.int64)) for name in names_of(cls)})

    def __len__(self) -> int:
        return len(getattr(self, next(iter(names_of(type(self))))))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in names_of(type(self))
        )

    __hash__ = None  # type: ignore[assignment]

    def rows(self, which: Ints | Bools) -> Self:
        """Return some rows, given by row numbers or by a mask."""
        some = {name: getattr(self, name)[which] for name in names_of(type(self))}
        # A mask keeps the order, so the rows need no new check.
        return self.unchecked(some) if which.dtype == np.bool_ else replace(self, **some)

    def unchecked(self, columns: Mapping[str, NDArray[Any]]) -> Self:
        """Return a table of columns that are known to be valid."""
        table = object.__new__(type(self))
        vars(table).update(columns)
        return table

    def then(self, other: Self) -> Self:
        """Return these rows followed by those of another table."""
        if not len(other) or not len(self):
            return self if len(self) else other
        both = {n: np.concatenate([getattr(self, n), getattr(other, n)]) for n in names_of(type(self))}
        return replace(self, **both)


def stored_name(name: str) -> str:
    """Return the name of a column in stored state, which does not change with the code."""
    return "life" if name == "trajectory" else name


def names_of(table: type[Table]) -> Iterable[str]:
    """Return the names of the columns of a table."""
    return table.__dataclass_fields__.keys()


def _as(column: NDArray[Any], kind: type, name: str) -> NDArray[Any]:
    if column.ndim != 1:
        raise ValueError(f"{name} is not one-dimensional")
    if column.dtype == kind:
        return column
    if kind is np.bool_ or (len(column) and column.dtype.kind not in "iu" + "f" * (kind is np.float64)):
        raise ValueError(f"{name} is of type {column.dtype}")
    if column.dtype == np.uint64 and len(column) and column.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} is too large")
    return column.astype(kind)

"""The former names of :mod:`acep.learning.shedding_table`, for policies written for acep 0.1.0.dev0. Deprecated."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.learning import shedding_table as new
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import AGES, BUCKETS, HIGHEST, STEPS, Term, Ties, as_utility_buckets
from acep.learning.shedding_table import TermKind as Kind
from acep.learning.trajectories.match_vectors import Grid

__all__ = ["AGES", "BUCKETS", "HIGHEST", "STEPS", "Kind", "Orders", "Term", "Ties", "as_levels"]

warnings.warn(
    "acep.learning.orders is deprecated: import SheddingTable and as_utility_buckets from acep.learning.shedding_table",
    DeprecationWarning,
    stacklevel=2,
)

as_levels = as_utility_buckets


@dataclass(frozen=True)
class Orders:
    """A :class:`acep.learning.shedding_table.SheddingTable` with its former fields: ``spared`` is ``shadow`` now."""

    grid: Grid
    level: new.Bytes
    decay: new.Floats
    later: npt.NDArray[np.int8]
    terms: tuple[tuple[Term, ...], ...] = ()
    admit: new.Bytes = field(default_factory=lambda: np.zeros((0, 1), np.uint8))
    ties: Ties = Ties.NEWEST
    noise: int = 0
    clears: bool = False
    sample: float = 0.0
    spared: float = 0.0
    prices: tuple[new.ThresholdTrial, ...] = ()

    @staticmethod
    def flat(setting: PolicyContext, **options: Any) -> Orders:
        """Return :meth:`acep.learning.shedding_table.SheddingTable.flat` with the former fields."""
        table = new.SheddingTable.flat(setting, **options)
        return Orders(**{name: getattr(table, NEW.get(name, name)) for name in Orders.__dataclass_fields__})

    def shedding_table(self) -> new.SheddingTable:
        """Return the same table with the present fields."""
        return new.SheddingTable(**{NEW.get(name, name): value for name, value in vars(self).items()})


NEW = {"spared": "shadow"}
"""The present names of fields that were renamed."""

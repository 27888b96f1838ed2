"""A list of matches as the columns that the native engine gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from acep.events.batch import column_of_values
from acep.matches.found_columns import FoundColumns
from acep.matches.records import Found
from acep.plan.schema import Kind

__all__ = ["columns_of"]


def columns_of(
    found: Sequence[Found], scale: int, variables: Sequence[str], keys: Sequence[Kind], returns: Sequence[Kind] = ()
) -> FoundColumns:
    """A list of matches as columns."""
    trails = [pair for one in found for pair in one.trail]
    ids: Any = [i for i, _ in trails]
    texts = any(isinstance(i, str) for i in ids)
    return FoundColumns(
        start=np.array([one.start for one in found], np.int64),
        end=np.array([one.end for one in found], np.int64),
        bundle=np.array([one.bundle for one in found], np.int64),
        error=np.array([one.error * scale for one in found], np.int64),
        scale=scale,
        keys=tuple(column_of_values([one.key[i] for one in found], kind) for i, kind in enumerate(keys)),
        offsets=np.cumsum([0, *(len(one.trail) for one in found)], dtype=np.int64),
        ids=np.array(ids, dtype=object if texts else np.int64),
        vars=np.array([variables.index(v) for _, v in trails], np.uint16),
        variables=tuple(variables),
        values=tuple(column_of_values([one.values[i] for one in found], kind) for i, kind in enumerate(returns)),
    )

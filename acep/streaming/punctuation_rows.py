"""Tell events from the rows that only say how far time is: punctuations, which have a type of their own."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep.events.tables import InputSchema
from acep.plan.schema import Kind

__all__ = ["PUNCTUATION", "are_punctuations"]

PUNCTUATION: Final = "acep.punctuation"
"""The type of a row that is no event: its time counts, and nothing else of it. A row with nulls alone would not do, as
it may be an event: one that has a position, breaks contiguity and gets an id."""


def are_punctuations(rows: pa.Table, schema: InputSchema) -> npt.NDArray[np.bool_]:
    """Return which rows are punctuations. Without a column of types, none is.

    >>> from acep.events.tables import schema_of
    >>> rows = pa.table({"ts": [1, 2, 3], "type": ["a", "acep.punctuation", None]})
    >>> are_punctuations(rows, schema_of(rows.schema)).tolist()
    [False, True, False]
    """
    if schema.type is None or schema.kind(schema.type) is not Kind.STRING or not rows.num_rows:
        return np.zeros(rows.num_rows, bool)
    is_marked = pc.fill_null(pc.equal(rows.column(schema.type), PUNCTUATION), False)
    return np.asarray(is_marked.combine_chunks().to_numpy(zero_copy_only=False), bool)

"""Gather some of the matches that are kept in several parts, in the order of the output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column
from acep.matches.found_columns import FoundColumns, concatenate, concatenate_columns, ranks_of, variables_of

__all__ = ["Rows", "gather_matches"]

Ints = npt.NDArray[np.int64]
Rows = tuple[FoundColumns, Ints]
"""Matches, and the places of some of them."""


def gather_matches(retracted: Sequence[Rows], added: Sequence[Rows]) -> tuple[FoundColumns, Ints]:
    """Return the matches in some places: those of ``retracted`` as matches that are taken back, followed by those
    of ``added``, each in output order; and which of all places, in the order given, each match had. There must be one.

    Matches whose ids are texts, and those that are told apart by their values, come as they are given.
    """
    from acep.native import _native  # here, as only the native core finds matches as columns

    parts = [*retracted, *added]
    if any(part.apart or part.ids.dtype == object for part, _ in parts):
        taken = [part.take(rows).to_take_back() for part, rows in retracted] + [part.take(rows) for part, rows in added]
        matches = concatenate(taken)
        return matches, np.arange(len(matches))
    first, variables = parts[0][0], variables_of([part for part, _ in parts])
    arrays = [
        (part.start, part.end, part.bundle, part.error, part.offsets, part.ids, part.vars, rows) for part, rows in parts
    ]
    start, end, bundle, error, offsets, ids, codes, source = _native.gathered(
        arrays, len(retracted), ranks_of(variables)
    )
    places = [rows for _, rows in parts]
    ops = None
    if retracted:
        ops = np.ones(len(source), np.int64)
        ops[: sum(len(rows) for _, rows in retracted)] = -1
    return FoundColumns(
        start=start,
        end=end,
        bundle=bundle,
        error=error,
        offsets=offsets,
        ids=ids,
        vars=codes,
        scale=first.scale,
        keys=_gathered_columns([part.keys for part, _ in parts], places, source),
        variables=variables,
        values=_gathered_columns([part.values for part, _ in parts], places, source),
        shape=first.shape if all(part.shape == first.shape for part, _ in parts) else None,
        in_order=True,
        ops=ops,
    ), source


def _gathered_columns(parts: Sequence[Sequence[Column]], places: Sequence[Ints], source: Ints) -> tuple[Column, ...]:
    """Return some rows of columns that parts have, in the order ``source``."""
    return tuple(
        concatenate_columns([column.take(rows) for column, rows in zip(columns, places, strict=True)]).take(source)
        for columns in zip(*parts, strict=True)
    )

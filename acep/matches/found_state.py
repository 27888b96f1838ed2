"""Convert columns of matches to plain data and back, to save waiting matches in a snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np

from acep.events.batch_state import column_of_plain, plain_of_column
from acep.matches.found_columns import FoundColumns

__all__ = ["found_of", "plain_of"]

WORDS = ("start", "end", "bundle", "error", "offsets")


def plain_of(matches: FoundColumns) -> dict[str, Any]:
    """Return matches as plain data (:mod:`acep.storage.plain_data`)."""
    columns = {
        name: [plain_of_column(column) for column in column_group]
        for name, column_group in (("keys", matches.keys), ("values", matches.values))
    }
    words = {name: getattr(matches, name) for name in WORDS}
    ids = matches.ids.tolist() if matches.ids.dtype == object else matches.ids
    return {**words, **columns, "vars": matches.vars.astype(np.int64), "ids": ids, "scale": matches.scale}


def found_of(data: Any, variables: tuple[str, ...]) -> FoundColumns:
    """Restore the matches of :func:`plain_of`. Raises :class:`ValueError`, :class:`KeyError`, :class:`AttributeError`
    or :class:`TypeError` for other data."""
    words, scale, ids = {name: data[name] for name in WORDS}, int(data["scale"]), data["ids"]
    size, offsets, codes = len(words["start"]), words["offsets"], data["vars"]
    if isinstance(ids, list):
        ids = np.array([str(event_id) for event_id in ids], dtype=object)
    is_valid = all(array.dtype == np.int64 and array.ndim == 1 for array in (*words.values(), codes)) and scale > 0
    is_valid &= all(len(words[name]) == size for name in ("end", "bundle", "error")) and len(offsets) == size + 1
    if not is_valid or offsets[0] != 0 or (np.diff(offsets) <= 0).any() or not offsets[-1] == len(ids) == len(codes):
        raise ValueError("matches")
    if (codes < 0).any() or (codes >= len(variables)).any():
        raise ValueError("variables")
    keys, values = (tuple(column_of_plain(column, size) for column in data[name]) for name in ("keys", "values"))
    return FoundColumns(
        **words, scale=scale, keys=keys, ids=ids, vars=codes.astype(np.uint16), variables=variables, values=values
    )

"""Convert columns of matches to plain data and back, to save waiting matches in a snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np

from acep.events.batch_state import column_of_plain, plain_of_column
from acep.matches.found_columns import FoundColumns

__all__ = ["found_of", "plain_of"]

WORDS = ("start", "end", "bundle", "error", "offsets")


def plain_of(found: FoundColumns) -> dict[str, Any]:
    """Return matches as plain data (:mod:`acep.storage.plain_data`)."""
    columns = {
        name: [plain_of_column(column) for column in held]
        for name, held in (("keys", found.keys), ("values", found.values))
    }
    words = {name: getattr(found, name) for name in WORDS}
    ids = found.ids.tolist() if found.ids.dtype == object else found.ids
    return {**words, **columns, "vars": found.vars.astype(np.int64), "ids": ids, "scale": found.scale}


def found_of(data: Any, variables: tuple[str, ...]) -> FoundColumns:
    """Restore the matches of :func:`plain_of`. Raises :class:`ValueError`, :class:`KeyError`, :class:`AttributeError`
    or :class:`TypeError` for other data."""
    words, scale, ids = {name: data[name] for name in WORDS}, int(data["scale"]), data["ids"]
    many, offsets, codes = len(words["start"]), words["offsets"], data["vars"]
    if isinstance(ids, list):
        ids = np.array([str(one) for one in ids], dtype=object)
    good = all(one.dtype == np.int64 and one.ndim == 1 for one in (*words.values(), codes)) and scale > 0
    good &= all(len(words[name]) == many for name in ("end", "bundle", "error")) and len(offsets) == many + 1
    if not good or offsets[0] != 0 or (np.diff(offsets) <= 0).any() or not offsets[-1] == len(ids) == len(codes):
        raise ValueError("matches")
    if (codes < 0).any() or (codes >= len(variables)).any():
        raise ValueError("variables")
    keys, values = (tuple(column_of_plain(one, many) for one in data[name]) for name in ("keys", "values"))
    return FoundColumns(
        **words, scale=scale, keys=keys, ids=ids, vars=codes.astype(np.uint16), variables=variables, values=values
    )

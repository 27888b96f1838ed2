"""Convert columns of matches to plain data and back, to save waiting matches in a snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np

from acep.events.batch import Column
from acep.matches.found_columns import FoundColumns
from acep.plan.schema import Kind

__all__ = ["found_of", "plain_of"]

WORDS = ("start", "end", "bundle", "error", "offsets")


def plain_of(found: FoundColumns) -> dict[str, Any]:
    """Return matches as plain data (:mod:`acep.storage.plain_data`)."""
    columns = {
        name: [[c.kind.value, c.values, c.valid, None if c.texts is None else list(c.texts)] for c in held]
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
    keys, values = (tuple(_column(one, many) for one in data[name]) for name in ("keys", "values"))
    return FoundColumns(
        **words, scale=scale, keys=keys, ids=ids, vars=codes.astype(np.uint16), variables=variables, values=values
    )


def _column(data: Any, many: int) -> Column:
    kind, values, valid, texts = data
    column = Column(Kind(kind), values, valid, None if texts is None else [str(text) for text in texts])
    good = values.shape == (many,) and (valid is None or (valid.shape == (many,) and valid.dtype == np.uint8))
    good &= values.dtype == (np.float64 if column.kind is Kind.FLOAT else np.int64)
    if column.kind is Kind.STRING:
        good &= bool(((values >= 0) & (values < len(column.texts or ()))).all())
    if not good:
        raise ValueError("a column")
    return column

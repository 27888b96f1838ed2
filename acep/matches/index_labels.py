"""Give bound events the labels of the pandas frame in which they came, beside their ids, which are positions there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from acep.matches.flat import BINDINGS, KEY, VALUES, flat_columns, layout_of

if TYPE_CHECKING:
    from acep.matches.matches import Matches

__all__ = ["event_labels", "labels_beside_ids", "own_index"]

EVENT, LABEL = "event", "label"


def own_index(matches: Matches) -> Any:
    """Return the index of the pandas frame in which the ids of the events are positions; ``None`` if there is no such
    frame, or if its labels are the positions."""
    rows, layout = matches.rows, matches.layout
    index = None if rows is None else rows.index
    if index is None or matches.schema.id is not None or (layout is not None and layout.composed):
        return None
    import pandas as pd

    return None if index.equals(pd.RangeIndex(len(index))) else index


def event_labels(matches: Matches, index: Any) -> list[dict[str, tuple[Any, ...]]]:
    """Return the labels of the events of each match, by variable, as its bindings have their ids."""
    bindings = [match.bindings for match in matches.found]
    places = [place for bound in bindings for _, ids in bound for place in ids]
    labels = iter(index.take(np.array(places, np.int64)).tolist())
    return [{name: tuple(next(labels) for _ in ids) for name, ids in bound} for bound in bindings]


def labels_beside_ids(frame: Any, matches: Matches, index: Any, *, explode: bool) -> None:
    """Add to a flat frame of matches, or of their events (``explode``), a column of labels after each one of ids; a
    label is null where the id is. Its name is that of the column of ids and ``_label``, of events ``label``."""
    names = {name.lower() for name in frame.columns}
    for name in [EVENT] if explode else _id_columns(matches):
        new = LABEL if explode else f"{name}_{LABEL}"
        while new.lower() in names:
            new = f"event_{new}"
        names.add(new.lower())
        frame.insert(frame.columns.get_loc(name) + 1, new, _labels(frame[name], index))


def _id_columns(matches: Matches) -> list[str]:
    """Return the columns of a flat frame that hold ids."""
    names = [KEY, "start", "end", "error", BINDINGS, "bundle", *([VALUES] if matches.returns else [])]
    names += ["op", "id"] if matches.ops else []
    fields = {KEY: [*matches.keys], VALUES: [*matches.returns]}
    columns = flat_columns(names, fields, layout_of(matches))
    return [column.name for column in columns if column.part not in ("", KEY, VALUES)]


def _labels(ids: Any, index: Any) -> Any:
    import pandas as pd

    places = ids.to_numpy(np.int64, na_value=-1) if len(ids) else np.zeros(0, np.int64)
    flat = index.to_flat_index() if isinstance(index, pd.MultiIndex) else index
    labels = pd.Series(flat.take(np.maximum(places, 0)) if len(places) else flat[:0], index=ids.index)
    if labels.dtype.kind in "iu" and not pd.api.types.is_extension_array_dtype(labels.dtype):
        nullable = str(labels.dtype).replace("i", "I", 1).replace("u", "U")
        labels = labels.astype(pd.api.types.pandas_dtype(nullable))  # pandas' own, with nulls
    return labels.mask(places < 0) if (places < 0).any() else labels

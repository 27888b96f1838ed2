"""Compute the id of a match: a hash of 128 bits of its key and its binding, the same in every process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from acep.events.batch import column_of_values
from acep.events.hashes import STEP, Hashes, hashes_of_columns, hashes_of_texts
from acep.events.records import Id
from acep.matches.found_columns import FoundColumns
from acep.matches.records import Found
from acep.pattern.expressions import Value
from acep.plan.schema import Kind
from acep.sketches.hashing import halves, mix_bits

__all__ = ["id_of", "id_of_found", "ids_of", "kind_of_value", "places_in_runs"]

LOW, HIGH = 1, 2  # seeds of the two halves


def ids_of(matches: FoundColumns) -> list[str]:
    """Return the ids of matches, as 32 hexadecimal digits each."""
    high, low = _hash_matches(matches, HIGH), _hash_matches(matches, LOW)
    return [f"{high_word:016x}{low_word:016x}" for high_word, low_word in zip(high.tolist(), low.tolist(), strict=True)]


def id_of(key: Sequence[Value], bindings: Sequence[tuple[str, Sequence[Id]]]) -> str:
    """Return the id of one match, as :func:`ids_of` does.

    >>> id_of(("x",), [("b", [7]), ("a", [8, 9])]) == id_of(("x",), [("a", [8, 9]), ("b", [7])])
    True
    """
    bound = [(name, event) for name, events in bindings for event in events]
    events = [event for _, event in bound]
    texts = any(isinstance(event, str) for event in events)
    variables = tuple(dict.fromkeys(name for name, _ in bound))
    zero = np.zeros(1, np.int64)
    return ids_of(
        FoundColumns(
            *(zero,) * 4,
            scale=1,
            keys=tuple(column_of_values([value], kind_of_value(value)) for value in key),
            offsets=np.array([0, len(events)]),
            ids=np.array(events, object if texts else np.int64),
            vars=np.array([variables.index(name) for name, _ in bound], np.uint16),
            variables=variables,
        )
    )[0]


def id_of_found(record: Found) -> str:
    """Return the id of one match, of which the values are a part if they tell matches apart."""
    return id_of((*record.key, *record.values) if record.apart else record.key, record.bindings)


def kind_of_value(value: Value) -> Kind:
    """Return the kind of a column that holds a value."""
    if isinstance(value, bool):
        return Kind.BOOL
    if isinstance(value, int):
        return Kind.INT
    return Kind.FLOAT if isinstance(value, float) else Kind.STRING


def _hash_matches(matches: FoundColumns, seed: int) -> Hashes:
    """Return one half of the hash of each match: of its key, and of the ids of each variable in their order."""
    key_columns = (*matches.keys, *matches.values) if matches.apart else matches.keys
    total = mix_bits(hashes_of_columns(key_columns, len(matches)) + np.uint64(seed))
    if not len(matches.vars):
        return total
    if matches.ids.dtype == object:
        names = {event_id: n for n, event_id in enumerate(dict.fromkeys(matches.ids.tolist()))}
        events = hashes_of_texts(names)[[names[event_id] for event_id in matches.ids.tolist()]].view(np.int64)
    else:
        events = matches.ids
    owners = np.repeat(np.arange(len(matches)), np.diff(matches.offsets))
    place = places_in_runs(owners * len(matches.variables) + matches.vars)
    variable = hashes_of_texts(matches.variables)[matches.vars]
    words = mix_bits(halves(events, seed)[0] + variable * STEP + place)
    return mix_bits(total * STEP + np.add.reduceat(words, matches.offsets[:-1]))


def places_in_runs(runs: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return the place of each entry among those before it of the same number: of an event, if the numbers are those
    of its match and variable, the place among its events.

    >>> places_in_runs(np.array([4, 2, 4, 4, 2]))
    array([0, 0, 1, 2, 1], dtype=uint64)
    """
    order = np.argsort(runs, kind="stable")
    ordered = runs[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(runs)])
    place = np.empty(len(runs), np.uint64)
    place[order] = np.arange(len(runs)) - np.repeat(starts, np.diff(np.append(starts, len(runs))))
    return place

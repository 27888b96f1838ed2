"""The log of an epoch as the core writes it: lives, and what besides is known of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from acep.learning.estimation.recall import COLUMNS, distinct
from acep.learning.trajectories.match_vectors import Bools, Floats, Ints
from acep.learning.trajectories.trajectories import Lives

__all__ = ["Ages", "Extra", "Log", "log_of", "stacked"]

MADE = ("life", "parent", "partition", "state", "error", "start", "made", "feature", "age")
ENDED = ("life", "when", "how", "touches", "age")
FOUND = ("parent", "partition", "when", "error", "age")
NO_LIVES = Lives()


def stacked(upper: Floats, lower: Floats) -> Floats:
    """Rows under rows; columns that one does not have hold no numbers there.

    >>> stacked(np.ones((1, 1)), np.zeros((1, 2))).tolist()
    [[1.0, nan], [0.0, 0.0]]
    """
    found = np.full((len(upper) + len(lower), max(upper.shape[1], lower.shape[1])), np.nan)
    found[: len(upper), : upper.shape[1]] = upper
    found[len(upper) :, : lower.shape[1]] = lower
    return found


@dataclass(frozen=True)
class Extra:
    """Of lives, by rising number: ``values`` (float64[n, terms], of the terms that were logged), and ``age``: how many
    nodes had been made after its parent, in that one's partition and state, when the life was made."""

    life: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    age: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    values: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def then(self, other: Extra) -> Extra:
        """These and later ones; terms that were not logged before have no number."""
        if not len(other.life) or not len(self.life):
            return self if len(self.life) else other
        life, age = (np.concatenate(two) for two in ((self.life, other.life), (self.age, other.age)))
        return Extra(life, age, stacked(self.values, other.values))

    def to_arrays(self) -> dict[str, Any]:
        """The columns by name."""
        return {"life": self.life, "age": self.age, "values": self.values}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Extra:
        """What :meth:`to_arrays` gave. Raises :class:`ValueError` or :class:`KeyError` for what is none."""
        life, age = np.asarray(arrays["life"], np.int64), np.asarray(arrays["age"], np.int64)
        values = np.asarray(arrays["values"], np.float64)
        if life.ndim != 1 or age.shape != life.shape or values.ndim != 2 or (len(values) != len(life)):
            raise ValueError("columns of several lengths")
        if (np.diff(life) <= 0).any():
            raise ValueError("lives do not rise")
        return cls(life, age, values)

    def of(self, lives: Ints) -> Extra:
        """Those of some lives, all of which are there."""
        at = np.searchsorted(self.life, lives)
        return Extra(lives, self.age[at], self.values[at])


@dataclass(frozen=True)
class Ages:
    """How many nodes had been made after a life, in its partition and state, when it ended (``ends`` of ``life``), and
    when it bound the last event but one of a match (``finds`` of ``parent``)."""

    life: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    ends: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    parent: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    finds: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def then(self, other: Ages) -> Ages:
        """These and later ones."""
        return Ages(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))

    def to_arrays(self) -> dict[str, Any]:
        """The columns by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Ages:
        """What :meth:`to_arrays` gave. Raises :class:`ValueError` or :class:`KeyError` for what is none."""
        found = [np.asarray(arrays[f.name], np.int64) for f in fields(cls)]
        if any(column.ndim != 1 for column in found):
            raise ValueError("ages")
        if len(found[0]) != len(found[1]) or len(found[2]) != len(found[3]):
            raise ValueError("columns of several lengths")
        return cls(*found)

    def of(self, lives: Ints) -> Ages:
        """Those of some lives, which rise."""
        own, found = np.isin(self.life, lives), np.isin(self.parent, lives)
        return Ages(self.life[own], self.ends[own], self.parent[found], self.finds[found])


@dataclass(frozen=True)
class Log:
    """``lives`` of a stretch of events, and ``extra`` of those that were made in it. Of units that are spared,
    ``partition`` and ``when`` are the match points, and ``kept`` whether what was kept found them."""

    lives: Lives
    extra: Extra
    ages: Ages
    partition: Ints
    when: Ints
    kept: Bools


def log_of(made: Ints, ended: Ints, found: Ints, values: Floats, *, step: int, points: Ints) -> Log:
    """From the rows of the core, one after the other in flat arrays; ``step``: of the scaled error, to a level;
    ``points``: of units that are spared (:mod:`acep.learning.estimation.recall`).

    Raises :class:`ValueError` for rows that contradict themselves.
    """
    seen, kept = distinct(points.reshape(-1, len(COLUMNS)))
    if not (len(made) or len(ended) or len(found)):
        return Log(NO_LIVES, Extra(), Ages(), seen[:, 0], seen[:, 2], kept)
    m, e, f = (rows.reshape(-1, len(names)) for rows, names in ((made, MADE), (ended, ENDED), (found, FOUND)))
    columns = dict(zip(MADE, m.T, strict=True))
    columns["error"] = columns["error"] // step
    extra = Extra(columns["life"], columns.pop("age"), values.reshape(len(m), -1) if len(m) else np.zeros((0, 0)))
    runs = dict(zip(FOUND, f.T, strict=True))
    found_columns = {name: runs[name] for name in ("parent", "partition", "when", "error")}
    ends = dict(zip(ENDED, e.T, strict=True))
    ages = Ages(ends["life"], ends.pop("age"), runs["parent"], runs["age"])
    lives = Lives.of({**columns, "weight": np.ones(len(m))}, ends, found_columns)
    return Log(lives, extra, ages, seen[:, 0], seen[:, 2], kept)

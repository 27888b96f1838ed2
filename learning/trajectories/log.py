"""The log of an epoch as the native core writes it: trajectories, with register values and ages for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from acep.learning.estimation.recall import COLUMNS, distinct
from acep.learning.trajectories.columns import stored_name
from acep.learning.trajectories.match_vectors import Bools, Floats, Ints
from acep.learning.trajectories.trajectories import Trajectories

__all__ = ["Ages", "Extra", "Log", "log_of", "stack_rows"]

MADE_COLUMNS = ("trajectory", "parent", "partition", "state", "error", "start", "made", "feature", "age")
ENDED_COLUMNS = ("trajectory", "when", "how", "touches", "age")
RUN_COLUMNS = ("parent", "partition", "when", "error", "age")
NO_TRAJECTORIES = Trajectories()


def stack_rows(upper: Floats, lower: Floats) -> Floats:
    """Stack two tables by rows; columns that one of them lacks are NaN there.

    >>> stack_rows(np.ones((1, 1)), np.zeros((1, 2))).tolist()
    [[1.0, nan], [0.0, 0.0]]
    """
    table = np.full((len(upper) + len(lower), max(upper.shape[1], lower.shape[1])), np.nan)
    table[: len(upper), : upper.shape[1]] = upper
    table[len(upper) :, : lower.shape[1]] = lower
    return table


@dataclass(frozen=True)
class Extra:
    """More columns of partial matches, by rising number: ``values`` (float64[n, terms]) of the logged terms, and
    ``age``: how many had been made after its parent, in the parent's partition and state, when this one was made."""

    trajectory: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    age: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    values: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def append(self, other: Extra) -> Extra:
        """Return these rows followed by later ones; values of terms that were not logged are NaN."""
        if not len(other.trajectory) or not len(self.trajectory):
            return self if len(self.trajectory) else other
        trajectory, age = (np.concatenate(two) for two in ((self.trajectory, other.trajectory), (self.age, other.age)))
        return Extra(trajectory, age, stack_rows(self.values, other.values))

    def to_arrays(self) -> dict[str, Any]:
        """Return the columns by name."""
        return {stored_name("trajectory"): self.trajectory, "age": self.age, "values": self.values}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Extra:
        """Read :meth:`to_arrays`. Raises :class:`ValueError` or :class:`KeyError` for invalid data."""
        trajectory, age = np.asarray(arrays[stored_name("trajectory")], np.int64), np.asarray(arrays["age"], np.int64)
        values = np.asarray(arrays["values"], np.float64)
        if values.ndim != 2 or not trajectory.shape == age.shape == (len(values),):
            raise ValueError("columns of several lengths")
        if (np.diff(trajectory) <= 0).any():
            raise ValueError("trajectories do not rise")
        return cls(trajectory, age, values)

    def select(self, trajectories: Ints) -> Extra:
        """Return the rows of some numbers, all of which must be there."""
        rows = np.searchsorted(self.trajectory, trajectories)
        return Extra(trajectories, self.age[rows], self.values[rows])


@dataclass(frozen=True)
class Ages:
    """How many partial matches had been made in the same partition and state after a given one: by the time it ended
    (``ends`` of ``trajectory``), and by the time an event completed a match from it (``finds`` of ``parent``)."""

    trajectory: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    ends: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    parent: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    finds: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def append(self, other: Ages) -> Ages:
        """Return these rows followed by later ones."""
        return Ages(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))

    def to_arrays(self) -> dict[str, Any]:
        """Return the columns by name."""
        return {stored_name(f.name): getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Ages:
        """Read :meth:`to_arrays`. Raises :class:`ValueError` or :class:`KeyError` for invalid data."""
        columns = [np.asarray(arrays[stored_name(f.name)], np.int64) for f in fields(cls)]
        if any(column.ndim != 1 for column in columns):
            raise ValueError("ages")
        if len(columns[0]) != len(columns[1]) or len(columns[2]) != len(columns[3]):
            raise ValueError("columns of several lengths")
        return cls(*columns)

    def select(self, trajectories: Ints) -> Ages:
        """Return the rows of some numbers, which rise."""
        is_listed, has_parent = np.isin(self.trajectory, trajectories), np.isin(self.parent, trajectories)
        return Ages(self.trajectory[is_listed], self.ends[is_listed], self.parent[has_parent], self.finds[has_parent])


@dataclass(frozen=True)
class Log:
    """The log of a stretch of events: its ``trajectories``, with ``extra`` and ``ages``. ``partition`` and ``when`` are
    the match points in shadow-sampled units, ``kept`` whether the partial matches kept under shedding found them."""

    trajectories: Trajectories
    extra: Extra
    ages: Ages
    partition: Ints
    when: Ints
    kept: Bools


def log_of(made_rows: Ints, ended_rows: Ints, run_rows: Ints, values: Floats, *, step: int, points: Ints) -> Log:
    """Build the log from rows of the native core, in flat arrays. ``step``: scaled errors per error level. ``points``:
    the match points in shadow-sampled units (:mod:`acep.learning.estimation.recall`).

    Raises :class:`ValueError` for rows that contradict themselves.
    """
    distinct_points, is_found = distinct(points.reshape(-1, len(COLUMNS)))
    if not (len(made_rows) or len(ended_rows) or len(run_rows)):
        return Log(NO_TRAJECTORIES, Extra(), Ages(), distinct_points[:, 0], distinct_points[:, 2], is_found)
    m, e, f = (
        rows.reshape(-1, len(names))
        for rows, names in ((made_rows, MADE_COLUMNS), (ended_rows, ENDED_COLUMNS), (run_rows, RUN_COLUMNS))
    )
    columns = dict(zip(MADE_COLUMNS, m.T, strict=True))
    columns["error"] = columns["error"] // step
    extra = Extra(columns["trajectory"], columns.pop("age"), values.reshape(len(m), -1) if len(m) else np.zeros((0, 0)))
    runs = dict(zip(RUN_COLUMNS, f.T, strict=True))
    found_columns = {name: runs[name] for name in ("parent", "partition", "when", "error")}
    ends = dict(zip(ENDED_COLUMNS, e.T, strict=True))
    ages = Ages(ends["trajectory"], ends.pop("age"), runs["parent"], runs["age"])
    trajectories = Trajectories.from_columns({**columns, "weight": np.ones(len(m))}, ends, found_columns)
    return Log(trajectories, extra, ages, distinct_points[:, 0], distinct_points[:, 2], is_found)

"""Compute what measures refer to: values at rows of matches, aggregates over them, labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column
from acep.pattern import expressions as ex
from acep.pattern.walk import leaves_of
from acep.plan.decimals import Typed
from acep.plan.ordered.row_references import (
    LABEL,
    NUMBER,
    MatchNumber,
    MissingRows,
    Navigation,
    RowAggregate,
    RowReference,
)
from acep.plan.schema import Kind
from acep.row_patterns.match_batch import MatchBatch, MeasurePoints
from acep.row_patterns.row_values import Evaluator, take_rows
from acep.row_patterns.segment_aggregates import aggregate_values

__all__ = ["ReferenceValues"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ReferenceValues:
    """Values of references for a batch of matches. ``columns``: those of the sorted rows. ``names`` and ``spellings``:
    the variable of each label, folded and as CLASSIFIER gives it. ``missing_rows``: how many rows of the pattern are
    missing in a match with each label (empty: none may be)."""

    batch: MatchBatch
    columns: Mapping[str, Column]
    names: Sequence[str]
    spellings: Sequence[str]
    mapped: Mapping[str, Typed]
    evaluator: Evaluator
    missing_rows: Sequence[int] = ()

    def column(self, reference: RowReference, points: MeasurePoints) -> Column:
        """Return the value of a reference at each point, of a kind that is computed with."""
        if isinstance(reference, MatchNumber):
            return Column(Kind.INT, self.batch.number[points.match])
        if isinstance(reference, MissingRows):
            return Column(Kind.INT, self._missing_rows()[points.match])
        if isinstance(reference, RowAggregate):
            return self.aggregate(reference, points)
        if reference.column == LABEL:
            return self.labels(reference, points)
        return take_rows(self.columns[reference.column], self.rows(reference, points))

    def _missing_rows(self) -> Ints:
        """Return (m,) how many rows of the pattern are missing in each match, as its labels say."""
        batch = self.batch
        has_rows = np.diff(batch.offsets) > 0
        counts = np.array([*self.missing_rows, 0], np.int64)
        labels = self._take(batch.labels.astype(np.int64), np.where(has_rows, batch.offsets[:-1], -1))
        return np.where(has_rows & bool(self.missing_rows), counts[labels if self.missing_rows else 0], 0)

    def rows(self, reference: Navigation, points: MeasurePoints) -> Ints:
        """Return the sorted row that a navigation leads to at each point; -1 where there is none."""
        batch = self.batch
        places = self._places(reference, points)
        rows = np.where(places < 0, -1, self._take(batch.rows, places) + reference.shift)
        inside = (places >= 0) & (rows >= batch.begins[points.match]) & (rows < batch.ends[points.match])
        return np.where(inside, rows, -1)

    def _places(self, reference: Navigation, points: MeasurePoints) -> Ints:
        """Return the mapped row that a navigation begins at; -1 where there is none."""
        lows, highs, members = self.segments(reference.variables, points, reference.is_final)
        steps = lows + reference.offset if reference.is_first else highs - 1 - reference.offset
        inside = (steps >= lows) & (steps < highs)
        return np.where(inside, self._take(members, np.where(inside, steps, -1)), -1)

    def segments(
        self, variables: frozenset[str] | None, points: MeasurePoints, is_final: bool
    ) -> tuple[Ints, Ints, Ints]:
        """Return the mapped rows of variables, and for each point where its own begin and end among them."""
        batch = self.batch
        starts = batch.offsets[points.match]
        ends = batch.offsets[points.match + 1] if is_final else points.end
        if variables is None:
            return starts, ends, np.arange(len(batch.labels))
        is_of_variables = np.array([name in variables for name in self.names], bool)
        mapped = is_of_variables[batch.labels] if len(self.names) else np.zeros(len(batch.labels), bool)
        counts = np.concatenate([[0], np.cumsum(mapped)]).astype(np.int64)
        return counts[starts], counts[ends], np.flatnonzero(mapped)

    def labels(self, reference: Navigation, points: MeasurePoints) -> Column:
        """Return the variable that CLASSIFIER gives at each point; of rows beside the match there is none."""
        batch = self.batch
        places = self._places(reference, points)
        moved_places = places + reference.shift
        inside = (places >= 0) & (moved_places >= batch.offsets[points.match])
        inside &= moved_places < batch.offsets[points.match + 1]
        codes = self._take(batch.labels.astype(np.int64), np.where(inside, moved_places, -1))
        return Column(Kind.STRING, np.where(inside, codes, 0), inside.astype(np.uint8), list(self.spellings))

    def aggregate(self, reference: RowAggregate, points: MeasurePoints) -> Column:
        """Return an aggregate at each point."""
        lows, highs, members = self.segments(reference.variables, points, reference.is_final)
        if reference.column is None:
            return Column(Kind.INT, highs - lows)
        columns = [self.member_values(name, members) for name in (reference.column, *reference.arguments)]
        return aggregate_values(reference, columns, lows, highs)

    def member_values(self, name: str, members: Ints) -> Column:
        """Return a column of mapped rows."""
        batch = self.batch
        if name == LABEL:
            return Column(Kind.STRING, batch.labels[members].astype(np.int64), None, list(self.spellings))
        if name == NUMBER:
            return Column(Kind.INT, batch.number[batch.match[members]])
        if name not in self.mapped:
            return self.columns[name].take(batch.rows[members])
        typed = self.mapped[name]
        names = [leaf.name for leaf in leaves_of(typed.expr) if isinstance(leaf, ex.Attribute)]
        columns = {name: self.member_values(name, members) for name in names}
        return self.evaluator.column(typed, columns, len(members))

    @staticmethod
    def _take(values: Ints, places: Ints) -> Ints:
        """Return values at places; 0 where a place is negative."""
        if not len(values):
            return np.zeros(len(places), np.int64)
        return np.where(places < 0, 0, values[np.where(places < 0, 0, places)])

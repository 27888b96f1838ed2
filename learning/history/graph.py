"""The history graph H (2016 paper, Definition 4): outcomes of past partial matches, counted by match vector.

Vertices are match vectors with their visits, and match bundles with their numbers. Edges count how often partial
matches went from one vector to another, and from a vector directly to a bundle. Each vector has a *match map* of the
bundles reached from it (the last ``ring`` bundles) and the sums that policies need
(:data:`acep.learning.history.sums.SUMS`). Sums and maps are in a memory of :mod:`acep.sketches`, exact or of bounded
size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

import numpy as np

from acep.errors import SnapshotError
from acep.learning.history.drawing import history_page
from acep.learning.history.edges import Edges
from acep.learning.history.overlap import Contemporaries
from acep.learning.history.sums import SUMS, VectorSums, tally
from acep.learning.trajectories.match_vectors import Bools, Floats, Grid, Ints
from acep.learning.trajectories.targets import Targets
from acep.learning.trajectories.trajectories import Trajectories, split_finished
from acep.sketches.dense import DenseMemory
from acep.sketches.memories import read_memory
from acep.sketches.protocol import VectorMemory, Words
from acep.sketches.ring import Ring
from acep.storage.arrays import pack, unpack
from acep.storage.sections import read_sections, write_sections

__all__ = ["History"]

Kind = Literal["bundles", "points"]
EMPTY = np.iinfo(np.int64).min


class History:
    """The statistics of a query's match vectors, over all stretches of events so far.

    ``targets`` are the query's match bundles, or its match points (then "bundle" below means match point). ``memory``
    keeps sums and maps, exactly by default; a :class:`acep.sketches.match_map.MatchMap` of ``len(SUMS)`` columns bounds
    the size instead. With each stretch the sums are multiplied by ``forget``. At most ``most_open`` trajectories wait
    for their tree to finish (:func:`acep.learning.trajectories.trajectories.split_finished`). ``edges=False`` keeps no
    edges between vectors. ``names`` of the states are for display; ``fingerprint`` is that of the query.

    ``bundles`` has the number of the bundle in each slot of the maps (-1: none), ``points`` its first match point.
    ``cut`` counts trajectories that were cut before their end. ``ValueError`` for a memory of other columns.
    """

    def __init__(
        self,
        grid: Grid,
        *,
        targets: Kind = "bundles",
        memory: VectorMemory | None = None,
        ring: int = 64,
        forget: float = 1.0,
        most_open: int = 1 << 16,
        edges: bool = True,
        names: Sequence[str] = (),
        fingerprint: str = "",
    ) -> None:
        if not 0 <= forget <= 1:
            raise ValueError(f"what is known is multiplied by 0 to 1, not {forget}")
        if targets not in ("bundles", "points"):
            raise ValueError(f"targets are bundles or points, not {targets!r}")
        self.grid, self.kind, self.forget, self.most_open = grid, targets, forget, most_open
        self.names, self.fingerprint = tuple(names), fingerprint
        self.memory: VectorMemory = DenseMemory(len(SUMS), ring) if memory is None else memory
        if self.memory.columns != len(SUMS):
            raise ValueError(f"the memory has {self.memory.columns} columns, not {len(SUMS)}")
        self.open, self.recent = Trajectories(), Contemporaries()
        self.targets = Targets(grid.span if targets == "bundles" else 0)
        self.ring = Ring(self.memory.ring)
        self.points: Ints = np.full(self.memory.ring, EMPTY)
        self.edges = Edges(grid.vectors, grid.vectors) if edges else None
        self.direct = Edges(grid.vectors, self.memory.ring)
        self.alike: Floats = np.zeros((grid.states, 2))
        self.cut = 0
        self.epochs = 0

    def __repr__(self) -> str:
        n_visits = float(self.sums()[:, SUMS.index("seen")].sum())
        return (
            f"History({self.kind}; {self.grid.states} states, {self.epochs:,} epochs, {n_visits:,.0f} visits,"
            f" {len(self.visited()):,} of {self.grid.vectors:,} match vectors)"
        )

    def _repr_html_(self) -> str:
        return history_page(self)

    @property
    def bundles(self) -> Ints:
        """Return the bundle number of each slot, int64[ring]; -1: none."""
        return self.ring.bundles

    @property
    def nbytes(self) -> int:
        """Return the bytes of the arrays, without the trajectories that are still open."""
        edges = sum(matrix.keys.nbytes + matrix.weights.nbytes for matrix in self._matrices.values())
        return self.memory.nbytes + edges + self.alike.nbytes

    @property
    def _matrices(self) -> dict[str, Edges]:
        """Return the edges to bundles, and those between vectors if they are kept."""
        return {"direct": self.direct} if self.edges is None else {"direct": self.direct, "edges": self.edges}

    # ---- updates

    def update(self, trajectories: Trajectories) -> int:
        """Add the log of a stretch of events, and return how many trajectories it finished.

        ``ValueError`` for states or features outside the grid; then nothing has changed.
        """
        targets, runs = self.targets.number_targets(trajectories.found)
        step = split_finished(self.open, replace(trajectories, found=runs), self.most_open)
        news = tally(self.grid, step.trajectories) if len(step.trajectories.made) else None
        self.targets, self.open = targets, step.open
        self.cut += step.cut
        self.epochs += 1
        if self.forget < 1:
            self.memory.scale(self.forget)
            for edges in self._matrices.values():
                edges.scale(self.forget)
            self.alike *= self.forget
        if news is not None:
            self._add(news, step.trajectories)
        self.recent, alike = self.recent.evaluate(self.open.made, self.grid.states, self.most_open)
        self.alike += alike
        return len(step.trajectories.made)

    def begin(self) -> None:
        """Begin another stream or run: forget the open trajectories and bundles."""
        self.open, self.recent = Trajectories(), Contemporaries()
        self.targets = Targets(self.targets.gap, self.targets.limit, self.targets.count)

    def merge(self, other: History) -> None:
        """Add another history of the same query. Its bundles get new numbers, after those of this one.

        If the maps have no room for all bundles, each history keeps its newest, in at least half the slots. The other's
        open trajectories are left out. ``ValueError`` for a history of another query, grid, targets or memory.
        """
        if (other.fingerprint, other.grid, other.kind) != (self.fingerprint, self.grid, self.kind):
            raise ValueError("histories of one query are merged, not of several")
        size = self.memory.ring
        if other.memory.ring != size or (self.edges is None) != (other.edges is None):
            raise ValueError("a history is merged with one of the same shape")
        other_slots = np.argsort(other.bundles, kind="stable")[np.count_nonzero(other.bundles < 0) :]
        n_bundles = int(np.count_nonzero(self.bundles >= 0))
        n_free = size - min(n_bundles, max(size - len(other_slots), size // 2))
        copy = read_memory(other.memory.to_bytes()) if other is self else other.memory
        points, newest = other.points.copy(), other_slots[max(len(other_slots) - n_free, 0) :]
        direct = Edges(self.grid.vectors, size)
        direct.merge(other.direct)
        slots = np.full(size, -1)
        slots[newest] = self._take(self.targets.count + np.arange(len(newest)))
        self.memory.merge(copy, slots)
        self.direct.merge(direct, slots)
        self.points[slots[newest]] = points[newest]
        if self.edges is not None and other.edges is not None:
            self.edges.merge(other.edges)
        self.alike = self.alike + other.alike
        self.targets = replace(self.targets, count=self.targets.count + len(newest))
        self.cut += other.cut
        self.epochs += other.epochs

    def _add(self, news: VectorSums, trajectories: Trajectories) -> None:
        self.memory.add(news.vectors, news.sums)
        if self.edges is not None:
            self.edges.add(*news.edges)
        self.recent = self.recent.add(trajectories.made, news.until, news.reached)
        numbers = np.unique(np.concatenate([news.hits[1], news.direct[1]]))[-self.memory.ring :]
        if not len(numbers):
            return
        slots = self._take(numbers)
        slot, has_slot = _find_slots(numbers, slots, news.hits[1])
        self.memory.set_bits(news.hits[0][has_slot], slot[has_slot])
        slot, has_slot = _find_slots(numbers, slots, news.direct[1])
        self.direct.add(news.direct[0][has_slot], slot[has_slot], news.direct[2][has_slot])
        slot, has_slot = _find_slots(numbers, slots, trajectories.found.target)
        when, slot = trajectories.found.when[has_slot], slot[has_slot]
        self.points[slot] = np.where(self.points[slot] == EMPTY, np.iinfo(np.int64).max, self.points[slot])
        np.minimum.at(self.points, slot, when)

    def _take(self, numbers: Ints) -> Ints:
        """Return slots for bundles with rising ``numbers``, after clearing those that were in use."""
        assignments = [self.ring.take(int(number)) for number in numbers]
        slots = np.array([slot for slot, _ in assignments], dtype=np.int64)
        cleared = np.array([slot for slot, other in assignments if other], dtype=np.int64)
        if len(cleared):
            for slot in cleared:
                self.memory.recycle(int(slot))
            is_cleared = np.zeros(self.memory.ring, dtype=np.bool_)
            is_cleared[cleared] = True
            self.direct.drop(is_cleared)
            self.points[cleared] = EMPTY
        return slots

    # ---- queries

    def sums(self, vectors: Ints | None = None, level: int = 0) -> Floats:
        """Return the sums of vectors (default: all of the grid), float64[n, len(SUMS)], in the order of ``SUMS``.

        At a back-off ``level`` above 0 (:meth:`Grid.coarse`) each vector has the sums of all vectors in its coarser
        group. This reads all vectors of the grid; with a sketch their errors add up.
        """
        if level == 0:
            return self.memory.look(np.arange(self.grid.vectors) if vectors is None else vectors)
        every = self.memory.look(np.arange(self.grid.vectors))
        group = self.grid.coarse(np.arange(self.grid.vectors), level)
        table = np.zeros_like(every)
        np.add.at(table, group, every)
        return table[group if vectors is None else self.grid.coarse(vectors, level)]

    def maps(self, vectors: Ints) -> Bools:
        """Return the match maps of vectors, bool[n, ring]: the bundles (:attr:`bundles`) reached from each."""
        return self.memory.maps(vectors)

    def words(self, vectors: Ints) -> Words:
        """Return the packed match maps, uint64[n, ceil(ring / 64)]."""
        return self.memory.words(vectors)

    def overlap(self) -> Floats:
        """Return by state the share of other partial matches that reach the same bundle as one does, float64[states];
        NaN: unknown (:mod:`acep.learning.history.overlap`)."""
        shares, weights = self.alike.T
        mean_shares: Floats = np.divide(shares, weights, out=np.full(len(weights), np.nan), where=weights > 0)
        return mean_shares

    def visited(self) -> Ints:
        """Return the visited vectors, rising: int64[n]. A sketch may include some that were not visited."""
        stored_vectors = getattr(self.memory, "vectors", None)
        every = np.arange(self.grid.vectors) if stored_vectors is None else stored_vectors
        return every[self.memory.look(every)[:, SUMS.index("visits")] > 0]

    # ---- as bytes

    def to_sections(self) -> dict[str, bytes]:
        """Return the file sections of the history (:mod:`acep.storage.sections`). The file may have others."""
        about: dict[str, Any] = {
            "fingerprint": self.fingerprint,
            "names": list(self.names),
            "grid": asdict(self.grid),
            "targets": self.kind,
            "forget": self.forget,
            "most_open": self.most_open,
            "edges": int(self.edges is not None),
            "ring": self.ring.to_data(),
            "cut": self.cut,
            "epochs": self.epochs,
        }
        arrays: dict[str, Any] = {**self.open.to_arrays(), **self.targets.to_arrays(), **self.recent.to_arrays()}
        arrays |= {"points": self.points, "alike": self.alike}
        for name, edges in self._matrices.items():
            arrays |= {f"{name}.keys": edges.keys, f"{name}.weights": edges.weights}
        arrays["found.first"] = arrays["found.first"].astype(np.int64)
        return {
            "history": json.dumps(about).encode(),
            "history.arrays": pack("history", {}, arrays),
            "history.memory": self.memory.to_bytes(),
        }

    @classmethod
    def from_sections(cls, sections: Mapping[str, bytes], fingerprint: str | None = None) -> History:
        """Read the history of :meth:`to_sections`.

        Raises :class:`SnapshotError` for sections without a history, or of a query with another ``fingerprint``.
        """
        try:
            about = json.loads(sections["history"])
            stored = unpack(sections["history.arrays"], "history")
            history = cls(
                Grid(**{name: _check_type(value, int, type(None)) for name, value in about["grid"].items()}),
                targets=about["targets"],
                memory=read_memory(sections["history.memory"]),
                forget=about["forget"],
                most_open=_count(about["most_open"]),
                edges=_count(about["edges"]) > 0,
                names=[_check_type(name, str) for name in about["names"]],
                fingerprint=_check_type(about["fingerprint"], str),
            )
            if fingerprint not in (None, history.fingerprint):
                hint = "a history serves the query it was learned of"
                raise SnapshotError("the history is of another query", hint=hint)
            arrays = stored.arrays
            flags = stored.array("found.first", "<i8", arrays["found.first"].shape)
            arrays["found.first"] = flags.astype(np.bool_)
            history.open = Trajectories.from_arrays(arrays)
            history.recent = Contemporaries.from_arrays(arrays, history.grid.states)
            history.targets = history.targets.with_arrays(arrays)
            history.ring = Ring.from_data(about["ring"])
            history.points = stored.array("points", "<i8", (history.memory.ring,))
            history.alike = stored.array("alike", "<f8", (history.grid.states, 2))
            for name, edges in history._matrices.items():
                edges.restore(arrays[f"{name}.keys"], arrays[f"{name}.weights"])
            history.cut, history.epochs = _count(about["cut"]), _count(about["epochs"])
            if len(history.ring.bundles) != history.memory.ring or history.ring.bundles.max() >= history.targets.count:
                raise ValueError("a ring that does not fit")
            if not np.all((history.alike >= 0) & np.isfinite(history.alike)):
                raise ValueError("shares that are none")
            open_partials = history.open.made  # states and features outside the grid raise
            history.grid.number(
                open_partials.state,
                open_partials.error,
                open_partials.start,
                open_partials.made,
                open_partials.made,
                open_partials.feature,
            )
        except SnapshotError:
            raise
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError, OverflowError):
            raise SnapshotError("the history is damaged: its content makes no sense", code="state_damaged") from None
        return history

    def to_bytes(self) -> bytes:
        """Return the history as the bytes of a file."""
        return write_sections(self.to_sections())

    @classmethod
    def from_bytes(cls, data: bytes, fingerprint: str | None = None) -> History:
        """Read the history of :meth:`to_bytes`; :class:`SnapshotError` for other bytes or another query."""
        return cls.from_sections(read_sections(data), fingerprint)


def _find_slots(numbers: Ints, slots: Ints, queried: Ints) -> tuple[Ints, Bools]:
    """Return the slots of the bundles ``queried``, and a mask of those that have one; ``numbers`` rise."""
    positions = np.minimum(np.searchsorted(numbers, queried), len(numbers) - 1)
    return slots[positions], numbers[positions] == queried


def _check_type(value: object, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise TypeError("a value of another type")
    return value


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("no count")
    return value

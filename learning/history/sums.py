"""Sum up a batch of finished trees by match vector: counts, edges, and the targets reached.

A partial match passes through several vectors over time
(:meth:`acep.learning.trajectories.match_vectors.Grid.passage`). A target counts for a vector if the run that found it
left the partial match there or later. So a vector is scored by what is still to come: after its last success a partial
match counts as failed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acep.learning.trajectories.match_vectors import Bools, Floats, Grid, Ints, Passage
from acep.learning.trajectories.targets import NONE, Reached, walk
from acep.learning.trajectories.trajectories import CompleteRuns, Made, Trajectories
from acep.learning.trajectories.trees import ends_of, with_extensions

__all__ = ["SUMS", "VectorSums", "tally"]

SUMS = (
    "seen",  # visits in the log, without weights
    "visits",  # visits times the weight of their tree; all the following sums are weighted too
    "own",  # transition evaluations during the visit; those of a partial match are spread evenly over its time
    "rest",  # transition evaluations of the partial match from then on
    "descendants",  # transition evaluations of its extensions from then on
    "reached",  # visits that led to a target
    "first",  # targets whose first run passed through
    "targets",  # distinct targets reached per visit, summed over visits
    "unknown",  # visits without a target where the partial match or an extension was shed, cleared, merged or cut
    "advanced",  # visits after which an event was bound
    "wait",  # the total time until then
)
"""The sums of each vector, in this order."""


@dataclass(frozen=True)
class VectorSums:
    """The additions of some finished trajectories to a history.

    ``vectors`` (distinct, rising) with their ``sums`` (float64[n, len(SUMS)]). ``edges`` from vector to vector as
    columns (source, target, weight), and ``direct`` from vector to target likewise. ``hits``: pairs of vector and
    target reached from it, each once. ``reached``: the targets of each row, and ``until`` when each row ended.
    """

    vectors: Ints
    sums: Floats
    edges: tuple[Ints, Ints, Floats]
    direct: tuple[Ints, Ints, Floats]
    hits: tuple[Ints, Ints]
    reached: Reached
    until: Ints


def tally(grid: Grid, trajectories: Trajectories) -> VectorSums:
    """Return the sums and edges of finished trees; ``trajectories.found`` must have its targets."""
    made, found = trajectories.made, trajectories.found
    reached = walk(made, found)
    child = np.flatnonzero(made.parents >= 0)
    leaf = made.find(found.parent)
    found, leaf = found.rows(leaf >= 0), leaf[leaf >= 0]
    until, lost, touches = ends_of(grid, trajectories, leaf, found)
    stays = grid.passage(made.state, made.error, made.start, made.made, until, made.feature)
    child_stay = stays.at(made.parents[child], made.made[child])
    found_stay = stays.at(leaf, found.when)
    reach_stay = stays.at(reached.row, reached.until)
    sums = _sums(made, stays, reached, (reach_stay, child, child_stay, found_stay), (found, lost, touches))
    weight = made.weight[stays.row]
    vectors, where = _compact(stays.vector, grid.vectors)
    same = stays.row[1:] == stays.row[:-1]
    edges = (
        np.concatenate([stays.vector[:-1][same], stays.vector[child_stay]]),
        np.concatenate([stays.vector[1:][same], stays.vector[stays.first[child]]]),
        np.concatenate([weight[:-1][same], made.weight[child]]),
    )
    return VectorSums(
        vectors,
        np.stack([np.bincount(where, column, len(vectors)) for column in sums], axis=1),
        edges,
        (stays.vector[found_stay], found.target, made.weight[leaf]),
        _hits(vectors, where, stays, reached, reach_stay),
        reached,
        until,
    )


def _sums(
    made: Made,
    stays: Passage,
    reached: Reached,
    places: tuple[Ints, Ints, Ints, Ints],
    ends: tuple[CompleteRuns, Bools, Ints],
) -> list[Floats]:
    """Return the columns of ``SUMS``, by stay."""
    reach_stay, child, child_stay, found_stay = places
    found, lost, touches = ends
    count = len(stays.row)
    first = reached.first != NONE
    first_stay = stays.at(reached.row[first], reached.first[first])
    below_touches, below_lost = with_extensions(made.parents, touches, lost.astype(np.int64))
    last = stays.first[1:] - 1
    to_come = _to_come(
        stays,
        np.bincount(reach_stay, minlength=count),
        np.bincount(first_stay, minlength=count),
        _counted(child_stay, below_touches[child], count),
        _counted(child_stay, below_lost[child], count) + _counted(last, lost.astype(np.int64), count),
    )
    targets, firsts, descendants, gone = to_come
    # Touches are split by time; a row without duration has one stay, which gets them all.
    trajectory = (stays.end[last] - made.made)[stays.row]
    share = np.divide(stays.end - stays.begin, trajectory, out=np.ones(count), where=trajectory > 0)
    to_the_end = stays.end[last][stays.row] - stays.begin
    remaining = np.divide(to_the_end, trajectory, out=np.ones(count), where=trajectory > 0)
    moves, when = np.concatenate([child_stay, found_stay]), np.concatenate([made.made[child], found.when])
    advanced, wait = _next(stays, moves, when)
    weight, touched, unknown = made.weight[stays.row], touches[stays.row], (targets == 0) & (gone > 0)
    spent = (touched * share, touched * remaining, descendants)
    columns = (*spent, targets > 0, firsts, targets, unknown, advanced, wait)
    return [np.ones(count), weight, *(weight * column for column in columns)]


def _to_come(stays: Passage, *columns: Ints) -> list[Ints]:
    """Return, for numbers by stay, the sums over each stay and the later stays of the same row."""
    out = []
    for column in columns:
        total = np.concatenate([[0], np.cumsum(column)])
        out.append(total[stays.first[stays.row + 1]] - total[:-1])
    return out


def _counted(places: Ints, amounts: Ints, count: int) -> Ints:
    """Return integers summed by place (exact, as they are far below 2**53)."""
    return np.bincount(places, amounts, count).astype(np.int64)


def _next(stays: Passage, moved: Ints, when: Ints) -> tuple[Bools, Ints]:
    """Return for each stay whether an event was bound in it or later in the same row, and the time until then."""
    order = np.lexsort((when, moved))
    moved, when = moved[order], when[order]
    at = np.searchsorted(moved, np.arange(len(stays.row)))
    known = at < len(moved)
    known[known] = stays.row[moved[at[known]]] == stays.row[known]
    wait = np.zeros(len(stays.row), dtype=np.int64)
    wait[known] = when[at[known]] - stays.begin[known]
    return known, np.maximum(wait, 0)


def _hits(vectors: Ints, where: Ints, stays: Passage, reached: Reached, reach_stay: Ints) -> tuple[Ints, Ints]:
    """Return the pairs of vector and reached target: a run counts at every stay up to the one that it left from."""
    lengths = reach_stay - stays.first[reached.row] + 1
    pair = np.repeat(np.arange(len(reached)), lengths)
    begins = np.cumsum(lengths) - lengths
    stay = stays.first[reached.row[pair]] + np.arange(len(pair)) - begins[pair]
    numbers, target = np.unique(reached.target, return_inverse=True)
    key, _ = _compact(where[stay] * max(len(numbers), 1) + target[pair], len(vectors) * max(len(numbers), 1))
    return vectors[key // max(len(numbers), 1)], numbers[key % max(len(numbers), 1)]


def _compact(values: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the distinct values, rising, and the place of each value among them; ``values`` are below ``size``."""
    if size > 1 << 22:
        distinct, where = np.unique(values, return_inverse=True)
        return distinct, np.asarray(where, np.int64)
    there = np.zeros(size, dtype=np.bool_)
    there[values] = True
    place = np.cumsum(there) - 1
    return np.flatnonzero(there), place[values]

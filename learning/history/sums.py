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
    partials, runs = trajectories.made, trajectories.found
    reached = walk(partials, runs)
    child = np.flatnonzero(partials.parents >= 0)
    leaf = partials.find(runs.parent)
    runs, leaf = runs.rows(leaf >= 0), leaf[leaf >= 0]
    ends, is_lost, touches = ends_of(grid, trajectories, leaf, runs)
    stays = grid.passage(partials.state, partials.error, partials.start, partials.made, ends, partials.feature)
    child_stay = stays.stay_at(partials.parents[child], partials.made[child])
    found_stay = stays.stay_at(leaf, runs.when)
    reach_stay = stays.stay_at(reached.row, reached.until)
    sums = _sums(partials, stays, reached, (reach_stay, child, child_stay, found_stay), (runs, is_lost, touches))
    weight = partials.weight[stays.row]
    vectors, vector_index = _compact(stays.vector, grid.vectors)
    has_next = stays.row[1:] == stays.row[:-1]
    edges = (
        np.concatenate([stays.vector[:-1][has_next], stays.vector[child_stay]]),
        np.concatenate([stays.vector[1:][has_next], stays.vector[stays.first[child]]]),
        np.concatenate([weight[:-1][has_next], partials.weight[child]]),
    )
    return VectorSums(
        vectors,
        np.stack([np.bincount(vector_index, column, len(vectors)) for column in sums], axis=1),
        edges,
        (stays.vector[found_stay], runs.target, partials.weight[leaf]),
        _hits(vectors, vector_index, stays, reached, reach_stay),
        reached,
        ends,
    )


def _sums(
    partials: Made,
    stays: Passage,
    reached: Reached,
    stay_rows: tuple[Ints, Ints, Ints, Ints],
    ends: tuple[CompleteRuns, Bools, Ints],
) -> list[Floats]:
    """Return the columns of ``SUMS``, by stay."""
    reach_stay, child, child_stay, found_stay = stay_rows
    runs, is_lost, touches = ends
    count = len(stays.row)
    first = reached.first != NONE
    first_stay = stays.stay_at(reached.row[first], reached.first[first])
    below_touches, below_lost = with_extensions(partials.parents, touches, is_lost.astype(np.int64))
    last = stays.first[1:] - 1
    to_come = _to_come(
        stays,
        np.bincount(reach_stay, minlength=count),
        np.bincount(first_stay, minlength=count),
        _sum_by_stay(child_stay, below_touches[child], count),
        _sum_by_stay(child_stay, below_lost[child], count) + _sum_by_stay(last, is_lost.astype(np.int64), count),
    )
    targets, firsts, descendants, losses = to_come
    # Touches are split by time; a row without duration has one stay, which gets them all.
    trajectory = (stays.end[last] - partials.made)[stays.row]
    share = np.divide(stays.end - stays.begin, trajectory, out=np.ones(count), where=trajectory > 0)
    to_the_end = stays.end[last][stays.row] - stays.begin
    remaining = np.divide(to_the_end, trajectory, out=np.ones(count), where=trajectory > 0)
    moves, when = np.concatenate([child_stay, found_stay]), np.concatenate([partials.made[child], runs.when])
    advanced, wait = _next_moves(stays, moves, when)
    weight, touched, unknown = partials.weight[stays.row], touches[stays.row], (targets == 0) & (losses > 0)
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


def _sum_by_stay(stay_rows: Ints, amounts: Ints, count: int) -> Ints:
    """Return integers summed by the rows of their stays (exact, as they are far below 2**53)."""
    return np.bincount(stay_rows, amounts, count).astype(np.int64)


def _next_moves(stays: Passage, move_stays: Ints, when: Ints) -> tuple[Bools, Ints]:
    """Return for each stay whether an event was bound in it or later in the same row, and the time until then."""
    order = np.lexsort((when, move_stays))
    move_stays, when = move_stays[order], when[order]
    move_index = np.searchsorted(move_stays, np.arange(len(stays.row)))
    moves_on = move_index < len(move_stays)
    moves_on[moves_on] = stays.row[move_stays[move_index[moves_on]]] == stays.row[moves_on]
    wait = np.zeros(len(stays.row), dtype=np.int64)
    wait[moves_on] = when[move_index[moves_on]] - stays.begin[moves_on]
    return moves_on, np.maximum(wait, 0)


def _hits(vectors: Ints, vector_index: Ints, stays: Passage, reached: Reached, reach_stay: Ints) -> tuple[Ints, Ints]:
    """Return the pairs of vector and reached target: a run counts at every stay up to the one that it left from."""
    lengths = reach_stay - stays.first[reached.row] + 1
    pair = np.repeat(np.arange(len(reached)), lengths)
    begins = np.cumsum(lengths) - lengths
    stay = stays.first[reached.row[pair]] + np.arange(len(pair)) - begins[pair]
    numbers, target = np.unique(reached.target, return_inverse=True)
    key, _ = _compact(vector_index[stay] * max(len(numbers), 1) + target[pair], len(vectors) * max(len(numbers), 1))
    return vectors[key // max(len(numbers), 1)], numbers[key % max(len(numbers), 1)]


def _compact(values: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the distinct values, rising, and the place of each value among them; ``values`` are below ``size``."""
    if size > 1 << 22:
        distinct, index = np.unique(values, return_inverse=True)
        return distinct, np.asarray(index, np.int64)
    occurs = np.zeros(size, dtype=np.bool_)
    occurs[values] = True
    rank = np.cumsum(occurs) - 1
    return np.flatnonzero(occurs), rank[values]

"""The history graph in plain Python: one life, one moment and one run at a time, all lives at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from acep.learning.history.sums import SUMS
from acep.learning.trajectories.match_vectors import Grid
from acep.learning.trajectories.trajectories import EXPIRED, TAKEN, Trajectories


@dataclass
class Stay:
    """A life at a vector, from ``begin`` to ``end``; ``last``: until the life ended."""

    vector: int
    begin: int
    end: int
    last: bool = True


@dataclass
class Life:
    """A node, and what became of it."""

    row: int
    until: int
    lost: bool
    touches: int
    children: list[Life] = field(default_factory=list)
    found: list[tuple[int, int, bool]] = field(default_factory=list)  # when, target, first
    stays: list[Stay] = field(default_factory=list)


class SlowHistory:
    """Of lives whose runs have their targets: ``sums`` by vector, ``edges``, ``direct``, ``hits`` and ``alike``."""

    def __init__(self, grid: Grid, trajectories: Trajectories) -> None:
        self.grid, self.made = grid, trajectories.made
        self.trajectories = _tree(trajectories)
        self.sums: dict[int, dict[str, float]] = defaultdict(lambda: dict.fromkeys(SUMS, 0.0))
        self.edges: Counter[tuple[int, int]] = Counter()
        self.direct: Counter[tuple[int, int]] = Counter()
        self.hits: set[tuple[int, int]] = set()
        for trajectory in self.trajectories:
            trajectory.stays = self._stays(trajectory)
        for trajectory in self.trajectories:
            self._count(trajectory)
        self.alike = [self._alike(state) for state in range(grid.states)]

    def vector(self, row: int, now: int) -> int:
        """Where a life is at a time, by the formulas of docs/explanation/best_effort.md."""
        m, grid = self.made, self.grid
        start, made, state, error = int(m.start[row]), int(m.made[row]), int(m.state[row]), int(m.error[row])
        remaining = since = 0
        if grid.span is not None:
            remaining = (grid.span - (now - start)) * grid.windows // (grid.span + 1)
            since = sum(now - made >= grid.span // part for part in (64, 16, 4))
        number = (state * grid.errors + min(error, grid.errors - 1)) * grid.windows + remaining
        return (number * grid.waits + since) * grid.features + int(m.feature[row])

    def _stays(self, trajectory: Life) -> list[Stay]:
        made = int(self.made.made[trajectory.row])
        stays = [Stay(self.vector(trajectory.row, made), made, trajectory.until)]
        for now in range(made + 1, trajectory.until + 1 if self.grid.span is not None else made + 1):
            vector = self.vector(trajectory.row, now)
            if vector != stays[-1].vector:
                stays[-1].end, stays[-1].last = now, False
                stays.append(Stay(vector, now, trajectory.until))
        return stays

    def _count(self, trajectory: Life) -> None:
        weight = float(self.made.weight[trajectory.row])
        long = trajectory.until - int(self.made.made[trajectory.row])
        for stay in trajectory.stays:
            runs = self._runs(trajectory, stay.begin)
            targets = {target for _, target, _ in runs}
            later = [child for child in trajectory.children if int(self.made.made[child.row]) >= stay.begin]
            moves = [int(self.made.made[child.row]) for child in later]
            moves += [when for when, _, _ in trajectory.found if when >= stay.begin]
            lost = trajectory.lost or any(_any_lost(child) for child in later)
            share = (stay.end - stay.begin) / long if long else 1.0
            rest = (trajectory.until - stay.begin) / long if long else 1.0
            sums = self.sums[stay.vector]
            sums["seen"] += 1
            sums["visits"] += weight
            sums["own"] += weight * trajectory.touches * share
            sums["rest"] += weight * trajectory.touches * rest
            sums["descendants"] += weight * sum(map(_touches, later))
            sums["reached"] += weight * bool(targets)
            sums["first"] += weight * sum(first for _, _, first in runs)
            sums["targets"] += weight * len(targets)
            sums["unknown"] += weight * (not targets and lost)
            sums["advanced"] += weight * bool(moves)
            sums["wait"] += weight * (min(moves) - stay.begin if moves else 0)
            self.hits |= {(stay.vector, target) for target in targets}
        for one, two in zip(trajectory.stays, trajectory.stays[1:], strict=False):
            self.edges[one.vector, two.vector] += weight
        for child in trajectory.children:
            made = int(self.made.made[child.row])
            self.edges[self._at(trajectory, made), child.stays[0].vector] += float(self.made.weight[child.row])
        for when, target, _ in trajectory.found:
            self.direct[self._at(trajectory, when), target] += weight

    def _at(self, trajectory: Life, now: int) -> int:
        return [stay for stay in trajectory.stays if stay.begin <= now][-1].vector

    def _runs(self, trajectory: Life, begin: int) -> list[tuple[int, int, bool]]:
        """The runs that were found and left the life at ``begin`` or later."""
        runs = [run for run in trajectory.found if run[0] >= begin]
        for child in trajectory.children:
            if int(self.made.made[child.row]) >= begin:
                runs += self._runs(child, 0)
        return runs

    def _alike(self, state: int) -> tuple[float, float]:
        shares = weights = 0.0
        same_state = [trajectory for trajectory in self.trajectories if self.made.state[trajectory.row] == state]
        for one in same_state:
            now = int(self.made.made[one.row])
            others = [
                trajectory
                for trajectory in same_state
                if trajectory is not one
                and self.made.partition[trajectory.row] == self.made.partition[one.row]
                and int(self.made.made[trajectory.row]) <= now <= trajectory.until
            ]
            for target in {target for _, target, _ in self._runs(one, now)}:
                if others:
                    reach = [
                        trajectory for trajectory in others if target in {t for _, t, _ in self._runs(trajectory, now)}
                    ]
                    weight = float(self.made.weight[one.row])
                    shares += weight * len(reach) / len(others)
                    weights += weight
        return shares, weights


def _tree(trajectories: Trajectories) -> list[Life]:
    made, ended, found = trajectories.made, trajectories.ended, trajectories.found
    ends = {
        int(trajectory): (int(when), int(how), int(touches))
        for trajectory, when, how, touches in zip(ended.trajectory, ended.when, ended.how, ended.touches, strict=True)
    }
    nodes: dict[int, Life] = {}
    for row, number in enumerate(made.trajectory.tolist()):
        until, how, touches = ends.get(number, (int(made.made[row]), -1, 0))
        nodes[number] = Life(row, until, how not in (EXPIRED, TAKEN), touches)
        parent = nodes.get(int(made.parent[row]))
        if parent is not None:
            parent.children.append(nodes[number])
            parent.until = max(parent.until, int(made.made[row]))
    for parent_, when, target, first in zip(found.parent, found.when, found.target, found.first, strict=True):
        if int(parent_) in nodes:
            nodes[int(parent_)].found.append((int(when), int(target), bool(first)))
            nodes[int(parent_)].until = max(nodes[int(parent_)].until, int(when))
    return list(nodes.values())


def _touches(trajectory: Life) -> int:
    return trajectory.touches + sum(map(_touches, trajectory.children))


def _any_lost(trajectory: Life) -> bool:
    return trajectory.lost or any(map(_any_lost, trajectory.children))

"""The history graph in plain Python: one life, one moment and one run at a time, all lives at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from acep.learning.history.sums import SUMS
from acep.learning.trajectories.match_vectors import Grid
from acep.learning.trajectories.trajectories import EXPIRED, TAKEN, Lives


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

    def __init__(self, grid: Grid, lives: Lives) -> None:
        self.grid, self.made = grid, lives.made
        self.lives = _tree(lives)
        self.sums: dict[int, dict[str, float]] = defaultdict(lambda: dict.fromkeys(SUMS, 0.0))
        self.edges: Counter[tuple[int, int]] = Counter()
        self.direct: Counter[tuple[int, int]] = Counter()
        self.hits: set[tuple[int, int]] = set()
        for life in self.lives:
            life.stays = self._stays(life)
        for life in self.lives:
            self._count(life)
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

    def _stays(self, life: Life) -> list[Stay]:
        made = int(self.made.made[life.row])
        stays = [Stay(self.vector(life.row, made), made, life.until)]
        for now in range(made + 1, life.until + 1 if self.grid.span is not None else made + 1):
            vector = self.vector(life.row, now)
            if vector != stays[-1].vector:
                stays[-1].end, stays[-1].last = now, False
                stays.append(Stay(vector, now, life.until))
        return stays

    def _count(self, life: Life) -> None:
        weight = float(self.made.weight[life.row])
        long = life.until - int(self.made.made[life.row])
        for stay in life.stays:
            runs = self._runs(life, stay.begin)
            targets = {target for _, target, _ in runs}
            later = [child for child in life.children if int(self.made.made[child.row]) >= stay.begin]
            moves = [int(self.made.made[child.row]) for child in later]
            moves += [when for when, _, _ in life.found if when >= stay.begin]
            lost = life.lost or any(_any_lost(child) for child in later)
            share = (stay.end - stay.begin) / long if long else 1.0
            rest = (life.until - stay.begin) / long if long else 1.0
            sums = self.sums[stay.vector]
            sums["seen"] += 1
            sums["visits"] += weight
            sums["own"] += weight * life.touches * share
            sums["rest"] += weight * life.touches * rest
            sums["descendants"] += weight * sum(map(_touches, later))
            sums["reached"] += weight * bool(targets)
            sums["first"] += weight * sum(first for _, _, first in runs)
            sums["targets"] += weight * len(targets)
            sums["unknown"] += weight * (not targets and lost)
            sums["advanced"] += weight * bool(moves)
            sums["wait"] += weight * (min(moves) - stay.begin if moves else 0)
            self.hits |= {(stay.vector, target) for target in targets}
        for one, two in zip(life.stays, life.stays[1:], strict=False):
            self.edges[one.vector, two.vector] += weight
        for child in life.children:
            made = int(self.made.made[child.row])
            self.edges[self._at(life, made), child.stays[0].vector] += float(self.made.weight[child.row])
        for when, target, _ in life.found:
            self.direct[self._at(life, when), target] += weight

    def _at(self, life: Life, now: int) -> int:
        return [stay for stay in life.stays if stay.begin <= now][-1].vector

    def _runs(self, life: Life, begin: int) -> list[tuple[int, int, bool]]:
        """The runs that were found and left the life at ``begin`` or later."""
        runs = [run for run in life.found if run[0] >= begin]
        for child in life.children:
            if int(self.made.made[child.row]) >= begin:
                runs += self._runs(child, 0)
        return runs

    def _alike(self, state: int) -> tuple[float, float]:
        shares = weights = 0.0
        same_state = [life for life in self.lives if self.made.state[life.row] == state]
        for one in same_state:
            now = int(self.made.made[one.row])
            others = [
                life
                for life in same_state
                if life is not one
                and self.made.partition[life.row] == self.made.partition[one.row]
                and int(self.made.made[life.row]) <= now <= life.until
            ]
            for target in {target for _, target, _ in self._runs(one, now)}:
                if others:
                    reach = [life for life in others if target in {t for _, t, _ in self._runs(life, now)}]
                    weight = float(self.made.weight[one.row])
                    shares += weight * len(reach) / len(others)
                    weights += weight
        return shares, weights


def _tree(lives: Lives) -> list[Life]:
    made, ended, found = lives.made, lives.ended, lives.found
    ends = {
        int(life): (int(when), int(how), int(touches))
        for life, when, how, touches in zip(ended.life, ended.when, ended.how, ended.touches, strict=True)
    }
    nodes: dict[int, Life] = {}
    for row, number in enumerate(made.life.tolist()):
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


def _touches(life: Life) -> int:
    return life.touches + sum(map(_touches, life.children))


def _any_lost(life: Life) -> bool:
    return life.lost or any(map(_any_lost, life.children))

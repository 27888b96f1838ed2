"""Trajectories to learn from: of a matcher that tosses dice, and of the reference engine on a stream."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from random import Random
from typing import Any

from acep.learning.trajectories.trajectories import CLEARED, EXPIRED, MERGED, SHED, TAKEN, Made, Trajectories
from acep.matches.records import Counts
from acep.plan.compile import Plan
from acep.reference.engine import Event, MatchNode, ReferenceEngine

COLUMNS = {
    "made": ("trajectory", "parent", "partition", "state", "error", "start", "made", "feature", "weight"),
    "ended": ("trajectory", "when", "how", "touches"),
    "found": ("parent", "partition", "when", "error"),
}


class Log:
    """Rows as they come, and as tables once there is enough of them."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in COLUMNS}

    def take(self) -> Trajectories:
        """The lives logged since the last time."""
        tables = [
            {column: [row[i] for row in self.rows[name]] for i, column in enumerate(columns)}
            for name, columns in COLUMNS.items()
        ]
        self.rows = {name: [] for name in COLUMNS}
        return Trajectories.from_columns(*tables)


def dice(
    seed: int,
    *,
    span: int | None = 20,
    ticks: int = 120,
    epochs: int = 4,
    partitions: int = 3,
    states: int = 4,
    errors: int = 3,
    features: int = 2,
    begins: float = 0.25,
    goes_on: float = 0.08,
    finds: float = 0.06,
    loses: float = 0.03,
) -> list[Trajectories]:
    """The logs of some epochs of a matcher whose nodes go on, find and are lost by chance; the last one ends all."""
    rng, log, logs = Random(seed), Log(), []
    live: list[dict[str, int]] = []
    number = 0
    for now in range(ticks):
        for partition in range(partitions):
            still, new = [], []
            for node in live:
                if node["partition"] != partition:
                    still.append(node)
                    continue
                if span is not None and now - node["start"] > span:
                    log.rows["ended"].append((node["trajectory"], node["start"] + span, EXPIRED, node["touches"]))
                    continue
                node["touches"] += rng.random() < 0.5
                taken = False
                for chance in (goes_on, goes_on / 4):
                    if node["state"] < states - 1 and rng.random() < chance:
                        child = {**node, "trajectory": number, "parent": node["trajectory"], "touches": 0, "made": now}
                        child["state"] += rng.random() < 0.9
                        child["error"] = min(node["error"] + (rng.random() < 0.3), errors - 1)
                        child["feature"] = rng.randrange(features)
                        new.append(child)
                        number += 1
                        taken |= rng.random() < 0.2
                for _ in range(2):
                    if rng.random() < finds:
                        log.rows["found"].append((node["trajectory"], partition, now, node["error"]))
                if taken or rng.random() < loses:
                    how = TAKEN if taken else rng.choice((SHED, CLEARED, MERGED))
                    log.rows["ended"].append((node["trajectory"], now, how, node["touches"]))
                else:
                    still.append(node)
            if rng.random() < begins:
                new.append(
                    {"trajectory": number, "parent": -1, "partition": partition, "state": 1, "error": 0, "start": now}
                    | {
                        "made": now,
                        "feature": rng.randrange(features),
                        "weight": rng.choice((1, 1, 2, 4)),
                        "touches": 0,
                    }
                )
                number += 1
            if rng.random() < 0.02:
                log.rows["found"].append((-1, partition, now, 0))
            new.sort(key=lambda node: node["trajectory"])
            for node in new:
                log.rows["made"].append(tuple(node[name] for name in COLUMNS["made"]))
            live = still + new
        if (now + 1) % -(-ticks // epochs) == 0 and now + 1 < ticks:
            logs.append(log.take())
    log.rows["ended"] += [(n["trajectory"], n["start"] + span if span else ticks, EXPIRED, n["touches"]) for n in live]
    logs.append(log.take())
    return logs


class Logged(ReferenceEngine):
    """The reference engine over one partition, with a log of all lives."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.log = Log()
        self._lives: dict[int, tuple[MatchNode, int, int]] = {}  # node, number, parent: by id
        self._touches: dict[int, int] = {}
        self._from: dict[int, tuple[MatchNode, int]] = {}
        self._current = -1

    def run(self, events: Iterable[tuple[str, int]]) -> Trajectories:
        """The lives of a stream of (type, time) without columns."""
        nodes: list[MatchNode] = []
        counts = Counts()
        number = 0
        for position, (kind, ts) in enumerate(events):
            live = [node for node in nodes if not self.has_expired(node, position, ts)]
            self._end([node for node in nodes if all(node is not n for n in live)], None)
            self._from = {}
            nodes, complete = self.feed(live, Event(position, ts, position, (kind,)), kind, counts)
            old = {id(node) for node in live}
            for node in nodes:
                if id(node) not in old:
                    made = (number, self._from[id(node)][1], 0, node.state, node.error, node.trail.first.ts, ts, 0, 1)
                    self.log.rows["made"].append(made)
                    self._lives[id(node)] = (node, number, made[1])
                    self._touches[number] = 0
                    number += 1
            for node, accept in complete:
                self.log.rows["found"].append((self._from[id(node)][1], 0, ts, node.error + accept.cost))
            still = {id(node) for node in nodes}
            self._end([node for node in live if id(node) not in still], ts)
        self._end(nodes, None)
        return self.log.take()

    def _end(self, nodes: Iterable[MatchNode], ts: int | None) -> None:
        for node in nodes:
            trajectory = self._lives[id(node)][1]
            over = node.trail.first.ts + (self.plan.window.span or 0)
            how = EXPIRED if ts is None else TAKEN
            self.log.rows["ended"].append((trajectory, over if ts is None else ts, how, self._touches[trajectory]))

    def _try(self, node: MatchNode | None, feed: Any) -> bool:
        self._current = -1 if node is None else self._lives[id(node)][1]
        before = feed.counts.touches
        waits = super()._try(node, feed)
        if node is not None:
            self._touches[self._current] += feed.counts.touches - before
        return waits

    def _make(self, *rest: Any) -> None:
        made = rest[-1]
        before = dict(made)
        super()._make(*rest)
        for key, node in made.items():
            if before.get(key) is not node:
                self._from[id(node)] = (node, self._current)


def joined(logs: Iterable[Trajectories]) -> Trajectories:
    """All of them as one."""
    whole = Trajectories()
    for log in logs:
        whole = whole.append(log)
    return whole


def children(made: Made) -> dict[int, list[int]]:
    """The rows of the children of each row."""
    row = {int(trajectory): i for i, trajectory in enumerate(made.trajectory)}
    below = defaultdict(list)
    for i, parent in enumerate(made.parent.tolist()):
        if parent in row:
            below[row[parent]].append(i)
    return below

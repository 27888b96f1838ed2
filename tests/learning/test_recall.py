"""What is known of match bundles in units that are spared, against a reckoning of its own; and that it is told in about
as many steps as there are rows."""

from __future__ import annotations

import time
from random import Random

import numpy as np
import pytest

from acep.learning.estimation.recall import ALL, EXACT, FOUND_SHEDDING, LOST, NEVER, UNIT, SampledUnits, Tally
from tests.case_counts import CaseCounts

Row = tuple[int, int, int, int, int, int, int]


def rows_of(random: Random, span: int, size: int, units: int = 3) -> list[Row]:
    """Points, found or not, and losses of two partitions in so many units each, all of which were drawn."""
    length, rows = UNIT * (span + 1), []
    for _ in range(size):
        ts = random.randrange(units * length)
        kind = random.choice([LOST, LOST, EXACT, FOUND_SHEDDING])
        rows.append((random.randrange(2), ts // length * length, ts, ts, kind, NEVER, int(ALL)))
    return rows


def bundles(rows: list[Row], span: int, clock: int) -> tuple[float, float]:
    """The weights of bundles that are known to begin in a unit, and of those of them that were found, one by one."""
    length, there, found = UNIT * (span + 1), 0.0, 0.0
    for unit in {row[:2] for row in rows}:
        own = [row for row in rows if row[:2] == unit]
        times = sorted({row[3] for row in own if row[4] != LOST})
        kept = {row[3] for row in own if row[4] == FOUND_SHEDDING}
        for first in (t for n, t in enumerate(times) if n == 0 or t - times[n - 1] > span):
            last = first
            while later := [t for t in times if last < t <= last + span]:
                last = later[0]
            since = unit[1] + 2 * span
            until = min([row[2] for row in own if row[4] == LOST and row[2] > first] + [unit[1] + length, clock])
            seen = [t for t in sorted(kept) if first <= t <= last]
            end = last + span - first
            decided = min(seen[0] - first if seen else np.inf, end, (until - since) * 2 // 3)
            if first < since or first + decided >= until:
                continue
            weight = (until - since) / (until - since - decided)
            there += weight
            found += weight * (1.0 if seen and seen[0] - first <= decided else 0.5 if decided < end else 0.0)
    return there, found


def test_what_is_known_of_bundles(cases: CaseCounts) -> None:
    n_known = 0
    for seed in range(cases(300)):
        random = Random(seed)
        span, size = random.randint(1, 6), random.randint(1, 50)
        rows, clock = rows_of(random, span, size), random.randint(0, 3 * UNIT * (span + 1))
        _, told = SampledUnits(span, counted=False, rows=np.array(rows, np.int64)).tallies(clock)
        assert (told.x, told.y) == pytest.approx(bundles(rows, span, clock))
        n_known += told.x > 0
    cases.expect({"bundles are known": n_known}, "bundles are known", least=151)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.95])
@pytest.mark.parametrize("units", [2, 40, 1000])
def test_the_interval_reaches_below_and_above_the_recall_and_that_of_all_missed_points_mirrors_it(
    share: float, units: int
) -> None:
    points = np.random.default_rng(units).integers(1, 20, units).astype(np.float64)
    shares = np.clip(share + np.linspace(-0.02, 0.02, units), 0, 1)
    chance, unsure = np.full(units, 0.1), np.zeros(units)
    estimate, mirror = (
        Tally.from_units(points, points * part, unsure, chance).estimate() for part in (shares, 1 - shares)
    )
    assert estimate is not None
    assert mirror is not None
    assert estimate.low < estimate.recall < estimate.high
    bounds = 1 - estimate.high, 1 - estimate.recall, 1 - estimate.low
    assert (mirror.low, mirror.recall, mirror.high) == pytest.approx(bounds)


def test_many_losses_take_no_longer_each() -> None:
    def took(size: int) -> float:
        rows = np.array(rows_of(Random(1), 4, size, size // 8), np.int64)
        began = time.process_time()
        SampledUnits(4, counted=False, rows=rows).tallies(10 * size)
        return time.process_time() - began

    took(1_000)
    assert took(64_000) < 64 * max(took(4_000), 1e-3)  # 16 times as many; each with each would be 256 times

"""A budget of time over many micro-batches: the share goes where the target is met, and comes back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from acep.overload.load import MIN_SHARE, Load, Measured


def run(load: Load, share: float, batches: list[tuple[int, float]], target: float) -> tuple[Load, list[float]]:
    """Step micro-batches of (rows, seconds for each row that is carried), and give the shares that they carried."""
    shares = []
    for rows, carry in batches:
        # As a call does it, with a threshold that is coarser than the share.
        if (wanted := load.share(target, share)) != share:
            load = load.skip_next()
            share = round(wanted * 2**10) / 2**10 if wanted < 1 else 1.0
        shares.append(share)
        carried = int(rows * share)
        load = load.add_batch(Measured(rows, rows, carried, 0.1 + 1e-7 * rows + carry * carried))
    return load, shares


def test_the_least_share_is_left_when_there_is_time_again() -> None:
    """At the least share each micro-batch was taken for one after a change, which tells nothing, and nothing was
    learned any more."""
    load, shares = run(Load(), 1.0, [(200_000, 1e-4)] * 12, target=0.3)
    assert shares[-1] == pytest.approx(MIN_SHARE, rel=0.02)
    _, shares = run(load, shares[-1], [(200_000, 2e-6)] * 30, target=0.3)
    assert shares[-1] == pytest.approx(0.18 / 0.4, rel=0.15)


@pytest.mark.parametrize("target", [0.2, 0.3, 0.4, 0.5])
def test_the_target_is_met_within_ten_of_a_hundred(target: float) -> None:
    _, shares = run(Load(), 1.0, [(200_000, 2e-6)] * 40, target)
    taken = [0.12 + 0.4 * share for share in shares[10:]]
    assert taken == pytest.approx([target] * 30, rel=0.1)


def test_a_share_that_meets_the_target_is_left_alone() -> None:
    _, shares = run(Load(), 1.0, [(200_000, 2e-6)] * 40, target=0.3)
    assert len(set(shares[10:])) == 1


def test_what_cannot_be_met_is_told() -> None:
    load, _ = run(Load(), 1.0, [(200_000, 2e-6)] * 10, target=0.05)
    assert load.is_behind(0.05)
    assert not replace(load, last=()).is_behind(0.05)


def test_nothing_is_shed_where_spark_alone_takes_longer_than_the_target() -> None:
    """Shedding would cost matches and not keep the target. Even after many micro-batches that carry all, nothing is
    shed to find out again."""
    load, shares = run(Load(), 1.0, [(200_000, 2e-6)] * 120, target=0.1)
    assert sum(share < 1 for share in shares) < 10
    assert set(shares[12:]) == {1.0}
    assert load.is_behind(0.1)
    assert "Spark alone takes 0.1" in load.behind_reason(0.1)


def test_costs_stay_known_while_all_events_are_carried() -> None:
    """A target within reach is met at once where a longer one has let all events travel for long."""
    load, shares = run(Load(), 1.0, [(200_000, 2e-6)] * 30, target=0.3)
    load, shares = run(load, shares[-1], [(200_000, 2e-6)] * 60, target=0.6)
    assert shares[-1] == 1
    _, shares = run(load, 1.0, [(200_000, 2e-6)] * 4, target=0.3)
    assert 0.12 + 0.4 * shares[1] == pytest.approx(0.3, rel=0.1)


def test_at_least_the_least_share_is_carried() -> None:
    load, share = Load(), 1.0
    for _ in range(30):
        share = load.share(0.2, share, least=0.5)
        load = load.add_batch(Measured(1000, 1000, int(1000 * share), 0.1 + 0.4 * share))
    assert share == 0.5
    assert load.is_behind(0.2, least=0.5)
    assert not load.is_behind(0.2)
    assert load.behind_reason(0.2) == " though no more may be shed"


def test_workers_that_cannot_keep_their_time_are_told() -> None:
    load = Load(run=9)
    for _ in range(20):
        load = load.add_seconds(0.31)
    assert load.is_behind(0.25)
    assert not load.is_behind(0.26)
    assert Load.load(json.loads(json.dumps(load.dump()))) == load


@pytest.mark.parametrize("damage", [{"took": [-1.0]}, {"took": [1.0] * 99}, {"took": 3}, {"last": [[0, 0, 0, 1.0]]}])
def test_a_damaged_record_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Load.load(Load(run=3).dump() | damage)

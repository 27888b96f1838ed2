"""The learners stay within the bounds of docs/explanation/choice.md, follow drift where they are to, and are plain
data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep.errors import SnapshotError
from acep.learning.online.experts import Exp3, Hedge, importance_weighted, path_cost

ROUNDS, EXPERTS, SWITCHES = 600, 4, 3


def best_path(rewards: np.ndarray, switches: int) -> float:
    """The most that a sequence of experts with at most so many switches gains."""
    gained = np.full((switches + 1, rewards.shape[1]), -np.inf)
    gained[0] = 0.0
    for now in rewards:
        moved = np.full_like(gained, -np.inf)
        moved[1:] = gained[:-1].max(axis=1, keepdims=True)
        gained = np.maximum(gained, moved) + now
    return float(gained.max())


def hedged(hedge: Hedge, rewards: np.ndarray) -> float:
    gained = 0.0
    for now in rewards:
        gained += float(hedge.weights @ now)
        hedge = hedge.update(now)
    return gained


def chosen(learner: Exp3, rewards: np.ndarray) -> float:
    gained = 0.0
    for now in rewards:
        reward = float(now[learner.choice])
        gained += reward
        learner = learner.update(reward)
    return gained


def switching(seed: int, rounds: int = ROUNDS) -> np.ndarray:
    """Rewards where the best expert changes three times; fixed beforehand, as Exp3's bound asks."""
    rng = np.random.default_rng(seed)
    rewards = (rng.random((rounds, EXPERTS)) < 0.2).astype(float)
    for part, best in zip(np.array_split(np.arange(rounds), SWITCHES + 1), (2, 0, 3, 1), strict=True):
        rewards[part, best] = rng.random(len(part)) < 0.9
    return rewards


REWARDS = st.lists(st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=3, max_size=3), min_size=1, max_size=30)


@given(rewards=REWARDS, rate=st.floats(0.01, 5), share=st.sampled_from([0.0, 0.01, 0.3]), switches=st.integers(0, 3))
def test_hedge_is_within_its_bound_on_every_sequence(
    rewards: list[list[float]], rate: float, share: float, switches: int
) -> None:
    switches = min(switches, len(rewards) - 1)
    found = np.array(rewards)
    hedge = Hedge.start(3, rate, share)
    regret = best_path(found, switches) - hedged(hedge, found)
    bound = max(hedge.bound(len(rewards), fewer) for fewer in range(switches + 1))
    assert regret <= bound + 1e-9


def test_hedge_is_within_its_bound_against_an_adversary() -> None:
    """Who sees the weights and rewards those with the least: nothing is harder for it."""
    start = hedge = Hedge.tuned(EXPERTS, ROUNDS)
    gained, totals = 0.0, np.zeros(EXPERTS)
    for _ in range(ROUNDS):
        now = np.zeros(EXPERTS)
        now[np.argsort(hedge.weights, kind="stable")[: EXPERTS // 2]] = 1.0
        gained, totals, hedge = gained + float(hedge.weights @ now), totals + now, hedge.update(now)
    regret = totals.max() - gained
    assert start.bound(ROUNDS) / 4 < regret <= start.bound(ROUNDS)  # hard, but not too hard
    assert start.bound(ROUNDS) == pytest.approx(math.sqrt(ROUNDS / 2 * math.log(EXPERTS)))


def test_fixed_share_follows_drift() -> None:
    rewards = switching(3)
    best = best_path(rewards, SWITCHES)
    learner, stubborn = Hedge.tuned(EXPERTS, ROUNDS, SWITCHES), Hedge.tuned(EXPERTS, ROUNDS)
    assert best - hedged(learner, rewards) <= learner.bound(ROUNDS, SWITCHES) < math.inf
    assert stubborn.bound(ROUNDS, SWITCHES) == math.inf
    assert best - hedged(stubborn, rewards) > 1.5 * (best - hedged(learner, rewards))


@pytest.mark.parametrize("switches", [0, SWITCHES])
def test_exp3_is_within_its_bound_on_the_mean(switches: int, cases: Callable[[int], int]) -> None:
    rounds = 3000
    rewards = switching(4, rounds)
    regrets = []
    best = best_path(rewards, switches)
    for seed in range(max(8, cases(12))):
        learner = Exp3.tuned(EXPERTS, rounds, switches, seed=seed)
        regrets.append(best - chosen(learner, rewards))
    error = float(np.std(regrets, ddof=1)) / len(regrets) ** 0.5
    assert np.mean(regrets) + 4 * error <= learner.bound(rounds, switches)


def test_exp3_is_better_than_chance_and_follows_drift(cases: Callable[[int], int]) -> None:
    rounds = 4000
    rewards = switching(5, rounds)
    at_random = float(rewards.mean(axis=1).sum())
    following, stubborn = (
        [chosen(Exp3.tuned(EXPERTS, rounds, switches, seed=seed), rewards) for seed in range(max(4, cases(6)))]
        for switches in (SWITCHES, 0)
    )
    assert min(following) > 1.1 * at_random
    assert np.mean(following) > np.mean(stubborn)


def test_exp3_estimates_without_bias() -> None:
    """Over its choices the importance-weighted reward of each expert is on the mean its reward."""
    learner = Exp3((math.log(0.7), math.log(0.2), math.log(0.1)), 0.3)
    rewards = np.array([0.2, 0.9, 0.5])
    estimates = [p * importance_weighted(r, p) for p, r in zip(learner.weights, rewards, strict=True)]
    assert estimates == pytest.approx(rewards)
    draws = [Exp3(learner.log_weights, 0.3, seed=seed).choice for seed in range(3000)]
    assert np.bincount(draws) / 3000 == pytest.approx(learner.weights, abs=5 * 0.5 / 3000**0.5)


def test_same_seed_same_choices_and_states_go_on_where_they_were() -> None:
    rewards = switching(6, 60)

    def choices(seed: int, stored: bool) -> list[int]:
        learner, found = Exp3.start(EXPERTS, 0.2, 0.01, seed=seed), []
        for now in rewards:
            found.append(learner.choice)
            learner = learner.update(float(now[learner.choice]))
            if stored:
                learner = Exp3.from_data(json.loads(json.dumps(learner.to_data())))
        return found

    assert choices(1, stored=False) == choices(1, stored=True) != choices(2, stored=False)
    hedge = Hedge.tuned(EXPERTS, 60, 2, largest=3.0).update(rewards[0])
    assert Hedge.from_data(json.loads(json.dumps(hedge.to_data()))) == hedge


def test_no_expert_is_lost_for_good() -> None:
    hedge = Hedge.start(2, rate=50.0)
    for _ in range(100):
        hedge = hedge.update(np.array([1.0, 0.0]))
    for _ in range(110):
        hedge = hedge.update(np.array([0.0, 1.0]))
    assert hedge.weights[1] > 0.99


def test_the_scale_of_rewards_does_not_matter() -> None:
    rewards = switching(7)
    one, thousand = Hedge.tuned(EXPERTS, ROUNDS), Hedge.tuned(EXPERTS, ROUNDS, largest=1000.0)
    assert hedged(thousand, 1000 * rewards) == pytest.approx(1000 * hedged(one, rewards))
    assert thousand.bound(ROUNDS) == pytest.approx(1000 * one.bound(ROUNDS))
    first, second = Exp3.tuned(EXPERTS, ROUNDS), Exp3.tuned(EXPERTS, ROUNDS, largest=1000.0)
    assert chosen(second, 1000 * rewards) == pytest.approx(1000 * chosen(first, rewards))


def test_what_makes_no_sense_is_refused() -> None:
    for experts, rate, share, largest in (
        (0, 1.0, 0.0, 1.0),
        (2, 0.0, 0.0, 1.0),
        (2, 1.0, 1.0, 1.0),
        (2, 1.0, 0.0, 0.0),
    ):
        for learner in (Hedge, Exp3):
            with pytest.raises(ValueError, match="a learner has"):
                learner.start(experts, rate, share, largest)
    with pytest.raises(ValueError, match="explored"):
        Exp3.start(2, 1.5)
    for rewards in ([0.5], [0.5, 1.5], [0.5, -0.1], [0.5, math.nan]):
        with pytest.raises(ValueError, match="rewards"):
            Hedge.start(2, 1.0).update(np.array(rewards))
    with pytest.raises(ValueError, match="rewards"):
        Exp3.start(2, 0.5).update(2.0)
    with pytest.raises(ValueError, match="switches"):
        path_cost(2, 10, 10, 0.1)
    for probability in (0.0, 1.1, math.nan):
        with pytest.raises(ValueError, match="probability"):
            importance_weighted(1.0, probability)


@pytest.mark.parametrize(
    "changed",
    [
        {"log_weights": []},
        {"log_weights": [0.0, 0.0]},
        {"log_weights": [-math.inf, 0.0]},
        {"log_weights": [math.nan, 0.0]},
        {"log_weights": ["a", "b"]},
        {"log_weights": "ab"},
        {"rate": -1.0, "explore": -1.0},
        {"rate": math.nan, "explore": 2.0},
        {"share": 1.0},
        {"largest": 0.0},
        {"largest": "1"},
        {"seed": -1, "share": None},
    ],
)
def test_states_that_no_learner_can_have_are_told(changed: dict[str, object]) -> None:
    for learner in (Hedge.start(2, 0.5), Exp3.start(2, 0.5)):
        data = learner.to_data()
        with pytest.raises(SnapshotError):
            type(learner).from_data(data | {name: v for name, v in changed.items() if name in data})
        with pytest.raises(SnapshotError):
            type(learner).from_data(None)

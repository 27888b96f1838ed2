"""The learner stays within the bound of docs/explanation/choice.md, follows drift where it is to, and is plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest

from acep.errors import SnapshotError
from acep.learning.policies.experts import Exp3, importance_weighted, path_cost

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


@pytest.mark.parametrize("switches", [0, SWITCHES])
def test_exp3_is_within_its_bound_on_the_mean(switches: int, cases: Callable[[int], int]) -> None:
    rounds = 3000
    rewards = switching(4, rounds)
    regrets = []
    best = best_path(rewards, switches)
    for seed in range(cases(12)):
        learner = Exp3.for_rounds(EXPERTS, rounds, switches, seed=seed)
        regrets.append(best - chosen(learner, rewards))
    # A single regret tells nothing of how far regrets spread.
    error = float(np.std(regrets, ddof=1)) / len(regrets) ** 0.5 if len(regrets) > 1 else 0.0
    assert np.mean(regrets) + 4 * error <= learner.regret_bound(rounds, switches)


@pytest.mark.long
def test_exp3_is_better_than_chance_and_follows_drift(cases: Callable[[int], int]) -> None:
    rounds = 4000
    rewards = switching(5, rounds)
    at_random = float(rewards.mean(axis=1).sum())
    following, stubborn = (
        [chosen(Exp3.for_rounds(EXPERTS, rounds, switches, seed=seed), rewards) for seed in range(cases(6))]
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


def test_the_scale_of_rewards_does_not_matter() -> None:
    rewards = switching(7)
    first, second = Exp3.for_rounds(EXPERTS, ROUNDS), Exp3.for_rounds(EXPERTS, ROUNDS, largest=1000.0)
    assert chosen(second, 1000 * rewards) == pytest.approx(1000 * chosen(first, rewards))
    assert second.regret_bound(ROUNDS) == pytest.approx(1000 * first.regret_bound(ROUNDS))
    assert first.regret_bound(ROUNDS, SWITCHES) == math.inf


def test_what_makes_no_sense_is_refused() -> None:
    for experts, rate, share, largest in (
        (0, 1.0, 0.0, 1.0),
        (2, 0.0, 0.0, 1.0),
        (2, 1.0, 1.0, 1.0),
        (2, 1.0, 0.0, 0.0),
    ):
        with pytest.raises(ValueError, match="a learner has"):
            Exp3.start(experts, rate, share, largest)
    with pytest.raises(ValueError, match="explored"):
        Exp3.start(2, 1.5)
    for reward in (2.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="rewards"):
            Exp3.start(2, 0.5).update(reward)
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
        {"explore": -1.0},
        {"explore": math.nan},
        {"explore": 2.0},
        {"share": 1.0},
        {"largest": 0.0},
        {"largest": "1"},
        {"seed": -1, "share": None},
    ],
)
def test_states_that_no_learner_can_have_are_told(changed: dict[str, object]) -> None:
    data = Exp3.start(2, 0.5).to_data()
    for wrong in (data | changed, None):
        with pytest.raises(SnapshotError):
            Exp3.from_data(wrong)

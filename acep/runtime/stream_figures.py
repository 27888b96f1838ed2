"""Count the partial matches of a plan by state, and say what its budget has given up, while a stream runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from acep.errors import EngineError
from acep.runtime.executors import ComposedExecutor, NativeExecutor, RuntimeExecutor
from acep.runtime.finer_partitions import FinerExecutor
from acep.shedding.controller import SheddingController

if TYPE_CHECKING:
    from acep.learning.policy import Policy
    from acep.plan.compile import Plan
    from acep.runtime.executors import AnyExecutor

__all__ = ["MOST_COUNTED", "MOST_STATES", "SheddingFigures", "count_by_state", "shedding_figures"]

MOST_COUNTED = 1_000_000
"""The most partial matches, times states, that are counted by state: more take too long while a stream runs."""
MOST_STATES = 40
"""The most states of a history that are shown."""


@dataclass(frozen=True)
class SheddingFigures:
    """The shedding of one plan so far. ``policy`` is the name of the policy that chooses what is kept ("" if whole
    sampling units are skipped by chance). ``threshold``: the utility threshold now (0: nothing has to be shed).
    Partial matches that were ``refused`` before they were made, or ``dropped`` after; events that were ``skipped``;
    match points of which matches were ``withheld``. ``share_sampled``: the share of sampling units that are followed
    without shedding, to learn and to estimate the recall. ``history`` has what the policy has learned so far, for each
    state its name and for each bin of the window that remains, most of it first, how often partial matches were there
    and how many targets they led to (empty: the policy keeps no such history)."""

    policy: str
    threshold: float = 0.0
    refused: int = 0
    dropped: int = 0
    skipped: int = 0
    withheld: int = 0
    share_sampled: float = 0.0
    history: tuple[tuple[str, tuple[tuple[float, float], ...]], ...] = ()


def count_by_state(plan: Plan, executor: AnyExecutor) -> tuple[tuple[str, int], ...]:
    """Return the number of live partial matches in each state, with the name of the state, in the order of states. The
    start, in which no event is bound, is left out.

    Raises :class:`EngineError` for an engine that does not tell states apart, or if there are too many."""
    states = tuple(plan.current) if plan.parts else tuple(range(1, len(plan.arcs.states)))
    if isinstance(executor, ComposedExecutor) or not isinstance(
        executor, NativeExecutor | FinerExecutor | RuntimeExecutor
    ):
        why = "its matches are events of another one" if plan.sources else "its engine finds matches in their order"
        raise EngineError(f"partial matches of this query are not counted by state: {why}")
    n_live = executor.live()
    if n_live * len(states) > MOST_COUNTED:
        raise EngineError(f"{n_live:,} partial matches are too many to be counted by state")
    counts = {
        state: executor.live_in((state,))
        if isinstance(executor, RuntimeExecutor)
        else executor.partial_matches(1, (state,), apart=False).total
        for state in states
    }
    return tuple((plan.arcs.states[state].name, count) for state, count in counts.items())


def shedding_figures(plan: Plan, executor: AnyExecutor) -> SheddingFigures | None:
    """Return what the budget of a plan has given up; ``None`` for a plan without a bound."""
    native = executor.inner if isinstance(executor, FinerExecutor) else executor
    if not isinstance(native, NativeExecutor):
        return None
    budget = native.session.budget
    effort = budget.efforts.get(native.number)
    if effort is None:
        return None
    if not isinstance(effort, SheddingController):
        (counts,) = native.all_counts()
        return SheddingFigures("", dropped=counts.shed - counts.skipped, skipped=counts.skipped)
    shedding_counts = budget.core.shedding_counts(native.number)
    return SheddingFigures(
        effort.policy.name,
        float(shedding_counts["price"]),
        int(shedding_counts["refused"]),
        int(shedding_counts["dropped"]),
        int(shedding_counts["passed_over"]),
        int(shedding_counts["withheld"]),
        effort.share,
        _history_of(plan, effort.policy),
    )


def _history_of(plan: Plan, policy: Policy) -> tuple[tuple[str, tuple[tuple[float, float], ...]], ...]:
    """Return what a policy has learned of the states that were visited, of the first :data:`MOST_STATES` of them."""
    from acep.learning.policies.history_policy import HistoryPolicy  # few streams are watched

    if not isinstance(policy, HistoryPolicy):
        return ()
    visits, targets = policy.visits_and_targets()
    names = [state.name for state in plan.arcs.states]
    return tuple(
        (names[state], tuple(zip(visits[state, ::-1].tolist(), targets[state, ::-1].tolist(), strict=True)))
        for state in range(len(names))
        if visits[state].any()
    )[:MOST_STATES]

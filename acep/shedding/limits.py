"""Limit the queries of a stream: by a budget, with a policy and its learned state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral

from acep.budget import Budget
from acep.budget.pace import Pace, pace_of
from acep.budget.policies import POLICIES
from acep.errors import QueryError, SnapshotError
from acep.learning.policy import Policy
from acep.pattern.tree import Output, Strategy
from acep.plan.compile import Plan
from acep.plan.schema import Schema
from acep.shedding.controller import SheddingController
from acep.shedding.history_file import LearnedState, learned_by
from acep.shedding.policy_context import no_recall
from acep.shedding.recovery.recovery import Recovery
from acep.storage.sizes import size_in_bytes

__all__ = ["Limits", "checked_seed", "want_a_bound"]

CREDIT = 64  # events whose budget of work is there before the first event
MOST_MEMORY = 1 << 62  # bytes: larger bounds are lowered to this, to fit 64 bits


def want_a_bound(policy: object, history: object) -> None:
    """Raise :class:`QueryError` for a policy other than the default, or a history, where no bound is set."""
    for name, is_given in (("policy", policy != "history"), ("history", history is not None)):
        if is_given:
            raise QueryError(
                f"{name}= serves a run under a budget",
                hint="set a bound on what may be spent, such as work=",
                code="option_invalid",
            )


@dataclass(frozen=True)
class Limits:
    """The limits on the queries of a stream. ``policy`` makes the policy of each query, which begins with the state
    that was ``learned`` for it, by plan fingerprint."""

    policy: Callable[[], Policy]
    budget: Budget
    seed: int = 0
    learned: Mapping[str, LearnedState] = field(default_factory=dict)
    part: int | None = None  # of the memory, in bytes; None: all of it

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checked_seed(self.seed))

    def effort(self, number: int, plan: Plan) -> SheddingController:
        """Return what keeps plan ``number`` to the budget. Raises :class:`SnapshotError` for the history of another
        policy, and :class:`QueryError` where a policy has no history and learns nothing itself."""
        policy, learned_state = self.policy(), self.learned.get(plan.fingerprint)
        if learned_state is None and learned_by(policy) != policy.name:
            raise QueryError(
                f"the policy {policy.name!r} learns nothing itself, and has no history to go by",
                hint="give it as history= what acep.learn learns from the very events that it will run on",
                code="option_invalid",
            )
        learned = learned_state.serve(policy) if learned_state else None
        work = None if self.budget.work is None else self.budget.work * (1 - self.budget.recover)
        return SheddingController(
            policy, self.seed + number, work, learned, estimate=self.budget.estimate, credit=CREDIT
        )

    def searches(self, plan: Plan) -> bool:
        """Return whether match points may be searched for, as nothing that is asked is about partial matches."""
        is_default = self.policy is POLICIES["history"] and plan.fingerprint not in self.learned
        return is_default and self.memory is None and not self.budget.recover

    def share(self, plans: Sequence[Plan], number: int) -> Limits:
        """Return the limits on plan ``number`` if each of the plans keeps to a part of its own. Raises as :meth:`check`
        does, and :class:`QueryError` for a plan whose matches cannot be taken back under a budget."""
        self.check(plans)
        plan, n_plans = plans[number], len(plans)
        if self.budget.recover:
            raise QueryError(
                "recover= gives matches later, and not where they may be taken back",
                hint="speculation=0",
                code="option_invalid",
            )
        if plan.query.output is not Output.ALL:
            raise QueryError(
                "under a budget of work, time or memory no matches are taken back where they are chosen among others",
                hint="leave these bounds out of the Budget, or speculation= out, or give all matches",
                code="option_invalid",
            )
        learned = {name: state for name, state in self.learned.items() if name == plan.fingerprint}
        parts = {name: getattr(self.budget, name) for name in ("cpu", "latency")}
        parts = {name: None if limit is None else limit / n_plans for name, limit in parts.items()}
        # Shadow samples are given up where a partition is matched again, so they say nothing of all.
        budget = replace(self.budget, estimate=0, **parts)
        part = None if self.memory is None else self.memory // n_plans
        return Limits(self.policy, budget, self.seed + number, learned, part)

    def compose(self, plan: Plan) -> None:
        """Raise :class:`QueryError` for a composed query that might invent matches where an inner match is lost."""
        why = ""
        if plan.query.strategy is not Strategy.SKIP_TILL_ANY_MATCH:
            why = f"{plan.query.strategy.value.replace('_', ' ')} takes"
        elif plan.automaton.negations:
            why = "a negation takes"
        elif plan.window.counted:
            why = "a window of events takes"
        if why:
            raise QueryError(
                f"no budget of work or time is kept by a composed query where {why} notice of every inner match: one "
                "that is lost would make others that are not there",
                hint="use skip_till_any_match, no negation and a window of time in the outer query, or leave these "
                "bounds out of the Budget",
                code="option_invalid",
            )
        self.recovery(plan)  # raises if recover= is set

    def recovery(self, plan: Plan) -> Recovery | None:
        """Return what recovers the match bundles of a plan, or ``None`` where recovery is off. Raises
        :class:`QueryError` where the bundles cannot be recovered."""
        share = float(self.budget.recover)
        if share == 0:
            return None
        why = ""
        if plan.sources:
            why = "composed queries"
        elif no_recall(plan):
            why = "HAVING, negations, or an OUTPUT other than ALL"
        elif plan.window.span is None or plan.window.counted:
            why = "queries without a window of time"
        elif plan.strict and plan.keys:
            why = "strict contiguity with a partition, where each event bears on all partitions"
        if why:
            raise QueryError(
                f"recover= is not for {why}", hint="leave recover out of the Budget", code="option_invalid"
            )
        return Recovery(share, None if self.budget.work is None else self.budget.work * share)

    def check(self, plans: Sequence[Plan]) -> None:
        """Raise :class:`SnapshotError` where a history belongs to none of the queries."""
        if set(self.learned) - {plan.fingerprint for plan in plans}:
            raise SnapshotError(
                "the history is of another query",
                hint="a history serves the query that it was learned of, with the same errors, weights and columns",
            )

    @property
    def memory(self) -> int | None:
        """Return the bytes that all queries together may hold; ``None``: no bound."""
        if self.part is not None:
            return self.part
        return None if self.budget.memory is None else min(size_in_bytes(self.budget.memory), MOST_MEMORY)

    def pace(self, schema: Schema) -> Pace | None:
        """Return the controller that keeps all queries to their time budget; ``None``: there is no such budget."""
        return pace_of(self.budget, schema.tick_ns)


def checked_seed(seed: object) -> int:
    """Return the seed as an integer. Raises :class:`QueryError` for anything else."""
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise QueryError(f"seed={seed!r} is not an integer", code="option_invalid")
    return int(seed)

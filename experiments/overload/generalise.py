"""Measure whether a history of one period serves the next: ``python -m experiments.overload.generalise [NAME ...]``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from acep.budget.policies import POLICIES
from acep.learning.policy import Epoch, Policy
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable
from experiments.machine import limit_memory
from experiments.overload.figure import MEMORY, FigurePoint, Spec, run_command
from experiments.overload.trial import Warm, make_warm, measure_exact, stream, try_policy
from experiments.overload.workload import Overload

__all__ = ["SPEC", "Frozen", "main"]

SHARES = (0.25, 0.1, 0.05)
WORDS = """Written by `python -m experiments.overload.generalise`. The policy *history* on the second half of each
stream: *learned before*, from an exact run over the first half, and goes on learning; *frozen*, the same without
learning any more; *learned nothing* before; *has seen the future*, learned from an exact run over the very events of
the test. Beside it the rule that learns nothing."""


@dataclass
class Frozen(Warm):
    """A policy that keeps the shedding table that it began with, and observes nothing."""

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        """Return the shedding table in force, from now on."""
        self._shedding_table = super().begin(context, seed).watching(sample=0.0, shadow=0.0)
        return self._shedding_table

    def learn(self, epoch: Epoch) -> SheddingTable:  # noqa: ARG002
        """Return the same table; nothing is learned."""
        return self._shedding_table

    def state(self) -> dict[str, Any]:
        """Return the state, which is never new."""
        return dict(self.learned)


def freeze(maker: Callable[[], Policy]) -> Callable[[], Policy]:
    """Return the function that makes the policies of ``maker``, which have learned before, without learning
    any more."""

    def make() -> Policy:
        warm = maker()
        assert isinstance(warm, Warm)
        return Frozen(warm.policy, warm.learned)

    return make


def measure_learning(workload: Overload, seed: int) -> Iterable[FigurePoint]:
    """Measure all ways to have learned on one workload."""
    halves = stream(workload, seed)
    truth = measure_exact(halves, "points", repeats=1)
    cold = POLICIES["history"]
    before = make_warm(halves, truth.engine, cold, seed)
    makers = {
        "learned before": before,
        "frozen": freeze(before),
        "learned nothing": cold,
        "has seen the future": make_warm(replace(halves, train=halves.test), truth.engine, cold, seed),
        "newest-per-state": POLICIES["newest-per-state"],
    }
    for name, maker in makers.items():
        for share in SHARES:
            yield FigurePoint(
                workload.name, seed, name, share, **try_policy(halves, truth, maker, share, seed=seed, repeats=1)
            )


SPEC = Spec(
    "generalisation",
    "From one period to the next",
    WORDS,
    ("*",),
    measure_learning,
    "share of the exact touches",
    log=True,
    x_format="{:.0%}",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    return run_command(SPEC, arguments)


if __name__ == "__main__":
    limit_memory(MEMORY)
    sys.exit(main())

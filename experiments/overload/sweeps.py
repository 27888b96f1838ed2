"""Recall by error budget, window and rate: ``python -m experiments.overload.sweeps errors|window|rate [NAME ...]``.

Besides names of workloads ``--seeds`` and ``--output``, as of the other figures.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

from acep.budget.policies import POLICIES
from experiments.machine import limit_memory
from experiments.overload.figure import MEMORY, FigurePoint, Spec, run_command
from experiments.overload.trial import make_warm, measure_exact, stream, try_policy
from experiments.overload.workload import Overload

__all__ = ["SPECS", "main", "with_window"]

COMPARED = ("random", "newest-per-state", "hybrid", "history")
SHARE = 0.1
ERRORS = (0, 1, 2)
WINDOWS = (0.5, 1.0, 2.0)
RATES = (1, 2, 4, 8, 16, 32)
TIED = ("jobs-k1-10min", "swap-k1-2min", "stopped-k2-10min", "labs-k1-28d")
TIMED = ("jobs-k1-10min", "har-k0-2s", "peak-k0-400ms", "users-k0-30h", "labs-k1-28d")
WITHIN = re.compile(r"WITHIN (\d+) (\w+)")


def with_window(workload: Overload, factor: float) -> Overload:
    """Return the workload with a window so many times as long.

    >>> from experiments.overload.workloads import OVERLOADS
    >>> with_window(OVERLOADS["har-k0-2s"], 0.5).window
    '1 s'
    """
    clause = WITHIN.search(workload.text)
    assert clause is not None
    amount = int(clause[1]) * factor
    amount_and_unit = (
        (int(amount), clause[2]) if amount == int(amount) else (int(amount * 1000), {"s": "ms"}[clause[2]])
    )
    return replace(workload, text=WITHIN.sub(f"WITHIN {amount_and_unit[0]} {amount_and_unit[1]}", workload.text))


def measure_policies(workload: Overload, seed: int, shares: dict[float, float]) -> Iterable[FigurePoint]:
    """Measure every policy on one workload, with a share of the work for each x."""
    halves = stream(workload, seed)
    truth = measure_exact(halves, "points", repeats=1)
    for name in COMPARED:
        maker = make_warm(halves, truth.engine, POLICIES[name], seed)
        for x, share in shares.items():
            yield FigurePoint(
                workload.name, seed, name, x, **try_policy(halves, truth, maker, share, seed=seed, repeats=1)
            )


def by_errors(workload: Overload, seed: int) -> Iterable[FigurePoint]:
    """Yield the workload with each number of errors."""
    for errors in ERRORS:
        yield from measure_policies(replace(workload, errors=errors), seed, {errors: SHARE})


def by_window(workload: Overload, seed: int) -> Iterable[FigurePoint]:
    """Yield the workload with each length of the window."""
    for factor in WINDOWS:
        yield from measure_policies(with_window(workload, factor), seed, {factor: SHARE})


def by_rate(workload: Overload, seed: int) -> Iterable[FigurePoint]:
    """Yield the workload with each rate of the stream."""
    yield from measure_policies(workload, seed, {rate: 1 / rate for rate in RATES})


COMMON = """Written by `python -m experiments.overload.sweeps`. Each policy runs on the second half of each stream, with
what it learned from an exact run over the first half."""
SPECS = {
    "errors": Spec(
        "recall_by_errors",
        "Recall by error budget",
        f"{COMMON} The allowance is {SHARE:.0%} of the touches of the exact run with the same error budget.",
        TIED,
        by_errors,
        "errors allowed",
    ),
    "window": Spec(
        "recall_by_window",
        "Recall by window",
        f"{COMMON} The allowance is {SHARE:.0%} of the touches of the exact run with the same window; windows are\n"
        "told in parts of the workload's own.",
        TIMED,
        by_window,
        "times the window",
        log=True,
    ),
    "rate": Spec(
        "recall_by_rate",
        "Recall by rate of the stream",
        f"{COMMON} The allowance per second is what the exact run spends at rate 1, and the stream comes so\n"
        "many times as fast.",
        TIMED,
        by_rate,
        "times the rate",
        log=True,
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = list(sys.argv[1:] if arguments is None else arguments)
    if not options or options[0] not in SPECS:
        print(f"usage: python -m experiments.overload.sweeps {{{','.join(SPECS)}}} [NAME ...]", file=sys.stderr)
        return 2
    return run_command(SPECS[options[0]], options[1:])


if __name__ == "__main__":
    limit_memory(MEMORY)
    sys.exit(main())

"""Recall by the memory of the history: ``python -m experiments.overload.sketched [NAME ...] [--output DIR]``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from acep.learning.orders import Orders
from acep.learning.remembering import Remembering
from acep.learning.setting import Setting
from acep.sketches.match_map import MatchMap
from acep.sketches.memories import read_memory
from experiments.machine import limit_memory
from experiments.overload.figure import MEMORY, Found, Spec, command
from experiments.overload.trial import Warm, exact, stream, trained, tried
from experiments.overload.workload import Overload

__all__ = ["SPEC", "Fine", "main"]

HELD = 0.1
WINDOWS, WAITS = 64, 6
PARTS = (0.5, 0.2, 0.1, 0.05)
WORDS = f"""Written by `python -m experiments.overload.sketched`. The policy *history* with match vectors of {WINDOWS}
by {WAITS} bins of time, so that there are many, whose sums are kept exactly, or in the match-map sketch in a part of
the memory that the exact sums take (after an exact run over the first half of the stream, from which all learn).
Recall on the second half at {HELD:.0%} of the work. The lives that the registers' terms are fitted to are kept beside
the sums and are the same for all."""


@dataclass
class Fine(Remembering):
    """The policy on a fine grid; ``nbytes``: for its sums in a sketch, ``None``: exact."""

    nbytes: int | None = None

    def begin(self, setting: Setting, seed: int) -> Orders:
        """Nothing is known yet."""
        super().begin(setting, seed)
        self.grid = setting.grid(windows=WINDOWS, waits=WAITS)
        if self.nbytes is not None:
            self.sums = MatchMap.within(self.sums.columns, self.sums.ring, nbytes=self.nbytes)
        return self._orders()


@dataclass(frozen=True)
class Sized(Found):
    """With ``nbytes``: of the sums, when they had been learned."""

    nbytes: int


def measured(workload: Overload, seed: int) -> Iterable[Sized]:
    """The exact sums and sketches of all sizes on one workload."""
    held = stream(workload, seed)
    truth = exact(held, "points", repeats=1)
    whole = 0
    for part in (None, *PARTS):
        maker = partial(Fine, nbytes=None if part is None else int(part * whole))
        learned = trained(held, truth.engine, maker, seed)
        assert learned is not None
        nbytes = read_memory(learned["sums"].tobytes()).nbytes
        whole = whole or nbytes
        own = tried(held, truth, partial(_warm, maker, learned), HELD, seed=seed, repeats=1)
        name = "exact sums" if part is None else "sketch"
        yield Sized(workload.name, seed, name, part or 1.0, **own, nbytes=nbytes)


def _warm(maker: partial[Fine], learned: dict[str, object]) -> Warm:
    return Warm(maker(), learned)


SPEC = Spec(
    "recall_by_memory",
    "Recall by the memory of the history",
    WORDS,
    ("*",),
    measured,
    "memory, in parts of the exact sums'",
    log=True,
    told="{:.0%}",
    shown=("points", "bundles", "nbytes"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    return command(SPEC, arguments)


if __name__ == "__main__":
    limit_memory(MEMORY)
    sys.exit(main())

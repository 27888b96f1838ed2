"""Keep a search for match points to a budget, and estimate its recall.

While the allowance suffices, the run is the exact one. Else each event that may end a match has a limit on the rows
that its search may look at, which the native core chooses by what searches have cost and brought. A few searches, drawn
by chance, go on to the end; they say what the others miss (docs/internals/search.md). No policy takes part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acep.learning.estimation.recall import Tally
from acep.learning.policy_context import PolicyContext
from acep.matches.records import Counts
from acep.plan.schema import Kind
from acep.shedding.partition_sampler import UnitSampler

if TYPE_CHECKING:
    from acep.shedding.native_protocol import NativeCore

__all__ = ["SearchSampler"]

AHEAD = 4096  # events
CARRIED = 1 << 20  # events whose unused budget of work is carried over
KINDS = {Kind.FLOAT: 1, Kind.STRING: 2}
"""By kind of a column, how the native core tells its values apart; 0 for the others."""


@dataclass
class SearchSampler(UnitSampler):
    """The allowance of one plan whose units are searches, of which a share ``sampling`` is for those to the end.
    ``kinds``: those of the session's columns. The allowance of ``ahead`` events may be spent ahead, as what a search
    costs comes in bursts."""

    sampling: float
    kinds: tuple[Kind | None, ...] = ()
    ahead: int = AHEAD

    def start(self, core: NativeCore, number: int, context: PolicyContext) -> None:
        """Start before the first event, once the session has its plans."""
        self.number = number
        kinds = [0 if kind is None else KINDS.get(kind, 0) for kind in self.kinds]
        core.start_search(number, self.seed % 2**64, kinds, context.text_keys, self.sampling, self.ahead)
        if self.rate is not None:
            core.allow(number, self.rate, self.rate * CARRIED)

    def short(self, core: NativeCore) -> bool:
        """Return whether the allowance is insufficient, so that searches are limited."""
        return bool(core.search_counts(self.number)["short"])

    def fill_counts(self, core: NativeCore, counts: Counts) -> None:
        """Set in ``counts`` how many searches were given up, and what is known of the recall of match points.

        A search goes on to the end with a probability p, whatever else it would have found. So the match points that
        the limits miss are about the sum of 1 / p over those that only such searches have found, with the variance
        ``sum((1 - p) / p**2)`` (Horvitz and Thompson; Särndal, Swensson, Wretman, Model Assisted Survey Sampling, 1992,
        section 2.8). That sum is too small where few were found. So the variance is at least that of a number of match
        points, and one more, each of which stands for the mean of 1 / p. A search that even then was not ended counts
        as half a match point, and the interval has both.
        """
        sums: dict[str, Any] = core.search_counts(self.number)
        counts.shed = counts.skipped = int(sums["given_up"])  # events from which nothing is searched, or not to the end
        counts.unknown = "too few searches went on to the end to say how many"
        points, extra = float(sums["points"]), float(sums["extra"])
        if counts.shed == 0:
            counts.tallies = Tally(x=points, y=points, whole=points), None
            return
        if sums["sampled"] == 0 or self.sampling == 0:
            return
        half = sums["unknown_missed"] / 2
        total = points - extra + sums["missed"] + half
        weight = sums["weights"] / sums["limited"]
        counts.tallies = (
            Tally(
                units=points - extra + float(sums["sampled"]),
                x=total,
                y=points,
                half=half,
                xx=max(sums["missed_variance"], weight * (sums["missed"] + weight)),
                whole=total * weight,
            ),
            None,
        )

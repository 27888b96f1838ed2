"""Report on a run: its events, work and matches, how much was shed, and an estimate of the recall."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from acep.display import clip_text, fields_text, rate_text
from acep.matches.records import Counts
from acep.matches.rendering import report_page

if TYPE_CHECKING:
    from acep.learning.estimation.recall import Tally

__all__ = ["Report", "count_text"]

Interval = tuple[float, float]
UNKNOWN: Interval = (0.0, 1.0)
SURE = 0.2  # wider intervals have no likely value: where the answer is known, it is off by .06 and more there
FINE = 0.05  # narrower intervals are printed with a decimal
TINY = 1e-9  # of a percent
# Fields that a report has of the counts of a run.
COUNTED = (
    "events",
    "late",
    "ahead",
    "duplicates",
    "shed",
    "skipped",
    "withheld",
    "deciding",
    "memory",
    "match_memory",
    "recovering",
    "recovered",
    "unrecovered",
    "retracted",
)
# Fields that are summed in the report of several runs; of the memory the most counts.
SUMS = (*COUNTED, "made", "kept", "work", "matches", "seconds", "points", "bundles")


@dataclass(frozen=True, repr=False)
class Report:
    """The report of a run.

    ``events`` seen, ``late`` ones refused, those too far ``ahead``, and rows left out as ``duplicates``; partial
    matches ``made``, and ``kept`` as long as they could matter; partial matches and events ``shed`` for want of budget,
    of which ``skipped`` are events; match points of which matches were ``withheld``, as they had more than there was
    time or memory for; ``work`` in touches (transition evaluations), with those charged for ``deciding``; ``matches``
    found (``None`` where they were not counted, as only match points were asked for); the match ``points`` or
    ``bundles`` given, where these were asked for; ``seconds`` of wall time; the most bytes of ``memory`` held, and of
    the matches of 1,024 events (``match_memory``), where the budget bounds them (0: it does not).

    ``recall`` is the share of all match points that were found, ``bundle_recall`` that of match bundles of which one
    match was found; refused events do not count. Each has an interval with a confidence of 90 %
    (docs/explanation/best_effort.md). They are 1 and (1, 1) if nothing was shed, also where matches were withheld. An
    interval wider than 0.2 goes with a recall of ``None``, as the likeliest value says little there. If nothing is
    known, it is (0, 1) and ``unknown`` says why. ``chosen``: matches are chosen among others, as by NON OVERLAP, so a
    budget may change which are given. ``limited``: matches stopped at a limit, and there may be more. Under
    ``Budget(recover=)``, ``recovered`` match bundles were matched again exactly, around what was found of them, and
    ``unrecovered`` were not, for want of allowance; ``recovering`` of the touches went into that. With ``speculation``,
    ``matches`` are those given and not taken back; ``retracted`` were taken back. ``threads`` could match at once;
    ``fewer_threads`` says why they were fewer than were asked for. Of a MATCH_RECOGNIZE clause (``is_clause``)
    ``matches`` are rows of the result, there are no partial matches, rows are ``shed``, and the recall is one of
    matches. ``str(report)`` says all that in words; ``repr`` has the fields that are not as in a run of nothing.

    >>> print(Report(events=1000, made=40, work=2000, matches=3, seconds=0.5))
    1,000 events, 3 matches in 0.50 s (2,000 events/s)
    40 nodes made, 2,000 touches; exact: nothing was shed
    """

    events: int = 0
    late: int = 0
    ahead: int = 0
    duplicates: int = 0
    made: int = 0
    kept: int = 0
    shed: int = 0
    skipped: int = 0
    withheld: int = 0
    work: int = 0
    deciding: int = 0
    matches: int | None = 0
    seconds: float = 0.0
    memory: int = 0
    match_memory: int = 0
    recall: float | None = 1.0
    interval: Interval = (1.0, 1.0)
    bundle_recall: float | None = 1.0
    bundle_interval: Interval = (1.0, 1.0)
    unknown: str = ""
    recovering: int = 0
    recovered: int = 0
    unrecovered: int = 0
    points: int | None = None
    bundles: int | None = None
    chosen: bool = False
    limited: bool = False
    retracted: int = 0
    threads: int = 1
    fewer_threads: str = ""
    is_clause: bool = False

    @classmethod
    def of(
        cls, counts: Counts, seconds: float = 0.0, *, chosen: bool = False, threads: tuple[int, str] = (1, "")
    ) -> Report:
        """Return the report of a run.

        >>> Report.of(Counts(events=5, nodes=2, touches=7, matches=1)).work
        7
        """
        points, point_interval = _estimate_recall(counts, "points")
        bundles, bundle_interval = _estimate_recall(counts, "bundles")
        counted: dict[str, Any] = {name: getattr(counts, name) for name in COUNTED}
        return cls(
            **counted,
            made=counts.nodes,
            kept=max(0, counts.nodes - (counts.shed - counts.skipped)),
            work=counts.touches,
            matches=counts.matches if counts.counted else None,
            seconds=seconds,
            recall=points,
            interval=point_interval,
            bundle_recall=bundles,
            bundle_interval=bundle_interval,
            unknown=counts.unknown if point_interval == UNKNOWN else "",
            chosen=chosen,
            threads=threads[0],
            fewer_threads=threads[1],
        )

    def __add__(self, other: Report) -> Report:
        """Return the report of two runs together; recall is not estimated if one of them shed something.

        >>> both = Report(matches=2) + Report(matches=3, shed=1, recall=0.5, interval=(0.4, 0.6))
        >>> both.matches, both.exact, both.interval
        (5, False, (0.0, 1.0))
        """
        if not isinstance(other, Report):
            return NotImplemented
        combined: dict[str, Any] = {name: _sum(getattr(self, name), getattr(other, name)) for name in SUMS}
        combined |= {
            name: max(getattr(self, name), getattr(other, name)) for name in ("memory", "match_memory", "threads")
        }
        combined["fewer_threads"] = self.fewer_threads or other.fewer_threads
        combined["chosen"] = self.chosen or other.chosen
        combined["limited"] = self.limited or other.limited
        if combined["shed"]:
            combined |= {"recall": None, "interval": UNKNOWN, "bundle_recall": None, "bundle_interval": UNKNOWN}
            combined["unknown"] = "how many is not estimated for several runs together"
        return replace(self, **combined)

    @property
    def exact(self) -> bool:
        """Return whether nothing was shed or withheld for want of budget, no event was refused as too late or too far
        ahead, and all matches were asked for."""
        return self.shed == 0 and self.withheld == 0 and not self.refused and not self.limited

    @property
    def at_least(self) -> bool:
        """Return whether all matches given are in the exact answer too. A budget loses matches and invents none,
        but another match may be ``chosen`` if one was lost or an event was refused."""
        return not self.refused and not ((self.shed or self.withheld) and self.chosen)

    def missing(self, of: str = "match points") -> str:
        """Say in a few words what may be missing of ``"match points"`` or of ``"match bundles"``.

        >>> Report(shed=1, recall=None, interval=(0.48, 1.0)).missing()
        'between 48 % and 100 % of the match points were found'
        """
        if self.exact:
            return "nothing is missing"
        texts = [self.refused] if self.refused else []
        if self.shed:
            interval = self.bundle_interval
            if of != "match bundles" or interval == UNKNOWN:  # more is known of match points
                of, interval = self._estimated, self.interval
            texts.append(self._lost if interval == UNKNOWN else f"{_interval_text(interval, of)} were found")
        if self.withheld:
            texts.append(self._withheld)
        if self.limited:
            texts.append("no more were asked for")
        return "; ".join(texts)

    def __repr__(self) -> str:
        changed_fields = [field for field in fields(self) if getattr(self, field.name) != field.default]
        return fields_text(self, [field.name for field in changed_fields])

    def _repr_html_(self) -> str:
        return report_page(self)

    def __str__(self) -> str:
        first = f"{count_text(self.events, 'event')}, {self.given}"
        if self.seconds > 0:
            rate = rate_text(self.events, self.seconds)
            first += f" in {self.seconds:.2f} s" + (f" ({rate} events/s)" if rate else "")
        if self.threads > 1 or self.fewer_threads:
            reason = f" and not more: {self.fewer_threads}" if self.fewer_threads else ""
            first += f", by {count_text(self.threads, 'thread')}{reason}"
        if self.refused:
            first += f"; {self.refused}"
        if self.duplicates:
            first += f"; {count_text(self.duplicates, 'duplicate')} left out"
        return first if self.is_clause and not (self.work or self.shed) else f"{first}\n{self.effort}"

    @property
    def refused(self) -> str:
        """Return in words how many events were refused for their time; "" if there are none.

        >>> Report(late=1, ahead=20).refused
        '1 event came too late, 20 events were too far ahead'
        """
        texts = [f"{count_text(self.late, 'event')} came too late"] if self.late else []
        if self.ahead:
            texts.append(f"{count_text(self.ahead, 'event')} {'was' if self.ahead == 1 else 'were'} too far ahead")
        return ", ".join(texts)

    @property
    def given(self) -> str:
        """Return the numbers of results in words.

        >>> Report(matches=None, points=8).given, Report(matches=5, bundles=2, shed=1).given
        ('8 match points', '2 match bundles, at least 5 matches')
        """
        prefix = "" if self.exact or not self.at_least else "at least "
        texts = [] if self.points is None else [prefix + count_text(self.points, "match point")]
        if self.bundles is not None:  # one may have split into several: not "at least"
            texts.append(count_text(self.bundles, "match bundle"))
        if self.is_clause:
            texts.append(f"{count_text(self.matches or 0, 'row')} of the result")
        elif self.matches is not None:
            texts.append(prefix + count_text(self.matches, "match", "matches"))
        if self.retracted:
            texts.append(f"{self.retracted:,} taken back")
        return ", ".join(texts) or "matches were not counted"

    @property
    def _estimated(self) -> str:
        """Return what the recall is estimated of."""
        return "matches" if self.is_clause else "match points"

    @property
    def _lost(self) -> str:
        return f"matches may be missing: {clip_text(self.unknown, 400) or 'how many is not known'}"

    @property
    def _withheld(self) -> str:
        return f"of {count_text(self.withheld, 'match point')} not all matches were given"

    @property
    def effort(self) -> str:
        """Return partial matches, work, what was shed and what that may have cost, in words, as one to three lines."""
        touches = count_text(self.work, "touch", "touches")
        text = touches if self.is_clause else f"{count_text(self.made, 'node')} made, {touches}"
        if self.shed and not self.is_clause:
            text += f" ({self.deciding:,} of them to decide)"
        if self.memory:
            text += f", at most {self.memory / 2**20:,.1f} MB held"
        if self.match_memory > self.memory:
            text += f", and {self.match_memory / 2**20:,.1f} MB in the matches of 1,024 events"
        if not self.shed:
            ending = ", and no more matches were asked for" if self.limited else ""
            ending += f"\nnot exact: {self._withheld}" if self.withheld else ""
            return f"{text}; {'exact: ' if self.exact else ''}nothing was shed{ending}"
        text += f"; {self.shed:,} {'rows ' if self.is_clause else ''}shed\n"
        if self.recovered or self.unrecovered:
            bundles = count_text(self.recovered, "bundle")
            touches = count_text(self.recovering, "touch", "touches")
            text += f"{bundles} recovered with {touches}, {self.unrecovered:,} not\n"
        ending = f"; {self._withheld}" if self.withheld else ""
        if self.interval == UNKNOWN:
            return f"{text}not exact: {self._lost}{ending}"
        text += f"not exact: {_interval_text(self.interval, self._estimated, self.recall)}"
        if self.bundle_interval != UNKNOWN:
            text += f" and {_interval_text(self.bundle_interval, 'match bundles', self.bundle_recall)}"
        return f"{text} were found (90 % confidence){ending}"


def _estimate_recall(counts: Counts, target: str) -> tuple[float | None, Interval]:
    if counts.shed == 0:
        return 1.0, (1.0, 1.0)
    tally: Tally | None = getattr(counts, target)
    estimate = None if tally is None else tally.estimate()
    if estimate is None:
        return None, UNKNOWN
    return estimate.recall if estimate.high - estimate.low <= SURE else None, (estimate.low, estimate.high)


def _interval_text(interval: Interval, target: str, likely: float | None = None) -> str:
    """Return the interval in percent, rounded outwards, with the likely value."""
    low, high = interval
    digits = 0 if high - low >= FINE else 1
    scale = 10 ** (2 + digits)
    # TINY keeps a share such as 0.29 from being rounded down: 0.29 * 100 is a little less than 29.
    low, high = floor(low * scale + TINY) / scale, ceil(high * scale - TINY) / scale
    text = f"between {_percent(low, digits)} and {_percent(high, digits)} of the {target}"
    return text if likely is None else f"{text} (likely {_percent(likely, digits)})"


def _percent(share: float, digits: int) -> str:
    return f"{100 * share:.{digits}f} %"


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def count_text(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    >>> count_text(1, "match", "matches"), count_text(1200, "bundle")
    ('1 match', '1,200 bundles')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"

"""Show what a tuning found: recommendations in words, the curve as a table, and all of it as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa

from acep.display import MOST_TEXT, preformatted
from acep.tuning.cheaper import Change
from acep.tuning.curve import CurvePoint
from acep.tuning.replay import SampleRun
from acep.tuning.sample import Sample
from acep.tuning.trials import ENOUGH, ErrorStep, PolicyTrial

__all__ = ["CpuShare", "Tuning"]


@dataclass(frozen=True)
class CpuShare:
    """A share of a core: the ``work`` of an event that it pays for, by the clock of the whole stream and the speed of
    the exact replay on this machine; ``point``: the greatest budget of the curve within it (``None``: none is)."""

    cpu: float
    work: float
    point: CurvePoint | None


@dataclass(frozen=True, repr=False)
class Tuning:
    """Recommendations for a query, measured on a sample of its stream.

    ``sample``: the :class:`acep.tuning.sample.Sample` with its ``table``. ``exact``: its exact replay; ``errors``: the
    replays with other error budgets. ``curve``: recall against work, with the ``knee`` and the ``least`` budget that
    reaches the ``target`` recall ``of`` match ``"points"`` or ``"bundles"``. ``policies``: their recall on the second
    half, best first. ``changes`` make the query cheaper; ``findings`` are those of ``acep explain``. ``by_variable``:
    the touches of partial matches by the variable bound last, on the first ``looked_at`` events. ``unsaid``: what the
    sample cannot say, and why; ``cut``: what was left out for want of work."""

    sample: Sample
    exact: SampleRun
    target: float
    of: str
    errors: tuple[ErrorStep, ...] = ()
    curve: tuple[CurvePoint, ...] = ()
    knee: CurvePoint | None = None
    least: CurvePoint | None = None
    cpu: tuple[CpuShare, ...] = ()
    policies: tuple[PolicyTrial, ...] = ()
    changes: tuple[Change, ...] = ()
    findings: tuple[str, ...] = ()
    by_variable: dict[str, int] = field(default_factory=dict)
    looked_at: int = 0
    unsaid: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()

    @property
    def policy(self) -> PolicyTrial | None:
        """Return the trial that found the most, if that is more than chance makes of the default policy, else that of
        the default policy; ``None`` if none was compared."""
        plain = [one for one in self.policies if one.name == DEFAULT]
        if not plain:
            return self.policies[0] if self.policies else None
        best = self.policies[0]
        return best if self.recall(best) > plain[0].high else plain[0]

    def recall(self, one: CurvePoint | PolicyTrial) -> float:
        """Return the recall that is asked for, of match points or of bundles."""
        return one.recall if self.of == "points" else one.bundle_recall

    def to_pandas(self) -> Any:
        """Return the curve as a pandas frame, one row for each budget."""
        return pa.Table.from_pylist([vars(point) for point in self.curve], schema=CURVE).to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the events as plain data, as ``acep tune --json`` writes it."""
        sample = self.sample
        return {
            "sample": {
                "events": sample.events,
                "of": sample.whole,
                "how": sample.how,
                "partitions": sample.partitions,
            },
            "exact": _plain(self.exact),
            "errors": [{"errors": one.errors, "single": one.single} | _plain(one.replay) for one in self.errors],
            "target": self.target,
            "recall_of": self.of,
            "curve": [vars(point) for point in self.curve],
            "knee": None if self.knee is None else self.knee.budget,
            "least": None if self.least is None else self.least.budget,
            "cpu": [{"cpu": one.cpu, "work": one.work, "budget": one.point and one.point.budget} for one in self.cpu],
            "policies": [vars(one) for one in self.policies],
            "policy": None if self.policy is None else {"name": self.policy.name, "trained": self.policy.trained},
            "changes": [
                {"change": one.change, "why": one.why, "same": one.same} | _plain(one.after) for one in self.changes
            ],
            "findings": list(self.findings),
            "touches_by_variable": self.by_variable,
            "unsaid": list(self.unsaid),
            "cut": list(self.cut),
        }

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return preformatted(str(self), MOST_TEXT)


DEFAULT = "history"

CURVE = pa.schema(
    [
        *((name, pa.float64()) for name in ("budget", "work", "recall", "bundle_recall")),
        ("exact", pa.bool_()),
        ("low", pa.float64()),
        ("high", pa.float64()),
    ]
)


def _plain(one: SampleRun) -> dict[str, Any]:
    names = ("events", "touches", "matches", "points", "bundles", "keys")
    return {name: getattr(one, name) for name in names} | {"work": one.work}


def _lines(found: Tuning) -> Iterator[str]:
    sample, exact = found.sample, found.exact
    yield f"sample: {sample.events:,} of {sample.whole:,} events: {sample.how}"
    yield "everything below was measured on this sample"
    yield f"exact: {_found(exact)}, {exact.work:.3g} touches an event"
    yield from _error_lines(found)
    yield from _budget_lines(found)
    if found.policies:
        yield ""
        yield f"# policy, with work={found.policies[0].work:g} on the second half of the sample"
        heads = ("policy", "trained on the first half", "points", "bundles", f"90 % interval of {found.of}")
        rows = [
            (
                one.name,
                "yes" if one.trained else "no",
                f"{one.recall:.1%}",
                f"{one.bundle_recall:.1%}",
                f"{one.low:.1%} to {one.high:.1%}",
            )
            for one in found.policies
        ]
        yield from table_lines(heads, rows)
        best = found.policy
        if best is not None and best.name == DEFAULT:
            yield f"no policy finds more than {DEFAULT}, the default, by more than chance explains"
        elif best is not None:
            yield f"policy={best.name!r} finds the most"
    yield from _cheaper_lines(found)
    if found.unsaid:
        yield ""
        yield "# not said"
        yield from found.unsaid
    if found.cut:
        yield ""
        yield "# cut"
        yield from found.cut


def _error_lines(found: Tuning) -> Iterator[str]:
    if not found.errors:
        return
    yield ""
    yield "# error budget: how much more each step finds, and what it costs"
    rows = []
    for before, step in zip((None, *found.errors), found.errors, strict=False):
        made, old = step.replay, None if before is None else before.replay
        numbers = [
            _step(getattr(made, n), None if old is None else getattr(old, n)) for n in ("matches", "bundles", "keys")
        ]
        rows.append((f"{step.errors:g}", *numbers, f"{made.work:.3g}", "a single event matches" if step.single else ""))
    yield from table_lines(("errors", "matches", "bundles", "keys", "touches an event", ""), rows)
    counts = [step.replay.bundles for step in found.errors]
    if any(more < less for less, more in pairwise(counts)):
        yield "fewer bundles with more errors: what is found between two bundles joins them into one"
    hits = [step for step in found.errors if step.replay.matches]
    if not hits:
        yield "no error budget that was tried finds a match in the sample"
    elif hits[0] is not found.errors[0]:
        yield f"errors={hits[0].errors:g} is the least that finds a match"


def _budget_lines(found: Tuning) -> Iterator[str]:
    if not found.curve:
        return
    yield ""
    yield "# resource budget: recall against work"
    heads = ("work=", "touches an event", "points", "bundles", f"90 % interval of {found.of}", "")
    rows = []
    for point in found.curve:
        notes = [*(["exact"] if point.exact else []), *(["knee"] if point == found.knee else [])]
        notes += ["recommended"] if point == found.least else []
        between = f"{point.low:.1%} to {point.high:.1%}"
        recall = f"{point.recall:.1%}", f"{point.bundle_recall:.1%}"
        rows.append((f"{point.budget:g}", f"{point.work:.3g}", *recall, between, ", ".join(notes)))
    yield from table_lines(heads, rows)
    if exact_is_cheap(found.exact):
        yield "the exact result takes less than one touch an event: a budget saves little here"
    if found.least is None:
        yield f"no budget that was tried finds {found.target:.0%} of the match {found.of}"
    else:
        enough = f"{found.target:.0%} of the match {found.of}"
        yield f"work={found.least.budget:g} is the least budget tried that finds {enough}"
    for one in found.cpu:
        within = "less than any budget that was tried"
        if one.point is not None:
            within = f"work={one.point.budget:g} within it finds {found.recall(one.point):.1%} of the match {found.of}"
        yield f"cpu={one.cpu:g} pays for about {one.work:.3g} touches an event on this machine: {within}"


def _cheaper_lines(found: Tuning) -> Iterator[str]:
    if not (found.changes or found.findings or found.by_variable):
        return
    yield ""
    yield "# what would make the query cheaper"
    for one in found.changes:
        less = f"{found.exact.work:.3g} to {one.after.work:.3g} touches an event"
        before, after = count_text(found.exact.matches, "match", "matches"), f"{one.after.matches:,} after the change"
        yield f"{one.change}: {less}; {before}, {after}{', at the same times' if one.same else ''}"
        yield f"  {one.why}"
    total = sum(found.by_variable.values())
    for name, touches in [*found.by_variable.items()][:3]:
        share = touches / total if total else 0
        where = f"partial matches that bound {name} last" if name else "events that begin a partial match"
        yield f"{share:.0%} of the touches: {where} (reference runtime, first {found.looked_at:,} events)"
    yield from found.findings


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table as lines, with the columns to the right.

    >>> list(table_lines(("k", "matches"), [("0", "12")]))
    ['  k  matches', '  0       12']
    """
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    for row in (heads, *rows):
        yield "  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _found(one: SampleRun) -> str:
    few = f" (fewer than {ENOUGH} bundles say little)" if one.bundles < ENOUGH else ""
    told = (
        count_text(one.matches, "match", "matches"),
        count_text(one.points, "match point"),
        count_text(one.bundles, "bundle"),
        count_text(one.keys, "key"),
    )
    return f"{', '.join(told)}{few}"


def count_text(number: int, one: str, many: str | None = None) -> str:
    """Return a number of things in words.

    >>> count_text(1, "key"), count_text(2000, "match", "matches")
    ('1 key', '2,000 matches')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def exact_is_cheap(exact: SampleRun) -> bool:
    """Return whether an exact run takes less than one transition evaluation an event."""
    return exact.work < 1


def _step(number: int, before: int | None) -> str:
    return f"{number:,}" if before is None else f"{number:,} ({number - before:+,})"

"""Write a tuning as text: what was measured, what is recommended, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from acep.tuning.cheaper import Change
from acep.tuning.count_text import GREATEST, count_text, number_text, table_lines
from acep.tuning.replay import SampleRun
from acep.tuning.saving import SAVING_SHARE
from acep.tuning.trials import ENOUGH
from acep.tuning.windows import WindowTrial

if TYPE_CHECKING:
    from acep.tuning.result import Tuning

__all__ = ["DEFAULT", "tuning_lines"]

DEFAULT = "history"
"""The policy that is taken if none is named."""


def tuning_lines(tuning: Tuning) -> Iterator[str]:
    """Yield the lines of the text of a tuning."""
    sample, exact = tuning.sample, tuning.exact
    yield f"sample: {sample.events:,} of {sample.whole:,} events: {sample.how}"
    yield "everything below was measured on this sample, unless it says on how many events"
    yield f"exact: {_counts_text(exact)}, {exact.work:.3g} touches an event"
    yield from _error_lines(tuning)
    yield from _budget_lines(tuning)
    yield from _window_lines(tuning)
    yield from _window_cost_lines(tuning)
    yield from _recommendation_lines(tuning)
    if tuning.policies:
        yield ""
        yield f"# policy, with work={tuning.policies[0].work:g} on the second half of the sample"
        heads = ("policy", "trained on the first half", "points", "bundles", f"90 % interval of {tuning.of}")
        rows = [
            (
                trial.name,
                "yes" if trial.trained else "no",
                f"{trial.recall:.1%}",
                f"{trial.bundle_recall:.1%}",
                f"{trial.low:.1%} to {trial.high:.1%}",
            )
            for trial in tuning.policies
        ]
        yield from table_lines(heads, rows)
        best = tuning.policy
        if best is not None and best.name == DEFAULT:
            yield f"no policy finds more than {DEFAULT}, the default, by more than chance explains"
        elif best is not None:
            yield f"policy={best.name!r} finds the most"
    yield from _cheaper_lines(tuning)
    if tuning.unsaid:
        yield ""
        yield "# not said"
        yield from tuning.unsaid
    if tuning.cut:
        yield ""
        yield "# cut"
        yield from tuning.cut


def _error_lines(tuning: Tuning) -> Iterator[str]:
    if not tuning.errors:
        return
    yield ""
    yield "# error budget: how much more each step finds, and what it costs"
    rows = []
    for previous, step in zip((None, *tuning.errors), tuning.errors, strict=False):
        run, old = step.replay, None if previous is None else previous.replay
        numbers = [
            _step(getattr(run, n), None if old is None else getattr(old, n)) for n in ("matches", "bundles", "keys")
        ]
        rows.append((f"{step.errors:g}", *numbers, f"{run.work:.3g}", "a single event matches" if step.single else ""))
    yield from table_lines(("errors", "matches", "bundles", "keys", "touches an event", ""), rows)
    counts = [step.replay.bundles for step in tuning.errors]
    if any(more_bundles < bundles for bundles, more_bundles in pairwise(counts)):
        yield "fewer bundles with more errors: what is found between two bundles joins them into one"
    hits = [step for step in tuning.errors if step.replay.matches]
    if not hits:
        yield "no error budget that was tried finds a match in the sample"
    elif hits[0] is not tuning.errors[0]:
        yield f"errors={hits[0].errors:g} is the least that finds a match"


def _budget_lines(tuning: Tuning) -> Iterator[str]:
    if not tuning.curve:
        return
    yield ""
    yield "# resource budget: recall against work"
    heads = ("work=", "touches an event", "points", "bundles", f"90 % interval of {tuning.of}", "")
    rows = []
    for point in tuning.curve:
        notes = [*(["exact"] if point.exact else []), *(["knee"] if point == tuning.knee else [])]
        notes += ["least"] if point == tuning.least else []
        interval = f"{point.low:.1%} to {point.high:.1%}"
        recall = f"{point.recall:.1%}", f"{point.bundle_recall:.1%}"
        rows.append((f"{point.budget:g}", f"{point.work:.3g}", *recall, interval, ", ".join(notes)))
    yield from table_lines(heads, rows)
    if tuning.least is None:
        yield f"no budget that was tried finds {tuning.target:.0%} of the match {tuning.of}"
    else:
        enough = f"{tuning.target:.0%} of the match {tuning.of}"
        yield f"work={tuning.least.budget:g} is the least budget tried that finds {enough}"
    for share in tuning.cpu:
        affordable = "less than any budget that was tried"
        if share.work >= tuning.exact.work:
            affordable = f"enough for the exact result, which takes {tuning.exact.work:.3g}"
        elif share.point is not None:
            affordable = (
                f"work={share.point.budget:g} within it finds {tuning.recall(share.point):.1%} of the match {tuning.of}"
            )
        yield f"cpu={share.cpu:g} pays for about {share.work:.3g} touches an event on this machine: {affordable}"


def _window_cost_lines(tuning: Tuning) -> Iterator[str]:
    if not tuning.window_costs:
        return
    yield ""
    yield "# shorter windows: what they cost, each on as many of the first events as its work permits"
    rows = [
        (cost.window, f"{cost.events:,}", f"{cost.work:.3g}", number_text(cost.matches)) for cost in tuning.window_costs
    ]
    yield from table_lines(("WITHIN", "events", "touches an event", "matches"), rows)
    yield f"which of the matches of the query they find is not known: that takes {ENOUGH} windows with a match"


def _window_lines(tuning: Tuning) -> Iterator[str]:
    if not tuning.windows:
        return
    yield ""
    yield "# shorter windows: what they find"
    heads = ("WITHIN", "touches an event", "points", "bundles", f"90 % interval of {tuning.of}")
    rows = [
        (
            trial.window,
            f"{trial.work:.3g}",
            f"{trial.recall:.1%}",
            f"{trial.bundle_recall:.1%}",
            f"{trial.low:.1%} to {trial.high:.1%}",
        )
        for trial in tuning.windows
    ]
    yield from table_lines(heads, rows)


def _recommendation_lines(tuning: Tuning) -> Iterator[str]:
    if not tuning.windows and not tuning.curve:
        return
    yield ""
    yield f"# what finds {tuning.target:.0%} of the match {tuning.of} at the least cost"
    best, point = tuning.recommended, tuning.least
    exact = f"the exact run takes {tuning.exact.work:.3g} touches an event"
    if isinstance(best, WindowTrial):
        beside = "" if tuning.budget is None else f" work={tuning.budget.budget:g} takes {tuning.budget.work:.3g}, and"
        yield f"WITHIN {best.window}: it takes {best.work:.3g} touches an event;{beside} {exact}"
    elif best is not None:
        yield f"work={best.budget:g}: it takes {best.work:.3g} touches an event; {exact}"
    elif point is not None and point.work > SAVING_SHARE * tuning.exact.work:
        yield f"no budget: {exact}, and work={point.budget:g} takes {point.work:.3g}"
    elif point is not None and tuning.saving is not None:
        yield f"no budget: work={point.budget:g} took {tuning.saving.ratio:.2f} of the time of the exact run"
    else:
        yield f"nothing that was tried: {exact}"


def _cheaper_lines(tuning: Tuning) -> Iterator[str]:
    if not (tuning.changes or tuning.findings or tuning.by_variable):
        return
    yield ""
    yield "# what would make the query cheaper"
    for change in tuning.changes:
        saving = f"{tuning.exact.work:.3g} to {change.after.work:.3g} touches an event"
        yield f"{change.change}: {saving}, {_kept_text(tuning.exact.matches, change)}"
        yield f"  {change.why}"
    total = sum(tuning.by_variable.values())
    for name, touches in [*tuning.by_variable.items()][:3]:
        share = touches / total if total else 0
        source = f"partial matches that bound {name} last" if name else "events that begin a partial match"
        yield f"{share:.0%} of the touches: {source} (reference runtime, first {tuning.looked_at:,} events)"
    yield from tuning.findings


def _kept_text(n_before: int, change: Change) -> str:
    """Return what becomes of the matches by a change."""
    n_after, n_kept = change.after.matches, change.kept
    if n_kept is None:
        return f"{count_text(n_after, 'match', 'matches')} in place of {number_text(n_before)}"
    if n_kept == n_before == n_after:
        return "the same matches"
    if n_kept == n_after:
        return f"{n_after:,} of {n_before:,} matches"
    return f"{n_kept:,} of {n_before:,} matches, and {count_text(n_after - n_kept, 'other one')}"


def _counts_text(run: SampleRun) -> str:
    few = f" (fewer than {ENOUGH} windows with a match say little)" if run.draws < ENOUGH else ""
    counts = (
        count_text(run.matches, "match", "matches"),
        count_text(run.points, "match point"),
        count_text(run.bundles, "bundle"),
        count_text(run.keys, "key"),
    )
    return f"{', '.join(counts)}{few}"


def _step(number: int, previous: int | None) -> str:
    if previous is None or number >= GREATEST:
        return number_text(number)
    return f"{number:,} ({number - previous:+,})"

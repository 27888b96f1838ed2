"""Hold what a tuning found, and give it as a table and as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from acep.display import MOST_TEXT, preformat
from acep.tuning.cheaper import Change
from acep.tuning.count_text import GREATEST, number_text
from acep.tuning.curve import CurvePoint
from acep.tuning.replay import SampleRun
from acep.tuning.sample import Sample
from acep.tuning.saving import SAVING_SHARE, Saving
from acep.tuning.trials import ErrorStep, PolicyTrial
from acep.tuning.tuning_text import DEFAULT, tuning_lines
from acep.tuning.windows import WindowCost, WindowTrial

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
    reaches the ``target`` recall ``of`` match ``"points"`` or ``"bundles"``, and the ``saving`` of time that this
    brings. ``windows``: what shorter windows find, with the cheapest ``window`` that reaches the target;
    ``window_costs``: only what they cost, where the sample was cut to too few windows with a match. ``policies``:
    their recall on the second half, best first. ``changes`` make the query cheaper; ``findings`` are those of ``acep
    explain``. ``by_variable``: the touches of partial matches by the variable bound last, on the first ``looked_at``
    events. ``unsaid``: what the sample cannot say, and why; ``cut``: what was left out for want of work."""

    sample: Sample
    exact: SampleRun
    target: float
    of: str
    errors: tuple[ErrorStep, ...] = ()
    curve: tuple[CurvePoint, ...] = ()
    knee: CurvePoint | None = None
    least: CurvePoint | None = None
    saving: Saving | None = None
    windows: tuple[WindowTrial, ...] = ()
    window: WindowTrial | None = None
    window_costs: tuple[WindowCost, ...] = ()
    cpu: tuple[CpuShare, ...] = ()
    policies: tuple[PolicyTrial, ...] = ()
    changes: tuple[Change, ...] = ()
    findings: tuple[str, ...] = ()
    by_variable: dict[str, int] = field(default_factory=dict)
    looked_at: int = 0
    unsaid: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()

    @property
    def budget(self) -> CurvePoint | None:
        """Return the least budget that reaches the target, if it takes less work and less time than the exact run: at
        most :data:`acep.tuning.saving.SAVING_SHARE` of each."""
        saves = self.least is not None and self.least.work <= SAVING_SHARE * self.exact.work
        return self.least if saves and self.saving is not None and self.saving.ratio <= SAVING_SHARE else None

    @property
    def recommended(self) -> CurvePoint | WindowTrial | None:
        """Return what costs the least of what reaches the target: a budget or a shorter window; ``None`` if the exact
        run costs no more."""
        window = self.window if self.window is not None and self.window.work <= SAVING_SHARE * self.exact.work else None
        if self.budget is None or window is None:
            return self.budget or window
        return window if window.work <= self.budget.work else self.budget

    @property
    def policy(self) -> PolicyTrial | None:
        """Return the trial that found the most, if that is more than chance makes of the default policy, else that of
        the default policy; ``None`` if none was compared."""
        plain = [trial for trial in self.policies if trial.name == DEFAULT]
        if not plain:
            return self.policies[0] if self.policies else None
        best = self.policies[0]
        return best if self.recall(best) > plain[0].high else plain[0]

    def recall(self, trial: CurvePoint | PolicyTrial | WindowTrial) -> float:
        """Return the recall that is asked for, of match points or of bundles."""
        return trial.recall if self.of == "points" else trial.bundle_recall

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
            "errors": [{"errors": step.errors, "single": step.single} | _plain(step.replay) for step in self.errors],
            "target": self.target,
            "recall_of": self.of,
            "curve": [vars(point) for point in self.curve],
            "knee": None if self.knee is None else self.knee.budget,
            "least": None if self.least is None else self.least.budget,
            "saving": None if self.saving is None else vars(self.saving),
            "windows": [vars(trial) for trial in self.windows],
            "window": None if self.window is None else self.window.window,
            "window_costs": [vars(cost) for cost in self.window_costs],
            "recommended": _plain_recommendation(self.recommended),
            "cpu": [
                {"cpu": share.cpu, "work": share.work, "budget": share.point and share.point.budget}
                for share in self.cpu
            ],
            "policies": [vars(trial) for trial in self.policies],
            "policy": None if self.policy is None else {"name": self.policy.name, "trained": self.policy.trained},
            "changes": [
                {
                    "change": change.change,
                    "why": change.why,
                    "kept": change.kept,
                    "same": change.keeps_matches(self.exact),
                }
                | _plain(change.after)
                for change in self.changes
            ],
            "findings": list(self.findings),
            "touches_by_variable": self.by_variable,
            "unsaid": list(self.unsaid),
            "cut": list(self.cut),
        }

    def __str__(self) -> str:
        return "\n".join(tuning_lines(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return preformat(str(self), MOST_TEXT)


CURVE = pa.schema(
    [
        *((name, pa.float64()) for name in ("budget", "work", "recall", "bundle_recall")),
        ("exact", pa.bool_()),
        ("low", pa.float64()),
        ("high", pa.float64()),
    ]
)


def _plain(run: SampleRun) -> dict[str, Any]:
    names = ("events", "touches", "matches", "points", "bundles", "draws", "keys")
    numbers = {name: getattr(run, name) for name in names}
    if run.matches >= GREATEST:  # more than the numbers of most readers of JSON
        numbers["matches"] = number_text(run.matches)
    return numbers | {"work": run.work}


def _plain_recommendation(best: CurvePoint | WindowTrial | None) -> dict[str, Any] | None:
    if best is None:
        return None
    return {"within": best.window} if isinstance(best, WindowTrial) else {"work": best.budget}

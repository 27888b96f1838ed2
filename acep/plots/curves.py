"""Draw recall against the budget that it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acep.budget import Budget
from acep.errors import DataError
from acep.events.tables import to_table
from acep.matches.report import Report
from acep.plots.canvas import AS_WRITTEN, COLOURS, GREY, axes_of, label_text, legend, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["recall_curve"]

BOUNDS = {
    "work": "budget (touches an event)",
    "cpu": "budget (share of a core)",
    "latency": "budget (seconds a batch)",
}
MOST_RUNS = 1_000
WIDE = 20.0  # ratio of budgets from which on the axis is logarithmic
TARGETS = {"points": "match points", "bundles": "match bundles"}


@dataclass(frozen=True)
class _Run:
    """One point of a curve: the budget, the recall (``None``: not likely one more than another), and its interval."""

    budget: float
    recall: float | None
    low: float
    high: float


def recall_curve(
    runs: Any, *, of: str = "points", budget: str | None = None, work: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the recall of runs against their budgets as a line, with its interval, and return the axes.

    ``runs`` are pairs of a budget and a result, or a dict of names and such pairs, a line for each. A budget is a
    number or an :class:`acep.Budget` (of which ``work``, ``cpu`` or ``latency`` is set). A result is a recall that was
    measured, from 0 to 1, or the :class:`acep.Report` of the run, whose estimate is drawn: the recall of match
    ``"points"`` or ``"bundles"`` (``of``) with its 90 % interval. A report that knows no likely value has its interval
    alone. ``runs`` may also be a table with the columns ``budget`` and ``recall``, and if there are, ``low`` and
    ``high``, and ``name``. ``budget`` names the axis. ``work``: what the exact run took, drawn as a vertical line.
    ``ax``: the axes to draw in (default: those of a new figure).

    Raises :class:`DataError` for other runs, and for more than 1,000.

    >>> import acep
    >>> runs = [(acep.Budget(work=2), 0.4), (acep.Budget(work=4), 0.7), (acep.Budget(work=8), 1.0)]
    >>> ax = recall_curve(runs)
    >>> ax.get_xlabel(), ax.get_lines()[0].get_xydata().tolist()
    ('budget (touches an event)', [[2.0, 0.4], [4.0, 0.7], [8.0, 1.0]])
    """
    if not isinstance(of, str) or of not in TARGETS:
        raise DataError(f"of={of!r} is not one of points and bundles", code="option_invalid")
    if budget is not None and not isinstance(budget, str):
        raise DataError(f"budget= is the name of the axis, not {type(budget).__name__}", code="option_invalid")
    if work is not None:
        work = _number(work, "work=")
    named, heading, several = _lines(runs, of)
    axes = axes_of(ax, width=7.0)
    entries = []
    for number, (name, line) in enumerate(named.items()):
        colour = COLOURS[number % len(COLOURS)]
        line.sort(key=lambda run: run.budget)
        likely = [(run.budget, run.recall) for run in line if run.recall is not None]
        style: dict[str, Any] = {"marker": "o", "markersize": 4, "color": colour}
        artist: Any = axes.plot([x for x, _ in likely], [y for _, y in likely], **style)[0]
        spread = [run for run in line if run.low < run.high]
        if spread:
            lows, highs = [run.low for run in spread], [run.high for run in spread]
            bars = axes.vlines([run.budget for run in spread], lows, highs, colors=colour, linewidth=5, alpha=0.35)
            artist = artist if likely else bars
        entries.append((artist, name))
    if work is not None:
        axes.axvline(work, color=GREY, linestyle="--", linewidth=1)
        placement: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "right", "rotation": 90}
        axes.annotate("exact run", (work, 0.03), fontsize=8, color=GREY, **placement)
    budgets = [run.budget for line in named.values() for run in line] + ([] if work is None else [work])
    if min(budgets) > 0 and max(budgets) > WIDE * min(budgets):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_ylim(-0.02, 1.04)
    axes.grid(visible=True, color="#d0d7de", linewidth=0.5)
    axes.set_xlabel(label_text(budget or heading), fontsize=9, **AS_WRITTEN)
    axes.set_ylabel(f"recall of {TARGETS[of]}", fontsize=9)
    axes.tick_params(labelsize=8)
    if several:
        legend(axes, entries)
    intervals = any(run.low < run.high for line in named.values() for run in line)
    set_title(axes, "recall by budget", ["bars: 90 % intervals of the estimates"] if intervals else [])
    return axes


def _lines(runs: Any, kind: str) -> tuple[dict[str, list[_Run]], str, bool]:
    """Return the runs of each line, the name of the axis of budgets, and whether lines have names."""
    several = isinstance(runs, Mapping) and not {"budget", "recall"} <= set(runs)
    if several:
        pairs_by_name = {str(name): list(_pairs(pairs)) for name, pairs in runs.items()}
    elif isinstance(runs, Sequence) and not isinstance(runs, str | bytes):
        pairs_by_name = {"": list(_pairs(runs))}
    else:
        return _from_table(runs)
    if sum(map(len, pairs_by_name.values())) > MOST_RUNS:
        raise DataError(f"a curve has at most {MOST_RUNS:,} runs", code="option_invalid")
    headings, lines = set[str](), dict[str, list[_Run]]()
    for name, pairs in pairs_by_name.items():
        lines[name] = []
        for run_budget, result in pairs:
            heading, x = _budget_position(run_budget)
            headings.add(heading)
            lines[name].append(_Run(x, *_result(result, kind)))
    if not headings:
        raise DataError("there are no runs to draw", code="option_invalid")
    if len(headings) > 1:
        raise DataError(
            "the budgets of the runs set different bounds",
            hint="draw those of work, cpu and latency apart",
            code="option_invalid",
        )
    return lines, headings.pop(), several


def _pairs(pairs: Any) -> Iterator[tuple[Any, Any]]:
    if not isinstance(pairs, Sequence) or isinstance(pairs, str | bytes):
        raise DataError(f"runs are pairs of a budget and a result, not {type(pairs).__name__}", code="option_invalid")
    for pair in pairs:
        if not isinstance(pair, Sequence) or isinstance(pair, str | bytes) or len(pair) != 2:
            raise DataError(
                "runs are pairs of a budget and a result, such as (acep.Budget(work=2), found.report)",
                code="option_invalid",
            )
        yield pair[0], pair[1]


def _budget_position(budget: Any) -> tuple[str, float]:
    """Return the name of the axis and the position of a budget."""
    if not isinstance(budget, Budget):
        return BOUNDS["work"], _number(budget, "a budget")
    bounds = [name for name in BOUNDS if getattr(budget, name) is not None]
    if len(bounds) != 1:
        raise DataError(
            "the budget of a run sets one of work, cpu and latency", hint="or give a number", code="option_invalid"
        )
    return BOUNDS[bounds[0]], _number(getattr(budget, bounds[0]), "a budget")


def _result(result: Any, kind: str) -> tuple[float | None, float, float]:
    """Return the recall and its interval of a report, or of a number."""
    if not isinstance(result, Report):
        measured = _share(result)
        return measured, measured, measured
    if kind == "points":
        return result.recall, *result.interval
    return result.bundle_recall, *result.bundle_interval


def _from_table(runs: Any) -> tuple[dict[str, list[_Run]], str, bool]:
    table = to_table(runs)
    missing = [name for name in ("budget", "recall") if name not in table.column_names]
    if missing:
        raise DataError(
            f"the table of runs has no column `{missing[0]}`",
            hint="it has the columns budget and recall",
            code="data_column",
        )
    if not 0 < table.num_rows <= MOST_RUNS:
        raise DataError(f"a curve has 1 to {MOST_RUNS:,} runs, not {table.num_rows:,}", code="option_invalid")
    lines: dict[str, list[_Run]] = {}
    for row in table.to_pylist():
        recall = None if row["recall"] is None else _share(row["recall"])
        ends = [recall if row.get(name) is None else _share(row[name]) for name in ("low", "high")]
        if ends[0] is None or ends[1] is None:
            raise DataError("a run has neither a recall nor an interval (low and high)", code="option_invalid")
        run = _Run(_number(row["budget"], "a budget"), recall, ends[0], ends[1])
        lines.setdefault(str(row.get("name", "")), []).append(run)
    return lines, BOUNDS["work"], "name" in table.column_names


def _number(value: Any, what: str) -> float:
    try:
        number = float(value) if not isinstance(value, str | bytes | bool) else float("nan")
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not 0 <= number < float("inf"):
        raise DataError(
            f"{what} is a number that is not negative, not {label_text(repr(value))}", code="option_invalid"
        )
    return number


def _share(value: Any) -> float:
    number = _number(value, "a recall")
    if number > 1:
        raise DataError(f"a recall is from 0 to 1, not {number:g}", code="option_invalid")
    return number

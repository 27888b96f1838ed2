"""Curves of recall, the panels of a stream, and the cells of a history show the numbers that they were given."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import acep
from acep.learning.history.graph import History
from acep.learning.history.sums import SUMS
from acep.native.compiled import why_not
from acep.plots import controller, history, recall_curve
from acep.plots.progress_panels import MOST_BATCHES
from acep.streaming.progress import Progress
from acep.streaming.time_spent import Spent

pytest.importorskip("matplotlib")

needs_core = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


# Recall ------------------------------------------------------------------------------------------


def points_of(line: Any) -> list[tuple[float, float]]:
    return [tuple(point) for point in np.asarray(line.get_xydata()).tolist()]


def test_measured_recall_is_a_line_in_the_order_of_budgets() -> None:
    ax = recall_curve([(8, 1.0), (2, 0.25), (4, 0.5)], work=9)
    line, exact = ax.get_lines()
    assert points_of(line) == [(2, 0.25), (4, 0.5), (8, 1.0)]
    assert exact.get_xdata() == [9, 9]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("budget (touches an event)", "recall of match points")
    assert (ax.get_xscale(), ax.get_legend()) == ("linear", None)
    assert recall_curve([(0.1, 0.1), (8, 1.0)]).get_xscale() == "log"
    assert recall_curve([(acep.Budget(latency=0.1), 0.5)]).get_xlabel() == "budget (seconds a batch)"


def test_reports_are_drawn_with_their_intervals() -> None:
    sure = acep.Report(shed=1, recall=0.6, interval=(0.5, 0.7), bundle_recall=0.9, bundle_interval=(0.8, 1.0))
    wide = replace(sure, recall=None, interval=(0.1, 0.9))
    runs = [(acep.Budget(work=2), wide), (acep.Budget(work=4), sure), (acep.Budget(work=8), acep.Report())]
    ax = recall_curve({"_a$": runs, "b": [(2, 0.5)]})
    assert points_of(ax.get_lines()[0]) == [(4, 0.6), (8, 1.0)], "a report without a likely value has no point"
    (bars,) = ax.collections
    assert [segment.tolist() for segment in bars.get_segments()] == [[[2, 0.1], [2, 0.9]], [[4, 0.5], [4, 0.7]]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [" _a$", "b"]
    bundles = recall_curve(runs[1:2], of="bundles")
    assert points_of(bundles.get_lines()[0]) == [(4, 0.9)]
    assert bundles.get_ylabel() == "recall of match bundles"


def test_a_table_of_runs() -> None:
    rows = {"budget": [2, 4, 2], "recall": [0.2, None, 0.3], "name": ["a", "a", "b"], "low": [None, 0.1, None]}
    ax = recall_curve(rows | {"high": [None, 0.5, None]})
    assert [points_of(line) for line in ax.get_lines()] == [[(2, 0.2)], [(2, 0.3)]]
    assert [segment.tolist() for segment in ax.collections[0].get_segments()] == [[[4, 0.1], [4, 0.5]]]


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "no runs"),
        ([(2, 1.5)], "from 0 to 1, not 1.5"),
        ([(2,)], "pairs of a budget and a result"),
        ([(acep.Budget(work=2), 0.5), (acep.Budget(cpu=0.5), 0.5)], "set different bounds"),
        ([(acep.Budget(work=2, cpu=0.5), 0.5)], "sets one of work, cpu and latency"),
        ([(-1, 0.5)], "not negative"),
        ([(1, 0.5)] * 1_001, "at most 1,000 runs"),
        ({"budget": [1], "recall": [None]}, "neither a recall nor an interval"),
    ],
)
def test_runs_that_are_none(runs: Any, message: str) -> None:
    with pytest.raises(acep.DataError, match=message):
        recall_curve(runs)


# A stream under a budget -------------------------------------------------------------------------


def progress(batch: int, *, work: int, allowance: int, made: int, shed: int, seconds: float = 0.5) -> Progress:
    spent = Spent(spark=seconds / 2, transfer=seconds / 4, matching=seconds / 4)
    return Progress(
        *(batch, 0, 0, 0, 0, 0, "", 0, 100, seconds),
        made=made,
        shed=shed,
        work=work,
        allowance=allowance,
        spent=spent,
    )


def test_totals_become_steps() -> None:
    seen = [
        progress(0, work=10, allowance=20, made=100, shed=0),
        progress(1, work=30, allowance=40, made=200, shed=50, seconds=1.0),
        progress(4, work=90, allowance=100, made=300, shed=60),  # those between are not known
        progress(5, work=95, allowance=120, made=300, shed=60),  # made none
        progress(6, work=99, allowance=140, made=310, shed=90),  # skipped events count as shed
    ]
    figure = controller(seen)
    work, allowed = figure.axes[0].get_lines()
    nan = float("nan")
    assert work.get_xdata().tolist() == [0, 1, 4, 5, 6]
    np.testing.assert_equal(work.get_ydata(), [10, 20, nan, 5, 4])
    np.testing.assert_equal(allowed.get_ydata(), [20, 20, nan, 20, 20])
    (kept,) = figure.axes[2].get_lines()
    np.testing.assert_equal(kept.get_ydata(), [1.0, 0.5, nan, nan, 0.0])
    (whole,) = figure.axes[1].get_lines()
    assert whole.get_ydata().tolist() == [0.5, 1.0, 0.5, 0.5, 0.5]
    tops = [area.get_paths()[0].vertices[:, 1].max() for area in figure.axes[1].collections]
    assert tops == [0.25, 0.5, 1.0]


def test_a_stream_that_goes_on_and_one_without_a_budget() -> None:
    figure = controller([progress(7, work=10, allowance=0, made=5, shed=0)])
    (work,) = figure.axes[0].get_lines()
    assert np.isnan(work.get_ydata()).all(), "what came before is not known"
    figure = controller([progress(n, work=n, allowance=n, made=n, shed=0) for n in range(MOST_BATCHES + 500)])
    assert figure.axes[0].get_title(loc="left") == "2,500 micro-batches\nthe last 2,000 drawn"
    assert [len(line.get_xdata()) for line in figure.axes[0].get_lines()] == [MOST_BATCHES] * 2
    assert figure.axes[0].get_lines()[0].get_ydata()[0] == 1, "the first that is drawn has its difference too"


def test_panels_of_a_user() -> None:
    from matplotlib.figure import Figure

    own = Figure()
    assert controller([progress(0, work=1, allowance=1, made=1, shed=0)], ax=own.subplots(3, 1)) is own
    with pytest.raises(acep.DataError, match="3 axes"):
        controller([progress(0, work=1, allowance=1, made=1, shed=0)], ax=own.subplots(2, 1))
    with pytest.raises(acep.DataError, match="do not rise"):
        controller([progress(1, work=1, allowance=1, made=1, shed=0)] * 2)


@needs_core
def test_the_progress_of_a_follower(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(4):
        rows = "".join(f"{20 * number + n},{'ab'[n % 2]}\n" for n in range(20))
        (tmp_path / "in" / f"{number}.csv").write_text(f"ts,type\n{rows}")
    seen: list[Progress] = []
    folders = {"state": tmp_path / "state", "into": tmp_path / "out"}
    query = acep.parse("PATTERN SEQ(a p, a q, b r) WHERE q.ts - p.ts > 2 AND r.ts - q.ts > 8 WITHIN 60")
    acep.follow(tmp_path / "in", query, **folders, max_files=1, once=True, tell=seen.append, budget=acep.Budget(work=3))
    figure = controller(seen)
    work, allowed = (line.get_ydata() for line in figure.axes[0].get_lines())
    assert (sum(work), sum(allowed)) == (seen[-1].work, seen[-1].allowance)
    assert seen[-1].shed > 0
    assert np.nanmin(figure.axes[2].get_lines()[0].get_ydata()) < 1


# A history ---------------------------------------------------------------------------------------


@needs_core
def test_cells_have_the_visits_and_the_chance_of_their_vectors(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    events = {"ts": list(range(3_000)), "type": rng.choice(list("abcx"), 3_000).tolist()}
    learned = acep.learn(events, acep.regex("abc", within=12))
    known = History.from_bytes(learned)
    vectors = known.visited()
    cells: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for vector, row in zip(vectors.tolist(), known.sums(vectors).tolist(), strict=True):
        parts = known.grid.parts(vector)
        cell = cells[int(parts.state), int(parts.remaining)]
        for at, name in enumerate(("visits", "reached", "unknown")):
            cell[at] += row[SUMS.index(name)]
    ax = history(learned)
    states = [int(label.get_text().split()[0]) for label in ax.get_yticklabels()]
    (image,) = ax.images
    shown = np.ma.filled(image.get_array(), np.nan)
    assert states == sorted({state for state, _ in cells})
    compared = 0
    for (state, remaining), (visits, reached, unknown) in cells.items():
        chance = shown[states.index(state), known.grid.windows - 1 - remaining]
        if visits - unknown > 0:
            assert chance == pytest.approx(reached / (visits - unknown))
            compared += 0 < chance < 1
    assert compared > 5
    assert len(ax.texts) == sum(visits > 0 for visits, _, _ in cells.values())
    path = tmp_path / "history.acep"
    path.write_bytes(learned)
    for given in (path, str(path), known):
        np.testing.assert_equal(np.ma.filled(history(given).images[0].get_array(), np.nan), shown)


@needs_core
def test_a_history_without_visits_and_one_that_is_none(tmp_path: Path) -> None:
    learned = acep.learn({"ts": [1], "type": ["x"]}, acep.regex("ab", within=3))
    assert history(learned).get_title(loc="left") == "the history has no visits"
    with pytest.raises(acep.SnapshotError):
        history(learned[:-4])
    with pytest.raises(acep.DataError, match=r"nowhere\.acep"):
        history(tmp_path / "nowhere.acep")

"""The figures of best effort, each on little data: what is measured is what is said, and all files are written."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("acep.native._native")

from acep.budget import Budget
from acep.budget.policies import POLICIES
from acep.learning.policies.history_policy import HistoryPolicy
from acep.sketches.match_map import MatchMap
from acep.sketches.neighbour_map import NeighbourMap
from acep.training.offline import Student, learn_offline
from experiments import streams
from experiments.overload import ablation, by_time, drift, generalise, overhead, proxy, sketched, sweeps
from experiments.overload.figure import FigurePoint, Spec, describe_estimate, make_figure, run_command
from experiments.overload.trial import Timed, Warm, make_warm, measure_exact, run, stream
from experiments.overload.workload import Overload
from experiments.overload.workloads import OVERLOADS
from experiments.results import RESULTS

pytestmark = pytest.mark.long

TIED = """PATTERN SEQ(A a, B b, C c)
WHERE skip_till_any_match(a, b, c) { [key] AND b.value > a.value AND c.value > a.value AND c.value < b.value }
WITHIN 400"""


@dataclass(frozen=True)
class Letters(Overload):
    """A generated stream."""

    rows: int = 10_000

    def events(self) -> pa.Table:
        """Of ten partitions."""
        return streams.letters(keys=10).slice(0, self.rows)


LETTERS = Letters("letters", "a test", "none", TIED)


def by_series(rows: list[FigurePoint], x: float) -> dict[str, FigurePoint]:
    return {row.series: row for row in rows if row.x == x}


def test_the_errors_allowed_are_those_of_the_point() -> None:
    rows = [row for row in sweeps.by_errors(LETTERS, 0) if row.series == "random"]
    points = [row.all_points for row in rows]
    assert [row.x for row in rows] == [0, 1, 2]
    assert points == sorted(points)
    assert points[0] < points[-1]


def test_the_window_is_that_of_the_point(data: Callable[[str], Path]) -> None:
    data("stock_min_bars")
    usual = OVERLOADS["bars-k0-30min"]
    assert sweeps.with_window(usual, 2).span == 2 * usual.span


def test_a_faster_stream_leaves_less_work_to_an_event() -> None:
    rows = [row for row in sweeps.by_rate(LETTERS, 0) if row.series == "newest-per-state"]
    assert [row.share * row.x for row in rows] == pytest.approx([1] * len(rows))
    assert rows[-1].points < rows[0].points


def test_each_variant_is_another_policy_and_all_parts_are_the_usual_ones() -> None:
    made = {name: vars(make()) for name, make in ablation.VARIANTS.items()}
    assert made[ablation.ALL_PARTS] == vars(HistoryPolicy())
    assert len({str(sorted(one.items())) for one in made.values()}) == len(made)
    rows = [
        FigurePoint("w", 0, name, 0.1, 0.1, *([0.0] * 3), points, points, *([0.0] * 2), 1, 1.0, 1, 1, 1)
        for name, points in zip(ablation.VARIANTS, (0.9, *[0.5] * 20), strict=False)
    ]
    assert "| no registers | -0.400 | -0.400 to -0.400 |" in ablation.differences(rows)


def test_a_frozen_policy_keeps_its_orders_and_a_warm_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acep.shedding.controller.LAST_EPOCH", 4_096)  # there are few events
    held = stream(Letters("letters", "a test", "none", TIED, rows=60_000))
    truth = measure_exact(held, "points", repeats=1)
    before = make_warm(held, truth.engine, POLICIES["history"])
    for maker, still in ((before, False), (generalise.freeze(before), True)):
        effort = Timed(maker(), 0, truth.rate(0.3, held.events))
        run(held, truth.engine, effort)
        shedding_table = [maker().begin(effort.context, 0), effort.shedding_table]
        assert ((shedding_table[0].level == shedding_table[1].level).all() and shedding_table[1].shadow == 0) == still


def test_the_sketch_has_the_bytes_that_it_is_given() -> None:
    held, policy = stream(LETTERS), sketched.Fine()
    learn_offline(held.plan, held.engine, held.train, Student(policy))
    for series, kind in ((sketched.NEIGHBOURS, NeighbourMap), (sketched.HASHED, MatchMap)):
        own = policy.with_memory(policy.memory(series, 2_000))
        warm = Warm(sketched.Fine(), own.learned())
        run(held, held.engine, Timed(warm, 0, 5.0))
        assert isinstance(warm.policy.sums, kind)
        assert 1_000 < warm.policy.sums.nbytes <= 2_000


def test_a_tenth_of_the_memory_finds_as_much_where_neighbours_share_a_cell() -> None:
    rows = list(sketched.measure_sketches(LETTERS, 0))
    assert all(row.nbytes <= row.x * rows[0].nbytes for row in rows)
    small = by_series(rows, 0.1)
    assert small[sketched.NEIGHBOURS].points >= rows[0].points - sketched.NEAR
    assert small[sketched.NEIGHBOURS].bundles >= rows[0].bundles - sketched.NEAR
    assert "| sketch of neighbours | 10% | 1 | 1 | 1 | 1 |" in sketched.count_near(rows)


def test_what_matters_changes_after_three_quarters_of_the_drifting_stream() -> None:
    events = drift.drifting_stream(40_000)
    tags = events["tag"].to_numpy()
    last = events["type"].combine_chunks().indices.to_numpy() == 2
    first, then = tags[:30_000][last[:30_000]], tags[30_000:][last[30_000:]]
    assert (first < drift.TAGS / 2).mean() > 0.9
    assert (then < drift.TAGS / 2).mean() < 0.1


def test_parts_of_the_test_add_up() -> None:
    held = stream(LETTERS)
    truth = measure_exact(held, "points", repeats=1)
    middle = int(held.test[0].ts[len(held.test[0]) // 2])
    halves = [truth.restrict(0, middle), truth.restrict(middle, 1 << 60)]
    assert sum(len(half.run.points) for half in halves) == len(truth.run.points)
    assert all(half.recall(half.run)[:2] == (1, 1) for half in halves)


def test_what_recovery_takes_is_in_the_work_and_what_it_adds_is_told() -> None:
    workload = Letters("letters", "a test", "none", TIED, rows=60_000)
    rows = list(proxy.measure_recovery(workload, 0))
    assert len(rows) == len(proxy.PARTS) * len(proxy.SHARES)
    assert all(row.work <= row.share for row in rows)
    assert all((row.recovered + row.unrecovered == 0) == (row.series == "no recovery") for row in rows)
    assert all(row.whole <= row.bundles for row in rows)
    told = {row.series: row for row in rows if row.x == 0.25}
    most, none = told["50% for recovery"], told["no recovery"]
    assert 0 < most.recovering <= 0.6
    assert most.whole * most.all_bundles >= most.recovered > 0 == none.recovering
    held = stream(workload)
    truth = proxy.run_recovery(held, held.engine)
    assert set(proxy.compare_runs(truth, truth).values()) == {1.0}


def test_an_ample_budget_has_the_same_result() -> None:
    rows = list(overhead.measure_costs(LETTERS, repeats=1))
    assert [row.policy for row in rows] == list(overhead.COMPARED)
    assert all(row.same and row.held_touches <= overhead.SHARE * row.touches for row in rows)
    assert "| letters |" in overhead.write_body(rows)
    assert overhead.draw_picture(rows).count("<polyline") == 2 * len(rows)


def few(workload: Overload, seed: int) -> Iterator[FigurePoint]:
    """Two points."""
    held = stream(workload, seed)
    truth = measure_exact(held, "points", repeats=1)
    yield from sweeps.measure_policies(workload, seed, {1.0: 0.5, 2.0: 0.25})
    assert truth.run.touches


def test_a_figure_is_written(tmp_path: Path, data: Callable[[str], Path]) -> None:
    data("sepsis")
    spec = Spec("few", "A few points", "Two of them.", ("labs-*",), few, "x", log=True)
    assert run_command(spec, ["labs-k1-28d", "--output", str(tmp_path)]) == 0
    with (tmp_path / "few.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(sweeps.COMPARED)
    page = (tmp_path / "few.md").read_text(encoding="utf-8")
    assert "## Recall of points: labs-k1-28d" in page
    assert f"| history | {float(rows[-2]['points']):.3f} |" in page
    assert (tmp_path / "few.svg").read_text(encoding="utf-8").startswith("<svg")
    assert (tmp_path / "raw/few.json").is_file()


def test_the_picture_has_a_line_for_each_series() -> None:
    rows = list(sweeps.measure_policies(LETTERS, 0, {1.0: 0.5, 2.0: 0.25}))
    told = make_figure(sweeps.SPECS["rate"], rows)
    assert told.picture.count("<polyline") == 2 * len(sweeps.COMPARED)


@pytest.mark.parametrize("since", ["the middle", "the first event"])
def test_history_finds_again_after_the_pattern_of_success_has_changed(
    monkeypatch: pytest.MonkeyPatch, since: str
) -> None:
    held = stream(drift.Drifting("drift", "a test", "none", drift.QUERY, rows=280_000), 0)
    if since == "the first event":  # what was learned before never held
        held = replace(held, test=held.test[len(held.test) // 2 :])
    truth = measure_exact(held, "points", repeats=1)
    maker = make_warm(held, truth.engine, POLICIES["history"])

    def late() -> float:
        """The recall of match points in the last quarter."""
        # A short stream: a part of the allowance less, and more of it passes until the change is noticed.
        found = run(held, truth.engine, Timed(maker(), 0, truth.rate(0.1, held.events), estimate=0.0))
        first, last = int(held.test[0].ts[0]), int(held.test[-1].ts[-1]) + 1
        quarter = last - (last - first) // 4, last
        return truth.restrict(*quarter).recall(found.restrict(*quarter))[0]

    adapted = late()
    monkeypatch.setattr("acep.learning.estimation.drift.FALL", 1e9)  # nothing is noticed
    unnoticed = late()
    assert adapted > 0.05 > 4 * unnoticed, (adapted, unnoticed)


def test_what_is_measured_is_what_a_user_gets_or_the_page_says_how_it_differs() -> None:
    held = stream(LETTERS)
    truth = measure_exact(held, "points", repeats=1)
    effort = Timed(POLICIES["newest"](), 0, truth.rate(0.3, held.events))
    assert effort.estimate == Budget().estimate > 0
    run(held, truth.engine, effort)
    assert effort.spent > 0
    told = [describe_estimate(0.0), describe_estimate(Budget().estimate)]
    pages = {page.stem: page.read_text(encoding="utf-8") for page in RESULTS.glob("*.md")}
    ours = {name: text for name, text in pages.items() if "python -m experiments.overload." in text}
    assert len(ours) >= 10
    assert all(sum(one in text for one in told) == 1 for text in ours.values())


def test_what_is_found_in_how_much_time() -> None:
    rows = list(by_time.measure_times(LETTERS, repeats=1))
    ways = list(dict.fromkeys(row.way for row in rows))
    assert ways == [by_time.SEARCH, by_time.HISTORY, *by_time.RULES, by_time.WINDOW]
    assert all(0 <= row.points <= 1 and row.time > 0 for row in rows)
    assert all(row.points == row.bundles == 1 for row in rows if row.way == by_time.SEARCH and row.share == 1.3)
    assert by_time.find_best(rows, 1e9, "points") == 1
    assert by_time.find_best(rows, 0, "points") is None
    assert "| letters |" in by_time.write_body(rows)
    assert by_time.draw_picture(rows).count("<polyline") == 2 * len(ways)

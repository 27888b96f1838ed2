"""The speed on Spark: the harness runs, checks what was found, and writes a page that its CSV alone makes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acep.spark.session import SIZES, UNBOUNDED
from experiments.results import RESULTS
from experiments.spark import running
from experiments.spark.__main__ import main
from experiments.spark.figures import Cell, cells, interval, read_cells
from experiments.spark.page import draw_picture, write_body, write_results
from experiments.spark.routes import ROUTES, Each, Route, choose_routes, explain_missing
from experiments.spark.running import Run, steady

pytestmark = pytest.mark.long

SMALL = ["--events", "3000", "--batches", "2", "--repeat", "1"]


def run(route: str, repetition: int, *took: float, rows: int = 1_000, **told: Any) -> Run:
    batches = tuple({"triggerExecution": ms, "addBatch": ms / 2, "walCommit": 3.0, "commitOffsets": 4.0} for ms in took)
    return Run(route, rows, repetition, batches, 10 * rows, 7, **told)


SLOW = [run("yardstick", 0, 10, 12, 14), run("yardstick", 1, 100, 120, 140)]
RUNS = [*SLOW, run("store-seq", 0, 20, 24, 28, state=2_000_000), run("store-seq", 1, 200, 240, 280, state=2_000_000)]


@pytest.mark.whole
def test_all_routes_run_and_find_what_one_process_finds(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.spark.__main__.WARM", (2, 100))
    names = "store-rise,state-rise,batch-rise"
    assert main([*SMALL, "--rows", "1_000", "--buckets", "2", "--routes", names, "--output", str(tmp_path)], spark) == 0
    said = capsys.readouterr().out
    found = {one.route: one for one in read_cells(tmp_path / "spark.csv")}
    left_out = {one.name for one in ROUTES.values() if explain_missing(one)}
    assert list(found) == [one.name for one in choose_routes(names.split(",")) if one.name not in left_out]
    for name in left_out & set(names.split(",")):
        assert f"left out: {name}: acep.spark.match has no keyword" in said
        assert f"Not measured: {name}: " in (tmp_path / "spark.md").read_text(encoding="utf-8")
    for one in found.values():
        assert one.events == (3_000 if ROUTES[one.route].static else 2_000)
        assert one.matches == (running.count_expected("rise", one.events) if one.route.endswith("-rise") else 0)
        assert 0 < one.ratio_low <= one.ratio <= one.ratio_high
        assert (one.runs, one.batches) == (1, 1)
        assert ROUTES[one.route].static or one.trigger_ms >= one.add_batch_ms > 0
    assert running.count_expected("rise", 2_000) > 0
    assert found["store-rise"].state_bytes > 0


def test_a_wrong_number_of_matches_stops_the_run(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "count_expected", lambda *_: 1)
    assert main([*SMALL, "--rows", "10", "--routes", "batch-seq", "--output", str(tmp_path)], spark) == 1
    said = capsys.readouterr().err
    assert said.startswith("python -m experiments.spark: batch-seq: ")
    assert "one process finds 1 in 3,000 events" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--routes", "fast"], "no route 'fast': there are pass, identity"),
        (["--rows", "0"], "argument --rows: '0' is no list of positive numbers"),
        (["--rows", "10,many"], "argument --rows: '10,many' is no list of positive numbers"),
        (["--repeat", "0"], "argument --repeat: invalid positive number value: '0'"),
        (["--batches", "1"], "argument --batches: the first micro-batch does not count"),
        (["--speed", "9"], "unrecognized arguments: --speed 9"),
    ],
)
def test_wrong_options_are_refused_in_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(f"python -m experiments.spark: {said}")
    assert told.count("\n") == 1


def test_routes_are_named_by_their_beginnings(capsys: pytest.CaptureFixture[str]) -> None:
    assert [one.name for one in choose_routes(["state"])] == ["yardstick", "state-seq", "state-rise"]
    assert [one.name for one in choose_routes(["batch-seq"])] == ["batch-yardstick", "batch-seq"]
    assert choose_routes([]) == list(ROUTES.values())
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.count("\n") == len(ROUTES)


@pytest.mark.parametrize("static", [False, True])
def test_plain_routes_run_with_the_bound_that_spark_itself_has(spark: Any, tmp_path: Path, static: bool) -> None:
    running.write_events(running.events(30), tmp_path / "events", 10, end=False)
    seen: dict[bool, str] = {}

    def noted(plain: bool, found: Any, _: Any) -> Any:
        seen[plain] = found.sparkSession.conf.get(SIZES)
        return found

    def each(plain: bool, *_: Any) -> Each:
        return partial(noted, plain)

    before = spark.conf.get(SIZES)
    for plain in (False, True):
        route = Route("x", "", partial(noted, plain), plain=plain, each=partial(each, plain))
        if static:
            running.run_static(spark, route, tmp_path / "events", 30, 1, partitions=2)
        else:
            running.run_stream(spark, route, tmp_path / "events", 10, 3, 0, partitions=2)
    assert seen[False] == UNBOUNDED
    assert seen[True] != UNBOUNDED
    assert spark.conf.get(SIZES) == before


def test_a_ratio_is_of_one_repetition() -> None:
    one = next(cell for cell in cells(RUNS) if cell.route == "store-seq")
    assert (one.ratio, one.runs, one.batches) == (0.5, 2, 3)  # though the machine was ten times slower in the second
    assert 0.35 < one.ratio_low < 0.5 < one.ratio_high < 0.71
    assert one.more_ms == (12 + 120) / 2
    assert (one.trigger_ms, one.log_ms, one.state_bytes) == (114, 7, 2_000_000)
    assert one.events_per_second == round(1_000 / 0.114)
    alone = [run("store-seq", 2, 1.0), *SLOW]
    assert [cell.route for cell in cells(alone)] == ["yardstick"]  # there is nothing to compare it with


def test_an_interval_is_wider_where_repetitions_differ() -> None:
    def width(*ratios: float) -> float:
        times = [(np.array([100.0] * 5), np.array([100.0 * ratio] * 5)) for ratio in ratios]
        _, low, high = interval(times, lambda mine, theirs: theirs / mine)
        return high - low

    assert width(0.8, 0.8, 0.8) == 0
    assert 0.05 < width(0.75, 0.8, 0.85) < width(0.6, 0.8, 1.0)


def test_the_first_micro_batches_do_not_count() -> None:
    assert [list(steady(number)) for number in (2, 8)] == [[1], [2, 3, 4, 5, 6, 7]]
    events = running.events(50)
    assert running.events(20).equals(events.slice(0, 20))


def test_the_page_is_made_from_its_csv(tmp_path: Path) -> None:
    static = [
        run("batch-yardstick", 0, 500, rows=9_000),
        replace(run("batch-rise", 0, 400, rows=9_000), durations=({"triggerExecution": 400.0},)),
    ]
    page = write_results(tmp_path, cells([*RUNS, *static]), {"cores": 2}, ["state-seq: no keyword"])
    text = page.read_text(encoding="utf-8")
    found = read_cells(tmp_path / "spark.csv")
    assert text.endswith(f"\n\n{write_body(found)}\n")
    assert (tmp_path / "spark.svg").read_text(encoding="utf-8") == draw_picture(found)
    assert draw_picture(found).count("<polyline") == 3
    for line in (
        "Not measured: state-seq: no keyword.",
        "| store-seq | 1,000 | 10,000 | 7 | 2 MB |",
        "| batch-rise | acep over a DataFrame | 9,000 | 1.25 (one run) | 22.5 k | 0.40 | 1 |",
        '| store-seq | acep, state in Spark\'s own store (`state="spark"`) | 0.50 (0.',
        "| yardstick | shuffle by key, then `mapInArrow` identity | 1 |",
        "| store-seq | 1,000 | 114 | 57 | 0 | 7 | 0 | 6 |",
    ):
        assert line in text


@pytest.mark.parametrize(("route", "lines"), [("yardstick", 1), ("batch-yardstick", 0)])
def test_one_route_alone_makes_a_page(tmp_path: Path, route: str, lines: int) -> None:
    text = write_results(tmp_path, cells([run(route, 0, 10.0)]), {}).read_text(encoding="utf-8")
    assert ("(spark.svg)" in text) == bool(lines)
    assert (tmp_path / "spark.svg").read_text(encoding="utf-8").count("<polyline") == lines


@pytest.mark.skipif(not (RESULTS / "spark.csv").is_file(), reason="`make bench-spark` writes it")
def test_the_page_of_results_is_made_from_its_csv() -> None:
    found: list[Cell] = read_cells(RESULTS / "spark.csv")
    assert write_body(found) in (RESULTS / "spark.md").read_text(encoding="utf-8")
    assert (RESULTS / "spark.svg").read_text(encoding="utf-8") == draw_picture(found)

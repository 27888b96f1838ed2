"""Benchmarks measure what they say, and pages say what was measured."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from experiments import bench, profile
from experiments.measure import Measured, measure
from experiments.peers import __main__ as peers
from experiments.peers.cases import CASES
from experiments.peers.files import write_events
from experiments.peers.java import ROOT, Outcome
from experiments.workload import run
from experiments.workloads import WORKLOADS, choose_workloads

pytestmark = pytest.mark.long

OURS = Measured(
    "w2-next", "reference", rows=100, of=200, runs=2, seconds=1.0, cpu=0.5, matches=7, expected=7, touches=50
)


def test_a_benchmark_is_measured_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["w1-contiguity", "--engine", "reference", "--engine", "backtrack", "--scale", "0.003"]
    assert bench.main([*arguments, "--output", str(tmp_path)]) == 0
    held = json.loads((tmp_path / "raw/bench.json").read_text())
    assert [(one["name"], one["engine"]) for one in held["results"]] == [
        ("w1-contiguity", "reference"),
        ("w1-contiguity", "backtrack"),
    ]
    for one in held["results"]:
        assert one["error"] is None
        assert one["rows"] == 3_000
        assert one["cpu"] > 0
        assert one["touches"] > one["rows"]
    assert held["machine"]["numpy"] == np.__version__
    page = (tmp_path / "bench.md").read_text()
    assert "3,000 of 1,000,000" in page
    assert "checked" in page
    assert "w1-contiguity" in capsys.readouterr().out


def test_what_is_measured_anew_replaces_what_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "measure_workload", lambda workload, *_: replace(OURS, name=workload.name))
    assert bench.main(["w2-next", "w1-next", "--output", str(tmp_path)]) == 0
    monkeypatch.setattr(bench, "measure_workload", lambda workload, *_: replace(OURS, name=workload.name, rows=99))
    assert bench.main(["w1-next", "--engine", "reference", "--output", str(tmp_path)]) == 0

    def rows() -> list[tuple[str, int]]:
        return [(one["name"], one["rows"]) for one in json.loads((tmp_path / "raw/bench.json").read_text())["results"]]

    assert rows() == [("w1-next", 99), ("w2-next", 100)]
    monkeypatch.setattr(bench, "describe_machine", lambda: {"date": "another"})
    assert bench.main(["w1-next", "--output", str(tmp_path)]) == 0
    assert rows() == [("w1-next", 99)]


def test_a_wrong_number_of_matches_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "measure_workload", lambda *_: replace(OURS, expected=8))
    assert bench.main(["w2-next", "--output", str(tmp_path)]) == 1
    assert "not 8" in (tmp_path / "bench.md").read_text()


def test_a_row_tells_rates_of_processor_time() -> None:
    told = bench.row(OURS)
    assert told[2:6] == ("100 of 200", "200", "7", "14")
    assert told[8] == "10 M"  # nanoseconds a touch


def test_what_cannot_be_measured_says_why() -> None:
    none = measure(replace(WORKLOADS["w2-next"], events=_missing), "reference")
    assert none.error is not None
    assert "no stream" in none.error
    wrong = measure(WORKLOADS["w2-next"], "backtrack")
    assert wrong.error is not None
    assert "w2-next" in wrong.error


def test_limits_make_a_prefix() -> None:
    short = measure(WORKLOADS["w2-next"], "reference", limit=0.001)
    assert (short.rows, short.of) == (2_000, 200_000)
    assert short.matches == short.expected == run(WORKLOADS["w2-next"], _first(2_000), "reference").matches


def test_names_and_groups() -> None:
    assert [one.name for one in choose_workloads(["w1-next"])] == ["w1-next"]
    assert {one.group for one in choose_workloads(["w2", "growth-*"])} == {"w2", "growth"}
    with pytest.raises(ValueError, match="no workload 'w9'"):
        choose_workloads(["w9"])


def test_peers_are_judged_by_what_they_found() -> None:
    case = next(one for one in CASES if one.workload == "w2-next")
    outcome = Outcome(rows=100, matches=7, seconds=5.0, cpu=5.0, runs=1)
    page = peers.write_body([OURS], [peers.Compared(case, outcome, count=True, bindings=True)])
    assert "10 times" in page
    assert "count, bindings" in page
    wrong = peers.write_body([OURS], [peers.Compared(case, outcome, count=False, bindings=None)])
    assert "count differs" in wrong
    assert "times" not in wrong
    other = replace(case, meaning="differs: in a test")
    assert "times" not in peers.write_body([OURS], [peers.Compared(other, outcome, count=None, bindings=None)])


def test_bindings_are_compared() -> None:
    stream = pa.table({"ts": [0, 1, 2, 3], "type": ["A", "B", "C", "C"], "key": [1, 1, 1, 1]})
    workload = WORKLOADS["w2-any"]
    assert peers.same_bindings(["a=0 b=1 c=2", "c=3 b=1 a=0"], stream, workload)
    assert not peers.same_bindings(["a=0 b=1 c=2"], stream, workload)
    assert not peers.same_bindings(["a=0 b=1 c=2", "a=0 b=1 c=2", "a=0 b=1 c=3"], stream, workload)
    assert not peers.same_bindings(["a=0 b=2 c=1", "a=0 b=1 c=3"], stream, workload)


def test_events_as_peers_read_them(tmp_path: Path) -> None:
    write_events(pa.table({"ts": [5, 6], "type": ["B", "A"], "key": [9, 9]}), tmp_path / "events")
    held = np.fromfile(tmp_path / "events", "<i8").tolist()
    assert held == [2, *(5, 6), *(1, 0), *(9, 9), *(0, 0), *(0, 0), *(0, 1)]


@pytest.mark.skipif(
    not (ROOT / ".venv-peers").is_dir() or shutil.which("javac") is None, reason="`make bench-peers` installs the peers"
)
def test_peers_run(tmp_path: Path) -> None:
    assert peers.main(["w2-next", "--limit", "0.2", "--engine", "reference", "--output", str(tmp_path)]) == 0
    page = (tmp_path / "peers.md").read_text()
    assert page.count("count, bindings") == 1
    assert "differs" not in page


def test_profiles_tell_shares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert profile.main(["w2-next", "--scale", "0.1", "--output", str(tmp_path)]) == 0
    (one,) = json.loads((tmp_path / "raw/profiles.json").read_text())["results"]
    assert sum(one["shares"].values()) == pytest.approx(1)
    assert one["matches"] == WORKLOADS["w2-next"].count_expected(_first(20_000))
    assert 0 < one["shares"]["loading"] < 1
    assert "w2-next" in capsys.readouterr().out


def _missing() -> pa.Table:
    raise FileNotFoundError("gone.parquet")


def _first(rows: int) -> pa.Table:
    return WORKLOADS["w2-next"].events().slice(0, rows)

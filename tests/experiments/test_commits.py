"""Exact runs of two commits: both are asked for the same, differences are seen, and all files are written."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import acep
from experiments import streams
from experiments.commits import __main__ as commits
from experiments.commits import compare, page
from experiments.commits.build import ROOT, build_commit, resolve_commit
from experiments.commits.compare import OUTPUTS, Case, Compared, Worker, choose_cases, compare_case
from experiments.commits.worker import digest, measure, parse_query
from experiments.overload.workloads import OVERLOADS
from experiments.workloads import WORKLOADS

pytestmark = pytest.mark.long

QUERY = "PATTERN SEQ(A a, B b) WHERE [key] AND b.value > a.value WITHIN 300"
CASE = Case("letters", "a test", lambda: streams.letters().slice(0, 3_000), ({"text": QUERY},))
COUNTS = {"work": 2_000, "partial_matches": 500, "other_work": 9_000, "other_partial_matches": 3_000}
ROW = Compared("some", "points", 1_000, runs=3, cpu=0.001, other_cpu=0.008, spread=0.25, size=50, **COUNTS)
FOREIGN = """import sys, json
sys.stdin.readline()
for line in sys.stdin:
    print(json.dumps({}), flush=True)
"""
"""A Python in whose place the script answers each question with the same."""


def foreign_python(folder: Path, answer: str, *, before: str = "") -> Path:
    """Write an executable that behaves as a worker of another commit, whatever it is given."""
    file = folder / "python"
    file.write_text(f"#!{sys.executable} -I\n{before}\n{FOREIGN.format(answer)}")
    file.chmod(0o755)
    return file


@pytest.fixture(autouse=True)
def few_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "ENOUGH", 0.0)


def test_both_commits_find_the_same_and_all_files_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["heavy-names-*", "letters-sepsis-*", "w2-next"]
    options = [
        "--python",
        sys.executable,
        "--commit",
        "HEAD",
        "--scale",
        "0.02",
        "--repeats",
        "1",
        "--output",
        str(tmp_path),
    ]
    assert commits.main([*names, *options]) == 0
    with (tmp_path / "exact.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    workloads = ["heavy-names-k0-40s", "letters-sepsis-k1-10d", "w2-next"]
    assert [(row["workload"], row["output"]) for row in rows] == [(name, out) for name in workloads for out in OUTPUTS]
    assert all(row["same"] == "True" and float(row["cpu"]) > 0 for row in rows)
    assert all(
        row["work"] == row["other_work"] and row["partial_matches"] == row["other_partial_matches"] for row in rows
    )
    text = (tmp_path / "exact.md").read_text(encoding="utf-8")
    assert "![Exact runs](exact.svg)" in text
    assert "differs" not in text
    assert "Without an answer" not in text
    assert (tmp_path / "exact.svg").read_text(encoding="utf-8").count("<polyline") == 2 * len(OUTPUTS)
    assert "points" in capsys.readouterr().out


@pytest.mark.parametrize("output", [*OUTPUTS, "matches"])
def test_a_worker_answers_what_the_library_does(output: str) -> None:
    events = CASE.events()
    (row,) = compare_case(CASE, sys.executable, [output], repeats=2)
    answer = acep.match(events, QUERY, output=output)
    assert (row.error, row.same, row.events) == (None, True, 3_000)
    assert row.runs >= 2
    assert row.size == (int(answer) if output == "count" else len(answer)) > 10
    assert (row.work, row.partial_matches) == (answer.report.work, answer.report.made)


def test_results_that_differ_have_other_digests() -> None:
    events = CASE.events()
    queries = [QUERY, QUERY.replace("300", "20"), QUERY.replace("b.value > a.value", "b.value < a.value")]
    for output in (*OUTPUTS, "matches"):
        found = [measure(events, [parse_query({"text": query})], output)["digest"] for query in queries]
        assert len(set(found)) == 3
    (points,) = [acep.match(events, QUERY, output="points")]
    assert digest([points], "points") != digest([points[::-1]], "points") != digest([points[1:]], "points")


def test_queries_are_those_of_the_workloads(data: Callable[[str], Path]) -> None:
    data("sepsis")
    (case,) = choose_cases(["letters-sepsis-*"])
    (query,) = map(parse_query, case.queries)
    assert query == OVERLOADS[case.name].query
    (missing,) = choose_cases(["heavy-lookups-k1-*"])
    assert parse_query(missing.queries[0]) == OVERLOADS[missing.name].query
    if any(name.startswith("pseq-") for name in WORKLOADS):  # those of match windows need their streams
        assert len(choose_cases(["pseq-*"])[0].queries) > 1


def test_without_names_all_workloads_of_best_effort_are_measured() -> None:
    names = [case.name for case in choose_cases([])]
    assert sum(name.startswith("heavy-") for name in names) >= 8
    assert {"w2-next", "v-shape", "bars-k0-30min", "letters-jobs-k1-20s"} < set(names)
    with pytest.raises(ValueError, match="no workload 'nonsense'"):
        choose_cases(["nonsense"])


@pytest.mark.parametrize(
    ("answer", "before", "complaint"),
    [
        (
            '{"cpu": 1.0, "size": 1, "digest": "0", "work": 1, "partial_matches": 1}',
            "",
            "the commits found different things",
        ),
        ('{"error": "no such query"}', "", "no such query"),
        ("{}", "import os; os.kill(os.getpid(), 9)", "ended with code -9"),
        ("{}", "raise SystemExit('it has no acep')", "it has no acep"),
        ("{}", "import time; time.sleep(60)", "took more than 1 s"),
    ],
)
def test_a_commit_that_differs_fails_or_hangs_is_said(
    answer: str, before: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = foreign_python(tmp_path, answer, before=before)
    options = ["--commit", "HEAD", "--outputs", "count", "--repeats", "1", "--scale", "0.01", "--limit"]
    limit = "1" if "sleep" in before else "60"
    assert commits.main(["w2-next", "--python", str(python), *options, limit, "--output", str(tmp_path)]) == 1
    assert complaint in capsys.readouterr().err
    assert complaint in (tmp_path / "exact.md").read_text(encoding="utf-8")


def test_a_missing_stream_is_a_row() -> None:
    def missing() -> pa.Table:
        raise FileNotFoundError("gone.parquet")

    rows = list(compare_case(replace(CASE, events=missing), sys.executable, OUTPUTS, repeats=1))
    assert [(row.output, row.error) for row in rows] == [(output, "gone.parquet") for output in OUTPUTS]
    assert len(page.failures(rows)) == len(OUTPUTS)
    assert page.summarise(rows) == []
    assert page.write_body(rows)


def test_a_summary_has_means_and_the_least() -> None:
    slow, light = replace(ROW, workload="slow", cpu=0.016), replace(ROW, workload="light", events=100_000, cpu=0.004)
    assert page.summarise([ROW, slow, light]) == [
        ("points", "3", "2.00", "0.50", "slow", "1"),
        ("points, heavy", "2", "2.00", "0.50", "slow", "1"),
    ]
    text = page.write_body([ROW, slow, light])
    assert "| some | heavy, 8.00 (8) | 25% |" in text
    assert "| light | 2.00 (8) | 25% |" in text
    assert "| some | 1,000 | 8 | 1 | 9 | 2 | 3 | 0.5 | 0.05 |" in text


def test_short_runs_are_repeated_and_turns_alternate(monkeypatch: pytest.MonkeyPatch) -> None:
    order = []

    class Fast(Worker):
        def __init__(self, name: str) -> None:
            self.name = name

        def measure(self, *_: object) -> dict[str, float]:
            order.append(self.name)
            return {"cpu": 0.1}

    monkeypatch.setattr(compare, "ENOUGH", 1.0)
    runs = compare._run_by_turns([Fast("ours"), Fast("other")], "count", 3, 9)
    assert len(runs) == 5
    assert order[:4] == ["ours", "other", "other", "ours"]


needs_history = pytest.mark.skipif(
    subprocess.run(["git", "-C", str(ROOT), "rev-parse"], capture_output=True, check=False).returncode != 0,
    reason="this is no git repository",
)


@needs_history
def test_another_commit_is_built_beside_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACEP_REQUIRE_NATIVE", "0")
    python = build_commit("HEAD", tmp_path, options=("-C", "wheel.cmake=false"))
    script = "import acep; print(acep.__file__); print(len(acep.match({'ts': [1], 'type': ['a']}, 'PATTERN SEQ(a x)')))"
    done = subprocess.run([str(python), "-I", "-c", script], capture_output=True, text=True, check=True)
    file, n_matches = done.stdout.split()
    assert Path(file).is_relative_to(tmp_path)
    assert n_matches == "1"
    written = python.stat().st_mtime_ns
    assert build_commit(resolve_commit("HEAD"), tmp_path) == python
    assert python.stat().st_mtime_ns == written


@needs_history
def test_a_commit_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        commits.main(["w2-next", "--commit", "0123456789abcdef"])
    assert "there is no commit '0123456789abcdef'" in capsys.readouterr().err


def test_a_python_goes_with_the_commit_that_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        commits.main(["w2-next", "--python", sys.executable])
    assert "--python goes with --commit" in capsys.readouterr().err

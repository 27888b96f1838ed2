"""Results that are kept: pages, pictures and compact tables, and no raw rows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from experiments.ages import digest_sources, note_age, read_origin
from experiments.machine import described
from experiments.results import RESULTS, compact, update_ages, write, write_page

PAGES = sorted(RESULTS.glob("*.md"))
ORIGIN = {"date": "2020-02-03", "sources": "12ab"}
COMMAND = "`python -m experiments.results` says on each page how old it is"


def test_what_is_kept_is_small() -> None:
    kept = [path for path in RESULTS.iterdir() if path.is_file()]
    assert {path.suffix for path in kept} == {".csv", ".md", ".svg"}
    assert sum(path.stat().st_size for path in kept) < 1_050_000


def test_a_page_comes_with_a_compact_table(tmp_path: Path) -> None:
    rows = [
        {"name": name, "seed": seed, "x": x, "points": 0.123456789 + seed, "sizes": {10: 2.5}}
        for name in "ab" for seed in range(3) for x in (1.0, 2.0)
    ]  # fmt: skip
    page = write(tmp_path, "some", title="Some", words="Of them.", machine={"cores": 2}, body="", rows=rows)
    assert page.read_text().startswith("# Some\n")
    with (tmp_path / "some.csv").open(encoding="utf-8") as file:
        kept = list(csv.DictReader(file))
    assert [(row["name"], row["x"], row["points"], row["sizes.10"]) for row in kept] == [
        (name, x, "1.123", "2.5") for name in "ab" for x in ("1.0", "2.0")
    ]
    assert (tmp_path / "raw/some.json").is_file()


def test_rows_without_seeds_are_all_kept() -> None:
    assert compact([{"name": "a", "time": 1}, {"name": "a", "time": 3}]) == [
        {"name": "a", "time": 1},
        {"name": "a", "time": 3},
    ]


@pytest.fixture(scope="module")
def sources() -> str:
    return digest_sources()


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_page_says_whether_it_is_older_than_the_sources(page: Path, sources: str) -> None:
    text = page.read_text(encoding="utf-8")
    (machine_line,) = [line for line in text.splitlines() if line.startswith("Machine: ")]
    is_up_to_date = f", sources {sources}" in machine_line
    assert ("older than the sources.**" in text.split("\n\n")[1].lower()) != is_up_to_date, COMMAND
    assert note_age(text, sources) == text, COMMAND


def test_a_page_is_older_as_soon_as_the_sources_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = "experiments.results.digest_sources"
    monkeypatch.setattr(digest, lambda: ORIGIN["sources"])
    page = write_page(tmp_path, "some", title="Some", words="Of them.", machine=ORIGIN, body="A body.")
    fresh = "# Some\n\nOf them.\n\nMachine: date 2020-02-03, sources 12ab.\n\nA body.\n"
    assert page.read_text(encoding="utf-8") == fresh
    assert update_ages(tmp_path) == []
    monkeypatch.setattr(digest, lambda: "34cd")
    assert update_ages(tmp_path) == [page]
    older = page.read_text(encoding="utf-8")
    assert older.startswith("# Some\n\n**Older than the sources.** Measured on 2020-02-03. ")
    assert older.endswith(fresh.removeprefix("# Some\n\n"))
    assert update_ages(tmp_path) == []
    assert write_page(tmp_path, "some", title="Some", words="Of them.", machine=ORIGIN, body="A body.") == page
    assert page.read_text(encoding="utf-8") == older
    monkeypatch.setattr(digest, lambda: ORIGIN["sources"])
    assert update_ages(tmp_path) == [page]
    assert page.read_text(encoding="utf-8") == fresh


def test_a_page_that_does_not_name_its_sources_may_be_older() -> None:
    page = "# Some\n\nOf them.\n\nMachine: cores 2, date 2020-02-03, {}pyspark 4.\n"
    aged = note_age(page.format(""), "12ab")
    assert aged.startswith("# Some\n\n**Perhaps older than the sources.** Measured on 2020-02-03, ")
    assert note_age(aged, "12ab") == aged
    measured_again = page.format("sources 12ab, ")
    assert note_age(aged.replace("pyspark", "sources 12ab, pyspark"), "12ab") == measured_again


def test_a_page_without_a_machine_has_no_age() -> None:
    assert note_age("# Some\n\nOf them.\n", "12ab") == "# Some\n\nOf them.\n"


def test_a_process_names_the_sources_that_it_began_with(monkeypatch: pytest.MonkeyPatch, sources: str) -> None:
    assert len(described()["sources"]) == len(sources) > 8
    monkeypatch.setattr("experiments.machine.SOURCES", "12ab")
    assert described()["sources"] == "12ab"


def test_the_digest_is_that_of_sources_alone(tmp_path: Path) -> None:
    def write_file(name: str, text: str) -> str:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return digest_sources(tmp_path)

    names = ("acep/native/src/nodes/a.cpp", "acep/native/src/CMakeLists.txt", "learning/a.py", "sketches/b.py")
    digests = [write_file(name, text) for name in names for text in ("", "changed")]
    assert len(set(digests)) == len(digests)
    for name in ("learning/README.md", "learning/__pycache__/a.pyc", "docs/a.py"):
        assert write_file(name, "changed") == digests[-1]


def test_a_page_with_rows_of_other_sources_is_as_old_as_these(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("acep.native._native")
    from experiments.overload import recall

    def rows(workload: Any, policies: Iterable[str], *_: Any) -> Iterator[recall.Row]:
        for policy, question, share in product(policies, ("points", "matches"), recall.SHARES):
            recalls = dict.fromkeys(("points", "bundles", "matches"), share)
            counts = dict.fromkeys(("exact_touches", "all_points", "all_bundles", "all_matches"), 9)
            times = dict.fromkeys(("wall", "learning", "cpu", "exact_cpu"), 1.0)
            yield recall.Row(
                workload.name, 0, question, "nodes", policy, share=share, work=share, **recalls, **counts, **times
            )

    def measure(machine: dict[str, Any], *policies: str) -> str:
        monkeypatch.setattr("experiments.overload.figure.described", lambda: machine)
        assert recall.main(["labs-k1-28d", "--output", str(tmp_path), "--policies", *policies]) == 0
        return (tmp_path / "recall.md").read_text(encoding="utf-8")

    today = {"date": "2020-02-05", "sources": "34cd"}
    monkeypatch.setattr(recall, "measured", rows)
    monkeypatch.setattr("experiments.results.digest_sources", lambda: today["sources"])
    measure(ORIGIN, "random")
    assert "**Older than the sources.** Measured on 2020-02-03." in measure(today, "history")
    page = measure(today, "random", "history")
    assert "Machine: date 2020-02-05, sources 34cd." in page
    assert "older than the sources" not in page.lower()


def test_the_origin_of_a_page_is_read_from_it(tmp_path: Path) -> None:
    page = write_page(tmp_path, "some", title="Some", words="Of them.", machine=ORIGIN | {"pyspark": 4}, body="")
    assert read_origin(page) == ORIGIN
    page = write_page(tmp_path, "some", title="Some", words="Of them.", machine={"date": "2020-02-03"}, body="")
    assert read_origin(page) == {"date": "2020-02-03", "sources": None}
    assert read_origin(tmp_path / "none.md") == {"sources": None}

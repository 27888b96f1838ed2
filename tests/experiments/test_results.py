"""Results that are kept: pages, pictures and compact tables, and no raw rows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from experiments.ages import note_age, read_origin
from experiments.machine import describe_machine
from experiments.measured_code import PAGES as MEASURED
from experiments.measured_code import Sources, digest_code, digest_files, measured_files, read_sources
from experiments.results import RESULTS, compact, update_ages, write, write_page

PAGES = sorted(RESULTS.glob("*.md"))
UNMEASURED = {"exact"}  # pages that no run has written yet: who writes one removes it here
ORIGIN = {"date": "2020-02-03", "sources": "12ab"}
COMMAND = "`python -m experiments.results` says on each page how old it is"


def test_what_is_kept_is_small() -> None:
    kept = [path for path in RESULTS.iterdir() if path.is_file()]
    assert {path.suffix for path in kept} == {".csv", ".md", ".svg"}
    assert sum(path.stat().st_size for path in kept) < 1_120_000


def test_a_page_comes_with_a_compact_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for digest in ("digest_at_start", "digest_code"):
        monkeypatch.setattr(f"experiments.results.{digest}", lambda *_: ORIGIN["sources"])
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
def sources() -> Sources:
    return read_sources()


@pytest.fixture(scope="module")
def digests(sources: Sources) -> dict[str, str]:
    return {page: digest_code(page, sources) for page in MEASURED}


@pytest.mark.long
def test_each_page_says_what_it_measures(sources: Sources) -> None:
    assert [page.stem for page in PAGES] == sorted(MEASURED.keys() - UNMEASURED)
    for page, parts in MEASURED.items():
        files = [part if part.endswith("/") else part.replace(".", "/") + ".py" for part in parts]
        assert all(any(name.startswith(file) for name in measured_files(page, sources)) for file in files), page


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_page_says_whether_it_is_older_than_what_it_measures(page: Path, digests: dict[str, str]) -> None:
    text = page.read_text(encoding="utf-8")
    (machine_line,) = [line for line in text.splitlines() if line.startswith("Machine: ")]
    digest = digests[page.stem]
    is_up_to_date = f", sources {digest}" in machine_line
    assert ("older than the sources.**" in text.split("\n\n")[1].lower()) != is_up_to_date, COMMAND
    assert note_age(text, digest) == text, COMMAND


def test_a_page_is_older_as_soon_as_the_sources_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = "experiments.results.digest_code"
    monkeypatch.setattr(digest, lambda *_: ORIGIN["sources"])
    page = write_page(tmp_path, "some", title="Some", words="Of them.", machine=ORIGIN, body="A body.")
    fresh = "# Some\n\nOf them.\n\nMachine: date 2020-02-03, sources 12ab.\n\nA body.\n"
    assert page.read_text(encoding="utf-8") == fresh
    assert update_ages(tmp_path) == []
    monkeypatch.setattr(digest, lambda *_: "34cd")
    assert update_ages(tmp_path) == [page]
    older = page.read_text(encoding="utf-8")
    assert older.startswith("# Some\n\n**Older than the sources.** Measured on 2020-02-03. ")
    assert older.endswith(fresh.removeprefix("# Some\n\n"))
    assert update_ages(tmp_path) == []
    assert write_page(tmp_path, "some", title="Some", words="Of them.", machine=ORIGIN, body="A body.") == page
    assert page.read_text(encoding="utf-8") == older
    monkeypatch.setattr(digest, lambda *_: ORIGIN["sources"])
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


def test_a_page_names_the_code_with_which_its_process_began(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sources: Sources
) -> None:
    assert describe_machine()["sources"] == digest_files(sources)
    as_begun = {name: b"" if name == "acep/spark/matching.py" else text for name, text in sources.items()}
    monkeypatch.setattr("experiments.ages.AS_BEGUN", as_begun)
    for name, is_older in (("keys", True), ("bench", False)):
        page = write_page(tmp_path, name, title="Some", words="Of them.", machine=describe_machine(), body="")
        text = page.read_text(encoding="utf-8")
        assert f", sources {digest_code(name, as_begun)}." in text
        assert ("**Older than the sources.**" in text) == is_older


SPARK_PAGES = ("first_batch", "keys", "long_run", "shedding", "spark")
EVERY = tuple(MEASURED)


@pytest.mark.parametrize(
    ("file", "pages"),
    [
        ("acep/native/src/nodes/nodes.cpp", EVERY),
        ("acep/native/src/CMakeLists.txt", EVERY),
        ("acep/matching/api.py", EVERY),
        ("acep/spark/matching.py", SPARK_PAGES),
        ("acep/following/follow.py", ("device",)),
        ("acep/plots/canvas.py", ()),
        ("experiments/charts.py", ()),
        ("experiments/results.py", ()),
        ("experiments/peers/java/common/Event.java", ("peers", "row_patterns")),
        ("experiments/disorder.py", ("disorder",)),
        ("experiments/commits/worker.py", ("exact",)),
    ],
)
def test_which_pages_a_change_makes_older(
    file: str, pages: tuple[str, ...], sources: Sources, digests: dict[str, str]
) -> None:
    changed = {**sources, file: sources[file] + b"\nx = 2"}
    assert [page for page in sorted(MEASURED) if digest_code(page, changed) != digests[page]] == sorted(pages)


@pytest.mark.parametrize(
    ("file", "before", "after", "is_older"),
    [
        ("a.py", "x = 1", "x = 2", True),
        ("a.py", "x = 1", "x = 1  # one", False),
        ("a.py", "x = 1", "\n# one\n\nx = 1\n", False),
        ("a.py", "x = '#1'", "x = '#2'", True),
        ("a.py", "def f():\n  'Do it.'\n  x = 1", 'def f():\n  """Do it.\n\n  At once."""\n  x = 1', False),
        ("a.py", "x = ['one']", "x = ['two']", True),
        ("a.cpp", "int x = 1;", "int x = 1;  // one", False),
        ("a.cpp", "int x = 1;", "/* one\n two */\nint x = 1;", False),
        ("a.cpp", "int x = 1'000'000;  // one", "int x = 1'000'000;  // two", False),
        ("a.cpp", 'auto x = "// 1";', 'auto x = "// 2";', True),
        ("a.hpp", "int x = 1;", "int x = 2;", True),
        ("a.txt", "# one", "# two", True),
    ],
)
def test_comments_and_docstrings_make_no_page_older(file: str, before: str, after: str, is_older: bool) -> None:
    first, second = ({f"acep/native/src/{file}": text.encode()} for text in (before, after))
    assert (digest_code("any", first) != digest_code("any", second)) == is_older


def test_imports_lead_to_what_is_measured() -> None:
    sources = {
        "experiments/disorder.py": "import acep\ndef f():\n  from acep.budget import pace\n  acep.tune()",
        "acep/__init__.py": "import acep.explain",
        "acep/explain/__init__.py": "",
        "acep/budget/__init__.py": "",
        "acep/budget/pace.py": "if TYPE_CHECKING:\n  import acep.plots\nfrom . import cost",
        "acep/budget/cost.py": "from ..plan.choice import x",
        "acep/plan/choice.py": "",
        "acep/plots/__init__.py": "",
        "acep/matching/api.py": "import acep.learning.history",
        "acep/tuning/tune.py": "",
        "learning/history/__init__.py": "",
        "acep/native/src/a.cpp": "",
    }
    unused = {"acep/__init__.py", "acep/explain/__init__.py", "acep/plots/__init__.py"}
    texts = {name: text.encode() for name, text in sources.items()}
    assert measured_files("disorder", texts) == sorted(sources.keys() - unused)


def test_sources_are_files_of_code_alone(tmp_path: Path) -> None:
    names = ("acep/native/src/nodes/a.cpp", "acep/native/src/CMakeLists.txt", "learning/a.py", "experiments/b.py")
    for name in (*names, "learning/README.md", "learning/__pycache__/a.pyc", "docs/a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert read_sources(tmp_path) == dict.fromkeys(sorted(names), b"")


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
        monkeypatch.setattr("experiments.overload.figure.describe_machine", lambda: machine)
        assert recall.main(["labs-k1-28d", "--output", str(tmp_path), "--policies", *policies]) == 0
        return (tmp_path / "recall.md").read_text(encoding="utf-8")

    today = {"date": "2020-02-05", "sources": "34cd"}
    monkeypatch.setattr(recall, "measure_recall", rows)
    monkeypatch.setattr("experiments.results.digest_code", lambda *_: today["sources"])
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

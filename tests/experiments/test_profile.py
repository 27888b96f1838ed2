"""Where samples belong, and that the page of profiles says what was measured."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from experiments import profile, sampling
from experiments.results import shorten
from experiments.sampling import FILES, FUNCTIONS, count_samples, layer_of
from experiments.workloads import WORKLOADS, choose_workloads

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "acep" / "native" / "src"
CORE = "/x/_native.so"


@pytest.mark.parametrize(
    ("function", "file", "layer"),
    [
        ("acep::CheckEvaluator::keep_passing(std::vector<acep::Check> const&)", "nodes.cpp", "nodes: predicates"),
        ("acep::EventMatcher::store_new(acep::PartitionNodes&)", "nodes.cpp", "nodes: bind"),
        ("acep::NodeEngine::bytes() const", "nodes.cpp", "nodes: look"),
        ("acep::NodeList::size() const", "node_list.hpp", "nodes: look"),
        ("compare<long>", "vm_blocks.hpp", "programs"),
        ("acep::Arena::cell(unsigned int)", "arena.hpp", "chains"),
        ("acep::Unheard::of()", "unheard.cpp", "other"),
    ],
)
def test_layers_of_the_core(function: str, file: str, layer: str) -> None:
    assert layer_of(CORE, [(function, f"/x/acep/native/src/folder/{file}")]) == layer


def test_the_innermost_frame_of_the_core_counts() -> None:
    library = ("std::vector<long>::push_back(long const&)", "/usr/include/c++/bits/stl_vector.h")
    inner, outer = ("f", "/x/acep/native/src/common/arena.hpp"), ("g", "/x/acep/native/src/merged/merged.hpp")
    assert layer_of(CORE, [library, inner, outer]) == "chains"
    assert layer_of(CORE, [library, outer]) == "merged"
    assert layer_of(CORE, [library]) == layer_of(CORE) == "other"


@pytest.mark.parametrize(
    ("library", "layer"),
    [
        ("[kernel.kallsyms]", "kernel"),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "memory"),
        ("/site-packages/pyarrow/libarrow.so.2100", "Arrow"),
        ("/site-packages/numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so", "NumPy"),
        ("/usr/bin/python3.11", "Python"),
        ("/usr/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so", "Python"),
        ("/usr/lib/python3.11/site-packages/unheard/of.so", "other"),
        ("[unknown]", "other"),
    ],
)
def test_layers_of_libraries(library: str, layer: str) -> None:
    assert layer_of(library) == layer


def test_the_table_knows_every_source_of_the_core() -> None:
    """A source that is new has to get a layer."""
    sources = {path.stem for path in (*NATIVE.glob("*/*.cpp"), *NATIVE.glob("*/*.hpp"))}
    known = {stem for stems in FILES.values() for stem in stems} | sampling.APART
    assert sources == known
    told = "\n".join(path.read_text() for path in NATIVE.glob("nodes/*.?pp"))
    assert [
        name for names in FUNCTIONS.values() for name in names if not re.search(rf"^\S.*\b{name}\(", told, re.MULTILINE)
    ] == []


def test_samples_are_counted_by_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = {16: [("f", "/x/acep/native/src/common/arena.hpp")]}
    monkeypatch.setattr(sampling, "_frames", lambda core, addresses: {a: frames[a] for a in addresses if a in frames})
    script = f"""      10 ({CORE})
      10 ({CORE})
      20 ({CORE})
ffffffff81000010 ([kernel.kallsyms])
    7f00 (/usr/lib/libc.so.6)
"""
    assert count_samples(script, CORE) == {"chains": 2, "other": 1, "kernel": 1, "memory": 1}


@pytest.mark.long
def test_without_perf_the_page_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(profile, "why_not_sampled", lambda: "perf is not on this machine")
    assert profile.main(["w2-next", "--scale", "0.02", "--output", str(tmp_path)]) == 0
    page = (tmp_path / "profiles.md").read_text()
    assert "Not measured: perf is not on this machine." in page
    (row,) = json.loads((tmp_path / "raw/profiles.json").read_text())["results"]
    assert row["inside"] is None
    assert row["rows"] == 4_000
    assert "query" not in row["shares"]
    assert min(row["start"], row["cpu"]) > 0
    assert sum(row["shares"].values()) == pytest.approx(1)
    assert set(row["sizes"]) == {"1000", "4000"}


@pytest.mark.long
@pytest.mark.skipif(sampling.why_not_sampled() is not None, reason=str(sampling.why_not_sampled()))
def test_samples_of_the_core() -> None:
    told = profile.profile_workload("w1-next", scale=0.05)
    assert told.inside is not None
    assert sum(told.inside.values()) == pytest.approx(1)
    assert sum(share for of, share in told.inside.items() if of.startswith("nodes") or of in FILES) > 0.2
    assert told.inside["other"] < 0.1


def test_the_text_says_what_was_measured() -> None:
    """In a section of docs/internals/profiles.md, ``*layer* 12 %`` is the share, and ``34 ns`` the time an event, of
    the workload that its heading names first; there are no other figures with these units."""
    with (ROOT / "docs" / "results" / "profiles.csv").open(encoding="utf-8") as file:
        measured = {row["name"]: row for row in csv.DictReader(file)}
    missing = {name for name in profile.USUAL if name not in {one.group for one in WORKLOADS.values()} | set(WORKLOADS)}
    assert {name.split("-")[0] for name in missing} <= {"pset", "ponco", "pnyse"}  # on streams that are not shipped
    assert set(measured) == {one.name for one in choose_workloads([*set(profile.USUAL) - missing])} | missing
    sections = re.split(
        r"^### ", (ROOT / "docs" / "internals" / "profiles.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert not re.search(r"\d %|\d ns", sections[0])
    told = set()
    for section in sections[1:]:
        heading, _, text = section.partition("\n")
        text = " ".join(text.split())
        names = re.findall(r"`([^`]+)`", heading)
        told.update(names)
        row = measured[names[0]]
        numbers = {name.partition("."): float(value) for name, value in row.items() if "." in name and value}
        shares = {layer: number for (kind, _, layer), number in numbers.items() if kind in ("shares", "inside")}
        figures = re.findall(r"\*([^*]+)\*\s(\d+)\s%", text)
        assert len(figures) == len(re.findall(r"\d\s%", text)), section
        for layer, share in figures:
            assert f"{shares[layer]:.0%}" == f"{share}%", (heading, layer)
        times = {shorten(number) for (kind, *_), number in numbers.items() if kind == "sizes"}
        assert [time for time in re.findall(r"([\d.,]+)\sns", text) if time not in times] == [], heading
    assert told == set(measured)

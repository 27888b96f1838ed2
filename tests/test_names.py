"""Variables and parameters say what they hold: words that say nothing become fewer, and a new file has hardly any.

A binding is each place that binds a variable: a target of an assignment, of a loop, of a comprehension or of `with`,
the name of an exception, what a pattern of `match` takes, a parameter of a function or a lambda. Each place counts. It
is vague if its whole name is one of ``WORDS``. ``self``, ``cls``, attributes, imports, functions and classes do not
count.

What is vague today is in ``tests/golden/names.json``: of all bindings how many in 1,000 (``cap``), and of each file in
which more than ``PER_THOUSAND`` are, how many. Neither may rise. A file that is not there, such as a new or renamed
one, has at most ``PER_THOUSAND``. After names became better, lower the numbers:

    ACEP_GOLDEN=write python -m pytest -n 0 tests/test_names.py

Writing raises no number. To count other words, change ``WORDS``, delete the file, and write it.
"""

from __future__ import annotations

import ast
import json
import math
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from tests.test_imports import ROOT

FOLDERS = ("acep", "learning", "sketches", "experiments")
# `other` is not among them: Python itself calls the second operand of a comparison so.
WORDS = frozenset(
    "found one held known given own told made kept many there whole some here least most rest others".split()  # noqa: SIM905
)
PER_THOUSAND = 5.0
SLACK = 1.0  # how far all bindings may be below the cap before it has to be lowered
BASELINE = ROOT / "tests" / "golden" / "names.json"
WRITE = os.environ.get("ACEP_GOLDEN") == "write"
ASK_TO_WRITE = "Lower the baseline: ACEP_GOLDEN=write python -m pytest -n 0 tests/test_names.py"


class Binding(NamedTuple):
    """One place that binds a name."""

    line: int
    name: str


class Census(NamedTuple):
    """How many bindings a source has, and which of them are vague, in the order of lines."""

    n_bindings: int
    vague: list[Binding]

    @property
    def per_thousand(self) -> float:
        return 1000 * len(self.vague) / self.n_bindings if self.n_bindings else 0.0


class Baseline(NamedTuple):
    """What is allowed: vague bindings in 1,000 of all, and the number of them in each file that has too many."""

    cap: float
    files: dict[str, int]


def bindings(tree: ast.Module) -> Iterator[Binding]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield Binding(node.lineno, name)
            case ast.arg(arg=name) if name not in ("self", "cls"):
                yield Binding(node.lineno, name)
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                yield Binding(node.lineno, name)


def take_census(source: str) -> Census:
    everything = list(bindings(ast.parse(source)))
    return Census(len(everything), sorted(binding for binding in everything if binding.name in WORDS))


def unite(censuses: Mapping[str, Census]) -> Census:
    vague = [binding for census in censuses.values() for binding in census.vague]
    return Census(sum(census.n_bindings for census in censuses.values()), vague)


def round_up(per_thousand: float) -> float:
    return math.ceil(10 * per_thousand) / 10


def complaints(censuses: Mapping[str, Census], files: Mapping[str, int]) -> list[str]:
    """One for each file that has more vague bindings than it may, with the line and the name of each."""
    texts = []
    for file, census in censuses.items():
        before = files.get(file)
        if census.per_thousand > PER_THOUSAND if before is None else len(census.vague) > before:
            limit = f"at most {PER_THOUSAND:g} in 1,000 are allowed" if before is None else f"{before} before"
            places = "".join(f"\n  {file}:{line} {name}" for line, name in census.vague)
            texts.append(f"{file}: {len(census.vague)} of {census.n_bindings} bindings are vague; {limit}{places}")
    return texts


def lower(baseline: Baseline | None, censuses: Mapping[str, Census]) -> Baseline:
    """The baseline with today's numbers where they are lower, without the files that are gone or good enough."""
    too_many = {file: census for file, census in censuses.items() if census.per_thousand > PER_THOUSAND}
    today = Baseline(round_up(unite(censuses).per_thousand), {f: len(census.vague) for f, census in too_many.items()})
    if baseline is None:
        return today
    lowered = {file: min(count, today.files[file]) for file, count in baseline.files.items() if file in today.files}
    return Baseline(min(baseline.cap, today.cap), lowered)


def read_baseline() -> Baseline:
    return Baseline(**json.loads(BASELINE.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def censuses() -> dict[str, Census]:
    """The census of every file, by its path in the repository."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): take_census(path.read_text(encoding="utf-8")) for path in paths}


@pytest.fixture(scope="module")
def baseline(censuses: dict[str, Census]) -> Baseline:
    if WRITE:
        lowered = lower(read_baseline() if BASELINE.is_file() else None, censuses)
        BASELINE.write_text(json.dumps(lowered._asdict(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return read_baseline()


def test_no_file_becomes_vaguer(censuses: dict[str, Census], baseline: Baseline) -> None:
    texts = complaints(censuses, baseline.files)
    assert not texts, "name what each variable holds:\n" + "\n".join(texts)


def test_all_files_together_are_as_vague_as_the_cap_says(censuses: dict[str, Census], baseline: Baseline) -> None:
    total = unite(censuses)
    cap, today = baseline.cap, total.per_thousand
    figure = f"{len(total.vague)} of {total.n_bindings} bindings are vague, {today:.2f} in 1,000; the cap is {cap}"
    worst = sorted(censuses, key=lambda file: -len(censuses[file].vague))[:5]
    listing = "".join(f"\n  {len(censuses[file].vague)} in {file}" for file in worst)
    assert today <= cap, f"{figure}. Most are in:{listing}"
    assert today >= cap - SLACK, f"{figure}. {ASK_TO_WRITE}"


def test_the_baseline_names_files_that_exist(censuses: dict[str, Census], baseline: Baseline) -> None:
    gone = sorted(set(baseline.files) - set(censuses))
    assert not gone, f"{', '.join(gone)}: no such file. {ASK_TO_WRITE}"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("found = 1", "found"),
        ("found: int", "found"),
        ("found += 1", "found"),
        ("found = one = x", "found one"),
        ("(found, [one, *rest]), x = y", "found one rest x"),
        ("for one, (key, held) in x: pass", "held key one"),
        ("async def f():\n  async for one in x: pass", "one"),
        ("with x as found, y as (one, z): pass", "found one z"),
        ("try: pass\nexcept E as found: pass", "found"),
        ("try: pass\nexcept E: pass", ""),
        ("f(found := 1)", "found"),
        ("[one for held in x for one in held]", "held one"),
        ("{one: known for one, known in x}", "known one"),
        ("def f(own, /, given=1, *some, told, **rest): pass", "given own rest some told"),
        ("class A:\n  found: int = 1\n  def f(self, own): pass\n  @classmethod\n  def g(cls): pass", "found own"),
        ("f = lambda one, *many: one", "f many one"),
        ("match x:\n  case [one, *rest] | {'a': one, **rest}: pass\n  case A(held) as known: pass\n  case _: pass",
         "held known one one rest rest"),
        ("import found as one\nfrom held import known as given", ""),
        ("def found(): pass\nclass one: pass", ""),
        ("x.found = 1\nx['one'] = held\ndel known\nf(given=own)", ""),
    ],
)  # fmt: skip
def test_bindings_of_small_sources(source: str, names: str) -> None:
    assert sorted(binding.name for binding in bindings(ast.parse(source))) == names.split()


def test_only_a_whole_name_is_vague() -> None:
    source = "found_rows = 1\nx = [\n  y for\n  found in x]\n_found = 2\none = Found = 3\nfound = 4"
    assert take_census(source) == Census(7, [Binding(4, "found"), Binding(6, "one"), Binding(7, "found")])


def census_of(n_vague: int, n_bindings: int) -> Census:
    return take_census("found = 1\n" * n_vague + "rows = 1\n" * (n_bindings - n_vague))


@pytest.mark.parametrize(
    ("n_vague", "n_bindings", "before", "is_too_vague"),
    [
        (0, 0, None, False),
        (0, 10, None, False),
        (1, 199, None, True),
        (1, 200, None, False),
        (2, 399, None, True),
        (3, 10, 3, False),
        (2, 10, 3, False),
        (4, 900, 3, True),
    ],
)
def test_which_file_is_too_vague(n_vague: int, n_bindings: int, before: int | None, is_too_vague: bool) -> None:
    files = {} if before is None else {"a.py": before}
    texts = complaints({"a.py": census_of(n_vague, n_bindings)}, files)
    assert len(texts) == is_too_vague
    assert all(f"\n  a.py:{line + 1} found" in text for text in texts for line in range(n_vague))


def test_writing_raises_no_number() -> None:
    today = {"same.py": census_of(2, 10), "better.py": census_of(1, 10), "worse.py": census_of(9, 10)}
    today |= {"good.py": census_of(1, 300), "new.py": census_of(3, 10)}
    before = Baseline(40.0, {"same.py": 2, "better.py": 2, "worse.py": 8, "good.py": 5, "gone.py": 1})
    assert lower(before, today) == Baseline(40.0, {"same.py": 2, "better.py": 1, "worse.py": 8})
    assert lower(Baseline(50.0, {}), today).cap == 47.1  # 16 of 340 are 47.06 in 1,000
    assert lower(None, today) == Baseline(47.1, {"same.py": 2, "better.py": 1, "worse.py": 9, "new.py": 3})

"""Variables, parameters and functions say what they hold and do.

Words that say nothing become fewer, and a new file has hardly any.

A binding is each place that binds a variable: a target of an assignment, of a loop, of a comprehension or of `with`,
the name of an exception, what a pattern of `match` takes, a parameter of a function or a lambda. Each place counts. It
is vague if its whole name is one of ``WORDS``, also with an ``s``, underscores or digits. ``self``, ``cls``,
attributes, imports, functions and classes do not count.

What is vague today is in ``tests/golden/names.json``: of all bindings how many in 1,000 (``cap``), and of each file in
which more than ``PER_THOUSAND`` are, how many. A file that is not there, such as a new or renamed one, has at most
``PER_THOUSAND``, or a single one: a small file may have a parameter whose name is public. After names became better,
lower the numbers, or these tests fail:

    ACEP_GOLDEN=write python -m pytest -n 0 tests/test_names.py

Writing raises no number, whatever a merge of two branches left in the file. A number that is raised by hand fails: that
of a file must be the one of today, the cap is at most ``HIGHEST_CAP``, and where there is a history each number is at
most that of every earlier commit. To count other words, change ``WORDS`` or ``is_vague``, raise ``MEASURE``, and write
the file: numbers of another measure are not compared.

A function or method is a verb, or a noun that says what it returns. None is named by a participle (``told``), a
preposition (``of``), an adverb or a pronoun alone; properties may be. NAMED_ELSEWHERE has those whose names are given:
by the public interface, by the native core, by Spark, or as the name of a lint rule.
"""

from __future__ import annotations

import ast
import json
import math
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.source_trees import ROOT, ParsedFile, read_once, whole_source

FOLDERS = ("acep", "learning", "sketches", "experiments")
# `other` is not among them: Python itself calls the second operand of a comparison so.
WORDS = frozenset(
    "found one held known given own told made kept many there whole some here least most rest others".split()  # noqa: SIM905
)
PER_THOUSAND = 5.0
SLACK = 1.0  # how far all bindings may be below the cap before it has to be lowered
MEASURE = 2  # which words count, and how
HIGHEST_CAP = 5.0
FUNCTION_WORDS = frozenset(
    [
        "about",
        "above",
        "across",
        "after",
        "again",
        "against",
        "ahead",
        "alike",
        "along",
        "among",
        "anew",
        "apart",
        "around",
        "as",
        "at",
        "away",
        "back",
        "before",
        "behind",
        "below",
        "beneath",
        "beside",
        "between",
        "beyond",
        "by",
        "down",
        "during",
        "elsewhere",
        "from",
        "in",
        "inside",
        "into",
        "like",
        "near",
        "of",
        "off",
        "on",
        "once",
        "onto",
        "or",
        "out",
        "over",
        "per",
        "since",
        "so",
        "than",
        "then",
        "there",
        "through",
        "to",
        "together",
        "toward",
        "towards",
        "twice",
        "under",
        "until",
        "unless",
        "up",
        "upon",
        "upto",
        "when",
        "where",
        "whether",
        "while",
        "with",
        "within",
        "without",
        "begun",
        "bound",
        "built",
        "borne",
        "bought",
        "broken",
        "brought",
        "caught",
        "chosen",
        "dealt",
        "done",
        "drawn",
        "driven",
        "due",
        "fed",
        "felt",
        "fallen",
        "found",
        "forbidden",
        "forgotten",
        "fought",
        "frozen",
        "given",
        "gone",
        "grown",
        "heard",
        "held",
        "hidden",
        "kept",
        "known",
        "laid",
        "lain",
        "learnt",
        "led",
        "left",
        "lent",
        "lit",
        "long",
        "lost",
        "low",
        "made",
        "meant",
        "met",
        "mistaken",
        "outgrown",
        "overdue",
        "paid",
        "rebuilt",
        "rewritten",
        "risen",
        "rung",
        "said",
        "seen",
        "sent",
        "shaken",
        "shown",
        "slept",
        "sold",
        "spent",
        "stolen",
        "struck",
        "stuck",
        "swept",
        "sworn",
        "taken",
        "taught",
        "thought",
        "thrown",
        "told",
        "torn",
        "understood",
        "undone",
        "won",
        "worn",
        "woven",
        "written",
        "wrapped",
        "all",
        "any",
        "both",
        "each",
        "every",
        "few",
        "here",
        "least",
        "less",
        "many",
        "more",
        "most",
        "much",
        "none",
        "nothing",
        "now",
        "nowhere",
        "only",
        "other",
        "others",
        "own",
        "rest",
        "same",
        "some",
        "such",
        "theirs",
        "ours",
        "whole",
        "one",
    ]
)
NO_PARTICIPLES = frozenset("need feed seed speed shed embed exceed proceed succeed bed red breed indeed weed".split())  # noqa: SIM905
NAMED_ELSEWHERE = {
    "acep/arrivals/ordered_rows.py": {"chosen", "at"},  # as the native class
    "acep/errors.py": {"located"},
    "acep/matches/report.py": {"of"},
    "acep/native/lanes.py": {"windowed", "kept"},
    "acep/plan/lint/distribution.py": {"composed"},
    "acep/shedding/native_protocol.py": {"spent"},
    "acep/spark/listening.py": {"onQueryStarted", "onQueryTerminated"},
    "acep/spark/query_start.py": {"onQueryStarted", "onQueryTerminated"},
    "learning/history/graph.py": {"visited"},
    "learning/policies/bandit_policy.py": {"learned"},
    "learning/policies/counting.py": {"learned"},
    "learning/policies/history_policy.py": {"learned"},
    "learning/shedding_table.py": {"found"},
    "sketches/count_min.py": {"sized"},
    "sketches/match_map.py": {"sized", "within"},
}
FILE = "tests/golden/names.json"
BASELINE = ROOT / FILE
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

    @property
    def has_too_many(self) -> bool:
        return len(self.vague) > 1 and self.per_thousand > PER_THOUSAND


class Baseline(NamedTuple):
    """What is allowed: vague bindings in 1,000 of all, and the number of them in each file that has too many."""

    cap: float
    files: dict[str, int]
    measure: int = MEASURE


BINDING = (ast.Name, ast.arg, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping)


def bindings(nodes: Iterable[ast.AST]) -> Iterator[Binding]:
    for node in nodes:
        if not isinstance(node, BINDING):  # most are not
            continue
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


def is_vague(name: str) -> bool:
    stem = name.strip("_0123456789").lower()
    return stem in WORDS or stem.removesuffix("s") in WORDS


def take_census(nodes: Iterable[ast.AST]) -> Census:
    everything = list(bindings(nodes))
    return Census(len(everything), sorted(binding for binding in everything if is_vague(binding.name)))


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
        if census.has_too_many if before is None else len(census.vague) > before:
            limit = f"at most {PER_THOUSAND:g} in 1,000, or one, are allowed" if before is None else f"{before} before"
            places = "".join(f"\n  {file}:{line} {name}" for line, name in census.vague)
            texts.append(f"{file}: {len(census.vague)} of {census.n_bindings} bindings are vague; {limit}{places}")
    return texts


def lower(baseline: Baseline | None, censuses: Mapping[str, Census]) -> Baseline:
    """The baseline with today's numbers where they are lower, without the files that are gone or good enough."""
    too_many = {file: census for file, census in censuses.items() if census.has_too_many}
    today = Baseline(round_up(unite(censuses).per_thousand), {f: len(census.vague) for f, census in too_many.items()})
    if baseline is None:
        return today
    lowered = {file: min(count, today.files[file]) for file, count in baseline.files.items() if file in today.files}
    return Baseline(min(baseline.cap, today.cap), lowered)


def parse_baseline(text: str) -> Baseline | None:
    """The numbers of a file, if they can be compared with those of today: not those of another measure, nor of a file
    in which a merge left conflicts."""
    try:
        numbers = json.loads(text)
    except json.JSONDecodeError:
        return None
    return Baseline(**numbers) if numbers.get("measure") == MEASURE else None


def unite_baselines(baselines: Sequence[Baseline]) -> Baseline | None:
    """Return the numbers that all of these baselines allow; a file that one of them lacks is a new one."""
    if not baselines:
        return None
    files = set.intersection(*({*baseline.files} for baseline in baselines))
    return Baseline(
        min(baseline.cap for baseline in baselines),
        {file: min(baseline.files[file] for baseline in baselines) for file in sorted(files)},
    )


def committed_baselines(root: Path) -> list[Baseline]:
    """Return the numbers that every ancestor commit allowed, as far as there is a history."""

    def run_git(*arguments: str) -> str:
        done = subprocess.run(("git", *arguments), cwd=root, capture_output=True, text=True, check=False)
        return "" if done.returncode else done.stdout

    try:
        texts = [
            run_git("show", f"{commit}:./{FILE}")
            for commit in run_git("rev-list", "--full-history", "HEAD", "--", FILE).split()
        ]
    except FileNotFoundError:  # there is no git
        return []
    return [baseline for text in texts if (baseline := parse_baseline(text))]


def raised_numbers(baseline: Baseline, before: Baseline | None) -> list[str]:
    if before is None:
        return []
    raised = [
        f"{file}: {count}, and at most {before.files.get(file, 'what a new file may have')} before"
        for file, count in baseline.files.items()
        if count > before.files.get(file, 0)
    ]
    return raised + [f"cap: {baseline.cap}, and {before.cap} before"] * (baseline.cap > before.cap)


@read_once(*FOLDERS)
def census_of_file(file: ParsedFile) -> Census:
    return take_census(file.nodes)


@pytest.fixture(scope="module")
def censuses() -> dict[str, Census]:
    """The census of every file, by its path in the repository."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): census_of_file(path) for path in paths}


@pytest.fixture(scope="module")
def baseline(censuses: dict[str, Census]) -> Baseline:
    current = parse_baseline(BASELINE.read_text(encoding="utf-8")) if BASELINE.is_file() else None
    if WRITE:
        before = unite_baselines([*committed_baselines(ROOT), *([current] if current else [])])
        current = lower(before, censuses)
        BASELINE.write_text(json.dumps(current._asdict(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert current is not None, f"{FILE} has no numbers of measure {MEASURE}. {ASK_TO_WRITE}"
    return current


@whole_source
def test_no_file_becomes_vaguer(censuses: dict[str, Census], baseline: Baseline) -> None:
    texts = complaints(censuses, baseline.files)
    assert not texts, "name what each variable holds:\n" + "\n".join(texts)


@whole_source
def test_all_files_together_are_as_vague_as_the_cap_says(censuses: dict[str, Census], baseline: Baseline) -> None:
    total = unite(censuses)
    cap, today = baseline.cap, total.per_thousand
    figure = f"{len(total.vague)} of {total.n_bindings} bindings are vague, {today:.2f} in 1,000; the cap is {cap}"
    worst = sorted(censuses, key=lambda file: -len(censuses[file].vague))[:5]
    listing = "".join(f"\n  {len(censuses[file].vague)} in {file}" for file in worst)
    assert today <= cap, f"{figure}. Most are in:{listing}"
    assert today >= cap - SLACK, f"{figure}. {ASK_TO_WRITE}"


@whole_source
def test_no_number_of_the_baseline_is_more_than_today(censuses: dict[str, Census], baseline: Baseline) -> None:
    """Otherwise what was won could be lost again."""
    today = lower(baseline, censuses).files
    files = [
        f"{file}: {count}, today {today.get(file, 'few or none')}"
        for file, count in baseline.files.items()
        if today.get(file) != count
    ]
    assert not files, "\n".join([f"names became better. {ASK_TO_WRITE}", *files])


@pytest.mark.long
@whole_source
def test_no_number_of_the_baseline_was_raised(baseline: Baseline) -> None:
    raised = raised_numbers(baseline, unite_baselines(committed_baselines(ROOT)))
    assert not raised, "\n".join(["numbers may only fall:", *raised])
    assert baseline.cap <= HIGHEST_CAP


def says_nothing(name: str) -> bool:
    """Return whether the name of a function is a participle, a preposition, an adverb or a pronoun alone."""
    stem = name.strip("_")
    is_participle = stem.endswith("ed") and stem not in NO_PARTICIPLES
    return "_" not in stem and not name.startswith("__") and (stem in FUNCTION_WORDS or is_participle)


def riddles(nodes: Iterable[ast.AST]) -> list[Binding]:
    """Return the functions and methods among the nodes, properties left out, whose names say nothing."""
    return sorted(
        Binding(node.lineno, node.name)
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and says_nothing(node.name)
        and not any(re.search(r"property|setter", ast.unparse(decorator)) for decorator in node.decorator_list)
    )


@read_once(*FOLDERS)
def riddles_of_file(file: ParsedFile) -> list[Binding]:
    return riddles(file.nodes)


@whole_source
def test_functions_say_what_they_do() -> None:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    by_file = {path.relative_to(ROOT).as_posix(): riddles_of_file(path) for path in paths}
    new = [
        f"{file}:{line} {name}"
        for file, functions in by_file.items()
        for line, name in functions
        if name not in NAMED_ELSEWHERE.get(file, ())
    ]
    assert not new, "name functions by a verb, or by what they return:\n" + "\n".join(new)
    names = {file: {name for _, name in functions} for file, functions in by_file.items() if functions}
    assert names == NAMED_ELSEWHERE, "fewer than before: take them out of NAMED_ELSEWHERE"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def told(): pass", "told"),
        ("async def decided(x): pass", "decided"),
        ("class A:\n  def of(self): pass\n  @property\n  def held(self): pass\n  def __at__(self): pass", "of"),
        ("def f():\n  def _made_(): pass", "_made_"),
        ("def feed(): pass\ndef shed(): pass\ndef read_told(): pass\ndef row_at(): pass\ntold = 1", ""),
        ("class A:\n  @cached_property\n  def x(self): pass\n  @held.setter\n  def held(self, x): pass", ""),
    ],
)
def test_functions_of_small_sources(source: str, names: str) -> None:
    assert [name for _, name in riddles(ast.walk(ast.parse(source)))] == names.split()


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
    assert sorted(binding.name for binding in bindings(ast.walk(ast.parse(source)))) == names.split()


def test_only_a_whole_name_is_vague() -> None:
    source = "found_rows = 1\nx = [\n  y for\n  found in x]\nforget = 2\none = boxes = 3\nfound = 4"
    assert take_census(ast.walk(ast.parse(source))) == Census(
        7, [Binding(4, "found"), Binding(6, "one"), Binding(7, "found")]
    )


@pytest.mark.parametrize(
    "name", ["found", "found_", "_made", "__made__", "ones", "_ones", "found2", "rest_1", "Found", "others", "rests"]
)
def test_a_mark_makes_no_name_say_more(name: str) -> None:
    assert is_vague(name)


@pytest.mark.parametrize("name", ["_", "__", "s", "_1", "x", "rows", "found_rows", "makes", "moss", "heresy"])
def test_names_that_are_not_vague(name: str) -> None:
    assert not is_vague(name)


def census_of(n_vague: int, n_bindings: int) -> Census:
    source = "found = 1\n" * n_vague + "rows = 1\n" * (n_bindings - n_vague)
    return take_census(ast.walk(ast.parse(source)))


@pytest.mark.parametrize(
    ("n_vague", "n_bindings", "before", "is_too_vague"),
    [
        (0, 0, None, False),
        (0, 10, None, False),
        (1, 10, None, False),
        (2, 399, None, True),
        (2, 400, None, False),
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


@pytest.mark.parametrize(
    ("baseline", "raised"),
    [
        (Baseline(40.0, {"a.py": 2, "b.py": 7}), []),
        (Baseline(39.0, {"b.py": 6}), []),
        (Baseline(40.1, {"a.py": 2, "b.py": 7}), ["cap: 40.1, and 40.0 before"]),
        (Baseline(40.0, {"a.py": 3, "b.py": 7}), ["a.py: 3, and at most 2 before"]),
        (Baseline(40.0, {"c.py": 1}), ["c.py: 1, and at most what a new file may have before"]),
    ],
)
@whole_source
def test_which_numbers_were_raised(baseline: Baseline, raised: list[str]) -> None:
    assert raised_numbers(baseline, Baseline(40.0, {"a.py": 2, "b.py": 7})) == raised


def test_each_earlier_commit_counts_and_no_other_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:  # as in a hook of git
        monkeypatch.delenv(name)
    assert committed_baselines(tmp_path) == []

    def git(*arguments: str) -> None:
        names = ("-c", "user.name=A", "-c", "user.email=a@b.c")
        subprocess.run(("git", *names, *arguments), cwd=tmp_path, check=True, capture_output=True)

    def commit(numbers: dict[str, object]) -> None:
        path = tmp_path / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(numbers), encoding="utf-8")
        git("add", ".")
        git("commit", "-m", "numbers")

    git("init", "-b", "main")
    assert committed_baselines(tmp_path) == []
    commit({"cap": 3.0, "files": {"a.py": 1}})
    assert committed_baselines(tmp_path) == []
    commit(Baseline(50.0, {"a.py": 9, "b.py": 9, "c.py": 9})._asdict())
    git("checkout", "-b", "branch")
    commit(Baseline(48.0, {"a.py": 5, "b.py": 9})._asdict())
    git("checkout", "main")
    commit(Baseline(49.0, {"a.py": 8, "b.py": 7, "c.py": 9})._asdict())
    git("merge", "-s", "ours", "branch")  # which loses what the branch won
    commit(Baseline(60.0, {"a.py": 20, "b.py": 20, "c.py": 20})._asdict())  # raised by hand
    assert unite_baselines(committed_baselines(tmp_path)) == Baseline(48.0, {"a.py": 5, "b.py": 7})


@pytest.mark.parametrize(
    "text", ["", "<<<<<<< HEAD\n{}", '{"cap": 1.0, "files": {}}', '{"cap": 1.0, "files": {}, "measure": 1}']
)
def test_numbers_that_cannot_be_compared_are_none(text: str) -> None:
    assert parse_baseline(text) is None


def test_writing_raises_no_number() -> None:
    today = {"same.py": census_of(2, 10), "better.py": census_of(2, 10), "worse.py": census_of(9, 10)}
    today |= {"good.py": census_of(1, 30), "new.py": census_of(3, 10)}
    before = Baseline(40.0, {"same.py": 2, "better.py": 3, "worse.py": 8, "good.py": 5, "gone.py": 1})
    assert lower(before, today) == Baseline(40.0, {"same.py": 2, "better.py": 2, "worse.py": 8})
    assert lower(Baseline(500.0, {}), today).cap == 242.9  # 17 of 70
    assert lower(None, today) == Baseline(242.9, {"same.py": 2, "better.py": 2, "worse.py": 9, "new.py": 3})

"""The house is as its pages say: ways, names, public paths, class names."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from functools import cache

import pytest

import acep
from experiments.measured_code import PYTHON_PARTS
from tests.source_trees import ROOT, ParsedFile, read_once, whole_source
from tests.test_imports import IN_PACKAGE, MODULES

WAYS = re.findall(
    r"^\|[^|]*\| `([\w/.]+)` \| `([\w.:]+)` \|$", (ROOT / "docs/internals/ways.md").read_text(), re.MULTILINE
)

# Users import these: a name stays, or an alias warns.
PUBLIC = {
    "acep": "AcepError Budget Bundle Bundles Count DataError DataWarning EngineError Followed Match Matcher Matches "
    "PartialMatch PartialMatches Point Points PolicyError Query QueryError Report SnapshotError follow learn lint "
    "match parse read_events regex rules tune why",
    "acep.spark": "error_in events for_each_batch get_session listener match match_recognize punctuation "
    "register_clause sql",
    "acep.plots": "SvgPicture automaton controller history history_graph match_over_series recall_curve save timeline",
    "acep.spark.metrics": "Progress listener progress_of report_of reports_of",
    "acep.learning.policy": "Epoch Policy",
    "acep.learning.shedding_table": "AGES BUCKETS HIGHEST STEPS SheddingTable Term TermKind Ties as_utility_buckets",
    "acep.learning.history.graph": "History",
    "acep.sketches.count_min": "CountMin",
    "acep.sketches.dense": "DenseMemory",
    "acep.sketches.match_map": "MatchMap",
    "acep.sketches.neighbour_map": "NeighbourMap",
    "acep.sketches.memories": "read_memory",
    "acep.sketches.protocol": "VectorMemory",
    "acep.sketches.ring": "Ring",
    "acep.checks": "Checked check_policy",
}
REPORT = [
    "events",
    "late",
    "ahead",
    "made",
    "kept",
    "shed",
    "work",
    "deciding",
    "matches",
    "seconds",
    "memory",
    "recall",
    "interval",
    "bundle_recall",
    "bundle_interval",
    "unknown",
    "recovering",
    "recovered",
    "unrecovered",
    "points",
    "bundles",
    "chosen",
    "limited",
    "exact",
]
BUDGET = ["work", "cpu", "latency", "memory", "speed", "estimate", "recover"]


def test_the_ways_name_enough() -> None:
    assert len(WAYS) > 25


@pytest.mark.parametrize(("file", "function"), WAYS, ids=[f"{file}-{function}" for file, function in WAYS])
def test_a_step_of_a_way_exists(file: str, function: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    if file.endswith(".py"):
        assert function in set(functions(ast.parse(text)))
    else:
        assert re.search(rf"^\S.*\b{function}\(", text, re.MULTILINE)


def functions(tree: ast.AST, prefix: str = "") -> list[str]:
    """Return the functions of a module, those of classes as ``Class.function``."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            found.append(prefix + node.name)
        elif isinstance(node, ast.ClassDef):
            found += functions(node, f"{node.name}.")
    return found


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_stay(module: str) -> None:
    if module.startswith("acep.spark"):
        pytest.importorskip("pyspark")
    loaded = importlib.import_module(module)
    assert [name for name in PUBLIC[module].split() if not hasattr(loaded, name)] == []


def test_fields_of_reports_and_keywords_of_budgets_stay() -> None:
    rows = {"ts": [1, 2], "type": ["a", "b"]}
    report = acep.match(rows, acep.regex("ab", within=5)).report
    assert [name for name in REPORT if not hasattr(report, name)] == []
    assert set(BUDGET) <= set(acep.Budget.__init__.__annotations__)


@read_once(*IN_PACKAGE)
def classes_of(module: ParsedFile) -> list[tuple[str, int]]:
    """Return the names of the classes of a module, with the number of their public members."""
    return [(node.name, len(public_members(node))) for node in module.nodes if isinstance(node, ast.ClassDef)]


@whole_source
def test_no_class_name_occurs_twice() -> None:
    places = defaultdict(list)
    for name, path in MODULES:
        for class_name, _ in classes_of(path):
            places[class_name].append(name)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def documented() -> set[str]:
    """Return the names on the pages of the API."""
    pages = (ROOT / "docs/reference/api").glob("*.md")
    return {name for page in pages for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)}


@pytest.mark.parametrize("module", ["acep", "acep.plots", "acep.spark", "acep.spark.metrics", "acep.checks"])
def test_every_public_name_is_on_a_page(module: str) -> None:
    if module.startswith("acep.spark"):
        pytest.importorskip("pyspark")
    names = {name for name in importlib.import_module(module).__all__ if not name.startswith("__")}
    assert {f"{module}.{name}" for name in names} - documented() == set()


@pytest.mark.parametrize("name", sorted(documented()))
def test_what_is_on_a_page_has_a_docstring(name: str) -> None:
    if name.startswith("acep.spark"):
        pytest.importorskip("pyspark")
    module, _, attribute = name.rpartition(".")
    found = getattr(importlib.import_module(module), attribute)
    assert found.__doc__
    methods = {key: value for key, value in vars(found).items() if callable(value)} if isinstance(found, type) else {}
    assert [key for key, value in methods.items() if not key.startswith("_") and not value.__doc__] == []


def test_the_readme_has_no_dead_links() -> None:
    for page in (ROOT / "README.md", *sorted(ROOT.glob("*.md"))):
        for link in re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_pages_name_files_that_exist() -> None:
    """In the pages of docs/internals, and in the READMEs of rooms, a path in backticks is there."""
    pages = [*(ROOT / "docs/internals").glob("*.md"), *(ROOT / "docs/explanation").glob("*.md")]
    named = [
        (page.name, path)
        for page in pages
        for path in re.findall(r"`((?:acep|learning|sketches|tests|experiments)/[\w/]+\.\w+)`", page.read_text())
    ]
    assert [(page, path) for page, path in named if not (ROOT / path).exists()] == []


REPLACED = re.findall(
    r"^\| `([^`]+)` \| (class|function|file|identifier|phrase) \|",
    (ROOT / "docs/reference/glossary.md").read_text(),
    re.MULTILINE,
)


@read_once(*IN_PACKAGE)
def names_of(module: ParsedFile) -> set[str]:
    """Return the words of a module outside comments and texts."""
    return set(re.findall(r"\b[^\W\d]\w*", PYTHON_PARTS.sub(" ", module.text)))


def identifiers() -> dict[str, set[str]]:
    """Return the files that use each identifier, of Python and of C++."""
    used = defaultdict(set)
    for _, path in MODULES:
        for name in names_of(path):
            used[name].add(path.name)
    for path in (ROOT / "acep/native/src").glob("*/*"):
        code = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for name in re.findall(r"[A-Za-z_]\w*", code):
            used[name].add(path.name)
    return used


@whole_source
def test_replaced_names_are_gone() -> None:
    used = identifiers()
    names = [name for name, kind in REPLACED if kind in ("class", "function", "identifier")]
    assert len(names) > 15
    assert {name: sorted(used[name]) for name in names if name in used} == {}


def test_replaced_files_are_gone() -> None:
    files = [name for name, kind in REPLACED if kind == "file"]
    assert len(files) > 20
    there = [path.as_posix() for room in ("acep", "learning", "sketches") for path in (ROOT / room).rglob("*.?pp")]
    there += [path.as_posix() for _, path in MODULES]
    assert [name for name in files if any(path.endswith(f"/{name}") for path in there)] == []


def test_replaced_phrases_are_gone() -> None:
    phrases = [name for name, kind in REPLACED if kind == "phrase"]
    texts = {path: path.read_text(encoding="utf-8") for _, path in MODULES}
    texts |= {path: path.read_text(encoding="utf-8") for path in (ROOT / "acep/native/src").glob("*/*")}
    texts |= {
        path: path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md") if path.stem != "glossary"
    }
    found = [(path.name, one) for path, text in texts.items() for one in phrases if one in " ".join(text.split())]
    assert found == []


def public_members(node: ast.ClassDef) -> list[str]:
    """Return the functions and the fields of a class whose names have no underscore before them."""
    names = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
    names += [
        part.target.id for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    ]
    return [name for name in names if not name.startswith("_")]


@whole_source
def test_no_class_has_more_than_40_public_members() -> None:
    """Who has to read a class can: give a part of its state a class of its own before."""
    classes = [(n_members, path.name, name) for _, path in MODULES for name, n_members in classes_of(path)]
    assert len(classes) > 300
    assert [each for each in classes if each[0] > 40] == []


MAX_LINES = 60
MAX_PARAMETERS = 8
OPTIONS_OF_USERS = "each is an option that users write by its name"
BEYOND_MAX_PARAMETERS = {
    "acep/events/files/options.py:options_of": "takes the options of acep.read_events as users write them",
    "acep/events/files/reading.py:read_events": OPTIONS_OF_USERS,
    "acep/explain/why.py:why": OPTIONS_OF_USERS,
    "acep/following/follow.py:follow": OPTIONS_OF_USERS,
    "acep/following/replay.py:replay": OPTIONS_OF_USERS,
    "acep/pattern/automata.py:arc": OPTIONS_OF_USERS,
    "acep/spark/foreach/foreach_batch.py:ForEachBatch.__init__": "takes the options of acep.spark.for_each_batch",
    "acep/spark/matching.py:match": OPTIONS_OF_USERS,
    "acep/spark/replay.py:replay": "takes the options of `acep replay`",
    "acep/streaming/job.py:make_job": "buckets, output, latest, late and dynamic are options of match",
    "acep/tuning/tune.py:tune": OPTIONS_OF_USERS,
    "learning/history/graph.py:History.__init__": OPTIONS_OF_USERS,
}
"""The functions with more parameters, and why. Where these are no options of a user, what belongs together becomes a
frozen dataclass."""


@cache
def functions_of_house() -> dict[str, tuple[int, int]]:
    """Return the numbers of lines and of parameters of each function, by ``file:Class.function``."""
    sizes: dict[str, tuple[int, int]] = {}
    for room in ("acep", "learning", "sketches", "experiments"):
        for path in sorted((ROOT / room).rglob("*.py")):
            sizes |= sizes_of_file(path)
    return sizes


@read_once("acep", "learning", "sketches", "experiments")
def sizes_of_file(module: ParsedFile) -> dict[str, tuple[int, int]]:
    return sizes_of_functions(module.tree, f"{module.path.relative_to(ROOT).as_posix()}:")


def sizes_of_functions(tree: ast.AST, prefix: str) -> dict[str, tuple[int, int]]:
    """Return the numbers of lines and of parameters of the functions below a node, also of those inside functions."""
    sizes: dict[str, tuple[int, int]] = {}
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            sizes[prefix + node.name] = lines_of(node), parameters_of(node)
            sizes |= sizes_of_functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            sizes |= sizes_of_functions(node, f"{prefix}{node.name}.")
        elif not isinstance(node, ast.expr):  # an expression has no functions but lambdas
            sizes |= sizes_of_functions(node, prefix)
    return sizes


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function, blank ones too, without its docstring and its decorators."""
    first = node.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno or 0) - first.lineno + 1 if is_docstring and ast.get_docstring(node) else 0
    return (node.end_lineno or 0) - node.lineno + 1 - docstring


def parameters_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of parameters of a function without ``self`` or ``cls``."""
    names = [part.arg for part in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


@pytest.mark.long
@whole_source
def test_no_function_is_too_long() -> None:
    lines = {name: size for name, (size, _) in functions_of_house().items()}
    assert len(lines) > 3000
    assert {name: size for name, size in lines.items() if size > MAX_LINES} == {}


@whole_source
def test_no_function_has_too_many_parameters() -> None:
    numbers = {name: number for name, (_, number) in functions_of_house().items()}
    beyond = {name for name, number in numbers.items() if number > MAX_PARAMETERS}
    assert beyond == set(BEYOND_MAX_PARAMETERS)

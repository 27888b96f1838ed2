"""The code that the figures of a page come from: its experiment, what that imports, and the native core."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

__all__ = ["PAGES", "PYTHON_PARTS", "Sources", "digest_code", "digest_files", "measured_files", "read_sources"]

Sources = Mapping[str, bytes]
"""The text of each source file, by its path in the repository."""

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"acep": "acep", "learning": "acep.learning", "sketches": "acep.sketches", "experiments": "experiments"}
"""The folders with modules, and the package of each."""
CORE = "acep/native/src/"
SUFFIXES = {".cpp", ".hpp", ".cmake", ".java", ".txt", ".py"}
DIGITS = 12
RUN_BY_ALL = ("acep.matching.api",)
"""The code that runs in each experiment, whatever it imports: ``acep.match`` and ``acep.Matcher``."""
WRITE_PAGES = {
    *("experiments.ages", "experiments.charts", "experiments.measured_code", "experiments.results"),
    "acep.serving.history_drawing",
}
"""The code that writes pages, and draws for a live page: no figure depends on it."""
PAGES = {
    "ablation": ("experiments.overload.ablation",),
    "automata": ("experiments.automata",),
    "bench": ("experiments.bench",),
    "by_time": ("experiments.overload.by_time",),
    "device": ("experiments.device", "acep.cli.follow"),
    "disorder": ("experiments.disorder",),
    "drift": ("experiments.overload.drift",),
    "exact": ("experiments.commits.__main__", "experiments/commits/"),
    "first_batch": ("experiments.spark.first_batch",),
    "frames": ("experiments.frames",),
    "generalisation": ("experiments.overload.generalise",),
    "keys": ("experiments.spark.keys",),
    "long_run": ("experiments.spark.long_run",),
    "match_windows": ("experiments.gain",),
    "memory": ("experiments.memory",),
    "overhead": ("experiments.overload.overhead",),
    "peers": ("experiments.peers.__main__", "experiments/peers/"),
    "profiles": ("experiments.profile",),
    "proxy": ("experiments.overload.proxy",),
    "recall": ("experiments.overload.recall",),
    "recall_by_errors": ("experiments.overload.sweeps",),
    "recall_by_memory": ("experiments.overload.sketched",),
    "recall_by_rate": ("experiments.overload.sweeps",),
    "recall_by_window": ("experiments.overload.sweeps",),
    "row_patterns": ("experiments.row_patterns.__main__", "experiments/row_patterns/", "experiments/peers/java/"),
    "shedding": ("experiments.spark.shedding",),
    "single_events": ("experiments.spark.single_events",),
    "spark": ("experiments.spark.__main__",),
    "units": ("experiments.spark.units",),
    "workloads": ("experiments.overload.survey",),
}
"""The module that writes each page, and what it starts in processes of its own: a module, or a folder."""

CPP_PARTS = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)

PYTHON_PARTS = re.compile(
    r"#[^\n]*"
    r'|(?:\b[BFRUbfru]{1,2})?(?:"""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*")'
    r"|(?:\b[BFRUbfru]{1,2})?(?:'''(?:[^'\\]|\\.|'(?!''))*'''|'(?:[^'\\\n]|\\.)*')",
    re.DOTALL,
)
"""The comments and texts of a Python source: its tokens take ten times as long."""


def read_sources(root: Path = ROOT) -> dict[str, bytes]:
    """Read all source files that any page may depend on, as they are now."""
    files = sorted(file for folder in FOLDERS for file in (root / folder).rglob("*") if file.suffix in SUFFIXES)
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in files}


def digest_files(sources: Sources) -> str:
    """Return a short digest of the text of all files."""
    return _digest({name: sha256(text.hex().encode()).hexdigest() for name, text in sources.items()})


def digest_code(page: str, sources: Sources) -> str:
    """Return a short digest of the code that a page measures, without comments and docstrings. A page that is not in
    :data:`PAGES` measures everything."""
    return _digest({name: _digest_file(name, sources[name]) for name in measured_files(page, sources)})


def measured_files(page: str, sources: Sources) -> list[str]:
    """Return the files that a page measures: the modules that write it and those that they import, inside functions
    too, with what these import, and so on; and the sources of the native core."""
    modules = {_module(name): name for name in sources if name.endswith(".py")}
    if page not in PAGES:
        return sorted(sources)
    pending, reached = [*PAGES[page], *RUN_BY_ALL], set[str]()
    while pending:
        module = pending.pop()
        # The front page only hands on what is asked of it, and its parts import each other by their full names.
        if module in modules and module not in reached and module not in WRITE_PAGES and module != "acep":
            reached.add(module)
            pending += _imports(module, modules[module].endswith("/__init__.py"), sources[modules[module]])
    folders = (CORE, *(folder for folder in PAGES[page] if folder.endswith("/")))
    return sorted({modules[module] for module in reached} | {name for name in sources if name.startswith(folders)})


def _digest(digests: Mapping[str, str]) -> str:
    """Return the digest of files, by the digest of each."""
    lines = (f"{name} {digest}\n" for name, digest in sorted(digests.items()))
    return sha256("".join(lines).encode()).hexdigest()[:DIGITS]


@cache
def _digest_file(name: str, text: bytes) -> str:
    return sha256(_code(name, text).encode()).hexdigest()


@cache
def _module(name: str) -> str:
    folder, _, inside = name.partition("/")
    parts = inside.removesuffix(".py").split("/")
    return ".".join([FOLDERS[folder], *(part for part in parts if part != "__init__")])


class _Summary(NamedTuple):
    """The parts of a Python source that count here: what it imports to run, as (dots, module, names); the names that it
    takes of ``acep``; and the first and last lines of its docstrings."""

    imports: tuple[tuple[int, str, tuple[str, ...]], ...]
    names: frozenset[str]
    docstrings: tuple[tuple[int, int], ...]


@cache
def _summarize(text: bytes) -> _Summary:
    imports, names, docstrings = list[tuple[int, str, tuple[str, ...]]](), set[str](), list[tuple[int, int]]()
    pending: list[tuple[ast.AST, bool]] = [(ast.parse(text), True)]
    while pending:
        node, does_run = pending.pop()
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                does_run = False
            case ast.Import() if does_run:
                imports += ((0, alias.name, ()) for alias in node.names)
            case ast.ImportFrom() if does_run:
                imports.append((node.level, node.module or "", tuple(alias.name for alias in node.names)))
            case ast.Attribute(value=ast.Name(id="acep")) if does_run:
                names.add(node.attr)
            case ast.Expr(value=ast.Constant(value=str())):  # of modules, classes, functions and values
                docstrings.append((node.lineno, node.end_lineno or node.lineno))
        pending += ((child, does_run) for child in ast.iter_child_nodes(node))
    return _Summary(tuple(imports), frozenset(names), tuple(docstrings))


@cache
def _imports(module: str, is_package: bool, text: bytes) -> tuple[str, ...]:
    """Return the full names of what a module imports to run, and of the packages that these are in."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    summary = _summarize(text)
    imported = [_home(name) for name in summary.names]
    for level, name, parts_of_it in summary.imports:
        start = package[: len(package) - level + 1] if level else []
        source = ".".join([*start, *filter(None, [name])])
        imported += (source, *(f"{source}.{part}" for part in parts_of_it))
    parts = [name.split(".") for name in (*imported, module)]
    return tuple(dict.fromkeys(".".join(part[:size]) for part in parts for size in range(1, len(part) + 1)))


def _home(name: str) -> str:
    """Return the module of a name of the front page, such as ``acep.tune``."""
    import acep

    return acep._WHERE.get(name, f"acep.{name}")


def _code(name: str, text: bytes) -> str:
    r"""Return the lines of a source without comments, docstrings, blank lines and blanks at their ends.

    >>> _code("a.py", b"'Say it.'\n\n# why\nx = '#'  # what\n")
    "x = '#'"
    >>> _code("a.cpp", b'int x = 1;  // what\n/* why\n*/ auto y = "//";')
    'int x = 1;\n auto y = "//";'
    """
    lines = text.decode().splitlines()
    if name.endswith(".py"):
        lines = _drop_comments(text.decode(), _summarize(text).docstrings)
    elif name.endswith((".cpp", ".hpp", ".java")):
        lines = CPP_PARTS.sub(lambda part: part[0] if part[0][0] == '"' else "", text.decode()).splitlines()
    return "\n".join(line for line in map(str.rstrip, lines) if line)


def _drop_comments(text: str, docstrings: Iterable[tuple[int, int]]) -> list[str]:
    lines = PYTHON_PARTS.sub(lambda part: "" if part[0][0] == "#" else part[0], text).splitlines()
    for first, last in docstrings:
        lines[first - 1 : last] = [""] * (last - first + 1)
    return lines

"""Runs what the pages beside docs/ and below it show: every ``python`` block and every ``console`` command. Names and
paths lead somewhere, on pages and in source files.

The blocks of a page run in order, in one folder and, for Python, in one namespace, as a reader would run them. A
``python`` block with ``>>>`` is a doctest; any other runs as it is. A line ``$ command`` of a ``console`` block is run
by the shell and must succeed; the lines below it, if any, are what it prints, with ``...`` for what may differ.
``examples/`` is there to read. A block marked ``no-run`` is left out, and its first line is a comment that says why.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.dotted_names import lost_names, lost_paths

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("**/*.md"))]
RUN = ("python", "console")
# Under these names a block would look runnable and yet be run by nobody.
UNTESTED = ("py", "python3", "pycon", "sh", "bash", "shell", "shell-session")
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)``` *$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, the words after it, the line of its fence, and its text."""

    language: str
    words: tuple[str, ...]
    line: int
    text: str

    @property
    def runs(self) -> bool:
        return self.language in RUN and "no-run" not in self.words


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for fence in FENCE.finditer(text):
        indent = len(fence["indent"])
        body = "".join(line[indent:] or "\n" for line in fence["body"].splitlines(keepends=True))
        language, *words = fence["info"].split() or [""]
        yield Block(language, tuple(words), text.count("\n", 0, fence.start()) + 1, body)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """(command, what it prints) of a console block; a command goes on after a backslash at the end of a line."""
    for piece in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, printed = re.sub(r"\\\n> ", "\\\n", piece).partition("\n")
        while command.endswith("\\"):
            more, _, printed = printed.partition("\n")
            command = f"{command[:-1]}{more}"
        yield command, printed


def run_python(block: Block, names: dict[str, Any], page: Path) -> None:
    if ">>>" not in block.text:
        code = compile("\n" * block.line + block.text, str(page), "exec")
        exec(code, names)  # noqa: S102 - the documentation is ours, and running it is the test
        return
    told: list[str] = []
    test = doctest.DocTestParser().get_doctest(block.text, names, page.name, str(page), block.line)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=told.append, clear_globs=False)
    names.update(test.globs)
    assert not told, "".join(told)


def run_console(block: Block) -> None:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    assert block.text.startswith("$ "), f"line {block.line}: a console block begins with `$ `"
    for command, printed in commands(block.text):
        done = subprocess.run(
            ["bash", "-c", command],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": path},
        )
        assert done.returncode == 0, f"line {block.line}: {command}\n{done.stdout}{done.stderr}"
        if printed.strip():
            same = doctest.OutputChecker().check_output(printed, done.stdout, FLAGS)
            assert same, f"line {block.line}: {command}\nexpected:\n{printed}\nprinted:\n{done.stdout}"


def told(page: Path) -> str:
    return page.resolve().relative_to(ROOT).as_posix()


def uses_spark(page: Path) -> bool:
    return any(block.runs and "spark" in block.text for block in blocks(page))


LONG = ("docs/reference/command_line.md", "docs/howto/tuning.md", "docs/howto/plots.md")
"""Pages that take ten seconds and more, though they do not use Spark."""


def marks_of(page: Path) -> list[pytest.MarkDecorator]:
    if uses_spark(page):
        return [pytest.mark.spark, pytest.mark.long]
    return [pytest.mark.long] if told(page) in LONG else []


PARAMS = [pytest.param(page, id=told(page), marks=marks_of(page)) for page in PAGES]


@pytest.mark.parametrize("page", PARAMS)
def test_what_a_page_shows_works(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.runs and block.language == "python":
            run_python(block, names, page)
        elif block.runs:
            run_console(block)


@pytest.mark.parametrize("page", PAGES, ids=told)
def test_no_block_escapes_without_a_reason(page: Path) -> None:
    assert page.read_text(encoding="utf-8").count("```") == 2 * len(list(blocks(page))), "a fence is not closed"
    for block in blocks(page):
        assert block.language not in UNTESTED, f"line {block.line}: write `python` or `console`, which are run"
        if "no-run" in block.words:
            assert re.match(r"# \w+", block.text), f"line {block.line}: a block that is not run says why, in a comment"


@pytest.mark.parametrize("page", PAGES, ids=told)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    lost = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    assert not lost


# Names and paths in source files --------------------------------------------------------------------

SOURCE_FOLDERS = ("acep", "learning", "sketches", "experiments")
SOURCE_FILES = (".py", ".pyi", ".cpp", ".hpp")
NOT_HERE = {
    "acep/native/src/python/module.cpp": {"digest.hpp"},  # which the build writes
    "acep/spark/workers/frozen_objects.py": {"pyspark/daemon.py"},  # of Spark
    "experiments/measured_code.py": {"a.py", "a.cpp"},  # of an example
    "pyproject.toml": {"wheel.py"},  # of scikit-build-core
}


@cache
def source_texts() -> dict[str, str]:
    """The texts of the source files of the package and of experiments, and of pyproject.toml, by path."""
    files = [file for folder in SOURCE_FOLDERS for file in (ROOT / folder).rglob("*") if file.suffix in SOURCE_FILES]
    return {
        file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8")
        for file in (*files, ROOT / "pyproject.toml")
    }


def test_dotted_names_in_sources_lead_somewhere() -> None:
    lost = [(path, *name) for path, text in source_texts().items() for name in lost_names(text)]
    assert lost == []


def test_paths_in_sources_lead_somewhere() -> None:
    paths = defaultdict(list)
    for path in (*source_texts(), *(file.relative_to(ROOT).as_posix() for file in (ROOT / "tests").rglob("*.py"))):
        paths[path.rpartition("/")[2]].append(path)
    lost = [(source, *path) for source, text in source_texts().items() for path in lost_paths(text, paths)]
    assert [place for place in lost if place[2] not in NOT_HERE.get(place[0], ())] == []


@pytest.mark.parametrize(
    ("name", "leads_somewhere"),
    [
        ("acep.errors.DataError", True),
        ("acep.learning.estimation.recall.SampledUnits.add_rows", True),
        ("acep.learning.estimation.recall.SampledUnits.span", True),
        ("learning.estimation.recall", True),
        ("acep.native._native.Session.push", True),
        ("acep.learning.estimation.recall.Seen", False),
        ("acep.learning.estimation.recall.SampledUnits.then", False),
        ("acep.learning.shedding_table.Orders.for_core", False),
        ("acep.learning.estimation.recalls", False),
        ("acep.native._native.Session.rest", False),
    ],
)
def test_which_dotted_names_lead_somewhere(name: str, leads_somewhere: bool) -> None:
    assert [lost for _, lost in lost_names(f"see {name}.")] == ([] if leads_somewhere else [name])


def test_which_paths_lead_somewhere() -> None:
    paths = {"a.py": ["x/b/a.py"], "c.hpp": ["x/c.hpp"]}
    text = "a.py, b/a.py,\nc/a.py and ./x/b/a.py (c.hpp, d.hpp); {x}/e.py"
    assert [*lost_paths(text, paths)] == [(2, "c/a.py"), (2, "d.hpp")]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site and GitHub make them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=told)
def test_links_lead_to_headings(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)", text)
    pages = [(page.parent / path if path else page, anchor) for path, anchor in links]
    assert [f"{told(to)}#{anchor}" for to, anchor in pages if anchor not in anchors(to)] == []


def test_blocks_are_found_and_run(tmp_path: Path) -> None:
    """The reader of pages reads: a test that runs nothing would pass."""
    page = tmp_path / "page.md"
    page.write_text(
        "- a list\n\n  ```python\n  x = 1\n\n  y = 2\n  ```\n\n```console\n$ echo a \\\n  b\na b\n$ true\n```\n"
    )
    first, second = blocks(page)
    assert (first.language, first.line, first.text) == ("python", 3, "x = 1\n\ny = 2\n")
    assert list(commands(second.text)) == [("echo a   b", "a b\n"), ("true", "")]
    run_console(second)
    with pytest.raises(AssertionError, match="expected"):
        run_console(Block("console", (), 1, "$ echo a\nb\n"))
    with pytest.raises(AssertionError, match="Expected"):
        run_python(Block("python", (), 1, ">>> 1 + 1\n3\n"), {}, page)
    with pytest.raises(ZeroDivisionError):
        run_python(Block("python", (), 1, "1 / 0\n"), {}, page)

"""The files and names of CONTRIBUTING.md exist; tests/test_docs.py runs its code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.test_imports import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILE = r"`([\w./]*[\w]\.\w+)`"
# "`NAME` in `FILE`", and rows of tables that end with a name and a file.
NAMED = [
    *re.findall(rf"`([\w.:]+)` (?:and `[\w.:]+` )?in {FILE}", TEXT),
    *re.findall(rf"^ *\|[^|]*\| `([\w.:]+)` \| {FILE} \|$", TEXT, re.MULTILINE),
]
TO_BE_MADE = set(re.findall(rf"a new file {FILE}", TEXT))
PATHS = {path for path in re.findall(r"`([\w.]+/[\w./]*)`", TEXT) if not path.startswith(("build/", "re:"))}


def names(tree: ast.AST, prefix: str = "") -> Iterator[str]:
    """Yield the functions, classes and values of a module, those of classes as ``Class.function``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from names(node, f"{node.name}.")
        if isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def test_the_page_names_enough() -> None:
    assert len(NAMED) > 25
    assert len(PATHS) > 30
    assert len(TO_BE_MADE) > 3


@pytest.mark.parametrize(("name", "file"), NAMED, ids=[f"{file}-{name}" for name, file in NAMED])
def test_a_name_is_in_its_file(name: str, file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    if file.endswith(".py"):
        assert name in set(names(ast.parse(text)))
    else:
        assert re.search(rf"\b{name}\(", text)


SHARES = {"a twentieth": 0.05, "a fiftieth": 0.02, "a tenth": 0.1}


def shares_of_cases() -> dict[str, dict[str, float]]:
    """The share of the cases that each step of each tier tries: what the step says in .ci/run, or else the Makefile."""
    makefile, steps = ((ROOT / file).read_text(encoding="utf-8") for file in ("Makefile", ".ci/run"))
    usual = {
        name: float(share)
        for name, recipe in re.findall(r"^([\w-]+): (.*(?:\n\t.*)*)", makefile, re.MULTILINE)
        for share in re.findall(r"\$\(or \$\(ACEP_CASES\),([\d.]+)\)", recipe)
    }
    whole, gate = re.findall(r"= all \]; then\n((?:    .*\n)+)else\n((?:    .*\n)+)fi\nstep demo", steps)[0]
    return {
        tier: {
            name: float(share or usual[name])
            for name, share in re.findall(r"^    step ([\w-]+)(?: .*?ACEP_CASES=([\d.]+))?", text, re.MULTILINE)
            if share or name in usual
        }
        for tier, text in (("gate", gate), ("whole", whole))
    }


def test_the_shares_of_cases_are_those_of_the_commands() -> None:
    shares = shares_of_cases()
    spoken = re.search(r"run (a \w+) of the cases of each random test, the sanitizers (a \w+)", " ".join(TEXT.split()))
    assert spoken is not None
    usual, sanitized = (SHARES[words] for words in spoken.groups())
    assert shares["gate"] == {"test-gate": usual, "test-lower-bounds": usual, "sanitize": sanitized}
    page = " ".join((ROOT / "docs/internals/tests.md").read_text(encoding="utf-8").split())
    assert f"{spoken[1]} of the cases of each random test, the sanitizers {spoken[2]} |" in page
    assert "the sanitizers with five times the cases" in page
    assert shares["whole"] == {"test-whole": 1, "test-lower-bounds": usual, "sanitize": pytest.approx(5 * sanitized)}


def test_files_exist_unless_a_recipe_makes_them() -> None:
    assert sorted(path for path in PATHS - TO_BE_MADE if not (ROOT / path).exists()) == []
    assert sorted(path for path in TO_BE_MADE if (ROOT / path).exists()) == []


def test_tests_that_the_page_runs_exist() -> None:
    run = [path for line in TEXT.splitlines() if "-m pytest" in line for path in re.findall(r"[\w.]+/[\w/.]+", line)]
    run = [path for path in run if path != ".venv/bin/python"]
    assert len(run) > 15
    assert [path for path in run if not (ROOT / path).exists()] == []

"""Random tests take the number of their cases from ``ACEP_CASES``, and from nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import pytest

from tests.source_trees import ROOT, ParsedFile, read_once, whole_source

FEW = 20  # so many cases may always be tried
# Tests that need all their seeds for what they assert, which is of all of them together.
STATISTICS = {
    "streaming/test_event_choice.py": "the mean of estimates is the true number",
    "learning/test_experts.py": "the share of each draw",
    "spark/test_bucket_rows.py": "memory does not grow with what comes",
    "test_random.py": "half of the cases have matches",
    "native/test_order.py": "most trails are out of order",
    "test_automata.py": "some streams have matches",
}


def is_range_of_numbers(node: ast.AST) -> bool:
    """Whether this is ``range`` of written numbers, and of more than ``FEW``."""
    match node:
        case ast.Call(func=ast.Name(id="range"), args=arguments) if all(isinstance(a, ast.Constant) for a in arguments):
            return len(range(*(a.value for a in arguments if isinstance(a, ast.Constant)))) > FEW  # type: ignore[arg-type]
    return False


def is_count(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="cases" | "CASES")):
            return True
    return False


def sums_that_are_no_floors(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the end of ``range(1_000, 1_000 + cases(60))``, and what ``expect`` wants of all cases."""
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[start, ast.BinOp(left=left) as end]):
            if ast.dump(start) == ast.dump(left):
                yield end
        case ast.Call(func=ast.Attribute(attr="expect"), keywords=keywords):
            yield from (keyword.value for keyword in keywords)


LOOPS_AND_SUMS = (ast.For, ast.comprehension, ast.Call, ast.BinOp)


def breaches(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """Yield the lines that draw from a fixed number of seeds, or from more than ``cases`` says."""
    candidates = [node for node in nodes if isinstance(node, LOOPS_AND_SUMS)]
    may_be_more = {count for node in candidates for count in sums_that_are_no_floors(node)}
    for node in candidates:
        match node:
            case (
                ast.For(target=ast.Name(id="seed"), iter=seeds)
                | ast.comprehension(target=ast.Name(id="seed"), iter=seeds)
            ):
                if is_range_of_numbers(seeds):
                    yield seeds.lineno
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[ast.Constant(value="seed"), seeds]):
                if is_range_of_numbers(seeds):
                    yield seeds.lineno
            case (
                ast.BinOp(left=ast.Constant(), op=ast.Add(), right=count)
                | ast.BinOp(left=count, op=ast.Add(), right=ast.Constant())
            ):
                if is_count(count) and node not in may_be_more:
                    yield node.lineno
            case ast.Call(func=ast.Name(id="max"), args=arguments):
                if any(map(is_count, arguments)):
                    yield node.lineno


@read_once("tests")
def breaches_of_file(file: ParsedFile) -> list[int]:
    return [*breaches(file.nodes)]


@whole_source
def test_random_tests_follow_the_number_of_cases() -> None:
    folder = ROOT / "tests"
    lines = {path.relative_to(folder).as_posix(): breaches_of_file(path) for path in folder.rglob("*.py")}
    places = [f"tests/{file}:{line}" for file in sorted(lines.keys() - STATISTICS) for line in lines[file]]
    assert not places, "take the number of seeds from cases(...), without a least one: " + ", ".join(places)
    obsolete = [file for file in STATISTICS if not lines.get(file)]
    assert not obsolete, f"these follow the number of cases: {obsolete}"


@pytest.mark.parametrize(
    ("source", "is_breach"),
    [
        ("for seed in range(300): pass", True),
        ("for seed in range(1, 300): pass", True),
        ("for seed in range(3): pass", False),
        ("for seed in range(cases(300)): pass", False),
        ("for seed in range(part * 300, part * 300 + cases(300)): pass", False),
        ("[seed for seed in range(300)]", True),
        ("@pytest.mark.parametrize('seed', range(300))\ndef f(): pass", True),
        ("@pytest.mark.parametrize('seed', range(CASES(300)))\ndef f(): pass", False),
        ("for seed in range(1000, 1000 + cases(300)): pass", False),
        ("for seed in range(0, 1000 + cases(300)): pass", True),
        ("cases.expect(seen, 'met', least=cases(300) + 1)", False),
        ("n = 60 + cases(240)", True),
        ("n = cases(5) + 3", True),
        ("n = max(10, cases(5))", True),
        ("n = max(rows, 5)", False),
    ],
)
def test_breaches_of_small_sources(source: str, is_breach: bool) -> None:
    assert bool([*breaches(ast.walk(ast.parse(source)))]) == is_breach

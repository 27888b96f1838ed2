"""What random tests say when they fail: the helper finds a difference, shrinks its input, and names both answers."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path
from random import Random
from textwrap import indent
from types import SimpleNamespace
from typing import Any

import pytest

import acep
from tests import complaints
from tests.complaints import (
    fail_if_different,
    fail_if_different_on_rows,
    fail_if_wrong,
    fail_if_wrong_on_rows,
)
from tests.drawn_values import drawn_values
from tests.random_cases import Case, random_case
from tests.source_trees import ParsedFile, read_once, whole_source


def types_of(case: Case) -> list[str]:
    return [row["type"] for row in case.events]


def types_but_c(case: Case) -> list[str]:
    return [name for name in types_of(case) if name != "C"]


def case_with_c() -> Case:
    return next(case for case in map(random_case, range(100)) if types_of(case).count("C") > 1 and not case.letters)


def test_equal_answers_are_no_failure() -> None:
    fail_if_different(case_with_c(), types_of, types_of)
    fail_if_wrong(case_with_c(), lambda _: "")
    fail_if_different_on_rows([{"x": 1}], "", len, len)
    fail_if_wrong_on_rows([{"x": 1}], "", lambda _: "")


def test_a_different_answer_is_shown_with_its_shrunk_case() -> None:
    with pytest.raises(pytest.fail.Exception) as failure:
        fail_if_different(case_with_c(), types_but_c, types_of, ("without C", "all"))
    text = str(failure.value)
    assert "[[case]]" in text
    assert text.endswith("# all only: 'C'")
    assert text.partition('events = """')[2].count("C0") == 1
    assert "C1" not in text


def test_needed_rows_are_shown() -> None:
    rows = [{"ts": ts, "x": ts % 7} for ts in range(50)]

    def largest_sum(some_rows: list[Any]) -> int:
        return max((row["x"] for row in some_rows), default=0)

    with pytest.raises(pytest.fail.Exception) as failure:
        fail_if_different_on_rows(rows, "PATTERN A a", largest_sum, lambda fewer: min(largest_sum(fewer), 5))
    assert str(failure.value) == "PATTERN A a\nts x\n48 6\n# found: 6\n# wanted: 5"


def test_an_exception_says_its_shrunk_input_and_ends_no_shrinking() -> None:
    def refuse(case: Case) -> str:
        if len(case.events) < 3:
            raise ValueError("too few")
        return "wrong"

    case = case_with_c()
    with pytest.raises(pytest.fail.Exception) as failure:
        fail_if_wrong(case, refuse)
    assert str(failure.value).endswith("\n# wrong")
    assert events_shown(str(failure.value)) == 3
    with pytest.raises(ValueError, match="too few") as error:
        fail_if_wrong(Case(1, False, case.text, {}, case.events[:2]), refuse)
    assert error.value.__notes__[0].startswith("# seed 1\n[[case]]")
    assert events_shown(error.value.__notes__[0]) == 0
    with pytest.raises(ZeroDivisionError) as division:
        fail_if_wrong_on_rows([{"x": 1}, {"x": 0}], "title", lambda rows: str([1 // row["x"] for row in rows][2:]))
    assert division.value.__notes__ == ["title\nx\n0"]


def events_shown(text: str) -> int:
    """How many events a printed case has."""
    events = tomllib.loads(text)["case"][0]["events"]
    return len(events.strip().splitlines()) - 1 if events else 0


def test_what_is_asserted_is_a_complaint() -> None:
    def check(case: Case) -> None:
        assert types_of(case)
        assert "C" not in types_of(case), "no C is wanted"

    with pytest.raises(pytest.fail.Exception) as failure:
        fail_if_wrong(case_with_c(), check)
    assert "\n# test_complaints.py, line " in str(failure.value)
    assert ": no C is wanted" in str(failure.value)
    assert events_shown(str(failure.value)) == 1


def test_a_smaller_case_fails_in_the_same_way() -> None:
    """Without rows it fails, too, in another way: that is not what is looked for."""

    def complaint_of(rows: list[Any]) -> str:
        return "found only: 'a'" if len(rows) > 2 else f"wanted only: {len(rows)}"

    def check(rows: list[Any]) -> None:
        assert len(rows) > 2
        assert len(rows) > 9

    for wrong in (complaint_of, check):
        with pytest.raises(pytest.fail.Exception, match="x\n1\n1\n1\n# "):
            fail_if_wrong_on_rows([{"x": 1}] * 5, "", wrong)


def test_shrinking_ends_after_a_time_and_some_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Counter[int]()

    def count(rows: list[Any]) -> str:
        runs[len(rows)] += 1
        return "wrong"

    monkeypatch.setattr(complaints, "SECONDS", -1.0)
    with pytest.raises(pytest.fail.Exception, match="x\n1\n2\n# wrong"):
        fail_if_wrong_on_rows([{"x": 1}, {"x": 2}], "", count)
    assert runs == {2: 2}
    monkeypatch.setattr(complaints, "SECONDS", 60.0)
    monkeypatch.setattr(complaints, "RUNS", 3)
    with pytest.raises(pytest.fail.Exception, match="wrong"):
        fail_if_wrong_on_rows([{"x": 1}] * 1000, "", lambda rows: count(rows) if len(rows) == 1000 else "")
    assert runs.total() == 2 + 2


def test_what_fails_only_once_is_said_to() -> None:
    answers = iter(["wrong", ""])
    with pytest.raises(pytest.fail.Exception) as failure:
        fail_if_wrong_on_rows([{"x": 1}], "title", lambda _: next(answers, ""))
    assert str(failure.value) == "title\nx\n1\n# When it was run again, it did not fail.\n# wrong"


# Values that were drawn


def test_a_random_test_that_fails_says_what_it_had_drawn() -> None:
    def check(rows: list[dict[str, Any]], query: Any) -> None:
        assert query is None, rows

    def draw_and_check() -> None:
        for seed in range(3, 9):
            rng = Random(seed)
            text, wide = "PATTERN A a", {"x": object()}
            check([{"ts": rng.randint(seed, seed), "wide": None} for _ in range(50)], acep.parse(text))
            raise AssertionError(wide)

    with pytest.raises(AssertionError) as failure:
        draw_and_check()
    lines = drawn_values(failure.value).splitlines()
    assert lines[:5] == ["seed = 3", "text = PATTERN A a", "rows:", "ts wide", "3  -"]
    assert lines[-2:] == ["... (50 rows)", f"query = {acep.parse('PATTERN A a')}"]
    assert len(lines) == 4 + 40 + 2


def test_a_value_that_cannot_be_shown_is_left_out() -> None:
    class Broken:
        @property
        def text(self) -> str:
            raise ValueError("no text")

    def draw_and_check() -> None:
        for seed in range(3, 5):
            broken, columns = Broken(), {1: [seed]}
            assert not columns, broken

    with pytest.raises(AssertionError) as failure:
        draw_and_check()
    assert drawn_values(failure.value) == "seed = 3"


def test_a_test_that_draws_nothing_says_nothing() -> None:
    text = "PATTERN A a"
    with pytest.raises(AssertionError) as failure:
        assert not text
    assert drawn_values(failure.value) == ""


def test_the_report_of_a_random_test_has_what_it_had_drawn(pytestconfig: pytest.Config) -> None:
    (conftest,) = [
        plugin
        for plugin in pytestconfig.pluginmanager.get_plugins()
        if getattr(plugin, "__file__", None) == str(Path(__file__).with_name("conftest.py"))
    ]
    sections: list[tuple[str, ...]] = []
    call = conftest.pytest_runtest_call(SimpleNamespace(add_report_section=lambda *section: sections.append(section)))
    next(call)
    with pytest.raises(AssertionError) as failure:
        check_drawn(5)
    with pytest.raises(AssertionError):
        call.throw(failure.value)
    assert sections == [("call", "values drawn in the", "seed = 5")]


def check_drawn(seed: int) -> None:
    assert seed == 4


@whole_source
def test_each_random_loop_names_what_it_drew() -> None:
    """A function that draws in a loop and asserts shrinks what it drew, or has a seed, a generator, or ``cases``."""
    assert [name for path in sorted(Path(__file__).parent.rglob("*.py")) for name in unnamed_draws(path)] == []


@read_once("tests")
def unnamed_draws(file: ParsedFile) -> list[str]:
    if not any(name in file.text for name in DRAWING):
        return []
    return [
        f"{file.path.name}: {function.name}"
        for function in file.nodes
        if isinstance(function, ast.FunctionDef) and draws_unseen(function)
    ]


def draws_unseen(function: ast.FunctionDef) -> bool:
    """Whether a function draws and asserts in a loop without a variable that ``drawn_values`` sees."""
    nodes = [*ast.walk(function)]
    in_loops = [node for loop in nodes if isinstance(loop, ast.For) for node in ast.walk(loop)]
    if not any(isinstance(node, ast.Assert) for node in in_loops) or not any(map(draws, in_loops)):
        return False
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    assigned = [node.value for node in nodes if isinstance(node, ast.Assign)]
    values = [part for value in assigned for part in (value.elts if isinstance(value, ast.Tuple) else [value])]
    return not names & {"seed", "cases", "case"} and not any(map(begins_to_draw, values))


def draws(node: ast.AST) -> bool:
    """Whether something is drawn that is not the same each time."""
    return called(node) in DRAWING and not all(isinstance(part, ast.Constant) for part in node.args)  # type: ignore[attr-defined]


def begins_to_draw(node: ast.AST) -> bool:
    return called(node) in GENERATORS


def called(node: ast.AST) -> str:
    """The name of a function that is called, without that of its module."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


GENERATORS = {"Random", "default_rng"}
DRAWING = GENERATORS | {"random_automaton", "random_case", "random_rows"}


@pytest.mark.parametrize(
    ("body", "unseen"),
    [
        ("for n in range(9):\n  assert run(random_case(n))", True),
        ("for seed in range(9):\n  assert run(random_case(seed))", False),
        ("for n in range(9):\n  rng = Random(n)\n  assert run(rng)", False),
        ("for n in range(9):\n  assert run(Random(3))", False),
        ("for n in range(9):\n  fail_if_wrong(random_case(n), run)", False),
    ],
)
def test_a_loop_that_names_nothing_is_seen(body: str, unseen: bool) -> None:
    (function,) = ast.parse("def test():\n" + indent(body, "  ")).body
    assert isinstance(function, ast.FunctionDef)
    assert draws_unseen(function) is unseen

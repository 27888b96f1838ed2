"""What random tests say when they fail: the helper finds a difference, shrinks its input, and names both answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests import complaints
from tests.complaints import (
    fail_if_different,
    fail_if_different_on_rows,
    fail_if_wrong,
    fail_if_wrong_on_rows,
)
from tests.random_cases import Case, random_case


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
    assert text.endswith("all only: 'C'")
    assert text.partition('events = """')[2].count("C0") == 1
    assert "C1" not in text


def test_needed_rows_are_shown() -> None:
    rows = [{"ts": ts, "x": ts % 7} for ts in range(50)]

    def largest_sum(some_rows: list[Any]) -> int:
        return max((row["x"] for row in some_rows), default=0)

    with pytest.raises(pytest.fail.Exception) as failure:
        fail_if_different_on_rows(rows, "PATTERN A a", largest_sum, lambda fewer: min(largest_sum(fewer), 5))
    assert str(failure.value) == "PATTERN A a\nts x\n48 6\n\nfound: 6\nwanted: 5"


def test_an_exception_says_its_input_and_ends_no_shrinking() -> None:
    def refuse(case: Case) -> str:
        if len(case.events) < 3:
            raise ValueError("too few")
        return "wrong"

    case = case_with_c()
    with pytest.raises(pytest.fail.Exception) as failure:
        fail_if_wrong(case, refuse)
    assert str(failure.value).endswith("\n\nwrong")
    with pytest.raises(ValueError, match="too few") as error:
        fail_if_wrong(Case(1, False, case.text, {}, case.events[:2]), refuse)
    assert error.value.__notes__[0].startswith("# seed 1\n[[case]]")
    with pytest.raises(ZeroDivisionError) as division:
        fail_if_wrong_on_rows([{"x": 0}], "title", lambda rows: str(1 // rows[0]["x"]))
    assert division.value.__notes__ == ["title\nx\n0"]


def test_shrinking_ends_after_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complaints, "SECONDS", -1.0)
    with pytest.raises(pytest.fail.Exception, match="x\n1\n2\n\nwrong"):
        fail_if_wrong_on_rows([{"x": 1}, {"x": 2}], "", lambda _: "wrong")

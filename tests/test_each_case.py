"""A test of many cases tries all of them, and names each that fails."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.each_case import by_file, try_each


@dataclass(frozen=True)
class NumberCase:
    """A number in a file."""

    file: str
    number: int

    @property
    def id(self) -> str:
        return f"{self.file}:{self.number}"


def test_each_case_that_fails_is_named_with_its_error() -> None:
    tried = []

    def check(number: int) -> None:
        tried.append(number)
        assert number != 2
        if number == 3:
            pytest.fail("three")

    with pytest.raises(ExceptionGroup, match="2 of 4 cases failed: two, three") as caught:
        try_each({"one": 1, "two": 2, "three": 3, "four": 4}, check)
    assert tried == [1, 2, 3, 4]
    assert [type(error) for error in caught.value.exceptions] == [AssertionError, AssertionError]
    assert [error.__notes__ for error in caught.value.exceptions] == [["in the case two"], ["in the case three"]]


def test_a_case_that_skips_leaves_the_others() -> None:
    tried = []

    def check(number: int) -> None:
        if number == 1:
            pytest.skip("none")
        tried.append(number)
        assert number < 3

    with pytest.raises(pytest.skip.Exception, match="1 of 2 cases, such as one: none"):
        try_each({"one": 1, "two": 2}, check)
    assert tried == [2]
    with pytest.raises(ExceptionGroup, match="1 of 2 cases failed: three"):
        try_each({"one": 1, "three": 3}, check)


def test_a_test_of_a_case_is_one_of_each_file() -> None:
    tried = []

    @by_file([NumberCase("a", 1), NumberCase("b", 2), NumberCase("a", 3)])
    @pytest.mark.long
    def check(case: NumberCase, engine: str) -> None:
        tried.append((case.number, engine))
        assert case.number < 3

    marks = {mark.name: mark.args for mark in check.pytestmark}  # type: ignore[attr-defined]
    assert [*marks["parametrize"][1]] == ["a", "b"]
    assert "long" in marks
    check(file="b", engine="native")
    assert tried == [(2, "native")]
    with pytest.raises(ExceptionGroup, match="1 of 2 cases failed: a:3"):
        check(file="a", engine="native")

"""Texts that LIKE matches are those that a reading of its definition finds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random

import pytest

from acep.functions.like_patterns import compile_like


def is_like(text: str, pattern: str) -> bool:
    """Read the pattern character by character, trying all that a ``%`` may be."""

    @cache
    def rest_is_like(at: int, place: int) -> bool:
        if place == len(pattern):
            return at == len(text)
        character, width = pattern[place], 1
        if character == "%":
            return any(rest_is_like(begin, place + 1) for begin in range(at, len(text) + 1))
        if character == "\\" and place + 1 < len(pattern):
            character, width = pattern[place + 1], 2
        elif character == "_":
            return at < len(text) and rest_is_like(at + 1, place + 1)
        return at < len(text) and text[at] == character and rest_is_like(at + 1, place + width)

    return rest_is_like(0, 0)


def test_texts_match_as_the_definition_says(cases: Callable[[int], int]) -> None:
    rng, matched = Random(4), 0
    for _ in range(cases(20_000)):
        text = "".join(rng.choices("ab.\n%\\_*", k=rng.randrange(9)))
        pattern = "".join(rng.choices("ab.\n%%_\\*", k=rng.randrange(8)))
        matches = is_like(text, pattern)
        assert compile_like(pattern)(text) is matches, (text, pattern)
        matched += matches
    cases.expect({"matches": matched}, "matches", least=500)  # type: ignore[attr-defined]


@pytest.mark.parametrize("pattern", ["%a" * 12 + "%b", "%_a" * 12 + "%b", "%" + "a_" * 400 + "b%"])
def test_a_pattern_of_many_parts_does_not_hang(pattern: str) -> None:
    assert not compile_like(pattern)("a" * 4_000)

"""Groups of matches in columns: united by key and match point as by the definition, in any order and of any size."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from acep.events.batch import Column, column_of_values
from acep.matches.group_columns import Group, Groups, concatenate_groups, merge_groups
from acep.matches.rows_by_key import words_of_keys
from acep.plan.schema import Kind
from tests.case_counts import CASES

VALUES: dict[Kind, list[Any]] = {
    Kind.INT: [-(2**63), 2**63 - 1, 0, 6, None],
    Kind.FLOAT: [0.0, -0.0, 1e300, -2.5, None],
    Kind.STRING: ["x", "y", "zz", "", None],
    Kind.BOOL: [True, False, None],
}


def merged_one_by_one(groups: list[Group], apart: bool) -> list[Group]:
    """Groups with equal key and first match point as one, by the definition."""
    whole: dict[Any, Group] = {}
    for group in groups:
        place = (group.key, group.first, group.best if apart else None)
        before = whole.get(place, group._replace(matches=0))
        last, best = max(before.last, group.last), min(before.best, group.best)
        whole[place] = Group(before.key, group.first, last, before.matches + group.matches, best)
    return sorted(whole.values(), key=lambda group: group.first)


def drawn(random: Random) -> tuple[Groups, list[Group]]:
    """Random groups as columns, and the same as records."""
    rows, kinds = random.randrange(1, 60), [random.choice([*VALUES]) for _ in range(random.randrange(3))]
    keys = [[random.choice(VALUES[kind][: random.randint(1, 5)]) for _ in range(rows)] for kind in kinds]
    base, scale = random.choice((0, -(2**63), 2**63 - 100)), random.choice((1, 6))
    first = [base + random.randrange(random.choice((1, 5, 50))) for _ in range(rows)]
    first = sorted(first) if random.random() < 0.6 else first
    last = [time + random.randrange(4) for time in first]
    matches = [random.choice((1, 1, 2, -1, random.choice((1, 2**62)))) for _ in range(rows)]
    error = [random.randrange(8) for _ in range(rows)]
    columns = tuple(column_of_values(values, kind) for values, kind in zip(keys, kinds, strict=True))
    if random.random() < 0.3:  # a text may stand twice
        columns = tuple(
            Column(c.kind, c.values + len(c.texts), c.valid, [*c.texts, *c.texts]) if c.texts and i % 2 else c
            for i, c in enumerate(columns)
        )
    numbers = (np.array(values, np.int64) for values in (first, last, matches, error))
    key = [*zip(*keys, strict=True)] if keys else [()] * rows
    best = [Fraction(number, scale) for number in error]
    return Groups(columns, *numbers, scale), list(map(Group, key, first, last, matches, best))


def texts(groups: Any) -> list[str]:
    """The groups as texts, which tell 0.0 from -0.0 and True from 1."""
    return [str(group._replace(best=Fraction(group.best))) for group in groups]


@pytest.mark.parametrize("seed", range(CASES(60)))
def test_they_are_united_as_by_the_definition(seed: int) -> None:
    random = Random(seed)
    for _ in range(20):
        (groups, records), apart = drawn(random), random.random() < 0.3
        assert (texts(groups), len(groups)) == (texts(records), len(records))
        wanted = texts(merged_one_by_one(records, apart))
        for held in (
            groups,
            Groups.from_records(records),
            concatenate_groups([groups[:7], Groups.from_records(records[7:]), groups[:0]]),
        ):
            assert texts(merge_groups(held, apart=apart)) == wanted
        assert texts(concatenate_groups([groups[:3], groups[3:9], groups[9:]])) == texts(records)
        row = random.randrange(len(records))
        assert texts([groups[row], groups[row - len(records)]]) == texts([records[row]] * 2)


def test_sums_beyond_64_bits_are_exact() -> None:
    groups = Groups.from_records([])
    assert len(merge_groups(groups)) == len(concatenate_groups([groups, groups])) == 0
    time, matches = np.zeros(5, np.int64), np.full(5, 2**62)
    (group,) = merge_groups(Groups((), time, time, matches, time, 1))
    assert group.matches == 5 * 2**62
    (group,) = merge_groups(Groups((), time, time, np.array([2**70, 1, 2, 3, 4], object), time, 1))
    assert group.matches == 2**70 + 10


def test_a_table_of_texts_with_more_texts_than_rows_is_not_numbered_whole() -> None:
    class Texts(list[str]):
        """Texts that count how many of them are read."""

        reads = 0

        def __getitem__(self, place: Any) -> Any:
            Texts.reads += 1
            return super().__getitem__(place)

        def __iter__(self) -> Any:
            raise AssertionError("all texts are read")

    table = Texts(f"text {number % 9_000}" for number in range(10_000))
    column = Column(Kind.STRING, np.array([5, 9_005, 6, 5]), None, table)
    ((first, twice, other, again),) = (words.tolist() for words in words_of_keys([column]))
    assert first == twice == again != other
    assert Texts.reads == 3

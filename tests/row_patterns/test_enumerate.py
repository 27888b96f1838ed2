"""The reading of MATCH_RECOGNIZE gives what stands in the cases by hand."""

from __future__ import annotations

import pytest

from tests.row_patterns.enumerate import RowPatternError, TooManyStepsError, recognize
from tests.row_patterns.expressions import Literal
from tests.row_patterns.hand_patterns import PATTERN_CASES
from tests.row_patterns.hand_quantifiers import QUANTIFIER_CASES
from tests.row_patterns.hand_rows import ROW_CASES
from tests.row_patterns.hand_values import VALUE_CASES
from tests.row_patterns.short_forms import HandCase, plus, seq
from tests.row_patterns.tree import Clause, Definition

HAND_CASES = [*PATTERN_CASES, *QUANTIFIER_CASES, *VALUE_CASES, *ROW_CASES]


def test_there_are_enough_cases_each_with_a_name() -> None:
    assert len({case.name for case in HAND_CASES}) == len(HAND_CASES) >= 60


@pytest.mark.parametrize("case", HAND_CASES, ids=str)
def test_a_case_by_hand(case: HandCase) -> None:
    columns, rows = case.table
    if isinstance(case.expected, str):
        with pytest.raises(RowPatternError, match=case.expected):
            recognize(case.clause, rows, columns)
    else:
        assert recognize(case.clause, rows, columns).rows == list(case.expected)


def test_a_long_enumeration_is_given_up() -> None:
    clause = Clause(seq(plus(plus("A")), "B"), (Definition("B", Literal(False)),))
    with pytest.raises(TooManyStepsError):
        recognize(clause, [{"x": 1}] * 30, max_steps=1_000)

"""Labels and the number of the match inside aggregates of conditions: random clauses, as the enumeration reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from tests.case_counts import CaseCounts
from tests.row_patterns import expressions as x
from tests.row_patterns import tree
from tests.row_patterns.enumerate import Answer, RowPatternError, TooManyStepsError, recognize
from tests.row_patterns.expressions import Expression
from tests.row_patterns.random_cases import MAX_STEPS, Case, random_clause, share_of
from tests.row_patterns.random_tables import random_table
from tests.row_patterns.test_differential import check
from tests.row_patterns.text_of import text_of

N_CASES, N_PARTS = 2_000, 4


def random_argument(rng: Random, variable: str | None, labels: tuple[str, ...]) -> Expression:
    """Return an argument that reads labels or the number of the match: a number or a text."""
    label = x.Classifier(variable)
    column = x.Column(variable, rng.choice("xy"))
    is_label = x.Comparison(rng.choice(("=", "<>", "<=")), label, x.Literal(rng.choice(labels)))
    number = x.Arithmetic(rng.choice("+-*"), column, x.MatchNumber())
    return rng.choice(
        (
            label,
            x.MatchNumber(),
            number,
            x.Case(((is_label, column),), rng.choice((None, x.Literal(1)))),
            x.Case(((x.Comparison(">=", number, x.Literal(2)), label),), None),
            x.Case(((is_label, x.MatchNumber()),), x.Column(variable, "x")),
        )
    )


def random_condition(rng: Random, names: tuple[str, ...], labels: tuple[str, ...]) -> Expression:
    """Return a comparison of such an aggregate."""
    argument = random_argument(rng, rng.choice((None, *names)), labels)
    is_text = x.kind_of(argument) == "text"
    function = rng.choice(("count", "min", "max") if is_text else ("count", "sum", "avg", "min", "max"))
    aggregate = x.Aggregate(function, argument, rng.random() < 0.2)
    if rng.random() < 0.1:
        return x.IsNull(aggregate, rng.random() < 0.5)
    is_label = is_text and function != "count"
    constant = x.Literal(rng.choice(labels) if is_label else rng.choice((0, 1, 2, 3, 5)))
    return x.Comparison(rng.choice(("=", "<>", "<", "<=", "<=", ">=")), aggregate, constant)


def random_definitions(rng: Random, clause: tree.Clause) -> Iterator[tree.Definition]:
    """Yield conditions of which at least one part reads labels or the number of the match."""
    variables = tree.variables_of(clause.pattern)
    names = (*variables, *(subset.name for subset in clause.subsets))
    before = {definition.variable: definition.condition for definition in clause.definitions}
    for variable in variables:
        condition = random_condition(rng, names, variables)
        if variable in before and rng.random() < 0.4:
            condition = x.Junction(rng.choice(("AND", "OR")), before[variable], condition)
        yield tree.Definition(variable, condition)


def random_match_case(seed: int) -> Case:
    """Return a case of a seed whose conditions have such aggregates."""
    attempt = 0
    while True:
        attempt += 1
        rng = Random(f"match values {seed}/{attempt}")
        columns, rows = random_table(rng, rng.choice((2, 4, 6, 8)))
        clause = random_clause(rng, None)
        clause = replace(clause, definitions=tuple(random_definitions(rng, clause)))
        answer: Answer | str
        try:
            answer = recognize(clause, rows, columns, MAX_STEPS)
        except (TooManyStepsError, RecursionError):
            continue
        except RowPatternError as error:
            answer = error.kind
        if rng.random() < share_of(answer):
            return Case(seed, clause, text_of(clause, rng), columns, rows, None, answer)


@pytest.mark.parametrize("part", range(N_PARTS))
def test_random_conditions_on_the_match(part: int, cases: CaseCounts) -> None:
    for seed in range(part, cases(N_CASES), N_PARTS):
        check(random_match_case(seed))

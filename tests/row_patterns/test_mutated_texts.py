"""Texts that are nearly clauses and statements give a result or one of acep's errors, never anything else."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

import acep
from tests.case_counts import CaseCounts
from tests.row_patterns.corpus.cases import load_all

N_CASES, N_PARTS = 20_000, 10
CASES = load_all()
PIECES = [
    "(", ")", "{", "}", "{-", "-}", "|", "?", "*", "+", "^", "$", ",", ".", "'", '"', "`", ";", "--", "/*", "*/", "::",
    "A", "x", "NULL", "FINAL", "RUNNING", "PREV(", "LAST(", "CLASSIFIER()", "MATCH_NUMBER()", "count(*)", "AS", "AND",
    "NOT", "IN (1)", "PATTERN (", "DEFINE", "MEASURES", "SUBSET u = (A)", "AFTER MATCH SKIP", "PERMUTE(", "WITHIN 3",
    "ORDER BY", "9999999999999999999", "1e400", "1e999999999", "1e-999999999", "INTERVAL '1e999999999' DAY", "0", "-1",
    "\x00", "\u202e", "\ud7ff", "SHOW", "SELECT", "INTERVAL '1' DAY",
    "CASE WHEN", "END", "FILTER (WHERE", "OVER ()", "MATCH_RECOGNIZE (", "FROM", "AS m",
]  # fmt: skip


def mutate(text: str, rng: Random) -> str:
    """Return a text with a few pieces put in, taken out, doubled or exchanged."""
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.choice((0, 1, 2, 7, 30)))
        way = rng.random()
        if way < 0.4:
            text = f"{text[:start]} {rng.choice(PIECES)} {text[start:]}"
        elif way < 0.7:
            text = text[:start] + text[end:]
        elif way < 0.85:
            text = text[:end] + text[start:end] + text[end:]
        else:
            text = text[:start] + rng.choice(PIECES) + text[end:]
    return text


@pytest.mark.parametrize("part", range(N_PARTS))
def test_a_mutated_text_is_answered_or_refused(part: int, cases: CaseCounts) -> None:
    rng, seen = Random(part), Counter[str]()
    for _ in range(cases(N_CASES // N_PARTS)):
        case = rng.choice(CASES)
        text = mutate(case.text, rng)
        try:
            if case.is_statement:
                acep.sql(text, **case.tables)
            else:
                acep.match_recognize(case.table, text)
        except acep.AcepError as error:
            message = error.render()
            seen["errors"] += 1
            seen["with a hint"] += bool(error.hint)
            if isinstance(error, acep.QueryError) and "DuckDB" not in error.message and error.start is None:
                pytest.fail(f"{error.message} has no place\ntext = {text!r}")
        except Exception as error:  # noqa: BLE001 - whatever it is, the text has to be named
            pytest.fail(f"{type(error).__name__}: {error}\ntext = {text!r}")
        else:
            message = "answered"
        assert message
    assert seen["with a hint"] >= 0.97 * seen["errors"]

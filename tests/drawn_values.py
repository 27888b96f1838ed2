"""Print the values that a failing random test had drawn, from the variables of its functions, for tests/conftest.py."""

from __future__ import annotations

import traceback
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from acep.pattern.automata import Automaton
from acep.pattern.tree import Query
from tests import complaints
from tests.case_counts import CaseCounts
from tests.corpus_text import table_of_rows
from tests.random_cases import Case

__all__ = ["drawn_values"]

DRAWS = (Random, np.random.Generator, Case, CaseCounts)
MOST_ROWS = 40
LONGEST = 400
"""Of more rows, or of longer texts, only the first ones are shown."""


def drawn_values(error: BaseException) -> str:
    """Return the variables of a random test that failed, as text: numbers, texts, queries, rows and cases.

    "" if no function of the test draws, that is, has a generator of random numbers, a seed, a number of cases, or a
    random case; and if tests/complaints.py has shrunk what was drawn.
    """
    values: dict[str, Any] = {}
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if (path := frame.f_code.co_filename) == complaints.__file__:
            return ""
        is_of_test = path.startswith(complaints.TESTS) and path != f"{complaints.TESTS}/conftest.py"
        if is_of_test and frame.f_code.co_name != "<module>":
            values |= frame.f_locals
    if not any(name == "seed" or isinstance(value, DRAWS) for name, value in values.items()):
        return ""
    texts = {name: _safe_value_text(value) for name, value in values.items() if not name.startswith(("@", "_"))}
    texts = {"seed": texts.pop("seed", ""), **texts}
    lines = [f"{name} = {text}" if "\n" not in text else f"{name}:\n{text}" for name, text in texts.items() if text]
    return "\n".join(lines)


def _safe_value_text(value: Any) -> str:
    """Return a value as text; "" if it cannot be shown, as nothing may hide the failure itself."""
    try:
        return _value_text(value)
    except Exception:  # noqa: BLE001
        return ""


def _value_text(value: Any) -> str:
    """Return a value that may have been drawn as text; "" for all others."""
    if isinstance(value, Case):
        return value.paste()
    if isinstance(value, pa.Table | pa.RecordBatch):
        return _first_rows(value.slice(0, MOST_ROWS).to_pylist(), value.num_rows)
    if isinstance(value, list | tuple) and value and all(isinstance(item, dict) for item in value):
        return _first_rows([*value[:MOST_ROWS]], len(value))
    if isinstance(value, dict) and value and all(isinstance(column, list) for column in value.values()):
        first_cells = ({name: column[row : row + 1] for name, column in value.items()} for row in range(MOST_ROWS))
        rows = [{name: cells[0] for name, cells in row.items() if cells} for row in first_cells]
        return _first_rows([row for row in rows if row], max(map(len, value.values())))
    if isinstance(value, dict) and value and all(isinstance(item, ASKED) for item in value.values()):
        return "\n".join(f"{name}: {_value_text(item)}" for name, item in value.items())
    if isinstance(query := getattr(value, "query", None), Query):  # of a plan, or an automaton
        return _shortened(query.text or str(query))
    if isinstance(text := getattr(value, "text", None), str):
        return _shortened(text)
    if isinstance(table := getattr(value, "arrow", None), pa.Table):
        return _value_text(table)
    if isinstance(value, bool | int | float | Fraction | np.generic | np.ndarray | list | tuple):
        return _shortened(repr(value)) if _is_flat(value) else ""
    return _shortened(value) if isinstance(value, str) else ""


ASKED = (Query, Automaton)


def _is_flat(value: Any) -> bool:
    """Whether a value is a number or a list of numbers and texts."""
    return not isinstance(value, list | tuple) or (
        len(value) > 0 and all(isinstance(item, bool | int | float | str) for item in value)
    )


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ... ({len(text)} characters)"


def _first_rows(rows: list[dict[str, Any]], count: int) -> str:
    return table_of_rows(rows) + (f"\n... ({count} rows)" if count > len(rows) else "")

"""Random typed tables: both engines give what Python's exact arithmetic gives, or refuse."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.errors import AcepError
from acep.native.compiled import why_not
from tests.case_counts import CaseCounts
from tests.test_census import hold
from tests.types.typed_queries import Case, Term, random_case
from tests.types.typed_tables import random_table
from tests.types.typed_text import fail_if_typed_wrong

TABLES = 5_000
PARTS = 20
EPOCH = dt.datetime(1970, 1, 1)
ENGINES = ["native", "reference"] if why_not() is None else ["reference"]


def nanoseconds(value: Any) -> int:
    """A time of a result as nanoseconds in UTC."""
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[ns]").astype(np.int64))
    if not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    if value.tzinfo is not None:
        assert value.utcoffset() == dt.timedelta(0)
        value = value.replace(tzinfo=None)
    return (value - EPOCH) // dt.timedelta(microseconds=1) * 1000


def same(got: Any, wanted: Any, term: Term) -> bool:
    """Whether a value of RETURN is the exact one, of the type of its kind."""
    if wanted is None or got is None:
        return got is wanted
    if term.kind == "decimal":
        places = term.scale if term.shown is None else term.shown
        return isinstance(got, Decimal) and Fraction(got) == wanted and got.as_tuple().exponent == -places
    if term.kind == "time":
        return nanoseconds(got) == wanted
    held = {"int": int, "float": float, "text": str, "bool": bool}.get(term.kind)
    return (held is None or type(got) is held) and bool(got == wanted)


def complaint_of_engine(engine: str, table: pa.Table, cases: list[Case]) -> str:
    """Say what an engine finds of queries, all in one pass, and what is exact."""
    if not cases:
        return ""
    try:
        answers = acep.match(table, [acep.parse(case.text) for case in cases], engine=engine)
    except AcepError as error:
        return f"refused: {error}"
    complaints = []
    for case, matches in zip(cases, answers, strict=True):
        answer = sorted(
            ((m.bindings["x"], m.bindings["y"][0], tuple(m.values.values())) for m in matches), key=lambda m: m[:2]
        )
        wanted = sorted(case.expected, key=lambda m: m[:2])
        if [m[:2] for m in answer] != [m[:2] for m in wanted] or not all(
            same(a, b, term)
            for x, y in zip(answer, wanted, strict=True)
            for a, b, term in zip(x[2], y[2], case.returns, strict=True)
        ):
            complaints.append(f"{engine}: {answer}\nexactly: {wanted}")
    return "\n".join(complaints)


KINDS = {
    "refused": 0.1, "matches": 0.18, "no match": 0.41, "repetition": 0.25, "RETURN": 0.47, "int": 0.36, "float": 0.26,
    "decimal": 0.29, "text": 0.045, "time": 0.07, "bool": 0.045,
}  # fmt: skip


def test_typed_cases_are_of_each_kind() -> None:
    def kinds_of(seed: int) -> Iterator[str]:
        rng = random.Random(seed)
        table = random_table(rng)
        for case in (random_case(table, rng) for _ in range(2)):
            yield "refused" if case.refused else "matches" if case.expected else "no match"
            yield from ["RETURN"] * bool(case.returns) + ["repetition"] * ("+ x[]" in case.text)
            yield from (term.kind for term in case.returns)

    hold(KINDS, kinds_of, 300)


@pytest.mark.filterwarnings("ignore::acep.errors.DataWarning")
@pytest.mark.parametrize("part", range(PARTS))
def test_random_tables(part: int, cases: CaseCounts) -> None:
    each = cases(TABLES // PARTS)
    seen = Counter[str]()
    for seed in range(part * TABLES, part * TABLES + each):
        rng = random.Random(seed)
        table = random_table(rng)
        drawn = [random_case(table, rng) for _ in range(2)]
        good = [case for case in drawn if not case.refused]
        for engine in ENGINES:
            fail_if_typed_wrong(table, good, f"seed {seed}, {engine}", partial(complaint_of_engine, engine))
        seen["matches"] += sum(bool(case.expected) for case in good)
        for case in drawn:
            if case.refused:
                seen["refused"] += 1
                with pytest.raises(AcepError) as caught:
                    acep.match(table.arrow, acep.parse(case.text), engine=rng.choice(ENGINES))
                assert caught.value.hint, caught.value
    cases.expect(seen, "matches", least=each // 3 + 1)
    cases.expect(seen, "refused", least=each // 20 + 1)

"""Rows of the result and open groups are the same, whether an engine gave matches as a list or as columns."""

from __future__ import annotations

import random
from fractions import Fraction

import pyarrow as pa
import pytest

import acep
from acep.matches import arrow
from acep.matches.found_columns import FoundColumns
from acep.matches.records import Found, output_order
from acep.plan.schema import Kind
from acep.streaming.results import WaitingGroups, group_rows, match_rows
from tests.matches.as_columns import columns_of
from tests.spark.by_hand import numbered, the_job

QUERY = acep.parse(
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match(a, b[]) { [k] } WITHIN 5 RETURN a.f AS f, a.k AS k",
    errors=1,
    weights={"a": 0.5},
)
TABLE = pa.table({"ts": [1], "type": ["A"], "k": ["x"], "f": [1.5]})


def some(seed: int) -> tuple[list[Found], FoundColumns]:
    """Random matches in the order of the output, as a list and as columns."""
    rng = random.Random(seed)
    found = []
    for _ in range(rng.randint(0, 30)):
        key = rng.choice("xy")
        start, end = sorted(rng.randint(0, 20) for _ in range(2))
        error = Fraction(rng.randint(0, 3), 2)
        trail = ((rng.randint(0, 9), "a"), *((rng.randint(10, 20), "b") for _ in range(rng.randint(1, 3))))
        bindings = (("a", (trail[0][0],)), ("b", tuple(i for i, _ in trail[1:])))
        values = (rng.choice([None, 0.5, 2.0]), key)
        whole = int(error) if error.denominator == 1 else error
        found.append(Found((key,), start, end, whole, bindings, end - end % 7, values, trail))
    found.sort(key=output_order)
    return found, columns_of(found, 2, ("a", "b"), [Kind.STRING], [Kind.FLOAT, Kind.STRING])


@pytest.mark.parametrize("part", [1, 5, 1 << 22])
def test_rows_are_the_same(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    job = the_job(numbered(TABLE), QUERY)
    plans = job.plans
    monkeypatch.setattr(arrow, "PART", part)
    for seed in range(1, 20):
        listed, columns = some(seed)
        rows = match_rows(job, plans, 0, columns)
        rows.validate(full=True)
        assert rows.num_rows == len(listed)
        assert rows.equals(match_rows(job, plans, 0, listed))


@pytest.mark.parametrize("output", ["points", "bundles"])
def test_groups_are_the_same(output: str) -> None:
    job = the_job(numbered(TABLE), QUERY, output=output)
    plans = job.plans
    for seed in range(20):
        listed, columns = some(seed)
        every = WaitingGroups(plans[0], output == "bundles"), WaitingGroups(plans[0], output == "bundles")
        closed = [[*every[i].add(found[:7]), *every[i].add(found[7:])] for i, found in enumerate((listed, columns))]
        assert closed[0] == closed[1]
        assert every[0].dump() == every[1].dump()
        starts = {(one.key, one.bundle if output == "bundles" else one.end) for one in listed}
        rest = [groups.finish() for groups in every]
        assert {(group.key, group.start) for group in closed[0] + rest[0]} == starts
        rows = [group_rows(job, plans, 0, closed[i] + rest[i]) for i in range(2)]
        assert rows[0].equals(rows[1])

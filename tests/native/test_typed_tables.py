"""Random typed tables in the native core, with events that come in any order and some that are taken back."""

from collections import Counter
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from tests.case_counts import CASES
from tests.complaints import difference
from tests.types.typed_queries import Case, random_case
from tests.types.typed_tables import random_table
from tests.types.typed_text import fail_if_typed_wrong

pytest.importorskip("acep.native._native")


@pytest.mark.filterwarnings("ignore::acep.errors.DataWarning")
@pytest.mark.parametrize("seed", range(CASES(300)))
def test_typed_events_in_any_order_give_the_matches_of_exact_arithmetic(seed: int) -> None:
    rng = Random(seed)
    table = random_table(rng)
    case = random_case(table, rng)
    speculation = rng.choice((0, "inf"))
    if not case.refused:
        title = f"seed {seed}, speculation {speculation}"
        fail_if_typed_wrong(table, [case], title, partial(complaint_of_any_order, seed, speculation))


def complaint_of_any_order(seed: int, speculation: Any, events: pa.Table, cases: list[Case]) -> str:
    """Say what is found of one query in another order, where one event is taken back and given again."""
    rng, rows, counts = Random(seed), range(events.num_rows), Counter[tuple[Any, ...]]()
    if not cases or not rows:
        return ""
    table = events.append_column("n", pa.array([f"n{row}" for row in rows]))
    table = table.append_column("op", pa.array([1] * len(rows)))
    matcher = acep.Matcher(cases[0].text, engine="native", id="n", op="op", lateness="inf", speculation=speculation)
    back = table.set_column(table.column_names.index("op"), "op", pa.array([-1] * len(rows)))
    gone = rng.sample(rows, 1)
    order = [(table, row) for row in rng.sample(rows, len(rows))] + [(back, *gone), (table, *gone)]
    for matches in (matcher.push(source.slice(row, 1)) for source, row in order):
        for match in matches:
            counts[(*match.bindings["x"], *match.bindings["y"])] += match.op
    counts.update((*match.bindings["x"], *match.bindings["y"]) for match in matcher.finish())
    exact = Counter((*(f"n{row}" for row in x), f"n{y}") for x, y, _ in cases[0].expected)
    return difference(dict(+counts), dict(exact), ("native", "exactly"))

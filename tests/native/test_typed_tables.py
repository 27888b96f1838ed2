"""Random typed tables in the native core, with events that come in any order and some that are taken back."""

from collections import Counter
from random import Random

import pyarrow as pa
import pytest

import acep
from tests.case_counts import CASES
from tests.types.typed_queries import random_case
from tests.types.typed_tables import random_table

pytest.importorskip("acep.native._native")


@pytest.mark.filterwarnings("ignore::acep.errors.DataWarning")
@pytest.mark.parametrize("seed", range(CASES(300)))
def test_typed_events_in_any_order_give_the_matches_of_exact_arithmetic(seed: int) -> None:
    rng = Random(seed)
    drawn = random_table(rng)
    case, rows = random_case(drawn, rng), range(drawn.arrow.num_rows)
    table = drawn.arrow.append_column("n", pa.array([f"n{row}" for row in rows]))
    table = table.append_column("op", pa.array([1] * len(rows)))
    speculation, given, gone = rng.choice((0, "inf")), Counter[tuple[str, ...]](), rng.sample(rows, 1)
    matcher = acep.Matcher(case.text, engine="native", id="n", op="op", lateness="inf", speculation=speculation)
    back = table.set_column(table.column_names.index("op"), "op", pa.array([-1] * len(rows)))
    order = [(table, row) for row in rng.sample(rows, len(rows))] + [(back, *gone), (table, *gone)]
    for found in (matcher.push(of.slice(row, 1)) for of, row in order * (not case.refused)):
        for match in found:
            given[(*match.bindings["x"], *match.bindings["y"])] += match.op
    given.update((*match.bindings["x"], *match.bindings["y"]) for match in matcher.finish())
    assert +given == Counter((*(f"n{one}" for one in x), f"n{y}") for x, y, _ in case.expected)

"""Functions of the user's own on Spark: the workers get them with the query."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import acep
from acep.spark.failures import error_in
from tests.spark.streams import Folder, as_dicts, events_table, quiet_match

pytestmark = pytest.mark.long

TEXT = "PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { [k] AND low(q.x) > low(p.x) } WITHIN 20 seconds"
TEXT += " RETURN low(q.x) AS z"


def query(mask: int) -> acep.Query:
    """A query with a function that the workers cannot import."""

    @acep.function(version="1", returns="integer")
    def low(x: pa.Array) -> pa.Array:
        if not mask:
            raise ValueError("no such number")
        return pc.bit_wise_and(x, mask)

    return acep.parse(TEXT, functions=[low])


@pytest.mark.parametrize("streamed", [False, True], ids=["batch", "stream"])
def test_workers_compute_what_a_function_gives(spark: Any, streamed: bool) -> None:
    table = events_table(300)
    wanted = acep.match(table, query(15)).to_arrow().to_pylist()
    if streamed:
        folder = Folder(spark, table, 100)
        found, _ = folder.run(quiet_match(folder.frame(), query(15), buckets=2, watermark="1 minute"))
    else:
        found = as_dicts(quiet_match(spark.createDataFrame(table), query(15)))
    assert len(wanted) > 5
    assert len(found) == len(wanted)
    assert sorted(row["values"]["z"] for row in found) == sorted(row["values"]["z"] for row in wanted)


def test_a_function_that_fails_on_a_worker_is_named(spark: Any) -> None:
    frame = spark.createDataFrame(events_table(30))
    with pytest.raises(Exception, match="low") as caught:
        as_dicts(quiet_match(frame, query(0)))
    assert "the function `low` failed: ValueError: no such number" in str(error_in(caught.value))

"""A folder of rules on Spark: a dict of queries, whose rows have the name of the rule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.* must see the whole stream in one place")
def test_rules_of_a_folder(spark: SparkSession, tmp_path: Path) -> None:
    import acep.spark

    for name, query in {"pair": "PATTERN SEQ(a x, b y) WITHIN 5", "single": "PATTERN b y"}.items():
        (tmp_path / f"{name}.rule").write_text(f'---\nname = "{name}"\nfields = ["y.n"]\n---\n{query}')
    events = spark.createDataFrame([(1, "a", 7), (2, "b", 8)], "ts long, type string, n long")
    rows = acep.spark.match(events, acep.rules(tmp_path), id="n", seq="n").collect()
    alerts = [(row["query"], row["start"], row["end"], row["values"]["y.n"]) for row in rows]
    assert sorted(alerts) == [("pair", 1, 2, 8), ("single", 2, 2, 8)]

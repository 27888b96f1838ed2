"""A stream that goes back by ``acep state`` gives what one process gives; other options are named in a refusal."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.bucket_state.call_description import read_description
from acep.bucket_state.folders import LocalFolder
from acep.bucket_state.state_listing import list_calls
from acep.cli import main
from acep.errors import SnapshotError
from acep.streaming.job_description import describe_job
from tests.complaints import fail_if_wrong
from tests.random_cases import Case as RandomCase
from tests.random_cases import random_case
from tests.spark.by_hand import numbered, the_job
from tests.spark.by_hand_files import FileStream
from tests.spark.cases import complaint_of_stream, of_random


def keep_log(folder: Path, query: str, batches: int) -> None:
    """Write the log of a checkpoint in which so many micro-batches are done."""
    (folder / "metadata").write_text(json.dumps({"id": query}))
    for name in ("offsets", "commits"):
        (folder / name).mkdir(exist_ok=True)
        for number in range(batches):
            (folder / name / str(number)).touch()


def test_a_stream_that_goes_back_is_one_process(cases: Callable[[int], int], tmp_path: Path) -> None:
    """Sometimes it goes back, more than once; results of micro-batches that begin again are taken back."""
    went_back = 0

    def complaint_of(case: RandomCase) -> str:
        nonlocal went_back
        streamed, folder = of_random(case, case.seed), Path(mkdtemp(dir=tmp_path))
        chance = random.Random(case.seed)
        run = FileStream(streamed.job, folder / "acep", streamed.delay_ms, partitions=chance.randint(1, 4))
        rows: dict[int, list[dict[str, Any]]] = {}
        while run.batch < len(streamed.batches):
            batch = run.batch
            rows[batch] = run.push(streamed.batches[batch])
            if chance.random() < 0.3:
                went_back += 1
                keep_log(folder, run.query, run.batch)
                target = chance.randint(0, batch)
                assert main(["state", str(folder), "--go-back", str(target), "--yes"]) == 0
                run.batch, run.run = target, uuid.UUID(int=run.run.int + 1)
        rows[run.batch] = run.end()
        totals = {"late": sum(one["late"] for one in run.told.values())}
        return complaint_of_stream(streamed, [row for part in rows.values() for row in part], totals)

    for seed in range(cases(60)):
        fail_if_wrong(random_case(seed), complaint_of)
    cases.expect({"went back": went_back}, "went back")


TABLE = numbered(pa.table({"ts": [1, 2, 3], "type": list("aba"), "k": list("xyx"), "v": [1, 2, 3]}))
SOURCE = "PATTERN SEQ(a p, b q) WHERE [k] WITHIN 9"
QUERY = acep.parse(SOURCE)


def test_a_state_names_its_queries_columns_and_options(tmp_path: Path) -> None:
    job = the_job(TABLE, {"first": QUERY, "second": acep.regex("ab", within=3)}, buckets=3)
    FileStream(job, tmp_path, 0).push(TABLE)
    (call,) = list_calls(LocalFolder(tmp_path))
    assert call.description == describe_job(job) == read_description(LocalFolder(tmp_path), call.path)
    assert call.description.queries["first"].startswith("PATTERN SEQ(a p, b q) WHERE ")
    assert call.description.options["buckets"] == 3
    assert (call.buckets, call.versions, call.greatest) == (4, (0,), 3)


@pytest.mark.parametrize(
    ("query", "options", "text"),
    [
        (SOURCE.replace("9", "8"), {}, "the query (there `PATTERN SEQ(a p, b q) WHERE "),
        (SOURCE, {"buckets": 3}, ": buckets= (there 8, here 3)"),
        (SOURCE, {"output": "points"}, ": output= (there matches, here points)"),
        (SOURCE, {"budget": acep.Budget(work=3)}, ": work= (there none, here 3)"),
        (SOURCE, {"speculation": 2}, ": speculation= (there 0, here 2)"),
        (SOURCE, {"id": "v"}, "id= (there __row, here v)"),
        (f"{SOURCE} RETURN q.v AS v", {}, "column `v` (only here)"),
        ({"one": SOURCE, "two": SOURCE}, {}, "(only here)"),
    ],
)
def test_a_stream_of_other_options_is_told_which_they_are(
    query: Any, options: dict[str, Any], text: str, tmp_path: Path
) -> None:
    run = FileStream(the_job(TABLE, QUERY), tmp_path, 0)
    run.push(TABLE)
    other = FileStream(the_job(TABLE, query, **options), tmp_path, 0)
    other.batch = 1
    with pytest.raises(SnapshotError, match="there is that of another query, or of other options: ") as error:
        other.push(TABLE)
    assert text in error.value.message
    assert "\n" not in error.value.message

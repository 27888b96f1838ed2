"""States that earlier versions wrote, on both routes: they are read, and the stream goes on to the right answer.

They are in ``tests/golden/state``, in a folder for each format. Where a format number is raised, or a case is new,
write what is not there yet; nothing is ever written over:

    ACEP_GOLDEN=write python -m pytest -n 0 tests/spark/test_golden_states.py

A format that is not read any more goes into ``REFUSED``, with its states left where they are.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import acep
from acep.bucket_state import file_names
from acep.errors import SnapshotError
from acep.native.compiled import why_not
from acep.storage.snapshot import VERSION
from acep.streaming import buckets, live_buckets
from acep.streaming.job import Job
from acep.streaming.times import first_open_tick
from tests.spark.by_hand import State, as_rows, numbered, rows_that_differ, stream, the_job
from tests.spark.by_hand_files import FileStream

STATES = Path(__file__).parents[1] / "golden" / "state"
FORMAT = f"{file_names.FORMAT}.{buckets.FORMAT}.{VERSION}"
"""Of the files of versions, of the state of a bucket, and of what is sealed in it."""
REFUSED: dict[str, str] = {}
"""Formats that this acep refuses to read, with a part of what it says."""

CUT, DELAY = 45, 3


@dataclass(frozen=True)
class Case:
    """A query, and options of :func:`acep.spark.match`."""

    query: Any
    options: dict[str, Any] = field(default_factory=dict)


def in_sase(text: str) -> acep.Query:
    return acep.parse(f"PATTERN {text}")


RISING = "SEQ(a p, b+ q[], c r) WHERE skip_till_next_match(p, q[], r) { [k] AND q[i].x > q[i-1].x } WITHIN 30"
NEXT = "SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [k] AND q.x > p.x }"
LETTERS = acep.regex("a(b|c)d", within=20, errors=1, by="k")
SWING = in_sase("SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) { [k] AND q.x > p.x AND r.x < q.x } WITHIN 25")
ABC, ABD = (in_sase(f"SEQ(a p, b q, {last} r) WHERE [k] WITHIN 25") for last in "cd")
SINCE = 25  # when a version holds that comes with the second micro-batch
CASES = {
    "contiguity": Case(in_sase("SEQ(a p, b q) WHERE partition_contiguity(p, q) { [k] } WITHIN 20")),
    "kleene": Case(in_sase(f"{RISING} RETURN max(q[].x) AS most")),
    "kleene_reference": Case(in_sase(RISING), {"engine": "reference"}),
    "negation": Case(in_sase("SEQ(a p, ~d n, b q, ~c m) WHERE skip_till_any_match(p, q) { [k] } WITHIN 15")),
    "within_events": Case(in_sase(f"{NEXT} WITHIN 6 EVENTS")),
    "text_ids": Case(LETTERS, {"id": "name"}),
    "count": Case(LETTERS, {"output": "count"}),
    "points": Case(LETTERS, {"output": "points"}),
    "bundles": Case(LETTERS, {"output": "bundles"}),
    "ample": Case(SWING, {"budget": acep.Budget(work=10_000)}),
    "short": Case(SWING, {"budget": acep.Budget(work=1), "policy": "newest"}),
    "revised": Case(LETTERS, {"speculation": "inf"}),
    "revised_short": Case(SWING, {"speculation": "inf", "budget": acep.Budget(work=1), "policy": "newest"}),
    "versions": Case(ABC, {"dynamic": True}),
    "several": Case({"letters": LETTERS, "any": acep.regex("cd", within=4)}),
}


@cache
def events() -> pa.Table:
    rng = random.Random(3)
    size = 80
    return pa.table(
        {
            "ts": [i // 2 for i in range(size)],
            "type": rng.choices("abcd", k=size),
            "k": [rng.randrange(3) for _ in range(size)],
            "x": [rng.randrange(100) for _ in range(size)],
            "name": [f"event {i}" for i in range(size)],
        }
    )


def job_of(case: Case) -> Job:
    return the_job(numbered(events()), case.query, buckets=2, **case.options)


def parts() -> tuple[list[pa.Table], list[pa.Table]]:
    """Micro-batches before and after the state was written."""
    table = numbered(events())
    return [table.slice(0, 30), table.slice(30, CUT - 30)], [table.slice(CUT)]


def newer(job: Job) -> list[list[str]]:
    """StateFiles of queries that come with the micro-batches before the state was written."""
    return [[], [json.dumps({"number": 2, "text": f"-- since: {SINCE}\n{ABD.text}"})]] if job.dynamic else []


# Writing and reading -------------------------------------------------------------------------------


def write_own(job: Job, folder: Path) -> None:
    _, states, _ = stream(job, parts()[0], DELAY, end=False, versions=newer(job))
    folder.mkdir()
    for number, state in states.items():
        (folder / f"{number}").write_bytes(state.get[0])
    (folder / "watermark").write_text(f"{max(state.watermark for state in states.values())}\n")


def go_on_own(job: Job, folder: Path) -> list[dict[str, Any]]:
    live_buckets.forget_live()
    states: dict[int, State] = {}
    for file in folder.iterdir():
        if file.name != "watermark":
            states[int(file.name)] = state = State()
            state.data, state.watermark = (file.read_bytes(),), int((folder / "watermark").read_text())
    return stream(job, parts()[1], DELAY, states=states)[0]


def write_files(job: Job, folder: Path) -> None:
    files = FileStream(job, folder, DELAY)
    for table, versions in zip_longest(parts()[0], newer(job), fillvalue=[]):
        files.push(table, versions)
    for first in folder.glob("*/*/0"):
        shutil.rmtree(first)


def go_on_files(job: Job, folder: Path) -> list[dict[str, Any]]:
    live_buckets.forget_live()
    later = FileStream(job, folder, DELAY)
    later.batch, later.run = 2, uuid.UUID(int=101)
    return later.stream(parts()[1])[0]


ROUTES = {"own": (write_own, go_on_own), "files": (write_files, go_on_files)}

if os.environ.get("ACEP_GOLDEN") == "write":
    for named, one in CASES.items():
        for route, (write, _) in ROUTES.items():
            if not (target := STATES / FORMAT / named / route).exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                write(job_of(one), target)

THERE = sorted((each.name, case.name) for each in STATES.iterdir() for case in each.iterdir())


# What is there is read ----------------------------------------------------------------------------


def test_the_format_of_this_version_has_states_of_every_case() -> None:
    assert {case for form, case in THERE if form == FORMAT} == set(CASES), "see how to write them, above"


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("form", "name"), THERE)
def test_a_stream_goes_on_with_a_state_to_the_right_answer(form: str, name: str, route: str, tmp_path: Path) -> None:
    case = CASES[name]
    if why_not() is not None and case.options.get("engine") != "reference":
        pytest.skip("the native core wrote this state, and is not there")
    _, go_on = ROUTES[route]
    job = job_of(case)
    folder = tmp_path / "state"
    shutil.copytree(STATES / form / name / route, folder)
    if form in REFUSED:
        with pytest.raises(SnapshotError, match=REFUSED[form]) as refused:
            go_on(job, folder)
        assert refused.value.hint
        return
    found = go_on(job, folder)
    assert found
    first, exact = rows_before(name), expected(name)
    if name in ("short", "revised_short"):
        rows = Counter(map(repr, bare(first + found)))
        assert rows <= Counter(map(repr, bare(exact)))
        assert rows.total() < len(exact)
    elif name == "count":
        assert sum(row["count"] for row in first + found) == exact[0]["count"]
    elif name == "revised":  # in order, so that nothing is taken back
        assert sorted(map(repr, bare(first + found))) == sorted(map(repr, bare(exact)))
    else:
        assert rows_that_differ(first + found, exact) == ""


@cache
def rows_before(name: str) -> list[dict[str, Any]]:
    """The rows that came before the state was written."""
    job = job_of(CASES[name])
    live_buckets.forget_live()
    return stream(job, parts()[0], DELAY, end=False, versions=newer(job))[0]


@cache
def expected(name: str) -> list[dict[str, Any]]:
    """All rows of the result, by one process."""
    case = CASES[name]
    options = {name: value for name, value in case.options.items() if name == "id"}
    table, output = events(), case.options.get("output", "matches")
    if isinstance(case.query, dict):
        found = acep.match(table, case.query, **options)
        rows = [{"query": name} | row for name in case.query for row in as_rows(found[name])]
        return [row | {"key": row.get("key", {"k": None})} for row in rows]
    if case.options.get("dynamic"):
        matcher = acep.Matcher(case.query, dynamic=True)
        before_it = table.filter(pc.less(table.column("ts"), SINCE))
        given = [*matcher.push(before_it)]
        matcher.replace(ABD)
        return as_rows([*given, *matcher.push(table.slice(before_it.num_rows)), *matcher.finish()])
    matches = acep.match(table, case.query, **options)
    if output == "count":
        return [{"count": len(matches)}]
    if output == "points":
        errors = defaultdict[tuple[Any, Any], list[Any]](list)
        for match in matches:
            errors[match.key["k"], match.end].append(match.error)
        best = {point: min(of_point) for point, of_point in errors.items()}
        return [{"key": {"k": key}, "point": point, "best": error} for (key, point), error in best.items()]
    if output == "bundles":
        names = ("key", "start", "end", "matches", "best")
        return [{name: getattr(bundle, name) for name in names} for bundle in matches.bundles()]
    return as_rows(matches)


def bare(rows: list[dict[str, Any]]) -> list[Any]:
    return [(row["key"], sorted(row["bindings"].items())) for row in rows]


# Other formats are refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda data: data[8:], "they are damaged, or an earlier development version of acep made them"),
        (lambda data: data[:8] + b"\7\0" + data[10:], "has format version 7, which this acep does not read"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "is damaged: its checksum does not fit"),
    ],
    ids=["before formats had a number", "a later format", "damaged"],
)
def test_a_state_of_another_format_is_refused_in_one_line(spoil: Any, says: str) -> None:
    job = job_of(CASES["kleene_reference"])
    bucket = buckets.Bucket(job, job.pass_of(0))
    bucket.add(parts()[0][0].select(job.columns), first_open_tick(0, job.tick_ms))
    data = bucket.dumps()
    assert buckets.Bucket.loads(job, job.pass_of(0), data).dumps() == data
    with pytest.raises(SnapshotError, match=says) as refused:
        buckets.Bucket.loads(job, job.pass_of(0), spoil(data))
    assert "\n" not in refused.value.message
    assert "begin" in (refused.value.hint or "")

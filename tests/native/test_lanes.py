"""Several lanes and threads: the result and its order are those of one thread, byte by byte."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import fields
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.explain.stages import explain
from acep.matches.found_columns import FoundColumns
from acep.native import session
from acep.native.lanes import Lanes
from acep.native.slices import slices_of
from tests import corpus
from tests.case_counts import CaseCounts
from tests.complaints import fail_if_wrong_on_rows
from tests.native import harness
from tests.native.test_batches_alike import random_query, random_stream
from tests.native.test_every_engine import engines_for
from tests.test_corpus import query_of, stream_rows

pytest.importorskip("acep.native._native")

KEYED = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) { [k] AND c.x > a.x } WITHIN 40"
APART = KEYED.replace("c.x > a.x", "c.y > a.y")
"""The same with registers that are never equal, so that no partial matches are united: whether that is tried depends on
all partitions of a session."""
COUNTABLE = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) { [k] } WITHIN 40"
TIED = "PATTERN SEQ(A a, B b, C c) WHERE b.s = a.s AND c.s = b.s WITHIN 40"
UNTIED = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) { c.x > a.x } WITHIN 9"
WAITING = "PATTERN SEQ(A a, B b, ~C c) WHERE [k] WITHIN 12"
TASKS = Path("/proc/self/task")
OUTPUTS = ("matches", "points", "bundles", "count")


def events(rows: int = 9000, seed: int = 1, *, step: int = 3) -> pa.Table:
    """Events of some keys, of which several come at one time."""
    times = np.arange(rows) // step
    words = tuple(f"s{n}" for n in range(9))
    return harness.stream(rows, seed, "AABBCD", ts=times, k=37, x=50, y=float, s=words)


@pytest.fixture
def plain_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the rest of a batch tells saves work, and so the work depends on the rows of a lane."""
    monkeypatch.setattr(session, "STRATEGIES", (0, 1))


def plain(result: Any) -> Any:
    """All that a result has, so that two can be compared by their bytes."""
    if not isinstance(result, acep.Matches):
        return int(result) if isinstance(result, acep.Count) else list(map(repr, result))
    found = result.found
    if not isinstance(found, FoundColumns):
        return list(map(repr, result))
    columns = {
        field.name: getattr(found, field.name) for field in fields(found) if field.name not in ("keys", "values")
    }
    columns |= {"in_order": None, "shape": None}
    lists = [[column.to_list() for column in columns] for columns in (found.keys, found.values)]
    return [*lists, {name: content_of(column) for name, column in columns.items()}]


def content_of(column: Any) -> Any:
    """Give the bytes of a column, or its values where it holds objects, whose bytes are addresses."""
    if not isinstance(column, np.ndarray):
        return column
    return column.tolist() if column.dtype.hasobject else column.tobytes()


def live(matcher: acep.Matcher[Any]) -> int:
    stream = matcher._tables.stream
    assert stream is not None
    return stream.live


def held_texts(matcher: acep.Matcher[Any]) -> int:
    stream = matcher._tables.stream
    assert stream is not None
    assert stream._session is not None
    return len(stream._session._encoder.codes)


def work(report: acep.Report) -> tuple[Any, ...]:
    return report.events, report.made, report.work, report.matches, report.points, report.bundles


# The same result


CORPUS = [case for case in corpus.load_all() if case.raises is None and not query_of(case).sources]


@pytest.mark.parametrize("case", CORPUS, ids=[case.id for case in CORPUS])
def test_cases_of_the_corpus(case: corpus.Case) -> None:
    table = case.table().take(pa.array(stream_rows(case), pa.int64()))
    plan = harness.planned(query_of(case), table, **{k: v for k, v in case.stream_options.items() if k != "seq"})
    harness.compare(plan, harness.whole(plan, table), engines_for(plan), Random(1), lanes=3)


@pytest.mark.usefixtures("plain_ways")
@pytest.mark.parametrize("text", [APART, COUNTABLE, WAITING])
def test_each_engine_does_the_work_of_one_lane(text: str) -> None:
    table = events(5000)
    plan = harness.plan_of(text, table)
    engines = [name for name in engines_for(plan) if name != "compressed" and "windows" not in name]
    runs = [harness.session_of(plan, *engines, lanes=lanes, threads=2) for lanes in (1, 3)]
    for part in harness.pieces(harness.whole(plan, table), 2000):
        for run in runs:
            run.push(part)
    one, several = ([run.counts(number) for number in range(len(engines))] for run in runs)
    assert several == one
    assert all(counts.touches > 0 for counts in one)
    assert [runs[1].live(number) for number in range(len(engines))] == [
        runs[0].live(number) for number in range(len(engines))
    ]


@pytest.mark.usefixtures("plain_ways")
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("text", [KEYED, COUNTABLE, TIED, WAITING])
def test_each_output_is_that_of_one_thread(text: str, output: str) -> None:
    table = events()
    one = acep.match(table, text, output=output, engine="native")
    several = acep.match(table, text, output=output, engine="native", threads=3)
    assert plain(several) == plain(one)
    assert several.report.matches == one.report.matches
    expected = 1 if text is WAITING and output in ("points", "bundles") else 3
    assert several.report.threads == expected
    assert (several.report.fewer_threads == "") == (expected == 3)


@pytest.mark.usefixtures("plain_ways")
def test_random_queries_give_the_same_bytes_and_take_the_same_work(cases: CaseCounts) -> None:
    for seed in range(cases(400)):
        rng = Random(f"lanes {seed}")
        query, n_rows, threads = random_query(rng), rng.choice((60, 500, 4500)), rng.choice((2, 3, 7))
        options: dict[str, Any] = {"output": rng.choice(OUTPUTS), "engine": "native"}
        table = random_stream(seed, n_rows, rng.choice((5, 400)))
        if rng.random() < 0.3:
            options["id"] = "name"
            table = table.append_column("name", pa.array([f"e{n * 7919 % n_rows}" for n in range(n_rows)]))
        is_same = partial(difference, query, table.schema, options, threads)
        fail_if_wrong_on_rows(table.to_pylist(), f"seed {seed}: {query}", is_same)


def difference(query: str, schema: pa.Schema, options: dict[str, Any], threads: int, rows: list[Any]) -> str:
    """Say what is other with so many threads than with one; "": nothing."""
    table = pa.Table.from_pylist(rows, schema=schema)
    one, several = acep.match(table, query, **options), acep.match(table, query, threads=threads, **options)
    if plain(one) != plain(several):
        return "other results"
    # What match windows pass on, and which partial matches are united, depends on all partitions of a lane.
    text = explain(query)
    is_exact = "share the partitions" in text and "behind match windows" not in text and "engine: nodes" not in text
    return "" if not is_exact or work(one.report) == work(several.report) else "other work"


MANY = {
    "of one shape": "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) { [k] } WITHIN 60",
    "of several lengths": "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match(a, b[], c) { [k] } WITHIN 40",
    "with values": "PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { [k] AND b.x > a.x } WITHIN 60"
    " RETURN a.s AS first, b.y - a.y AS more",
    "without variables": "PATTERN SEQ(A a, D? d, C c) WHERE skip_till_any_match(a, d, c) { [k, s] } WITHIN 400",
}


@pytest.mark.parametrize("ids", ["numbers", "texts"])
@pytest.mark.parametrize("text", MANY.values(), ids=MANY.keys())
def test_many_matches_are_put_together_in_parts(text: str, ids: str) -> None:
    """Several end at one time, in lanes of their own, and each thread makes a part of the result."""
    table = events(20_000, step=7)
    options: dict[str, Any] = {}
    if ids == "texts":
        table = table.append_column("id", pa.array([f"e{n * 7919 % 20_000}" for n in range(20_000)]))
        options["id"] = "id"
    one = acep.match(table, text, engine="native", **options)
    assert len(one) > 2 * 4096
    for threads in (2, 3, 7):
        several = acep.match(table, text, engine="native", threads=threads, **options)
        assert several.report.threads == threads
        assert plain(several) == plain(one)


def test_queries_without_partitions_are_dealt_out() -> None:
    table, queries = (
        events(5000),
        [f"PATTERN SEQ(A a, {name} b) WHERE b.x < {n} WITHIN 6" for n, name in enumerate("BCDB", 3)],
    )
    one, several = acep.match(table, queries), acep.match(table, queries, threads=3)
    assert list(map(plain, several)) == list(map(plain, one))
    assert [len(matches) > 0 for matches in one] == [True] * 4
    assert several[0].report.threads == 3
    mixed = [*queries, KEYED]
    assert list(map(plain, acep.match(table, mixed, threads=2))) == list(map(plain, acep.match(table, mixed)))


def test_queries_with_different_keys_share_the_lanes() -> None:
    queries = [KEYED, KEYED.replace("[k]", "[s]"), KEYED.replace("[k]", "[k, s]"), TIED]
    one, several = acep.match(events(), queries), acep.match(events(), queries, threads=3)
    assert list(map(plain, several)) == list(map(plain, one))


def test_bundles_that_begin_at_one_time_keep_their_order() -> None:
    """Bundles come as they end, and partitions end in another order in lanes."""
    table = events(6000, step=40)
    for output in ("points", "bundles"):
        one = list(acep.match(table, COUNTABLE, output=output))
        assert list(acep.match(table, COUNTABLE, output=output, threads=4)) == one
        firsts = [getattr(group, "point" if output == "points" else "start") for group in one]
        assert len(set(firsts)) < len(firsts)


# Slices of a table


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize(
    "text",
    [
        UNTIED,
        "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) WITHIN 9",
        "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) { c.x > a.x } WITHIN 40",
        "PATTERN SEQ(A a, ~D d, B+ b[]) WHERE skip_till_any_match(a, b[]) WITHIN 9 HAVING count(b[]) < 3 AND a.x > 9",
        "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { b.x > a.x } WITHIN 40",
    ],
)
def test_slices_of_a_table_give_the_result_of_one_thread(text: str, output: str) -> None:
    for step, spans in ((1, (1, 5)), (3, (2, 5)), (12, (1,))):  # how many events come at one time
        table = events(9000, step=step)
        for span in spans:
            query = re.sub(r"WITHIN \d+", f"WITHIN {span}", text)
            one = acep.match(table, query, output=output, engine="native")
            several = acep.match(table, query, output=output, engine="native", threads=3)
            assert plain(several) == plain(one)
            assert several.report.threads == 3
            assert several.report.matches == one.report.matches


def test_a_table_that_is_too_short_is_not_sliced() -> None:
    table = events(9000)
    assert acep.match(table, UNTIED.replace("WITHIN 9", "WITHIN 2000"), output="points", threads=4).report.threads == 1
    assert acep.match(table[:100], UNTIED, threads=4).report.threads == 1
    assert len(acep.match(table[:0], UNTIED, threads=4)) == 0
    assert acep.match(table[:0], COUNTABLE.replace(" { [k] }", ""), output="count", threads=4) == 0


@pytest.mark.parametrize(
    ("most", "span", "expected"), [(4, 0, 4), (4, 30, 2), (4, 1000, 1), (1, 0, 1), (4, 2**63 - 1, 1)]
)
def test_slices_cover_the_rows_once(most: int, span: int, expected: int) -> None:
    for step in (1, 7):
        ts = np.arange(140) // step * step
        slices = slices_of(ts, span, most)
        assert [begin for _, begin, _ in slices[1:]] == [end for *_, end in slices[:-1]]
        assert (slices[0][:2], slices[-1][2]) == ((0, 0), 140)
        for first, begin, _ in slices:
            assert first == 0 or ts[first - 1] < ts[begin] - span <= ts[first]
        assert len(slices) == expected


# Where there is one thread


def test_the_report_says_why_there_are_fewer_threads() -> None:
    table = events(500)
    reasons = {
        "no window of time": {"query": "PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5 events"},
        "wait for others": {"query": "PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5 NON OVERLAP"},
        "budget": {"query": KEYED, "budget": acep.Budget(work=2)},
        "reference engine": {"query": KEYED, "engine": "reference"},
        "limit": {"query": KEYED, "limit": 3},
        "strict contiguity": {
            "query": "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { [k] } WITHIN 9 NON OVERLAP"
        },
    }
    for why, options in reasons.items():
        report = acep.match(table, threads=4, **options).report
        assert report.threads == 1
        assert why in report.fewer_threads
        assert f", by 1 thread and not more: {report.fewer_threads}" in str(report)
    assert str(acep.match(table, KEYED, threads=4).report).splitlines()[0].endswith("by 4 threads")
    assert acep.match(table, KEYED).report.fewer_threads == ""


def test_streams_that_change_or_are_revised_have_one_thread() -> None:
    changing = acep.Matcher(KEYED, dynamic=True, threads=2)
    revised = acep.Matcher(KEYED, lateness=5, speculation=5, threads=2)
    expected = sorted(map(repr, acep.match(events(500), KEYED)))
    for matcher in (changing, revised):
        found = [*matcher.push(events(500)), *matcher.finish()]
        assert len(found) == len(expected)
        assert matcher.report.threads == 1
        assert matcher.report.fewer_threads


# Streams


@pytest.mark.parametrize("counts", [(3, 1), (3, 2), (3, 7), (1, 4)])
def test_snapshots_go_on_with_other_threads(counts: tuple[int, int]) -> None:
    table = events(15_000)
    whole = acep.Matcher(KEYED)
    expected = [list(whole.push(table[at : at + 5000])) for at in (0, 5000, 10_000)] + [list(whole.finish())]
    first = acep.Matcher(KEYED, threads=counts[0])
    found = [list(first.push(table[:5000]))]
    second = acep.Matcher(KEYED, threads=counts[1])
    second.restore(first.snapshot())
    again = acep.Matcher(KEYED)
    again.restore(second.snapshot())
    assert again.snapshot() == second.snapshot()
    found += [list(second.push(table[5000:10_000]))]
    third = acep.Matcher(KEYED)
    third.restore(second.snapshot())
    found += [list(third.push(table[10_000:])), list(third.finish())]
    assert found == expected
    assert second.report.threads == min(counts)


def test_the_state_of_one_thread_is_as_it_was() -> None:
    one, several = acep.Matcher(KEYED), acep.Matcher("PATTERN SEQ(A a, B b) WITHIN 5", threads=4)
    lonely = acep.Matcher("PATTERN SEQ(A a, B b) WITHIN 5")
    for matcher in (one, several, lonely):
        matcher.push(events(5000))
    assert several.snapshot() == lonely.snapshot()
    restored = acep.Matcher(KEYED, threads=3)
    restored.restore(one.snapshot())
    assert live(restored) == live(one) > 0
    assert restored.report.fewer_threads == "the state that was restored has no more lanes"


def test_texts_are_kept_that_any_lane_refers_to() -> None:
    text = APART.replace("[k]", "[s]")
    one, several = acep.Matcher(text), acep.Matcher(text, threads=3)
    for at in range(0, 20_000, 5000):
        words = pa.array([f"key {n // 400}" for n in range(at, at + 5000)])
        part = events(20_000)[at : at + 5000].drop_columns("s").append_column("s", words)
        assert plain(several.push(part)) == plain(one.push(part))
    assert held_texts(several) <= 2 * held_texts(one)


# Errors


def lanes_of(text: str = KEYED, lanes: int = 3) -> tuple[Any, Lanes, list[Any]]:
    table = events(5000)
    plan = harness.plan_of(text, table)
    run = harness.NativeSession([plan], ["nodes"], lanes=lanes, threads=2)
    assert isinstance(run._session, Lanes)
    return run, run._session, harness.pieces(harness.whole(plan, table), 2500)


def test_an_error_in_a_lane_is_that_of_one_thread() -> None:
    run, _, (first, second) = lanes_of()
    run.push(first)
    run.push(second)
    loaded, fresh, _ = lanes_of()
    loaded.load(run.dump())
    fresh.few = 0
    with pytest.raises(ValueError, match="an event is older than the state that was loaded"):
        loaded.push(first)


def test_wrong_columns_are_refused_before_any_lane_has_begun() -> None:
    run, lanes, (first, _) = lanes_of()
    ts, types, valid, ids, columns = run._encoder.words(first)
    with pytest.raises(ValueError, match="columns"):
        lanes.push(ts, types, valid, ids, columns[:-1])
    lanes.push(ts, types, valid, ids, columns)
    with pytest.raises(ValueError, match="of a new session"):
        lanes.cores[0].set_lane(0, 3)
    assert lanes.work(0)[0] > 0


@pytest.mark.parametrize("spoilt", [[], [b""] * 300, [b"", b"", b""], ["", "", ""], {"0": b""}])
def test_states_of_lanes_that_are_none_are_refused(spoilt: Any) -> None:
    run, _, _ = lanes_of()
    state = run.dump() | {"core": spoilt}
    with pytest.raises((ValueError, TypeError, KeyError)):
        lanes_of()[0].load(state)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers")
@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupted_stream_refuses_to_go_on(threads: int) -> None:
    def ring(*_: Any) -> None:
        raise TimeoutError

    tests = "skip_till_any_match(a, b, c, d, e) { [k] AND e.x > a.x }"
    text = f"PATTERN SEQ(A a, B b, A c, B d, C e) WHERE {tests} WITHIN 2000"
    matcher = acep.Matcher(text, threads=threads)
    matcher.push(events(1000))
    table = events(40_000).set_column(0, "ts", pa.array(np.arange(40_000) // 3 + 1000))
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            matcher.push(table)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - started < 60
    with pytest.raises(acep.EngineError, match="an earlier call was interrupted"):
        matcher.push(table)


# Threads


def threads_now() -> int:
    return len([*TASKS.iterdir()])


@pytest.mark.skipif(not TASKS.is_dir(), reason="threads are not listed")
def test_no_thread_is_left() -> None:
    table = events(5000)
    acep.match(table, KEYED, threads=2)  # begins those of Arrow
    before = threads_now()
    matchers = [acep.Matcher(KEYED, threads=4) for _ in range(40)]
    for matcher in matchers:
        matcher.push(table)
    assert threads_now() == before
    del matchers
    gc.collect()
    assert threads_now() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_process_that_forks_goes_on_in_both() -> None:
    program = """
        import os, sys
        import acep
        rows = {"ts": list(range(9000)), "type": ["A", "B"] * 4500, "k": [n % 11 for n in range(9000)]}
        text = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 40"
        expected = len(acep.match(rows, text, threads=2))
        child = os.fork()
        again = len(acep.match(rows, text, threads=2))
        if child == 0:
            os._exit(0 if again == expected > 0 else 1)
        assert again == expected
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=120)

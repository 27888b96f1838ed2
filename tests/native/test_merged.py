"""The merged engine against the reference, and what it must do besides: free memory, stop and go on, refuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import acep
from acep.events.tables import batch_of
from acep.matches.records import Found, output_order
from tests.native.merged_cases import (
    compressed,
    core_of,
    enumerated,
    merged_case,
    planned,
    reference,
    rows_of,
    run,
    session_of,
    streamed,
)
from tests.native.spoilt import spoilt
from tests.random_cases import Case, shrink

pytest.importorskip("acep.native._native")

CHUNKS = 20


def told(found: list[Found]) -> list[tuple[object, ...]]:
    return [(f.key, f.start, f.end, f.error, f.bindings, f.bundle, f.trail) for f in found]


def differs(case: Case) -> bool:
    table = case.table()
    plan = planned(case.query(), table, **case.stream)
    try:
        found = run(plan, table, "merged")
    except ValueError:  # not a plan for it
        return False
    return told(found) != told(list(reference(plan, table)))


def too_many(case: Case) -> bool:
    """Whether plain Python would be at it for long."""
    table = case.table()
    plan = planned(case.query(), table, **case.stream)
    try:
        session = session_of(plan, "compressed")
    except ValueError:
        return False
    session.push(batch_of(table, plan.schema, plan.columns))
    return core_of(session).take_compressed(0, True).count() > 20_000


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_reference_finds_the_same(chunk: int, cases: Callable[[int], int]) -> None:
    tried = 0
    for seed in range(chunk, cases(1500), CHUNKS):
        case = merged_case(seed)
        if case is None:
            continue
        tried += 1
        if too_many(case):
            continue
        if differs(case):
            pytest.fail("the merged engine and the reference differ:\n" + shrink(case, differs).paste())
    assert tried


# Enumeration in steps ----------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_what_is_enumerated_step_by_step_is_the_same(most: int, cases: Callable[[int], int]) -> None:
    tried = 0
    for seed in range(cases(150)):
        case = merged_case(seed)
        if case is None or case.stream:  # the names of texts are not kept for what lags behind
            continue
        table = case.table()
        plan = planned(case.query(), table)
        session = session_of(plan, "merged")
        core = core_of(session)
        core.set_lazy(0, True)
        found: list[Found] = []
        for start in range(0, table.num_rows, 5):
            session.push(batch_of(table.slice(start, 5), plan.schema, plan.columns, base=start))
            assert not len(session.take(0))
            if (start // 5 + seed) % 3 == 0:  # at times it lags behind
                continue
            assert core.more(0, most) <= most
            found += session.take(0)
        while core.more(0, most) == most:
            found += session.take(0)
        found += session.take(0)
        assert told(sorted(found, key=output_order)) == told(run(plan, table, "merged"))
        tried += bool(found)
    assert tried


# Compressed output -------------------------------------------------------------------------------


def test_compressed_matches_are_counted_drawn_and_enumerated_as_they_are(cases: Callable[[int], int]) -> None:
    tried = 0
    for seed in range(cases(300)):
        case = merged_case(seed)
        if case is None:
            continue
        table = case.table()
        plan = planned(case.query(), table, **case.stream)
        session, merged = session_of(plan, "compressed"), session_of(plan, "merged")
        taken = []
        for start in range(0, table.num_rows, 4):
            batch = batch_of(table.slice(start, 4), plan.schema, plan.columns, base=start)
            session.push(batch)
            merged.push(batch)
            if seed % 3 == 0:
                taken.append(core_of(session).take_compressed(0, False))
        taken.append(core_of(session).take_compressed(0, True))
        found = []
        for one in taken:
            mine = enumerated(one, seed % 4 + 1)
            assert one.count() == len(mine)
            assert [row[1] for row in mine] == sorted(row[1] for row in mine)
            for first in range(len(mine) + 2):
                assert rows_of(one.cursor(first).next(2)) == mine[first : first + 2]
            drawn = rows_of(one.sample(9, seed))
            assert len(drawn) == (9 if mine else 0)
            assert set(drawn) <= set(mine)
            found += mine
        assert sorted(found) == sorted(rows_of(core_of(merged).take(0)))
        tried += len(taken) > 1 and bool(found)
    assert tried


def test_more_matches_than_any_machine_could_list() -> None:
    n = 200
    one = compressed("PATTERN SEQ(A+ a[]) WHERE skip_till_any_match(a[])", "A" * n)
    assert one.count() == 2**n - 1
    assert one.cells <= 2 * n
    ids = tuple(range(n))
    # Those that end with an event come after all that end earlier.
    assert rows_of(one.cursor(2 ** (n - 1) - 1).next(1))[0][1] == n - 1
    assert {row[1] for row in rows_of(one.cursor(2 ** (n - 1) - 3).next(2))} == {n - 2}
    assert rows_of(one.cursor(2**n - 2).next(5)) == rows_of(one.cursor(2**n - 2).next(1))
    assert rows_of(one.cursor(2**n - 1).next(5)) == rows_of(one.cursor(3**n).next(5)) == []
    assert rows_of(one.cursor(12345).next(7)) == rows_of(one.cursor(12340).next(12))[5:]
    drawn = rows_of(one.sample(400, 7))
    assert rows_of(one.sample(400, 7)) == drawn != rows_of(one.sample(400, 8))
    assert all(set(row[5]) <= set(ids) for row in drawn)
    # Each event is in about half of them: the bound is six standard deviations.
    for event in ids:
        assert abs(sum(event in row[5] for row in drawn) - 200) < 60


def test_every_match_is_as_likely_to_be_drawn() -> None:
    rng = Random(3)
    types = "".join(rng.choice("ABCX") for _ in range(200))
    text = "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match(a, b[], c) WITHIN 9"
    one = compressed(text, types)
    matches = enumerated(one, 50)
    assert len(set(matches)) == len(matches) == one.count() > 60
    draws = 200 * len(matches)
    seen = Counter(rows_of(one.sample(draws, 11)))
    freedom = len(matches) - 1
    square = sum((seen[m] - 200) ** 2 / 200 for m in matches)
    # The chi-square statistic has mean `freedom` and variance twice that.
    assert abs(square - freedom) < 4 * (2 * freedom) ** 0.5


def test_compressed_matches_grow_with_events_not_with_matches() -> None:
    text = "PATTERN SEQ(A a, B b, C c, D d) WHERE skip_till_any_match(a, b, c, d)"
    half, whole = compressed(text, "ABCD" * 100), compressed(text, "ABCD" * 200)
    assert whole.count() > 14 * half.count()
    assert whole.cells <= 2 * half.cells + 8
    assert whole.bytes < 3 * half.bytes


def test_what_was_taken_stays_when_the_stream_goes_on() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) WITHIN 10"
    push, core = streamed(text, "compressed")
    sizes, taken = [], []
    for _ in range(40):
        push("AAB" * 500)
        taken.append(core.take_compressed(0, False))
        sizes.append(core.bytes)
    counts = [one.count() for one in taken]
    assert counts[1:] == counts[1:2] * 39
    assert [len(enumerated(one, 1000)) for one in taken] == counts
    assert sizes[-1] == sizes[3]  # nothing of what was taken is left


# Memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) WITHIN 12",
        "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) { [k] } WITHIN 60",
        "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) WITHIN 12 EVENTS",
        "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) { [k] } WITHIN 12 EVENTS",
        "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) WITHIN 12",
        "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c)",
        "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) { [k] }",
        "PATTERN SEQ(A a, B+ b[], C c) WHERE partition_contiguity(a, b[], c) { [k] }",
        "PATTERN SEQ(A a, B+ b[], C c) WHERE strict_contiguity(a, b[], c)",
    ],
)
def test_memory_is_flat(text: str) -> None:
    push, core = streamed(text, "merged")
    rng = Random(5)
    sizes, found = [], 0
    for _ in range(60):
        push("".join(rng.choice("ABC") for _ in range(1000)))
        found += len(core.take(0)["start"])
        sizes.append(core.bytes)
    assert found > 1000
    assert max(sizes[10:]) <= 2 * max(sizes[:10])  # buffers double; what leaks would be six times as much


def test_keys_that_come_once_leave_nothing() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { [k] } WITHIN 50"
    push, core = streamed(text, "merged", keys=10**9)
    sizes = []
    for _ in range(200):
        push("AB" * 500)
        sizes.append(core.bytes)
    assert max(sizes[50:]) <= 2 * max(sizes[:50])  # buffers double; what leaks would be four times as much


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["merged", "compressed"])
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9",
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a[], b) { a[i].x > a[i-1].x } WITHIN 9",
        "PATTERN SEQ(A a, ~B b, C c) WITHIN 9",
        "PATTERN SEQ(A a, C c) WITHIN 9 HAVING a.x + c.x > 1",
    ],
)
def test_plans_with_ties_are_refused(text: str, engine: str) -> None:
    with pytest.raises(ValueError, match="tie the events"):
        streamed(text, engine)


def test_gaps_that_cost_are_refused() -> None:
    with pytest.raises(ValueError, match="tie the events"):
        streamed("PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) WITHIN 9", "merged", errors=1)


def test_a_pattern_that_is_too_ambiguous_is_refused() -> None:
    query = acep.regex("(a|b)*a" + "(a|b)" * 17, within=1000, strategy="skip_till_any_match")
    push, core = streamed(query, "merged", types="ab")
    core.set_lazy(0, True)
    with pytest.raises(RuntimeError, match="65536"):
        push("ab" * 40)


def test_arguments_out_of_range_are_refused() -> None:
    one = compressed("PATTERN SEQ(A a, B b) WITHIN 9", "AB")
    with pytest.raises(ValueError, match="negative"):
        one.cursor(-1)
    wrong: Any
    for wrong in (-1, 2**64, None):
        with pytest.raises(TypeError):
            one.sample(wrong, 0)
        with pytest.raises(TypeError):
            one.sample(1, wrong)
        with pytest.raises(TypeError):
            one.cursor().next(wrong)
    with pytest.raises(TypeError):
        one.cursor(wrong)
    with pytest.raises((ValueError, MemoryError)):
        one.sample(2**62, 0)
    assert one.count() == len(enumerated(one, 4)) == 1
    _, core = streamed("PATTERN SEQ(A a, B b) WITHIN 9", "merged")
    with pytest.raises(ValueError, match="compressed"):
        core.take_compressed(0, True)
    with pytest.raises(IndexError):
        core.take_compressed(1, True)
    _, core = streamed("PATTERN SEQ(A a, B b) WITHIN 9", "compressed")
    with pytest.raises(ValueError, match="merged"):
        core.more(0, 1)


def test_nothing_is_left_after_the_last_time() -> None:
    push, core = streamed("PATTERN SEQ(A a, B b) WITHIN 9", "compressed")
    push("A")
    assert core.take_compressed(0, True).count() == 0
    push("B")
    assert enumerated(core.take_compressed(0, True), 3) == []
    assert rows_of(core.take(0)) == []


# State --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lazy", [False, True])
def test_matching_goes_on_from_its_state(lazy: bool, cases: Callable[[int], int]) -> None:
    tried = 0
    for seed in range(cases(150)):
        case = merged_case(seed)
        if case is None or case.stream:
            continue
        table = case.table()
        plan = planned(case.query(), table)
        session, compressed_one = session_of(plan, "merged"), session_of(plan, "compressed")
        core = core_of(session)
        core.set_lazy(0, lazy)
        begun = [core_of(s).dump() for s in (session, compressed_one)]
        found: list[Found] = []
        for start in range(0, table.num_rows, 3):
            batch = batch_of(table.slice(start, 3), plan.schema, plan.columns, base=start)
            for one, fresh in zip((session, compressed_one), begun, strict=True):
                one.push(batch)
                if one is session:
                    if lazy:
                        core.more(0, 2)  # in the midst of them
                    found += one.take(0)
                state = core_of(one).dump()
                core_of(one).load(fresh)
                core_of(one).load(state)
                again = core_of(one).dump()  # without links to what had been freed
                core_of(one).load(again)
                assert core_of(one).dump() == again
        while core.more(0, 5):
            found += session.take(0)
        assert told(sorted(found, key=output_order)) == told(run(plan, table, "merged"))
        assert core_of(compressed_one).take_compressed(0, True).count() == len(found)
        tried += bool(found)
    assert tried


@pytest.mark.parametrize("engine", ["merged", "compressed"])
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match(a, b[], c) { [k] } WITHIN 12",
        "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) WITHIN 12 EVENTS",
        "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) { [k] } WITHIN 7 EVENTS",
    ],
)
def test_states_that_make_no_sense_are_refused_or_run(text: str, engine: str, cases: Callable[[int], int]) -> None:
    refused = ran = 0
    for seed in range(cases(300)):
        rng = Random(seed)
        push, core = streamed(text, engine, errors=1, keys=2)
        if engine == "merged":
            core.set_lazy(0, True)
        push("".join(rng.choice("ABC") for _ in range(30)))
        if engine == "merged":
            core.more(0, 7)
            core.take(0)
        try:
            core.load(spoilt(core.dump(), rng))
        except ValueError:
            refused += 1
            continue
        ran += 1
        push("".join(rng.choice("ABC") for _ in range(30)))
        if engine == "merged":
            core.more(0, 10_000)
            core.take(0)
        else:
            one = core.take_compressed(0, True)
            assert len(rows_of(one.sample(3, 1))) == (3 if one.count() else 0)
            one.cursor(one.count() // 2).next(1000)
    assert refused
    assert ran

"""The native search for preferred matches gives what a slow one gives, in few steps; hostile arguments are refused."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.case_counts import CASES
from tests.native.ordered_cases import (
    ACCEPT,
    JUMP,
    LAST,
    ROW,
    SPLIT,
    Case,
    Condition,
    Match,
    Ref,
    Writer,
    expected,
    long_case,
    native_matches,
    pivotal_case,
    program,
    random_case,
    search_of,
    start,
)

native = pytest.importorskip("acep.native._native")

MEMORY = 1 << 26


def widened(case: Case) -> Case:
    """The same pattern with so many states that sets of them need several words."""
    return replace(case, states=[*case.states, *((ROW, 0, 0) for _ in range(70)), (ACCEPT, 0, 0)])


def run(case: Case, memory: int = MEMORY, rows: int = 1000) -> tuple[Any, dict[str, int]]:
    """The matches of a case, and what they cost."""
    texts = native.Texts()
    search = search_of(native, texts, case, memory)
    start(texts, search, case)
    return native_matches(search, rows), search.counts()


@pytest.mark.parametrize("seed", range(4))
def test_random_cases_as_the_slow_search(seed: int) -> None:
    rng = random.Random(seed)
    for number in range(CASES(4000)):
        case = pivotal_case(rng, rng.randint(3, 8)) if rng.random() < 0.3 else random_case(rng)
        wanted = expected(case)
        native_case = widened(case) if rng.random() < 0.3 else case
        texts = native.Texts()
        search = search_of(native, texts, native_case, rng.choice((0, 700, MEMORY)))
        for _ in range(rng.choice((1, 1, 2))):
            start(texts, search, native_case)
            assert native_matches(search, rng.choice((1, 3, 100))) == wanted, (seed, number, case)


@pytest.mark.parametrize("seed", range(3))
def test_long_cases_in_every_way(seed: int) -> None:
    """In passes from each start, by depth first, and with little memory: all give the same."""
    rng = random.Random(seed)
    for number in range(CASES(200)):
        if rng.random() < 0.5:
            case = long_case(rng, rng.choice((40, 300, 900)))
        else:
            case = pivotal_case(rng, rng.choice((15, 40, 100)))
        wanted, _ = run(case)
        assert run(widened(case))[0] == wanted, (seed, number)
        assert run(case, rng.choice((20_000, 60_000)))[0] == wanted, (seed, number)
        assert run(widened(case), 60_000)[0] == wanted, (seed, number)


@pytest.mark.parametrize("wide", [False, True])
def test_little_memory_for_the_backward_pass(wide: bool) -> None:
    rng = random.Random(1)
    bits = [[int(rng.random() < share) for _ in range(5000)] for share in (0.9, 0.5, 0.02)]
    writer = Writer()
    states = writer.begin(writer.repeated(0, writer.repeated(1, writer.add(ROW, 1, 2), least=1), least=1))
    for skip in (0, 1):
        case = Case(states, 3, [0, 4000, 5000], list(bits), skip=skip)
        case = widened(case) if wide else case
        wanted, costs = run(case)
        assert len(wanted) > 10
        matches, little = run(case, 1000)
        assert matches == wanted
        assert little["bytes"] < costs["bytes"] // 2


# Patterns and rows, by number of rows.


def first_and_greater(rows: int, skip: int) -> Case:
    """`(A B+)` with `B AS v > LAST(A.v)`."""
    rng = random.Random(1)
    writer = Writer()
    states = writer.begin(writer.add(ROW, writer.repeated(1, 1, least=1), 0))
    references = [Ref(2), Ref(0)]
    values = [rng.randrange(1000) for _ in range(rows)]
    conditions = [Condition(1, "LT", (0, 1))]
    return Case(states, 2, [0, rows], [None, None], [values], [[0]], references, conditions, skip=skip)


def nested_loops(rows: int, greater: bool) -> Case:
    """`((A+)+ B)` without a B; `greater`: since `B AS v > LAST(A.v)` never holds."""
    writer = Writer()
    end = writer.add(ROW, 1, 1)
    outer = writer.split(end, end)
    inner = writer.split(outer, outer)
    row = writer.add(ROW, inner, 0)
    writer.states[inner], writer.states[outer] = (SPLIT, row, outer), (SPLIT, row, end)
    conditions = [Condition(1, "LT", (0, 1))] if greater else []
    local = [None, None if greater else [0] * rows]
    return Case(writer.begin(row), 2, [0, rows], local, [[7] * rows], [[0]], [Ref(2), Ref(0)], conditions)


def running_sum(rows: int, skip: int) -> Case:
    """`A+` with `A AS sum(A.v) <= 50`."""
    writer = Writer()
    states = writer.begin(writer.repeated(0, 1, least=1))
    values = [row % 7 for row in range(rows)]
    conditions = [Condition(0, "LE", (0,), 50)]
    return Case(states, 1, [0, rows], [None], [values], [[0]], [Ref(5)], conditions, skip=skip)


def near_in_time(rows: int) -> Case:
    """`(R Z* B Z* M)` TO NEXT ROW, with B and M near R, and M up to 20 rows after R in time."""
    rng = random.Random(2)
    writer = Writer()
    late = writer.repeated(1, writer.add(ROW, 1, 3), least=0)
    states = writer.begin(writer.add(ROW, writer.repeated(1, writer.add(ROW, late, 2), least=0), 0))
    kinds = [rng.randrange(5) for _ in range(rows)]
    local = [[int(kind == label) for kind in kinds] if label != 1 else None for label in range(4)]
    columns = [list(range(rows)), [rng.random() * 10 for _ in range(rows)], [""] * rows]
    references = [Ref(0), Ref(1, shift=20), Ref(0, column=1, type=1), Ref(1, column=1, type=1)]
    conditions = [Condition(3, "LE", (0, 1)), *(Condition(label, "LT", (2, 3)) for label in (2, 3))]
    return Case(states, 4, [0, rows], local, columns, [[0]], references, conditions, skip=1)


def near_in_the_middle(rows: int) -> Case:
    """`(R Z* B Z* M)` with M near B, and up to 20 rows after R in time."""
    case = near_in_time(rows)
    references = [*case.references, Ref(1, set=1, column=1, type=1)]
    return replace(
        case, sets=[[0], [2]], references=references, conditions=[case.conditions[0], Condition(3, "LT", (2, 4))]
    )


def reluctant(rows: int) -> Case:
    """`(R Z*? M)` with M not below R: found soon, though the rest of the partition could be part of a match."""
    writer = Writer()
    loop = writer.repeated(1, writer.add(ROW, 1, 2), least=0, greedy=False)
    states = writer.begin(writer.add(ROW, loop, 0))
    values = [row % 5 for row in range(rows)]
    references, conditions = [Ref(0), Ref(1)], [Condition(2, "LE", (1, 0))]
    return Case(states, 3, [0, rows], [None] * 3, [values], [[0]], references, conditions, skip=1)


def limited_time(rows: int) -> Case:
    """`A+` in windows of 10 rows."""
    writer = Writer()
    return Case(writer.begin(writer.repeated(0, 1, least=1)), 1, [0, rows], [None], times=list(range(rows)), width=9)


def too_late(rows: int) -> Case:
    """`(A+ B)` within 1,000 rows, with a B at the end alone."""
    writer = Writer()
    states = writer.begin(writer.repeated(0, writer.add(ROW, 1, 1), least=1))
    local = [None, [int(row == rows - 1) for row in range(rows)]]
    return Case(states, 2, [0, rows], local, times=[50 * row for row in range(rows)], width=1000)


SHAPES: dict[str, Callable[[int], Case]] = {
    "greater than the first": partial(first_and_greater, skip=0),
    "greater than the first, to next row": partial(first_and_greater, skip=1),
    "nested loops": partial(nested_loops, greater=False),
    "nested loops with a condition": partial(nested_loops, greater=True),
    "running sum": partial(running_sum, skip=0),
    "running sum, to next row": partial(running_sum, skip=1),
    "near in time": near_in_time,
    "near in the middle": near_in_the_middle,
    "reluctant": reluctant,
    "limited time": limited_time,
    "too late": too_late,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_work_grows_with_the_rows(shape: str) -> None:
    costs = [run(SHAPES[shape](rows))[1] for rows in (2000, 4000, 8000)]
    for kind in ("steps", "conditions", "failures", "bytes"):
        for less, more in pairwise(costs):
            assert more[kind] <= 2.3 * less[kind] + 5000, (kind, costs)


@pytest.mark.parametrize("shape", [name for name in SHAPES if not name.startswith("nested")])
def test_shapes_as_the_slow_search(shape: str) -> None:
    case = SHAPES[shape](60)
    wanted = expected(case)
    assert wanted
    assert run(case)[0] == run(widened(case))[0] == wanted


def test_optional_rows_before_as_many_rows() -> None:
    """`((A{0,1}){n} A{n})` over n rows."""
    rows, after, writer = 500, 1, Writer()
    for _ in range(rows):
        after = writer.add(ROW, after, 0)
    for _ in range(rows):
        after = writer.split(writer.add(ROW, after, 0), after)
    states = writer.begin(after)
    matches, costs = run(Case(states, 1, [0, rows], [[1] * rows]))
    assert matches == [Match(0, 1, 0, (0,) * rows)]
    assert costs["steps"] == rows
    # With a condition of which the backward pass knows nothing, failures have to be remembered.
    conditions = [Condition(0, "LT", (0,), 10)]
    few = Case(states, 1, [0, 60], [None], [[1] * 60], [[0]], [Ref(5)], conditions)
    matches, costs = run(few)
    assert matches == []


def test_memory_for_matches_that_overlap() -> None:
    """`A+` TO NEXT ROW: batches are as long as asked for, or as one match."""
    writer, rows, texts = Writer(), 1500, native.Texts()
    case = Case(writer.begin(writer.repeated(0, 1, least=1)), 1, [0, rows], [None], skip=1)
    search = search_of(native, texts, case)
    start(texts, search, case)
    sizes = []
    while (batch := search.take(100)) is not None:
        sizes.append(len(batch[4]))
        assert search.counts()["bytes"] < 100_000
    assert sum(sizes) == rows * (rows + 1) // 2
    assert max(sizes) == rows


def test_sum_beyond_64_bits() -> None:
    top = 2**63 - 1
    case = Case(Writer().begin(1), 1, [0, 3], [None], [[top, 1, -1]], [[0]], [Ref(5)], [Condition(0, "LT", (0,), 0)])
    writer = Writer()
    never = replace(case, states=writer.begin(writer.add(ROW, writer.add(ROW, 1, 0), 0)))
    assert run(never)[0] == []
    writer = Writer()
    always = replace(
        never, conditions=[Condition(0, "NE", (0,), 5)], states=writer.begin(writer.repeated(0, 1, least=1))
    )
    assert [match.labels for match in run(always)[0]] == [(0,), (0, 0)]  # of the first two rows the sum is null


def test_errors_of_skips() -> None:
    writer = Writer()
    states = writer.begin(writer.add(ROW, writer.split(writer.add(ROW, 1, 1), 1), 0))
    case = Case(states, 2, [0, 1, 3], [None, [1, 1, 0]], [], [[1], [0]], skip=3)
    assert run(case)[0] == expected(case) == ("unbound", 0, 0)
    assert run(replace(case, skip=2, skip_set=1))[0] == ("first row", 0, 0)
    texts = native.Texts()
    search = search_of(native, texts, case)
    start(texts, search, case)
    with pytest.raises(ValueError, match="unbound"):
        search.take(5)
    with pytest.raises(RuntimeError, match="not been started"):
        search.take(5)
    start(texts, search, replace(case, offsets=[0, 2, 3], local=[None, [0, 1, 0]]))
    with pytest.raises(ValueError, match="unbound") as raised:
        search.take(5)
    assert raised.value.args == ("unbound", 0, 1)


def test_long_search_is_interrupted() -> None:
    """Sums differ from start to start, so that nothing that failed helps: minutes of work."""
    case = replace(running_sum(30_000, 1), conditions=[Condition(0, "LE", (0,), 10**9)])
    writer = Writer()
    states = writer.begin(writer.repeated(0, writer.add(ROW, 1, 1), least=1))
    case = replace(case, states=states, labels=2, local=[None, None], references=[Ref(5)])
    case = replace(case, conditions=[*case.conditions, Condition(1, "EQ", (0,), -1)], sets=[[0]])
    texts = native.Texts()
    search = search_of(native, texts, case)
    start(texts, search, case)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    refused: list[BaseException] = []

    def look_in() -> None:
        try:
            search.counts()
        except RuntimeError as error:
            refused.append(error)

    watcher = threading.Timer(0.1, look_in)
    watcher.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            search.take(1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        watcher.join()
    assert "another thread" in str(refused[0])
    with pytest.raises(RuntimeError, match="not been started"):
        search.take(1)


GOOD: dict[str, Any] = {
    "states": [(SPLIT, 1, 2), (ROW, 0, 0), (ACCEPT, 0, 0)],
    "labels": 2,
    "label_sets": [[0], [0, 1]],
    "references": [(0, 0, 0, 0, 0, 0), (10, 0, 0, 0, 1, 2)],
    "conditions": [],
    "live": [[], [], []],
    "skip": 0,
    "skip_set": 0,
    "memory": 1000,
}


@pytest.mark.parametrize(
    "spoilt",
    [
        {"states": []},
        {"states": [(JUMP, 0, 0)], "live": [[]]},
        {"states": [(SPLIT, 1, 2), (JUMP, 2, 0), (LAST, 0, 0)]},
        {"states": [(6, 0, 0)] * 3},
        {"states": [(-1, 0, 0)] * 3},
        {"states": [(ROW, 3, 0)] * 3},
        {"states": [(ROW, 0, 2)] * 3},
        {"states": [(SPLIT, 1, -1)] * 3},
        {"states": [(ROW, 2**40, 0)] * 3},
        {"states": [(ACCEPT, 0, 0)] * 200_001, "live": [[]] * 200_001},
        {"labels": -1},
        {"labels": 65_536},
        {"label_sets": [[2]]},
        {"label_sets": [[-1], []]},
        {"references": [(12, 0, 0, 0, 0, 0)]},
        {"references": [(11, 0, 19, 0, 0, 0)]},
        {"references": [(1, 2, 0, 0, 0, 0)]},
        {"references": [(1, 0, -1, 0, 0, 0)]},
        {"references": [(0, 0, 0, 0, -1, 0)]},
        {"references": [(5, 0, 0, 0, 0, 3)]},
        {"live": [[]]},
        {"live": [[], [2], []]},
        {"skip": 4},
        {"skip": 3, "skip_set": 2},
        {"skip": 2, "skip_set": -1},
        {"memory": -1},
        {"conditions": [(2, "program", [0, 1])]},
        {"conditions": [(0, "program", [0])]},
        {"conditions": [(0, "program", [0, 2])]},
        {"conditions": [(0, "program")]},
        {"conditions": [(0, None, [0, 1])]},
    ],
    ids=str,
)
def test_hostile_patterns_are_refused(spoilt: dict[str, Any]) -> None:
    texts = native.Texts()
    arguments = {**GOOD, **spoilt}
    compared = program(native, texts, "LT", 0)
    arguments["conditions"] = [
        tuple(compared if part == "program" else part for part in condition) for condition in arguments["conditions"]
    ]
    assert native.OrderedSearch(**GOOD)
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        native.OrderedSearch(**arguments)


def words(*values: int) -> Any:
    return np.array(values, np.int64)


ROWS: dict[str, Any] = {
    "columns": [(words(1, 2, 3), None), (words(0, 0), None)],
    "local": [None, np.ones(3, np.uint8)],
    "partitions": words(0, 1, 3),
    "times": words(5, 1, 1),
    "width": 0,
}


@pytest.mark.parametrize(
    "spoilt",
    [
        {"partitions": words()},
        {"partitions": words(0, 3, 2)},
        {"partitions": words(0, 0, 3)},
        {"partitions": words(1, 3)},
        {"partitions": words(-1, 3)},
        {"partitions": words(0, 2**62)},
        {"local": [None]},
        {"local": [None, np.ones(2, np.uint8)]},
        {"local": [None, words(1, 1, 1)]},
        {"columns": []},
        {"columns": [(words(1, 2), None), (words(0, 0), None)]},
        {"columns": [(words(1, 2, 3), np.ones(2, np.uint8)), (words(0, 0), None)]},
        {"columns": [(words(1, 2, 3), None), (words(0, 0, 0), None)]},
        {"columns": [(words(1, 2, 3),), (words(0, 0), None)]},
        {"times": words(1, 2)},
        {"times": words(0, 2, 1)},
        {"width": -1},
        {"width": 2**64},
    ],
    ids=str,
)
def test_hostile_rows_are_refused(spoilt: dict[str, Any]) -> None:
    texts = native.Texts()
    search = native.OrderedSearch(**GOOD)
    with pytest.raises(RuntimeError, match="not been started"):
        search.take(1)
    search.start(**ROWS, texts=texts)
    assert native_matches(search, 10) == [Match(0, 1, 0, (0,)), Match(1, 1, 1, (0, 0))]
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        search.start(**{**ROWS, **spoilt}, texts=texts)


def test_far_times_and_shifts() -> None:
    texts = native.Texts()
    far = 2**63 - 1
    references = [(0, 0, 0, far, 0, 0), (0, 0, 0, -far, 0, 0), (2, 0, far, 0, 0, 0), (2, 0, 0, 0, 0, 0)]
    smaller = program(native, texts, "LE", 0)
    for second in range(4):
        conditions = [(0, smaller, [3, second])]
        search = native.OrderedSearch(
            **{**GOOD, "references": references, "conditions": conditions, "live": [[3, second]] * 3}
        )
        rows = {**ROWS, "times": words(-far, -far, far), "width": far}
        search.start(**rows, texts=texts)
        lengths = [len(match.labels) for match in native_matches(search, 10)]
        assert lengths == ([1, 1, 1] if second == 3 else [0, 0, 0])

"""Dominance on the native core: match points as those of all matches, with far fewer partial matches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.events.batch import Batch
from acep.native.session import NativeSession
from acep.plan.compile import Plan
from acep.plan.dominance import demands, reason_against
from tests.case_counts import CaseCounts
from tests.complaints import case_text, fail_if_wrong_on_rows
from tests.native.harness import compare, engines_of, plan_of, session_of, stream, whole

pytest.importorskip("acep.native._native")

CASES = 2_000
LEAST = {"matched": 0.2, "ordered": 0.15, "equal": 0.1, "fewer": 0.1}
"""Of the cases of each kind at least so many."""

INTS = (-(2**63), -(2**62), -5, -1, 0, 1, 2, 3, 2**62, 2**63 - 1)
FLOATS = (float("-inf"), -1e308, -2.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.5, 1e308, float("inf"))
COLUMNS = {"ts": pa.int64(), "type": pa.string(), "k": pa.int64(), "n": pa.int64(), "i": pa.int64(), "f": pa.float64(),
           "g": pa.float64(), "s": pa.string()}  # fmt: skip
PREDICATES = (
    "V.n > U.n", "V.n <= U.n", "V.n > U.n", "V.f >= U.f", "V.g < U.g", "V.i < U.i", "V.i >= U.i", "V.n = U.n",
    "V.s = U.s", "V.s != U.s", "V.n != U.n", "V.f < 0.8 * U.f", "V.g > U.g * -2", "V.f - U.f > 1.5", "V.f - U.f >= V.g",
    "U.g - V.g <= 2.5", "V.f > -U.f", "V.i > U.i + 5", "V.i < 2 * U.i", "V.i - U.i > 3", "-U.i < V.i",
    "V.i > (U.i - 1) * 3", "V.ts - U.ts >= 3", "V.ts - U.ts < 6", "2 * (V.ts - U.ts) > 5", "NOT (V.n > U.n)",
    "NOT (V.f - U.f < V.g OR V.n > U.n)", "V.f BETWEEN U.f AND U.f + 2", "V.n NOT BETWEEN U.n AND 2",
    "(V.n > U.n OR V.f < U.f)", "V.f / U.f > 1", "V.f > U.f / 3", "U.f IS NULL", "(U.n IS NOT NULL AND V.n >= U.n)",
    "V.n > U.n % 2", "V.n IN (U.n, 1)", "U.i / 2 < V.f", "V.f + U.f * 1e308 > U.g", "V.f * 2 > U.f + U.g",
    "abs(U.n) > V.n", "V.ts > U.ts + 2", "V.g + U.n > 1.5", "lower(U.s) = V.s",
)  # fmt: skip
KLEENE = (
    "b[i].n > b[i-1].n", "b[i].f <= avg(b[..i-1].f)", "b[i].n >= max(b[..i-1].n)", "b[i].g < b[1].g",
    "c.n > b[b.LEN].n", "c.f < b[1].f", "c.n > b[2].n", "b.LEN > 1", "c.n < count(b[])", "c.f > sum(b[].f)",
    "c.n >= min(b[].n)", "c.n > b[i].n", "b[i].n != b[i-1].n", "c.n < sum(b[].n)",
)  # fmt: skip
PATTERNS = (
    "SEQ(A a, B b, C c)", "SEQ(A a, B b, C c)", "SEQ(A a, B b, C c, A d)", "SEQ(A a, B+ b[], C c)",
    "SEQ(A a, {B b, C c})", "SEQ(A a, B* b[], C c)", "SEQ(A a, (B b | C c), A d)", "SEQ(A a, SEQ(B b, C c)+, A d)",
    "SEQ(A a, B? b, C c)",
    "SEQ(ANY a, ANY b, ANY c)", "SEQ(A a, B{2,} b[], C c)",
)  # fmt: skip
STRATEGIES = {"skip_till_any_match": 5, "skip_till_next_match": 3, "partition_contiguity": 1, "strict_contiguity": 0.5}


def random_query(rng: Random) -> str:
    pattern = rng.choice(PATTERNS)
    names = [name for name in "abcd" if re.search(rf" {name}\b", pattern)]
    kleene = "b[]" in pattern
    conjuncts = []
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        if kleene and rng.random() < 0.5:
            conjuncts.append(rng.choice(KLEENE))
            continue
        one, other = sorted(rng.sample(range(len(names)), 2))
        text = rng.choice(PREDICATES)
        for letter, name in (("U", names[one]), ("V", names[other])):
            of = "b[i]" if kleene and name == "b" else name
            text = re.sub(rf"\b{letter}\.", f"{of}.", text)
        conjuncts.append(text)
    if rng.random() < 0.2:
        conjuncts.append("[k]")
    strategy = rng.choices(list(STRATEGIES), list(STRATEGIES.values()))[0]
    windows = [" WITHIN 6", " WITHIN 9", " WITHIN 9 EVENTS"]
    if strategy != "skip_till_any_match" or not re.search(r"[+*]|\{2,\}", pattern):  # there may be 2^n matches
        windows += [" WITHIN 30", " WITHIN 20 EVENTS", ""]
    within = rng.choice(windows)
    return f"PATTERN {pattern} WHERE {strategy} {{ {' AND '.join(conjuncts)} }}{within}"


def random_rows(rng: Random) -> pa.Table:
    def some(values: Sequence[Any]) -> Any:
        return None if rng.random() < 0.06 else rng.choice(values)

    wild = rng.random() < 0.4
    n, ts, rows = rng.choice((12, 30, 60)), 0, []
    for _ in range(n):
        ts += rng.choice((0, 0, 1, 1, 2))
        rows.append({
            "ts": ts, "type": rng.choice("ABC"), "k": rng.choice((1, 2)), "n": some(range(6)), "s": some("pqr"),
            "i": some(INTS if wild else range(9)), "f": some(FLOATS if wild else (0.0, 0.5, 1.0, 2.0, 3.5, 4.0)),
            "g": some(FLOATS if wild else (0.5, 1.0, 1.5, 3.0)),
        })  # fmt: skip
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()})


@pytest.mark.parametrize("chunk", range(10))
def test_points_are_those_of_all_matches(chunk: int, cases: CaseCounts) -> None:
    seen, seeds = Counter[str](), range(chunk, cases(CASES), 10)
    for seed in seeds:
        rng = Random(seed)
        text, errors, table = random_query(rng), rng.choice((0, 0, 0, 1, 2)), random_rows(rng)
        plan = plan_of(text, table, errors=errors)
        assert reason_against(plan) is None
        signs = [demand.sign for demands_of_state in demands(plan) for demand in demands_of_state.values()]
        seen["ordered"] += any(signs)
        seen["equal"] += 0 in signs
        text_of = case_text(f"seed_{seed}", text, table.schema, errors=errors)
        complaint_of = partial(complaint_of_points, plan, seed, seen)
        fail_if_wrong_on_rows(table.to_pylist(), f"# seed {seed}", complaint_of, text_of)
    for kind, share in LEAST.items():
        cases.expect(seen, kind, least=share * len(seeds))


def complaint_of_points(plan: Plan, seed: int, seen: Counter[str], rows: Sequence[Any]) -> str:
    """Say which engine does not find the points of all matches; count whether there are any, and fewer partial ones."""
    engines = [name for name in engines_of(plan) if name != "windows+nodes"]
    batch = whole(plan, pa.Table.from_pylist(rows, pa.schema(COLUMNS)))
    try:
        session = compare(plan, batch, engines, Random(f"batches {seed}"), truth="nodes")
    except AssertionError as error:
        return str(error) or repr(error)
    every, kept = session.counts(0), session.counts(1)
    seen["matched"] += every.matches > 0
    seen["fewer"] += kept.nodes < every.nodes
    return ""


RISING = "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN {}"


def steps(size: int) -> pa.Table:
    return stream(size, x=float, y=9)


def work(text: str, table: pa.Table) -> tuple[Any, Any]:
    """The counts of all matches and of dominance."""
    plan = plan_of(text, table)
    session = session_of(plan, "nodes", "dominance")
    session.push(whole(plan, table))
    return session.counts(0), session.counts(1)


@pytest.mark.long
@pytest.mark.parametrize(("window", "nodes", "touches"), [(60, 2.5, 3.5), (300, 8, 12), (1_000, 18, 30)])
def test_far_fewer_partial_matches_are_made_and_looked_at(window: int, nodes: float, touches: float) -> None:
    every, kept = work(RISING.format(window), steps(4_000))
    assert every.nodes > nodes * kept.nodes
    assert every.touches > touches * kept.touches


def test_without_a_window_the_work_grows_as_the_stream_does() -> None:
    text = RISING.replace(" WITHIN {}", "")
    touches = []
    for size in (3_000, 6_000):
        session = session_of(plan := plan_of(text, table := steps(size)), "dominance")
        session.push(whole(plan, table))
        touches.append(session.counts(0).touches)
    assert touches[1] < 3 * touches[0]


def test_comparisons_never_cost_more_than_matching_does() -> None:
    hard = "PATTERN SEQ(A a, A b, A c, B d) WHERE c.x = b.x + a.x AND b.y > a.y WITHIN 100"
    every, kept = work(hard, steps(3_000))
    assert kept.nodes > 0.9 * every.nodes  # next to nothing dominates
    assert kept.touches < 1.1 * every.touches
    several = "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x < a.y AND c.y > b.x WITHIN 200"
    every, kept = work(several, steps(3_000))
    assert kept.touches < 2.1 * every.touches


def test_comparisons_of_partial_matches_are_touches() -> None:
    size = 500  # events, each of which begins a partial match that no other dominates
    falling = stream(size, types="A", x=np.arange(size), y=-np.arange(size))
    every, kept = work("PATTERN SEQ(A a, B b) WHERE b.x > a.x AND b.y > a.y WITHIN 100", falling)
    assert every.nodes == kept.nodes == every.touches == size
    assert 1.5 * size < kept.touches <= 2 * size


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize(
    "text", [RISING.format(30), RISING.format(30) + " HAVING c.x > 2 * a.x", "PATTERN SEQ(A a, B b) WITHIN 3"]
)
def test_outputs_are_those_of_all_matches(text: str, engine: str) -> None:
    table, query = steps(400), acep.parse(text)
    matches = acep.match(table, query)

    def match(output: str, events: Any = table, **options: Any) -> Any:
        return acep.match(events, query, output=output, engine=engine, **options)

    assert match("points") == match("points", counts=False) == matches.points()
    bundles = match("bundles", counts=False)
    assert bundles == matches.bundles(counts=False)
    assert [(b.start, b.end, b.best) for b in bundles] == [(b.start, b.end, b.best) for b in matches.bundles()]
    assert {b.matches for b in bundles} == {None}
    assert [match("exists", events) for events in (table, table.slice(0, 1), {})] == [True, False, False]


def test_each_query_says_whether_a_match_exists() -> None:
    queries = [acep.parse(f"PATTERN SEQ(A a, B b) WHERE b.x > a.x{more}") for more in ("", " + 1")]
    both = acep.match(steps(400), dict(zip("xy", queries, strict=True)), output="exists")
    assert both == {"x": True, "y": False}


@pytest.mark.parametrize("output", ["matches", "count", "compressed", "exists", "batches"])
def test_only_bundles_and_points_have_counts_to_leave_out(output: str) -> None:
    with pytest.raises(acep.QueryError, match="counts="):
        acep.match(steps(9), acep.parse(RISING.format(9)), output=output, counts=False)


def test_existence_looks_no_further_than_the_first_match(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    parts = Batch.parts

    def watched(batch: Batch, most: int) -> Iterator[Batch]:
        for part in parts(batch, most):
            seen.append(len(part))
            yield part

    monkeypatch.setattr(Batch, "parts", watched)
    assert acep.match(steps(9_000), acep.parse(RISING.format(60)), output="exists")
    assert sum(seen) < 9_000


@pytest.mark.parametrize(("name", "words"), [("demands", [9] * 4), ("demands", []), ("demands_at", [0, 0, 0])])
def test_tables_that_do_not_fit_are_refused(name: str, words: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(RISING.format(9))
    sound = NativeSession._arrays
    spoil = {name: np.array(words, np.int64)}
    monkeypatch.setattr(NativeSession, "_arrays", lambda session, table: sound(session, table) | spoil)
    with pytest.raises(ValueError, match=r"dominance|tables"):
        session_of(plan, "dominance")

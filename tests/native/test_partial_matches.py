"""The live partial matches that native engines list, against the runs that the reference runtime keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

import acep
from acep.events.tables import batch_of, schema_of
from acep.matches.partials.partial_columns import PartialColumns
from acep.native.session import NativeSession
from acep.plan.choice import choose
from acep.plan.compile import Plan, compile_query
from acep.plan.prefilter import necessary
from acep.reference.runtime import ReferenceRuntime
from acep.runtime.live_partials import partials_of
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong
from tests.native.harness import ANY, letters, pieces, plan_of, planned, restarted, session_of, stream, whole
from tests.native.merged_cases import merged_case
from tests.native.test_every_engine import in_order, table_of
from tests.random_automata import random_automaton, random_rows
from tests.random_cases import Case, events_of

pytest.importorskip("acep.native._native")

CHUNKS = 4
SEEDS = 4_000
ALL = 1_000_000


def states_of(plan: Plan) -> Sequence[int]:
    """All states but the first, in which nothing is bound."""
    return range(1, len(plan.arcs.states))


def listed(session: NativeSession, number: int = 0, most: int = ALL, *, apart: bool = False) -> PartialColumns:
    """The partial matches of an engine. To list them changes nothing."""
    before = session.dump()
    columns = session.partial_matches(number, most, states_of(session.plans[number]), apart=apart)
    assert session.dump() == before
    return columns


def rows(columns: PartialColumns) -> list[str]:
    """Partial matches with their key, state, error, times and bound events, in order."""
    return [
        str((record.end, record.start, record.trail, state, record.error, record.key))
        for record, state in zip(columns.records, columns.states.tolist(), strict=True)
    ]


def least_errors(columns: PartialColumns) -> dict[Any, Any]:
    """The least error of the partial matches that bind the same events in one state."""
    least: dict[Any, Any] = {}
    for record, state in zip(columns.records, columns.states.tolist(), strict=True):
        binding = (record.key, record.trail, state)
        least[binding] = min(record.error, least.get(binding, record.error))
    return least


def difference_of(session: NativeSession, number: int, core: ReferenceRuntime) -> str:
    """How an engine's list differs from the runs of the reference runtime, with and without sequences apart."""
    plan = session.plans[number]
    apart, runs = listed(session, number, apart=True), partials_of(core, ALL, states_of(plan))
    assert (apart.total, runs.total) == (len(apart), len(runs))
    # Runs of one binding in one state may be one, with the least error, or several.
    answer: Any = Counter(rows(apart)) if plan.is_unambiguous else least_errors(apart)
    wanted: Any = Counter(rows(runs)) if plan.is_unambiguous else least_errors(runs)
    if answer != wanted:
        return difference([*answer.items()], [*wanted.items()], ("native", "reference"))
    united = listed(session, number)
    assert united.total == len(united)
    assert united.sequences.sum() == len(apart)
    assert {*rows(united)} <= {*rows(apart)}
    for row in range(len(united)):  # it shows one of its sequences that began last
        record, state = united.records[row], int(united.states[row])
        alike = [one.start for one, other in zip(apart.records, apart.states, strict=True) if int(other) == state]
        assert record.start in alike
    if session._engine_tables[number][0] == "nodes" and not plan.query.strategy.contiguous:
        assert united.total == session.live(number)
    return ""


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_engines_list_the_runs_of_the_reference_runtime(chunk: int, cases: CaseCounts) -> None:
    seen: Counter[str] = Counter()

    def check(case: Case) -> str:
        plan, rng = planned(case.query(), table := table_of(case), **case.stream), Random(case.seed)
        engines = ["nodes", *(["merged"] if choose(plan).base == "merged" else [])]
        lanes = rng.choice((1, 1, 3))

        def begin() -> NativeSession:
            return NativeSession([plan] * len(engines), engines, lanes=lanes)

        session, core, batch = begin(), ReferenceRuntime(plan), whole(plan, table)
        parts = pieces(batch, rng.choice((1, 3, len(batch) or 1)))
        for part, after in zip(parts, [*parts[1:], None], strict=True):
            session.push(part)
            core.push(part.events)
            clock = int(part.ts[-1]) + 3 if after is None else int(after.ts[0]) - 1
            if clock >= part.ts[-1] and rng.random() < 0.3:
                session.advance(clock)
                core.advance(clock)
            if rng.random() < 0.2:
                session = restarted(session, begin)
            for number, engine in enumerate(engines):
                if complaint := difference_of(session, number, core):
                    return f"{engine}: {complaint}"
                seen[engine] += core.live
                seen[plan.query.strategy.value] += core.live
                seen["errors"] += plan.automaton.costs.budget > 0
                seen["negations"] += bool(plan.automaton.negations)
                seen["lanes"] += lanes > 1
        return ""

    for case in filter(None, map(in_order, range(chunk, cases(SEEDS), CHUNKS))):
        fail_if_wrong(case, check)
    strategies = ("strict_contiguity", "partition_contiguity", "skip_till_next_match", ANY)
    cases.expect(seen, "nodes", "merged", "errors", "negations", "lanes", *strategies, least=100)


def test_automata_list_the_runs_of_the_reference_runtime(cases: CaseCounts) -> None:
    for seed in range(cases(400)):
        rng = Random(seed)
        query, table = random_automaton(rng).query, events_of(random_rows(rng))
        plan = compile_query(query, schema_of(table.schema, id="id"))
        session, core = session_of(plan, "nodes"), ReferenceRuntime(plan)
        for part in pieces(batch_of(table, plan.schema, plan.columns), rng.choice((1, 4))):
            session.push(part)
            core.push(part.events)
            assert difference_of(session, 0, core) == "", seed


def test_events_that_match_windows_hold_back_count_as_matched(cases: CaseCounts) -> None:
    seen: Counter[str] = Counter()
    for seed in range(cases(2_000)):
        case = merged_case(seed) if seed % 2 else in_order(seed)
        if case is None or case.query().sources:
            continue
        plan = planned(case.query(), table := table_of(case), **case.stream)
        if necessary(plan) is None:
            continue
        engines = ["windows+nodes", *(["windows+merged"] if choose(plan).base == "merged" else [])]

        def begin(plan: Plan = plan, engines: list[str] = engines) -> NativeSession:
            return session_of(plan, *engines)

        session, core = begin(), ReferenceRuntime(plan)
        for part in pieces(whole(plan, table), 2 + seed % 4):
            session.push(part)
            core.push(part.events)
            for number, engine in enumerate(engines):
                assert difference_of(session, number, core) == "", (seed, engine)
                came, passed_on = session.count_windowed(number)
                seen[engine] += core.live if passed_on < came else 0
            if seed % 3 == 0:
                session = restarted(session, begin)
    cases.expect(seen, "windows+nodes", "windows+merged", least=1_000)


def test_the_latest_are_listed_of_many() -> None:
    table = stream(400, x=float)
    plan = plan_of(f"PATTERN SEQ(A a, B b, C c) WHERE {ANY} {{ c.x < b.x AND c.x > a.x }} WITHIN 200", table)
    batch = whole(plan, table)
    for lanes in (1, 3):
        session = NativeSession([plan], ["nodes"], lanes=lanes)
        session.push(batch)
        everything = listed(session)
        assert len(everything) == session.live(0) > 1_000 > len(table)
        for most in (0, 1, 10, 700):
            latest = listed(session, most=most)
            assert latest.total == len(everything)
            assert rows(latest) == rows(everything)[len(everything) - most :]
            assert rows(listed(session, most=most, apart=True)) == rows(latest)


def test_numbers_beyond_64_bits_are_not_known() -> None:
    plan = plan_of("PATTERN SEQ(A+ a[], B b) WITHIN 99", table := letters("A" * 64))
    for size, sequences, total in ((62, 2**62 - 1, 2**62 - 1), (63, 2**63 - 1, -1), (64, -1, -1)):
        for engine in ("nodes", "merged"):
            session = session_of(plan, engine)
            session.push(whole(plan, table.slice(0, size)))
            united = listed(session)
            if size != 63:
                assert united.sequences.tolist() == [sequences]
            some = listed(session, most=5, apart=True)
            assert some.total == total
            assert len(some) == 5
            assert len({*rows(some)}) == 5


@pytest.mark.parametrize("engine", ["count", "points", "bundles", "ends", "compressed"])
def test_engines_that_keep_sums_have_nothing_to_list(engine: str) -> None:
    plan = plan_of("PATTERN SEQ(A a, B b) WITHIN 9", letters("AB"))
    with pytest.raises(ValueError, match="keeps no partial matches"):
        session_of(plan, engine).partial_matches(0, ALL, (1,), apart=False)


def test_dominance_and_searches_have_nothing_to_list() -> None:
    plan = plan_of(f"PATTERN SEQ(A a, B b) WHERE {ANY} {{ b.x > a.x }} WITHIN 9")
    for engine, why in (("dominance", "no events"), ("search", "no partial matches")):
        with pytest.raises(ValueError, match=why):
            session_of(plan, engine).partial_matches(0, ALL, (1,), apart=False)


@pytest.mark.long
def test_under_a_budget_the_hidden_slots_are_no_registers() -> None:
    """Partial matches have a utility bucket once the budget does not suffice. The ones listed are among all."""
    query = f"PATTERN SEQ(A a, B b, C c) WHERE {ANY} {{ b.x > a.x AND c.x < a.x }} WITHIN 100"
    events, seen, lacking = stream(3_000, x=float), 0, 0
    matcher, exact = acep.Matcher(query, budget=acep.Budget(work=12)), acep.Matcher(query)
    for begin in range(0, 3_000, 100):
        part = events.slice(begin, 100)
        matcher.push(part)
        exact.push(part)
        before = matcher.snapshot()
        partials, all_partials = (one.partial_matches(ALL, apart=True) for one in (matcher, exact))
        assert matcher.snapshot() == before
        shown = {str(partial.bindings) for partial in all_partials}
        assert {str(partial.bindings) for partial in partials} <= shown
        assert all(partial.utility is None for partial in all_partials)
        if matcher.report.shed:
            assert all(partial.utility is not None and 0 <= partial.utility <= 254 for partial in partials)
            lacking += len(all_partials) - len(partials)
            seen += len(partials)
            other = acep.Matcher(query, budget=acep.Budget(work=12))
            other.restore(before)
            assert other.partial_matches(ALL, apart=True) == partials
    assert seen > 1_000
    assert lacking > 1_000


def test_sampling_units_give_no_utility() -> None:
    matcher = acep.Matcher("PATTERN SEQ(A a, B b, C c) WITHIN 20", budget=acep.Budget(work=0.5))
    exact = acep.Matcher("PATTERN SEQ(A a, B b, C c) WITHIN 20")
    events, seen, lacking = stream(3_000), 0, 0
    for begin in range(0, 3_000, 100):
        for one in (matcher, exact):
            one.push(events.slice(begin, 100))
        before = matcher.snapshot()
        partials, all_partials = (one.partial_matches(ALL, apart=True) for one in (matcher, exact))
        assert matcher.snapshot() == before
        assert {partial.utility for partial in partials} <= {None}
        shown = {str(partial.bindings) for partial in all_partials}
        assert {str(partial.bindings) for partial in partials} <= shown
        seen, lacking = seen + len(partials), lacking + len(all_partials) - len(partials)
    assert matcher.report.shed > 0
    assert min(seen, lacking) > 100


def test_a_budget_that_suffices_gives_no_utility() -> None:
    query = f"PATTERN SEQ(A a, B b) WHERE {ANY} {{ b.x > a.x }} WITHIN 9"
    matcher = acep.Matcher(query, budget=acep.Budget(work=1e6))
    matcher.push(stream(50, x=float))
    assert matcher.partial_matches()
    assert {partial.utility for partial in matcher.partial_matches()} == {None}

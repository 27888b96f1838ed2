"""Random automata that change while the stream runs: what is found is what the automaton with lifetimes accepts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pytest

import acep
from acep.errors import QueryError
from acep.pattern.tree import GraphArc
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong_on_rows
from tests.random_automata import random_rows
from tests.random_cases import events_of
from tests.runtime.automaton_steps import count_core_calls, draw_steps, try_changes
from tests.thinned import thinned

ENGINES = ("auto", "reference")
CASES = 125
PARTS = 2

Row = dict[str, Any]


def seeds(part: int, cases: CaseCounts) -> range:
    return range(part * 10_000, part * 10_000 + cases(CASES))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", thinned(range(PARTS), PARTS))
def test_changes_hold_from_their_time_on(part: int, engine: str, cases: CaseCounts) -> None:
    seen = try_changes(["change"], engine, seeds(part, cases))
    cases.expect(seen, "has matches", "changed")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", thinned(range(PARTS), PARTS))
def test_changes_that_are_declared_ahead_hold_from_their_time_on(part: int, engine: str, cases: CaseCounts) -> None:
    seen = try_changes(["change", "declare"], engine, seeds(part, cases))
    cases.expect(seen, "has matches", "changed", "declared ahead")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", thinned(range(PARTS), PARTS))
def test_automata_that_are_replaced_go_on_with_the_arcs_that_stay(part: int, engine: str, cases: CaseCounts) -> None:
    seen = try_changes(["change", "declare", "replace"], engine, seeds(part, cases))
    cases.expect(seen, "has matches", "changed", "declared ahead", "replaced")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", thinned(range(PARTS), PARTS))
def test_revised_automata_hold_for_events_that_came_before(part: int, engine: str, cases: CaseCounts) -> None:
    kinds = ["change", "declare", "replace", "revise", "revise"]
    seen = try_changes(kinds, engine, seeds(part, cases), revised=True)
    cases.expect(seen, "has matches", "changed", "declared ahead", "replaced", "holds for events that came before")


POOL = [
    acep.arc("s", "t", "e.type = 'A'"), acep.arc("s", "t", "e.x > 1", {"n": "e.x"}, bind="a"), acep.arc("s", "s"),
    acep.arc("t", "s", "e.x >= r.n", {"n": "r.n + 1"}), acep.arc("t", "t", "e.type != r.who", {"who": "e.type"}),
    acep.arc("t", "u", "e.type IN ('A', 'B') AND r.n != 1"), acep.arc("t", "u", "e.s LIKE 'a%' OR e.x = 2", bind="a"),
    acep.arc("u", "t", "e.f > 1.5", {"n": "0"}), acep.arc("u", "u", "e.x > r.n"), acep.arc("t", "u", "e.x > r.n"),
]  # fmt: skip


@pytest.mark.long
def test_arcs_that_come_back_match_as_in_the_reference_engine(
    monkeypatch: pytest.MonkeyPatch, cases: CaseCounts
) -> None:
    calls, seen = count_core_calls(monkeypatch), Counter[str]()
    for seed in range(cases(400)):
        rng = Random(seed)
        first = [*rng.sample(POOL, 5), replace(POOL[0], until=acep.arc("x", "y", until=9).until), POOL[2]]
        first += [acep.arc("t", "t", "e.x = 0", ignorable=True)] if rng.random() < 0.3 else []
        automaton = acep.Automaton(
            [POOL[0], *first, POOL[9], POOL[8]], start="s", final="u", registers={"n": 0, "who": "A"}, window=6,
            keys=rng.choice(((), "k")),
        )  # fmt: skip
        options = {"id": "id", "seq": "seq", "dynamic": True, "lateness": rng.choice((None, 2))}
        steps = draw_steps(rng, random_rows(rng, 30), ["change"], 6)
        complain = partial(engines_that_differ, automaton, options, seen)
        fail_if_wrong_on_rows(steps, f"seed {seed}, {options}\n{automaton.query.text}", complain)
    cases.expect(seen, "matches", "partial matches that go on")
    cases.expect(calls, "extend", least=21)
    cases.expect(calls, "renew", least=calls["extend"] + 1)


def engines_that_differ(automaton: acep.Automaton, options: Row, seen: Counter[str], steps: Sequence[Row]) -> str:
    """Run steps on both engines, and say in which one, and how, their answers are not the same."""
    engines = ("native", "reference")
    pair = [acep.Matcher(automaton, engine=engine, **options) for engine in engines]
    arcs, pending, newest = list(automaton.arcs), list[Row](), 0
    answers: Any
    for number, step in enumerate([*steps, {"do": "push"}]):
        if "do" not in step:
            pending.append(step)
            continue
        if pending:
            newest = max(row["ts"] for row in pending)
            answers = [sorted(map(shown, matcher.push(events_of(pending)))) for matcher in pair]
            seen["matches"] += len(answers[0])
            pending = []
            if differing := difference(*answers, engines):
                return f"after step {number}:\n{differing}"
        if step["do"] == "change":
            rng = Random(step["draw"])
            remove = [arc for arc in rng.sample(arcs, min(2, len(arcs))) if rng.random() < 0.6]
            add = rng.sample(POOL, rng.randrange(3))
            since = newest + rng.randrange(1, 4) if rng.random() < 0.4 else None
            answers = [changed(matcher, add, remove, since) for matcher in pair]
            if differing := difference(*answers, engines):
                return f"step {number}, add {add}, remove {remove}, since {since}:\n{differing}"
            if isinstance(answers[0], int):
                seen["partial matches that go on"] += answers[0]
                for arc in remove:
                    arcs.remove(arc)
                arcs += add
        if step["do"] == "restore":
            states = [matcher.snapshot() for matcher in pair]
            pair = [acep.Matcher(automaton, engine=engine, **options) for engine in engines]
            for matcher, state in zip(pair, states, strict=True):
                matcher.restore(state)
    return difference(*(sorted(map(shown, matcher.finish())) for matcher in pair), engines)


def shown(match: Any) -> str:
    return repr((match.key, match.start, match.end, match.bindings, match.values))


def changed(matcher: acep.Matcher[Any], add: list[GraphArc], remove: list[GraphArc], since: int | None) -> int | str:
    """Return how many partial matches go on, or why the change is refused."""
    try:
        return matcher.change(add, remove, since=since)
    except QueryError as refused:
        return str(refused)

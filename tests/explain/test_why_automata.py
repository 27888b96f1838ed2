"""Why a hand-written automaton has no match: the text of each way to fail, and whether it is true of random ones."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

import acep
from acep.explain.why import Furthest, why
from tests.case_counts import CaseCounts
from tests.complaints import fail_if_wrong_on_rows
from tests.random_automata import _after, accepted, random_automaton, random_rows
from tests.random_cases import COLUMNS

FALLS = acep.Automaton(
    [
        acep.arc("begin", "falling", "e.price > 5", {"low": "e.price"}, bind="first"),
        acep.arc("falling", "falling", "e.price < r.low", {"low": "e.price", "downs": "r.downs + 1"}),
        acep.arc("falling", "falling", "e.price IS NULL", ignorable=True),
        acep.arc("falling", "end", "e.price > r.low AND r.downs >= 2", bind="rise"),
    ],
    final="end",
    registers={"low": float, "downs": 0},
    keys="symbol",
    window=10,
)


ENDS = ("took no arc", "nearer", "stream ended", "window closed", "from there")


def look(prices: list[Any], ts: list[int] | None = None) -> Furthest:
    rows = {"ts": ts or list(range(len(prices))), "symbol": ["S"] * len(prices), "price": prices}
    return why(pa.table(rows | {"price": pa.array(prices, pa.float64())}), FALLS, key={"symbol": "S"}, type=None)


def test_the_event_that_took_no_arc_is_named_with_all_values() -> None:
    found = look([9.0, 8.0, 8.5, 7.0])
    assert str(found).splitlines() == [
        "symbol=S: 4 events, no match",
        "furthest: first=0 events=1; state falling (low = 8.0, downs = 1); an arc to falling or end is needed next",
        "  event 2 takes no arc falling -> falling: e.price < r.low does not hold (e.price = 8.5, r.low = 8.0)",
        "  event 2 takes no arc falling -> end: r.downs >= 2 does not hold (r.downs = 1)",
        "then event 2 took no arc",
        "  event 0: ts=0, symbol=S, price=9.0",
        "  event 1: ts=1, symbol=S, price=8.0",
        "  event 2: ts=2, symbol=S, price=8.5",
    ]
    assert found.registers == {"low": 8.0, "downs": 1}
    assert found.bound == {"first": (0,), "events": (1,)}
    assert [(one.id, one.arc, one.takes) for one in found.failed] == [
        (2, "falling -> falling", True),
        (2, "falling -> end", True),
    ]


def test_no_event_that_came_in_the_window_is_told() -> None:
    assert look([9.0, 8.0], ts=[1, 2]).ended == "no event came before the stream ended"
    assert look([9.0, 8.0, 7.0], ts=[1, 2, 11]).ended == "no event came before the window closed (event 2 is too late)"


def test_events_that_an_ignorable_arc_let_pass_are_listed() -> None:
    found = look([9.0, 8.0, None, 7.0], ts=[1, 2, 3, 30])
    assert [(one.id, one.arc) for one in found.failed] == [(2, "falling -> falling"), (2, "falling -> end")]
    assert found.failed[0].reason == "e.price < r.low does not hold (e.price = null, r.low = 8.0)"
    assert found.ended == "the window closed (event 3 is too late)"


def test_nothing_that_began_is_told_with_the_registers_at_the_start() -> None:
    found = look([4.0, 3.0])
    assert found.state == "nothing is bound: state begin (low = null, downs = 0); an arc to falling is needed next"
    assert [one.reason for one in found.failed] == [
        "e.price > 5 does not hold (e.price = 4.0)",
        "e.price > 5 does not hold (e.price = 3.0)",
    ]
    assert found.ended == "no event took an arc from there"
    assert found.registers == {"low": None, "downs": 0}


def test_a_match_is_said_to_be_there() -> None:
    assert str(look([9.0, 8.0, 7.0, 8.0])).splitlines() == [
        "symbol=S: 4 events, 1 match",
        "  match: first=0 events=1,2 rise=3",
        "every event that the pattern can bind is in a match",
    ]


def test_an_arc_that_leads_away_from_the_end_is_named() -> None:
    arcs = [acep.arc("s", "t", "e.x = 1"), acep.arc("t", "s", "e.x = 2"), acep.arc("t", "u", "e.x = 3")]
    found = why({"ts": [1, 2, 3], "x": [1, 2, 9]}, acep.Automaton(arcs, final="u"), type=None)
    assert found.bound == {"events": (0,)}
    assert found.ended == "event 1 took the arc to s, which is no nearer to an end"
    assert [(one.arc, one.reason) for one in found.failed] == [("t -> u", "e.x = 3 does not hold (e.x = 2)")]


def test_an_arc_that_is_not_valid_at_that_time_is_told() -> None:
    day = dt.datetime(2026, 1, 31, tzinfo=dt.UTC)
    arcs = [acep.arc("s", "t"), acep.arc("t", "u", since=day), acep.arc("t", "u", until="2026-01-01 00:00")]
    rows = {"ts": [dt.datetime(2026, 1, 4, tzinfo=dt.UTC), dt.datetime(2026, 1, 5, tzinfo=dt.UTC)]}
    found = why(rows, acep.Automaton(arcs, final="u"), type=None)
    assert [one.reason for one in found.failed] == [
        "it is valid from 2026-01-31T00:00:00Z",
        "it is valid before 2026-01-01T00:00:00Z",
    ]


def test_times_and_decimals_are_shown_as_in_the_table() -> None:
    arcs = [
        acep.arc("s", "t", transfer={"at": "e.ts", "paid": "e.cost"}),
        acep.arc("t", "u", "e.ts > r.at + 1 h AND e.cost > 2"),
        acep.arc("t", "u", "e.cost > r.paid"),
    ]
    automaton = acep.Automaton(arcs, final="u", registers={"at": dt.datetime, "paid": float})
    days = [dt.datetime(2026, 1, 31, 10, minute) for minute in (0, 30)]
    found = why({"ts": days, "cost": [Decimal("2.50"), Decimal("1.25")]}, automaton, type=None)
    assert [one.reason for one in found.failed] == [
        "e.ts > r.at + 1 h does not hold (e.ts = 2026-01-31T10:30:00, r.at = 2026-01-31T10:00:00)",
        "e.cost > r.paid does not hold (e.cost = 1.25, r.paid = 2.5)",
    ]


def test_a_state_from_which_no_arc_leads_on() -> None:
    arcs = [acep.arc("s", "t", "e.x = 1"), acep.arc("s", "dead", "e.x = 2"), acep.arc("t", "u", "e.x = 3")]
    found = why({"ts": [1], "x": [2]}, acep.Automaton(arcs, final="u"), type=None)
    assert [one.reason for one in found.failed] == [
        "e.x = 1 does not hold (e.x = 2)",
        "no final state can be reached from there",
    ]


def test_what_is_told_of_random_automata_is_true(cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(cases(300)):
        rng = Random(seed)
        automaton, rows = random_automaton(rng), random_rows(rng, 9)
        if rng.random() < 0.7:  # a final state that no event reaches
            states = [one.target for one in automaton.arcs if not one.epsilon]
            last = acep.arc(rng.choice(states), "z", rng.choice(("e.x = 9", "e.type = 'Z'")))
            automaton = replace(automaton, arcs=[*automaton.arcs, last], final="z")
        for key in dict.fromkeys(tuple(row[name] for name in automaton.query.ties) for row in rows):
            if None in key:
                continue
            named = dict(zip(automaton.query.ties, key, strict=True))
            title = f"seed {seed}: {automaton.query.text}\nkey {named}"
            fail_if_wrong_on_rows(rows, title, partial(complaint_of_report, automaton, named, seen))
    cases.expect(seen, *ENDS, "match", least=4)


def complaint_of_report(automaton: acep.Automaton, key: dict[str, Any], seen: Counter[str], rows: Sequence[Any]) -> str:
    """Say what is wrong with the report on a partition; count how its furthest run ended."""
    partition = [row for row in rows if all(row[name] == value for name, value in key.items())]
    matches = accepted(automaton, partition)
    if len(matches) > 500:
        return ""
    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()})
    report = why(table, automaton, key=key, id="id", seq="seq")
    if report.matches != len(matches):
        return f"{report.matches} matches, not {len(matches)}"
    try:
        seen["match" if matches else check(report, automaton, partition)] += 1
    except AssertionError as error:
        return str(error) or repr(error)
    return ""


def check(found: Furthest, automaton: acep.Automaton, rows: list[dict[str, Any]]) -> str:
    """Check a report against all runs of the definition; return how the furthest one ended, one of ``ENDS``."""
    where = str(found)
    runs = all_runs(automaton, rows)
    far = distances(automaton)
    ids = {(row["id"], var) for row in rows for var in ("a", "b", "events")}
    bound = {(one, var) for var, some in found.bound.items() for one in some}
    assert bound <= ids, where
    if not bound:
        assert not [run for run in runs if far.get(run[0]) is not None], where
        return "from there"
    mine = [run for run in runs if {(rows[place]["id"], var) for place, var in run[2]} == bound]
    state = found.state.split()[1].strip(";,")
    names = [*automaton.registers]
    mine = [
        run for run in mine
        if run[0] == state and all(run[1][names.index(name)] == value for name, value in found.registers.items())
    ]  # fmt: skip
    assert mine, where
    if not any(one.since or one.until for one in automaton.arcs):
        ranks = [(far[run[0]], -len(run[2])) for run in runs if run[0] in far]
        assert far[state] == min(ranks)[0], where
        assert found.failed or (far[state], -len(bound)) == min(ranks), where
    last = mine[0][2][-1][0]
    for number, row in enumerate(rows[last + 1 :], last + 1):
        if not within(automaton, rows, mine[0][2][0][0], number):
            assert f"the window closed (event {row['id']} is too late)" in found.ended, where
            return "window closed"
        after = list(_after(automaton, [mine[0]], row, number))
        if not any(len(run[2]) == len(mine[0][2]) for run in after):
            assert {one.id for one in found.failed} <= {row["id"]}, where
            if f"event {row['id']} took no arc" in found.ended:
                assert not [run for run in after if run[0] in far], where
                assert found.failed or "no arc takes" in found.state, where
                return "took no arc"
        if f"event {row['id']} took the arc to " in found.ended:
            targets = {run[0] for run in after if len(run[2]) > len(mine[0][2])}
            assert set(found.ended.split("arc to ")[1].split(",")[0].split(" or ")) <= targets, where
            return "nearer"
        assert after, where
    assert found.ended.endswith("the stream ended"), where
    assert ("no event came" in found.ended) == (last == len(rows) - 1 or not found.failed), where
    return "stream ended"


def within(automaton: acep.Automaton, rows: list[dict[str, Any]], first: int, place: int) -> bool:
    """Whether an event may belong to a run that began at another one."""
    window = automaton.query.within
    if window is None:
        return True
    if window.unit == "events":
        return place - first < window.amount
    return rows[place]["ts"] - rows[first]["ts"] < window.amount


def all_runs(automaton: acep.Automaton, rows: list[dict[str, Any]]) -> list[Any]:
    """All runs that have bound an event, by the definition of the 2010 paper."""
    graph, found = automaton.query.graph, []
    assert graph is not None
    for first in range(len(rows)):
        runs: set[Any] = {(graph.start, tuple(one.initial for one in graph.registers), ())}
        for place in range(first, len(rows)):
            if not within(automaton, rows, first, place):
                break
            runs = set(_after(automaton, runs, rows[place], place))
            found += [run for run in runs if run[2]]
    return found


def distances(automaton: acep.Automaton) -> dict[str, int]:
    """The least number of events from each state to a final one; epsilon arcs are taken with the event before."""
    graph = automaton.query.graph
    assert graph is not None
    far = dict.fromkeys(graph.final, 0)
    behind = dict(far)  # with the epsilon arcs that may follow
    for _ in range(2 * len(graph.states)):
        for one in graph.arcs:
            if one.target in behind and not one.ignorable:
                length, known = behind[one.target] + (not one.epsilon), behind if one.epsilon else far
                known[one.source] = min(length, known.get(one.source, length))
        for state, length in far.items():
            behind[state] = min(length, behind.get(state, length))
    return far

"""Under contiguity each event replaces all partial matches: hand-written automata on both engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

import acep
from tests.complaints import fail_if_different_on_rows

UP, DOWN = "e.x > 0", "e.x < 0"
WAYS = [acep.arc("s", "t", UP, {"n": "r.n + e.x"}, bind="v"), acep.arc("s", "u", UP, {"n": "r.n + 1"}, bind="v")]
MEETING = acep.Automaton(
    [*WAYS, acep.arc("t", "w", bind="v"), acep.arc("u", "w", bind="v"), acep.arc("w", "end", UP, bind="v")],
    final="end",
    registers={"n": 0},
)
"""Two runs over the same events meet in a state: they are one if their registers are equal."""
FORGETTING = acep.Automaton(
    [
        *WAYS,
        acep.arc("t", "w", UP, bind="v"),
        acep.arc("u", "w", UP, bind="v"),
        acep.arc("w", "z", DOWN, {"n": "least(r.n, 1)"}, bind="v"),
        acep.arc("z", "end", UP, bind="v"),
    ],
    final="end",
    registers={"n": 0},
)
"""The same, but the registers become equal only one event after the runs have met."""
TWICE = acep.Automaton(
    [
        acep.arc("s", "t", UP, bind="v"),
        acep.arc("t", "t", UP, {"n": "r.n + 1"}, bind="v"),
        acep.arc("t", "t", "e.x > 1", {"n": "r.n + e.x - 1"}, bind="v"),
        acep.arc("t", "end", DOWN, bind="v"),
    ],
    final="end",
    registers={"n": 0},
)
"""Two arcs of a state lead to it, at times with equal registers."""
GROWING = acep.Automaton(
    [
        acep.arc("s", "t", UP, {"n": "r.n + 1"}),
        acep.arc("t", "t", UP, {"n": "r.n + 1"}),
        acep.arc("t", "u", UP),
        acep.arc("u", "u", "e.x != 0"),
        acep.arc("u", "end", f"{DOWN} AND r.n > 1"),
    ],
    final="end",
    registers={"n": 0},
)
"""A rise of any length goes on in two states, one of which mixes older partial matches with newer ones."""
AUTOMATA = {"meeting": MEETING, "forgetting": FORGETTING, "twice": TWICE, "growing": GROWING}


def given(automaton: acep.Automaton, rows: dict[str, list[int]], engine: str, push: int) -> list[tuple[Any, ...]]:
    matcher = acep.Matcher(automaton, type=None, engine=engine)
    pushes = [{name: column[at : at + push] for name, column in rows.items()} for at in range(0, len(rows["ts"]), push)]
    found = [m for rows in pushes for m in matcher.push(rows)]
    return [(tuple(m.key.items()), m.start, m.end, str(m.bindings), str(m.values)) for m in found]


def test_runs_over_the_same_events_are_one_where_they_meet_with_equal_registers() -> None:
    for x, matches in ((1, 1), (2, 2)):
        rows = {"ts": [1, 2, 3], "x": [x, x, x]}
        found = given(MEETING, rows, "auto", 3)
        assert len(found) == matches
        assert given(MEETING, rows, "reference", 3) == found


@pytest.mark.parametrize("push", [1, 7, 1_000])
@pytest.mark.parametrize("window", [None, "9 events", 6])
@pytest.mark.parametrize("automaton", AUTOMATA.values(), ids=AUTOMATA)
def test_both_engines_give_the_same_matches(automaton: acep.Automaton, window: int | str | None, push: int) -> None:
    rng = Random(str((window, push)))
    rows = {"ts": [n // 2 for n in range(400)], "x": [rng.choice((-1, 0, 1, 1, 1, 2)) for _ in range(400)]}
    rows["k"] = [rng.randrange(3) for _ in rows["ts"]]
    asked = acep.Automaton(
        automaton.arcs, final=automaton.final, registers=automaton.registers, keys="k", window=window
    )
    events = [dict(zip(rows, cells, strict=True)) for cells in zip(*rows.values(), strict=True)]
    sizes = []

    def reference(some: Sequence[Mapping[str, int]]) -> list[tuple[Any, ...]]:
        matches = given(asked, columns_of(some), "reference", push)
        sizes.append(len(matches))
        return matches

    fail_if_different_on_rows(
        events,
        f"in pushes of {push}\n{asked.query.text}",
        lambda some: given(asked, columns_of(some), "auto", push),
        reference,
        ("auto", "reference"),
    )
    assert sizes[0] > 10


def columns_of(events: Sequence[Mapping[str, int]]) -> dict[str, list[int]]:
    return {name: [event[name] for event in events] for name in ("ts", "x", "k")}


@pytest.mark.long
def test_hundreds_of_partial_matches_go_on_at_once() -> None:
    rows = {"ts": [*range(302)], "x": [1] * 300 + [-1] * 2}
    found = given(TWICE, rows, "auto", 302)
    assert given(TWICE, rows, "reference", 302) == found
    assert len(found) == 300

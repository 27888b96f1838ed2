"""Random hand-written automata, and what they accept by the definition of the 2010 paper (section 2.2), step by step.

Nothing here composes epsilon arcs or shares a run: every contiguous sequence of events is fed to the automaton.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pyarrow as pa

import acep
from acep.pattern import expressions as ex
from acep.pattern.tree import GraphArc
from tests.oracle_values import value
from tests.random_cases import COLUMNS

Row = dict[str, Any]
Registers = dict[str, Any]
Run = tuple[str, tuple[Any, ...], tuple[tuple[int, str], ...]]  # state, registers, bound rows with their variables

STATES = ("s", "t", "u", "v")
REGISTERS = {"n": 0, "low": int, "mean": 0.5, "who": "A", "seen": bool}
SETS = {
    "n": ("r.n + 1", "0", "e.x", "r.n - e.x", "coalesce(r.low, 7)"),
    "low": ("e.x", "least(r.low, e.x)", "r.n", "null"),
    "mean": ("e.f", "r.mean / 2 + e.x", "e.x", "r.n", "2"),
    "who": ("e.type", "r.who", "'B'", "e.s"),
    "seen": ("true", "e.x > r.n", "NOT r.seen", "e.type = r.who"),
}
FENCES = (
    "e.x > 1", "e.type = 'A'", "e.type != r.who", "r.n < 3", "e.x >= r.low", "e.x > r.n OR r.low IS NULL", "r.seen",
    "e.f > r.mean", "e.type IN ('A', 'B') AND r.n != 1", "e.s LIKE 'a%' OR e.x = 2", "NOT (e.x = r.n)", "e.y IS NULL",
)  # fmt: skip
OF_REGISTERS = ("r.n > 0", "r.low IS NOT NULL", "r.n < 2 OR r.seen", "r.who = 'A'", "r.mean < 3")


def random_automaton(rng: Random) -> acep.Automaton:
    """Draw an automaton of up to four states; each is reached from the first."""
    names = STATES[: rng.randrange(2, len(STATES) + 1)]
    registers = {name: REGISTERS[name] for name in rng.sample([*REGISTERS], rng.choice((0, 1, 2, 3, 5)))}
    arcs = []
    ends = [(rng.choice(names[:i]), names[i]) for i in range(1, len(names))]
    ends += [(rng.choice(names), rng.choice(names)) for _ in range(rng.randrange(5))]
    for source, target in ends:
        epsilon = names.index(source) < names.index(target) and rng.random() < 0.25
        ignorable = source == target and not epsilon and rng.random() < 0.5
        known = [one for one in (OF_REGISTERS if epsilon else FENCES) if _reads(one) <= {*registers}]
        fence = rng.choice(known) if known and rng.random() < 0.7 else None
        transfer = {}
        for name in registers:
            sets = [one for one in SETS[name] if _reads(one) <= {*registers} and not (epsilon and "e." in one)]
            if not ignorable and sets and rng.random() < 0.5:
                transfer[name] = rng.choice(sets)
        bind = None if epsilon or ignorable else rng.choice((None, None, "a", "b"))
        times: dict[str, Any] = {"since": rng.randrange(6)} if rng.random() < 0.1 else {}
        times |= {"until": rng.randrange(4, 14)} if rng.random() < 0.1 else {}
        arcs.append(acep.arc(source, target, fence, transfer, bind=bind, epsilon=epsilon, ignorable=ignorable, **times))
    if all(one.epsilon or one.ignorable for one in arcs):
        arcs.append(acep.arc(names[0], names[-1]))
    final = rng.sample(names[1:], rng.choice((1, 1, min(2, len(names) - 1))))
    window = rng.choice((None, 1, 3, 4.5, 9, "1 event", "3 events"))
    return acep.Automaton(arcs, final=final, registers=registers, keys=rng.choice(((), "k")), window=window)


def random_rows(rng: Random, most: int = 14) -> list[Row]:
    """Events in the order of time, with ties and nulls."""
    times = sorted(rng.randrange(12) for _ in range(rng.randrange(1, most)))
    return [
        {
            "ts": ts, "type": rng.choice("ABC"), "k": rng.choice((0, 0, 1, None)), "x": rng.choice((0, 1, 2, 3, None)),
            "y": rng.choice((1, None)), "f": rng.choice((0.5, 2.0, None)), "s": rng.choice(("ab", "b", None)),
            "seq": number, "id": f"e{number}",
        }
        for number, ts in enumerate(times)
    ]  # fmt: skip


def few_matches(automaton: acep.Automaton, rows: list[Row], most: int = 2_000) -> list[Row]:
    """The first rows, as long as their matches and partial matches are at most so many; both may double with a row."""
    matcher, found = acep.Matcher(automaton), 0
    for many, row in enumerate(rows):
        found += len(matcher.push(pa.Table.from_pylist([row], pa.schema([*COLUMNS.items()]))))
        assert matcher._tables.stream is not None
        if found + matcher._tables.stream.live > most:
            return rows[:many]
    return rows


def _reads(text: str) -> set[str]:
    """The registers in an expression."""
    return {name for name in REGISTERS if f"r.{name}" in text}


def accepted(automaton: acep.Automaton, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """All matches of a stream that is in order: key, rows with their variables, final state, registers."""
    graph, within = automaton.query.graph, automaton.query.within
    assert graph is not None
    keys = automaton.query.ties
    initial = tuple(r.initial for r in graph.registers)
    found = []
    parts: dict[tuple[Any, ...], list[int]] = {}
    for number, row in enumerate(rows):
        key = tuple(row[name] for name in keys)
        if None not in key:
            parts.setdefault(key, []).append(number)
    for key, places in parts.items():
        for begin, first in enumerate(places):
            runs: set[Run] = {(graph.start, initial, ())}
            for many, place in enumerate(places[begin:], 1):
                row, gone = rows[place], rows[place]["ts"] - rows[first]["ts"]
                if within is not None and (many if within.unit == "events" else gone + 1e-9) > within.amount:
                    break
                if within is not None and within.unit != "events" and gone >= within.amount:
                    break
                runs = set(_after(automaton, runs, row, place))
                for state, held, bound in runs:
                    if state in graph.final and bound and bound[-1][0] == place:
                        found.append((key, bound, state, held))
    return sorted(found, key=str)


def _after(automaton: acep.Automaton, runs: set[Run], row: Row, place: int) -> Iterator[Run]:
    """The runs after an event: epsilon arcs of the start, the arc that takes the event, epsilon arcs behind it."""
    graph = automaton.query.graph
    assert graph is not None
    for run in runs:
        for state, held, bound in _closure(automaton, run, row) if not run[2] else [run]:
            for arc in graph.arcs:
                if arc.source != state or arc.epsilon or not _holds(automaton, arc, held, row):
                    continue
                if arc.ignorable:
                    if bound:
                        yield state, held, bound
                else:
                    taken = (arc.target, _moved(automaton, arc, held, row), (*bound, (place, arc.var)))
                    yield from _closure(automaton, taken, row)


def _closure(automaton: acep.Automaton, run: Run, row: Row) -> list[Run]:
    graph = automaton.query.graph
    assert graph is not None
    found = [run]
    for state, held, bound in found:
        arcs = [arc for arc in graph.arcs if arc.epsilon and arc.source == state]
        found += [
            (arc.target, _moved(automaton, arc, held, row), bound) for arc in arcs if _holds(automaton, arc, held, row)
        ]
    return found


def _holds(automaton: acep.Automaton, arc: GraphArc, held: tuple[Any, ...], row: Row) -> bool:
    late = isinstance(arc.since, ex.Literal) and row["ts"] < arc.since.value
    over = isinstance(arc.until, ex.Literal) and row["ts"] >= arc.until.value
    return not (late or over) and (arc.fence is None or _value(automaton, arc.fence, held, row) is True)


def _moved(automaton: acep.Automaton, arc: GraphArc, held: tuple[Any, ...], row: Row) -> tuple[Any, ...]:
    graph, sets = automaton.query.graph, dict(arc.transfer)
    assert graph is not None
    after = []
    for register, old in zip(graph.registers, held, strict=True):
        new = _value(automaton, sets[register.name], held, row) if register.name in sets else old
        after.append(float(new) if register.kind == "float" and new is not None else new)
    return tuple(after)


def _value(automaton: acep.Automaton, expr: ex.Expr, held: tuple[Any, ...], row: Row) -> Any:
    graph = automaton.query.graph
    assert graph is not None
    registers = {r.name: one for r, one in zip(graph.registers, held, strict=True)}
    return value(expr, lambda leaf: registers[leaf.name] if leaf.var == "r" else row[leaf.name])

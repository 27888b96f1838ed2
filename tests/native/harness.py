"""Share among tests of the native core: streams, plans, runs in batches with restarts, and the answers of engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import acep
from acep.budget.policies import POLICIES
from acep.events.batch import Batch
from acep.events.tables import batch_of, schema_of
from acep.learning.policy import Policy
from acep.matches.counted import Row
from acep.matches.found_columns import FoundColumns, concatenate
from acep.matches.records import Found, output_order
from acep.native.lanes import Lanes
from acep.native.session import NativeSession, SessionBounds
from acep.pattern.tree import Output, Query
from acep.plan import searching
from acep.plan.choice import BY_POINTS, base_engine
from acep.plan.compile import Plan, compile_query
from acep.plan.dominance import reason_against
from acep.plan.prefilter import necessary
from acep.plan.schema import Kind, Schema
from acep.reference.runtime import ReferenceRuntime
from acep.shedding.controller import SheddingController
from acep.shedding.recovery.recovery import Recovery
from tests.complaints import difference

__all__ = [
    "ANY",
    "NEXT",
    "SCHEMA",
    "Run",
    "compare",
    "controlled",
    "engines_of",
    "enumerated",
    "lanes_for",
    "letters",
    "pieces",
    "plan_of",
    "planned",
    "push_all",
    "reference",
    "restarted",
    "session_of",
    "shown",
    "stream",
    "take",
    "whole",
]

ANY, NEXT = "skip_till_any_match", "skip_till_next_match"
SCHEMA = Schema((("k", Kind.INT), ("x", Kind.INT), ("y", Kind.FLOAT), ("s", Kind.STRING)))


# Streams and plans


def letters(word: Sequence[str], **columns: Any) -> pa.Table:
    """Events of one-letter types, one a tick, with more columns."""
    return pa.table({"ts": range(len(word)), "type": list(word)} | columns)


def stream(size: int, seed: int = 1, types: str = "ABC", **columns: Any) -> pa.Table:
    """Events of random types, one a tick. Other columns are drawn from the integers below a number, from the reals
    below 1 (``float``) or from a tuple; a list or an array is the column itself."""
    draw = np.random.default_rng(seed)

    def column(source: Any) -> Any:
        if isinstance(source, tuple):
            return [source[i] for i in draw.integers(0, len(source), size)]
        if isinstance(source, int):
            return draw.integers(0, source, size)
        return draw.random(size) if source is float else source

    word = draw.choice(list(types), size).tolist()
    return letters(word, **{name: column(source) for name, source in columns.items()})


def planned(query: Query, table: pa.Table, **options: Any) -> Plan:
    """The plan of a query for a table, with the options of its stream."""
    return compile_query(query, schema_of(table.schema, **options))


def plan_of(text: str, table: pa.Table | None = None, **options: Any) -> Plan:
    """The plan of a text for a table, or for a stream with the columns of ``SCHEMA``; with the options of ``parse``."""
    return compile_query(acep.parse(text, **options), SCHEMA if table is None else schema_of(table.schema))


def whole(plan: Plan, table: pa.Table) -> Batch:
    """A table as one batch."""
    return batch_of(table, plan.schema, plan.columns)


def pieces(batch: Batch, size: int) -> list[Batch]:
    """A batch cut into batches of a size, events of one time as well."""
    return [batch.take(slice(at, at + size)) for at in range(0, len(batch), size)]


# Runs


def session_of(plan: Plan, *engines: str, bounds: SessionBounds | None = None, **lanes: int) -> NativeSession:
    """A session that runs a plan on each of some engines."""
    return NativeSession([plan] * len(engines), engines, bounds, **lanes)


def controlled(
    plan: Plan,
    engine: str,
    policy: Policy | str,
    rate: float | None,
    *,
    recovery: tuple[float, float] | None = None,
    future: bool = False,
    **options: Any,
) -> NativeSession:
    """A session under an allowance of so many touches an event, and under one to recover bundles: a share, and so many
    more touches. ``options`` are those of :class:`SheddingController`.
    ``future``: what a batch tells of later events is used where it pays, so that results depend on the batches."""
    chosen = POLICIES[policy]() if isinstance(policy, str) else policy
    controller = SheddingController(chosen, options.pop("seed", 0), rate, **options)
    recoveries = {} if recovery is None else {0: Recovery(*recovery)}
    session = session_of(plan, engine, bounds=SessionBounds({0: controller}, recoveries=recoveries))
    if not future:
        session.ignore_future()
    return session


def restarted(session: NativeSession, begin: Callable[[], NativeSession]) -> NativeSession:
    """A new session that goes on from the state of another."""
    fresh = begin()
    fresh.load(session.dump())
    return fresh


def take(session: NativeSession, returned: Sequence[FoundColumns], number: int = 0, *, last: bool = True) -> list[Any]:
    """Return all that an engine found in a step: its matches of those that the step ``returned``, or rows of points or
    counts since the last call. Only with ``last``: bundles that may still grow, the total of the engine ``count``, and
    the matches of the engine ``compressed``."""
    engine = base_engine(session._engine_tables[number][0])
    if engine in ("nodes", "merged"):
        return list(returned[number])
    if engine in BY_POINTS:
        return list(session.take_points(number).rows())
    if engine == "compressed":
        return enumerated(session, session.take_compressed(number), number=number) if last else []
    rows = list(session.take_counts(number, last=last).rows())
    return [session.total(number)] if engine == "count" and last else rows


def push_all(session: NativeSession, batches: Iterable[Batch]) -> list[FoundColumns]:
    """Push all batches, end the stream, and return the matches of each plan."""
    steps = [*map(session.push, batches), session.finish()]
    return [concatenate(parts) for parts in zip(*steps, strict=True)]


def enumerated(session: NativeSession, matches: Any, size: int = 64, number: int = 0) -> list[Found]:
    """All of compressed matches, in blocks of a size."""
    cursor, found = matches.cursor(), list[Found]()
    while block := list(session.columns(number, cursor.next(size))):
        assert len(block) <= size
        found += block
    return found


class Run:
    """One engine that is given batches, and what it found. ``begin`` makes its session, anew for a restart."""

    def __init__(self, begin: Callable[[], NativeSession]) -> None:
        self.begin, self.session, self.found = begin, begin(), list[Any]()
        self.kind = base_engine(self.session._engine_tables[0][0])

    def push(self, batch: Batch, *, last: bool = False) -> None:
        self.found += take(self.session, self.session.push(batch), last=last)

    def finish(self) -> Run:
        self.found += take(self.session, self.session.finish())
        return self

    def restart(self) -> None:
        self.session = restarted(self.session, self.begin)

    def all(self, batches: Iterable[Batch]) -> Run:
        """Push all batches and finish."""
        for batch in batches:
            self.push(batch)
        return self.finish()


def reference(plan: Plan, batch: Batch) -> list[Found]:
    """The matches that the reference runtime finds, in output order."""
    core = ReferenceRuntime(plan)
    return sorted([*core.push(batch.events), *core.finish()], key=output_order)


def shown(found: Iterable[Any]) -> list[str]:
    """Matches or rows with all their fields, whatever their order."""
    return sorted(map(repr, found))


# Several engines in one session


def engines_of(plan: Plan, *more: str) -> list[str]:
    """The engines that keep partial matches apart and can run a plan, and ``more``: alone and behind match windows."""
    searches = ["search"] if searching.reason_against(plan) is None else []
    names = [*(["nodes", "dominance"] if reason_against(plan) is None else ["nodes"]), *searches, *more]
    return [*names, *(f"windows+{name}" for name in names)] if necessary(plan) is not None else names


def summed(rows: Iterable[Row], engine: str) -> dict[Any, tuple[Any, ...]]:
    """Rows of points or counts, those of one point, end or bundle as one: the first and last point, the least error,
    and how many matches if the engine counts them."""
    sums: dict[Any, tuple[Any, ...]] = {}
    for row in rows:
        at = (row.key, row.bundle, None if engine == "bundles" else row.last, row.error if engine == "ends" else None)
        first, last, error, many = sums.get(at, (row.first, row.last, row.error, 0))
        many += row.matches if engine in ("ends", "bundles") else 0
        sums[at] = min(first, row.first), max(last, row.last), min(error, row.error), many
    return sums


def lanes_for(plan: Plan, engines: Sequence[str], lanes: int) -> int:
    """So many lanes, or one for a plan or an engine that has no more."""
    one = "compressed" in map(base_engine, engines) or (
        plan.keys and plan.strict and plan.query.output is not Output.ALL
    )
    return 1 if one else lanes


def compare(
    plan: Plan,
    batch: Batch,
    engines: Sequence[str],
    rng: Random,
    truth: str = "reference",
    lanes: int | None = None,
) -> NativeSession:
    """Check that engines find what the reference runtime finds, or what the first of them does, and list no match later
    than it: in batches of a random size, after watermarks and after restarts, with each way to save work taken always,
    never, or where it pays, and in some lanes on some threads. ``lanes``: in so many, if the plan can.

    Raises :class:`AssertionError` where one does not.
    """

    ways = rng.choice((0, 1, 2, 2)), rng.choice((0, 1, 2, 2))
    expects_end = rng.random() < 0.5
    lanes = lanes_for(plan, engines, rng.choice((1, 2, 3, 7)) if lanes is None else lanes)

    def begin() -> NativeSession:
        session = session_of(plan, *engines, lanes=lanes, threads=rng.choice((1, 1, 1, 2, 3)))
        session._session.choose_search_ways(*ways)
        if isinstance(session._session, Lanes):
            session._session.few = 0
        return session

    def collect(due: list[Found], steps: list[list[FoundColumns]], last: bool) -> None:
        returned = [concatenate(parts) for parts in zip(*steps, strict=True)]
        new = [take(session, returned, number, last=last) for number in range(len(engines))]
        due = due if truth == "reference" else new[0]
        expected.extend(due)
        at_once: dict[str, list[str]] = {}
        for number, engine in enumerate(engines):
            found[number] += new[number]
            if truth == "reference" and (kind := base_engine(engine)) in ("nodes", "merged"):
                reprs = shown(new[number])
                seen[number].update(reprs)
                missing = [match for match in map(repr, due) if match not in seen[number]]
                assert not missing, "\n".join([f"{engine} finds a match too late, or never", *missing])
                assert at_once.setdefault(kind, reprs) == reprs, (
                    f"{engine} does not find at the same time what {kind} does\n"
                    f"{difference(reprs, at_once[kind], (engine, kind))}"
                )

    session, core = begin(), ReferenceRuntime(plan)
    expected, found, seen = list[Found](), [list[Any]() for _ in engines], [set[str]() for _ in engines]
    parts = pieces(batch, rng.choice((1, 2, 5, 7, max(len(batch), 1))))
    for number, part in enumerate(parts):
        session.is_last = expects_end and part is parts[-1]
        steps = [session.push(part)]
        due = core.push(part.events) if truth == "reference" else []
        clock = int(parts[number + 1].ts[0]) - 1 if part is not parts[-1] else -(2**63)
        if clock >= part.ts[-1] and rng.random() < 0.3:
            due += core.advance(clock)
            steps.append(session.advance(clock))
        collect(due, steps, last=False)
        if rng.random() < 0.2:
            session = restarted(session, begin)
    collect(core.finish(), [session.finish()], last=True)
    rows = [Row(m.key, m.end, m.end, m.bundle, m.error, 1) for m in expected]
    for engine, one in zip(engines, found, strict=True):
        kind = base_engine(engine)
        if kind == "count":
            assert one == [len(expected)], f"{engine} counts {one}, not {len(expected)}"
        elif kind in ("nodes", "merged", "compressed"):
            assert shown(one) == shown(expected), (
                f"{engine} finds other matches\n{difference(shown(one), shown(expected), (engine, truth))}"
            )
        else:
            sums, expected_sums = summed(one, kind), summed(rows, kind)
            assert sums == expected_sums, (
                f"{engine} gives other rows\n{difference(sums, expected_sums, (engine, truth))}"
            )
    return session

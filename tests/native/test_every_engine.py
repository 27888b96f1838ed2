"""Every native engine that can run a random case, alone and behind match windows, against the reference.

A case is run by all its engines in one session. How many ran on each is counted, so that none is left out unseen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from acep.events.tables import batch_of
from acep.matches.records import Found
from acep.plan.dominance import reason_against
from acep.plan.lower.tables import NotNativeError
from acep.plan.prefilter import necessary
from tests.native.merged_cases import merged_case, planned, reference
from tests.random_cases import Case, random_case, shrink

pytest.importorskip("acep.native._native")

from acep.native.session import NativeSession

CHUNKS = 20
SEEDS = 12_000
LEAST = {"nodes": 10_000, "dominance": 4_500, "merged": 2_000, "windows+nodes": 750, "windows+merged": 400}
"""How many cases each engine must have run, of so many seeds."""

MERGED = ("merged", "count", "ends", "points", "bundles", "compressed")
"""The engines for plans whose events only the partition ties together."""


def in_order(seed: int) -> Case | None:
    """The case of a seed with its stream as it would arrive, if it is a query of one stream."""
    case = merged_case(seed) if seed % 7 == 0 else random_case(seed)
    if case is None or case.query().sources:
        return None
    stream = {name: value for name, value in case.stream.items() if name == "id"}
    gone = dict.fromkeys("kxyfs"[seed % 11 :: 5] if seed % 11 < 5 else "")
    return replace(case, events=sorted((row | gone for row in case.events), key=lambda row: row["ts"]), stream=stream)


def table_of(case: Case) -> pa.Table:
    """Its stream; a column of nothing but nulls has no type."""
    table = case.table()
    gone = [name for name in "kxyfs" if table[name].null_count == len(table)]
    return pa.table({name: pa.nulls(len(table)) if name in gone else table[name] for name in table.column_names})


def told(found: Sequence[Found]) -> list[str]:
    """All that is said of matches, whatever the order in which they were given."""
    return sorted(repr((f.key, f.start, f.end, f.error, f.trail, f.bundle, f.values)) for f in found)


def disagreeing(case: Case) -> tuple[tuple[str, ...], list[str]]:
    """The native engines that can run a case, and those of them that do not give what the reference finds."""
    table = table_of(case)
    plan = planned(case.query(), table, **case.stream)
    session, alone = None, ("nodes", "dominance") if reason_against(plan) is None else ("nodes",)
    windowed = necessary(plan) is not None
    for tried in ((*alone, *MERGED), alone):
        names = (*tried, *(f"windows+{name}" for name in tried)) if windowed else tried
        try:
            session = NativeSession([plan] * len(names), names)
            break
        except NotNativeError:
            return (), []
        except ValueError as error:
            if tried == alone or "tie the events" not in str(error):
                raise
    assert session is not None
    found: list[list[Found]] = [[] for _ in names]
    lists = [number for number, name in enumerate(names) if name.removeprefix("windows+") in ("nodes", "merged")]
    for start in range(0, table.num_rows, 7):
        session.push(batch_of(table.slice(start, 7), plan.schema, plan.columns, base=start))
        for number in lists:
            found[number] += session.take(number)
    session.finish()
    matches = reference(plan, table)
    expected = told(matches)
    wrong = []
    for number, name in enumerate(names):
        kind = name.removeprefix("windows+")
        if kind in ("nodes", "merged"):
            found[number] += session.take(number)
            same = told(found[number]) == expected
        elif kind == "compressed":
            one = session.take_compressed(number)
            cursor, rows = one.cursor(), []
            while block := list(session.columns(number, cursor.next(64))):
                rows += block
            same = one.count() == len(matches) and told(rows) == expected
        elif kind == "dominance":
            same = points_of(session, number) == by(matches, "points")
        elif kind == "count":
            same = session.total(number) == len(matches)
        else:
            same = counted(session, number, kind) == by(matches, kind)
        if not same:
            wrong.append(name)
    return names, wrong


def by(matches: Sequence[Found], kind: str) -> dict[str, object]:
    """Of matches, what points or bundles tell: the least error of each, and how many matches where that is told."""
    many: Counter[str] = Counter()
    least: dict[str, object] = {}
    for m in sorted(matches, key=lambda m: m.error, reverse=True):
        at = repr((m.key, m.bundle) if kind == "bundles" else (m.key, m.end, m.bundle))
        many[at] += 1
        least[at] = m.error
    return {at: error if kind == "points" else (error, many[at]) for at, error in least.items()}


def counted(session: NativeSession, number: int, kind: str) -> dict[str, object]:
    """The same as a counting engine gives it."""
    many: Counter[str] = Counter()
    least: dict[str, object] = {}
    for row in sorted(session.take_counts(number, last=True).rows(), key=lambda row: row.error, reverse=True):
        at = repr((row.key, row.bundle) if kind == "bundles" else (row.key, row.last, row.bundle))
        many[at] += row.matches
        least[at] = row.error
    return {at: error if kind == "points" else (error, many[at]) for at, error in least.items()}


def points_of(session: NativeSession, number: int) -> dict[str, object]:
    """Match points as dominance leaves them, with the least error of each."""
    least: dict[str, object] = {}
    for row in sorted(session.take_points(number).rows(), key=lambda row: row.error, reverse=True):
        least[repr((row.key, row.last, row.bundle))] = row.error
    return least


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_engine_finds_what_the_reference_does(chunk: int, cases: Callable[[int], int]) -> None:
    ran: Counter[str] = Counter()
    seeds = range(chunk, max(cases(SEEDS), 100 * CHUNKS), CHUNKS)
    for seed in seeds:
        case = in_order(seed)
        if case is None:
            continue
        names, wrong = disagreeing(case)
        ran.update(names)
        if wrong:
            small = shrink(case, lambda one: bool(disagreeing(one)[1]))
            pytest.fail(f"not as the reference: {wrong}\n{small.paste()}", pytrace=False)
    few = {name: ran[name] for name, least in LEAST.items() if ran[name] * SEEDS < least * len(seeds)}
    assert not few, f"too few cases of {len(seeds)} ran: {few}"

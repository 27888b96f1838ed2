"""The page about EQL: on random streams its queries give the sequences of an independent account of EQL."""

from __future__ import annotations

from collections.abc import Sequence

import acep
import pytest

from tests.eql import Step, kind, matches
from tests.eql_cases import CASES, ON_D, PUBLISHED, UNTIL, Case, a, b
from tests.small_streams import Bound, Event, by_stream, different, ours, pushed, streams, table_of_streams


def sequences(case: Case, made: Sequence[Sequence[Event]]) -> list[set[Bound]]:
    """Return what EQL finds in each stream, in the order of events."""
    theirs = [matches(case.steps, events, **case.how) for events in made]
    if case.head is not None:
        order = sorted(
            (made[number][bound[-1][1]]["ts"], number, bound) for number, found in enumerate(theirs) for bound in found
        )
        theirs = [[bound for _, at, bound in order[: case.head] if at == number] for number in range(len(made))]
    return [set(found) for found in theirs]


def by_times(text: str, made: Sequence[Sequence[Event]], rows_of_a_push: int) -> list[set[Bound]]:
    """Return the events of what a query with RETURN, or a clause, gives: their times, under the names of the steps."""
    table = table_of_streams(made)
    place = {ts: at for at, ts in enumerate(table["ts"].to_pylist())}
    if rows_of_a_push:
        given = pushed(text, table, rows_of_a_push)
    else:
        given = acep.match_recognize(table, text).to_pylist() if "MEASURES" in text else list(acep.match(table, text))
    rows = [one if isinstance(one, dict) else one.values for one in given]
    return by_stream((sorted((place[ts], name[0]) for name, ts in row.items() if name != "k") for row in rows), made)


@pytest.mark.parametrize("rows_of_a_push", [0, 7], ids=["table", "stream"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.row.strip('`')} {' '.join(case.query.split())}")
def test_a_row_finds_what_eql_finds(case: Case, rows_of_a_push: int) -> None:
    made = streams("AABBCCDM", "k", "x")
    theirs = sequences(case, made)
    assert sum(map(len, theirs)) >= 20
    if "MEASURES" in case.query or "RETURN" in case.query:
        mine = by_times(case.query, made, rows_of_a_push)
    elif case.head is not None:
        mine = ours(case.query, made, limit=case.head)
    else:
        mine = ours(case.query, made, rows_of_a_push=rows_of_a_push)
    differences = different(mine, theirs, made, "EQL")
    assert bool(differences) == case.differs, differences


@pytest.mark.parametrize(("series", "expected"), PUBLISHED.values(), ids=PUBLISHED)
def test_the_account_of_eql_gives_what_elastic_publishes(series: tuple[str, ...], expected: str) -> None:
    events = []
    for event in " ".join(series).split():
        key, _, name = event.rpartition("|")
        events.append({"ts": int(name[1:]), "type": name[0], "k": key})
    events.sort(key=lambda event: event["ts"])
    steps = [Step(name, kind(name)) for name in "ABCD"[: len(series)]]
    assert named(matches(steps, events), events) == expected


@pytest.mark.parametrize(("types", "expected"), UNTIL.items())
def test_the_account_of_eql_ends_sequences_as_documented(types: str, expected: str) -> None:
    events = [{"ts": ts, "type": type, "k": 0} for ts, type in enumerate(types, 1)]
    assert named(matches([a, b], events, until=ON_D), events) == expected


def named(found: list[Bound], events: list[Event]) -> str:
    return ", ".join(" ".join(f"{name.upper()}{events[place]['ts']}" for name, place in bound) for bound in found)

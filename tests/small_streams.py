"""Small random streams, and what queries bind in them: for accounts of other languages that read one stream each."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

import acep
from tests.corpus_text import table_of_rows

Event = dict[str, Any]
Bound = tuple[tuple[str, int], ...]  # first letter of the variable and place of the event, in the order of the stream

STREAMS = 300


@cache
def _streams(types: tuple[str, ...], key: str, value: str) -> list[list[Event]]:
    made: list[list[Event]] = []
    draw, ts = random.Random(7), 0
    for number in range(STREAMS):
        made.append([])
        for _ in range(draw.randint(4, 12)):
            ts += draw.randint(1, 3)
            made[-1].append({"ts": ts, "type": draw.choice(types), value: draw.randint(0, 2), key: number})
        ts += 1000
    return made


def streams(types: Sequence[str], key: str, value: str) -> list[list[Event]]:
    """Small streams, one after another, each with a key of its own. Nobody may change them."""
    return _streams(tuple(types), key, value)


def table_of_streams(made: Sequence[Sequence[Event]]) -> pa.Table:
    return pa.Table.from_pylist([event for stream in made for event in stream])


def ours(query: str, made: Sequence[Sequence[Event]], *, rows_of_a_push: int = 0, **how: Any) -> list[set[Bound]]:
    """Return what a query binds in each stream; ``rows_of_a_push``: by a Matcher that takes so many rows at once."""
    table, text = table_of_streams(made), f"PATTERN {query}"
    found = acep.match(table, text, **how) if not rows_of_a_push else pushed(text, table, rows_of_a_push)
    return by_stream(
        (
            sorted((int(at), name[0]) for name, ids in match.bindings.items() for at in ids if name != "o")
            for match in found
        ),
        made,
    )


def pushed(text: str, table: pa.Table, rows_of_a_push: int) -> list[Any]:
    """Return what a Matcher gives that takes a table in parts: matches, or the rows of a clause."""
    matcher = acep.Matcher(text)
    parts = [matcher.push(table.slice(at, rows_of_a_push)) for at in range(0, len(table), rows_of_a_push)]
    return [
        given
        for part in [*parts, matcher.finish()]
        for given in (part.to_pylist() if isinstance(part, pa.Table) else part)
    ]


def by_stream(bound: Iterable[Iterable[tuple[int, str]]], made: Sequence[Sequence[Event]]) -> list[set[Bound]]:
    """Return by stream what is bound: places in all streams together become those in one of them."""
    places = [(number, place) for number, stream in enumerate(made) for place in range(len(stream))]
    sorted_out: list[set[Bound]] = [set() for _ in made]
    for pairs in bound:
        here = [(name, *places[at]) for at, name in pairs]
        (number,) = {number for _, number, _ in here}
        sorted_out[number].add(tuple((name, place) for name, _, place in here))
    return sorted_out


def different(ours: list[set[Bound]], theirs: list[set[Bound]], made: list[list[Event]], peer: str) -> str:
    """Return the first stream whose matches are not the same, as text; "" if there is none."""
    for mine, others, events in zip(ours, theirs, made, strict=True):
        if mine != others:
            return f"{table_of_rows(events)}\nonly acep {sorted(mine - others)}, only {peer} {sorted(others - mine)}"
    return ""

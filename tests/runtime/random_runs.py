"""Random queries of one repeated variable that choose among their matches, and random events for them."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.random_cases import random_output

__all__ = ["random_events", "random_query"]

STRATEGIES = ("strict_contiguity", *("partition_contiguity", "skip_till_next_match") * 2, "skip_till_any_match")
REPETITIONS = ("+", "+", "+", "*", "{2}", "{1,3}", "{2,}", "{,2}", "{3,4}", "?", "")
WINDOWS = (" WITHIN 3", " WITHIN 6", " WITHIN 3 EVENTS", " WITHIN 0", *("",) * 6)
RETURNED = (
    " RETURN count(e[]) AS n, sum(e[].x) AS s, e[1].x AS a, e[2].u AS b, e.u AS l, max(e[].u) AS m, e.ts - e[1].ts AS d"
)


def random_query(rng: Random) -> str:
    """Return the text of a query, which may be one whose matches are not runs."""
    repetition = rng.choice(REPETITIONS)
    is_repeated = repetition not in ("", "?")
    brackets = "[]" if is_repeated else ""
    conditions = ["[k]"] if rng.random() < 0.5 else []
    pool = _conditions(rng, "[i]" if is_repeated else "")
    conditions += [rng.choice(pool) for _ in range(rng.choice([0, 0, 1, 1, 2]))]
    asked = f" {{ {' AND '.join(conditions)} }}" if conditions else ""
    text = f"PATTERN {rng.choice(['a', 'ANY', '(a|b)'])}{repetition} e{brackets}"
    text += f" WHERE {rng.choice(STRATEGIES)}(e{brackets}){asked}{rng.choice(WINDOWS)}"
    if is_repeated and rng.random() < 0.6:
        parts = [_having(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
        text += f" HAVING {rng.choice([' AND ', ' OR ']).join(parts)}"
    if is_repeated and rng.random() < 0.4:
        text += RETURNED
    return f"{text} OUTPUT {random_output(rng, ['e'])}"


def _conditions(rng: Random, each: str) -> list[str]:
    c = rng.randrange(4)
    conditions = [f"e{each}.x > {c - 2}", f"e{each}.u != 'p'", f"e{each}.x IS NOT NULL", f"e{each}.f < 2"]
    if not each:
        return conditions
    return [
        *conditions,
        f"e[i].ts - e[i-1].ts < {c + 1}",
        f"e[i].ts <= e[i-1].ts + {c}",
        f"(e[i].ts - e[i-1].ts) / 2 < {c}",
        f"e[i].ts - e[i-2].ts < {c + 3}",
        "e[i].x > e[i-1].x",
        "e[i].x >= e[i-2].x",
        "e[i].u = e[i-1].u",
        "e[i].x > e[1].x",
        f"e[1].x > {c - 1}",
        f"e[e.LEN].x >= {c - 1}",
        f"e.LEN >= {c}",
        f"max(e[].x) > {c}",
    ]


def _having(rng: Random) -> str:
    c, more, less = rng.randrange(4), rng.choice([">", ">="]), rng.choice(["<", "<="])
    return rng.choice(
        [
            f"count(e[]) {more} {c}",
            f"e.LEN {more} {c}",
            f"count(e[].x) {more} {c}",
            f"count(DISTINCT e[].u) {more} {c}",
            f"count(DISTINCT e[].f) {more} {c}",
            f"max(e[].x) {more} {c}",
            f"min(e[].x) {less} {c}",
            f"{c} < max(e[].f)",
            "max(e[].u) >= 'q'",
            f"e[e.LEN].ts - e[1].ts {more} {c * 2}",
            f"e.ts - first(e[].ts) {more} {c * 2}",
            f"e.x {more} {c}",
            f"last(e[].x) {less} {c}",
            f"e[1].x {more} {c}",
            f"sum(e[].x) {more} {c}",
            "TRUE",
        ]
    )


def random_events(rng: Random, most: int) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Return columns of events, with ties in time, and names of columns as options of :func:`acep.match`."""
    n = rng.randrange(most)
    ts = [0] * n
    for row in range(1, n):
        ts[row] = ts[row - 1] + rng.choice([0, 0, 1, 1, 2, 3, 7])
    events: dict[str, list[Any]] = {
        "ts": ts,
        "type": rng.choices("aab" if rng.random() < 0.8 else "a", k=n),
        "k": rng.choices([1, 1, 2, None] if rng.random() < 0.9 else [2], k=n),
        "x": rng.choices([None, 0, 1, 2, 3], k=n),
        "u": rng.choices(["p", "q", "r", None], k=n),
        "f": rng.choices([float("nan"), -0.0, 0.0, 1.5, 2.5], k=n),
    }
    order, options = list(range(n)), {}
    if rng.random() < 0.2:
        rng.shuffle(order)
        events = {name: [values[row] for row in order] for name, values in events.items()}
    if rng.random() < 0.25:
        rng.shuffle(order)
        events["id"] = [f"i{row}" for row in order] if rng.random() < 0.5 else order
        options["id"] = "id"
    if rng.random() < 0.2:
        events["seq"] = rng.choices(range(5), k=n)
        options["seq"] = "seq"
    return events, options

"""Random queries of several variables that choose among their matches, and random events for them."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from tests.random_cases import random_output

__all__ = ["random_interval_events", "random_interval_query"]

PATTERNS = (
    "SEQ(A a, (A|B)+ b[], ANY+ c[])",
    "SEQ(ANY a, ANY+ b[]{2}, ANY+ c[])",
    "SEQ(ANY+ b[], ANY+ c[], ANY+ d[])",
    "SEQ(A? a, B* b[], C c)",
    "SEQ((A a, B+ b[])+, C? c)",
    "SEQ(ANY z, (A a | B+ b[]), ANY c)",
    "SEQ({A a, B b}, ANY+ c[])",
    "SEQ(ANY z, ANY b, ANY a)",
    "SEQ(ANY{2,3} b[], ANY* c[])",
    "SEQ(A a, ANY{1,2} c[], (B b, C d)?)",
    "SEQ(A a, ~B n, C c)",
    "SEQ(A a, (~C n, B b)+, ~A m, C c)",
    "SEQ(A+ a[], ~B n, C c)",
    "SEQ(A a, ~(B|C) n, ANY b, ~A m, (~C l, B d)?)",
    "SEQ(A+ a[], ~C n, B+ b[])",
    "SEQ(A a, (~B n, C c | ~C o, B b)+)",
)
NEGATED = re.compile(r"~(?:\w+|\([^)]*\)) (\w)")
VARIABLE = re.compile(r"(?:ANY|\w|\))(?:[+*?]|\{\d(?:,\d)?\})? ([a-z])(\[\])?")
STRATEGIES = (
    *("strict_contiguity", "skip_till_any_match"),
    *("partition_contiguity", "skip_till_next_match") * 3,
)
WINDOWS = (" WITHIN 5", " WITHIN 4 EVENTS", " WITHIN 9", *("",) * 6)


def random_interval_query(rng: Random) -> str:
    """Return the text of a query, some of whose conditions may tie events that are not at a fixed distance."""
    pattern = rng.choice(PATTERNS)
    variables = VARIABLE.findall(NEGATED.sub("", pattern))
    strategy = rng.choice(STRATEGIES)
    conditions = [_condition(rng, variables, strategy) for _ in range(rng.choice([0, 1, 2, 2, 3, 4]))]
    for name in NEGATED.findall(pattern):
        if rng.random() < 0.3:
            other, brackets = rng.choice(variables)
            conditions.append(f"{name}.y {rng.choice(['<', '>', '='])} {other}{'[1]' if brackets else ''}.y")
        conditions += [f"{name}.x {rng.choice('<>')} {rng.randrange(4)}"] if rng.random() < 0.4 else []
    conditions += ["[k]"] if rng.random() < 0.4 else []
    text = f"PATTERN {pattern} WHERE {strategy}"
    text += f" {{ {' AND '.join(conditions)} }}" if conditions else ""
    text += rng.choice(WINDOWS)
    if rng.random() < 0.3:
        name, brackets = rng.choice(variables)
        values = (f"count({name}[]) AS n", f"{name}.x AS l", f"max({name}[].y) AS m")
        text += f" RETURN {', '.join(values) if brackets else values[1]}"
    return f"{text} OUTPUT {random_output(rng, [name for name, _ in variables])}"


def _condition(rng: Random, variables: list[tuple[str, str]], strategy: str) -> str:
    name, brackets = rng.choice(variables)
    other, of_other = rng.choice(variables)
    column, op, c = rng.choice("xyf"), rng.choice(["<", ">", "<=", ">=", "!="]), rng.randrange(4)
    pool = [f"{name}{'[i]' if brackets else ''}.{column} {op} {c}"]
    ties = "skip" not in strategy or rng.random() < 0.4
    if brackets and ties:
        pool += [f"{name}[i].{column} {op} {name}[i-1].{column}"] * 3
        pool += [f"{name}[i].{column} {op} {name}[i-2].{column}", f"count({name}[]) > 1"]
        pool += [f"{name}[{place}].{column} {op} {c}" for place in ("1", f"{name}.LEN")]
    if name != other and ties:
        place = rng.choice([f"[{name}.LEN]", "[1]"]) if brackets else ""
        pool += [f"{other}{'[1]' if of_other else ''}.{column} {op} {name}{place}.{column}"] * 4
        pool += [f"{other}{'[i]' if of_other else ''}.{column} {op} {name}{'[1]' if brackets else ''}.{column}"] * 4
    return rng.choice(pool)


def random_interval_events(rng: Random, most: int) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Return columns of events, with ties in time, and names of columns as options of :func:`acep.match`."""
    n = rng.randint(3, most)
    steps = (0, 0, 1, 1, 2) if rng.random() < 0.5 else (1,)
    ts = [0] * n
    for row in range(1, n):
        ts[row] = ts[row - 1] + rng.choice(steps)
    events: dict[str, list[Any]] = {
        "ts": ts,
        "type": rng.choices("AABBC", k=n),
        "k": rng.choices([1, 1, 1, 2, None], k=n),
        "x": rng.choices([None, 0, 1, 2, 3, 4], k=n),
        "y": rng.choices(range(4), k=n),
        "f": rng.choices([None, 0.5, 1.5, 2.5], k=n),
    }
    if rng.random() >= 0.15:
        return events, {}
    ids = [f"i{row}" for row in range(n)]
    rng.shuffle(ids)
    return {**events, "id": ids}, {"id": "id"}

"""Random queries in which an equality ties all variables, each written in several ways, over random streams.

Whatever way it is written in, the answer is the same: an equality is a condition, and never a partition.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

from tests.random_cases import (
    STRATEGIES,
    TYPES,
    Case,
    Patterns,
    Predicates,
    Var,
    chance,
    pick,
    random_errors,
    random_output,
    random_stream,
    random_surplus,
    random_window,
    with_stream_options,
)

__all__ = ["tied_cases"]

WAYS = 3
COLUMNS = {"k": 5, "s": 1, "y": 1}


def tied_cases(seed: int) -> list[Case]:
    """Return the case of a seed with its equality written in each of some ways, over one stream."""
    rng = Random(seed)
    patterns = Patterns(rng, pick(rng, {1: 0.7, 2: 4, 3: 4, 4: 2}))
    pattern = patterns.pattern()
    column = pick(rng, COLUMNS)
    predicates = Predicates(rng, patterns.vars)
    others = predicates.conjuncts()[: rng.randint(0, 1)]
    if chance(rng, 0.2):
        others.append("[s]" if column != "s" else "[k]")
    strategy = rng.choice(STRATEGIES)
    clauses = [f"WITHIN {window}"] if (window := random_window(rng, patterns.edges)) else []
    if chance(rng, 0.1):
        clauses.append(f"HAVING {predicates.having()}")
    bound = [var.name for var in patterns.vars if not var.negated]
    if output := pick(rng, {"": 6, "NON OVERLAP": 1, "EARLIEST MAXIMAL": 1.5, "after skip": 2}):
        clauses.append(f"OUTPUT {random_output(rng, bound) if output == 'after skip' else output}")
    options = random_errors(rng, bound, [var.name for var in patterns.vars if var.negated])
    options |= random_surplus(rng, strategy, options)
    heavy = "any_match" in strategy or bool(options.get("errors"))
    events = random_stream(rng, pattern, rng.randint(4, 10 if heavy else 14), TYPES + "X")
    if chance(rng, 0.3):  # more nulls, which are equal to nothing
        events = [row | ({column: None} if chance(rng, 0.25) else {}) for row in events]
    case = with_stream_options(rng, Case(seed, False, "", options, events))
    texts = []
    for _ in range(WAYS):
        conjuncts = [*equalities(rng, patterns.vars, column), *others]
        rng.shuffle(conjuncts)
        body = f" {{ {' AND '.join(conjuncts)} }}" if conjuncts else ""
        texts.append("\n".join([f"PATTERN {pattern.text}", f"WHERE {strategy}{body}", *clauses]))
    return [replace(case, text=text) for text in texts]


def equalities(rng: Random, variables: list[Var], column: str) -> list[str]:
    """Return conditions that say that a column is equal in the events of all variables."""
    bound = [var for var in variables if not var.negated]
    rng.shuffle(bound)
    names, conjuncts = {}, []
    for var in bound:
        names[var.name] = f"{var.name}.{column}"
        if not var.kleene or var.grouped:
            continue
        if chance(rng, 0.5):
            # The events of the repetition among themselves, and one of them with the other variables.
            names[var.name] = f"{var.name}[1].{column}"
            each, before = f"{var.name}[i].{column}", rng.choice(("[1]", "[i-1]", "prev"))
            other = f"prev({var.name}.{column})" if before == "prev" else f"{var.name}{before}.{column}"
            conjuncts.append(equality(rng, f"{var.name}.{column}" if before == "prev" else each, other))
        elif chance(rng, 0.4):
            names[var.name] = f"{var.name}[i].{column}"
        if len(bound) == 1 and not conjuncts:
            conjuncts.append(f"{var.name}[i].{column} = {var.name}[1].{column}")
    chain = chance(rng, 0.5)
    pairs = [*pairwise(bound)] if chain else [(bound[0], other) for other in bound[1:]]
    pairs += [(var, rng.choice(bound)) for var in variables if var.negated]
    return conjuncts + [equality(rng, names.get(a.name, f"{a.name}.{column}"), names[b.name]) for a, b in pairs]


def equality(rng: Random, left: str, right: str) -> str:
    """Return the equality of two references, written in one of the ways."""
    if chance(rng, 0.5):
        left, right = right, left
    if "[i]." in left and "[i]." in right and left[0] != right[0]:  # [i] is for one variable of a condition
        left = left.replace("[i].", ".")
    return pick(
        rng,
        {
            f"{left} = {right}": 4,
            f"{left} == {right}": 1,
            f"({left} = {right})": 1,
            f"NOT {left} != {right}": 3,
            f"NOT ({left} <> {right})": 1,
            f"{left} IN ({right})": 2,
            f"NOT {left} NOT IN ({right})": 0.5,
            f"NOT NOT {left} = {right}": 0.5,
        },
    )

"""Random queries whose events nothing ties together but the partition."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.random_cases import (
    STRATEGIES,
    TYPES,
    Case,
    Part,
    Patterns,
    chance,
    letters,
    pick,
    random_errors,
    random_stream,
    random_window,
)

__all__ = ["merged_case"]


class _Positive(Patterns):
    """Patterns without negations."""

    def negation(self, grouped: bool) -> Part:
        return self.component("component", grouped)


def merged_case(seed: int, most: int = 24) -> Case | None:
    """The case of a seed, if it is one for the merged engine; its stream has up to ``most`` events."""
    rng = Random(seed)
    case = letters(rng, seed) if chance(rng, 0.35) else _sase(rng, seed, most)
    if case.options.get("output"):
        return None
    stream = {name: value for name, value in case.stream.items() if name == "id"}
    case = replace(case, events=sorted(case.events, key=lambda row: row["ts"]), stream=stream)
    contiguous = any(word in f"{case.text} {case.options.get('strategy')}" for word in ("strict", "partition_"))
    return None if contiguous and case.options.get("errors") else case


def _sase(rng: Random, seed: int, most: int) -> Case:
    patterns = _Positive(rng, pick(rng, {1: 1, 2: 2.5, 3: 4, 4: 2.5, 5: 1}))
    pattern = patterns.pattern()
    conjuncts = [
        f"{var.name}.x {rng.choice(('>', '<=', '!='))} {rng.randint(0, 3)}" for var in patterns.vars if chance(rng, 0.2)
    ]
    strategy = rng.choice(STRATEGIES)
    if chance(rng, 0.55 if strategy == "partition_contiguity" else 0.4):
        conjuncts.insert(0, rng.choice(("[k]", "[k]", "[k, s]")))
    text = f"PATTERN {pattern.text}\nWHERE {strategy}"
    if conjuncts:
        text += " { " + " AND ".join(conjuncts) + " }"
    if within := random_window(rng, False):
        text += f"\nWITHIN {within}"
    options = random_errors(rng, [var.name for var in patterns.vars], [])
    branching = "{" in pattern.text and (")+" in pattern.text or ")*" in pattern.text)
    heavy = branching or "any_match" in text or bool(options.get("errors"))
    size = rng.randint(4, most // 2 if heavy else most)
    stream = {"id": "id"} if chance(rng, 0.3) else {}
    return Case(seed, False, text, options, random_stream(rng, pattern, size, TYPES + "X"), stream)

"""What kinds of case something is that a generator drew: the words that tests/test_census.py counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import acep
from acep.pattern import expressions as ex
from acep.pattern import tree
from acep.pattern.closure import tied_attributes
from acep.pattern.walk import kleene_variables, leaves_of, negated_variables, nodes
from tests.random_cases import Case
from tests.random_versions import Chain
from tests.runtime.version_steps import Change, Setting

__all__ = [
    "kinds_of_arrival",
    "kinds_of_automaton",
    "kinds_of_case",
    "kinds_of_chain",
    "kinds_of_matches",
    "kinds_of_query",
    "kinds_of_rows",
    "kinds_of_version_steps",
]

Row = Mapping[str, Any]

WORDS = {
    "a[i]": r"\[i\]",
    "a[i-1]": r"\[i-1\]",
    "prev(a.x)": r"\bprev\(",
    "a[1]": r"\[[12]\]\.",
    "the last a": r"\[[a-n]\.LEN\]",
    "LEN": r"\.LEN\b",
    "aggregate so far": r"\[\.\.i-1\]",
    "aggregate": r"\b(?:avg|sum|min|max|count|first|last)\([a-n]\[\]",
    "arithmetic": r" [-+*%] ",
    "abs": r"\babs\(",
    "coalesce": r"\bcoalesce\(",
    "IN": r" IN \(",
    "NOT IN": r" NOT IN \(",
    "BETWEEN": r" BETWEEN ",
    "LIKE": r" LIKE ",
    "IS NULL": r" IS NULL",
    "IS NOT NULL": r" IS NOT NULL",
    "OR": r" OR ",
    "NOT": r"\bNOT \(",
    "difference of times": r"\.ts - ",
    "texts": r"\.s = ",
}
"""What stands in conditions, as a text."""


def kinds_of_query(query: tree.Query) -> set[str]:
    """Name the features of a query."""
    kinds = {f"strategy {query.strategy.value}", f"output {query.output.value}", *_kinds_of_pattern(query.pattern)}
    kinds |= {*_kinds_of_negated_conditions(query)}
    kinds |= {name for name, form in WORDS.items() if re.search(form, query.text)}
    kinds.add(
        "no window" if query.within is None else "window of events" if query.within.unit == "events" else "window"
    )
    kinds.add("letters" if query.letters else "SASE")
    flags = {
        "conditions": query.where,
        "skip to next": query.skip is not None and query.skip.place == "next",
        "skip to a variable": query.skip is not None and query.skip.variable,
        "partitions": query.ties,
        "HAVING": query.having is not None,
        "RETURN": query.returns,
        "over matches": query.sources,
        "errors": query.errors,
        "errors by halves": query.errors.denominator > 1,
        "weights": query.weights,
        "surplus": query.surplus is not None,
        "tied by equalities": tied_attributes(query),
        "infinite weight": any(weight is None for _, weight in query.weights),
    }
    return kinds | {name for name, holds in flags.items() if holds}


def _kinds_of_pattern(pattern: tree.Node) -> Iterator[str]:
    for node in nodes(pattern):
        if isinstance(node, tree.Repeat):
            group = "" if isinstance(node.item, tree.Component) else "group "
            bounds = "+" if (node.low, node.high) == (1, None) else "*" if (node.low, node.high) == (0, None) else ""
            yield f"{group}repeated {bounds or ('?' if (node.low, node.high) == (0, 1) else '{n,m}')}"
        if isinstance(node, tree.Choice):
            yield "choice"
            if any(isinstance(item, tree.Sequence) for item in node.items):
                yield "choice of sequences"
        if isinstance(node, tree.EventSet):
            yield "set"
            if any(isinstance(item, tree.Repeat) for item in node.items):
                yield "set with a repetition"
        if isinstance(node, tree.Component) and len(node.types) != 1:
            yield "several types of a variable" if node.types else "any type"
        if isinstance(node, tree.Sequence):
            negated = [isinstance(item, tree.Negation) for item in node.items]
            place = "at an end" if node is pattern else "at an end of a group"
            if negated[0] or negated[-1]:
                yield f"negation {place}"
            if any(negated[1:-1]):
                yield "negation between"


def _kinds_of_negated_conditions(query: tree.Query) -> Iterator[str]:
    """Name the references to a repetition in the conditions of negations."""
    negated, repeated = negated_variables(query.pattern), kleene_variables(query.pattern)
    for condition in query.where:
        leaves = [*leaves_of(condition)]
        if not any(leaf.var in negated for leaf in leaves):
            continue
        for leaf in leaves:
            match leaf:
                case ex.Aggregate(scope="before"):
                    yield "negation with an aggregate so far"
                case ex.Aggregate() | ex.Length() | ex.Attribute(index="last"):
                    yield "negation with a value of a repetition"
                case ex.Attribute(index=int()):
                    yield "negation with a[1]"
                case ex.Attribute(var=var, index=index) if var in repeated:
                    yield f"negation with a{f'[{index}]' if index else ''}"


def kinds_of_rows(rows: Sequence[Row]) -> set[str]:
    """Name the features of events."""
    times = [row["ts"] for row in rows]
    flags = {
        "ties": len({*times}) < len(times),
        "out of order": times != sorted(times),
        "several keys": len({row["k"] for row in rows} - {None}) > 1,
        "NaN": any(row["f"] != row["f"] for row in rows),
        "several types": len({row["type"] for row in rows}) > 1,
    }
    flags |= {f"null {name}": any(row[name] is None for row in rows) for name in ("k", "x", "y", "f", "s")}
    return {name for name, holds in flags.items() if holds}


def kinds_of_case(case: Case) -> set[str]:
    """Name the features of a query, of its events, and of the options of its stream."""
    return kinds_of_query(case.query()) | kinds_of_rows(case.events) | {f"with {name}" for name in case.stream}


def kinds_of_matches(matches: Iterable[acep.Match]) -> set[str]:
    """Name what is special about matches."""
    matches = list(matches)
    errors = {match.error for match in matches}
    flags = {
        "has matches": matches,
        "several matches": len(matches) > 1,
        "ten matches": len(matches) >= 10,
        "match without error": 0 in errors,
        "match with errors": errors - {0},
        "matches of several keys": len({str(match.key) for match in matches}) > 1,
        "several ends": len({match.end for match in matches}) > 1,
        "values": any(match.values for match in matches),
    }
    return {name for name, holds in flags.items() if holds}


def kinds_of_automaton(automaton: acep.Automaton) -> set[str]:
    """Name the features of a hand-written automaton."""
    query = automaton.query
    assert isinstance(query.graph, tree.StateGraph)
    arcs, within = query.graph.arcs, query.within
    kinds = {f"register {register.kind}" for register in query.graph.registers}
    kinds.add("no window" if within is None else "window of events" if within.unit == "events" else "window")
    flags = {
        "no registers": not query.graph.registers,
        "several registers": len(query.graph.registers) > 1,
        "keys": query.ties,
        "epsilon": any(arc.epsilon for arc in arcs),
        "epsilon with a fence": any(arc.epsilon and arc.fence for arc in arcs),
        "epsilon with a transfer": any(arc.epsilon and arc.transfer for arc in arcs),
        "ignorable": any(arc.ignorable for arc in arcs),
        "loop": any(arc.source == arc.target and not arc.ignorable for arc in arcs),
        "fence": any(arc.fence for arc in arcs),
        "fence of registers": any(leaf.var == "r" for arc in arcs if arc.fence for leaf in leaves_of(arc.fence)),
        "transfer": any(arc.transfer for arc in arcs),
        "since": any(arc.since for arc in arcs),
        "until": any(arc.until for arc in arcs),
        "several final states": len(query.graph.final) > 1,
        "several variables": len({arc.var for arc in arcs if not arc.epsilon and not arc.ignorable}) > 1,
    }
    return kinds | {name for name, holds in flags.items() if holds}


def kinds_of_chain(chain: Chain, before: Chain) -> set[str]:
    """Name the features of a version of a query, beside the one before it."""
    shared = [size for size in range(1, len(chain.letters)) if chain.shared(before, size)]
    flags = {
        "conditions": chain.conditions,
        "no negation": not chain.negations,
        "two negations": len(chain.negations) > 1,
        "negation first": any(negated.place == 0 for negated in chain.negations),
        "negation last": any(negated.place == len(chain.letters) for negated in chain.negations),
        "negation between": any(0 < negated.place < len(chain.letters) for negated in chain.negations),
        "negation with a condition": any(negated.conditions for negated in chain.negations),
        "cheap negation": any(negated.cheap for negated in chain.negations),
        "negation as before": any(chain.same(negated, before) for negated in chain.negations),
        "goes on": shared,
        "begins anew": not shared,
    }
    return {f"{len(chain.letters)} variables", *(name for name, holds in flags.items() if holds)}


def kinds_of_arrival(pushes: Sequence[Sequence[Row]], late: int, lateness: int | str) -> set[str]:
    """Name how events come: pushes of rows, of which so many are late."""
    rows = [row for push in pushes for row in push]
    times, numbers = [row["ts"] for row in rows], Counter(row["number"] for row in rows if row["op"] > 0)
    flags = {
        "in order": times == sorted(times),
        "disorder": any(earlier > later for earlier, later in pairwise(times)),
        "retractions": any(row["op"] < 0 for row in rows),
        "corrections": max(numbers.values(), default=0) > 1,
        "event is late": late,
        "unbounded lateness": lateness == "inf",
        "bounded lateness": lateness != "inf",
        "several pushes": len(pushes) > 1,
    }
    return {name for name, holds in flags.items() if holds}


def kinds_of_version_steps(setting: Setting, steps: Sequence[Any]) -> set[str]:
    """Name the options of a stream whose query is replaced, and the steps in it."""
    kinds = {
        f"output {setting.output or 'all'}",
        f"errors {setting.errors}",
        "window" if setting.within else "no window",
    }
    kinds.add(f"lateness {setting.options.get('lateness')}, speculation {setting.options.get('speculation')}")
    for step in steps:
        if isinstance(step, Change):
            kinds.add("replace" if step.back is None else "revise")
        elif isinstance(step, dict):
            kinds.add("retraction" if step.get("op") == -1 else "row")
        else:
            kinds.add(step)
    return kinds

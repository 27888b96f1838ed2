"""What random generators draw: each kind of case has its share, so that no random test stops trying it unnoticed.

The shares are about half of those that the generators have. A random test that tries few cases asserts nothing about
kinds (``CaseCounts.expect``); these tests do, on as many seeds as they need, whatever ``ACEP_CASES`` is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

import pytest

import acep
from tests.case_kinds import (
    kinds_of_arrival,
    kinds_of_automaton,
    kinds_of_case,
    kinds_of_chain,
    kinds_of_matches,
    kinds_of_query,
    kinds_of_rows,
    kinds_of_version_steps,
)
from tests.random_automata import few_matches, random_automaton, random_rows
from tests.random_cases import events_of, random_case, sase_text
from tests.random_versions import Oracle, random_chain
from tests.runtime.automaton_steps import draw_steps
from tests.runtime.test_punctuation import promised, random_events, random_query
from tests.runtime.test_revisions import arriving
from tests.runtime.version_steps import IN_ORDER, LATE, REVISED, Kind, draw
from tests.test_random import drawn


def hold(least_shares: dict[str, float], kinds_of: Callable[[int], Iterable[str]], seeds: int) -> None:
    """Assert that each kind has at least its share of the seeds, and that every kind has one."""
    seen = Counter(kind for seed in range(seeds) for kind in {*kinds_of(seed)})
    shares = {kind: seen[kind] / seeds for kind in sorted({*seen, *least_shares})}
    rare = {
        kind: f"{share}, not {least_shares[kind]}"
        for kind, share in shares.items()
        if share < least_shares.get(kind, 0)
    }
    assert not rare, f"rarer than they should be: {rare}"
    assert shares.keys() == least_shares.keys(), f"kinds without a share: {shares.keys() - least_shares.keys()}"


CASES = {
    "BETWEEN": 0.028, "HAVING": 0.044, "IN": 0.03, "IS NOT NULL": 0.018, "IS NULL": 0.017, "LEN": 0.022, "LIKE": 0.01,
    "NOT": 0.012, "NOT IN": 0.013, "NaN": 0.16, "OR": 0.046, "RETURN": 0.032, "SASE": 0.36, "a[1]": 0.035,
    "a[i-1]": 0.015, "a[i]": 0.046, "abs": 0.032, "aggregate": 0.044, "aggregate so far": 0.021, "any type": 0.044,
    "arithmetic": 0.11, "choice": 0.1, "choice of sequences": 0.032, "coalesce": 0.008, "conditions": 0.29,
    "difference of times": 0.019, "errors": 0.24, "errors by halves": 0.019, "group repeated *": 0.014,
    "group repeated +": 0.052, "group repeated ?": 0.016, "group repeated {n,m}": 0.045, "infinite weight": 0.032,
    "letters": 0.14, "negation at an end": 0.045, "negation at an end of a group": 0.0055, "negation between": 0.085,
    "negation with a": 0.014, "negation with a value of a repetition": 0.01, "negation with a[1]": 0.006,
    "negation with a[i-1]": 0.015, "negation with a[i]": 0.005, "negation with an aggregate so far": 0.0025,
    "no window": 0.14, "null f": 0.17, "null k": 0.086, "null s": 0.16, "null x": 0.2, "null y": 0.18,
    "out of order": 0.042, "output all": 0.39, "output earliest_maximal": 0.045, "output longest_non_overlap": 0.034,
    "output non_overlap": 0.029,
    "output longest_after_match_skip": 0.009, "output shortest_after_match_skip": 0.015,
    "output shortest_non_overlap": 0.021, "skip to a variable": 0.016, "skip to next": 0.007,
    "over matches": 0.011, "partitions": 0.15, "prev(a.x)": 0.002, "repeated *": 0.072,
    "repeated +": 0.16, "repeated ?": 0.12, "repeated {n,m}": 0.14, "set": 0.078, "set with a repetition": 0.052,
    "several keys": 0.31, "several types": 0.49, "several types of a variable": 0.042,
    "strategy partition_contiguity": 0.13, "strategy skip_till_any_match": 0.12,
    "strategy skip_till_next_match": 0.12, "strategy strict_contiguity": 0.13, "surplus": 0.06, "texts": 0.024,
    "the last a": 0.014,
    "tied by equalities": 0.018, "ties": 0.23, "weights": 0.13, "window": 0.19, "window of events": 0.17,
    "with id": 0.044, "with seq": 0.05,
}  # fmt: skip


@pytest.mark.long
def test_random_cases() -> None:
    hold(CASES, lambda seed: kinds_of_case(random_case(seed)), 1_000)


TEXTS = {
    "BETWEEN": 0.025, "HAVING": 0.062, "IN": 0.036, "IS NOT NULL": 0.037, "IS NULL": 0.022, "LEN": 0.026,
    "LIKE": 0.006, "NOT": 0.025, "NOT IN": 0.014, "OR": 0.053, "RETURN": 0.044, "SASE": 0.5, "a[1]": 0.052,
    "a[i-1]": 0.027, "a[i]": 0.067, "abs": 0.035, "aggregate": 0.051, "aggregate so far": 0.028, "any type": 0.059,
    "arithmetic": 0.15, "choice": 0.07, "choice of sequences": 0.025, "coalesce": 0.016, "conditions": 0.4,
    "difference of times": 0.028, "errors": 0.25, "errors by halves": 0.019, "group repeated *": 0.008,
    "group repeated +": 0.044, "group repeated ?": 0.016, "group repeated {n,m}": 0.046, "infinite weight": 0.032,
    "negation at an end": 0.062, "negation at an end of a group": 0.0095, "negation between": 0.11, "no window": 0.13,
    "negation with a": 0.018, "negation with a value of a repetition": 0.007, "negation with a[1]": 0.004,
    "negation with a[i-1]": 0.015, "negation with a[i]": 0.007, "negation with an aggregate so far": 0.002,
    "output all": 0.37, "output earliest_maximal": 0.062, "output longest_non_overlap": 0.039,
    "output non_overlap": 0.028,
    "output longest_after_match_skip": 0.019, "output shortest_after_match_skip": 0.018,
    "output shortest_non_overlap": 0.028, "skip to a variable": 0.025, "skip to next": 0.013,
    "partitions": 0.17, "prev(a.x)": 0.0045, "repeated *": 0.069, "repeated +": 0.17,
    "repeated ?": 0.13, "repeated {n,m}": 0.16, "set": 0.1, "set with a repetition": 0.072,
    "several types of a variable": 0.051, "strategy partition_contiguity": 0.12, "strategy skip_till_any_match": 0.12,
    "strategy skip_till_next_match": 0.13, "strategy strict_contiguity": 0.13, "surplus": 0.063, "texts": 0.027,
    "the last a": 0.016,
    "tied by equalities": 0.027, "weights": 0.15, "window": 0.2, "window of events": 0.17,
}  # fmt: skip


@pytest.mark.long
def test_random_texts_of_queries() -> None:
    def kinds_of(seed: int) -> set[str]:
        text, options, _ = sase_text(Random(seed))
        return kinds_of_query(acep.parse(text, **options))

    hold(TEXTS, kinds_of, 1_000)


MATCHES = {
    "has matches": 0.34, "match with errors": 0.16, "match without error": 0.28, "matches of several keys": 0.031,
    "several ends": 0.25, "several matches": 0.29, "ten matches": 0.09, "values": 0.02,
}  # fmt: skip


@pytest.mark.long
def test_matches_of_cases_that_the_oracle_can_do() -> None:
    def kinds_of(seed: int) -> set[str]:
        case = drawn(seed)
        return kinds_of_matches(acep.match(case.table(), case.query(), **case.stream))

    hold(MATCHES, kinds_of, 250)


AUTOMATA = {
    "epsilon": 0.26, "epsilon with a fence": 0.15, "epsilon with a transfer": 0.16, "fence": 0.48,
    "fence of registers": 0.34, "has matches": 0.39, "ignorable": 0.14, "keys": 0.27, "loop": 0.15,
    "match without error": 0.39, "matches of several keys": 0.12, "no registers": 0.1, "no window": 0.078,
    "null f": 0.42, "null k": 0.39, "null s": 0.42, "null x": 0.35, "null y": 0.46, "register bool": 0.21,
    "register float": 0.21, "register int": 0.32, "register string": 0.23, "several ends": 0.32,
    "several final states": 0.11, "several keys": 0.36, "several matches": 0.34, "several registers": 0.3,
    "several types": 0.44, "several variables": 0.33, "since": 0.17, "ten matches": 0.098, "ties": 0.33,
    "transfer": 0.38, "until": 0.16, "values": 0.39, "window": 0.3, "window of events": 0.13,
}  # fmt: skip


@pytest.mark.long
def test_random_automata_and_rows() -> None:
    def kinds_of(seed: int) -> set[str]:
        rng = Random(seed)
        automaton = random_automaton(rng)
        rows = few_matches(automaton, random_rows(rng))
        matches = kinds_of_matches(acep.match(events_of(rows), automaton))
        return kinds_of_automaton(automaton) | kinds_of_rows(rows) | matches

    hold(AUTOMATA, kinds_of, 250)


AUTOMATON_STEPS = {
    "change": 0.3, "declare": 0.28, "push": 0.5, "replace": 0.3, "restore": 0.25, "revise": 0.3, "row": 0.5,
}  # fmt: skip


def test_steps_of_automata_that_change() -> None:
    def kinds_of(seed: int) -> set[str]:
        rng = Random(seed)
        steps = draw_steps(rng, random_rows(rng, 20), ["change", "declare", "replace", "revise"])
        return {step.get("do", "row") for step in steps}

    hold(AUTOMATON_STEPS, kinds_of, 300)


VERSIONS = {
    "2 variables": 0.14, "3 variables": 0.18, "4 variables": 0.18, "after its version": 0.022,
    "before it began": 0.026, "begins anew": 0.32, "broken": 0.12, "cheap negation": 0.29, "conditions": 0.33,
    "goes on": 0.18, "has matches": 0.19, "match with errors": 0.043, "negation as before": 0.25,
    "negation between": 0.31, "negation first": 0.17, "negation last": 0.14, "negation with a condition": 0.33,
    "no negation": 0.036, "of a newer version": 0.028, "of a version before": 0.026, "of an older version": 0.006,
    "two negations": 0.26, "went on": 0.052,
}  # fmt: skip


def test_random_versions() -> None:
    def kinds_of(seed: int) -> set[str]:
        rng = Random(seed)
        first = random_chain(rng)
        second = random_chain(rng, first)
        oracle = Oracle([(-100, first), (6, second)], random_rows(rng, 24), 8, errors=1)
        matches = oracle.all()
        flags = {"has matches": matches, "match with errors": any(match.error for match in matches)} | oracle.seen
        return kinds_of_chain(second, first) | {kind for kind, count in flags.items() if count}

    hold(VERSIONS, kinds_of, 1_000)


VERSION_STEPS = {
    "errors 0": 0.26, "errors 1": 0.24, "lateness 20, speculation inf": 0.093, "lateness 3, speculation 0": 0.1,
    "lateness 3, speculation 1": 0.097, "lateness None, speculation None": 0.093,
    "lateness inf, speculation inf": 0.12, "no window": 0.038, "output EARLIEST MAXIMAL": 0.18,
    "output NON OVERLAP": 0.17, "output all": 0.15, "push": 0.5, "replace": 0.46, "restore": 0.35, "retraction": 0.16,
    "revise": 0.18, "row": 0.5, "window": 0.46,
}  # fmt: skip


def test_steps_of_versions() -> None:
    kind = Kind(IN_ORDER + LATE + REVISED, ("", "NON OVERLAP", "EARLIEST MAXIMAL"), (0, 1), 0.4, revises=True)
    hold(VERSION_STEPS, lambda seed: kinds_of_version_steps(*draw(Random(seed), kind, "auto")), 300)


ARRIVALS = {
    "bounded lateness": 0.4, "corrections": 0.17, "disorder": 0.33, "event is late": 0.045, "in order": 0.17,
    "retractions": 0.27, "several pushes": 0.42, "unbounded lateness": 0.1,
}  # fmt: skip


def test_arriving_streams() -> None:
    def kinds_of(seed: int) -> set[str]:
        rng = Random(seed)
        stream = arriving(random_case(seed).events, rng, ops=rng.random() < 0.6)
        return kinds_of_arrival(stream.pushes, stream.refused, stream.lateness)

    hold(ARRIVALS, kinds_of, 500)


PUNCTUATIONS = {
    "SASE": 0.5, "any type": 0.052, "bounded lateness": 0.21, "conditions": 0.13, "corrections": 0.22,
    "disorder": 0.42, "errors": 0.14, "event is late": 0.31, "group repeated +": 0.047, "in order": 0.081,
    "negation at an end": 0.15, "negation between": 0.056, "output all": 0.34, "output earliest_maximal": 0.089,
    "output non_overlap": 0.069, "partitions": 0.4, "punctuation of all": 0.16, "punctuation of key": 0.37,
    "punctuation of key and types": 0.31, "punctuation of types": 0.44, "repeated +": 0.049, "repeated ?": 0.049,
    "retractions": 0.25, "set": 0.049, "several pushes": 0.5, "several types of a variable": 0.049,
    "strategy partition_contiguity": 0.068, "strategy skip_till_any_match": 0.18,
    "strategy skip_till_next_match": 0.19, "strategy strict_contiguity": 0.063, "unbounded lateness": 0.29,
    "window": 0.35, "window of events": 0.14,
}  # fmt: skip


@pytest.mark.long
def test_streams_with_punctuations() -> None:
    def kinds_of(seed: int) -> set[str]:
        rng = Random(seed)
        query = acep.parse(random_query(rng), errors=rng.choice((0, 0, 0, 1)))
        stream = promised(random_events(rng), query.ties, rng, ops=rng.random() < 0.5)
        kinds = kinds_of_query(query)
        for what, *details in stream.steps:
            if what == "say":
                names = ["key"] * bool(details[0]) + ["types"] * (details[1] is not None)
                kinds.add(f"punctuation of {' and '.join(names) or 'all'}")
        pushes = [rows for what, rows, *_ in stream.steps if what == "push"]
        return kinds | kinds_of_arrival(pushes, stream.refused, stream.lateness)

    hold(PUNCTUATIONS, kinds_of, 500)

"""Random queries that are replaced while a random stream runs: each version accepts what it does in its own time.

Each test draws one kind of stream, so that its name says what broke. ``tests/random_versions.py`` has the oracle.
"""

from __future__ import annotations

import warnings
from collections import Counter
from functools import partial
from itertools import product
from random import Random
from typing import Any

import pytest

import acep
from acep.errors import QueryError
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong_on_rows
from tests.random_automata import random_rows
from tests.random_cases import events_of, sase_text
from tests.runtime.test_revisions import net
from tests.runtime.version_steps import IN_ORDER, LATE, REVISED, Kind, try_versions
from tests.thinned import thinned

ENGINES = ("auto", "reference")
CASES = 125
PARTS = 4
ALL = IN_ORDER + LATE + REVISED

Row = dict[str, Any]
Steps = list[Row | str]


@pytest.mark.parametrize("engine", ENGINES)
def test_versions_hold_for_a_stream_in_order(engine: str, cases: CaseCounts) -> None:
    seen = try_versions(Kind(IN_ORDER), engine, cases(CASES))
    cases.expect(seen, "has matches", "partial matches go on", "went on", "before it began")


@pytest.mark.parametrize("engine", ENGINES)
def test_late_events_belong_to_the_version_of_their_time(engine: str, cases: CaseCounts) -> None:
    seen = try_versions(Kind(LATE), engine, cases(CASES))
    cases.expect(seen, "has matches", "partial matches go on", "went on")


@pytest.mark.parametrize("engine", ENGINES)
def test_matches_of_versions_are_taken_back_after_late_events(engine: str, cases: CaseCounts) -> None:
    seen = try_versions(Kind(REVISED), engine, cases(CASES))
    cases.expect(seen, "has matches", "partial matches go on", "went on", "matches are taken back")


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_events_of_versions_are_taken_back(engine: str, cases: CaseCounts) -> None:
    seen = try_versions(Kind(LATE + REVISED, retractions=1), engine, cases(CASES))
    cases.expect(seen, "has matches", "partial matches go on", "went on", "matches are taken back")


@pytest.mark.parametrize("engine", ENGINES)
def test_negations_of_versions_are_broken_at_a_cost(engine: str, cases: CaseCounts) -> None:
    seen = try_versions(Kind(ALL, errors=(1, 2), retractions=0.4), engine, cases(CASES))
    cases.expect(seen, "has matches", "broken", "before it began", "after its version", "of an older version")


@pytest.mark.parametrize("engine", ENGINES)
def test_non_overlap_chooses_among_the_matches_of_all_versions(engine: str, cases: CaseCounts) -> None:
    seen = try_versions(Kind(ALL, ("NON OVERLAP",), (0, 1), 0.4), engine, cases(CASES))
    cases.expect(seen, "has matches", "partial matches go on", "went on", "broken")


@pytest.mark.parametrize("engine", ENGINES)
def test_earliest_maximal_chooses_among_the_matches_of_all_versions(engine: str, cases: CaseCounts) -> None:
    seen = try_versions(Kind(ALL, ("EARLIEST MAXIMAL",), (0, 1), 0.4), engine, cases(CASES))
    cases.expect(seen, "has matches", "partial matches go on", "went on", "broken")


@pytest.mark.parametrize("engine", ENGINES)
def test_revised_versions_hold_for_events_that_came_before(engine: str, cases: CaseCounts) -> None:
    outputs = ("", "", "NON OVERLAP", "EARLIEST MAXIMAL")
    seen = try_versions(Kind(REVISED, outputs, (0, 0, 1, 2), 0.4, revises=True), engine, cases(CASES))
    cases.expect(seen, "has matches", "partial matches go on", "holds for events that came before", "went on", "broken")


@pytest.mark.long
@pytest.mark.parametrize("part", thinned(range(PARTS), PARTS))
def test_engines_agree_and_late_events_take_the_version_of_their_time(part: int, cases: CaseCounts) -> None:
    """Random queries with repetitions, sets, choices, negations, errors, HAVING, RETURN and OUTPUT."""
    seen = Counter[str]()
    for seed in range(part * 10_000, part * 10_000 + cases(150)):
        rng = Random(seed)
        text, options, _ = sase_text(rng)
        texts = [text, *(changed_text(rng, text) for _ in range(3))]
        title = "\nthen ".join([f"seed {seed}, {options}, {text}", *texts[1:]])
        complain = partial(arrivals_that_differ, seed, texts, options, seen)
        fail_if_wrong_on_rows(random_rows(rng, 16), title, complain)
    cases.expect(seen, "has matches", "runs", "negation and matches", "OUTPUT and matches")


def arrivals_that_differ(
    seed: int, texts: list[str], options: dict[str, Any], seen: Counter[str], rows: list[Row]
) -> str:
    """Run the versions on rows in order and in another order, on each engine; say which of them differ, and how."""
    rng = Random(f"{seed} arrival")
    cuts = sorted(rng.choices(range(1, len(rows) + 1), k=3))
    steps = {"in order": steps_in_order(rows, cuts, texts[1:]), "late": late_steps(rng, rows, cuts, texts[1:])}
    asked: dict[str, Any] = {"id": "id", "seq": "seq", "dynamic": True}
    asked["budget"] = acep.Budget(**options) if options else None
    answers = {}
    for arrival, engine in product(steps, ENGINES):
        lateness = {"lateness": "inf", "speculation": "inf"} if arrival == "late" else {}
        answers[f"{engine}, {arrival}"] = run(texts[0], steps[arrival], asked | lateness | {"engine": engine})
    (first, wanted), *further = answers.items()
    seen["has matches"] += bool(wanted)
    seen["runs"] += isinstance(wanted, dict)
    seen["negation and matches"] += "~" in texts[0] and bool(wanted)
    seen["OUTPUT and matches"] += "OUTPUT" in texts[0] and bool(wanted)
    differences = [text for name, answer in further if (text := difference(answer, wanted, (name, first)))]
    if not differences:
        return ""
    arrivals = [f"{name}: {' '.join('*' if isinstance(s, str) else s['id'] for s in steps[name])}" for name in steps]
    return "\n".join([*arrivals, *differences])


def steps_in_order(rows: list[Row], cuts: list[int], texts: list[str]) -> Steps:
    """Return events in order, and a new version after all events of the time of some of them."""
    steps, at = Steps(), 0
    for cut, text in zip(cuts, texts, strict=True):
        before = [row for row in rows if row["ts"] <= rows[cut - 1]["ts"]]
        steps += [*before[at:], text]
        at = max(at, len(before))
    return steps + rows[at:]


def late_steps(rng: Random, rows: list[Row], cuts: list[int], texts: list[str]) -> Steps:
    """Return the same, but other events than the latest may come after a change, and in any order."""
    steps, came = Steps(), list[Row]()
    for cut, text in zip(cuts, texts, strict=True):
        last = rows[cut - 1]
        ready = [row for row in rows if row not in came and row["ts"] <= last["ts"]]
        ready = rng.sample(ready, len(ready))
        coming = [row for row in ready if row is last or rng.random() < 0.6]
        steps += [*coming, text]
        came += coming
    late = [row for row in rows if row not in came]
    return steps + rng.sample(late, len(late))


def changed_text(rng: Random, text: str) -> str:
    """Return the pattern with another type somewhere."""
    head, _, tail = text.partition("\nWHERE")
    places = [i for i in range(len("PATTERN "), len(head)) if head[i] in "ABCDE" and not head[i - 1].isalnum()]
    place = rng.choice(places)
    return f"{head[:place]}{rng.choice('ABCDE')}{head[place + 1 :]}\nWHERE{tail}"


def run(text: str, steps: Steps, asked: dict[str, Any]) -> dict[Any, Any] | str:
    """Return the matches of a query that is replaced on the way, or what was refused."""
    changes = list[Any]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", acep.DataWarning)
        try:
            matcher = acep.Matcher(text, **asked)
            for step in steps:
                if isinstance(step, str):
                    matcher.replace(step)
                else:
                    changes += matcher.push(events_of([step]))
            changes += matcher.finish()
        except QueryError as refused:
            return refused.message
    return dict(net(changes))

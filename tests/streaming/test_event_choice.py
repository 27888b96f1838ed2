"""Single events that are kept by utility: no match is created, and the recall is estimated from explored units."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import acep
from acep.errors import SnapshotError
from acep.events.tables import schema_of
from acep.overload.event_choice import EXPLORED, EventChoice, Explored, Exploring, explored_in
from acep.overload.unit_admission import UnitAdmission
from acep.plan.compile import compile_query
from acep.shedding.event_utility import SECTION, EventUtility, is_sheddable
from acep.storage.sections import read_sections

QUERIES = (
    "SEQ(a p, b q) WHERE skip_till_any_match(p, q) { [k] }",
    "SEQ(a p, b+ q[], a r) WHERE skip_till_any_match(p, q[], r) { [k] AND q[i].x > q[i-1].x AND r.x > p.x }",
    "SEQ(a p, (b q | a r), b s) WHERE skip_till_any_match(p, q, r, s) { [k] AND s.x >= p.x }",
    "{a p, b q, ANY r} WHERE skip_till_any_match(p, q, r) { [k] AND r.x > p.x }",
)
UTILITY = EventUtility(
    "", ("a", "b"), (("x", (2.0, 4.0)),), (8, 0, 3, 4, 1, 7, 2, 6, 5), (1 / 9,) * 9, (3, 6), (0.6, 0.9)
)


def events(rng: Random, size: int, keys: int = 3) -> pa.Table:
    rows = sorted(rng.randrange(size) for _ in range(size))
    columns = {"type": rng.choices("ab", k=size), "k": rng.choices(range(keys), k=size)}
    return pa.table({"ts": rows, **columns, "x": rng.choices(range(6), k=size), "id": range(size)})


def bindings(found: Any) -> set[tuple[Any, ...]]:
    return {(str(one.bindings), one.error, one.start, one.end) for one in found}


@pytest.mark.parametrize("errors", [0, 1])
@pytest.mark.parametrize("text", QUERIES)
@given(seed=st.integers(0, 2**16), kept=st.sets(st.integers(0, 30)))
def test_events_that_are_left_out_create_no_match(text: str, errors: int, seed: int, kept: set[int]) -> None:
    query = acep.parse(f"PATTERN {text} WITHIN 6", errors=errors)
    table = events(Random(seed), 24)
    assert is_sheddable(compile_query(query, schema_of(table.schema, id="id")))
    some = table.filter(pa.array([i in kept for i in range(len(table))]))
    assert bindings(acep.match(some, query, id="id")) <= bindings(acep.match(table, query, id="id"))


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [k] } WITHIN 6",
        "PATTERN SEQ(a p, ~b n, a q) WHERE skip_till_any_match(p, q) { [k] } WITHIN 6",
        "PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { [k] } WITHIN 6 EVENTS",
        "PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { [k] } WITHIN 6 OUTPUT NON OVERLAP",
        "PATTERN SEQ(a p, b q) WHERE partition_contiguity(p, q) { [k] } WITHIN 6",
    ],
)
def test_where_an_event_less_can_create_a_match_none_is_left_out(text: str) -> None:
    table = events(Random(1), 5)
    assert not is_sheddable(compile_query(acep.parse(text), schema_of(table.schema)))


def rising(size: int, seed: int = 0) -> pa.Table:
    """Events of which those with a small ``x`` are hardly ever part of a match."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(size) < 0.3, rng.uniform(8, 10, size), rng.uniform(0, 8, size))
    key = rng.integers(0, 20, size)
    return pa.table({"ts": np.arange(size), "type": np.where(rng.random(size) < 0.5, "a", "b"), "k": key, "x": x})


RISING = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { [k] AND p.x + q.x > 16 } WITHIN 200")


def learned(table: pa.Table) -> EventUtility | None:
    return EventUtility.from_sections(read_sections(acep.learn(table, RISING)))


def test_a_history_says_which_events_matter() -> None:
    utility = learned(rising(6_000))
    assert utility is not None
    assert utility.types == ("a", "b")
    assert [name for name, _ in utility.bins] == ["x"]
    kept = utility.keep(0.4, np.array(utility.events))
    assert kept is not None
    other = rising(4_000, seed=1)
    rank = np.argsort(utility.order)[utility.cells(other, other["type"])]
    some = other.filter(pa.array(rank < kept))
    assert 0.28 < len(some) / len(other) < 0.45
    every, found = (len(acep.match(one, RISING, output="points")) for one in (other, some))
    assert found > 0.8 * every
    assert 0.5 < np.interp(kept, utility.n_kept, utility.recall) < found / every + 0.05  # what is promised is kept


def test_where_values_say_nothing_equal_chances_stay() -> None:
    """All events of a sequence of three types are alike, and each is needed."""
    rng = np.random.default_rng(3)
    table = pa.table({"ts": np.arange(3_000), "type": rng.choice(list("abc"), 3_000), "x": rng.random(3_000)})
    query = acep.parse("PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) { r.x > 2 * p.x } WITHIN 4")
    utility = EventUtility.from_sections(read_sections(acep.learn(table, query)))
    assert utility is None or utility.keep(0.5, np.array(utility.events)) is None


def test_too_few_matches_teach_nothing() -> None:
    assert learned(rising(60)) is None


@pytest.mark.parametrize(
    "damage",
    [
        {"order": [0, 1]},
        {"order": [0] * 9},
        {"n_kept": [6, 3]},
        {"n_kept": [0, 3]},
        {"n_kept": [3]},
        {"recall": [0.5, float("nan")]},
        {"bins": [["x", [4.0, 2.0]]]},
        {"events": [0.0] * 9},
        {"types": 5},
    ],
)
def test_a_damaged_section_is_refused(damage: dict[str, Any]) -> None:
    sections = {SECTION: UTILITY.to_bytes()}
    assert EventUtility.from_sections(sections) == UTILITY
    told = {one: getattr(UTILITY, one) for one in UTILITY.__dataclass_fields__} | damage
    fake: Any = SimpleNamespace(**told)
    with pytest.raises(SnapshotError, match="damaged"):
        EventUtility.from_sections({SECTION: EventUtility.to_bytes(fake)})


def test_a_choice_keeps_the_first_cells_and_explores_the_rest() -> None:
    choice = EventChoice().choose(UTILITY, 0.7)
    assert choice.n_cells == 6
    assert choice.share(UTILITY) == pytest.approx(6 / 9 + 3 / 9 / EXPLORED, rel=1e-4)
    assert choice.choose(UTILITY, 0.02).n_cells is None
    assert choice.choose(UTILITY, 1.0).n_cells is None
    counts = np.zeros(260, np.int64)
    counts[[8, 0]] = 900, 100  # now nearly all events are in the first cell
    moved = EventChoice().add_counts(counts)
    assert moved.choose(UTILITY, 0.95).n_cells == 1 or moved.choose(UTILITY, 0.95).n_cells is None
    again = EventChoice.load(json.loads(json.dumps(moved.dump())))
    assert (again.n_cells, again.recent.tolist()) == (moved.n_cells, moved.recent.tolist())


@pytest.mark.parametrize("damage", [{"kept": -1}, {"kept": 300}, {"recent": [-1.0]}, {"recent": [[1.0]]}])
def test_a_damaged_choice_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"kept|events"):
        EventChoice.load({"kept": 1, "recent": []} | damage)


def test_explored_units_estimate_the_recall_without_bias() -> None:
    """Over many seeds, the estimated number of match points has the true mean."""
    table = events(Random(4), 3_000, keys=40)
    query = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { [k] AND q.x > p.x } WITHIN 20")
    job: Any = SimpleNamespace(schema=schema_of(table.schema), output="matches")
    estimates, ratios = [], []
    for seed in range(60):
        exploring = Exploring.from_admission(UTILITY, ("k",), UnitAdmission(20, seed=seed))
        chosen, _ = exploring.find_explored([table["k"]], table["ts"].to_numpy())
        kept = np.isin(UTILITY.cells(table, table["type"]), UTILITY.order[:4]) | chosen
        found = acep.match(table.filter(pa.array(kept)), query)
        counts = explored_in([exploring.counts(job, table, [found.to_arrow()])])
        points = {(one.key["k"], one.end) for one in found}
        tally = Explored(len(table), len(points), *counts[-4:].tolist()).tally()
        if tally is not None:
            estimates.append(tally.x)
            ratios.append(chosen.mean())
    every = {(one.key["k"], one.end) for one in acep.match(table, query)}
    assert np.mean(ratios) == pytest.approx(1 / EXPLORED, rel=0.15)
    assert np.mean(estimates) == pytest.approx(len(every), rel=0.1)


def test_nothing_explored_is_no_estimate() -> None:
    assert Explored(events=10, points_found=1).tally() is None
    assert replace(Explored(), events=0.0).tally() is not None

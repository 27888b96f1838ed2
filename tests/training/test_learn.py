"""Learning ahead: what a history holds, that a run begins with it, and whom it is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import acep
import acep.training.offline as module
from acep.errors import AcepError, DataError, EngineError, QueryError, SnapshotError
from acep.learning.history.graph import History
from acep.learning.history.sums import SUMS
from acep.learning.policies.history_policy import HistoryPolicy, ScoringConfiguration
from acep.learning.trajectories.trajectories import Made, Trajectories
from acep.native.compiled import why_not
from acep.shedding.history_file import SECTION, LearnedState
from acep.storage.plain_data import from_bytes, to_bytes
from acep.storage.sections import read_sections, write_sections
from acep.training.offline import Trial, weight_trajectories

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

TEXT = """PATTERN SEQ(order a, pay b, ship c)
WHERE skip_till_any_match { [shop] AND b.sum = a.sum AND c.sum > 20 * b.sum } WITHIN 2000"""
QUERY = acep.parse(TEXT)
EASIER = acep.parse(TEXT.replace("20 *", "2 *").replace("2000", "300"))
LETTERS = acep.regex("a(b|c)d", within=6, errors=1)


def shops(events: int, seed: int) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    return {
        "ts": list(range(events)),
        "type": rng.choice(["order", "pay", "ship", "view"], events).tolist(),
        "shop": rng.integers(0, 8, events).tolist(),
        "sum": rng.integers(1, 100, events).tolist(),
    }


def letters(events: int, seed: int) -> dict[str, list[Any]]:
    rng = Random(seed)
    return {"ts": [2 * i for i in range(events)], "type": rng.choices("abcdx", k=events)}


def history_of(data: bytes) -> History:
    return History.from_bytes(data)


def spoilt(data: bytes, change: Any) -> bytes:
    sections = read_sections(data)
    told = from_bytes(sections[SECTION])
    change(told)
    return write_sections({**sections, SECTION: to_bytes(told)})


@pytest.mark.parametrize(
    ("found", "best", "runs"),
    [
        ([[0.50, 0.50, 0.50], [0.60, 0.10, 0.10], [0.54, 0.90, 0.90]], 1, 3),  # no other one is near
        ([[0.50, 0.90, 0.90], [0.60, 0.50, 0.50], [0.59, 0.56, 0.56]], 2, 7),  # chance was with the other one
        ([[0.50, 0.50, 0.50]], 0, 0),
    ],
)
def test_ways_that_are_near_to_the_best_one_are_tried_with_other_seeds(
    found: list[list[float]], best: int, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[tuple[int, int]] = []

    def run(_trial: Trial, way: int, _share: float, more: int = 0) -> tuple[list[float], float]:
        tried.append((way, more))
        return [found[way][more]] * 2, 0.0

    monkeypatch.setattr(Trial, "run", run)
    none: Any = None
    assert Trial(none, "nodes", [], none, none, 1.0, 0).best(range(len(found))) == best  # type: ignore[arg-type]
    assert len(set(tried)) == runs
    assert len(tried) == runs * len(module.SHARES)


@pytest.mark.parametrize(
    ("found", "points", "best"),
    [
        ([[0.50, 0.40], [0.45, 0.30]], 10_000, 0),
        ([[0.80, 0.25], [0.45, 0.50]], 10_000, 1),  # much of the one, but far less of the other
        ([[0.52, 0.40], [0.50, 0.38]], 10_000, 0),
        ([[0.52, 0.40], [0.50, 0.38]], 100, 1),  # which may be chance
    ],
)
def test_a_rule_is_left_for_what_finds_more_and_loses_little(
    found: list[list[float]], points: int, best: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_trial: Trial, way: int, _share: float, _more: int = 0) -> tuple[list[float], float]:
        return found[way], 0.0

    monkeypatch.setattr(Trial, "run", run)
    none: Any = None
    known = np.zeros((points, 3), np.int64)
    assert Trial(none, "nodes", [], none, known, 1.0, 0).best(range(2), [1]) == best  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def learned() -> bytes:
    return acep.learn(shops(20_000, 1), QUERY)


@pytest.mark.parametrize(("query", "events"), [(LETTERS, letters(900, 3)), (EASIER, shops(1000, 5))])
def test_all_that_was_found_is_in_the_graph(query: Any, events: Any) -> None:
    """An epoch is 1,024 events at first, of which all lives are logged."""
    history = history_of(acep.learn(events, query))
    bundles = acep.match(events, query, output="bundles")
    assert history.targets.count == len(bundles) > 1
    kept = history.bundles >= 0
    assert sorted(history.points[kept]) == sorted(b.start for b in bundles)[-int(kept.sum()) :]
    sums = dict(zip(SUMS, history.sums().sum(axis=0), strict=True))
    assert sums["seen"] == sums["visits"] > sums["reached"] > 0
    assert len(history.open.made) == 0


@pytest.mark.long
def test_of_many_lives_a_sample_stands_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def sums() -> dict[str, float]:
        events = shops(20_000, 3)
        events["sum"] = np.random.default_rng(3).permutation(20_000).tolist()  # no two nodes become one
        query = acep.parse(
            "PATTERN SEQ(order a, pay b, ship c) WHERE skip_till_any_match "
            "{ [shop] AND b.sum < a.sum AND c.sum > b.sum AND c.sum < a.sum } WITHIN 300"
        )
        history = history_of(acep.learn(events, query))
        return dict(zip(SUMS, history.sums().sum(axis=0).tolist(), strict=True))

    whole = sums()
    monkeypatch.setattr(module, "LOGGED_TRAJECTORIES", 4096)
    sampled = sums()
    assert whole["seen"] == whole["visits"] > 1.5 * sampled["seen"]
    for name in ("visits", "reached", "own", "advanced"):
        assert sampled[name] == pytest.approx(whole[name], rel=0.15)


def test_a_tree_has_the_weight_of_its_first_node() -> None:
    columns = {
        "partition": [0, 0],
        "state": [1, 1],
        "error": [0, 0],
        "start": [0, 5],
        "made": [0, 5],
        "feature": [3, 0],
    }
    nothing = (
        {"trajectory": [], "when": [], "how": [], "touches": []},
        {"parent": [], "partition": [], "when": [], "error": []},
    )
    known = Trajectories.from_columns(
        {**columns, "trajectory": [0, 1], "parent": [-1, -1], "weight": [4, 9]}, *nothing
    ).made
    news = Trajectories.from_columns({**columns, "trajectory": [7, 8], "parent": [1, -1], "weight": [1, 1]}, *nothing)
    assert weight_trajectories(known, news, 2.0).made.weight.tolist() == [9, 2]
    assert weight_trajectories(Made.empty(), news, 2.0).made.weight.tolist() == [2, 2]


def test_a_run_begins_with_what_was_learned(learned: bytes, tmp_path: Path) -> None:
    events = shops(20_000, 2)
    matcher = acep.Matcher(QUERY)
    exact = {(m.key["shop"], m.end) for m in [*matcher.push(events), *matcher.finish()]}
    budget = acep.Budget(work=matcher.report.work / 20_000 / 4)

    def recall(**options: Any) -> float:
        points = acep.match(events, QUERY, budget=budget, output="points", **options)
        return len({(p.key["shop"], p.point) for p in points} & exact) / len(exact)

    warm = recall(history=learned)
    assert warm > recall() + 0.02
    (tmp_path / "h.acep").write_bytes(learned)
    assert recall(history=str(tmp_path / "h.acep")) == recall(history=[tmp_path / "h.acep"]) == warm


def test_the_same_events_teach_the_same(learned: bytes) -> None:
    assert acep.learn(shops(20_000, 1), QUERY) == learned


@pytest.mark.long
def test_learning_goes_on(learned: bytes) -> None:
    first, both = history_of(learned), history_of(acep.learn(shops(8_000, 2), QUERY, history=learned))
    second = history_of(acep.learn(shops(8_000, 2), QUERY))
    assert both.targets.count == first.targets.count + second.targets.count
    assert both.epochs > max(first.epochs, second.epochs)
    state = LearnedState.from_sections(read_sections(acep.learn(shops(8_000, 2), QUERY, history=learned))).state
    assert state["visits"] > LearnedState.from_sections(read_sections(learned)).state["visits"]


def test_a_snapshot_of_a_run_that_began_with_a_history(learned: bytes) -> None:
    events = shops(6_000, 2)
    parts = [{name: column[i : i + 2000] for name, column in events.items()} for i in range(0, 6000, 2000)]

    def matcher() -> acep.Matcher:
        return acep.Matcher(QUERY, budget=acep.Budget(work=2), history=learned)

    whole, cut = matcher(), matcher()
    for part in parts:
        other = matcher()
        other.restore(cut.snapshot())
        cut = other
        assert [m.bindings for m in cut.push(part)] == [m.bindings for m in whole.push(part)]


def test_several_queries_have_histories_of_their_own(learned: bytes) -> None:
    other = acep.parse(TEXT.replace("20 *", "2 *"))
    events, budget = shops(3_000, 2), acep.Budget(work=3)
    of_other = acep.learn(shops(3_000, 1), other)
    alone = [
        acep.match(events, query, budget=budget, seed=seed, history=history, output="points")
        for seed, (query, history) in enumerate([(QUERY, learned), (other, of_other)])
    ]
    both = acep.match(events, [QUERY, other], budget=budget, history=[of_other, learned], output="points")
    assert both == alone
    with pytest.raises(QueryError, match="two of the histories"):
        acep.match(events, QUERY, budget=budget, history=[learned, learned])


@pytest.mark.parametrize(
    ("query", "options", "said"),
    [
        (TEXT.replace("2000", "1999"), {}, "of another query"),
        (TEXT, {"budget": acep.Budget(work=2, errors=1)}, "of another query"),
        (TEXT, {"policy": "random"}, "learned by the policy `history`, which `random` does not understand"),
    ],
)
def test_whom_a_history_is_refused(query: str, options: Any, said: str, learned: bytes) -> None:
    options = {"budget": acep.Budget(work=2), **options}
    with pytest.raises(SnapshotError, match=said):
        acep.match(shops(100, 2), acep.parse(query), history=learned, **options)


def test_what_cannot_be_learned(learned: bytes) -> None:
    events = shops(100, 2)
    with pytest.raises(QueryError, match="serves a run under a budget"):
        acep.match(events, QUERY, history=learned)
    with pytest.raises(QueryError, match="policy= serves a run under a budget"):
        acep.match(events, QUERY, policy="random", budget=acep.Budget(errors=1))
    with pytest.raises(QueryError, match="gives up nothing"):
        acep.learn(events, QUERY, budget=acep.Budget(work=2))
    with pytest.raises(QueryError):
        acep.learn(events, [QUERY])  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="over the matches of others"):
        acep.learn(events, acep.parse(f"FROM ({TEXT}) AS found PATTERN SEQ(found a, found b) WITHIN 100"))
    with pytest.raises(EngineError, match="cannot run"):
        acep.learn(events, acep.regex("ab", weights={"a": Fraction(1, 2**31 - 1), "b": Fraction(1, 2**31 - 19)}))
    with pytest.raises(DataError, match="cannot be read"):
        acep.learn(events, QUERY, history="nowhere.acep")
    with pytest.raises(QueryError, match="a history is a file or its bytes"):
        acep.match(events, QUERY, budget=acep.Budget(work=2), history=7)
    with pytest.raises(SnapshotError, match="of another query"):
        acep.learn(events, LETTERS, history=learned)
    graph = write_sections({n: d for n, d in read_sections(learned).items() if n != SECTION})
    with pytest.raises(SnapshotError, match="no state of a policy"):
        acep.match(events, QUERY, budget=acep.Budget(work=2), history=graph)


def leaves(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(value, dict):
        return [path]
    return [path, *(leaf for key, one in value.items() for leaf in leaves(one, (*path, key)))]


@pytest.mark.long
@pytest.mark.whole
def test_a_history_made_by_hand_is_an_error_or_serves(learned: bytes) -> None:
    """Whatever stands in it: one clear error, and no other exception while the run goes on."""
    told = from_bytes(read_sections(learned)[SECTION])
    junk: list[Any] = [None, -1, 7, "x", [], {}, np.zeros(0), np.full(3, -1), np.ones((2, 2)), np.full(5, 2**62)]
    junk += [np.full(6, np.nan), np.zeros((0, 3)), True, 1e300, [[1]], np.zeros(3, np.uint8)]
    refused = 0
    for path in leaves(told):
        for one in junk:

            def change(told: Any, path: tuple[str, ...] = path, one: Any = one) -> None:
                for key in path[:-1]:
                    told = told[key]
                if path:
                    told[path[-1]] = one

            data = spoilt(learned, change)
            try:
                with np.errstate(all="ignore"):
                    acep.match(shops(1100, 3), QUERY, budget=acep.Budget(work=3), history=data)
            except SnapshotError:
                refused += 1
    assert refused > 100


def test_damaged_bytes_are_an_error(learned: bytes) -> None:
    rng = Random(0)
    places = [*range(48), *rng.choices(range(len(learned)), k=100)]
    for place in places:
        data = bytearray(learned)
        data[place] ^= 1 << rng.randrange(8)
        with pytest.raises(AcepError):
            acep.match(shops(50, 2), QUERY, budget=acep.Budget(work=2), history=bytes(data))
    section = read_sections(learned)[SECTION]
    for cut in (0, 3, 8, 40, len(section) // 2, len(section) - 1):
        data = write_sections({**read_sections(learned), SECTION: section[:cut]})  # type: ignore[assignment]
        with pytest.raises(SnapshotError, match="cannot be read"):
            acep.match(shops(50, 2), QUERY, budget=acep.Budget(work=2), history=data)
    deep = b"[" * 100_000
    data = write_sections({SECTION: len(deep).to_bytes(8, "little") + deep})  # type: ignore[assignment]
    with pytest.raises(SnapshotError, match="cannot be read"):
        acep.match(shops(50, 2), QUERY, budget=acep.Budget(work=2), history=data)


def test_a_rule_that_was_chosen_costs_what_the_rule_costs() -> None:
    events = shops(6000, 4)
    rule = HistoryPolicy(configuration=ScoringConfiguration(0.0, 4.0, noise=0, hashed=False), tries=False)
    learned = acep.learn(shops(3000, 3), EASIER, policy=rule)
    budget = acep.Budget(work=0.12)
    found = acep.match(events, EASIER, budget=budget, policy=rule, history=learned)
    other = acep.match(events, EASIER, budget=budget, policy="newest-per-state")
    assert found.report.shed > 0
    assert found.report.recall is None
    assert len(found) >= len(other) > 0

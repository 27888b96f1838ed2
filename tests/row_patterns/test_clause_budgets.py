"""A clause under a budget gives rows of the exact result, keeps to its bound, and says what it gave up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.errors import DataWarning, QueryError, SnapshotError
from acep.row_patterns import partition_choice
from acep.row_patterns.clause_pace import ClausePace
from acep.row_patterns.partition_choice import AHEAD, CREDIT, PartitionChoice
from tests.case_counts import CaseCounts
from tests.complaints import difference
from tests.row_patterns.test_streams import batches_of, outcome, random_streams, texts_of
from tests.thinned import in_turn

DIPS = """
    PARTITION BY device ORDER BY ts
    MEASURES FIRST(ts) AS start, LAST(ts) AS stop
    PATTERN (S D+ U+)
    DEFINE D AS price < PREV(price), U AS price > PREV(price)
"""
N_STATES = 6  # of its pattern
N_RANDOM = 4_000


def device_rows(rng: Random, n_rows: int, n_devices: int, n_restless: int) -> pa.Table:
    """Return rows of devices, of which the last ones have dips."""
    devices = [rng.randrange(n_devices) for _ in range(n_rows)]
    prices = [rng.randint(1, 6) if device >= n_devices - n_restless else 5 for device in devices]
    return pa.table({"ts": range(n_rows), "device": devices, "price": prices})


def run_stream(clause: str, batches: Sequence[pa.Table], *, restores: bool = False, **options: object):  # type: ignore[no-untyped-def]
    """Return all rows that a matcher gives, and its report; after each batch it may go on from a snapshot."""
    matcher = acep.Matcher(clause, **options)
    results = []
    for batch in batches:
        results.append(matcher.push(batch))
        if restores:
            data, matcher = matcher.snapshot(), acep.Matcher(clause, **options)
            matcher.restore(data)
    return pa.concat_tables([*results, matcher.finish()]), matcher.report


def test_seconds_of_an_advance_are_of_no_push(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that time alone closes are searched between two pushes; the next push is not charged with them."""
    seconds = []
    record = ClausePace.record

    def note(self: ClausePace, n_rows: int, touches: int, total: float, searching: float) -> None:
        seconds.append((total, searching))
        record(self, n_rows, touches, total, searching)

    monkeypatch.setattr(ClausePace, "record", note)
    clause = DIPS.replace("PATTERN (S D+ U+)", "PATTERN (S D* U) WITHIN 5")
    matcher = acep.Matcher(clause, budget=acep.Budget(latency=60.0), lateness=0)
    table = device_rows(Random(11), 400, 20, 20)
    for batch in batches_of(table, 100):
        matcher.push(batch)
        matcher.advance(batch["ts"][-1].as_py())
    assert all(searching <= total for total, searching in seconds)


def test_touches_are_compared_with_those_expected_under_bounds_of_time_too() -> None:
    matcher = acep.Matcher(DIPS, budget=acep.Budget(latency=60.0))
    for batch in batches_of(device_rows(Random(12), 400, 20, 20), 100):
        matcher.push(batch)
    choice = matcher._clause.revised.stream.choice
    choice.is_open[0] = False  # else all there is may be searched, and nothing is counted ahead
    matcher.push(batch.slice(99))
    expected, actual = choice.compared
    assert 0 < expected <= actual


def recall_of(rows: pa.Table, exact: pa.Table) -> float:
    return rows.num_rows / exact.num_rows


@pytest.mark.parametrize(
    ("bound", "size"), in_turn([{"work": 40}, {"memory": "64 MB"}, {"latency": 60.0}], [1, 20, 6_000, 2_000])
)
def test_a_budget_that_suffices_loses_nothing(size: int, bound: dict[str, object]) -> None:
    table = device_rows(Random(1), 6_000 if size > 1 else 300, 50, 50)
    exact, _ = run_stream(DIPS, batches_of(table, size))
    rows, report = run_stream(DIPS, batches_of(table, size), budget=acep.Budget(**bound))
    assert rows.equals(exact)
    assert report.exact
    assert report.recall == 1


@pytest.mark.parametrize(
    ("size", "policy", "work"),
    [(1, "history", 3), (30, "history", 5), (30, "random", 1), (3_000, "history", 1), (3_000, "random", 5)],
)
def test_work_is_kept(size: int, policy: str, work: float) -> None:
    table = device_rows(Random(2), 6_000 if size > 1 else 1_000, 100, 30)
    rows, report = run_stream(DIPS, batches_of(table, size), budget=acep.Budget(work=work), policy=policy)
    longest = N_STATES * table.num_rows / 100 * 2  # the touches of a partition, which one push may take
    assert report.work <= 1.05 * work * (table.num_rows + CREDIT + AHEAD) + longest
    assert report.shed > 0
    assert not report.exact
    exact, _ = run_stream(DIPS, batches_of(table, size))
    assert not Counter(texts_of(rows)) - Counter(texts_of(exact))


def test_history_keeps_the_partitions_that_match() -> None:
    table = device_rows(Random(3), 20_000, 100, 10)
    exact, _ = run_stream(DIPS, batches_of(table, 500))
    budget = acep.Budget(work=2)  # exact: some 11
    (learned, _), (chance, _) = (
        run_stream(DIPS, batches_of(table, 500), budget=budget, policy=policy) for policy in ("history", "random")
    )
    assert recall_of(learned, exact) > 2 * recall_of(chance, exact) > 0.2


def test_the_seed_chooses_the_partitions() -> None:
    table = device_rows(Random(4), 4_000, 100, 100)
    results = [
        run_stream(DIPS, batches_of(table, 1_500), budget=acep.Budget(work=3), policy="random", seed=seed)[0]
        for seed in (1, 1, 2)
    ]
    devices = [set(rows["device"].to_pylist()) for rows in results]
    assert results[0].equals(results[1])
    assert devices[0] != devices[2]


@pytest.mark.parametrize("part", range(4))
def test_random_clauses_lose_rows_and_invent_none(
    part: int, cases: CaseCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_choice, "CREDIT", 1)  # the tables have few rows
    monkeypatch.setattr(partition_choice, "AHEAD", 2)
    seen = Counter[str]()
    for rng, text, table in random_streams(part + 50, cases(N_RANDOM // 4)):
        exact = outcome(text, [table])
        if exact is None or "PARTITION BY" not in text.upper():
            continue
        options = {
            "budget": acep.Budget(work=rng.choice([0.5, 2, 5]), estimate=rng.choice([0, 0.1])),
            "policy": rng.choice(["history", "random"]),
        }
        batches = batches_of(table, rng.choice([1, 3, 100]))
        rows, report = run_stream(text, batches, restores=rng.random() < 0.5, **options)
        surplus = Counter(texts_of(rows)) - Counter(texts_of(exact))
        assert not surplus, f"{text}\n{table.to_pylist()}\n{options}\n{surplus}"
        if report.exact:
            complaint = difference(sorted(texts_of(rows)), sorted(texts_of(exact)), ("budget", "exact"))
            assert not complaint, f"{text}\n{table.to_pylist()}\n{options}\n{complaint}"
        seen["exact" if report.exact else "shed"] += 1
    cases.expect(seen, "exact", "shed")


def test_a_stream_goes_on_from_a_snapshot_with_the_same_choice() -> None:
    table = device_rows(Random(5), 6_000, 100, 50)
    options = {"budget": acep.Budget(work=3)}
    whole, report = run_stream(DIPS, batches_of(table, 200), **options)
    restored, report_restored = run_stream(DIPS, batches_of(table, 200), restores=True, **options)
    assert restored.equals(whole)
    assert report_restored.shed == report.shed > 0


@pytest.mark.parametrize(
    "options", [{}, {"budget": acep.Budget(work=4)}, {"budget": acep.Budget(work=3), "policy": "random"},
                {"budget": acep.Budget(work=3), "seed": 1}]
)  # fmt: skip
def test_a_snapshot_of_another_budget_is_refused(options: dict[str, object]) -> None:
    matcher, other = acep.Matcher(DIPS, budget=acep.Budget(work=3)), acep.Matcher(DIPS, **options)
    for goes_on, data in ((matcher, other.snapshot()), (other, matcher.snapshot())):
        with pytest.raises(SnapshotError, match="another budget, policy or seed"):
            goes_on.restore(data)
    with pytest.raises(SnapshotError, match="belongs to another query"):
        matcher.restore(acep.Matcher(DIPS.replace("U+", "U"), budget=acep.Budget(work=3)).snapshot())


def test_intervals_cover_the_recall(cases: CaseCounts) -> None:
    covered, n_runs = 0, cases(600)
    for seed in range(n_runs):
        rng = Random(seed)
        table = device_rows(rng, 6_000, 400, rng.choice([100, 400]))
        exact, _ = run_stream(DIPS, batches_of(table, 1_500))
        options = {"budget": acep.Budget(work=rng.choice([2, 3, 4]), estimate=0.2)}
        rows, report = run_stream(DIPS, batches_of(table, 1_500), policy=rng.choice(["history", "random"]), **options)
        assert report.shed
        low, high = report.interval
        covered += low <= recall_of(rows, exact) <= high
    assert covered >= 0.9 * n_runs - 1


def test_memory_is_kept() -> None:
    clause = """
        PARTITION BY device ORDER BY ts MEASURES count(*) AS n
        PATTERN (A B* C) DEFINE A AS price = 1, C AS price = 99
    """
    table = device_rows(Random(6), 40_000, 60, 60)
    _, report = run_stream(clause, batches_of(table, 1_000), budget=acep.Budget(memory="8 MB"))
    assert report.exact
    matcher = acep.Matcher(clause, budget=acep.Budget(memory="1 MB"))
    for batch in batches_of(table, 1_000):
        matcher.push(batch)
    assert 0.5 * 2**20 < matcher.report.memory <= 2**20
    assert matcher.report.shed > 10_000


def test_a_bound_on_time_that_cannot_be_kept_gives_nothing_up() -> None:
    table = device_rows(Random(7), 6_000, 50, 50)
    exact, _ = run_stream(DIPS, batches_of(table, 1_000))
    with pytest.warns(DataWarning, match=r"latency=1e-06 is not kept.*nothing more is given up") as caught:
        rows, report = run_stream(DIPS, batches_of(table, 1_000), budget=acep.Budget(latency=1e-6))
    assert len(caught) == 1
    assert rows.equals(exact)
    assert report.exact


def test_a_bound_on_time_sheds_where_searching_is_what_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(ClausePace, "read_clock", lambda _: now[0])
    table = device_rows(Random(8), 40_000, 200, 200)
    matcher = acep.Matcher(DIPS, budget=acep.Budget(latency=0.05))
    record = PartitionChoice.record

    def take_time(self: PartitionChoice, cells: object, rows: np.ndarray, matches: object) -> None:  # type: ignore[type-arg]
        now[0] += float(rows.sum()) * 1e-4  # .1 s for a push of 1,000 rows
        record(self, cells, rows, matches)  # type: ignore[arg-type]

    monkeypatch.setattr(PartitionChoice, "record", take_time)
    times = []
    for batch in batches_of(table, 1_000):
        before = now[0]
        matcher.push(batch)
        times.append(now[0] - before)
    assert times[0] > 0.09
    assert max(times[15:]) < 0.05
    assert np.mean(times[15:]) > 0.025
    assert matcher.report.shed > 0


@pytest.mark.parametrize(
    ("clause", "options", "message"),
    [
        (DIPS.replace("PARTITION BY device", ""), {"budget": acep.Budget(work=3)}, "a budget gives up partitions"),
        (DIPS, {"budget": acep.Budget(work=3, errors=1)}, "errors=, weights= and surplus= are of queries"),
        (DIPS, {"budget": acep.Budget(work=3, recover=True)}, "recover= is not for MATCH_RECOGNIZE"),
        (DIPS, {"budget": acep.Budget(latency=3, min_recall=0.5)}, "min_recall= is not for MATCH_RECOGNIZE"),
        (DIPS, {"budget": acep.Budget(work=3), "policy": "newest"}, "policy='newest' is not for MATCH_RECOGNIZE"),
        (DIPS, {"budget": acep.Budget(work=3), "lateness": 5, "speculation": 2}, "gives rows that are final"),
        (DIPS, {"policy": "random"}, "policy= serves a run under a budget"),
        (DIPS, {"seed": 3}, "seed= serves a run under a budget"),
        (DIPS, {"budget": acep.Budget(), "seed": 3}, "seed= serves a run under a budget"),
        (DIPS, {"budget": acep.Budget(), "policy": "random"}, "policy= serves a run under a budget"),
        (DIPS, {"budget": acep.Budget(errors=1)}, "errors=, weights= and surplus= are of queries"),
        (DIPS, {"budget": acep.Budget(work=3), "seed": "x"}, "seed='x' is not an integer"),
        (DIPS, {"budget": 3}, "budget= takes an acep.Budget, not int"),
        (DIPS, {"budget": acep.Budget(cpu=0.1)}, "cpu= is a share of a core"),
    ],
)
def test_budgets_that_a_clause_cannot_keep_to_are_refused(
    clause: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(QueryError, match=message):
        acep.Matcher(clause, **options).push(device_rows(Random(1), 10, 2, 2))


def test_a_report_says_that_all_was_given_up() -> None:
    table = device_rows(Random(10), 3_000, 50, 50)
    _, report = run_stream(DIPS, [table], budget=acep.Budget(work=0.001), seed=-5)
    assert (report.shed, report.work) == (3_000, 0)
    assert "3,000 rows shed\nnot exact: " in str(report)


def test_rows_that_come_late_are_counted_beside_those_given_up() -> None:
    table = device_rows(Random(9), 6_000, 100, 100)
    late = table.slice(3_000, 1)
    batches = [*batches_of(table, 1_500), late]
    _, report = run_stream(DIPS, batches, budget=acep.Budget(work=2, estimate=0.2), lateness=10)
    assert report.late == 1
    assert report.shed > 0
    assert "rows shed\nnot exact: " in str(report)
    assert str(report).endswith("of the matches were found (90 % confidence)")

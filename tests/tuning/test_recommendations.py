"""What tune recommends costs less than the exact run, and what it says of too small a sample helps."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.native.compiled import why_not
from acep.training.match_points import Partitions
from acep.tuning.curve import CurvePoint
from acep.tuning.identities import identities_of
from acep.tuning.replay import Meter, measure_fit, replay
from acep.tuning.saving import Saving
from acep.tuning.windows import WindowTrial
from tests.case_counts import CaseCounts
from tests.complaints import fail_if_wrong
from tests.random_cases import Case, random_case

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

COLUMNS = {"ts": "ts", "type": "type", "seq": None, "id": None, "unit": None}
HEAVY = (
    "PATTERN SEQ(a p, b q, a r, b s) WHERE skip_till_any_match(p, q, r, s) "
    "{{ {key}q.x > p.x AND r.x < q.x AND s.x > 0.95 + r.x }} WITHIN {window}"
)
STRICT = "PATTERN SEQ(a p, b+ q[], a r) WHERE strict_contiguity(p, q[], r) { q[i].x > p.x } WITHIN 50"


def stream(seed: int, events: int, keys: int = 40) -> pa.Table:
    rng = random.Random(seed)
    return pa.table(
        {
            "ts": list(range(events)),
            "key": rng.choices(range(keys), k=events),
            "type": rng.choices("ab", k=events),
            "x": [rng.random() for _ in range(events)],
        }
    )


# The sample -------------------------------------------------------------------------------------


def test_a_heavy_stream_is_not_cut_to_nothing() -> None:
    """Its first 1,024 events take more touches than the exact replay may."""
    query = HEAVY.format(key="", window=3000)
    touches = acep.match(stream(1, 1024), query, output="bundles").report.work
    tuning = acep.tune(stream(1, 6000), query, effort=touches // 2)
    assert tuning.cut[0].startswith("the sample: all 6,000 events")
    assert 100 < tuning.sample.events < 1024
    assert tuning.exact.exact
    assert tuning.exact.touches <= touches // 2 // 8
    (said,) = [line for line in tuning.unsaid if line.startswith("a resource budget")]
    assert "take a larger sample" not in str(tuning)
    assert "it was cut for want of work: give more, as effort=" in said


def test_shorter_windows_of_a_heavy_stream_are_tried_on_events_that_are_named() -> None:
    """The query itself can be replayed on so few events that nothing can be said of recall."""
    table, query = stream(1, 6000), HEAVY.format(key="", window=3000)
    tuning = acep.tune(table, query, effort=2_000_000)
    text = str(tuning)
    assert f"sample: {tuning.sample.events} of 6,000 events: the whole stream, cut to the first" in text
    assert tuning.windows == ()
    assert [cost.window for cost in tuning.window_costs[:2]] == ["1500", "750"]
    assert tuning.sample.events < tuning.window_costs[-1].events
    for cost in tuning.window_costs:
        short = query.replace("WITHIN 3000", f"WITHIN {cost.window}")
        exact = acep.match(table.slice(0, cost.events), short, output="count")
        assert exact == cost.matches
        assert [cost.window, f"{cost.events:,}"] in [line.split()[:2] for line in text.splitlines()]
        assert cost.work * cost.events <= 2_000_000 / 40


@pytest.mark.parametrize("effort", [100, 40_000, 200_000, 2_000_000])
def test_each_shorter_window_is_tried_or_named_as_cut(effort: int) -> None:
    tuning = acep.tune(stream(1, 6000), HEAVY.format(key="", window=3000), effort=effort)
    names = {trial.window for trial in (*tuning.windows, *tuning.window_costs)}
    names |= {line.split(":")[0].removeprefix("WITHIN ") for line in tuning.cut if line.startswith("WITHIN ")}
    of_recall, of_cost = {"2250", "1500", "750", "375"}, {"1500", "750", "375", "187", "93"}
    whole = [cost for cost in tuning.window_costs if cost.events == 6000]
    assert names >= (
        of_recall if tuning.windows else {str(w) for w in of_cost if not whole or int(w) >= int(whole[0].window)}
    )


@pytest.mark.long
def test_the_effort_that_is_asked_for_suffices() -> None:
    table, query = stream(1, 12_000), HEAVY.format(key="", window=100)
    small = acep.tune(table, query, effort=400_000)
    assert small.curve == ()
    effort = int(re.search(r"effort=(\d+)", small.unsaid[0])[1])  # type: ignore[index]
    assert 400_000 < effort < 40_000_000
    more = acep.tune(table, query, effort=effort)
    assert more.sample.events > small.sample.events
    assert len(more.curve) > 3


@pytest.mark.long
def test_the_larger_sample_that_is_asked_for_suffices() -> None:
    table, query = stream(2, 12_000), HEAVY.format(key="", window=20)
    small = acep.tune(table, query, sample=300)
    (said,) = [line for line in small.unsaid if line.startswith("a resource budget")]
    size = int(re.search(r"take a larger sample, as sample=(\d+)", said)[1])  # type: ignore[index]
    assert acep.tune(table, query, sample=size).curve


def test_of_the_whole_stream_no_larger_sample_is_asked_for() -> None:
    (said,) = [line for line in acep.tune(stream(0, 60), HEAVY.format(key="", window=20)).unsaid if "recall" in line]
    assert said.endswith("it is the whole stream: give a longer one")


@pytest.mark.long
def test_fewer_whole_partitions_are_taken_of_a_heavy_stream() -> None:
    table, query = stream(3, 12_000), HEAVY.format(key="[key] AND ", window=6000)
    tuning = acep.tune(table, query, effort=6_000_000)
    part, whole = (Counter(rows["key"].to_pylist()) for rows in (tuning.sample.table, table))
    assert tuning.cut
    assert 1 < tuning.sample.partitions == len(part) < 40
    assert all(part[key] == whole[key] for key in part)
    assert f"{tuning.sample.partitions} of 40 partitions, whole" in tuning.sample.how


@pytest.mark.long
def test_a_stream_in_which_all_matches_are_one_bundle_has_draws_enough() -> None:
    """A bundle goes on as long as matches end within a window of each other: here to the end of the stream."""
    query = "PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { q.x > p.x } WITHIN 40"
    tuning = acep.tune(stream(4, 2000), query)
    matches = acep.match(tuning.sample.table, query)
    (bundle,) = matches.bundles()
    assert tuning.exact.bundles == 1
    assert tuning.exact.draws == len({(match.end - bundle.start) // 40 for match in matches}) > 10
    assert tuning.curve


def test_any_number_of_matches_is_no_reason_to_cut() -> None:
    rows = {"ts": list(range(3000)), "type": ["a"] + ["b"] * 2999}
    tuning = acep.tune(rows, "PATTERN SEQ(a p, b+ q[]) WHERE skip_till_any_match(p, q[]) WITHIN 5000", effort=1_000_000)
    assert tuning.sample.events == 3000
    assert tuning.exact.matches == 2**2999 - 1
    assert "exact: about 10^902 matches" in str(tuning)
    assert json.loads(json.dumps(tuning.to_dict()))["exact"]["matches"] == "about 10^902"


@pytest.mark.parametrize("text", ["PATTERN SEQ(a p, b+ q[])", "PATTERN SEQ(a p, b+ q[]) WHERE q[i].x >= q[i-1].x"])
def test_events_of_one_time_are_cut_too(text: str) -> None:
    rows = {"ts": [1] * 500, "type": ["a"] + ["b"] * 499, "x": [1] * 500}
    tuning = acep.tune(rows, f"{text} WITHIN 5", effort=1_000_000)
    assert str(tuning)
    assert tuning.exact.touches <= 1_000_000


def test_what_fits_is_what_the_touches_permit() -> None:
    table, query = stream(5, 3000), acep.parse(HEAVY.format(key="", window=200))
    upto = [replay(table.slice(0, n), query, COLUMNS, Partitions(), Meter(10**12)).touches for n in (500, 1000, 3000)]
    for most in upto:
        fit = measure_fit(table, query, COLUMNS, Meter(10**12), most)
        exact = replay(table.slice(0, fit.events), query, COLUMNS, Partitions(), Meter(10**12))
        assert exact.touches <= most
        assert exact.touches >= 0.6 * most
    assert measure_fit(table, query, COLUMNS, Meter(10**12), 10**9).matches == len(acep.match(table, query))


# Recommendations --------------------------------------------------------------------------------


@pytest.mark.long
def test_a_budget_that_costs_as_much_as_the_exact_run_is_not_recommended() -> None:
    """Decisions are work, too: the least budget that finds enough suffices for the exact run."""
    tuning = acep.tune(stream(1, 20_000), STRICT)
    assert tuning.least is not None
    assert tuning.least.budget > tuning.exact.work
    assert tuning.budget is None
    assert tuning.recommended is None
    assert "recommended" not in str(tuning)
    assert "no budget: the exact run takes" in str(tuning)
    assert tuning.policies == ()
    assert tuning.to_dict()["recommended"] is None


def test_a_budget_that_takes_longer_than_the_exact_run_is_not_recommended() -> None:
    tuning = acep.tune(stream(6, 1500), HEAVY.format(key="", window=60), effort=8_000_000, target_recall=0.3)
    assert tuning.least is not None
    assert tuning.least.work < tuning.exact.work
    slow, fast = (replace(tuning, saving=Saving(1.0, seconds), window=None) for seconds in (1.2, 0.5))
    assert (slow.budget, slow.recommended) == (None, None)
    assert f"no budget: work={slow.least.budget:g} took 1.20 of the time of the exact run" in str(slow)
    assert fast.budget == fast.recommended == tuning.least
    assert f"\nwork={fast.least.budget:g}: it takes" in str(fast)
    assert fast.to_dict()["recommended"] == {"work": tuning.least.budget}


@pytest.mark.long
def test_time_is_measured_by_turns() -> None:
    tuning = acep.tune(stream(6, 1500), HEAVY.format(key="", window=60), effort=8_000_000, target_recall=0.3)
    assert tuning.saving is not None
    assert 0 < tuning.saving.budget < 60
    assert 0 < tuning.saving.exact <= tuning.exact.seconds


def test_a_cpu_share_that_pays_for_the_exact_run_says_so() -> None:
    tuning = acep.tune(stream(6, 1500), HEAVY.format(key="", window=60), effort=8_000_000, cpu=[0.9], unit="s")
    assert "cpu=0.9 pays for about" in str(tuning)
    assert "enough for the exact result, which takes" in str(tuning)


# Shorter windows --------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("window", ["80", "80 EVENTS"])
def test_each_shorter_window_is_what_match_finds(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acep.native.session.STRATEGIES", (0, 1))  # as under a budget
    query = HEAVY.format(key="", window=window)
    tuning = acep.tune(stream(7, 1500), query, target_recall=0.5, effort=8_000_000)
    table = tuning.sample.table
    exact = {match.end for match in acep.match(table, query)}
    assert [trial.window for trial in tuning.windows] == [window.replace("80", n) for n in ("60", "40", "20", "10")]
    for trial in tuning.windows:
        short = acep.match(table, HEAVY.format(key="", window=trial.window))
        assert trial.work == short.report.work / len(table) < tuning.exact.work
        assert trial.recall == len({match.end for match in short} & exact) / len(exact)
    good = [trial for trial in tuning.windows if trial.recall >= 0.5]
    assert tuning.window == min(good, key=lambda trial: trial.work)
    assert f"\nWITHIN {tuning.window.window}: it takes" in str(replace(tuning, curve=(), least=None, saving=None))


@pytest.mark.long
def test_the_cheaper_of_a_window_and_a_budget_is_recommended() -> None:
    tuning = acep.tune(stream(7, 1500), HEAVY.format(key="", window=80), target_recall=0.5, effort=8_000_000)
    exact = tuning.exact.work
    budget = CurvePoint(exact / 2, exact / 2, 0.6, 0.6, exact=False, low=0.5, high=0.7)
    for part, within in ((0.4, True), (0.6, False)):
        trial = WindowTrial("5", part * exact, 0.9, 0.9, 0.8, 1.0)
        both = replace(tuning, least=budget, window=trial, saving=Saving(1.0, 0.5))
        assert both.recommended == (trial if within else budget)
        assert both.to_dict()["recommended"] == ({"within": "5"} if within else {"work": exact / 2})
    dear = replace(tuning, least=None, window=WindowTrial("70", 0.99 * exact, 1.0, 1.0, 0.9, 1.0))
    assert dear.recommended is None


def test_queries_without_a_window_have_no_shorter_one() -> None:
    assert acep.tune(stream(0, 500), "PATTERN SEQ(a p, b q) WHERE skip_till_next_match { [key] }").windows == ()


# Changes ----------------------------------------------------------------------------------------


def bindings(matches: Any) -> set[str]:
    return {str(sorted(match.bindings.items())) for match in matches}


def test_matches_that_a_change_keeps_are_told_from_others() -> None:
    """Where matches are chosen, the changed query gives some that the query does not."""
    table = stream(0, 1500)
    query = "PATTERN SEQ(a p, b q, a r) WHERE skip_till_any_match(p, q, r) { q.x > p.x AND r.x > q.x } WITHIN 12 OUTPUT"
    tuning = acep.tune(table, f"{query} NON OVERLAP")
    exact = bindings(acep.match(table, f"{query} NON OVERLAP"))
    (change,) = [one for one in tuning.changes if one.change == "skip_till_next_match"]
    after = bindings(acep.match(table, f"{query.replace('any_match', 'next_match')} NON OVERLAP"))
    assert (change.after.matches, change.kept) == (len(after), len(after & exact))
    assert 0 < len(after & exact) < len(after)
    assert f"{len(after & exact):,} of {len(exact):,} matches, and {len(after - exact):,} other ones" in str(tuning)
    assert not change.keeps_matches(tuning.exact)


def test_what_is_said_of_random_queries_is_true(cases: CaseCounts) -> None:
    seen = Counter[str]()

    def complaint_of(case: Case) -> str:
        table, query = case.table(), case.query()
        tuning = acep.tune(table, query, effort=2_000_000, **case.stream)
        for kept, before in re.findall(r"([\d,]+) of ([\d,]+) matches", str(tuning)):
            if int(kept.replace(",", "")) > int(before.replace(",", "")):
                return f"{kept} of {before} matches"
        best = tuning.recommended
        seen["recommended"] += best is not None
        if best is not None and (best.work >= tuning.exact.work or tuning.recall(best) < tuning.target):
            return f"{best} is recommended, and the exact run takes {tuning.exact.work}"
        for change in tuning.changes:
            seen["kept"] += change.kept is not None
            seen["others"] += change.kept is not None and change.kept < change.after.matches
            if change.kept is not None and change.kept > min(change.after.matches, tuning.exact.matches):
                return f"{change} keeps more than there are"
        return ""

    for seed in range(cases(60)):
        fail_if_wrong(random_case(seed), complaint_of)
    cases.expect(seen, "kept", least=4)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_identities_tell_matches_apart(engine: str, cases: CaseCounts) -> None:
    for seed in range(cases(60)):
        case = random_case(seed)
        query = case.query()
        if query.sources or query.graph is not None or "id" in case.stream:
            continue
        columns = COLUMNS | case.stream
        try:
            matches = acep.match(case.table(), query, engine=engine, **case.stream)
        except acep.EngineError:
            continue
        own = identities_of(case.table(), query, columns, engine)
        assert len(own.hashes) == len(bindings(matches))
        assert own.count_shared(identities_of(case.table(), query, columns, "auto")) == len(own.hashes)

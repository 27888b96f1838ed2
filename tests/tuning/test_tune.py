"""The figures of tune are those of acep.match with the same budget, and samples are whole partitions."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.cli import main
from acep.errors import QueryError
from acep.events.tables import schema_of
from acep.native.session import NEVER
from acep.plan.compile import compile_query
from acep.shedding.limits import CREDIT
from acep.training.match_points import Partitions
from acep.tuning.cheaper import Change, _candidates
from acep.tuning.curve import CurvePoint, knee_of
from acep.tuning.many import why_many
from acep.tuning.replay import Meter, bundles_in, measure_fit, replay
from acep.tuning.sample import draw
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong
from tests.random_cases import Case, random_case
from tests.thinned import thinned_product

TIED = "WHERE skip_till_any_match(p, q, r) { q.x > p.x AND r.x > q.x AND r.x > 60 + p.x }"


def stream(seed: int, events: int = 4000, keys: int = 40) -> pa.Table:
    rng = random.Random(seed)
    return pa.table(
        {
            "ts": list(range(events)),
            "type": rng.choices("abcd", k=events),
            "k": rng.choices(range(keys), k=events),
            "x": [rng.randrange(100) for _ in range(events)],
        }
    )


def query(seed: int) -> str:
    if seed % 2:
        return f"PATTERN SEQ(a p, b q, c r) {TIED.replace('{ ', '{ [k] AND ')} WITHIN 600"
    return f"PATTERN SEQ(a p, b q, c r) {TIED.replace('60', '75')} WITHIN 20"


@pytest.fixture(autouse=True)
def _ignored_future(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no run use what a batch tells of later events, as a tuning does not."""
    monkeypatch.setattr("acep.native.session.STRATEGIES", (0, NEVER))


@pytest.fixture(scope="module")
def tuned() -> dict[int, acep.Tuning]:
    """A tuning with and without partitions."""
    return {seed: acep.tune(stream(seed), query(seed), sample=2500, target_recall=0.6) for seed in (0, 1)}


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1])
def test_each_point_of_the_curve_is_what_match_finds(seed: int, tuned: dict[int, acep.Tuning]) -> None:
    found = tuned[seed]
    table = found.sample.table
    exact = {(tuple(one.key.values()), one.point) for one in acep.match(table, query(seed), output="matches").points()}
    assert len(exact) == found.exact.points > 30
    partial = 0
    for point in found.curve:
        made = acep.match(table, query(seed), budget=acep.Budget(work=point.budget))
        points = {(tuple(one.key.values()), one.point) for one in made.points()}
        assert point.recall == len(points & exact) / len(exact)
        assert point.work == made.report.work / len(table) <= point.budget * (1 + CREDIT / len(table))
        assert point.exact == made.exact
        partial += not made.exact
    assert partial >= 3


@pytest.mark.parametrize(("of", "seed"), thinned_product(["points", "bundles"], [0, 1], every=3))
def test_the_recommended_budget_reaches_the_target(of: str, seed: int) -> None:
    found = acep.tune(stream(seed), query(seed), sample=2000, target_recall=0.7, of=of)
    assert found.least is not None
    table = found.sample.table
    exact, made = (acep.match(table, query(seed), budget=b) for b in (None, acep.Budget(work=found.least.budget)))
    if of == "points":
        share = len(made.points()) / len(exact.points())
    else:
        whole = [(b.key, b.start, b.end) for b in exact.bundles()]
        hit = {
            (str(key), start)
            for key, start, end in whole
            for p in made.points()
            if p.key == key and start <= p.point <= end
        }
        share = len(hit) / len(whole)
    assert share == pytest.approx(found.recall(found.least))
    assert share >= 0.7
    below = [point for point in found.curve if point.budget < found.least.budget]
    assert not below or found.recall(below[-1]) < 0.7
    assert found.least.low <= share <= found.least.high


def test_error_steps_are_exact_runs(tuned: dict[int, acep.Tuning], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acep.native.session.STRATEGIES", (0, 1))  # as under a budget
    found = tuned[1]
    assert [step.errors for step in found.errors] == [0, 1, 2]
    for step in found.errors:
        made = acep.match(found.sample.table, query(1), budget=acep.Budget(errors=step.errors))
        assert (step.replay.matches, step.replay.bundles) == (len(made), len(made.bundles()))
        assert step.replay.keys == len({one.key["k"] for one in made})
        assert step.replay.touches == made.report.work
    assert [step.single for step in found.errors] == [False, False, True]


def test_policies_are_trained_on_one_half_and_tested_on_the_other(tuned: dict[int, acep.Tuning]) -> None:
    found = tuned[0]
    table = found.sample.table
    half = len(table) // 2
    first, second = table.slice(0, half), table.slice(half)
    exact = {one.point for one in acep.match(second, query(0)).points()}
    names = [(one.name, one.trained) for one in found.policies]
    assert {("history", True), ("history", False), ("newest", False), ("state", True)} <= set(names)
    assert all(name != "trained-on-test" for name, _ in names)
    for trial in found.policies[:4]:
        history = acep.learn(first, query(0), policy=trial.name) if trial.trained else None
        made = acep.match(second, query(0), budget=acep.Budget(work=trial.work), policy=trial.name, history=history)
        assert trial.recall == len({one.point for one in made.points()} & exact) / len(exact)
    assert found.policy in found.policies


def test_whole_partitions_are_drawn_by_hash(cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(cases(30)):
        table = stream(seed, 300, keys=1 + seed % 9)
        plan = compile_query(acep.parse(query(1)), schema_of(table.schema))
        sample = draw(table, plan, 100)
        whole, part = table["k"].to_pylist(), sample.table["k"].to_pylist()
        if sample.partitions:
            seen["whole partitions"] += 1
            assert all(part.count(key) == whole.count(key) for key in set(part))
            assert len(set(part)) == sample.partitions
            assert sample.events <= 150
            # The order of the rows, and what else is there, do not change which partitions are drawn.
            other = table.take(pa.array(random.Random(seed).sample(range(300), 300)))
            assert draw(other, plan, 100).table.equals(sample.table)
        else:
            assert sample.table.equals(table.slice(0, 100))
        assert sample.table["ts"].to_pylist() == sorted(sample.table["ts"].to_pylist())
    cases.expect(seen, "whole partitions", least=10)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("PATTERN SEQ(a p, b q) WITHIN 5", "no partition attributes"),
        ("PATTERN SEQ(a p, b q) WHERE strict_contiguity { [k] } WITHIN 5", "positions count the whole stream"),
    ],
)
def test_a_prefix_says_why(text: str, said: str) -> None:
    table = stream(0, 200)
    sample = draw(table, compile_query(acep.parse(text), schema_of(table.schema)), 50)
    assert said in sample.how
    assert sample.table.equals(table.slice(0, 50))


def test_a_sample_that_is_too_small_says_so() -> None:
    found = acep.tune(stream(0, 60), query(0))
    assert found.curve == ()
    assert found.policies == ()
    assert found.exact.bundles < 10
    assert "too small to say anything of recall" in str(found)
    assert "the whole stream" in str(found)


def test_no_events_and_no_matches() -> None:
    empty = acep.tune(stream(0, 0), query(0))
    assert (empty.exact.events, empty.curve) == (0, ())
    none = acep.tune(stream(0, 200), "PATTERN SEQ(a p, b q) WHERE p.x > 1000 WITHIN 5")
    assert none.exact.matches == 0
    assert "no error budget" in str(none) or "is the least that finds a match" in str(none)


def test_a_query_that_explodes_is_cut() -> None:
    """2^n matches: the sample is cut to what can be replayed, and the text says so."""
    rows = {"ts": list(range(3000)), "type": ["a"] + ["b"] * 2999, "x": [1] * 3000}
    text = "PATTERN SEQ(a p, b+ q[]) WHERE skip_till_any_match(p, q[]) { q[i].ts > q[i-1].ts } WITHIN 500"
    found = acep.tune(rows, text, effort=1_000_000)
    assert found.cut
    assert found.cut[0].startswith("the sample: all 3,000 events")
    assert 10 < found.sample.events < 40
    assert found.exact.exact
    assert "# cut" in str(found)


def test_the_work_of_all_replays_is_bounded(tuned: dict[int, acep.Tuning]) -> None:
    table, columns = stream(0), {"ts": "ts", "type": "type", "seq": None, "id": None, "unit": None}
    meter = Meter(10**9)
    assert measure_fit(table, acep.parse(query(0)), columns, meter, 10**8).events == len(table)
    made = replay(table, acep.parse(query(0)), columns, Partitions(), meter)
    assert made.touches < meter.spent <= 3 * made.touches
    assert bundles_in(made.at) == made.bundles
    assert not tuned[0].cut
    short = Meter(made.touches)
    assert short.affords(made.touches, "one")
    assert not short.affords(made.touches + 1, "another")
    assert short.cut == [
        f"another: not measured, for want of work ({made.touches + 1:,} touches, of {made.touches:,} that are left)"
    ]


@pytest.mark.long
def test_a_shared_attribute_and_a_shorter_window_are_proposed_and_measured() -> None:
    rng = random.Random(3)
    rows: dict[str, list[Any]] = {"ts": [], "type": [], "who": [], "x": []}
    for n in range(600):
        who, number = f"u{n % 50}", rng.randrange(10**6)
        for at, kind in ((0, "a"), (2, "b")):
            rows["ts"].append(10 * n + at)
            rows["type"].append(kind)
            rows["who"].append(who)
            rows["x"].append(number)
    text = "PATTERN SEQ(a p, b q) WHERE q.x = p.x WITHIN 500"
    del rows["x"]
    rows["x"] = [value for n in range(600) for value in [n] * 2]
    text = "PATTERN SEQ(a p, b q) WHERE q.x <= p.x AND q.x >= p.x WITHIN 500"
    found = acep.tune(rows, text)
    by_name = {one.change: one for one in found.changes}
    assert {"WITHIN 2", "[who]"} <= set(by_name)
    for change, other in (
        ("WITHIN 2", text.replace("WITHIN 500", "WITHIN 2")),
        ("[who]", text.replace("WHERE", "WHERE [who] AND")),
    ):
        made = acep.match(found.sample.table, other)
        one = by_name[change]
        assert (one.after.matches, one.after.touches) == (len(made), made.report.work)
        assert one.keeps_matches(found.exact)
        assert one.after.touches < found.exact.touches
    assert sum(found.by_variable.values()) > 0


def teams() -> dict[str, list[Any]]:
    """Return passes and shots of two teams, of which each match of one team has events of the other one before it."""
    rng = random.Random(2)
    rows: dict[str, list[Any]] = {"ts": [], "type": [], "team": []}
    for _ in range(300):
        for team in rng.choice(("aaa", "bbb", "abaa", "babb", "abba")):
            rows["ts"].append(len(rows["ts"]))
            rows["type"].append(rng.choice(("pass", "shot")))
            rows["team"].append(team)
    return rows


@pytest.mark.parametrize(
    ("where", "output", "now", "then"),
    [
        (
            "partition_contiguity { p.team = s.team }",
            "",
            "an event of another `team` between two others breaks contiguity",
            "ignores events of another `team` in between",
        ),
        (
            "p.team <= s.team AND p.team >= s.team",
            "NON OVERLAP",
            "of matches that overlap one is given, whatever their `team`",
            "gives matches of each `team` by themselves",
        ),
        (
            "p.team <= s.team AND p.team >= s.team",
            "ALL",
            "the events of a match may differ in `team`",
            "asks for one `team` in each match",
        ),
    ],
)
def test_a_proposed_partition_names_both_meanings_with_both_counts(
    where: str, output: str, now: str, then: str
) -> None:
    text = f"PATTERN SEQ(pass p, shot s) WHERE {where} WITHIN 40" + (f" OUTPUT {output}" if output else "")
    parted = text.replace("p.team", "[team] AND p.team", 1)
    before, after = (len(acep.match(teams(), query)) for query in (text, parted))
    many = why_many(teams(), text)
    fewer = {one.change: one.matches for one in many.fewer}
    label = f"[team], which {then}"
    assert (label in fewer) == (after < before)
    assert fewer.get(label, after) == after
    (change,) = [one for one in _candidates_of(text) if one[0] == "[team]"]
    assert change[1].startswith(f"now {now}; it would be {label} (100.0% of the matches")
    tuning = acep.tune(teams(), text)
    for tried in tuning.changes:
        if tried.change.startswith("[team]"):
            assert tried.keeps_matches(tuning.exact) == (before == after == tried.kept)
    for line in str(tuning).splitlines():
        if line.startswith("[team]"):
            assert f"{before:,}" in line or line.endswith("the same matches")


def test_a_change_that_finds_more_matches_does_not_find_the_same() -> None:
    tuning = acep.tune(teams(), "PATTERN SEQ(pass p, shot s) WHERE partition_contiguity { p.team = s.team } WITHIN 40")
    unchanged = Change("", "", tuning.exact, tuning.exact.matches)
    assert unchanged.keeps_matches(tuning.exact)
    more = replace(tuning.exact, matches=tuning.exact.matches + 1)
    assert not Change("", "", more, tuning.exact.matches).keeps_matches(tuning.exact)
    assert not Change("", "", tuning.exact, tuning.exact.matches - 1).keeps_matches(tuning.exact)
    assert not Change("", "", tuning.exact, None).keeps_matches(tuning.exact)


def _candidates_of(text: str) -> list[tuple[str, str, Any]]:
    """Return the changes that are tried, with why."""
    table = pa.table(teams())
    columns = {"ts": "ts", "type": "type", "seq": None, "id": None, "unit": None}
    plan = compile_query(acep.parse(text), schema_of(table.schema))
    exact = replay(table, plan.query, columns, Partitions(), Meter(10**9))
    return list(_candidates(table, plan, columns, exact, None))


def test_an_attribute_that_is_null_in_matches_is_not_proposed_as_shared() -> None:
    """Null equals nothing: of the matches without a value, a partition attribute would leave none."""
    pairs = range(300)
    rows = {
        "ts": [10 * n + at for n in pairs for at in (0, 2)],
        "type": ["a", "b"] * len(pairs),
        "number": [n for n in pairs for _ in range(2)],
        "who": [None if n % 3 else f"u{n % 2}" for n in pairs for _ in range(2)],
    }
    text = "PATTERN SEQ(a p, b q) WHERE q.number <= p.number AND q.number >= p.number WITHIN 100"
    matches, tied = acep.match(rows, text), acep.match(rows, text.replace("WHERE", "WHERE [who] AND"))
    assert (len(matches), len(tied)) == (300, 100)
    proposed = {change.change for change in acep.tune(rows, text).changes}
    assert "[number]" in proposed
    assert "[who]" not in proposed
    assert "[who]" not in {fewer.change for fewer in why_many(rows, text).fewer}


@pytest.mark.parametrize(
    "options",
    [{"sample": 0}, {"sample": 1.5}, {"sample": True}, {"target_recall": 0}, {"of": "matches"}, {"cpu": "0.5"},
     {"cpu": [-1]}, {"effort": 0}, {"policy": "none"}, {"seed": 0.5}],
)  # fmt: skip
def test_wrong_arguments_are_explained(options: dict[str, Any]) -> None:
    with pytest.raises(QueryError):
        acep.tune(stream(0, 20), query(0), **options)


@pytest.mark.long
def test_the_reference_runtime_says_what_it_cannot() -> None:
    found = acep.tune(stream(0, 500), query(0), engine="reference")
    assert found.curve == ()
    assert "only the native core" in str(found)
    other = acep.tune(found.sample.table, query(0))
    assert other.exact.matches == found.exact.matches > 0


def test_queries_over_matches_are_replayed_too() -> None:
    text = "FROM (PATTERN SEQ(a p, b q) WITHIN 3) AS T PATTERN SEQ(T t, T u) WITHIN 9"
    found = acep.tune(stream(0, 500), text)
    assert found.exact.matches == len(acep.match(found.sample.table, text)) > 0
    assert "the query is over the matches of others" in str(found) or found.sample.how == "the whole stream"


@pytest.mark.long
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow.parquet as pq

    pq.write_table(stream(0), tmp_path / "events.parquet")
    args = ["tune", query(0), str(tmp_path / "events.parquet"), "--sample", "0.9", "--unit", "s", "--cpu", "0.5"]
    assert main([*args, "--json", str(tmp_path / "tuned.json")]) == 0
    printed = capsys.readouterr().out
    assert "sample: 3,600 of 4,000 events: the first events" in printed
    assert "--work" in printed
    assert "--cpu 0.5 pays for" in printed
    told = json.loads((tmp_path / "tuned.json").read_text())
    found = acep.tune(stream(0), query(0), sample=0.9, unit="s")
    assert told["least"] == found.least.budget
    assert [one["recall"] for one in told["curve"]] == found.to_pandas()["recall"].tolist()
    assert main(["tune", query(0), str(tmp_path / "events.parquet"), "--sample", "1.5"]) == 2
    assert "no size of a sample" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.whole
def test_a_query_that_chooses_among_many_matches_is_cut_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acep.tuning.exact.CHOOSING", 0.01)  # seconds, far fewer than it takes to choose in all of them
    rng = random.Random(1)
    rows = {"ts": list(range(16_000)), "type": rng.choices("ab", k=16_000)}
    found = acep.tune(rows, "PATTERN SEQ(a p, b q) WITHIN 50 OUTPUT NON OVERLAP")
    assert 0 < found.sample.events < 16_000
    assert found.cut[0].startswith("the sample: all 16,000 events")
    assert found.exact.matches == len(
        acep.match(found.sample.table, "PATTERN SEQ(a p, b q) WITHIN 50 OUTPUT NON OVERLAP")
    )


def test_the_exact_replay_is_that_of_match_on_random_queries(cases: CaseCounts) -> None:
    seen = Counter[str]()

    def complaint_of(case: Case) -> str:
        table, query = case.table(), case.query()
        tuning = acep.tune(table, query, effort=2_000_000, **case.stream)
        assert str(tuning)
        if tuning.sample.events < len(table):
            assert tuning.cut
            return ""
        matches, exact = acep.match(table, query, **case.stream), tuning.exact
        seen["all events are measure_fit"] += 1
        seen["matches"] += exact.matches > 0
        seen["a change saves work"] += any(change.after.touches < exact.touches for change in tuning.changes)
        return difference(
            {"matches": exact.matches, "work": exact.touches, "points": exact.points, "bundles": exact.bundles},
            {
                "matches": len(matches),
                "work": matches.report.work,
                "points": len(matches.points()),
                "bundles": len(matches.bundles()),
            },
            ("replay", "match"),
        )

    for seed in range(cases(40)):
        fail_if_wrong(random_case(seed), complaint_of)
    cases.expect(seen, "all events are measure_fit", least=15)
    cases.expect(seen, "matches", least=10)
    cases.expect(seen, "a change saves work")


def test_a_notebook_shows_recommendations_and_no_sample() -> None:
    """The sample has thousands of rows, which a representation of all fields would list."""
    events = stream(1, 400)
    query = acep.parse(f"PATTERN SEQ(a p, b q, c r) {TIED} WITHIN 100")
    tuned = acep.tune(events, query, effort=100_000)
    lint = acep.lint(events, query)
    many = why_many(events, query)
    for shown in (tuned, lint, many):
        assert repr(shown) == str(shown)
        assert "pyarrow" not in repr(shown)
        assert shown._repr_html_().startswith("<pre ")
    assert len(tuned._repr_html_()) < 25_000


def test_fewer_bundles_with_more_errors_are_explained() -> None:
    events = pa.table({"ts": [1, 2, 5, 8, 11, 12], "type": list("abaaab")})
    found = acep.tune(events, acep.regex("ab", within=3))
    assert [step.replay.bundles for step in found.errors] == [2, 1]
    assert "1 (-1)" in str(found)
    assert "joins them into one" in str(found)
    apart = pa.table({"ts": [1, 2, 11, 12], "type": list("abab")})
    assert "joins them into one" not in str(acep.tune(apart, acep.regex("ab", within=3)))


@pytest.mark.long
def test_a_knee_is_a_bend_of_the_curve_or_there_is_none(tuned: dict[int, acep.Tuning]) -> None:
    rising = acep.tune(
        stream(5, 1500, 8),
        "PATTERN SEQ(a p, b q, c r) WHERE [k] AND q.x > p.x AND r.x > q.x WITHIN 60",
        target_recall=0.8,
    )
    assert len(rising.curve) > 3
    assert rising.knee is None  # it rises faster the more work there is
    for tuning in (rising, *tuned.values()):
        hold_knee(tuning.curve, tuning.knee)
    rng = random.Random(1)
    knees = 0
    for _ in range(300):
        recalls = sorted(rng.random() for _ in range(6))
        curve = [CurvePoint(n + 1, 1, recall, recall, False, recall, recall) for n, recall in enumerate(recalls)]
        knee = knee_of(curve, "points")
        hold_knee(curve, knee)
        knees += knee is not None
    assert 0 < knees < 300
    chance = [CurvePoint(n, 1, recall, 0, False, 0, 1) for n, recall in ((1, 0.3), (2, 0.5), (4, 0.9))]
    assert knee_of(chance, "points") is None


def hold_knee(curve: Sequence[CurvePoint], knee: CurvePoint | None) -> None:
    """Fail unless a unit of work finds less beyond a knee than up to it, to each later point that is no exact one after
    another."""
    if knee is None:
        return
    before = knee.recall / knee.budget
    assert before > 0
    for point in curve:
        if point.budget > knee.budget:
            assert (point.recall - knee.recall) / (point.budget - knee.budget) < before


def test_tune_does_not_say_to_run_tune() -> None:
    tuning = acep.tune(stream(0, 600), "PATTERN SEQ(a p, b q) WHERE q.x > p.x WITHIN 20")
    assert any(finding.startswith("no attribute ties") for finding in tuning.findings)
    assert "acep tune" not in str(tuning)

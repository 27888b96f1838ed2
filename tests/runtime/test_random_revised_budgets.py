"""Events that come late or are taken back under a budget, on random queries, streams and budgets.

After each push the output less what was taken back is part of the exact result over the sorted, corrected events so
far, by the reference engine. With a budget that suffices it is all of it.
"""

from __future__ import annotations

import warnings
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import EngineError, QueryError
from acep.revision.revision_memory import RevisionMemory
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_different, fail_if_wrong
from tests.random_cases import COLUMNS, Case
from tests.runtime.test_revisions import SPECULATIONS, Arriving, Net, arriving, by_id, net, table
from tests.test_random import drawn

BOUNDED = (
    "SEQ(A p, B q) WHERE skip_till_any_match(p, q) { [k] AND q.x >= p.x } WITHIN 6",
    "SEQ(A p, B q) WHERE skip_till_any_match(p, q) { [k] } WITHIN 12",
    "SEQ(A p, B+ q[], C r) WHERE skip_till_next_match(p, q[], r) { [k] } WITHIN 9",
    "SEQ(A p, B q) WHERE skip_till_next_match(p, q) { q.x > p.x }",
    "SEQ(A p, B q) WHERE partition_contiguity(p, q) { [k] AND q.x >= p.x } WITHIN 5 EVENTS",
    "SEQ(A p, B q, C r) WHERE strict_contiguity(p, q, r) { q.x >= p.x } WITHIN 5",
)
REFUSED = (EngineError, QueryError)  # by queries that keep to no budget, also in order


def exact(case: Case, stream: Arriving, options: dict[str, Any]) -> Net:
    """The exact result over the events that count so far."""
    events = stream.table()
    if not len(events):
        return {}
    if "id" not in options:  # ids are the places of arrival
        places = sorted(place - 1 for place, _ in stream.live.values())
        events = events.set_column(events.column_names.index("number"), "number", pa.array(places, pa.int64()))
    return net(acep.match(events, case.query(), **case.stream | {"id": "number", "engine": "reference"}))


def beyond(given: Net, want: Net) -> Net:
    """The matches that were given and are none. A match whose cheapest run was shed may have a greater error, as in
    order."""
    known: Counter[Any] = Counter()
    for (key, start, end, _, *rest), many in want.items():
        known[key, start, end, *rest] += many
    found: Counter[Any] = Counter()
    for (key, start, end, _, *rest), many in given.items():
        found[key, start, end, *rest] += many
    return {key: many for key, many in found.items() if many > known[key]}


class Run:
    """A matcher under a budget, and a model of the stream that it has seen."""

    def __init__(self, case: Case, rng: Random, budget: acep.Budget | None, **more: Any) -> None:
        self.case, self.ops = case, rng.random() < 0.6
        self.whole = arriving(case.events, rng, ops=self.ops, by=rng.choice((1, 3, 8, 20)))
        self.options = {name: column for name, column in case.stream.items() if name != "id"}
        self.options |= {"id": "number"} if self.ops or rng.random() < 0.5 else {}
        self.asked = self.options | {"lateness": self.whole.lateness, "speculation": rng.choice(SPECULATIONS[1:])}
        self.asked |= ({"op": "op"} if self.ops else {}) | {"budget": budget} | more
        self.matcher = acep.Matcher(case.query(), **self.asked)
        self.stream, self.given = Arriving(self.whole.lateness), list[Any]()

    def pushes(self) -> Any:
        """Push all, and yield after each push."""
        for rows in self.whole.pushes:
            self.stream.push(rows)
            self.given += self.matcher.push(table(rows))
            yield

    def restored(self) -> None:
        """Go on with another matcher, from a snapshot."""
        state, self.matcher = self.matcher.snapshot(), acep.Matcher(self.case.query(), **self.asked)
        self.matcher.restore(state)


def tight(rng: Random) -> acep.Budget:
    return acep.Budget(work=rng.choice((0.3, 1, 2, 4)), latency=rng.choice((None, None, None, 0.01)))


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", acep.DataWarning)
        yield


def told(matches: Any) -> list[tuple[Any, ...]]:
    return [(m.op, str(m.key), m.start, m.end, str(m.error), str(m.bindings), str(m.values)) for m in matches]


def complaint_at_the_end(run: Run, want: Net) -> str:
    """Say what is wrong with all that a run gave, which has ended."""
    matches, report = net(run.given), run.matcher.report
    if invented := beyond(matches, want):
        return f"given, and no matches: {invented}"
    if wrong := by_id(run.given):
        return wrong
    if report.matches != sum(matches.values()):
        return f"{report.matches} matches by the report, not {sum(matches.values())}"
    return "" if report.shed else difference(matches, want, ("nothing was shed", "exact"))


def invented_so_far(run: Run) -> str:
    """Say which matches a run has given so far that are none."""
    invented = beyond(net(run.given), exact(run.case, run.stream, run.options))
    return f"given after {len(run.stream.pushes)} pushes, and no matches: {invented}" if invented else ""


def complaint_under_a_budget(case: Case, seen: Counter[str]) -> str:
    """Run a case under a tight budget, and say what is wrong."""
    rng = Random(case.seed)
    budget = tight(rng)
    run = Run(case, rng, budget)
    try:
        for _ in run.pushes():
            if rng.random() < 0.2:
                run.restored()
            if rng.random() < 0.15 and (wrong := invented_so_far(run)):
                return wrong
            report = run.matcher.report
            if report.work > (budget.work or 0) * run.stream.came + 1e-6:
                return f"work {report.work} of {run.stream.came} events with {budget}"
            if report.exact != (report.shed == 0 and report.late == 0):
                return f"exact={report.exact} with {report.shed} shed and {report.late} late"
        run.given += run.matcher.finish()
    except REFUSED:
        seen["refused"] += 1
        return ""
    want = exact(case, run.stream, run.options)
    seen["sheds"] += run.matcher.report.shed > 0
    seen["matches are lost"] += net(run.given) != want
    seen["matches are taken back"] += run.matcher.report.retracted > 0
    seen["runs"] += 1
    return complaint_at_the_end(run, want)


def test_no_match_is_given_that_is_none(cases: CaseCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, tried = Counter[str](), cases(80)
    monkeypatch.setattr("acep.shedding.limits.CREDIT", 0)  # which would suffice for so few events
    for seed in range(tried):
        monkeypatch.setattr("acep.revision.revised_plan.SELDOM", 1 + 31 * (seed % 3))
        fail_if_wrong(drawn(seed), lambda case: complaint_under_a_budget(case, seen))
    cases.expect(seen, "runs", least=tried // 4)
    cases.expect(seen, "sheds", least=seen["runs"] // 4)
    cases.expect(seen, "matches are lost", "matches are taken back")


AMPLE = {"work": 1e6}, {"latency": 1e3}, {"memory": "1 GB"}, {"work": 1e6, "memory": "1 GB"}


def complaint_of_an_ample_budget(case: Case, budget: Any, seen: Counter[str]) -> str:
    """Run a case with a budget that suffices and without one, and say what is not the same."""
    free, bound = Run(case, Random(case.seed), None), Run(case, Random(case.seed), acep.Budget(**budget))
    try:
        for _ in bound.pushes():
            pass
    except REFUSED:
        seen["refused"] += 1
        return ""
    for _ in free.pushes():
        pass
    seen["has several pushes"] += len(free.stream.pushes) > 2
    for exact_part, part in ((free.given, bound.given), (free.matcher.finish(), bound.matcher.finish())):
        if differing := difference(sorted(told(part)), sorted(told(exact_part)), ("with the budget", "without")):
            return differing
    reports = [run.matcher.report for run in (bound, free)]
    seen["matches are taken back"] += reports[0].retracted > 0
    if reports[0].exact != (reports[0].late == 0):
        return f"exact={reports[0].exact} with {reports[0].late} late"
    numbers = [(report.matches, report.retracted, report.events) for report in reports]
    return difference(*numbers, ("with the budget", "without"))


@pytest.mark.parametrize("budget", AMPLE)
def test_with_a_budget_that_suffices_all_is_as_without_one(budget: Any, cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(cases(60)):
        fail_if_wrong(drawn(seed), lambda case: complaint_of_an_ample_budget(case, budget, seen))
    cases.expect(seen, "matches are taken back")
    cases.expect(seen, "has several pushes", least=3)


def answers_after_each_push(case: Case, *, restores: bool, seen: Counter[str]) -> list[Any]:
    """Return what a run under a budget of work has given after each push, or that it was refused."""
    run = Run(case, Random(case.seed), acep.Budget(work=Random(case.seed).choice((0.3, 1, 2))))
    answers: list[Any] = []
    try:
        for _ in run.pushes():
            answers.append(told(run.given))
            if restores and Random(f"{case.seed} {len(run.given)}").random() < 0.4:
                run.restored()
        run.given += run.matcher.finish()
    except REFUSED:
        return ["refused"]
    report = run.matcher.report
    seen["sheds"] += report.shed > 0
    seen["matches are taken back"] += report.retracted > 0
    return [*answers, (told(run.given), report.shed, report.work)]


@pytest.mark.parametrize("restores", [False, True])
def test_the_same_pushes_have_the_same_answer_also_across_snapshots(restores: bool, cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(cases(60)):
        fail_if_different(
            drawn(seed),
            lambda case: answers_after_each_push(case, restores=restores, seen=seen),
            lambda case: answers_after_each_push(case, restores=False, seen=seen),
            ("restored" if restores else "again", "first"),
        )
    cases.expect(seen, "sheds", "matches are taken back")


def complaint_with_little_memory(case: Case, limit: int, seen: Counter[str]) -> str:
    """Run a case with room for few events and matches, and say what is wrong."""
    rng = Random(f"{case.seed} run")
    run = Run(case, rng, acep.Budget(memory="1 MB"), policy="newest-per-state")
    for _ in run.pushes():
        if rng.random() < 0.1:
            run.restored()
        if rng.random() < 0.05 and (wrong := invented_so_far(run)):
            return wrong
        (part,) = run.matcher._tables.revised._parts
        waiting = len(part.log) + len(part.memory.waiting) + len(run.matcher._tables.arrivals)
        if part.memory.peak > limit or run.matcher.held != waiting:
            return f"{part.memory.peak} of {limit} bytes, {run.matcher.held} of {waiting} events"
        seen["events wait"] += len(part.memory.waiting) > 0
        seen["blind"] += part.memory.blind is not None
    early = net(run.given)
    run.given += run.matcher.finish()
    want = exact(case, run.stream, run.options)
    seen["matches are taken back"] += run.matcher.report.retracted > 0
    seen["all comes later"] += net(run.given) == want != early  # what was held came later
    seen["sheds"] += run.matcher.report.shed > 0
    return complaint_at_the_end(run, want)


def test_with_little_memory_no_match_is_given_that_is_none(cases: CaseCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    """The room for events and matches is made so small that it is full after a few."""
    monkeypatch.setattr("acep.arrivals.growing_array.FIRST", 4)
    monkeypatch.setattr("acep.revision.revision_memory.SLICE", 3)
    seen = Counter[str]()
    for seed in range(cases(60)):
        rng, text = Random(seed), BOUNDED[seed % len(BOUNDED)]
        drawn_rows = [{"type": rng.choice("ABBC"), "k": rng.randrange(2), "x": rng.randrange(4)} for _ in range(70)]
        rows = [dict.fromkeys(COLUMNS) | row | {"ts": n // 2, "seq": n % 3} for n, row in enumerate(drawn_rows)]
        case = Case(seed, False, f"PATTERN {text}", {}, rows, rng.choice(({}, {"seq": "seq"})))
        limit = rng.choice((1_500, 2_500, 5_000))
        monkeypatch.setattr(
            "acep.revision.revised_plan.RevisionMemory", lambda _, waiting, limit=limit: RevisionMemory(limit, waiting)
        )
        fail_if_wrong(case, lambda smaller, limit=limit: complaint_with_little_memory(smaller, limit, seen))
    cases.expect(seen, "events wait", "blind", "all comes later", "matches are taken back", "sheds")

"""The workloads of the best-effort experiments: their plans and their meaning, and what random dropping leaves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import acep
from acep.automaton.arcs import Accept
from acep.events.tables import batch_of, events_of, schema_of
from acep.matches.found_columns import FoundColumns
from acep.matches.records import Counts
from acep.native.session import NativeSession
from acep.plan.compile import compile_query
from acep.reference.engine import Event, MatchNode, ReferenceEngine, Trail
from acep.reference.runtime import ReferenceRuntime
from examples.data import MORE
from experiments import streams
from experiments.overload.heavy import heavy_workloads
from experiments.overload.survey import Half, Surveyed, survey_half, surveyed_table
from experiments.overload.survival import count_wanted, find_surviving, keep_share, touches_by_length
from experiments.overload.trial import stream
from experiments.overload.workload import Overload
from experiments.overload.workloads import OVERLOADS, choose_workloads
from tests.native.harness import push_all

pytestmark = pytest.mark.long

# Of each heavy workload the numbers of events, match points and bundles. Where a workload is meant to change:
#     ACEP_GOLDEN=write python -m pytest -n 0 tests/experiments/test_overload.py -k heavy
HEAVY = Path(__file__).parents[1] / "golden" / "heavy.json"
WRITE = os.environ.get("ACEP_GOLDEN") == "write"

TIED = """PATTERN SEQ(A a, B b, (C c | D d))
WHERE [key] AND b.value > a.value AND c.value > a.value AND c.value < b.value AND d.value > b.value - a.value
WITHIN 400"""


@pytest.fixture(params=OVERLOADS)
def workload(request: pytest.FixtureRequest, data: Callable[[str], Path]) -> Overload:
    """Each workload whose stream is there."""
    workload = OVERLOADS[request.param]
    if workload.file not in streams.GENERATED:
        data(workload.file)
    return workload


def test_the_node_engine_runs_it(workload: Overload) -> None:
    assert workload.choice.base == "nodes"
    assert workload.control == (workload.within is not None)
    first, second = workload.halves()
    assert first.num_rows + second.num_rows == workload.events().num_rows
    assert abs(first.num_rows - second.num_rows) <= workload.events().num_rows / 100


def test_a_prefix_means_to_the_node_engine_what_it_means_to_the_reference(workload: Overload) -> None:
    events = workload.halves()[1].slice(0, 600)
    batch = batch_of(events, workload.plan.schema, workload.plan.columns)
    session = NativeSession([workload.plan], [workload.choice.engine])
    (matches,) = push_all(session, [batch])
    core = ReferenceRuntime(workload.plan)
    expected = [*core.push(batch.events), *core.finish()]
    assert sorted((one.bindings, one.error) for one in matches) == sorted((one.bindings, one.error) for one in expected)


def test_there_are_workloads_over_all_streams() -> None:
    ours = [one for one in OVERLOADS.values() if not one.control]
    assert len(ours) >= 14
    assert len({one.file for one in ours} - streams.GENERATED.keys()) == 7
    assert any(one.errors == 2 for one in ours)


def test_heavy_workloads_differ_in_what_ties_their_events() -> None:
    texts = {workload.name: workload.text for workload in heavy_workloads()}
    assert len(texts) >= 8
    assert all(OVERLOADS[name].name.startswith("heavy-") for name in texts)
    for part in ("[game]", "abs(", "<>", "> a.x", "skip_till_next_match", "skip_till_any_match"):
        assert any(part in text for text in texts.values()), part
    assert sum(not workload.plan.keys for workload in heavy_workloads() if workload.file in streams.GENERATED) >= 2
    assert [workload.name for workload in heavy_workloads() if workload.errors] == ["heavy-lookups-k1-90s"]
    assert {workload.file for workload in heavy_workloads()} > streams.GENERATED.keys()


@pytest.mark.parametrize("workload", [*heavy_workloads()], ids=lambda workload: workload.name)
def test_a_heavy_workload_has_as_many_match_points_as_are_known(
    workload: Overload, data: Callable[[str], Path]
) -> None:
    is_real = workload.file in streams.GENERATED or data(workload.file).parent not in MORE
    events = workload.events()
    counts = {"events": events.num_rows}
    for output in ("points", "bundles"):
        counts[output] = len(acep.match(events, workload.query, output=output))
    if WRITE:
        golden = json.loads(HEAVY.read_text()) if HEAVY.is_file() else {}
        golden[workload.name] = counts
        ordered = {each.name: golden[each.name] for each in heavy_workloads() if each.name in golden}
        HEAVY.write_text(json.dumps(ordered, indent=1) + "\n")
    golden = json.loads(HEAVY.read_text())[workload.name]
    assert golden["points"] > 50
    if is_real and golden["events"] == counts["events"]:  # else a part of the stream is there, or a stand-in
        assert counts == golden


@pytest.mark.parametrize("workload", [*heavy_workloads()], ids=lambda workload: workload.name)
def test_the_reference_finds_the_matches_of_a_heavy_workload(workload: Overload, data: Callable[[str], Path]) -> None:
    """Around the match of the fewest events in a row, in one partition: a prefix may have none."""
    if workload.file not in streams.GENERATED:
        data(workload.file)
    events = workload.halves()[1]
    for key in workload.plan.keys:
        events = events.filter(pc.equal(events[key], events[key][0]))
    events = events.slice(0, 6_000)
    matches = acep.match(events, workload.query, limit=1_000)
    rows = [[row for ids in match.bindings.values() for row in ids] for match in matches if match.error == 0]
    n_rows, first = min((max(each) - min(each) + 1, min(each)) for each in rows)
    part = events.slice(max(0, first - 20), n_rows + 40)
    assert part.num_rows < 2_000
    ours, reference = (acep.match(part, workload.query, engine=engine) for engine in ("auto", "reference"))
    assert len(reference) > 0
    found_by_reference = [(match.bindings, match.error) for match in reference]
    assert [(match.bindings, match.error) for match in ours] == found_by_reference


@pytest.mark.parametrize("name", streams.GENERATED)
def test_a_generated_stream_is_the_same_each_time_and_in_order(name: str) -> None:
    events = streams.GENERATED[name]()
    ticks = events["ts"].cast(pa.int64()).to_numpy()
    assert (np.diff(ticks) >= 0).all()
    streams.GENERATED[name].cache_clear()
    assert streams.GENERATED[name]().equals(events)


def test_passes_fouls_and_shots_are_where_they_may_be() -> None:
    rows = streams.football(games=2, events=2_000).to_pylist()
    assert {row["type"] for row in rows} == {"PASS", "TOUCH", "FOUL", "SHOT"}
    for row in rows:
        assert row["player"] // 11 == row["team"]
        assert (row["target"] is None) == (row["type"] in ("TOUCH", "SHOT"))
        if row["type"] == "PASS":
            assert row["target"] // 11 == row["team"]
            assert row["target"] != row["player"]
        elif row["type"] == "FOUL":
            assert row["target"] // 11 != row["team"]
        elif row["type"] == "SHOT":
            assert row["x"] > 75 if row["team"] == 0 else row["x"] < 30


def test_events_of_a_network_have_what_their_type_has() -> None:
    rows = streams.network(rows=2_000, hosts=5).to_pylist()
    assert {row["type"] for row in rows} == {"DNS", "TLS", "CONN"}
    for row in rows:
        has = tuple(row[column] is not None for column in ("name", "dest", "port"))
        assert (
            has == {"DNS": (True, False, False), "TLS": (True, False, True), "CONN": (False, True, True)}[row["type"]]
        )
        assert row["bytes"] >= 0


def test_samples_of_a_query_without_a_partition_leave_out_some_values() -> None:
    workload = OVERLOADS["heavy-names-k0-40s"]
    sampled, events = stream(workload, 1), workload.events()
    assert 0.5 * events.num_rows < sampled.events + sum(map(len, sampled.train)) < events.num_rows


def test_a_workload_is_known_by_its_name() -> None:
    assert [one.name for one in choose_workloads(["tweets-k0-3d"])] == ["tweets-k0-3d"]
    assert choose_workloads([]) == list(OVERLOADS.values())
    with pytest.raises(ValueError, match="no workload 'nonsense'"):
        choose_workloads(["nonsense"])


class Dropping(ReferenceEngine):
    """The reference engine, which drops the partial matches that a hash of their events tells it to."""

    keep = 1.0

    def feed(
        self, nodes: list[MatchNode], event: Event, kind: str | None, counts: Counts
    ) -> tuple[list[MatchNode], list[tuple[MatchNode, Accept]]]:
        """What has just been made is kept or not; a match that it already is stays."""
        waiting, complete = super().feed(nodes, event, kind, counts)
        return [n for n in waiting if n.trail.event.id != event.id or self._kept(n.trail)], complete

    def _kept(self, trail: Trail) -> bool:
        steps = [(event.id, self.plan.variables.index(var)) for event, var in trail.steps()]
        ids, variables = zip(*steps, (0, 0), strict=True)  # as the beginning of a match
        zero = np.zeros(1, np.int64)
        offsets, numbers = np.array([0, len(ids)]), np.array(variables, np.uint16)
        found = FoundColumns(
            zero, zero, zero, zero, 1, (), offsets, np.array(ids), numbers, variables=self.plan.variables
        )
        return bool(find_surviving(found, self.keep, 1)[0, 0])


def test_what_survives_is_what_an_engine_finds_that_drops_at_random() -> None:
    events = streams.letters(keys=10).slice(0, 2_000)
    plan = compile_query(acep.parse(TIED, errors=1), schema_of(events.schema))
    exact = ReferenceRuntime(plan).push(events_of(events, plan.schema, plan.columns))
    session = NativeSession([plan], ["nodes"])
    session.ignore_future()
    (columns,) = session.push(batch_of(events, plan.schema, plan.columns))
    assert sorted(one.bindings for one in columns) == sorted(one.bindings for one in exact)
    left = sorted(one.bindings for one, alive in zip(columns, find_surviving(columns, 0.5, 1)[0], strict=True) if alive)
    core = ReferenceRuntime(plan)
    engine = core.engine = Dropping(plan)
    engine.keep = 0.5
    assert sorted(one.bindings for one in core.push(events_of(events, plan.schema, plan.columns))) == left
    assert 0 < len(left) < len(exact)


def test_touches_by_length_are_those_of_the_native_engine_where_nothing_is_merged() -> None:
    events = streams.letters(keys=10).slice(0, 3_000)
    plan = compile_query(acep.parse(TIED), schema_of(events.schema))
    touches = touches_by_length(plan, events, 10**9)
    session = NativeSession([plan], ["nodes"])
    session.ignore_future()
    session.push(batch_of(events, plan.schema, plan.columns))
    assert touches.sum() == session.counts(0).touches
    types = events["type"].to_pylist()
    assert touches[0] == types.count("A")
    assert count_wanted(plan, events) == sum(one in "ABCD" for one in types)
    share = keep_share(touches, 0.1)
    assert sum(share**length * number for length, number in enumerate(touches)) == pytest.approx(touches.sum() / 10)


def test_a_half_is_told_as_the_library_tells_it() -> None:
    class Letters(Overload):
        def events(self) -> pa.Table:
            return streams.letters(keys=10).slice(0, 6_000)

    workload = Letters("letters", "a test", "none", TIED)
    half, left = survey_half(workload, workload.halves()[1], 1.0)
    events = workload.halves()[1]
    found = acep.match(events, workload.query)
    bundles = found.bundles()
    assert half.matches == len(found) > 0
    assert half.points == len(found.points())
    assert half.bundles == len(bundles)
    assert half.span == np.median([b.end - b.start for b in bundles]) / 400
    assert left == (1.0, 1.0)
    assert survey_half(workload, events, 0.0)[1] == (0.0, 0.0)


def test_a_survey_is_a_table() -> None:
    half = Half(4, 1, 4, 2, 1, 3, 8, 5, 0.5, 0.25, 1.0)
    one = Surveyed("name", "stream", 0, "1 h", "nodes", half, half, 0.5, 0.25, 0.125)
    assert "| name | stream | 0 | 1 h | nodes | 4 / 4 |" in surveyed_table([one])

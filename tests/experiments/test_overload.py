"""The workloads of the best-effort experiments: their plans and their meaning, and what random dropping leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
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
from experiments import streams
from experiments.overload.survey import Half, Surveyed, survey_half, surveyed_table
from experiments.overload.survival import keep_share, surviving, touches_by_length, wanted
from experiments.overload.workload import Overload
from experiments.overload.workloads import OVERLOADS, chosen

pytestmark = pytest.mark.long

TIED = """PATTERN SEQ(A a, B b, (C c | D d))
WHERE [key] AND b.value > a.value AND c.value > a.value AND c.value < b.value AND d.value > b.value - a.value
WITHIN 400"""


@pytest.fixture(params=OVERLOADS)
def workload(request: pytest.FixtureRequest, data: Callable[[str], Path]) -> Overload:
    """Each workload whose stream is there."""
    one = OVERLOADS[request.param]
    data(one.file)
    return one


def test_the_node_engine_runs_it(workload: Overload) -> None:
    assert workload.choice.alone == "nodes"
    assert workload.control == (workload.within is not None)
    first, second = workload.halves()
    assert first.num_rows + second.num_rows == workload.events().num_rows
    assert abs(first.num_rows - second.num_rows) <= workload.events().num_rows / 100


def test_a_prefix_means_to_the_node_engine_what_it_means_to_the_reference(workload: Overload) -> None:
    events = workload.halves()[1].slice(0, 600)
    batch = batch_of(events, workload.plan.schema, workload.plan.columns)
    session = NativeSession([workload.plan], [workload.choice.engine])
    session.push(batch)
    session.finish()
    core = ReferenceRuntime(workload.plan)
    expected = [*core.push(batch.events), *core.finish()]
    assert sorted((one.bindings, one.error) for one in session.take(0)) == sorted(
        (one.bindings, one.error) for one in expected
    )


def test_there_are_workloads_over_all_streams() -> None:
    ours = [one for one in OVERLOADS.values() if not one.control]
    assert len(ours) >= 14
    assert len({one.file for one in ours}) == 7
    assert any(one.errors == 2 for one in ours)


def test_a_workload_is_known_by_its_name() -> None:
    assert [one.name for one in chosen(["tweets-k0-3d"])] == ["tweets-k0-3d"]
    assert chosen([]) == list(OVERLOADS.values())
    with pytest.raises(ValueError, match="no workload 'nonsense'"):
        chosen(["nonsense"])


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
        return bool(surviving(found, self.keep, 1)[0, 0])


def test_what_survives_is_what_an_engine_finds_that_drops_at_random() -> None:
    events = streams.letters(keys=10).slice(0, 2_000)
    plan = compile_query(acep.parse(TIED, errors=1), schema_of(events.schema))
    exact = ReferenceRuntime(plan).push(events_of(events, plan.schema, plan.columns))
    session = NativeSession([plan], ["nodes"])
    session.push(batch_of(events, plan.schema, plan.columns))
    columns = session.take(0)
    assert sorted(one.bindings for one in columns) == sorted(one.bindings for one in exact)
    left = sorted(one.bindings for one, alive in zip(columns, surviving(columns, 0.5, 1)[0], strict=True) if alive)
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
    session.push(batch_of(events, plan.schema, plan.columns))
    assert touches.sum() == session.counts(0).touches
    types = events["type"].to_pylist()
    assert touches[0] == types.count("A")
    assert wanted(plan, events) == sum(one in "ABCD" for one in types)
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

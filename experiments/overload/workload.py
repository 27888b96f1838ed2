"""The workload of an experiment under overload: a query on a stream, with a half to learn from and one to test."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import acep
from acep.events.tables import schema_of
from acep.pattern.times import duration_text
from acep.pattern.tree import Query
from acep.plan.choice import EngineChoice, choose
from acep.plan.compile import Plan, compile_query
from experiments import streams

__all__ = ["Overload"]


@dataclass(frozen=True)
class Overload:
    """``text``: a query in SASE+, or, where ``within`` is given, a letter expression (``by``: its partition).

    ``file``: the real stream, or one of :data:`experiments.streams.GENERATED`. ``errors``: the error budget.
    ``control``: no predicate ties events together, so that the planner would merge, and the node engine is taken all
    the same. ``sampled``: the column of whose values a sample has some, where the query has no partition.
    """

    name: str
    about: str
    file: str
    text: str
    errors: int = 0
    within: str | None = None
    by: str | None = None
    control: bool = False
    sampled: str = "symbol"

    def events(self) -> pa.Table:
        """Return the whole stream in order of time. Raises :class:`FileNotFoundError` if it is missing."""
        generate = streams.GENERATED.get(self.file)
        return generate() if generate else _stream(self.file)

    @cached_property
    def query(self) -> Query:
        """Return the query, with its errors."""
        if self.within is None:
            return acep.parse(self.text, errors=self.errors)
        return acep.regex(self.text, within=self.within, by=self.by, errors=self.errors)

    @cached_property
    def plan(self) -> Plan:
        """Return the query compiled for its stream."""
        return compile_query(self.query, schema_of(self.events().schema))

    @cached_property
    def choice(self) -> EngineChoice:
        """Return the native engine that makes its matches."""
        if self.control:
            return EngineChoice("nodes", "a control is run one node for each state, as in the paper")
        return choose(self.plan)

    @property
    def split(self) -> int:
        """Return the latest ``ts`` of the training half, in ticks (microseconds): that of the event in the middle."""
        events = self.events()
        return int(events["ts"][(events.num_rows - 1) // 2].cast(pa.int64()).as_py())

    @property
    def span(self) -> int:
        """Return the window, in ticks or, if it counts events, in positions."""
        assert self.plan.window.span is not None
        return self.plan.window.span

    @property
    def window(self) -> str:
        """Return the window in words."""
        within = self.query.within
        assert within is not None
        return duration_text(within.amount) if within.unit == "ns" else f"{within.amount} {within.unit}"

    def halves(self) -> tuple[pa.Table, pa.Table]:
        """Return the events up to ``split``, and those after it."""
        events = self.events()
        first = pc.sum(pc.less_equal(events["ts"].cast(pa.int64()), self.split)).as_py()
        return events.slice(0, first), events.slice(first)


@cache
def _stream(file: str) -> pa.Table:
    names = pq.read_schema(streams.file_of(file)).names
    return streams.read_real(file, *(n for n in names if n not in ("ts", "type", "arrival_seq")))

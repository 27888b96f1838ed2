"""Match queries that change while the stream of tables runs: their arcs, or the queries as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from acep import logs
from acep.budget import tolerant
from acep.changing.changeable_queries import (
    as_dynamic,
    compile_versions,
    edit_automaton,
    replace_query,
    revise_query,
    versions_data,
    versions_of,
)
from acep.changing.changing_automata import ChangingAutomaton
from acep.errors import DataError, QueryError, suggest
from acep.events.tables import ticks_to_input
from acep.matches.records import Found
from acep.pattern import expressions as ex
from acep.pattern.changes import change_arcs
from acep.pattern.query_arguments import Queries
from acep.pattern.tree import GraphArc, Query
from acep.plan.compile import Plan
from acep.plan.compile_graph import tick_of
from acep.plan.versions import QueryVersion
from acep.runtime.options import StreamOptions
from acep.runtime.stream import Stream
from acep.tables.table_stream import TableStream, as_bytes

__all__ = ["ChangingTables", "tables_of"]


def tables_of(query: Queries, options: StreamOptions) -> TableStream:
    """Return the stream of tables of a ``Matcher`` with these options."""
    return ChangingTables(query, options) if options.dynamic else TableStream(query, options)


class ChangingTables(TableStream):
    """A stream of tables whose queries may change. ``versions`` are those of each query so far."""

    dynamic = True

    def __init__(self, query: Queries, options: StreamOptions) -> None:
        super().__init__(query, options)
        self.query_set = replace(self.query_set, queries=tuple(map(as_dynamic, self.query_set.queries)))
        self.use_one_thread("queries that change are matched in one thread")
        if self.limits is not None:
            raise QueryError(
                "queries that change keep to no budget of work, time or memory",
                hint="dynamic=False",
                code="option_invalid",
            )
        self.first = self.query_set.queries
        self.versions: list[tuple[QueryVersion, ...]] = [(QueryVersion(query, None),) for query in self.first]
        self._waiting: set[int] = set()  # automata whose last changes are not compiled yet
        self._automata: dict[int, ChangingAutomaton] = {}

    def change(
        self,
        name: str,
        add: Sequence[GraphArc],
        remove: Sequence[GraphArc],
        final: Sequence[str],
        since: ex.Expr | None = None,
    ) -> int:
        """Add and remove arcs of an automaton from a time on that is yet to come (``None``: from now on); return the
        number of partial matches that go on. New states in ``final`` are final."""
        number = self._number_of_query(name)
        if self.first[number].graph is None:
            raise QueryError(
                "only arcs of hand-written automata can change",
                hint="replace() takes another query",
                code="query_change",
            )
        newest, certain = self._times()
        first = None if newest is None else newest + 1
        if since is not None and self.schema is not None:
            tick = tick_of(since, self.schema)
            if first is not None and tick < first:
                raise QueryError(
                    f"since={ticks_to_input((tick,), self.schema)[0]} is not after all events that have come",
                    hint="revise() reaches back to them",
                    code="query_change",
                )
            first = tick
        query, stream, schema = self.query_set.queries[number], self.stream, self.schema
        alone = not final and number not in self._waiting  # the change concerns no more than arcs
        if alone and first is not None and stream is not None and schema is not None:
            times = first, since, certain
            live = self._automaton(number).change_in_core(stream, number, query, schema, (add, remove), times)
            if live is not None:
                self.plans = stream.plans
                return live
        self._take_core_changes(number)
        query = self.query_set.queries[number]
        if number in self._waiting:
            certain = None  # what is over was left out by the change before

        def edit(old: Query, since: ex.Expr | None, over: Callable[[ex.Expr], bool]) -> Query:
            return change_arcs(old, add, remove, final, since, over)

        new_query = (
            edit_automaton(query, edit, first, self.schema, certain)
            if since is None or first is not None
            else edit(query, since, lambda _: False)
        )
        n_live = self._change_versions(number, (QueryVersion(new_query, None),))
        logs.info(__name__, "the automaton%s has changed: %d partial matches go on", _name_text(name), n_live)
        return n_live

    def _take_core_changes(self, number: int) -> bool:
        """Take into the query what has changed in the native core only; return whether there was something."""
        automaton, query = self._automata.get(number), self.query_set.queries[number]
        new_query = None if automaton is None or self.schema is None else automaton.current_query(query, self.schema)
        if new_query is not None:
            self._set_versions(number, (QueryVersion(new_query, None),))
        return new_query is not None

    def replace(self, name: str, query: Query) -> int:
        """Replace a query by another version from now on; return the number of partial matches that go on."""
        number = self._number_of_query(name)
        self._take_core_changes(number)
        newest, certain = self._times()
        since = None if newest is None else newest + 1
        query = query if query.graph is not None else tolerant(query, self.budget)
        n_live = self._change_versions(number, replace_query(self.versions[number], query, since, self.schema, certain))
        logs.info(
            __name__, "a new version of the query%s was taken in: %d partial matches go on", _name_text(name), n_live
        )
        return n_live

    def revise(self, name: str, query: Query, since: Any) -> list[Sequence[Found]]:
        """Replace a query by another version from a time on, which may have passed; return what comes and goes."""
        number = self._number_of_query(name)
        if self.revised is None or self.schema is None or self.arrivals is None:
            raise QueryError(
                "matches of events that have come cannot be revised",
                hint="give lateness= and speculation=, and revise after the first push; or replace() it from now on",
                code="query_change",
            )
        tick, final = self._tick(since), self.arrivals.final
        if final is not None and tick < final:
            raise QueryError(
                f"events before {ticks_to_input((final,), self.schema)[0]} are final",
                hint="give a later time, or lateness=",
                code="query_change",
            )
        self.make_changes()
        if (latest := self.arrivals.punctuations.latest) is not None and tick < latest:
            raise QueryError(
                f"events of some key or type are final after {since}, by an advance() with key= or type=",
                hint="replace() the query from now on",
                code="query_change",
            )
        newest, certain = self._times()
        if newest is None or tick > newest + 1:  # a version that is yet to begin would have to be undone by a replace()
            raise QueryError(
                f"no event has come at {since} or later", hint="replace() the query once one has", code="query_change"
            )
        query = query if query.graph is not None else tolerant(query, self.budget)
        versions = revise_query(self.versions[number], query, tick, self.schema, certain)
        plan = self._with_columns(number, compile_versions(versions, self.schema, certain))
        matches = self._no_matches()
        matches[number] = self.revised.change_since(number, plan, tick)
        self.plans = self.revised.plans
        self._set_versions(number, versions)
        logs.info(__name__, "a new version of the query%s was taken in, from %s on", _name_text(name), since)
        return matches

    def _with_columns(self, number: int, plan: Plan) -> Plan:
        """Return a plan that goes on in place of another one, with all columns that were read so far."""
        old_plan = self.plans[number]
        if self.revised is not None and (new_columns := [*{*plan.columns} - {*old_plan.columns}]):
            raise QueryError(
                f"column `{new_columns[0]}` was not read so far, and the events that are kept do not have it",
                hint="read it from the start, or leave speculation= out",
                code="query_change",
            )
        return replace(plan, columns=tuple(sorted({*plan.columns, *old_plan.columns})))

    def _number_of_query(self, name: str) -> int:
        """Return the number of the query of this name, which is to change."""
        if name not in self.query_set.names:
            raise QueryError(f"there is no query `{name}`", hint=suggest(name, self.query_set.names), code="query_name")
        if self.finished:
            raise DataError(
                "the stream has been finished: nothing can change any more",
                hint="make a new Matcher",
                code="data_order",
            )
        return self.query_set.names.index(name)

    def _change_versions(self, number: int, versions: tuple[QueryVersion, ...]) -> int:
        """Go on with other versions of a query; return the number of partial matches that go on."""
        schema, source = self.schema, self.stream or self.revised
        query = versions[-1].query
        if schema is not None and source is not None:
            old_graph = self.query_set.queries[number].graph

            def check(plan: Plan) -> None:
                source.check(number, self._with_columns(number, plan))

            if old_graph is not None and self._automaton(number).may_wait(old_graph, query, schema, check):
                self._waiting.add(number)
            else:
                self._compile_versions(number, versions)
        if number in self._automata:
            self._automata[number].in_core = None
        self._set_versions(number, versions)
        return 0 if source is None else source.live_of(number)

    def _automaton(self, number: int) -> ChangingAutomaton:
        return self._automata.setdefault(number, ChangingAutomaton())

    def _compile_versions(self, number: int, versions: tuple[QueryVersion, ...]) -> None:
        """Compile other versions of a query, and go on with them."""
        schema, source = self.schema, self.stream or self.revised
        assert schema is not None
        assert source is not None
        query = versions[-1].query
        if query.graph is None:
            plan = compile_versions(versions, schema, self._times()[1])
        else:
            plan = self._automaton(number).compile_plan(query, schema)
            self._automaton(number).in_core = None
        source.change(number, self._with_columns(number, plan))
        if query.graph is not None:
            self._automaton(number).prove(query.graph)
        self.plans = source.plans
        self._waiting.discard(number)

    def make_changes(self) -> None:
        """Compile the changes that wait for the next events, however many there are of one automaton, at once."""
        for number in sorted(self._waiting):
            self._compile_versions(number, self.versions[number])

    def _set_versions(self, number: int, versions: tuple[QueryVersion, ...]) -> None:
        queries = self.query_set.queries
        new_queries = (*queries[:number], versions[-1].query, *queries[number + 1 :])
        self.versions[number], self.query_set = versions, replace(self.query_set, queries=new_queries)

    def _first_plans(self) -> tuple[Plan, ...]:
        assert self.schema is not None
        return tuple(compile_versions((QueryVersion(query, None),), self.schema) for query in self.first)

    def _make_first_changes(self) -> None:
        assert self.schema is not None
        for number, versions in enumerate(self.versions):
            if versions[-1].query is not self.first[number]:
                source = self.stream or self.revised
                assert source is not None
                source.change(number, compile_versions(versions, self.schema))
                self.plans = source.plans

    def _restore_plans(self, read: Sequence[Sequence[str]]) -> tuple[Plan, ...]:
        """Take up the plans of queries that have changed, and return them. ``read``: the columns that each has read so
        far."""
        assert self.schema is not None
        plans = [compile_versions(versions, self.schema, self._times()[1]) for versions in self.versions]
        if any(self.schema.kind(name) is None for names in read for name in names):
            raise ValueError("columns")
        both = zip(plans, read, strict=True)
        self.plans = tuple(replace(plan, columns=tuple(sorted({*plan.columns, *names}))) for plan, names in both)
        return self.plans

    def _dump_queries(self) -> dict[str, Any]:
        read = [list(plan.columns) for plan in self.plans]
        return {"graphs": list(map(versions_data, self.versions)), "read": read}

    def _load_queries(self, payload: Mapping[str, Any]) -> None:
        for number, (query, changes) in enumerate(zip(self.first, payload["graphs"], strict=True)):
            self._set_versions(number, versions_of(query, changes))

    def _load_stream(self, payload: Mapping[str, Any]) -> None:
        first = self._first_plans()
        plans = self._restore_plans(payload["read"])
        if self.revised is None:
            self.stream = Stream.restore(plans, as_bytes(payload["stream"]), self.engine, first=first)
            return
        for number, plan in enumerate(plans):
            self.revised.change(number, plan)
        self.revised.restore(payload["stream"])

    def snapshot(self) -> bytes:
        """Return the state so far as bytes."""
        self._waiting |= {number for number in self._automata if self._take_core_changes(number)}
        self.make_changes()
        return super().snapshot()


def _name_text(name: str) -> str:
    return f" `{name}`" if name else ""

"""Turn the matches of a bucket into result rows, and collect match points and bundles until they are complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acep.errors import DataError, QueryError
from acep.events.columns import tick_of
from acep.matches.arrow import matches_table
from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns
from acep.matches.grouping import group_matches, groups_of_counts, point_changes
from acep.matches.match_form import MatchForm
from acep.matches.matches import Matches
from acep.matches.records import Found
from acep.pattern.expressions import Value
from acep.pattern.tree import Output
from acep.plan.compile import Plan
from acep.streaming.job import EXACT, Job

__all__ = [
    "WaitingGroups",
    "change_rows",
    "count_matches",
    "group_rows",
    "late_rows",
    "match_rows",
    "result_schema",
    "without_pairs",
]


KIND, EVENT = "kind", "event"  # columns of a job that gives late events
MATCH, LATE = "match", "late"  # values of KIND

# Rows -------------------------------------------------------------------------------------------


def match_rows(job: Job, plans: Sequence[Plan], query: int, matches: Sequence[Found]) -> pa.Table:
    """Return matches of one query as rows of the result."""
    return _fit_columns(job, query, _table(job, plans[query], matches))


def without_pairs(first: Sequence[pa.Table], following: Sequence[pa.Table]) -> list[pa.Table]:
    """Return rows of the result one after the other, without matches that come in the first ones and go in the next: a
    table that is kept by ``id`` could not tell which of the two was last.

    >>> come, go = (pa.table({"id": ids, "op": ops}) for ids, ops in (("ab", [1, 1]), ("ac", [-1, 1])))
    >>> [table.to_pylist() for table in without_pairs([come], [go])]
    [[{'id': 'b', 'op': 1}], [{'id': 'c', 'op': 1}]]
    """
    if not {"id", "op"} <= {*first[0].column_names}:  # as changes of points and counts, which are summed
        return [*first, *following]
    arriving_ids, retracted_ids = _ids_of(first, 1), _ids_of(following, -1)
    tables = [_leave_out(table, 1, retracted_ids) for table in first] + [
        _leave_out(table, -1, arriving_ids) for table in following
    ]
    return [table for table in tables if table.num_rows]


def _ids_of(tables: Sequence[pa.Table], op: int) -> dict[str | None, pa.Table]:
    """Return the ids of the matches of each query that come or go."""
    id_tables = dict[str | None, list[pa.Table]]()
    for table in tables:
        id_tables.setdefault(_query_of(table), []).append(table.filter(pc.equal(table.column("op"), op)).select(["id"]))
    return {name: pa.concat_tables(parts) for name, parts in id_tables.items()}


def _leave_out(rows: pa.Table, op: int, ids: dict[str | None, pa.Table]) -> pa.Table:
    """Leave out the matches of these ids that come or go."""
    listed_ids = ids.get(_query_of(rows))
    if listed_ids is None:
        return rows
    is_listed = pc.is_in(rows.column("id"), value_set=listed_ids.column("id").combine_chunks())
    return rows.filter(pc.invert(pc.and_(pc.equal(rows.column("op"), op), is_listed)))


def _query_of(rows: pa.Table) -> str | None:
    """Return the name of the query of rows, if they have one."""
    has_query = "query" in rows.column_names and rows.num_rows > 0
    return rows.column("query")[0].as_py() if has_query else None


def late_rows(job: Job, rows: pa.Table) -> pa.Table:
    """Return events that came too late as rows of the result: with their time, id and partition attributes."""
    columns = []
    for field in job.result:
        if field.name == KIND:
            column: Any = pa.array([LATE] * rows.num_rows, pa.string())
        elif field.name == EVENT:
            column = rows.column(str(job.schema.id))
        elif field.name in ("start", "end"):
            column = rows.column(job.schema.ts)
        elif field.name == "key":
            names = [inner.name for inner in field.type]
            key_array = pa.StructArray.from_arrays([rows.column(name).combine_chunks() for name in names], names=names)
            column = _widen_struct(pa.table({"key": key_array}), field, job)
        else:
            column = pa.nulls(rows.num_rows, field.type)
        columns.append(column.cast(field.type))
    return pa.Table.from_arrays(columns, schema=job.result)


def group_rows(job: Job, plans: Sequence[Plan], query: int, groups: Sequence[WaitingGroup]) -> pa.Table:
    """Return match points or bundles of one query as rows of the result."""
    matches = [Found(g.key, g.start, g.end, g.best, (), g.start) for g in groups]
    table = _table(job, plans[query], matches)
    if job.output == "bundles":
        max_matches = max(g.matches for g in groups)
        if max_matches >= 2**63:
            raise DataError(
                f"{max_matches} matches in a bundle are more than fit in 64 bits",
                hint="ask for points instead",
                code="data_value",
            )
        table = table.append_column("matches", pa.array([g.matches for g in groups], pa.int64()))
        return _fit_columns(job, query, table.rename_columns({"error": "best"}))
    table = table.select(["key", "end", "error"]).rename_columns(["key", "point", "best"])
    if job.revised:
        table = table.append_column("change", pa.array([g.matches for g in groups], pa.int64()))
    return _fit_columns(job, query, table)


def change_rows(job: Job, plans: Sequence[Plan], query: int, matches: Sequence[Found]) -> pa.Table | None:
    """Return the changes of the match points of one query, whose matches may be taken back, as rows of the result;
    ``None``: there are none."""
    groups = [WaitingGroup(g.key, g.first, g.last, g.matches, g.best) for g in point_changes(matches)]
    return group_rows(job, plans, query, groups) if groups else None


def result_schema(job: Job, plans: Sequence[Plan]) -> pa.Schema:
    """Return the columns of the result of a job; under a budget :data:`EXACT` is the last one.

    Raises :class:`QueryError` where two queries give one name to values of different types.
    """
    schemas = [_table(job, plan, []).schema for plan in plans]
    fields = {"query": pa.string()} if job.several else {}
    if job.output == "count":
        fields["count"] = pa.int64()
    else:
        fields |= _all_of(schemas, "key")
        time, error = schemas[0].field("end").type, pa.float64()
        if all(plan.automaton.costs.scale == 1 for plan in plans):
            error = pa.int64()
        if job.output == "points":
            fields |= {"point": time, "best": error} | ({"change": pa.int64()} if job.revised else {})
        elif job.output == "bundles":
            fields |= {"start": time, "end": time, "matches": pa.int64(), "best": error}
        else:
            fields |= {"start": time, "end": time, "error": error, "bindings": schemas[0].field("bindings").type}
            fields |= {"bundle": time} | _all_of(schemas, "values")
            fields |= {name: schemas[0].field(name).type for name in (("op", "id") if job.revised else ())}
            if job.late:
                fields |= {KIND: pa.string(), EVENT: fields["bindings"].item_type.value_type}
    return pa.schema(list((fields | ({EXACT: pa.bool_()} if job.budget is not None else {})).items()))


def _all_of(schemas: Sequence[pa.Schema], name: str) -> dict[str, pa.DataType]:
    """Return a column of structs with the fields of all queries; return no column if there are no fields."""
    types: dict[str, pa.DataType] = {}
    for schema in schemas:
        for field in schema.field(name).type if name in schema.names else ():
            if types.setdefault(field.name, field.type) != field.type:
                raise QueryError(
                    f"two queries give `{field.name}`, as {types[field.name]} and as {field.type}",
                    hint="rename it in one RETURN",
                    code="query_type",
                )
    return {name: pa.struct(list(types.items()))} if types else {}


def _table(job: Job, plan: Plan, matches: Sequence[Found]) -> pa.Table:
    has_values = matches.values if isinstance(matches, FoundColumns) else all(match.values for match in matches)
    without_values: dict[str, Any] = {"returns": (), "return_kinds": (), "return_scales": (), "return_times": ()}
    properties = {"ops": job.revised, "revised": job.ahead != 0} | ({} if has_values else without_values)
    return matches_table(Matches(matches, MatchForm.of_plan(plan, job.schema, **properties)))


def _fit_columns(job: Job, query: int, table: pa.Table) -> pa.Table:
    """Return the columns of the result in its types; columns that this query does not have are null."""
    columns = []
    for field in job.result:
        if field.name == "query":
            column: Any = pa.array([job.names[query]] * table.num_rows, pa.string())
        elif field.name in ("key", "values"):
            column = _widen_struct(table, field, job)
        elif field.name == KIND:
            column = pa.array([MATCH] * table.num_rows, pa.string())
        elif field.name == EVENT:
            column = pa.nulls(table.num_rows, field.type)
        elif field.name == EXACT:  # the bucket sets it
            column = pa.array([False] * table.num_rows, pa.bool_())
        else:
            column = table.column(field.name)
        columns.append(column.cast(field.type))
    return pa.Table.from_arrays(columns, schema=job.result)


def _widen_struct(table: pa.Table, field: pa.Field, job: Job) -> pa.ChunkedArray:
    chunks = table.column(field.name).chunks if field.name in table.column_names else []
    structs = []
    for chunk in chunks or [pa.Array.from_buffers(pa.struct([]), table.num_rows, [None])]:
        arrays = {inner.name: chunk.field(i) for i, inner in enumerate(chunk.type)}
        size, fields = len(chunk), list(field.type)
        parts = [_cast(arrays[f.name], f.type, job) if f.name in arrays else pa.nulls(size, f.type) for f in fields]
        structs.append(pa.StructArray.from_arrays(parts, fields=fields))
    return pa.chunked_array(structs)


def _cast(values: pa.Array, target_type: pa.DataType, job: Job) -> pa.Array:
    if (
        not pa.types.is_integer(values.type)
        or pa.types.is_integer(target_type)
        or not pa.types.is_temporal(target_type)
    ):
        return values.cast(target_type)
    # If `ts` is an integer of unknown unit, times are in ticks of the finest time column of the job.
    types = [arrow_type for name, arrow_type in job.schema.times if name in job.columns]
    units = [unit for time_type in types if (unit := tick_of(time_type)) is not None]
    stamps = pc.multiply(values, min(units) // 1000) if min(units) >= 1000 else values
    return stamps.cast(pa.timestamp("us")).cast(target_type)


def count_matches(matches: Sequence[Found] | Counted) -> int:
    """Count matches; for counted match points, sum up their matches."""
    if isinstance(matches, Counted) and len(matches.matches):
        return int(sum(matches.matches.tolist()))
    return len(matches)


# Groups -----------------------------------------------------------------------------------------


@dataclass
class WaitingGroup:
    """Matches that form one row: a match point (``start`` equals ``end``) or a bundle, in ticks."""

    key: tuple[Value, ...]
    start: int
    end: int
    matches: int
    best: int | Fraction


class WaitingGroups:
    """The match points or bundles of one plan that are still incomplete.

    Matches of a partition arrive in the order of their match points. So a group is complete when the partition's next
    group begins, or, where the delay of a match is bounded, when that time has passed.
    """

    def __init__(self, plan: Plan, bundles: bool) -> None:
        self.bundles = bundles
        self._open: dict[tuple[Value, ...], WaitingGroup] = {}
        self.change(plan)

    def change(self, plan: Plan) -> None:
        """Go on with another plan, under whose later matches groups may wait longer."""
        window = plan.window
        timed = window.span is not None and not window.counted
        trailing = any(n.trailing for n in plan.automaton.negations)
        self._wait: int | None = None
        if plan.query.output is Output.ALL and not plan.sources and (timed or not trailing):
            self._wait = window.span if trailing else 0
        if self.bundles and self._wait is not None:
            # A later match point within the window belongs to the bundle.
            self._wait = self._wait + window.span if timed and window.span is not None else None

    def add(self, matches: Sequence[Found] | Counted) -> list[WaitingGroup]:
        """Add matches, or counted ones, in the order of their match points; return the groups that are now complete."""
        group_kind = "bundle" if self.bundles else "end"
        complete = []
        for new in (
            groups_of_counts(matches, group_kind)
            if isinstance(matches, Counted)
            else group_matches(matches, group_kind)
        ):
            group = self._open.get(new.key)
            if group is not None and group.start == new.first:
                group.end = max(group.end, new.last)
                group.matches += new.matches
                group.best = min(group.best, new.best)
                continue
            if group is not None:
                complete.append(group)
            self._open[new.key] = WaitingGroup(new.key, new.first, new.last, new.matches, new.best)
        return complete

    def advance(self, clock: int) -> list[WaitingGroup]:
        """Return the groups that are complete because no event with ``ts <= clock`` will come."""
        if self._wait is None:
            return []
        return self._take([key for key, g in self._open.items() if clock >= g.end + self._wait])

    def finish(self) -> list[WaitingGroup]:
        """Return all groups that are left."""
        return self._take(list(self._open))

    def _take(self, keys: list[tuple[Value, ...]]) -> list[WaitingGroup]:
        return [self._open.pop(key) for key in keys]

    def dump(self) -> list[Any]:
        """Return the open groups as JSON-like data."""
        return [[list(g.key), g.start, g.end, g.matches, str(g.best)] for g in self._open.values()]

    def load(self, data: Any) -> None:
        """Restore the open groups from the data of :meth:`dump`."""
        self._open = {}
        for key, start, end, matches, best in data:
            cost = Fraction(best)
            error: int | Fraction = int(cost) if cost.denominator == 1 else cost
            self._open[tuple(key)] = WaitingGroup(tuple(key), int(start), int(end), int(matches), error)

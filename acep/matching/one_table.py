"""Match a table that is the whole stream, with each kind of output that :func:`acep.match` has."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep.errors import QueryError
from acep.matches.answers import Bundles, Count, Points
from acep.matches.batches import ROWS
from acep.matches.bundle_chain import BundleChain, PointBundles
from acep.matches.compressed import Compressed
from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns
from acep.matches.grouping import groups_of_counts
from acep.matches.matches import Matches
from acep.matches.records import Found
from acep.native.compiled import choose_engine
from acep.reference.single_events import matches_one_event
from acep.runtime.finer_partitions import null_rows
from acep.runtime.stream import merge_matches
from acep.tables.table_stream import TableStream

if TYPE_CHECKING:
    from acep.matches.batches import Batches

__all__ = ["PART", "limited_matches", "whole_result"]

PART = 4096  # events between two checks for a match


def whole_result(tables: TableStream, table: pa.Table, output: str, *, counts: bool = True) -> Any:
    """Return the requested output of each query, in the form in which the queries were given."""
    table = _with_types(tables, table)
    if output in ALONE:
        if tables.limits is not None:
            raise QueryError(
                f'output="{output}" keeps to no budget of work, time or memory',
                hint='"matches", "points", "bundles" or "count", which then say what was found',
                code="option_invalid",
            )
        return tables.query_set.arrange(
            [ALONE[output](tables.new_stream(query), table) for query in tables.query_set.queries]
        )
    if table.num_columns or table.num_rows:
        tables.is_whole = True
        tables.prepare(table.schema, output, counts=counts)
        if tables.stream is not None and tables.arrivals is None:
            tables.stream.expect_end()
    matches_by_query = [merge_matches(parts) for parts in zip(tables.push(table), tables.end(), strict=True)]
    results = [
        _summary(tables, number, matches, output, counts=counts) for number, matches in enumerate(matches_by_query)
    ]
    for result in results:
        if isinstance(result, Points | Bundles):
            tables.count_groups(output, len(result))
    return tables.query_set.arrange(results)


def limited_matches(tables: TableStream, table: pa.Table, limit: int) -> Any:
    """Return at most ``limit`` matches of each query; the work stops once they are found."""
    parts_by_query: list[list[Sequence[Found]]] = [[] for _ in tables.query_set.queries]
    table = _with_types(tables, table)
    tables.use_one_thread("with a limit the work stops once there are enough matches")
    started = time.perf_counter()
    if tables.is_ready(table) and limit:
        assert tables.stream is not None
        block_size = min(ROWS, limit)
        blocks = tables.stream.blocks(
            tables.batch(tables.without_repeated(table), unique=False), block_size, block_size
        )
        for block in chain(blocks, tables.stream.finish_blocks(block_size)):
            for parts, matches in zip(parts_by_query, block, strict=True):
                parts.append(matches[: limit - sum(map(len, parts))])
            if all(sum(map(len, parts)) == limit for parts in parts_by_query):
                break
        tables.warn()
    tables.finished = True
    tables.seconds += time.perf_counter() - started
    results = []
    for number, matches in enumerate(map(merge_matches, parts_by_query)):
        report = replace(tables.report_of(number)(), matches=len(matches), limited=len(matches) == limit)
        results.append(tables.matches(number, matches, report))
    return tables.query_set.arrange(results)


def _with_types(tables: TableStream, table: pa.Table) -> pa.Table:
    """Return the table; one without rows gets columns of types that the queries can use."""
    if table.num_rows or not table.num_columns:
        return table
    return tables.choose_types(table.schema).empty_table()


def _summary(
    tables: TableStream, number: int, raw_matches: Sequence[Found], output: str, *, counts: bool
) -> Matches | Count | Points | Bundles:
    counted = tables.stream.take_counted(number) if tables.stream else None
    if isinstance(counted, int):
        return Count(counted, tables.report_of(number)())
    if isinstance(counted, Counted):
        keys, schema, report = tables.plans[number].keys, tables.schema_of(number), tables.report_of(number)()
        groups = groups_of_counts(counted, "end" if output == "points" else "bundle")
        if output == "points":
            return Points.of_groups(groups, keys, schema, replace(report, points=len(groups)))
        return Bundles.of_groups(groups, keys, schema, replace(report, bundles=len(groups)), counts=counts)
    matches = tables.matches(number, raw_matches)
    if output == "points":
        return matches.points()
    if output == "bundles":
        return matches.bundles(counts=counts)
    return matches.count() if output == "count" else matches


# One query alone ----------------------------------------------------------------------------------


def _exists(tables: TableStream, table: pa.Table) -> bool:
    """Return whether the query has a match; stop reading the table at the first one."""
    if not table.num_columns:
        return False
    tables.prepare(table.schema, "exists")
    assert tables.stream is not None
    stream, batch = tables.stream, tables.batch(tables.without_repeated(table), unique=False)
    if any(tables.has_match(part) for part in batch.parts(PART)) or tables.has_any(stream.finish()[0]):
        return True
    tables.warn()
    return False


def _compressed_matches(tables: TableStream, table: pa.Table) -> Compressed:
    if table.num_columns:
        tables.prepare(table.schema)
        (plan,) = tables.plans
        batch = tables.batch(tables.without_repeated(table), unique=False)
        running_plan = plan
        if plan.finer is not None and not (matches_one_event(plan) and len(null_rows(plan, batch))):
            running_plan = plan.finer
        choice = choose_engine(running_plan, tables.engine, "compressed")
        if choice.base == "compressed":
            from acep.native.session import NativeSession

            finer = running_plan is not plan
            session = NativeSession([running_plan] * (1 + finer), [choice.engine, "points"][: 1 + finer])
            session.push(batch)
            session.finish()
            tables.warn()
            bundles = None
            if finer:
                points = BundleChain(len(plan.keys), plan.window.span).chain_counts(session.take_counts(1, last=True))
                bundles = PointBundles(points, len(plan.keys))

            def columns(values: dict[str, Any]) -> FoundColumns:
                matches = session.columns(0, values)
                return matches if bundles is None else bundles.matches(matches)

            return Compressed(session.take_compressed(0), tables.matches(0, []), columns)
    return Compressed(None, whole_result(tables, table, "matches"))


def _batches(tables: TableStream, table: pa.Table) -> Batches:
    from acep.matches.batches import Batches
    from acep.runtime.match_blocks import blocks_of

    if not table.num_columns:
        return Batches(iter(()), tables.matches(0, []), fractional=False)
    tables.prepare(table.schema)
    plan, batch = tables.plans[0], tables.batch(tables.without_repeated(table), unique=False)
    tables.warn()
    blocks = blocks_of(plan, tables.engine, batch)
    return Batches(blocks, tables.matches(0, []), fractional=plan.automaton.costs.scale != 1)


ALONE = {"exists": _exists, "compressed": _compressed_matches, "batches": _batches}

"""Turn matches of rules into alerts: rows that have the same columns whatever the rules are."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.alerting.rule import AlertRule
from acep.matches.arrow import groups_table, matches_table
from acep.matches.found_columns import FoundColumns
from acep.output.json_records import group_record, json_text, match_record, plain
from acep.output.writing import record_writer, rows_of

if TYPE_CHECKING:
    from acep.matches.matches import Bundle, Match, Matches, Point

__all__ = [
    "GROUP_HEADS",
    "HEADS",
    "RULE_HEADS",
    "alert_record",
    "alert_schema",
    "alerts_table",
    "group_alert_record",
    "group_schema",
    "group_table",
    "ordered_records",
    "ordered_table",
    "rule_record",
    "rule_table",
    "schema_of_alerts",
    "without_empty_values",
    "write_alerts",
]

HEADS = ("rule", "severity", "tags", "key", "start", "end", "error", "bindings", "fields", "values", "bundle")
"""The columns of alerts that are matches."""

RULE_HEADS = HEADS[:4]

GROUP_HEADS = {"bundles": ("start", "end", "matches", "best"), "points": ("point", "best")}
"""The columns of bundles and match points after those of the rule and the key."""

OBJECTS = ("key", "fields", "values")
"""The columns that have objects: in Arrow and CSV as texts of JSON, as each rule has other names in them."""


def alert_record(rule: AlertRule, match: Match, zoned: Collection[str] = ()) -> dict[str, Any]:
    """Return a match of a rule as what JSON can hold; ``zoned`` are the times with a zone
    (:func:`acep.output.json_records.match_record`)."""
    record = rule_record(rule) | match_record(match, zoned=zoned)
    values = record.pop("values", {})
    record["fields"] = {name: values.pop(name) for name in rule.fields}
    return {head: values if head == "values" else record[head] for head in HEADS}


def group_alert_record(rule: AlertRule, group: Bundle | Point, zoned: Collection[str] = ()) -> dict[str, Any]:
    """Return a bundle or a match point of a rule as what JSON can hold."""
    return rule_record(rule) | group_record(group, zoned=zoned)


def rule_record(rule: AlertRule) -> dict[str, Any]:
    """Return what each row says of its rule."""
    return {"rule": rule.name, "severity": rule.severity, "tags": [*rule.tags]}


# Arrow ----------------------------------------------------------------------------------------------


def alert_schema(matches: Iterable[pa.Schema]) -> pa.Schema:
    """Return the columns of alerts, by those of the matches of the rules (:meth:`acep.Matches.to_arrow`)."""
    schemas = [*matches]
    ids = {schema.field("bindings").type.item_type.value_type for schema in schemas}
    return schema_of_alerts(schemas[0].field("end").type, ids.pop() if len(ids) == 1 else pa.string())


def schema_of_alerts(time: pa.DataType, id_type: pa.DataType) -> pa.Schema:
    """Return the columns of alerts by the types of times and of the ids of events."""
    types = {
        "tags": pa.list_(pa.string()),
        "start": time,
        "end": time,
        "error": pa.float64(),
        "bindings": pa.map_(pa.string(), pa.list_(id_type)),
        "bundle": time,
    }
    return pa.schema([pa.field(head, types.get(head, pa.string())) for head in HEADS])


def rule_table(rule: AlertRule, matches: Matches, schema: pa.Schema | None = None) -> pa.Table:
    """Return the matches of a rule as alerts, in their order, with the columns of :func:`alert_schema`."""
    table = matches_table(matches, fractional=True)
    schema = alert_schema([table.schema]) if schema is None else schema
    zoned = matches.form.zoned_names()
    records = [alert_record(rule, match, zoned) for match in matches]
    columns = []
    for field in schema:
        if field.name in OBJECTS:
            column: Any = pa.array([json_text(record[field.name]) for record in records], pa.string())
        elif field.name in ("rule", "severity", "tags"):
            column = pa.array([record[field.name] for record in records], field.type)
        else:
            column = table.column(field.name)
        columns.append(column if column.type == field.type else _convert(column, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def group_schema(time: pa.DataType, heads: Sequence[str]) -> pa.Schema:
    """Return the columns of bundles or match points of rules, by the type of the times; ``heads`` are those after the
    key."""
    types = {"tags": pa.list_(pa.string()), "matches": pa.int64(), "best": pa.float64()}
    types |= dict.fromkeys(("start", "end", "point"), time)
    return pa.schema([pa.field(head, types.get(head, pa.string())) for head in (*RULE_HEADS, *heads)])


def group_table(rule: AlertRule, groups: Sequence[Any], like: Matches, schema: pa.Schema) -> pa.Table:
    """Return bundles or match points of a rule, whose matches are as ``like``, with the columns of
    :func:`group_schema`."""
    heads = schema.names[len(RULE_HEADS) :]
    table = groups_table(groups, like.schema, like.keys, heads)
    zoned = like.form.zoned_names()
    records = [group_alert_record(rule, group, zoned) for group in groups]
    columns: dict[str, Any] = {name: pa.array([r[name] for r in records], schema.field(name).type)
                               for name in RULE_HEADS if name != "key"}  # fmt: skip
    columns["key"] = pa.array([json_text(record["key"]) for record in records], pa.string())
    columns |= {head: table.column(head).cast(schema.field(head).type) for head in heads}
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _convert(column: Any, target_type: pa.DataType) -> Any:
    """Return a column in another type. Events of a rule with FROM are matches, whose ids are numbers."""
    if pa.types.is_map(target_type):
        rows = [[(name, [str(event_id) for event_id in ids]) for name, ids in row] for row in column.to_pylist()]
        return pa.array(rows, target_type)
    return column.cast(target_type)


def alerts_table(parts: Sequence[tuple[AlertRule, Matches]]) -> pa.Table:
    """Return matches of rules as alerts, in the order of the times at which they end, and then of the rules."""
    schema = alert_schema([matches_table(matches.with_found([])).schema for _, matches in parts])
    return ordered_table(parts, schema)


def ordered_table(parts: Sequence[tuple[AlertRule, Matches]], schema: pa.Schema) -> pa.Table:
    """Return the same with the columns of a schema (:func:`alert_schema`)."""
    tables = [rule_table(rule, matches, schema) for rule, matches in parts]
    if not tables:
        return schema.empty_table()
    return pa.concat_tables(tables).take(pa.array(_order([matches for _, matches in parts])))


def ordered_records(parts: Sequence[tuple[AlertRule, Matches]]) -> Iterator[dict[str, Any]]:
    """Yield the same as what JSON can hold."""
    rows: list[tuple[AlertRule, Match, frozenset[str]]] = []
    for rule, matches in parts:
        zoned = matches.form.zoned_names()
        rows += [(rule, match, zoned) for match in matches]
    for row in _order([matches for _, matches in parts]).tolist():
        yield alert_record(*rows[row])


def _order(parts: Sequence[Matches]) -> npt.NDArray[np.int64]:
    """Return the order of matches, which are numbered from part to part, by the times at which they end."""
    ends = [end_ticks(matches) for matches in parts]
    return np.argsort(np.concatenate([np.empty(0, np.int64), *ends]), kind="stable")


def end_ticks(matches: Matches) -> npt.NDArray[np.int64]:
    """Return the times at which matches end, in ticks."""
    rows = matches.found
    return rows.end if isinstance(rows, FoundColumns) else np.array([match.end for match in rows], np.int64)


def without_empty_values(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record of an alert without ``values`` if its rule has no RETURN."""
    return {head: value for head, value in record.items() if head != "values" or value}


def write_alerts(table: pa.Table, target: IO[Any], form: str, *, quote_formulas: bool = False) -> None:
    """Write a table of alerts to an open stream, as ``"jsonl"``, ``"csv"`` or ``"parquet"``."""
    records = map(partial(_record_of_row, zoned=_zoned_columns(table.schema)), rows_of(table))
    if form == "jsonl":
        records = map(without_empty_values, records)
    with record_writer(target, form, HEADS, lambda: table, quote_formulas=quote_formulas) as write:
        write(records, lambda: table)


def _zoned_columns(schema: pa.Schema) -> frozenset[str]:
    return frozenset(field.name for field in schema if getattr(field.type, "tz", None) is not None)


def _record_of_row(row: Mapping[str, Any], zoned: Collection[str]) -> dict[str, Any]:
    """Return a row of a table of alerts as what JSON can hold."""
    record = dict(row)
    record |= {name: json.loads(row[name]) for name in OBJECTS}
    record |= {name: plain(row[name], name in zoned) for name in ("start", "end", "bundle")}
    error = row["error"]
    return record | {
        "error": int(error) if error == int(error) else error,
        "bindings": {var: [*ids] for var, ids in row["bindings"]},
    }

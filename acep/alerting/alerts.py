"""Turn matches of rules into alerts: rows that have the same columns whatever the rules are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from acep.alerting.rule import Rule
from acep.matches.arrow import matches_table
from acep.output.json_records import group_record, json_text, match_record

if TYPE_CHECKING:
    from acep.matches.matches import Bundle, Match, Matches, Point

__all__ = ["HEADS", "alert_record", "alert_schema", "alerts_table", "group_alert_record", "rule_table"]

HEADS = ("rule", "severity", "tags", "key", "start", "end", "error", "bindings", "fields", "values", "bundle")
"""The columns of alerts that are matches."""

OBJECTS = ("key", "fields", "values")
"""The columns that have objects: in Arrow and CSV as texts of JSON, as each rule has other names in them."""


def alert_record(rule: Rule, match: Match, zoned: Collection[str] = ()) -> dict[str, Any]:
    """Return a match of a rule as what JSON can hold; ``zoned`` are the times with a zone
    (:func:`acep.output.json_records.match_record`)."""
    record = _rule_record(rule) | match_record(match, zoned=zoned)
    values = record.pop("values", {})
    record["fields"] = {name: values.pop(name) for name in rule.fields}
    return {head: values if head == "values" else record[head] for head in HEADS}


def group_alert_record(rule: Rule, group: Bundle | Point, zoned: Collection[str] = ()) -> dict[str, Any]:
    """Return a bundle or a match point of a rule as what JSON can hold."""
    return _rule_record(rule) | group_record(group, zoned=zoned)


def _rule_record(rule: Rule) -> dict[str, Any]:
    return {"rule": rule.name, "severity": rule.severity, "tags": [*rule.tags]}


# Arrow ----------------------------------------------------------------------------------------------


def alert_schema(matches: Iterable[pa.Schema]) -> pa.Schema:
    """Return the columns of alerts, by those of the matches of the rules (:meth:`acep.Matches.to_arrow`)."""
    schemas = [*matches]
    ids = {schema.field("bindings").type.item_type.value_type for schema in schemas}
    id_type = ids.pop() if len(ids) == 1 else pa.string()
    time = schemas[0].field("end").type
    types = {
        "tags": pa.list_(pa.string()),
        "start": time,
        "end": time,
        "error": pa.float64(),
        "bindings": pa.map_(pa.string(), pa.list_(id_type)),
        "bundle": time,
    }
    return pa.schema([pa.field(head, types.get(head, pa.string())) for head in HEADS])


def rule_table(rule: Rule, matches: Matches, schema: pa.Schema | None = None) -> pa.Table:
    """Return the matches of a rule as alerts, in their order, with the columns of :func:`alert_schema`."""
    table = matches_table(matches, fractional=True)
    schema = alert_schema([table.schema]) if schema is None else schema
    zoned = matches.zoned_names()
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


def _convert(column: Any, target_type: pa.DataType) -> Any:
    """Return a column in another type. Events of a rule with FROM are matches, whose ids are numbers."""
    if pa.types.is_map(target_type):
        rows = [[(name, [str(event_id) for event_id in ids]) for name, ids in row] for row in column.to_pylist()]
        return pa.array(rows, target_type)
    return column.cast(target_type)


def alerts_table(matches_of_rules: Sequence[tuple[Rule, Matches]]) -> pa.Table:
    """Return the matches of rules as alerts, in the order of the times at which they end, and then of the rules."""
    schema = alert_schema([matches_table(matches.with_found([])).schema for _, matches in matches_of_rules])
    table = pa.concat_tables([rule_table(rule, matches, schema) for rule, matches in matches_of_rules])
    order = pc.sort_indices(
        table.select(["end"]).append_column("place", pa.array(range(table.num_rows), pa.int64())),
        sort_keys=[("end", "ascending"), ("place", "ascending")],
    )
    return table.take(order)


def plain_rows(rows: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yield rows of alerts without the values of rules that have no RETURN."""
    for row in rows:
        yield {head: value for head, value in row.items() if head != "values" or value}

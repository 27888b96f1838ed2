"""Run ``acep match --rules``: write the alerts of a folder of rules, which are matched in one pass."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep.alerting.alerts import (
    GROUP_HEADS,
    group_alert_record,
    group_schema,
    group_table,
    ordered_records,
    ordered_table,
    rule_record,
    without_empty_values,
)
from acep.alerting.rule import AlertRule
from acep.alerting.rule_folder import read_rules
from acep.alerting.rule_pass import RulePass
from acep.alerting.rules import Rules, without_unfit
from acep.cli.terminal import say, show
from acep.errors import AcepError, DataError, QueryError
from acep.events.tables import schema_of
from acep.output.json_records import json_line
from acep.output.writing import output_format, record_writer

if TYPE_CHECKING:
    from acep.events.files.stream import EventStream
    from acep.matches.matches import Matches

Records = list[dict[str, Any]]
Rows = tuple[Records, Callable[[], pa.Table]]

__all__ = ["check_rule_options", "load_rules", "make_pass", "write_alerts"]

OF_QUERIES = ("errors", "weights", "surplus", "set", "within", "by", "strategy", "history")


def check_rule_options(args: argparse.Namespace) -> None:
    """Raise :class:`QueryError` for options that are of one query."""
    for option in (*OF_QUERIES, "flat", "plot", "page", "versions", "late", "op"):
        if getattr(args, option, None) not in (None, False, ()):
            hints = {
                "errors": "say it in the header of a rule: errors = 1",
                "weights": "say it in the header of a rule",
            }
            raise QueryError(
                f"--{option} is not for rules", hint=hints.get(option, "leave it out"), code="option_invalid"
            )


def load_rules(args: argparse.Namespace) -> Rules:
    """Return the rules of the folder that the arguments name, and report on stderr those that cannot be read.

    Raises :class:`AcepError` for one of these with ``--strict``, and if there is no rule.
    """
    rules, warnings = read_rules(args.rules)
    for warning in warnings if args.log_level != "error" else ():
        say(f"acep: warning: {warning}")
    report_problems(rules, args)
    return rules


def report_problems(rules: Rules, args: argparse.Namespace, n_reported: int = 0) -> None:
    """Report the problems of rules on stderr, after the first ones, which were reported. Raises the error of one with
    ``--strict``, and :class:`DataError` if no rule is left."""
    problems = rules.problems[n_reported:]
    if problems and args.strict:
        raise problems[0].error
    for problem in problems:
        say(f"acep: {problem}")
    if not rules:
        raise DataError(f"no rule in `{args.rules}` can run", hint="correct those that are named", code="file_read")


def make_pass(args: argparse.Namespace, rules: Rules, events: EventStream, **options: Any) -> RulePass:
    """Return the pass over events of the rules that fit them, and report the others on stderr."""
    how: dict[str, Any] = {"output": args.kind, "counts": not args.no_counts, "engine": args.engine}
    how |= options
    try:
        return RulePass(rules, events.schema, events.rows, **how)
    except AcepError:
        roles = {name: options[name] for name in ("ts", "type", "seq", "id", "unit")}
        fitting = without_unfit(rules, schema_of(events.schema, **roles), args.engine)
        if len(fitting.problems) == len(rules.problems):
            raise
        report_problems(fitting, args, len(rules.problems))
        return RulePass(fitting, events.schema, events.rows, **how)


def write_alerts(passing: RulePass, results: Iterator[Any], args: argparse.Namespace) -> int:
    """Write what the rules have found, and return how many rows were written; of ``--count`` how many matches there
    are, and of ``--exists`` whether there is one."""
    if args.kind == "exists":
        has_match = any(results)
        show(str(has_match).lower())
        return int(has_match)
    if args.kind == "count":
        counts = Counter[str]({rule.name: 0 for rule in passing.rules})
        for parts in results:
            counts.update({rule.name: int(count) for rule, count in parts})
        for rule in passing.rules:
            show(json_line(rule_record(rule) | {"count": counts[rule.name]}))
        return counts.total()
    limit, n_written = args.limit, 0
    schema = _schema(passing, args)
    with _writer(schema, args) as write:
        rows = (_matches if args.kind == "matches" else _groups)(passing, results, schema)
        for records, make_table in rows:
            wanted = records if limit is None else records[: limit - n_written]
            write(wanted, partial(_first_rows, make_table, len(wanted)))
            n_written += len(wanted)
            if limit is not None and n_written >= limit:
                break
    return n_written


def _first_rows(make_table: Callable[[], pa.Table], n_rows: int) -> pa.Table:
    return make_table().slice(0, n_rows)


def _schema(passing: RulePass, args: argparse.Namespace) -> pa.Schema:
    """Return the columns of the output."""
    schema = passing.alert_schema
    if args.kind == "matches":
        return schema
    heads = [head for head in GROUP_HEADS[args.kind] if head != "matches" or not args.no_counts]
    return group_schema(schema.field("end").type, heads)


def _matches(_: RulePass, results: Iterator[Any], schema: pa.Schema) -> Iterator[Rows]:
    """Yield the alerts of each part, in order, and what makes a table of them."""
    for parts in results:
        filled: list[tuple[AlertRule, Any]] = [(rule, matches) for rule, matches in parts if len(matches)]
        if filled:
            yield [*ordered_records(filled)], partial(ordered_table, filled, schema)


def _groups(passing: RulePass, results: Iterator[Any], schema: pa.Schema) -> Iterator[Rows]:
    """Yield the bundles or match points of all rules, in the order of their first match points."""
    rows: list[tuple[int, int, dict[str, Any]]] = []
    filled: list[tuple[AlertRule, Any, Matches]] = []
    for parts in results:
        for place, (rule, groups) in enumerate(parts):
            if not len(groups):
                continue
            like = passing.like_of(place)
            records = (group_alert_record(rule, group, like.form.zoned_names()) for group in groups)
            rows += [(tick, place, record) for tick, record in zip(groups.groups.first.tolist(), records, strict=True)]
            filled.append((rule, groups, like))
    order = sorted(range(len(rows)), key=lambda row: rows[row][:2])

    def table() -> pa.Table:
        tables = [group_table(rule, groups, like, schema) for rule, groups, like in filled]
        return pa.concat_tables([schema.empty_table(), *tables]).take(pa.array(order, pa.int64()))

    yield [rows[row][2] for row in order], table


@contextlib.contextmanager
def _writer(schema: pa.Schema, args: argparse.Namespace) -> Iterator[Callable[[Records, Callable[[], pa.Table]], None]]:
    """Yield the function that writes rows to the output that the arguments name."""
    target, form = (sys.stdout, "jsonl") if args.output is None else (args.output, output_format(args.output))
    with record_writer(
        target, form, schema.names, schema.empty_table, quote_formulas=args.quote_formulas
    ) as write_records:

        def write(records: Records, table: Callable[[], pa.Table]) -> None:
            write_records(map(without_empty_values, records) if form == "jsonl" else records, table)

        yield write

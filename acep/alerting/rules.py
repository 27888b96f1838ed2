"""Hold the rules of a folder: queries by name for one pass, with what alerts say of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from acep.alerting.alerts import alerts_table
from acep.alerting.rule import AlertRule, RuleProblem, locate_in_file
from acep.alerting.sigma_files import hint_at_settings
from acep.errors import AcepError, DataError, DataWarning, QueryError, suggest, warn_caller
from acep.events.input_tables import input_table
from acep.events.tables import schema_of
from acep.matching.api import match
from acep.pattern.query_arguments import read_queries
from acep.pattern.tree import Query
from acep.plan.compile import compile_query
from acep.plan.schema import Schema
from acep.runtime.stream import check_plans

if TYPE_CHECKING:
    import pyarrow as pa

    from acep.matches.matches import Matches

__all__ = ["Rules", "rules_of", "without_unfit"]

ROLES = {"ts": "ts", "type": "type", "seq": None, "id": None, "unit": None}
"""The names of columns with a role, where none is named."""


@dataclass(frozen=True, eq=False)
class Rules(Mapping[str, Query]):
    """Rules by name, in the order of names: a mapping to their queries, as :func:`acep.match` takes one. ``problems``
    are those of the files that are no rule. Get it from :func:`acep.rules`.
    """

    rules: tuple[AlertRule, ...]
    problems: tuple[RuleProblem, ...] = ()

    def __getitem__(self, name: str) -> Query:
        return self.rule(name).query

    def __iter__(self) -> Iterator[str]:
        return (rule.name for rule in self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __repr__(self) -> str:
        count = "1 rule" if len(self) == 1 else f"{len(self):,} rules"
        faults = f", {len(self.problems):,} with a problem" if self.problems else ""
        return f"Rules({count}{faults})"

    def rule(self, name: str) -> AlertRule:
        """Return the rule of a name. Raises :class:`KeyError` if there is none."""
        for rule in self.rules:
            if rule.name == name:
                return rule
        raise KeyError(name)

    def match(self, events: Any, *, strict: bool = False, **options: Any) -> dict[str, Matches]:
        """Return the matches of each rule by its name, found in one pass over the events.

        The options are those of :func:`acep.match`. A rule that does not fit the events, as where they lack an
        attribute, is left out with a :class:`acep.DataWarning` that names it and its file.

        Raises :class:`QueryError` for it with ``strict``, and if no rule fits; else as :func:`acep.match` does.
        """
        try:
            return self._match_all(events, options)
        except AcepError:
            roles = ROLES | {name: options[name] for name in ROLES if name in options}
            table, _ = input_table(events, read_queries(self), **roles)
            fitting = without_unfit(self, schema_of(table.schema, **roles), str(options.get("engine", "auto")))
            new_problems = fitting.problems[len(self.problems) :]
            if not new_problems:
                raise
            if strict or not fitting:
                raise new_problems[0].error from None
        for problem in new_problems:
            warn_caller(problem.summary, DataWarning)
        return fitting._match_all(events, options)

    def _match_all(self, events: Any, options: Mapping[str, Any]) -> dict[str, Matches]:
        matches: dict[str, Matches] = match(events, self, **options)
        return matches

    def alerts(self, matches: Mapping[str, Matches]) -> pa.Table:
        """Return the matches of rules by name as alerts, in the order of the times at which they end.

        The columns are ``rule``, ``severity``, ``tags``, ``key``, ``start``, ``end``, ``error``, ``bindings``,
        ``fields``, ``values`` and ``bundle`` (docs/howto/rules.md#alerts). ``key``, ``fields`` and ``values`` are
        texts of JSON objects, as each rule has its own.

        Raises :class:`QueryError` for a name that no rule has.
        """
        for name in matches:
            if name not in self:
                raise QueryError(f"there is no rule `{name}`", hint=suggest(name, self), code="query_name")
        return alerts_table([(self.rule(name), of_rule) for name, of_rule in matches.items()])


def rules_of(readings: Iterable[AlertRule | RuleProblem], folder: str) -> Rules:
    """Return the rules among what was read in a folder. Rules of one name are problems, each of them.

    Raises :class:`DataError` if there is neither a rule nor a problem.
    """
    by_name, problems = defaultdict[str, list[AlertRule]](list), list[RuleProblem]()
    for reading in readings:
        if isinstance(reading, AlertRule):
            by_name[reading.name].append(reading)
        else:
            problems.append(reading)
    rules = list[AlertRule]()
    for same_name in by_name.values():
        if len(same_name) == 1:
            rules += same_name
        else:
            problems += [_duplicate_problem(rule, same_name) for rule in same_name]
    if not rules and not problems:
        hint = "a rule is a file that ends in .rule, or in .yml or .yaml for Sigma"
        raise DataError(f"there is no rule in `{folder}`", hint=hint, code="file_read")
    return Rules(
        tuple(sorted(rules, key=lambda rule: rule.name)), tuple(sorted(problems, key=lambda problem: problem.file))
    )


def _duplicate_problem(rule: AlertRule, same_name: Sequence[AlertRule]) -> RuleProblem:
    files = [f"`{other_rule.file}`" for other_rule in same_name if other_rule is not rule]
    place = rule.text.find("name")
    error = QueryError(
        f"{', '.join(files[:3])}{', ...' if len(files) > 3 else ''} has the same name",
        text=rule.text,
        start=place,
        end=place + 4,
        hint="give each rule a name of its own; none of them runs",
        code="query_name",
    )
    return RuleProblem.from_error(error, rule.file, rule.name)


def without_unfit(rules: Rules, schema: Schema, engine: str = "auto", output: str = "matches") -> Rules:
    """Return the rules that can run over events of a schema; the others are problems, after those before."""
    fitting, problems = list[AlertRule](), list[RuleProblem]()
    for rule in rules.rules:
        try:
            check_plans([compile_query(rule.query, schema)], engine, output)
            fitting.append(rule)
        except AcepError as error:
            hint_at_settings(error, rule)
            problems.append(RuleProblem.from_error(locate_in_file(error, rule), rule.file, rule.name))
    return replace(rules, rules=tuple(fitting), problems=(*rules.problems, *problems))

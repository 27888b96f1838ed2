"""Look at a folder of rules before each micro-batch of a stream, and say what has changed in it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from acep.alerting.rule import AlertRule, RuleProblem
from acep.alerting.rule_folder import read_rules
from acep.alerting.rule_streams import rule_of_change, text_of_change
from acep.alerting.rules import Rules, without_unfit
from acep.errors import DataWarning, warn_caller
from acep.plan.schema import Schema
from acep.streaming.query_versions import NewVersion

__all__ = ["RuleWatch", "rules_after"]

Recorded = Mapping[str, Sequence[str]]
"""The rules of a state: the file and the digest of the text of each, by name."""


class RuleWatch:
    """A folder of rules that may change. ``problems`` are those of the last look. With ``strict`` a problem is an
    error."""

    def __init__(self, folder: Path, *, strict: bool) -> None:
        self.folder, self.strict = folder, strict
        self.problems: tuple[RuleProblem, ...] = ()
        self._reported = set[str]()

    def find_changes(self, recorded: Recorded, number: int, schema: Schema, engine: str) -> list[NewVersion]:
        """Return the changes since the rules that are ``recorded``, with numbers after ``number``.

        A rule stays as it was while its file has a problem, so that a slip of the pen stops no rule. It is gone once
        its file is. Problems are reported once.

        Raises :class:`DataError` if the folder cannot be read or has no rule, and the error of a problem with
        ``strict``.
        """
        rules, warnings = read_rules(self.folder)
        new_rules = tuple(rule for rule in rules.rules if recorded.get(rule.name) != self._record_of(rule))
        fitting = without_unfit(Rules(new_rules), schema, engine)
        self.problems = (*rules.problems, *fitting.problems)
        self._report(warnings)
        faulty_files = {self._relative(problem.file) for problem in self.problems}
        faulty_names = {problem.rule for problem in self.problems}
        names = {rule.name for rule in rules.rules}
        gone = [
            name
            for name, (file, _) in recorded.items()
            if name not in names | faulty_names and file not in faulty_files
        ]
        changes = [(name, "") for name in sorted(gone)]
        changes += [(rule.name, text_of_change(self._relative(rule.file), rule.text)) for rule in fitting.rules]
        return [NewVersion(number + 1 + n, *change) for n, change in enumerate(changes)]

    def find_unreadable(self) -> None:
        """Find the rules that cannot be read, whatever the columns are. Raise what :meth:`find_changes` raises."""
        rules, warnings = read_rules(self.folder)
        self.problems = tuple(rules.problems)
        self._report(warnings)

    def _relative(self, file: str) -> str:
        return str(Path(file).relative_to(self.folder))

    def _record_of(self, rule: AlertRule) -> list[str]:
        return _record(self._relative(rule.file), rule.text)

    def _report(self, warnings: Sequence[str]) -> None:
        if self.problems and self.strict:
            raise self.problems[0].error
        for text in [*warnings, *(problem.summary for problem in self.problems)]:
            if text not in self._reported:
                self._reported.add(text)
                warn_caller(text, DataWarning)


def rules_after(recorded: Recorded, versions: Sequence[NewVersion]) -> dict[str, Any]:
    """Return the recorded rules after changes of them."""
    rules = {name: [*record] for name, record in recorded.items()}
    for version in versions:
        rule = rule_of_change(version.text)
        if rule is None:
            rules.pop(version.name, None)
        else:
            rules[version.name] = _record(rule.file, rule.text)
    return rules


def _record(file: str, text: str) -> list[str]:
    return [file, hashlib.blake2b(text.encode(), digest_size=16).hexdigest()]

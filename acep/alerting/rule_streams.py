"""Run rules that come, go and change while a stream runs: those that came together share one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from acep.alerting.rule import AlertRule, read_rule
from acep.errors import SnapshotError
from acep.events.batch import Batch
from acep.matches.flat import Layout
from acep.matches.match_form import MatchForm
from acep.matches.matches import Matches
from acep.matches.records import Counts, Found
from acep.pattern.printing import canonical
from acep.plan.compile import Plan, compile_query
from acep.plan.schema import Schema
from acep.runtime.stream import Stream
from acep.storage.snapshot import seal, unseal

__all__ = ["RuleGroup", "RuleStreams", "matches_of_rule", "rule_of_change", "text_of_change"]

SUMS = ("nodes", "touches", "deciding")
"""The counts of the work of groups, which add up."""


def rule_of_change(text: str) -> AlertRule | None:
    """Return the rule that a change brings (:func:`text_of_change`); ``None`` if it takes the rule away.

    Raises :class:`SnapshotError` for a text that is no rule, as it was when the change was recorded.
    """
    if not text:
        return None
    file, _, rule_text = text.partition("\0")
    return _read(rule_text, file)


def text_of_change(file: str, text: str) -> str:
    """Return what is recorded of a rule that is new or has changed: its file and the text of it."""
    return f"{file}\0{text}"


def _read(text: str, file: str) -> AlertRule:
    rule = read_rule(text, file)
    if not isinstance(rule, AlertRule):
        raise SnapshotError(
            f"the state has a rule that this acep does not read: {rule.error.message}",
            hint="go on with the acep that wrote it, or begin a new state and output",
            code="state_version",
        )
    return rule


@dataclass
class RuleGroup:
    """Rules that came together, over one ``stream``: the rule of each of its plans, and whether it still runs."""

    stream: Stream
    rules: list[AlertRule]
    runs: list[bool] = field(default_factory=list)


class RuleStreams:
    """The streams of rules over events of a ``schema``, in place of a :class:`acep.runtime.stream.Stream`.
    ``fingerprint``: that of a snapshot."""

    learning, walked = 0.0, 0  # seconds and matches of a budget, which rules do not have

    def __init__(self, schema: Schema, engine: str, fingerprint: str, data: bytes | None = None) -> None:
        """Begin without rules, or go on with the snapshot ``data``. Raises :class:`SnapshotError` for another one."""
        self.schema, self.engine, self.fingerprint = schema, engine, fingerprint
        self.groups: list[RuleGroup] = []
        self.ended_work = dict.fromkeys(SUMS, 0)  # of groups that are gone
        if data is not None:
            self._load(unseal(data, fingerprint))

    def change(self, changes: Iterable[tuple[str, str]]) -> int:
        """Take in changes of rules, a name and a text (:func:`rule_of_change`) each, and return how many partial
        matches go on.

        A rule whose query is the same goes on. One whose query has changed begins anew, and its partial matches of
        before are given up, as are those of a rule that is gone.
        """
        new_rules = list[AlertRule]()
        for name, text in changes:
            rule, place = rule_of_change(text), self._place_of(name)
            if place is not None:
                group, index = place
                if rule is not None and canonical(rule.query) == canonical(group.rules[index].query):
                    group.rules[index] = rule
                    continue
                group.runs[index] = False
            if rule is not None:
                new_rules.append(rule)
        for group in self.groups:
            if not any(group.runs):
                self.ended_work = self._sums([group])
        self.groups = [group for group in self.groups if any(group.runs)]
        n_live = self.live
        if new_rules:
            self.groups.append(RuleGroup(self._new_stream(new_rules), new_rules, [True] * len(new_rules)))
        return n_live

    def _place_of(self, name: str) -> tuple[RuleGroup, int] | None:
        for group in self.groups:
            for index, rule in enumerate(group.rules):
                if group.runs[index] and rule.name == name:
                    return group, index
        return None

    def _plans(self, rules: Sequence[AlertRule]) -> list[Plan]:
        return [compile_query(rule.query, self.schema) for rule in rules]

    def _new_stream(self, rules: Sequence[AlertRule]) -> Stream:
        names = [rule.name for rule in rules]
        return Stream(self._plans(rules), self.engine, names=names)

    @property
    def running(self) -> Iterator[tuple[AlertRule, Plan]]:
        """Yield each rule that runs, with its plan, in the order in which :meth:`push` returns their matches."""
        for group in self.groups:
            for rule, plan, runs in zip(group.rules, group.stream.plans, group.runs, strict=True):
                if runs:
                    yield rule, plan

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that the rules read."""
        return tuple(sorted({name for group in self.groups for plan in group.stream.plans for name in plan.columns}))

    @property
    def live(self) -> int:
        """Return how many partial matches of rules that run have a window that is not over."""
        return sum(group.stream.live for group in self.groups)

    def push(self, batch: Batch) -> list[Sequence[Found]]:
        """Push events, and return the matches of each rule that runs."""
        return self._of_running([group.stream.push(batch) for group in self.groups])

    def advance(self, clock: int) -> list[Sequence[Found]]:
        """Advance the time: no event with ``ts <= clock`` (ticks) will come any more."""
        return self._of_running([group.stream.advance(clock) for group in self.groups])

    def finish(self) -> list[Sequence[Found]]:
        """End the stream, and return the remaining matches."""
        return self._of_running([group.stream.finish() for group in self.groups])

    def _of_running(self, matches_by_group: Sequence[Sequence[Sequence[Found]]]) -> list[Sequence[Found]]:
        return [
            matches
            for group, matches_by_plan in zip(self.groups, matches_by_group, strict=True)
            for matches, runs in zip(matches_by_plan, group.runs, strict=True)
            if runs
        ]

    @property
    def counts(self) -> Counts:
        """Return the work of all rules so far, without their matches."""
        return Counts().replace(**self._sums(self.groups))

    def _sums(self, groups: Sequence[RuleGroup]) -> dict[str, int]:
        counts = [group.stream.counts for group in groups]
        return {name: self.ended_work[name] + sum(getattr(part, name) for part in counts) for name in SUMS}

    # State ------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the state as bytes."""
        groups = [
            {
                "rules": [[rule.file, rule.text] for rule in group.rules],
                "runs": group.runs,
                "stream": group.stream.snapshot(),
            }
            for group in self.groups
        ]
        return seal({"groups": groups, "ended_work": self.ended_work}, self.fingerprint)

    def _load(self, state: Any) -> None:
        try:
            self.ended_work = {name: int(state["ended_work"][name]) for name in SUMS}
            for saved in state["groups"]:
                rules = [_read(str(text), str(file)) for file, text in saved["rules"]]
                stream = Stream.restore(self._plans(rules), saved["stream"], self.engine)
                self.groups.append(RuleGroup(stream, rules, [runs is True for runs in saved["runs"]]))
        except SnapshotError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError):
            raise SnapshotError("the state of a bucket does not hold rules", code="state_damaged") from None


def matches_of_rule(plan: Plan, schema: Schema, matches: Sequence[Found]) -> Matches:
    """Return matches of a rule with this plan, over events of a schema, as a user sees them."""
    return Matches(matches, MatchForm.of_plan(plan, schema, layout=Layout.of_plans([plan])))

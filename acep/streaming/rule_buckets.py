"""A bucket of rules that come, go and change while the stream runs: its rows of the result are alerts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from acep.alerting.alerts import ordered_table
from acep.matches.flat import Layout
from acep.matches.matches import Matches
from acep.matches.records import Found
from acep.plan.compile import Plan
from acep.streaming.buckets import Bucket
from acep.streaming.job import Job
from acep.streaming.query_versions import NewVersion
from acep.streaming.results import WaitingGroup, WaitingGroups
from acep.streaming.rule_streams import RuleStreams
from acep.streaming.totals import MAX_COUNT

__all__ = ["RuleBucket"]


class RuleBucket(Bucket):
    """The state of the bucket of a job with rules."""

    rule_streams: RuleStreams

    def _make_stream(self, engine: bytes | None) -> Any:
        self.rule_streams = RuleStreams(self.job, engine)
        self.columns = self.rule_streams.columns
        return self.rule_streams

    def replace(self, new_versions: Sequence[NewVersion], since: int | None, final: int | None) -> int:  # noqa: ARG002
        """Take in changes of rules, which hold for the events that are not matched yet. Return the number of partial
        matches that go on."""
        if self.ended:
            return 0
        n_live = self.rule_streams.change(new_versions)
        self.columns = self.rule_streams.columns
        return n_live

    def _result_tables(
        self,
        matches_by_query: list[Sequence[Found]],
        close: Callable[[WaitingGroups], list[WaitingGroup]],  # noqa: ARG002
    ) -> list[pa.Table]:
        parts = [
            (rule, _matches_of(self.job, plan, matches))
            for (rule, plan), matches in zip(self.rule_streams.running, matches_by_query, strict=True)
            if len(matches)
        ]
        counts = self.totals.queries[0]
        counts.matches = min(counts.matches + sum(len(matches) for _, matches in parts), MAX_COUNT)
        return [ordered_table(parts, self.job.result)] if parts else []

    def _count(self) -> None:
        if not self.ended:
            self.totals.queries[0] = replace(self.rule_streams.counts, matches=self.totals.queries[0].matches)


def _matches_of(job: Job, plan: Plan, matches: Sequence[Found]) -> Matches:
    """Return matches of a rule as a user sees them."""
    names = ("return_kinds", "return_scales", "return_times")
    return Matches(
        matches,
        schema=plan.schema if plan.sources else job.schema,
        keys=plan.keys,
        returns=plan.return_names,
        layout=Layout.of_plans([plan]),
        **{name: getattr(plan, name) for name in names},
    )

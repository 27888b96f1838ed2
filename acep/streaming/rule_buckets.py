"""A bucket of rules that come, go and change while the stream runs: its rows of the result are alerts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from acep.alerting.alerts import ordered_table
from acep.alerting.rule_streams import RuleStreams, matches_of_rule
from acep.matches.records import Found
from acep.streaming.buckets import Bucket
from acep.streaming.query_versions import NewVersion
from acep.streaming.results import WaitingGroup, WaitingGroups
from acep.streaming.totals import MAX_COUNT

__all__ = ["RuleBucket"]


class RuleBucket(Bucket):
    """The state of the bucket of a job with rules."""

    rule_streams: RuleStreams

    def _make_stream(self, engine: bytes | None) -> Any:
        self.rule_streams = RuleStreams(self.job.schema, self.job.engine, self.job.fingerprint, engine)
        self.columns = self.rule_streams.columns
        return self.rule_streams

    def replace(self, new_versions: Sequence[NewVersion], since: int | None, final: int | None) -> int:  # noqa: ARG002
        """Take in changes of rules, which hold for the events that are not matched yet. Return the number of partial
        matches that go on."""
        if self.ended:
            return 0
        n_live = self.rule_streams.change((version.name, version.text) for version in new_versions)
        self.columns = self.rule_streams.columns
        return n_live

    def _result_tables(
        self,
        matches_by_query: list[Sequence[Found]],
        close: Callable[[WaitingGroups], list[WaitingGroup]],  # noqa: ARG002
    ) -> list[pa.Table]:
        parts = [
            (rule, matches_of_rule(plan, self.job.schema, matches))
            for (rule, plan), matches in zip(self.rule_streams.running, matches_by_query, strict=True)
            if len(matches)
        ]
        parts.sort(key=lambda part: part[0].name)
        counts = self.totals.queries[0]
        counts.matches = min(counts.matches + sum(len(matches) for _, matches in parts), MAX_COUNT)
        return [ordered_table(parts, self.job.result)] if parts else []

    def _count(self) -> None:
        if not self.ended:
            self.totals.queries[0] = replace(self.rule_streams.counts, matches=self.totals.queries[0].matches)

"""Match rules over the batches of a stream, in one pass: alerts come in the order of the times at which they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import pyarrow as pa

from acep.alerting.alerts import alert_schema
from acep.alerting.rule import AlertRule
from acep.alerting.rules import Rules
from acep.events.batch import Batch
from acep.matches.arrow import matches_table
from acep.matches.counted import Counted
from acep.matches.matches import Matches
from acep.matches.records import Found
from acep.matching.batch_stream import Passing, QueryResults
from acep.matching.one_table import PART
from acep.runtime.options import ThreadKeywords

__all__ = ["RulePass"]


class RulePass(Passing):
    """Rules over the batches of a stream, in order of time, as :class:`Passing` has one query.

    Results come in the order of time over all rules, except for those of a rule whose matches may be given late, as it
    chooses among them: these come at the end, or all together with others that are decided then.

    Where there is one result of a query there, each rule has one here: a list of pairs of a rule and its result. For
    ``"exists"`` there is whether any rule has a match.
    """

    def __init__(
        self, rules: Rules, arrow: pa.Schema, rows: int, *, output: str, counts: bool, **options: Unpack[ThreadKeywords]
    ) -> None:
        super().__init__(rules, arrow, rows, output=output, counts=counts, **options)
        self.rules = rules.rules
        self._parts = [QueryResults(self.tables, n, output, counts=counts) for n in range(len(self.rules))]

    @property
    def alert_schema(self) -> pa.Schema:
        """Return the columns of alerts that are matches."""
        return alert_schema([matches_table(self.like_of(number)).schema for number in range(len(self.rules))])

    def like_of(self, number: int) -> Matches:
        """Return an empty result of a rule."""
        return self.tables.matches(number, [])

    def _results_of(self, matches_by_query: Sequence[Sequence[Found]], *, last: bool = False) -> Any:
        if self.output == "exists":
            return self._has_any(matches_by_query)
        assert self.tables.stream is not None
        ends = [self.tables.stream.earliest_open_end(number) for number in range(len(self.rules))]
        low = None if last else min((end for end in ends if end is not None), default=None)
        results: list[tuple[AlertRule, Any]] = []
        for rule, part, matches, end in zip(self.rules, self._parts, matches_by_query, ends, strict=True):
            results.append((rule, part.take(matches, None if end is None else low, last=last)))
        return results

    def _has_match_in(self, batch: Batch) -> bool:
        stream = self.tables.stream
        assert stream is not None
        return any(self._has_any(stream.push(part)) for part in batch.parts(PART))

    def _has_any(self, matches_by_query: Sequence[Sequence[Found]]) -> bool:
        """Return whether a rule has a match, by what the last call returned or counted."""
        stream = self.tables.stream
        assert stream is not None
        counted = [stream.take_counted(number) for number in range(len(self.rules))]
        has_counted = any(len(count) if isinstance(count, Counted) else count for count in counted)
        return bool(has_counted) or any(map(len, matches_by_query))

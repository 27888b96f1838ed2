"""Define what a follower has done when it stops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from acep.alerting.rule import RuleProblem
from acep.events.files.options import BadLines
from acep.matches.report import Report

__all__ = ["Followed"]


@dataclass(frozen=True)
class Followed:
    """The result of a follower.

    ``batches`` (micro-batches) and ``seconds`` are of this run. The ``report`` covers all work since the state was new,
    as :attr:`acep.Matches.report` does for one process; ``reports`` has one for each query by its name ("" if it is the
    only one). ``ended``: the stream has ended, and all matches that waited for its end are decided. ``bad`` counts the
    lines that were skipped in this run. ``folder`` holds the results. ``problems`` are those of the rules when their
    folder was last looked at. ``bad_files`` are the files that were moved aside in this run, where they are now.
    ``gaps`` says of files that grow what could not be read any more in this run.
    """

    batches: int
    seconds: float
    report: Report
    reports: Mapping[str, Report]
    ended: bool
    bad: BadLines
    folder: Path
    problems: tuple[RuleProblem, ...] = ()
    bad_files: tuple[Path, ...] = ()
    gaps: tuple[str, ...] = ()

    def of_clause(self) -> Followed:
        """Return the same of a MATCH_RECOGNIZE clause, whose matches are rows of the result."""
        reports = {name: replace(report, is_clause=True) for name, report in self.reports.items()}
        return replace(self, report=replace(self.report, is_clause=True), reports=reports)

    def __str__(self) -> str:
        batches = "1 micro-batch" if self.batches == 1 else f"{self.batches:,} micro-batches"
        end = "the stream has ended" if self.ended else "the stream goes on"
        text = f"{batches} in {self.seconds:.1f} s; {end}\nin all {self.report}"
        if self.bad_files:
            n_files = len(self.bad_files)
            text += f"\n{n_files:,} bad {'file was' if n_files == 1 else 'files were'} moved aside: {self.bad_files[0]}"
            text += ", ..." if n_files > 1 else ""
        if self.gaps:
            text += f"\nnot all lines could be read: {len(self.gaps):,} {'gap' if len(self.gaps) == 1 else 'gaps'}"
        return text

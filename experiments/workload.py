"""The workload of a benchmark: a stream, queries on it, the output asked for, and the number of matches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import acep
from acep.matches.batches import Batches
from experiments.backtrack import backtrack
from experiments.native import ENGINES, run_natively
from experiments.stock import StockQuery

__all__ = ["Count", "RunResult", "Workload", "run"]

Count = Callable[[pa.Table, int], int]  # of a table and the number of a query


@dataclass(frozen=True)
class Workload:
    """``queries`` run one after another over the same ``events()``; ``counted(table, query number)``, where there is
    one, is the number of matches found without an engine. ``small``: as many of the events as a test
    can bear with the reference engine; 0: none.
    ``stock``: the query as the backtrack algorithm takes it. ``file``: the real stream that is needed."""

    name: str
    about: str
    events: Callable[[], pa.Table]
    queries: tuple[str, ...]
    output: str = "matches"
    counted: Count | None = None
    small: int = 2_000
    stock: StockQuery | None = None
    file: str | None = None

    @property
    def group(self) -> str:
        """Return the first word of the name: w1, w2, w3, v, expt1, ..., pseq, pset, growth."""
        return self.name.split("-")[0]

    def count_expected(self, table: pa.Table) -> int | None:
        """Return the number of matches of all queries on a table, if that can be counted."""
        if self.counted is None:
            return None
        return sum(self.counted(table, number) for number in range(len(self.queries)))


@dataclass(frozen=True)
class RunResult:
    """The result of a run: matches, and, if the engine reports them, touches and match nodes."""

    matches: int
    touches: int | None
    nodes: int | None


def run(workload: Workload, table: pa.Table, engine: str) -> RunResult:
    """Match all queries of a workload on a table; matches become an Arrow table, or record batches.

    ``engine``: one of acep's, one of the native core's by its name (:data:`experiments.native.ENGINES`; matches stay
    columns of numbers), or ``backtrack``. Raises what :func:`acep.match` raises, and :class:`ValueError` where the
    engine does not know the query.
    """
    if engine == "backtrack":
        if workload.stock is None:
            raise ValueError(f"the backtrack algorithm does not know the query of {workload.name}")
        backtracked = backtrack(table, workload.stock)
        return RunResult(len(backtracked.matches), backtracked.touches, backtracked.postponed)
    if engine in ENGINES:
        runs = [run_natively(text, table, engine) for text in workload.queries]
        return RunResult(sum(r.matches for r in runs), sum(r.touches for r in runs), sum(r.nodes for r in runs))
    matches, touches, nodes = 0, 0, 0
    is_reported = True
    for text in workload.queries:
        result: Any = acep.match(table, acep.parse(text), output=workload.output, engine=engine)
        # Matches may be enumerated only when they are looked at: here they are all made, as a table or batch by batch.
        if isinstance(result, Batches):
            matches += sum(batch.num_rows for batch in result)
        else:
            matches += int(result) if isinstance(result, acep.Count) else result.to_arrow().num_rows
        report: acep.Report | None = getattr(result, "report", None)
        is_reported = is_reported and report is not None
        if report is not None:
            touches, nodes = touches + report.work, nodes + report.made
    return RunResult(matches, touches if is_reported else None, nodes if is_reported else None)

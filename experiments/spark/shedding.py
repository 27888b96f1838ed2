"""Overload: ``python -m experiments.spark.shedding [--queries NAME,..] [--batches N] [--scale S] [--output FOLDER]``.

How near micro-batches of ``acep.spark.match`` come to ``Budget(latency=)``, and what is then found of the match points;
beside it what a user of Spark can do without acep: drop random events, or the events of random keys, before the match.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import log
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
from pyspark import cloudpickle

import acep
from acep.overload.batch_log import Decision, decide
from acep.overload.early_shedding import EarlyShedding
from acep.overload.load import SENT
from acep.spark import get_session, match, matching
from acep.spark.early_shedding import plan_early_shedding
from acep.spark.listening import COUNTS, observations, progress_of
from acep.spark.query_start import await_listeners
from experiments.ages import read_origin
from experiments.machine import describe_machine
from experiments.results import RESULTS, write_page
from experiments.results import table as markdown_table
from experiments.spark.routes import DELAY, QUERIES
from experiments.spark.running import RETAINED_PROGRESS, SCHEMA, TRIGGER_TIME, events, write_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Trial", "main", "run_trials"]

HEAVY = (
    "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) { [k] AND c.x * c.x < 0.0005 * a.x * b.x } "
    "WITHIN 500 seconds"
)
LOADS = {"seq": (QUERIES["seq"], 500_000), "rise": (QUERIES["rise"], 500_000), "heavy": (HEAVY, 200_000)}
"""Queries by name, and the rows of a micro-batch."""
KEYS = {"heavy": 600}
"""Keys, where there are others than in the other experiments: with fewer ones matching is the cost."""
BETWEEN = (0.25, 0.5, 0.75)
"""Targets, as parts of the way from the floor to what is needed."""
PARTS = {"seq": (1 / 2,), "rise": (1 / 2,), "heavy": (1 / 10,)}
"""Targets as parts of the time that is needed: the input is twice, or ten times, what fits in."""
WARM = 10
"""Micro-batches that do not count."""
CORES = 2
WHOLE_SHARE = 0.95  # of the events: if more travel under a budget it is kept by the workers


@dataclass(frozen=True)
class Trial:
    """One run: the ``query``, the ``way`` (exact, floor, budget, random events, random keys), the ``target`` in seconds
    (0: none), medians over the micro-batches that count of their ``seconds`` and of the share of the events that was
    ``carried``, how many match ``points`` were found in these, and what part that is of the exact ones (``recall``).
    ``told``: the recall that the report estimates (-1: it tells none)."""

    query: str
    way: str
    target: float
    seconds: float
    carried: float
    points: int
    recall: float
    told: float


def run_trials(spark: SparkSession, name: str, batches: int, work: Path, scale: float = 1.0) -> Iterator[Trial]:
    """Run a query without a budget, with everything shed, and under budgets between the two and of a part of it."""
    query, rows = LOADS[name][0], max(1, round(LOADS[name][1] * scale))
    source = work / name
    table = events(rows * batches)
    if name in KEYS:
        numbers = pa.array(table["k"].to_numpy() % KEYS[name])
        table = table.set_column(table.schema.get_field_index("k"), "k", numbers)
    write_events(table, source, rows, end=True)

    def trial(way: str, target: float = 0.0, share: float | None = None, **options: Any) -> Trial:
        return _run(spark, Trial(name, way, target, 0, 0, 0, 0, -1), query, source, work, share, **options)

    trial("floor", share=0.05)  # Spark and its workers are just starting
    exact = trial("exact")
    floor = trial("floor", share=0.0)
    yield _with_recall(exact, exact)
    yield _with_recall(floor, exact)
    span = exact.seconds - floor.seconds
    targets = [floor.seconds + part * span for part in BETWEEN]
    targets += [part * exact.seconds for part in PARTS[name]]
    for target in targets:
        budgeted = trial("budget", target)
        yield _with_recall(budgeted, exact)
        if target == targets[len(BETWEEN) // 2]:
            for way, column in (("random events", "n"), ("random keys", "k")):

                def drop_share(share: float, way: str = way, column: str = column) -> Trial:
                    return replace(trial(way, drop=_drop_by_hash(column, share)), carried=round(share, 4))

                yield _with_recall(_match_time(drop_share, budgeted, exact, floor), exact)


def _match_time(drop_share: Callable[[float], Trial], budgeted: Trial, exact: Trial, floor: Trial) -> Trial:
    """Drop events at random so that a micro-batch takes as long as under the budget."""
    if budgeted.carried < WHOLE_SHARE or exact.seconds <= floor.seconds:
        return drop_share(budgeted.carried)
    # The workers shed, too. The time is taken for a power of the share, which one run tells.
    part = min(max((budgeted.seconds - floor.seconds) / (exact.seconds - floor.seconds), 0.01), 0.99)
    first = drop_share(part)
    time_part = min(max((first.seconds - floor.seconds) / (exact.seconds - floor.seconds), 0.001), 0.99)
    power = log(time_part) / log(part)
    return first if 0.9 < power < 1.1 else drop_share(part ** (1 / power))


def _drop_by_hash(column: str, share: float) -> Callable[[DataFrame], DataFrame]:
    from pyspark.sql import functions as sf

    is_chosen = sf.pmod(sf.xxhash64(sf.col(column), sf.lit(7)), sf.lit(1 << 30)) < round(share * (1 << 30))
    # The row that ends the stream has neither a number nor a key.
    return lambda frame: frame.where(is_chosen | sf.col(column).isNull())


def _with_recall(trial: Trial, exact: Trial) -> Trial:
    return replace(trial, recall=round(trial.points / exact.points, 4) if exact.points else 1.0)


def _run(
    spark: SparkSession,
    trial: Trial,
    query: str,
    source: Path,
    work: Path,
    share: float | None,
    drop: Callable[[DataFrame], DataFrame] | None = None,
) -> Trial:
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=work))
    points = dict[int, int]()

    def sink(matches: DataFrame, batch: int) -> None:
        points[batch] = matches.count()

    latency = 3600.0 if share is not None else trial.target
    options: dict[str, Any] = {"budget": acep.Budget(latency=latency)} if latency else {}
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(source))
    number = len(list(source.glob("*.parquet")))
    spark.conf.set(RETAINED_PROGRESS, str(number + 10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with mock.patch.object(matching, "plan_early_shedding", _plan_with(share)):
            matches = match(
                drop(frame) if drop else frame,
                acep.parse(query),
                state=folder / "state",
                watermark=DELAY,
                seq="n",
                id="n",
                output="points",
                **options,
            )
        writer = matches.writeStream.foreachBatch(sink).trigger(availableNow=True)
        running = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        running.awaitTermination()
        await_listeners(spark)
    counted = range(max(1, min(WARM, number - 3)), number - 1)  # the last one only ends the stream
    seconds_by_batch = {
        progress["batchId"]: progress["durationMs"][TRIGGER_TIME] / 1000 for progress in running.recentProgress
    }
    carried = _carried_share(progress for progress in running.recentProgress if progress["batchId"] in counted)
    shutil.rmtree(folder, ignore_errors=True)
    last = progress_of(running.recentProgress[-1])
    assert last is not None
    recall = last.report.recall
    return Trial(
        trial.query,
        trial.way,
        round(trial.target, 3),
        round(median(seconds_by_batch[number] for number in counted), 3),
        round(carried, 4),
        sum(points[number] for number in counted),
        0.0,
        -1.0 if recall is None else round(recall, 4),
    )


def _carried_share(progresses: Iterable[Any]) -> float:
    """Return the share of the needed events that travelled in some micro-batches."""
    rows = [row for progress in progresses for row in observations(progress["observedMetrics"], COUNTS).values()]
    needed, sent = (sum(row[name] for row in rows) for name in ("needed", SENT))
    return sent / needed if needed else 1.0


def _plan_with(share: float | None) -> Callable[..., Any]:
    """Return the function that plans the shedding of a stream; it carries this ``share`` of the events, if one is
    given."""

    def plan(*arguments: Any) -> Any:
        job, result, shedding = plan_early_shedding(*arguments)
        return job, result, shedding if share is None else _Forced(**vars(shedding), share=share)

    return plan


@dataclass(frozen=True)
class _Forced(EarlyShedding):
    share: float = 1.0

    def decide(self, decision: Decision) -> Decision:
        """Carry the same share always."""
        return decide(decision, self.admission, self.share, self.delay)


# Workers cannot import this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def _read_other_trials(path: Path, measured: Collection[str]) -> list[Trial]:
    """Return the trials of queries that were measured before, and not now."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["query"] not in measured]
    kinds: dict[str, type] = {"query": str, "way": str, "points": int}
    return [Trial(**{name: kinds.get(name, float)(value) for name, value in row.items()}) for row in rows]


WORDS = """Written by `python -m experiments.spark.shedding`; [how to read
it](../internals/benchmarks.md#overload-on-spark).
Spark has two cores. `exact` has no budget, `floor` sheds every event before it travels. `budget` is
`Budget(latency=target)` without a history. `random events` and `random keys` drop events by a hash before acep sees
them, so many that a micro-batch takes as long as under the budget. The recall is that of match points, against the
exact run; `told` is what the report estimates (nothing, if its interval is too wide for one number). A budget should
find at least .8 of its share of the time between the floor and the exact run: that is `at least`. Where partial
matches multiply (`heavy`) the workers shed partial matches, and events travel as far as Spark alone can carry them in
time ([why](../explanation/spark_overload.md#where-matching-is-the-cost)). The rows of a query are of one run;
`--queries` measures some queries again, and leaves the others."""


def write_body(results: Sequence[Trial]) -> str:
    """Return the tables of the page."""
    parts = []
    for name in dict.fromkeys(trial.query for trial in results):
        query_trials = [trial for trial in results if trial.query == name]
        exact, floor = (next(trial for trial in query_trials if trial.way == way) for way in ("exact", "floor"))
        lines = []
        for trial in query_trials:
            part = (trial.target - floor.seconds) / (exact.seconds - floor.seconds)
            lines.append(
                (
                    trial.way,
                    f"{trial.target:.2f}" if trial.target else "",
                    f"{trial.seconds:.2f}",
                    f"{trial.seconds / trial.target:.2f}" if trial.target else "",
                    f"{trial.carried:.2f}",
                    f"{trial.recall:.3f}",
                    f"{trial.told:.3f}" if trial.told >= 0 else "",
                    f"{0.8 * part:.3f}" if trial.target and part > 0 else "",
                )
            )
        head = ("", "target, s", "median, s", "of the target", "carried", "recall", "told", "at least")
        query, rows = LOADS[name]
        parts.append(f"## {name}\n\n`{query}`, {rows:,} rows a micro-batch.\n\n{markdown_table(head, lines)}")
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None, session: SparkSession | None = None) -> int:
    """Run the command, in ``session`` if one is given."""
    parser = argparse.ArgumentParser(prog="python -m experiments.spark.shedding", description=(__doc__ or "")[:9])
    parser.add_argument("--queries", default=",".join(LOADS), help=f"names, with commas ({','.join(LOADS)})")
    parser.add_argument("--batches", type=int, default=60, help="micro-batches (60)")
    parser.add_argument("--scale", type=float, default=1.0, help="rows of a micro-batch, as a multiple (1)")
    parser.add_argument("--output", type=Path, help="folder for shedding.csv and shedding.md")
    options = parser.parse_args(arguments)
    usual = not options.output and options.batches == 60 and options.scale == 1
    folder = options.output or (RESULTS if usual else None)
    spark = session or get_session(
        **{"spark.master": f"local[{CORES}]", "spark.sql.shuffle.partitions": str(CORES), "spark.driver.memory": "4g"}
    )
    work, results = Path(tempfile.mkdtemp(prefix="acep-bench-")), []
    try:
        for name in options.queries.split(","):
            for trial in run_trials(spark, name, options.batches, work, options.scale):
                print(trial, flush=True)
                results.append(trial)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if session is None:
            spark.stop()
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        earlier = _read_other_trials(folder / "shedding.csv", {trial.query for trial in results})
        machine = describe_machine() | (read_origin(folder / "shedding.md") if earlier else {})
        results = [*results, *earlier]
        results.sort(key=lambda trial: [*LOADS].index(trial.query))
        with (folder / "shedding.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [field.name for field in fields(Trial)], lineterminator="\n")
            writer.writeheader()
            writer.writerows(asdict(trial) for trial in results)
        words, title = WORDS, "Overload on Spark"
        print(write_page(folder, "shedding", title=title, words=words, machine=machine, body=write_body(results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

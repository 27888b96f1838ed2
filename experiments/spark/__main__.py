"""The speed on Spark: ``python -m experiments.spark [--rows R,..] [--routes NAME,..] [--repeat N] [--output FOLDER]``.

All routes run in one session with two cores, in random order in each repetition. With no option the results go to
``docs/results/``; otherwise they are printed, and written where ``--output`` says.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from acep.errors import AcepError
from acep.spark.failures import error_in
from acep.spark.session import get_session
from experiments.machine import described
from experiments.results import RESULTS, short
from experiments.spark.figures import Cell, cells
from experiments.spark.page import written
from experiments.spark.routes import ROUTES, Route, chosen, missing
from experiments.spark.running import Run, WrongMatchesError, events, run_static, run_stream, write_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["main"]

CORES = 2
ROWS = (1_000, 25_000, 200_000, 1_000_000)
LEAST, MOST = 8, 40  # micro-batches of a stream
FILES = 20  # of a static DataFrame
WARM = (3, 20_000)  # micro-batches, and rows of each, that every route runs before it is measured


class _Options(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Refuse an option in one line."""
        self.exit(2, f"{self.prog}: {message}\n")


def _positive(text: str) -> int:
    number = int(text.replace("_", ""))
    if number < 1:
        raise ValueError(text)
    return number


_positive.__name__ = "positive number"  # as argparse calls it where it refuses one


def _options() -> argparse.ArgumentParser:
    parser = _Options(prog="python -m experiments.spark", description=(__doc__ or "").partition("\n")[0])
    told = ",".join(map(str, ROWS))
    parser.add_argument("--rows", help=f"rows a micro-batch, with commas ({told})")
    parser.add_argument("--routes", help="names or beginnings of names, with commas: yardstick,state (all)")
    parser.add_argument("--repeat", type=_positive, default=5, help="repetitions (5)")
    parser.add_argument("--events", type=_positive, default=4_000_000, help="events of a stream, about (4000000)")
    parser.add_argument("--batches", type=_positive, default=MOST, help=f"micro-batches of a stream at most ({MOST})")
    parser.add_argument("--partitions", type=_positive, default=CORES, help=f"of the yardstick's shuffle ({CORES})")
    parser.add_argument("--buckets", type=_positive, help="buckets of acep (its default)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of runs (0)")
    parser.add_argument("--output", type=Path, help="folder for spark.csv, spark.md and spark.svg")
    parser.add_argument("--list", action="store_true", help="list the routes")
    return parser


def main(arguments: Sequence[str] | None = None, session: SparkSession | None = None) -> int:
    """Run the command, in ``session`` if one is given; 1 where a route fails or finds other matches than there are."""
    parser = _options()
    given = parser.parse_args(arguments)
    try:
        routes = chosen(given.routes.split(",") if given.routes else [])
        sizes = sorted({_positive(one) for one in given.rows.split(",")}) if given.rows else list(ROWS)
    except ValueError as error:
        told = str(error)
        parser.error(
            told if told.startswith("no route") else f"argument --rows: {given.rows!r} is no list of positive numbers"
        )
    if given.batches < 2:
        parser.error("argument --batches: the first micro-batch does not count, so at least 2")
    if given.list:
        print("\n".join(f"{route.name:18s}{route.about}" for route in ROUTES.values()))
        return 0
    notes = [note for route in routes if (note := missing(route))]
    print("".join(f"left out: {note}\n" for note in notes), end="", flush=True)
    usual = all(getattr(given, one) == parser.get_default(one) for one in vars(given) if one not in ("output", "seed"))
    folder = given.output or (RESULTS if usual else None)
    runs: list[Run] = []
    spark = session or get_session(
        **{"spark.master": f"local[{CORES}]", "spark.sql.shuffle.partitions": str(CORES), "spark.driver.memory": "4g"}
    )
    work = Path(tempfile.mkdtemp(prefix="acep-bench-"))
    try:
        for run in measured(spark, [one for one in routes if not missing(one)], sizes, work, given):
            runs.append(run)
            middle = sorted(run.whole)[len(run.took) // 2]
            speed = short(run.rows / middle * 1000)
            print(f"{run.repetition} {run.rows:>9,} {run.route:18s}{middle:8.0f} ms  {speed:>7s} events/s", flush=True)
    except Exception as failure:
        mine = failure if isinstance(failure, WrongMatchesError | AcepError) else error_in(failure)
        if mine is None:
            raise
        print(f"python -m experiments.spark: {mine}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if session is None:
            spark.stop()
    found = cells(runs)
    print("\n".join(map(_line, found)))
    if folder:
        machine = described() | {"pyspark": metadata.version("pyspark")}
        print(f"written to {written(folder, found, machine, notes)}")
    return 0


def measured(
    spark: SparkSession, routes: Sequence[Route], sizes: Sequence[int], work: Path, given: argparse.Namespace
) -> Iterator[Run]:
    """Measure all runs. In each repetition sizes and routes come in random order, so that a slower hour affects all of
    them."""
    streams, static = ([one for one in routes if one.static is kind] for kind in (False, True))
    options = {"partitions": given.partitions, "buckets": given.buckets}
    numbers = {rows: min(max(given.events // rows, LEAST), given.batches) for rows in sizes if streams}
    longest = max([given.events, *(rows * number for rows, number in numbers.items())])
    whole = events(longest)
    for rows, number in numbers.items():
        write_events(whole.slice(0, rows * number), work / str(rows), rows, end=True)
    if static:
        write_events(whole.slice(0, given.events), work / "static", -(-given.events // FILES), end=False)
    warm, few = WARM[0], min(WARM[1], *sizes)
    if streams:
        write_events(whole.slice(0, warm * few), work / "warm", few, end=True)
    for route in streams:
        run_stream(spark, route, work / "warm", few, warm, 0, **options)
    order = random.Random(given.seed)  # noqa: S311 - the order of runs is no secret
    for repetition in range(given.repeat):
        for rows in order.sample([*numbers], len(numbers)):
            for route in order.sample(streams, len(streams)):
                yield run_stream(spark, route, work / str(rows), rows, numbers[rows], repetition, **options)
        for route in order.sample(static, len(static)):
            yield run_static(spark, route, work / "static", given.events, repetition, **options)


def _line(one: Cell) -> str:
    told = f"{one.route:18s}{one.rows:>9,} rows  {short(one.events_per_second):>7s} events/s  ratio {one.ratio:.3f}"
    told += f" ({one.ratio_low:.3f} to {one.ratio_high:.3f})"
    told += f"  {one.more_ms:+.0f} ms ({one.more_low:+.0f} to {one.more_high:+.0f})"
    return f"{told}  state {one.state_bytes / 1e6:.2f} MB" if one.state_bytes >= 0 else told


if __name__ == "__main__":
    sys.exit(main())

"""Read the traces of a driver on a cluster: the matches of each micro-batch, and which executor stepped a partition."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq

__all__ = ["Steps", "count_batches", "log_settings", "read_steps", "rows_by_batch"]

STEPS = {"MapInArrow", "FlatMapGroupsInPandasWithState"}
"""The operators of Spark that step buckets, behind a shuffle."""


def count_batches(checkpoint: Path, kind: Literal["offsets", "commits"]) -> int:
    """Return how many micro-batches have been begun (``offsets``), or done (``commits``)."""
    folder = checkpoint / kind
    return sum(path.name.isdigit() for path in folder.iterdir()) if folder.exists() else 0


def rows_by_batch(matches: Path) -> dict[int, list[dict[str, Any]]]:
    """Return the matches that each micro-batch wrote: into files that the log of a sink of Spark's names, or into a
    folder of its own, as :func:`tests.spark.killed_schedules.write_batches` does."""
    log = matches / "_spark_metadata"
    if not log.exists():
        folders = sorted(matches.glob("batch=*")) if matches.exists() else []
        return {int(path.name.removeprefix("batch=")): _rows_of(sorted(path.glob("*.parquet"))) for path in folders}
    files: dict[int, list[Path]] = {}
    earlier: set[Path] = set()
    entries = {int(path.name.removesuffix(".compact")): path for path in log.iterdir() if path.name[0].isdigit()}
    for batch in sorted(entries):  # a compact one has those of all earlier ones, too
        lines = entries[batch].read_text().splitlines()[1:]
        paths = [Path(unquote(urlparse(json.loads(line)["path"]).path)) for line in lines]
        files[batch] = [path for path in paths if path not in earlier]
        earlier.update(files[batch])
    return {batch: _rows_of(paths) for batch, paths in files.items()}


def _rows_of(files: Iterable[Path]) -> list[dict[str, Any]]:
    rows = [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist(maps_as_pydicts="strict")]
    return [{name: row[name] for name in ("key", "bindings") if name in row} for row in rows]


def log_settings(folder: Path) -> dict[str, str]:
    """Return the settings by which a driver logs into a folder which executor did what."""
    folder.mkdir()
    names = {"enabled": "true", "dir": folder.as_uri(), "rolling.enabled": "false", "compress": "false"}
    return {f"spark.eventLog.{name}": value for name, value in names.items()}


@dataclass
class Steps:
    """The executors that stepped the buckets of each partition of a streaming query, one after the other, and those
    that were lost. A name is that of an application and the number of an executor there."""

    executors: defaultdict[tuple[str, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    lost: set[str] = field(default_factory=set)

    def taken_over(self) -> list[tuple[str, int]]:
        """Return the partitions that a lost executor had stepped, and another one stepped later."""
        pairs = ((partition, pairwise(names)) for partition, names in self.executors.items())
        return [place for place, steps in pairs if any(old in self.lost and new != old for old, new in steps)]


def read_steps(logs: Path) -> Steps:
    """Read the logs of drivers, in the order in which these began."""
    steps = Steps()
    for log in sorted(logs.iterdir()):
        application = log.name.removesuffix(".inprogress")
        query_of_stage: dict[int, str] = {}
        for event in _events_in(log):
            match event["Event"]:
                case "SparkListenerStageSubmitted" if _is_step(event["Stage Info"]["RDD Info"]):
                    query_of_stage[event["Stage Info"]["Stage ID"]] = event["Properties"]["sql.streaming.queryId"]
                case "SparkListenerTaskEnd" if event["Stage ID"] in query_of_stage:
                    task = event["Task Info"]
                    if event["Task End Reason"]["Reason"] == "Success":
                        partition = query_of_stage[event["Stage ID"]], task["Partition ID"]
                        steps.executors[partition].append(f"{application} {task['Executor ID']}")
                case "SparkListenerExecutorRemoved":
                    steps.lost.add(f"{application} {event['Executor ID']}")
    return steps


def _events_in(log: Path) -> Iterator[dict[str, Any]]:
    for line in log.read_text().splitlines():
        try:
            yield json.loads(line)
        except ValueError:  # the driver was killed while it wrote
            return


def _is_step(datasets: list[dict[str, Any]]) -> bool:
    operators = {json.loads(dataset["Scope"])["name"] for dataset in datasets if "Scope" in dataset}
    return bool(operators & STEPS) and any(dataset["Name"] == "ShuffledRowRDD" for dataset in datasets)

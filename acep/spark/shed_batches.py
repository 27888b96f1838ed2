"""Account on the driver for each micro-batch of a stream whose workers shed events before they travel.

Spark reports a micro-batch when it is done. The counts and the seconds in that report are written beside the state, and
the tasks of the next micro-batch wait for them (:mod:`acep.spark.workers.batch_decision`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from acep.bucket_state.folders import folder_of
from acep.errors import AcepError, DataWarning, SnapshotError
from acep.overload.batch_log import BatchLog
from acep.overload.early_shedding import EarlyShedding
from acep.spark.job import SentJob
from acep.spark.listening import COUNTS, METRICS, SHED, observations
from acep.spark.watched_runs import warn_of_run
from acep.spark.workers.state_place import StatePlace, call_name

__all__ = ["account_for_batch", "account_for_run", "end_shedding", "register_call"]


@dataclass(frozen=True)
class _ShedCall:
    """A call of match whose workers shed events: its ``name`` beside the state, the ``folder`` of the state (``None``:
    in the checkpoint), and its ``shedding``."""

    name: str
    folder: str | None
    shedding: EarlyShedding


_CALLS: dict[str, _ShedCall] = {}  # by the end of the names of their observations
_FOLDERS: dict[str, str] = {}  # of the state in the checkpoint, by the id of the run
_BEHIND: set[tuple[str, str]] = set()  # runs and calls that fall behind; with "", runs whose counts cannot be written


def register_call(job: SentJob, place: StatePlace) -> None:
    """Remember a call of match, until the process ends, for the micro-batches that Spark will report."""
    assert place.shedding is not None
    _CALLS[job.fingerprint[:8]] = _ShedCall(call_name(job), place.folder, place.shedding)


def account_for_run(run: str, query: str, state_folder: str, plan: str) -> None:
    """Begin a run, whose state is in ``state_folder`` unless a call names another, and whose plan is ``plan``. If the
    last run was killed before the driver had counted its last micro-batch, that one stays without counts."""
    _FOLDERS[run] = state_folder
    for key, call in _CALLS.items():
        if f"{COUNTS}{key}" not in plan:
            continue
        log = BatchLog(folder_of(call.folder or state_folder), query, call.name)
        if (batch := log.newest()) is None or (begun := log.read_begin(batch)) is None:
            continue
        if log.read_end(batch) is None:
            carried = replace(begun.carried, uncounted=begun.carried.uncounted + 1)
            log.end(batch, replace(begun, carried=carried, load=begun.load.begin_run()))


def account_for_batch(spark_progress: Any, name: str) -> None:
    """Write down the counts of a micro-batch, and warn when the stream ``name`` begins to fall behind its bound."""
    run, query, batch = str(spark_progress.runId), str(spark_progress.id), int(spark_progress.batchId)
    observed = spark_progress.observedMetrics
    seconds = float(spark_progress.durationMs.get("triggerExecution", 0)) / 1000
    for key, counts in observations(observed, COUNTS).items():
        call = _CALLS.get(key)
        if call is None or (folder := call.folder or _FOLDERS.get(run)) is None:
            continue
        try:
            log = BatchLog(folder_of(folder), query, call.name)
            if (decision := log.read_begin(batch)) is None:
                if counts["rows"]:
                    raise SnapshotError(f"it does not see what the workers write in `{folder}`")
                continue
            texts = list(_texts_in(observed, key))
            outcome = log.end(batch, call.shedding.next_decision(decision, counts, texts, seconds))
        except (AcepError, OSError) as error:
            _warn_of_failure(name, run, error)
            continue
        is_behind = call.shedding.is_behind(outcome)
        if is_behind and (run, key) not in _BEHIND:
            warn_of_run(f"stream {name}: {call.shedding.behind_text(outcome, seconds)}", DataWarning)
        (_BEHIND.add if is_behind else _BEHIND.discard)((run, key))


def _warn_of_failure(name: str, run: str, error: Exception) -> None:
    """Warn, once in a run, that the driver cannot write down what a micro-batch took."""
    if (run, "") not in _BEHIND:
        _BEHIND.add((run, ""))
        warn_of_run(
            f"stream {name}: its budget is not kept, and each micro-batch waits for the driver in vain, as that has no"
            f" access to the state: {error}",
            DataWarning,
        )


def end_shedding(run: str) -> None:
    """Forget a run."""
    _FOLDERS.pop(run, None)
    _BEHIND.difference_update({pair for pair in _BEHIND if pair[0] == run})


def _texts_in(observed: Any, key: str) -> Iterator[str]:
    """Yield the metrics of the buckets of a call, and the texts of its workers on what was shed."""
    for prefix, column in ((METRICS, "told"), (SHED, "texts")):
        row = observations(observed, prefix).get(key)
        yield from row[column].splitlines() if row else ()

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

__all__ = ["account_for_batch", "end_shedding", "register_call", "remember_folder"]


@dataclass(frozen=True)
class _ShedCall:
    """A call of match whose workers shed events: its ``name`` beside the state, the ``folder`` of the state (``None``:
    in the checkpoint), and its ``shedding``."""

    name: str
    folder: str | None
    shedding: EarlyShedding


_CALLS: dict[str, _ShedCall] = {}  # by the end of the names of their observations
_FOLDERS: dict[str, str] = {}  # of the state in the checkpoint, by the id of the run
_COUNTED: set[tuple[str, str]] = set()  # runs and calls of which a micro-batch was counted
_BEHIND: set[tuple[str, str]] = set()  # runs and calls that fall behind
_UNSEEN: set[str] = set()  # runs whose state the driver does not see


def register_call(job: SentJob, place: StatePlace) -> str:
    """Remember a call of match, until the process ends, for the micro-batches that Spark will report; return the end of
    the names of its observations. Each call has its own, as the same job may run under several budgets."""
    assert place.shedding is not None
    key = f"{job.fingerprint[:8]}-{len(_CALLS)}"
    _CALLS[key] = _ShedCall(call_name(job), place.folder, place.shedding)
    return key


def remember_folder(run: str, state_folder: str) -> None:
    """Remember where a run keeps its state, unless a call names another folder."""
    _FOLDERS[run] = state_folder


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
            if (run, key) not in _COUNTED:  # Spark and its workers are just starting
                decision = replace(decision, load=decision.load.begin_run())
                _COUNTED.add((run, key))
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
    if run not in _UNSEEN:
        _UNSEEN.add(run)
        warn_of_run(
            f"stream {name}: its budget is not kept, and each micro-batch waits for the driver in vain, as that has no"
            f" access to the state: {error}",
            DataWarning,
        )


def end_shedding(run: str) -> None:
    """Forget a run."""
    _FOLDERS.pop(run, None)
    _UNSEEN.discard(run)
    for pairs in (_COUNTED, _BEHIND):
        pairs.difference_update({pair for pair in pairs if pair[0] == run})


def _texts_in(observed: Any, key: str) -> Iterator[str]:
    """Yield the metrics of the buckets of a call, and the texts of its workers on what was shed."""
    for prefix, name, column in ((METRICS, key.partition("-")[0], "told"), (SHED, key, "texts")):
        row = observations(observed, prefix).get(name)
        yield from row[column].splitlines() if row else ()

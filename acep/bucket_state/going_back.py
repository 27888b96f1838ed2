"""Take a stopped streaming query back to the beginning of an earlier micro-batch.

The order of removal makes it safe to be killed at any point. Versions of the state go first, the newest before older
ones: as long as one is missing that the checkpoint asks for, the query is refused. Commits go next, and offsets last,
again the newest first. So the query begins with an earlier micro-batch only when its whole state is there, and nothing
of a later one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

from acep.bucket_state.checkpoints import CheckpointLog, read_checkpoint
from acep.bucket_state.folders import Folder
from acep.bucket_state.run_orders import Runs
from acep.bucket_state.state_listing import CallState, check_version, list_calls, list_versions, ranges_text
from acep.errors import SnapshotError

__all__ = ["Removal", "go_back", "plan_removal", "remove_all", "restart_batches"]


@dataclass(frozen=True)
class Removal:
    """Folders and files that have to be removed so that a query goes back to the beginning of micro-batch ``batch``.
    ``last`` is the last one that it has begun. The paths are in the order of removal: ``versions`` are folders below
    the folder of state, ``offsets`` and ``commits`` files below the checkpoint. ``calls`` are the paths of the calls
    whose state is used."""

    batch: int
    last: int
    calls: tuple[str, ...]
    versions: tuple[str, ...]
    commits: tuple[str, ...]
    offsets: tuple[str, ...]

    @property
    def count(self) -> int:
        """The number of folders and files."""
        return len(self.versions) + len(self.commits) + len(self.offsets)


def restart_batches(log: CheckpointLog, calls: tuple[CallState, ...]) -> tuple[int, ...]:
    """Return the micro-batches of a checkpoint to whose beginning it can go back, with these calls."""
    return tuple(
        batch
        for batch in log.offsets
        if log.may_begin_again(batch) and all(call.may_begin_again(batch) for call in _used_calls(calls, batch))
    )


def plan_removal(checkpoint: Folder, state: Folder, batch: int) -> Removal:
    """Return what has to be removed to go back to the beginning of a micro-batch, after reading the state with which it
    begins.

    Raises :class:`SnapshotError` if that state or a part of the checkpoint is missing or damaged, and
    :class:`DataError` if a folder cannot be read.
    """
    log = read_checkpoint(checkpoint)
    calls = list_calls(state, log.query)
    if not calls:
        raise SnapshotError(
            f"`{state.shown}` has no state of the query {log.query} of the checkpoint `{checkpoint.shown}`",
            hint="name the folder that is state= of the query, by --state FOLDER; for state in Spark's own store see"
            " docs/howto/spark_recipes.md",
            code="state_other",
        )
    if not log.may_begin_again(batch):
        raise _beyond_error(checkpoint, log, calls, batch)
    used_calls = _used_calls(calls, batch)
    _check_state(state, log, used_calls, batch)
    later_versions = sorted((-number, call.path) for call in calls for number in call.folders if number >= batch)
    return Removal(
        batch,
        max((*log.offsets, *log.commits)),
        tuple(call.path for call in used_calls),
        tuple(f"{path}/{-number}" for number, path in later_versions),
        tuple(f"commits/{number}" for number in reversed(log.commits) if number >= batch),
        tuple(f"offsets/{number}" for number in reversed(log.offsets) if number > batch),
    )


def go_back(checkpoint: Folder, state: Folder, batch: int) -> Removal:
    """Take a query back to the beginning of a micro-batch, and return what was removed.

    A run of the query that is alive, against what it is told, is refused from its next micro-batch on. Raises
    :class:`SnapshotError` and :class:`DataError` as :func:`plan_removal` does, before anything is removed; and
    :class:`SnapshotError` afterwards if something was written in between.
    """
    for call in plan_removal(checkpoint, state, batch).calls:
        Runs(state, call, str(uuid4())).begin()  # now no other run can begin a micro-batch
    removal = plan_removal(checkpoint, state, batch)
    for _ in remove_all(checkpoint, state, removal):
        pass
    if plan_removal(checkpoint, state, batch).count:
        raise SnapshotError(
            f"the query of the checkpoint `{checkpoint.shown}` has written while it was taken back",
            hint="stop it, and go back once more",
            code="state_used",
        )
    return removal


def remove_all(checkpoint: Folder, state: Folder, removal: Removal) -> Iterator[str]:
    """Remove what is to be removed, in order, and yield the path of each once it is gone.

    Raises :class:`DataError` if something cannot be removed.
    """
    for path in removal.versions:
        state.remove(path)
        yield path
    for path in (*removal.commits, *removal.offsets):
        folder, _, name = path.rpartition("/")
        checkpoint.remove_file(f"{folder}/.{name}.crc")  # a file without its checksum can be read, not the other way
        checkpoint.remove_file(path)
        yield path


def _used_calls(calls: tuple[CallState, ...], batch: int) -> tuple[CallState, ...]:
    """Return the calls whose state a micro-batch begins with."""
    return tuple(call for call in calls if call.begins_with(batch - 1))


def _check_state(state: Folder, log: CheckpointLog, used_calls: tuple[CallState, ...], batch: int) -> None:
    """Raise :class:`SnapshotError` if the state with which a micro-batch begins is missing or damaged."""
    complaints = [] if used_calls or not batch else [f"`{state.shown}` has no state after micro-batch {batch - 1}"]
    for call in used_calls if batch else ():
        shown = f"`{state.shown}/{call.path}`"
        version = list_versions(state, call.path).get(batch - 1, {})
        damaged = check_version(state, call.path, version)[1]
        if damaged:
            complaints.append(f"state is damaged: `{state.shown}/{damaged[0]}`")
        elif version.keys() != frozenset(range(call.buckets)):
            complaints.append(f"{shown} has not the state of all {call.buckets} buckets after micro-batch {batch - 1}")
    if complaints:
        calls = list_calls(state, log.query, reads_all=True)  # so that the hint names no other damaged version
        raise SnapshotError(
            complaints[0],
            hint=_batches_hint(tuple(number for number in restart_batches(log, calls) if number != batch)),
            code="state_damaged",
        )


def _beyond_error(checkpoint: Folder, log: CheckpointLog, calls: tuple[CallState, ...], batch: int) -> SnapshotError:
    complaint = f"the checkpoint `{checkpoint.shown}` cannot go back to micro-batch {batch}: "
    if log.last is None:
        complaint += "it has begun none"
    elif batch > log.last:
        complaint += f"the last one that it has begun is {log.last}"
    else:
        complaint += "it has no longer the offsets and commits of this one and the one before"
    return SnapshotError(complaint, hint=_batches_hint(restart_batches(log, calls)), code="state_other")


def _batches_hint(batches: tuple[int, ...]) -> str:
    if not batches:
        return "begin a new checkpoint, and read the source from its beginning"
    return f"go back to {'one of the micro-batches' if len(batches) > 1 else 'micro-batch'} {ranges_text(batches)}"

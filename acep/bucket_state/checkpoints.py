"""Read which micro-batches a checkpoint of Spark has begun and done. Nothing of Spark is needed for this."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from acep.bucket_state.file_names import NUMBER
from acep.bucket_state.folders import Folder, absolute_place, folder_of, place_below
from acep.bucket_state.run_orders import UUID
from acep.errors import SnapshotError

__all__ = ["STATE_FOLDER", "CheckpointLog", "is_checkpoint", "read_checkpoint", "state_of_checkpoint"]

STATE_FOLDER = "acep"
"""The folder in a checkpoint in which acep keeps state."""

_BATCH = re.compile(NUMBER)


@dataclass(frozen=True)
class CheckpointLog:
    """The id of a streaming query, and in order the numbers of its micro-batches that are begun (``offsets``) and done
    (``commits``), as far as Spark keeps them."""

    query: str
    offsets: tuple[int, ...]
    commits: tuple[int, ...]

    @property
    def last(self) -> int | None:
        """The last micro-batch that was begun; ``None``: none was."""
        return self.offsets[-1] if self.offsets else None

    def may_begin_again(self, batch: int) -> bool:
        """Return whether Spark can go back to the beginning of a micro-batch: it was begun, and the one before is
        done."""
        has_previous = not batch or (batch - 1 in self.offsets and batch - 1 in self.commits)
        return batch in self.offsets and has_previous


def is_checkpoint(folder: Folder) -> bool:
    """Return whether a folder looks like a checkpoint of Spark."""
    names = folder.names("")
    return "metadata" in names or {"offsets", "commits"} <= set(names)


def state_of_checkpoint(checkpoint: str, state: str | None) -> Folder:
    """Return the folder of the state of a checkpoint: ``state``, or else the one that is in the checkpoint."""
    return folder_of(place_below(checkpoint, STATE_FOLDER) if state is None else absolute_place(state))


def read_checkpoint(folder: Folder) -> CheckpointLog:
    """Read the log of a checkpoint.

    Raises :class:`SnapshotError` if the id of its query cannot be read, and :class:`DataError` if the folder cannot.
    """
    try:
        query = json.loads(folder.read("metadata") or b"")["id"]
    except (KeyError, TypeError, ValueError):
        query = None
    if not isinstance(query, str) or not UUID.fullmatch(query):
        raise SnapshotError(
            f"the checkpoint `{folder.shown}` has no id of a query: its file `metadata` is missing or damaged",
            hint="name the folder that is checkpointLocation of the query",
            code="state_damaged",
        )
    return CheckpointLog(query, _numbers(folder, "offsets"), _numbers(folder, "commits"))


def _numbers(folder: Folder, path: str) -> tuple[int, ...]:
    return tuple(sorted(int(name) for name in folder.names(path) if _BATCH.fullmatch(name)))

"""Write the state of a call anew under the name of another call, which goes on from the same micro-batch.

The old state stays as it is, so a kill at any point loses nothing. As long as one file of the new state is missing, the
new call is refused, and the old one goes on. Of the two the first that does a micro-batch goes on: for the other one
the state after it is missing then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import uuid4

from acep.bucket_state.call_description import CallDescription, replace_description
from acep.bucket_state.checkpoints import CheckpointLog
from acep.bucket_state.file_names import Damage, StateFile, pack_state, unpack_state
from acep.bucket_state.folders import Folder
from acep.bucket_state.run_orders import Runs
from acep.bucket_state.state_listing import CallState, list_calls, list_versions
from acep.errors import SnapshotError

__all__ = ["CurrentState", "read_current", "write_current"]


@dataclass(frozen=True)
class CurrentState:
    """The state of a ``call`` with which the next micro-batch of a stopped query begins: that after micro-batch
    ``batch``, the bytes of each bucket in ``states``, and the names of its ``files``."""

    call: CallState
    batch: int
    states: Mapping[int, bytes]
    files: Mapping[int, StateFile]

    @property
    def greatest(self) -> int | None:
        """The greatest time of all rows so far, in ticks."""
        return max((file.greatest for file in self.files.values() if file.greatest is not None), default=None)

    def digest(self, bucket: int, call: str) -> str:
        """Return the digest for a bucket of another call: the same whenever it is written from this state."""
        digests = " ".join(self.files[number].digest for number in sorted(self.files))
        return hashlib.blake2b(f"{digests} {call} {bucket}".encode(), digest_size=16).hexdigest()


def read_current(state: Folder, log: CheckpointLog, checkpoint: str, call: str | None = None) -> CurrentState:
    """Read the state with which the next micro-batch of a query begins. ``call`` begins the name of one of its calls,
    ``checkpoint`` is for errors.

    Raises :class:`SnapshotError` if there is none yet, if it is incomplete or damaged, or if several calls have one.
    """
    last = log.last
    batch = -1 if last is None else last if last in log.commits else last - 1
    if batch < 0:
        raise SnapshotError(
            f"the query of the checkpoint `{checkpoint}` has done no micro-batch, so it has no state",
            hint="start it as it should be",
            code="state_other",
        )
    calls = [c for c in list_calls(state, log.query) if c.begins_with(batch) and c.call.startswith(call or "")]
    if len(calls) != 1:
        raise _choice_error(state, calls, batch)
    (current,) = calls
    files = list_versions(state, current.path)[batch]
    if files.keys() != frozenset(range(current.buckets)):
        raise SnapshotError(
            f"`{state.shown}/{current.path}` has not the state of all {current.buckets} buckets after micro-batch"
            f" {batch}",
            hint="go back to an earlier micro-batch: acep state CHECKPOINT --go-back N",
            code="state_damaged",
        )
    states = {bucket: _read(state, f"{current.path}/{batch}/{file.name}") for bucket, file in files.items()}
    return CurrentState(current, batch, states, files)


def _choice_error(state: Folder, calls: list[CallState], batch: int) -> SnapshotError:
    if not calls:
        return SnapshotError(
            f"`{state.shown}` has no such state after micro-batch {batch}",
            hint="acep state CHECKPOINT lists what there is; --state FOLDER names the folder of state of the query",
            code="state_other",
        )
    return SnapshotError(
        f"{len(calls)} calls have a state after micro-batch {batch}: {', '.join(call.call[:8] for call in calls)}",
        hint=f"say which, as --call {calls[0].call[:8]}; acep state CHECKPOINT shows their queries",
        code="state_other",
    )


def _read(state: Folder, path: str) -> bytes:
    try:
        return unpack_state(path, state.read(path) or b"")
    except Damage:
        raise SnapshotError(
            f"state is damaged: `{state.shown}/{path}`",
            hint="go back to an earlier micro-batch: acep state CHECKPOINT --go-back N",
            code="state_damaged",
        ) from None


def write_current(
    state: Folder, old: CurrentState, call: str, description: CallDescription, states: Mapping[int, bytes]
) -> None:
    """Write the states of all buckets of another call, which goes on where the old one is.

    A run of the query that is alive, against what it is told, is refused from its next micro-batch on. Raises
    :class:`SnapshotError` if the other call has been there already with another state, and :class:`DataError` if
    something cannot be written.
    """
    path = f"{old.call.query}/{call}"
    digests = {bucket: old.digest(bucket, call) for bucket in states}
    for batch, version in list_versions(state, path).items():
        if batch > old.batch or (
            batch == old.batch and any(digests.get(bucket) != file.digest for bucket, file in version.items())
        ):
            raise SnapshotError(
                f"`{state.shown}/{path}` has a state of its own after micro-batch {batch}",
                hint="the query can be started as it was then; or go back: acep state CHECKPOINT --go-back N",
                code="state_other",
            )
    Runs(state, old.call.path, str(uuid4())).begin()  # now no run of the old call can begin a micro-batch
    order = Runs(state, path, str(uuid4())).begin()
    replace_description(state, path, replace(description, after=old.batch))  # it says how many buckets there must be
    for bucket, data in states.items():
        file = StateFile(old.batch, bucket, order, old.greatest, digests[bucket])
        file_path = f"{path}/{old.batch}/{file.name}"
        state.write(file_path, pack_state(file_path, data), parents=1)

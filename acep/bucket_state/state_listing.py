"""List what is in a folder of state: calls, their versions, and what of them is missing or damaged."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from acep.bucket_state.call_description import CallDescription, read_description
from acep.bucket_state.file_names import NUMBER, Damage, StateFile, state_files_among, unpack_state
from acep.bucket_state.folders import Folder
from acep.bucket_state.run_orders import UUID

__all__ = ["CallState", "check_version", "list_calls", "list_versions", "names_queries", "ranges_text"]

_BATCH = re.compile(NUMBER)
_CALL = re.compile(r"[0-9a-f]{1,64}")


@dataclass(frozen=True)
class CallState:
    """The state of one call of a streaming query.

    In order: ``folders`` are the micro-batches that have a folder, ``written`` those of which there is the state of
    some bucket, and ``versions`` those of which there is that of all ``buckets``, and no damage was seen. ``size`` is
    the length of the newest version in bytes, and ``greatest`` the newest time of its rows, in ticks. ``missing`` says
    which files should be there and are not, and ``damaged`` has the paths of files that cannot be read.
    """

    query: str
    call: str
    buckets: int
    folders: tuple[int, ...]
    written: tuple[int, ...]
    versions: tuple[int, ...]
    size: int
    greatest: int | None
    missing: tuple[str, ...]
    damaged: tuple[str, ...]
    description: CallDescription | None

    @property
    def path(self) -> str:
        """The path of the call below the folder of state."""
        return f"{self.query}/{self.call}"

    def begins_with(self, batch: int) -> bool:
        """Return whether the micro-batch after ``batch`` begins with a state of this call: not if it ended before, as
        one of other options, or began later with what was written from another call."""
        if not self.written or self.written[-1] < batch:
            return False
        after = None if self.description is None else self.description.after
        is_done = batch in (self.versions if batch == after else self.written)
        return after is None or batch > after or is_done

    def may_begin_again(self, batch: int) -> bool:
        """Return whether the state with which a micro-batch begins is there."""
        return not batch or batch - 1 in self.versions


def names_queries(folder: Folder) -> bool:
    """Return whether a folder has folders of streaming queries."""
    return any(UUID.fullmatch(name) for name in folder.names(""))


def list_calls(folder: Folder, query: str | None = None, *, reads_all: bool = False) -> tuple[CallState, ...]:
    """List the calls below a folder, of all streaming queries or of one.

    The files of the newest version are read and checked; with ``reads_all`` those of all versions.

    Raises :class:`DataError` if the folder cannot be read.
    """
    queries = sorted(name for name in folder.names("") if UUID.fullmatch(name) and query in (None, name))
    return tuple(
        _list_call(folder, name, call, reads_all=reads_all)
        for name in queries
        for call in sorted(folder.names(name))
        if _CALL.fullmatch(call)
    )


def list_versions(folder: Folder, path: str) -> dict[int, dict[int, StateFile]]:
    """Return by micro-batch and bucket the state files of a call, in order, of each that of the newest run."""
    batches = sorted(int(name) for name in folder.names(path) if _BATCH.fullmatch(name))
    versions = {}
    for batch in batches:
        state_files = state_files_among(batch, folder.names(f"{path}/{batch}"))
        ordered = sorted(state_files, key=lambda state_file: (state_file.bucket, state_file.run))
        versions[batch] = {state_file.bucket: state_file for state_file in ordered}
    return versions


def check_version(folder: Folder, path: str, version: Mapping[int, StateFile]) -> tuple[int, list[str]]:
    """Read the files of a version; return the length of their data, and the paths of those that are damaged."""
    size, damaged = 0, []
    for state_file in version.values():
        file_path = f"{path}/{state_file.batch}/{state_file.name}"
        try:
            size += len(unpack_state(file_path, folder.read(file_path) or b""))
        except Damage:
            damaged.append(file_path)
    return size, damaged


def _list_call(folder: Folder, query: str, call: str, *, reads_all: bool) -> CallState:
    path = f"{query}/{call}"
    description, versions = read_description(folder, path), list_versions(folder, path)
    buckets = 0 if description is None else description.buckets
    buckets = buckets or 1 + max((bucket for version in versions.values() for bucket in version), default=-1)
    wanted = frozenset(range(buckets))
    complete = [batch for batch, version in versions.items() if version.keys() == wanted]
    newest = complete[-1] if complete else None
    size, damaged, sound = 0, list[str](), []
    for batch in complete:
        if reads_all or batch == newest:
            batch_size, batch_damaged = check_version(folder, path, versions[batch])
            size, damaged = batch_size, damaged + batch_damaged
            sound += [] if batch_damaged else [batch]
        else:
            sound.append(batch)
    return CallState(
        query,
        call,
        buckets,
        tuple(versions),
        tuple(batch for batch, version in versions.items() if version),
        tuple(sound),
        size,
        None if newest is None else _greatest(versions[newest]),
        tuple(_missing_texts(versions, buckets)),
        tuple(damaged),
        description,
    )


def _missing_texts(versions: Mapping[int, Mapping[int, StateFile]], buckets: int) -> list[str]:
    """Say which files should be there. A micro-batch after which no other has a file may have been stopped in the
    middle, and misses nothing."""
    texts = []
    filled = [batch for batch, version in versions.items() if version]
    for batch, following in pairwise(filled):
        lacking = [str(bucket) for bucket in range(buckets) if bucket not in versions[batch]]
        if lacking:
            texts.append(f"micro-batch {batch}: bucket{'s' * (len(lacking) > 1)} {', '.join(lacking)}")
        if following > batch + 1:
            last = f" to {following - 1}" if following > batch + 2 else ""
            texts.append(f"micro-batch{'es' * bool(last)} {batch + 1}{last}: all buckets")
    return texts


def _greatest(version: Mapping[int, StateFile]) -> int | None:
    ticks = [state_file.greatest for state_file in version.values() if state_file.greatest is not None]
    return max(ticks, default=None)


def ranges_text(numbers: Sequence[int]) -> str:
    """Write numbers in order as ranges.

    >>> ranges_text([1, 2, 3, 7]), ranges_text([])
    ('1 to 3, 7', 'none')
    """
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(f"{first} to {last}" if last > first else f"{first}" for first, last in ranges) or "none"

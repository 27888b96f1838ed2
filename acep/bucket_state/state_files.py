"""Keep the state of buckets in files: one immutable file for each bucket and micro-batch.

The page docs/internals/spark_state.md describes the files and when a state file is refused. This module does not need
Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from acep.bucket_state.call_description import (
    CallDescription,
    list_differences,
    read_description,
    write_description,
)
from acep.bucket_state.file_names import NUMBER, OF_ALL, Damage, StateFile, pack_state, state_files_among, unpack_state
from acep.bucket_state.folders import Folder, folder_of
from acep.bucket_state.run_orders import UUID, Runs
from acep.errors import DataError, SnapshotError

__all__ = ["StateFile", "StateFiles"]

_CALL = re.compile(r"[0-9a-f]{1,64}")
_DIGEST = re.compile(r"[0-9a-f]{32}")
_BATCH = re.compile(NUMBER)


class StateFiles:
    """The state files of one call of match in one run of a streaming query. Call :meth:`begin_batch` first."""

    def __init__(
        self,
        folder: str | Folder,
        *,
        query: str,
        call: str,
        run: str,
        buckets: int,
        keep: int,
        describe: Callable[[], CallDescription] | None = None,
    ) -> None:
        """Open the state files of a call below ``folder``, as a text an absolute path or a URI of Arrow's file systems.

        ``query`` and ``run`` are Spark's ids of the query and of its run, ``call`` is hexadecimal. There are
        ``buckets`` buckets, and a stream can restart at each of the last ``keep`` micro-batches. ``describe`` returns
        what is written beside the state about the call, and with what errors compare it.

        Raises :class:`DataError` if one of them cannot be part of a file name, or the folder cannot be used.
        """
        for kind, text, form in (("query id", query, UUID), ("call", call, _CALL), ("run id", run, UUID)):
            if not isinstance(text, str) or not form.fullmatch(text):
                raise DataError(f"the {kind} {text!r} cannot be part of a file name", code="option_invalid")
        if buckets < 1 or keep < 1:
            raise DataError("state needs at least one bucket, and one micro-batch that is kept", code="option_invalid")
        self.buckets = buckets
        self.keep = keep
        self._folder = folder_of(folder) if isinstance(folder, str) else folder
        self._call = f"{query}/{call}"
        self._runs = Runs(self._folder, self._call, run)
        self._describe = describe
        self._order: int | None = None

    def begin_batch(self, batch: int) -> dict[int, StateFile]:
        """Return the state files of all buckets with which a micro-batch begins; none for the first one of the stream.

        The first call of a run also makes it the newest run.

        Raises :class:`SnapshotError` if state files are missing, if the checkpoint was rolled back or copied, if the
        source does not repeat itself, or if there is a newer run.
        """
        self._order = self._runs.find_order()
        state_files = self._list_state_files(batch - 1) if batch else ()
        if batch and {state_file.bucket for state_file in state_files} != set(range(self.buckets)):
            raise self._missing_error(batch)
        if (
            batch
            and len({(state_file.bucket, state_file.rows) for state_file in _comparable(state_files)}) > self.buckets
        ):
            raise self._other_rows_error(batch - 1)
        if not self._runs.has_begun:
            self._refuse_later(batch)
            self._order = self._runs.begin()
            if self._describe is not None:
                write_description(self._folder, self._call, self._describe())
        # Prefer a state file of this run, then that of the newest run, whose results were used.
        return {
            state_file.bucket: state_file
            for state_file in sorted(
                state_files, key=lambda state_file: (state_file.run == self._order, state_file.run)
            )
        }

    def greatest_before(self, batch: int) -> int | None:
        """Return the greatest time, in ticks, that the buckets had seen before a micro-batch; ``None``: none."""
        ticks = [state_file.greatest for state_file in self._list_state_files(batch - 1)] if batch else []
        return max((tick for tick in ticks if tick is not None), default=None)

    def read(self, state_file: StateFile) -> bytes:
        """Return the data of a state file.

        Raises :class:`SnapshotError` if its file is missing, damaged or of another version of the format.
        """
        path = self._path(state_file)
        content = self._folder.read(path)
        if content is None:
            raise SnapshotError(
                f"state is missing: {self._shown_path(path)}",
                hint=_hint_to_go_back(state_file.batch),
                code="state_damaged",
            )
        try:
            return unpack_state(path, content)
        except Damage as damage:
            if damage.form is not None:
                raise SnapshotError(
                    f"state has format version {damage.form}, which this acep does not read: {self._shown_path(path)}",
                    hint="go on with the acep that wrote it, or begin a new checkpoint",
                    code="state_version",
                ) from None
            raise SnapshotError(
                f"state is damaged: {self._shown_path(path)}",
                hint=_hint_to_go_back(state_file.batch),
                code="state_damaged",
            ) from None

    @property
    def has_begun(self) -> bool:
        """Whether this process has begun the run with some micro-batch."""
        return self._runs.has_begun

    @property
    def call(self) -> str:
        """A name of the call that is unique over all folders."""
        return f"{self._folder.shown}/{self._call}"

    def unique_name(self, state_file: StateFile) -> str:
        """Return a name of a state file that is unique over all folders."""
        return f"{self._folder.shown}/{self._path(state_file)}"

    def write(self, batch: int, bucket: int, greatest: int | None, digest: str, data: bytes) -> StateFile:
        """Write the state file of a bucket after a micro-batch, and return it once it is durable.

        If this run has written it already, the first one stays.

        Raises :class:`SnapshotError` if there is a state file of other rows, or a newer run.
        """
        if not 0 <= bucket < self.buckets or not _DIGEST.fullmatch(digest):
            raise DataError(f"no version has bucket {bucket} and digest {digest!r}")
        state_files = self._list_state_files(batch)
        state_file = StateFile(batch, bucket, self._current_order(state_files), greatest, digest)
        if len({new.rows for new in _comparable((*state_files, state_file)) if new.bucket == bucket}) > 1:
            raise self._other_rows_error(batch)
        damaged = False
        if state_file in state_files:
            try:
                self.read(state_file)
            except SnapshotError:
                damaged = True
            else:
                return state_file
        path = self._path(state_file)
        # If a state file exists, the folder of its micro-batch is durable already.
        self._folder.write(path, pack_state(path, data), replace=damaged, parents=0 if state_files else 1)
        return state_file

    def has_written(self, batch: int) -> bool:
        """Return whether this run has written the state files of all buckets after a micro-batch."""
        order = self._runs.find_order()
        return {state_file.bucket for state_file in self._list_state_files(batch) if state_file.run == order} == set(
            range(self.buckets)
        )

    def clean(self, batch: int) -> None:
        """Remove state files older than those with which the last ``keep`` micro-batches before ``batch`` begin.

        Files that killed writers left behind are removed, too. One call in each micro-batch is enough.
        """
        oldest = batch - self.keep - 1
        batches = self._batches()
        old_batches = [number for number in batches if number < oldest]
        if old_batches and any(self._list_state_files(later) for later in batches if later >= oldest):
            for old_batch in old_batches:
                self._folder.remove(f"{self._call}/{old_batch}")

    def _list_state_files(self, batch: int) -> tuple[StateFile, ...]:
        return state_files_among(batch, self._folder.names(f"{self._call}/{batch}"))

    def _batches(self) -> list[int]:
        return sorted(int(name) for name in self._folder.names(self._call) if _BATCH.fullmatch(name))

    def _path(self, state_file: StateFile) -> str:
        return f"{self._call}/{state_file.batch}/{state_file.name}"

    def _shown_path(self, path: str) -> str:
        return f"`{self._folder.shown}/{path}`"

    def _current_order(self, state_files: tuple[StateFile, ...]) -> int:
        """Return the order of this run; look it up where a task may be late: in a new folder, or beside newer runs."""
        if self._order is None or not state_files or any(state_file.run > self._order for state_file in state_files):
            self._order = self._runs.require_newest()
        return self._order

    def _refuse_later(self, batch: int) -> None:
        """Raise :class:`SnapshotError` if there are state files of micro-batches after this one."""
        for later_batch in reversed(self._batches()):
            if later_batch <= batch:
                return
            if self._list_state_files(later_batch):
                raise SnapshotError(
                    f"the stream goes on with micro-batch {batch}, but the state in {self._shown_path(self._call)} goes"
                    f" on to micro-batch {later_batch}: the checkpoint was rolled back or copied",
                    hint=f"to go back, remove the folders {batch} and later from there; a copy of a checkpoint needs a"
                    " state= folder of its own",
                )

    def _missing_error(self, batch: int) -> SnapshotError:
        query, _, call = self._call.partition("/")
        other_calls = [name for name in self._folder.names(query) if name != call and _CALL.fullmatch(name)]
        candidates = [
            f"{query}/{name}" for name in other_calls if f"{batch - 1}" in self._folder.names(f"{query}/{name}")
        ]
        changed = bool(candidates) and not self._batches()
        return SnapshotError(
            f"the stream goes on with micro-batch {batch}, but {self._shown_path(self._call)} has not the state of all"
            f" {self.buckets} buckets after micro-batch {batch - 1}"
            + (
                f"; there is that of another query, or of other options{self._difference(candidates)}"
                if changed
                else ""
            ),
            hint="go on with the query and the options that the checkpoint was made with, or begin a new checkpoint;"
            " `acep state CHECKPOINT --buckets N` or `--replace QUERY` may let it go on in another form"
            if changed
            else _hint_to_go_back(batch - 1),
        )

    def _difference(self, calls: list[str]) -> str:
        """Say how other calls differ from this one, as far as there are descriptions of them."""
        if self._describe is None:
            return ""
        current = self._describe()
        stored = (read_description(self._folder, call) for call in calls)
        texts = sorted({list_differences(description, current) for description in stored if description is not None})
        return f": {'; or '.join(filter(None, texts))}" if any(texts) else ""

    def _other_rows_error(self, batch: int) -> SnapshotError:
        return SnapshotError(
            f"micro-batch {batch} has other rows than when its state in {self._shown_path(self._call)} was written: the"
            " source does not repeat itself, or two calls use one folder",
            hint="give each call of match a state= folder of its own, and use a source that repeats itself; after a"
            f" rollback of the checkpoint remove the folders {batch} and later from there",
        )


def _comparable(state_files: tuple[StateFile, ...]) -> list[StateFile]:
    """Return the state files whose rows can be compared: without those that an earlier acep wrote in the same
    micro-batch, before it was killed, since their greatest times are others."""
    return [state_file for state_file in state_files if state_file.mark == OF_ALL] or list(state_files)


def _hint_to_go_back(batch: int) -> str:
    return (
        "use the state= folder and the query that the checkpoint was made with, on a cluster a folder that all workers"
        " reach, and let a function for foreachBatch read something of each micro-batch; if the checkpoint was rolled"
        f" back too far, or state was lost, roll it back to the beginning of micro-batch {batch} or before, or begin a"
        " new checkpoint (acep state --go-back, docs/howto/spark_recipes.md)"
    )

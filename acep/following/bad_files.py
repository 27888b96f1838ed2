"""Move files that cannot be read into a folder beside, each with a text that says why, and go on without them."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from acep import logs
from acep.bucket_state.folders import give_name, sync_folder
from acep.errors import DataError, DataWarning, warn_caller
from acep.events.files.formats import reason_of
from acep.growing.stretches import FilePart

__all__ = ["REASON", "BadFileError", "BadFolder"]

REASON = ".reason"
"""The ending of the text that says why a file was moved."""
_PLACES = 1_000_000
_SHORTAGES = (errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT)


@dataclass(eq=False)
class BadFileError(Exception):
    """A file that cannot be read, before its micro-batch is planned, and the error."""

    part: FilePart
    error: DataError


class BadFolder:
    """The folder of the files that cannot be read. ``moved`` has those of this run, where they are now."""

    def __init__(self, folder: Path, source: Path) -> None:
        """``source``: the folder of events, on the same disk.

        Raises :class:`DataError` for a folder that is on another disk, or inside the folder of events.
        """
        self.folder, self.source = folder, source
        self.moved: list[Path] = []
        if folder.is_relative_to(source) and all(part[0] not in "._" for part in folder.relative_to(source).parts):
            raise DataError(
                f"bad_folder= is a folder whose files would be taken for events: `{folder}`",
                hint=f"name one outside of `{source}`, or one whose name begins with `_`",
                code="option_invalid",
            )
        try:
            place = next(path for path in (folder, *folder.parents) if path.exists())
            is_same_disk = place.stat().st_dev == source.stat().st_dev
        except OSError as error:
            raise self._unusable_error(error) from None
        if not is_same_disk:
            raise DataError(
                f"`{folder}` is on another disk than `{source}`, so that a file cannot be moved there as a whole",
                hint="bad_folder= names a folder on the same disk",
                code="option_invalid",
            )

    def refuse(self, part: FilePart, error: DataError) -> None:
        """Raise :class:`BadFileError` for a file that can be moved. One that is reached by a link stays, and so does
        one that the system has no room to read, as it may be a good one."""
        if part.path.resolve() == part.path and not _is_shortage(error):
            raise BadFileError(part, error)

    def move(self, bad: BadFileError) -> None:
        """Move a file and write its reason, durably, and warn of it. No file is written over; after a kill the next
        call goes on. A file that is gone is no mistake.

        Raises :class:`DataError` if it cannot be moved.
        """
        path = bad.part.path
        text = f"{bad.error.code}: {' '.join(str(bad.error.message).split())}"
        text += f"; hint: {' '.join(bad.error.hint.split())}" if bad.error.hint else ""
        try:
            if not path.exists():
                return
            target = self._free_place(path, bad.part.name)
            _write_reason(target.with_name(target.name + REASON), text)
            if give_name(path, target) or target.samefile(path):  # the same if a run that was killed had begun
                path.unlink(missing_ok=True)
            for folder in (target.parent, path.parent):
                sync_folder(folder)
        except OSError as error:
            raise self._unusable_error(error, path) from None
        self.moved.append(target)
        logs.info(__name__, "`%s` was moved to `%s`", path, target)
        warn_caller(f"`{bad.part.name}` was moved to `{target}`: {bad.error.message}", DataWarning)

    def _free_place(self, path: Path, name: str) -> Path:
        """Return where a file goes: under its own name, else with a number before its ending."""
        first = self.folder / name
        first.parent.mkdir(parents=True, exist_ok=True)
        for number in range(1, _PLACES):
            target = first if number == 1 else first.with_name(f"{first.stem}.{number}{first.suffix}")
            if not os.path.lexists(target) or (target.exists() and target.samefile(path)):
                return target
        raise FileExistsError(f"`{first}` is there under all names")

    def _unusable_error(self, error: OSError, path: Path | None = None) -> DataError:
        """Return the error of a folder of bad files, or of the file at ``path``, which its own folder holds fast."""
        if path is not None and error.filename == str(path):
            return DataError(
                f"`{path}` cannot be moved to `{self.folder}`: {reason_of(error)}",
                hint=f'the follower needs the right to write in `{path.parent}`; bad_files="stop" stops at a bad file',
                code="file_write",
            )
        return DataError(
            f"bad files cannot be moved to `{self.folder}`: {reason_of(error)}",
            hint='bad_folder= names a folder that can be written; bad_files="stop" stops at a bad file',
            code="file_write",
        )


def _is_shortage(error: BaseException) -> bool:
    """Return whether an error came of a lack of memory, of open files or of space on a disk.

    >>> _is_shortage(DataError("`1.csv` is no text")), _is_shortage(OSError(errno.EMFILE, "too many open files"))
    (False, True)
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or (isinstance(cause, OSError) and cause.errno in _SHORTAGES):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _write_reason(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with draft.open("x", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(f"{text}\n")
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)

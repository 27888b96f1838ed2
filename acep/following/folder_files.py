"""List the files of a growing folder in order, and detect files that have changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from acep.errors import DataError, DataWarning, warn_caller
from acep.events.files.folders import check_hard_links, walk_folder
from acep.events.files.formats import reason_of, split_format
from acep.growing.file_identity import born_ns, digest_of

__all__ = ["FolderFile", "Listing", "check_same", "find_new", "identify", "list_arrivals"]

RENAME_HINT = "write a file elsewhere, or under a name that begins with `.` or ends in `.tmp`, then rename it"


@dataclass(frozen=True)
class FolderFile:
    """A file of the folder: its path below the folder, its size in bytes, its times of modification and of change (of
    its data, name or rights) in nanoseconds, and its number on the disk. One that is taken has also the time of its
    creation and the digest of its bytes (:func:`identify`). Files that an earlier acep has taken have size and time
    of modification only."""

    name: str
    size: int
    mtime_ns: int
    ctime_ns: int = 0
    inode: int = 0
    born_ns: int = 0
    digest: str = ""

    @classmethod
    def from_stat(cls, name: str, stat: os.stat_result) -> FolderFile:
        """Return a file as the system describes it."""
        return cls(name, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)

    def may_be(self, taken_file: FolderFile) -> bool:
        """Return whether nothing speaks against it that this is a file that was taken. A change that keeps size and
        time of modification leaves another time of change."""
        if (self.size, self.mtime_ns) != (taken_file.size, taken_file.mtime_ns):
            return False
        return not taken_file.digest or (self.ctime_ns, self.inode) == (taken_file.ctime_ns, taken_file.inode)


@dataclass
class Listing:
    """The content of the folder: its ``files`` of events in their order; the ``names`` of all files, also of those
    without bytes; the names of files whose format is not known (``unread``); and names that are no file, or lead to one
    that is there under another name (``refused``: the reasons by name)."""

    files: list[FolderFile] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def list_arrivals(folder: Path, form: str | None) -> Listing:
    """List the files in a folder and below (:func:`acep.events.files.folders.walk_folder`), in the order of time of
    modification, then of name. Empty files are left out. Files whose format is not known by their names are none of
    events, unless ``form`` is given.

    Raises :class:`DataError` if the folder cannot be read, or two links lead to one place, or are of one file.
    """
    try:
        walk = walk_folder(folder)
    except OSError as error:
        raise DataError(f"the folder `{folder}` cannot be read: {reason_of(error)}", code="file_read") from None
    files = [FolderFile.from_stat(name, state) for name, state in walk.files.items() if state.st_size]
    readable = {file.name for file in files if form is not None or split_format(file.name)[0] is not None}
    event_files = sorted((file for file in files if file.name in readable), key=lambda file: (file.mtime_ns, file.name))
    check_hard_links((str(folder / file.name), walk.files[file.name]) for file in event_files)
    return Listing(event_files, {*walk.files}, sorted({file.name for file in files} - readable), walk.refused)


def find_new(
    folder: Path, listing: list[FolderFile], taken_files: Mapping[str, FolderFile]
) -> tuple[list[FolderFile], dict[str, FolderFile]]:
    """Return the files that were not taken yet, in their order; and by name, as they are now, those that were taken and
    only seem to be changed: their bytes are the same.

    A file that took the place of a taken one is a new one. Raises :class:`DataError` for a file that was changed after
    it was taken, because its new events would be lost.
    """
    new, same = [], {}
    for file in listing:
        earlier = taken_files.get(file.name)
        if earlier is None:
            new.append(file)
        elif not file.may_be(earlier):
            now = _recheck_taken(folder, file, earlier)
            if now is None:
                new.append(file)
            else:
                same[file.name] = now
    return new, same


def _recheck_taken(folder: Path, file: FolderFile, taken_file: FolderFile) -> FolderFile | None:
    """Return a file that was taken as it is now, if it has the same bytes; ``None`` if another file took its name.

    Raises :class:`DataError` if it is the taken one with other bytes, or more of them.
    """
    path = folder / file.name
    try:
        now = identify(folder, file)
        if taken_file.digest and now.digest == taken_file.digest:
            return now
        grown = now.size > taken_file.size and digest_of(path, taken_file.size) == taken_file.digest
    except FileNotFoundError:  # removed since it was listed
        return taken_file
    except OSError as error:
        raise DataError(f"`{path}` cannot be read: {reason_of(error)}", code="file_read") from None
    if taken_file.digest and not grown and (now.inode, now.born_ns) != (taken_file.inode, taken_file.born_ns):
        warn_caller(
            f"`{file.name}` is another file than the one whose events were taken under this name: its events are new",
            DataWarning,
        )
        return None
    raise DataError(
        f"`{file.name}` was changed after its events had been taken",
        hint=f"give new events a file of their own, and remove this one to go on; {RENAME_HINT}",
        code="file_read",
    )


def identify(folder: Path, file: FolderFile) -> FolderFile:
    """Return a file that is about to be taken, with the time of its creation and the digest of its bytes.

    Raises :class:`OSError`.
    """
    path = folder / file.name
    stat = path.stat()
    digest = digest_of(path)
    return replace(FolderFile.from_stat(file.name, stat), born_ns=born_ns(path, stat), digest=digest)


def check_same(folder: Path, planned: FolderFile, way_out: str) -> None:
    """Raise :class:`DataError` if a planned file is gone or has changed; ``way_out`` is the hint."""
    path = folder / planned.name
    try:
        now = FolderFile.from_stat(planned.name, path.stat())
        same = (now.size, now.mtime_ns) == (planned.size, planned.mtime_ns)
        same = same and (now.may_be(planned) or digest_of(path) == planned.digest)
    except OSError as error:
        why = "is gone" if isinstance(error, FileNotFoundError) else f"cannot be read: {reason_of(error)}"
        raise DataError(f"`{path}` {why}, and its events are not matched yet", hint=way_out, code="file_read") from None
    if not same:
        raise DataError(
            f"`{path}` was changed while its events were taken", hint=f"{RENAME_HINT}; {way_out}", code="file_read"
        )

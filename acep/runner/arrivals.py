"""List the files of a growing folder in order, and detect files that have changed."""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from acep.errors import DataError, DataWarning, warn_caller
from acep.events.files.finding import NO_FILE
from acep.events.files.formats import reason_of, split_format
from acep.runner.file_identity import born_ns, digest_of

__all__ = ["Arrival", "Listing", "arrivals", "check_same", "fresh", "identified"]

UNFINISHED = ".tmp"
WHOLE = "write a file elsewhere, or under a name that begins with `.` or ends in `.tmp`, then rename it"


@dataclass(frozen=True)
class Arrival:
    """A file of the folder: its path below the folder, its size in bytes, its times of modification and of change (of
    its data, name or rights) in nanoseconds, and its number on the disk. One that is taken has also the time of its
    creation and the digest of its bytes (:func:`identified`). Files that an earlier acep has taken have size and time
    of modification only."""

    name: str
    size: int
    mtime_ns: int
    ctime_ns: int = 0
    inode: int = 0
    born_ns: int = 0
    digest: str = ""

    @classmethod
    def of(cls, name: str, stat: os.stat_result) -> Arrival:
        """Return a file as the system describes it."""
        return cls(name, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)

    def seems(self, taken: Arrival) -> bool:
        """Return whether nothing speaks against it that this is a file that was taken. A change that keeps size and
        time of modification leaves another time of change."""
        if (self.size, self.mtime_ns) != (taken.size, taken.mtime_ns):
            return False
        return not taken.digest or (self.ctime_ns, self.inode) == (taken.ctime_ns, taken.inode)


@dataclass
class Listing:
    """What is in the folder: its ``files`` of events in their order; the ``names`` of all files, those without bytes
    included; the names of files whose format is not known (``unread``); and what is no file, or leads to one that is
    there under another name (``refused``: the reasons by name)."""

    files: list[Arrival] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def arrivals(folder: Path, form: str | None) -> Listing:
    """List the files in a folder and below, in the order of time of modification, then of name. Files whose format is
    not known by their names are none of events, unless ``form`` is given.

    Empty files are left out, and so are files whose name, or the name of a folder on their path, begins with ``.`` or
    ``_``, or ends in ``.tmp``; pipes and devices; and links to what is in the folder anyway.

    Raises :class:`DataError` if the folder cannot be read, or two links lead to one place.
    """
    listing = Listing()
    try:
        root = folder.resolve()
        files = list(_FolderWalk(root, listing).below(root, ""))
    except OSError as wrong:
        raise DataError(f"the folder `{folder}` cannot be read: {reason_of(wrong)}", code="file_read") from None
    known = {file.name for file in files if form is not None or split_format(file.name)[0] is not None}
    listing.files = sorted((file for file in files if file.name in known), key=lambda file: (file.mtime_ns, file.name))
    listing.unread = sorted({file.name for file in files} - known)
    return listing


class _FolderWalk:
    """A walk through a folder, which fills in all of a listing but its files."""

    def __init__(self, root: Path, listing: Listing) -> None:
        self.root, self.listing = root, listing
        self.places: dict[tuple[int, int], str] = {}  # folders, and what links lead to: by their number on the disk

    def below(self, folder: Path, prefix: str, above: tuple[tuple[int, int], ...] = ()) -> Iterator[Arrival]:
        """Yield the files with bytes in a folder and below; ``above`` are the folders that it is in."""
        with os.scandir(folder) as entries:
            for entry in entries:
                name = f"{prefix}{entry.name}"
                stat = None if _is_hidden(entry.name) else self._stat(name, entry)
                if stat is None or (entry.is_symlink() and self._leads_back(name, folder / entry.name)):
                    continue
                place = (stat.st_dev, stat.st_ino)
                if modes.S_ISDIR(stat.st_mode):
                    if place in above:
                        self.listing.refused[name] = "a link to a folder that it is in"
                        continue
                    self._visit(place, name)
                    yield from self.below(folder / entry.name, f"{name}/", (*above, place))
                elif not modes.S_ISREG(stat.st_mode):
                    self.listing.refused[name] = NO_FILE
                else:
                    if entry.is_symlink():
                        self._visit(place, name)
                    self.listing.names.add(name)
                    if stat.st_size:
                        yield Arrival.of(name, stat)

    def _stat(self, name: str, entry: os.DirEntry[str]) -> os.stat_result | None:
        """Describe what a name leads to; ``None``: nothing."""
        try:
            return entry.stat()
        except FileNotFoundError:  # moved away since it was listed, or a link that leads nowhere
            return None
        except OSError as wrong:
            if not entry.is_symlink():
                raise
            self.listing.refused[name] = f"a link that cannot be followed ({reason_of(wrong)})"
            return None

    def _leads_back(self, name: str, link: Path) -> bool:
        """Return whether a link leads to something that is taken under another name."""
        target = link.resolve()
        if self.root.is_relative_to(target):
            self.listing.refused[name] = "a link to a folder that it is in"
        elif target.is_relative_to(self.root) and not any(map(_is_hidden, target.relative_to(self.root).parts)):
            self.listing.refused[name] = f"a link to `{target.relative_to(self.root)}`, which is in the folder"
        return name in self.listing.refused

    def _visit(self, place: tuple[int, int], name: str) -> None:
        """Record a folder, or a file that a link leads to. Raises :class:`DataError` if it was there before."""
        before = self.places.setdefault(place, name)
        if before != name:
            raise DataError(
                f"`{min(before, name)}` and `{max(before, name)}` in `{self.root}` are the same, by a link, and events"
                " would come twice",
                hint="remove one of them",
                code="file_read",
            )


def _is_hidden(name: str) -> bool:
    return name[0] in "._" or name.endswith(UNFINISHED)


def fresh(
    folder: Path, listing: list[Arrival], taken: Mapping[str, Arrival]
) -> tuple[list[Arrival], dict[str, Arrival]]:
    """Return the files that were not taken yet, in their order; and by name, as they are now, those that were taken and
    only seem to be changed: their bytes are the same.

    A file that took the place of a taken one is a new one. Raises :class:`DataError` for a file that was changed after
    it was taken, because its new events would be lost.
    """
    new, same = [], {}
    for file in listing:
        before = taken.get(file.name)
        if before is None:
            new.append(file)
        elif not file.seems(before):
            now = _as_taken(folder, file, before)
            if now is None:
                new.append(file)
            else:
                same[file.name] = now
    return new, same


def _as_taken(folder: Path, file: Arrival, taken: Arrival) -> Arrival | None:
    """Return a file that was taken as it is now, if it has the same bytes; ``None`` if another file took its name.

    Raises :class:`DataError` if it is the taken one with other bytes, or more of them.
    """
    path = folder / file.name
    try:
        now = identified(folder, file)
        if taken.digest and now.digest == taken.digest:
            return now
        grown = now.size > taken.size and digest_of(path, taken.size) == taken.digest
    except FileNotFoundError:  # removed since it was listed
        return taken
    except OSError as wrong:
        raise DataError(f"`{path}` cannot be read: {reason_of(wrong)}", code="file_read") from None
    if taken.digest and not grown and (now.inode, now.born_ns) != (taken.inode, taken.born_ns):
        warn_caller(
            f"`{file.name}` is another file than the one whose events were taken under this name: its events are new",
            DataWarning,
        )
        return None
    raise DataError(
        f"`{file.name}` was changed after its events had been taken",
        hint=f"give new events a file of their own, and remove this one to go on; {WHOLE}",
        code="file_read",
    )


def identified(folder: Path, file: Arrival) -> Arrival:
    """Return a file that is about to be taken, with the time of its creation and the digest of its bytes.

    Raises :class:`OSError`.
    """
    path = folder / file.name
    stat = path.stat()
    digest = digest_of(path)
    return replace(Arrival.of(file.name, stat), born_ns=born_ns(path, stat), digest=digest)


def check_same(folder: Path, planned: Arrival, way_out: str) -> None:
    """Raise :class:`DataError` if a planned file is gone or has changed; ``way_out`` is the hint."""
    path = folder / planned.name
    try:
        now = Arrival.of(planned.name, path.stat())
        same = (now.size, now.mtime_ns) == (planned.size, planned.mtime_ns)
        same = same and (now.seems(planned) or digest_of(path) == planned.digest)
    except OSError as wrong:
        why = "is gone" if isinstance(wrong, FileNotFoundError) else f"cannot be read: {reason_of(wrong)}"
        raise DataError(f"`{path}` {why}, and its events are not matched yet", hint=way_out, code="file_read") from None
    if not same:
        raise DataError(
            f"`{path}` was changed while its events were taken", hint=f"{WHOLE}; {way_out}", code="file_read"
        )

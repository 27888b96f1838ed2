"""Read files that grow: whole rows from where they were taken last, over rotation and truncation, exactly once."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from acep.bucket_state.folders import LocalFolder
from acep.errors import DataError, DataWarning, SnapshotError, warn_caller
from acep.events.files.folders import check_hard_links, walk_folder
from acep.events.files.formats import NAMES, reason_of, split_format
from acep.events.files.options import Options
from acep.following.journal import Journal
from acep.following.selection import Selection
from acep.growing.generations import FileState, find_generations, has_copy, is_in_place
from acep.growing.rotated_names import is_packed, rotated_from
from acep.growing.row_ends import row_ends_of
from acep.growing.stretches import SKIPPED, FilePart, Position, Stretch, digest_of_bytes, mark_of

__all__ = ["COPIES", "GrowingFiles", "GrowingSource", "growing_form"]

COPIES = "stretches"
"""The folder of the state with copies of what the micro-batch reads that is under way."""
LOOKS, BETWEEN = 20, 0.01  # how often a folder is listed until two looks are alike, and the seconds between them
FORMS = ("csv", "tsv", "jsonl")


@dataclass(frozen=True)
class GrowingSource:
    """Files that grow: the one of a ``name`` in a ``folder``, or those of the folder and below (``None``). A
    micro-batch takes at most so many bytes."""

    folder: Path
    name: str | None
    max_bytes: int


class GrowingFiles:
    """Files that grow, and how far they were taken."""

    def __init__(self, source: GrowingSource, options: Options, journal: Journal, state: LocalFolder) -> None:
        """Copies of what is read go into the ``state``, whose ``journal`` says how far files were taken.

        Raises :class:`SnapshotError` if one file is followed, and the state has lines of others: they would be
        forgotten, and taken once more when they are followed again.
        """
        other_names = sorted({position.base for position in journal.positions} - {source.name})
        if source.name is not None and other_names:
            shown = ", ".join(f"`{name}`" for name in other_names[:3]) + (", ..." if len(other_names) > 3 else "")
            raise SnapshotError(
                f"the state in `{state.shown}` is of other files that grow: {shown}",
                hint="go on with what it was made with, or begin a new state and output; nothing was lost",
            )
        self.folder, self.name, self.max_bytes = source.folder, source.name, source.max_bytes
        self.options = options
        self._journal, self._state = journal, state
        self._contents: dict[Stretch, tuple[bytes, bytes]] = {}
        self._first_positions: tuple[Position, ...] = ()
        self._warned: set[str] = set()

    def select(self, *, end: bool) -> Selection:
        """Return what is new in the files, up to the bound of bytes. With ``end`` a last line without a line end is
        taken, too.

        Warns of what cannot be read any more. Raises :class:`DataError` for files that cannot be read.
        """
        try:
            for _ in range(LOOKS):
                selection = self._select(self._journal.positions or self._first_positions, end=end)
                if selection.stretches or not selection.has_more:  # else a file was moved before it was opened
                    break
                time.sleep(BETWEEN)
        except OSError as error:
            unreadable = f"the files in `{self.folder}`" if error.filename is None else f"`{error.filename}`"
            why = f"{unreadable} cannot be read: {reason_of(error)}"
            raise DataError(why, code="file_read") from None
        if not selection.stretches and not selection.has_more:
            self._first_positions = selection.positions  # until there are rows, and with them a plan
        self._announce(selection.gaps)
        return selection

    def settling_parts(self, selection: Selection) -> list[FilePart]:
        """Return what may settle the types of the columns."""
        return self.parts(selection, "")

    def limit(self, selection: Selection) -> Selection:
        """Return the same: the bytes are bounded as they are selected."""
        return selection

    def check(self, selection: Selection, way_out: str) -> None:
        """Raise :class:`SnapshotError` if a copy was changed while it was read."""
        for number, stretch in enumerate(selection.stretches):
            if self._read_copy(self._path_of_copy(number, stretch), stretch) is None:
                raise SnapshotError(
                    f"another follower works with the state in `{self._state.shown}`: it has changed `{COPIES}`",
                    hint=f"let one of them run; {way_out}",
                    code="state_used",
                )

    def is_last(self, selection: Selection) -> bool:
        """Return whether nothing is left to take after a selection."""
        return not selection.has_more

    def parts(self, selection: Selection, way_out: str) -> list[FilePart]:
        """Return the copies of stretches that are read for a micro-batch. Those that are not there, or damaged, are
        made again.

        Raises :class:`DataError` if the bytes of a stretch are gone.
        """
        self._announce(selection.gaps)
        parts = []
        for number, stretch in enumerate(selection.stretches):
            path = self._path_of_copy(number, stretch)
            header_and_data = self._contents.get(stretch) or self._read_copy(path, stretch)
            if header_and_data is None:
                header_and_data = self._read_again(stretch, way_out)
            header = header_and_data[0]
            self._state.write(path, b"".join(header_and_data), replace=True, parents=1)
            shown = self.folder / stretch.name
            parts.append(FilePart(self._state.root / path, stretch.name, shown, header.count(b"\n"), stretch.lines))
        return parts

    def finish(self) -> None:
        """Remove the copies, once a micro-batch is done."""
        self._contents = {}
        for name in self._state.names(COPIES):
            self._state.remove_file(f"{COPIES}/{name}")

    # Files that are there ---------------------------------------------------------------------------

    def _select(self, positions: Sequence[Position], *, end: bool) -> Selection:
        listing = self._list()
        bases = self._bases(listing, positions)
        if any(not is_in_place(self.folder, position, listing) for position in positions if not position.is_old):
            listing = self._steady_listing()  # a file may have been renamed while the folder was listed
            bases = self._bases(listing, positions)
        queues, positions_now, gaps = dict[str, list[Position]](), list[Position](), list[str]()
        copies = list[tuple[FileState, FileState]]()
        for base in bases:
            beside = _files_beside(listing, base)
            of_base = [position for position in positions if position.base == base]
            generations = find_generations(self.folder, base, beside, of_base)
            positions_now += generations.idle
            queues[base] = generations.queue
            gaps += generations.gaps
            copies += [(copy, beside[base]) for copy in generations.copies]
        self._warn_of_skipped(positions, positions_now)
        growing = [base for base, queue in queues.items() if self._has_more(queue, listing)]
        share = max(self.max_bytes // max(len(growing), 1), 1)
        self._contents = {}
        has_more = False
        for queue in queues.values():
            left = share
            for position in queue:
                if left:
                    position_now, left, is_cut = self._take(position, left, end=end)
                    left = 0 if is_cut else left  # what was written later waits
                    has_more = has_more or is_cut
                    positions_now.append(position_now)
                else:
                    positions_now.append(position)
                    has_more = True
        if any(not has_copy(self.folder, copy, file) for copy, file in copies):  # the file was truncated meanwhile
            return Selection(positions=tuple(positions), has_more=True)
        return Selection((), tuple(self._contents), tuple(positions_now), tuple(gaps), has_more)

    def _list(self) -> dict[str, FileState]:
        """Return the files by their names below the folder. Raises :class:`OSError` or :class:`DataError`."""
        if self.name is None:
            walk = walk_folder(self.folder)
            states = walk.files
        else:
            states = {}
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    try:
                        is_beside = entry.name == self.name or not entry.name.startswith(".")
                        if is_beside and entry.is_file():
                            states[entry.name] = entry.stat()
                    except FileNotFoundError:
                        continue
        return {name: FileState(name, state.st_ino, state.st_size, state.st_mtime_ns) for name, state in states.items()}

    def _steady_listing(self) -> dict[str, FileState]:
        before = self._list()
        for _ in range(LOOKS):
            time.sleep(BETWEEN)
            listing = self._list()
            if {name: file.inode for name, file in before.items()} == {n: file.inode for n, file in listing.items()}:
                return listing
            before = listing
        return before

    def _bases(self, listing: Mapping[str, FileState], positions: Sequence[Position]) -> list[str]:
        """Return the names that are followed. Warns of files that are not read."""
        if self.name is not None:
            return [self.name]
        bases = {position.base for position in positions}
        names = {*listing, *bases}
        readable = {name for name in listing if growing_form(name, self.options.format) is not None}
        bases |= {name for name in readable if rotated_from(name, names - {name}) is None}
        left_out = [name for name in listing if name not in bases and rotated_from(name, bases) is None]
        if unread := [name for name in left_out if name not in self._warned]:
            self._warned |= {*unread}
            shown = ", ".join(f"`{name}`" for name in sorted(unread)[:3]) + (", ..." if len(unread) > 3 else "")
            text = f"not all in `{self.folder}` is read: {shown}; a file that grows is CSV or JSON Lines, uncompressed"
            warn_caller(text, DataWarning)
        states = [(name, (self.folder / name).stat()) for name in sorted(bases & listing.keys())]
        check_hard_links(states)
        return sorted(bases)

    def _warn_of_skipped(self, before: Sequence[Position], now: Sequence[Position]) -> None:
        """Warn of the rotated files that were there before the first start."""
        if before:
            return
        names = [position.name for position in now if position.stop == SKIPPED]
        if names and "first" not in self._warned:
            self._warned.add("first")
            shown = ", ".join(f"`{name}`" for name in names[:3]) + (", ..." if len(names) > 3 else "")
            warn_caller(f"files that were rotated before the first start are not read: {shown}", DataWarning)

    def _has_more(self, queue: Sequence[Position], listing: Mapping[str, FileState]) -> bool:
        return any(position.name in listing and listing[position.name].size > position.stop for position in queue)

    def _form(self, base: str) -> str:
        form = growing_form(base, self.options.format)
        assert form is not None  # as for each name that is followed
        return form

    def _announce(self, gaps: Sequence[str]) -> None:
        """Warn of what cannot be read any more, once."""
        for gap in gaps:
            if gap not in self._warned:
                self._warned.add(gap)
                warn_caller(gap, DataWarning)

    # Reading ------------------------------------------------------------------------------------

    def _take(self, position: Position, limit: int, *, end: bool) -> tuple[Position, int, bool]:
        """Take whole rows of a file, of at most ``limit`` bytes. Return how far it is taken now, the bytes that are
        left of the limit, and whether it has more whole rows. A file that was moved or truncated meanwhile is left for
        the next look."""
        path = self.folder / position.name
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return position, limit, True
        try:
            state = os.fstat(descriptor)
            if state.st_ino != position.inode:
                return position, limit, True
            if state.st_size <= position.stop:
                return replace(position, is_whole=True), limit, False
            ends = row_ends_of(path, self._form(position.base), self.options)
            if ends is None:
                return replace(position, is_whole=False), limit, False
            start, lines = position.stop, position.lines
            header = os.pread(descriptor, ends.header, 0)
            if start < ends.header:
                start, lines = ends.header, header.count(b"\n")
            data = ends.read(descriptor, start, state.st_size, limit, lines)
            is_cut = bool(data) and start + len(data) < state.st_size and state.st_size - start > limit
            if end and not is_cut:
                data = os.pread(descriptor, state.st_size - start, start)
            stop = start + len(data)
            size = os.fstat(descriptor).st_size
            is_same = size >= stop and os.pread(descriptor, len(data[-64:]), stop - len(data[-64:])) == data[-64:]
            if not is_same or mark_of(descriptor, position.stop) != position.mark:
                return position, limit, True
            now = replace(
                position, stop=stop, lines=lines + data.count(b"\n"), header=ends.header,
                mark=mark_of(descriptor, stop), is_whole=stop == size,
            )  # fmt: skip
        finally:
            os.close(descriptor)
        if data:
            digest = digest_of_bytes(header, data)
            stretch = Stretch(now.base, now.name, now.inode, start, stop, lines, ends.header, digest)
            self._contents[stretch] = (header, data)
        return now, max(limit - len(data), 0), is_cut

    def _path_of_copy(self, number: int, stretch: Stretch) -> str:
        return f"{COPIES}/{self._journal.next}-{number}.{self._form(stretch.base)}"

    def _read_copy(self, path: str, stretch: Stretch) -> tuple[bytes, bytes] | None:
        """Return the header and the bytes of a stretch from its copy; ``None`` if that is not there, or damaged."""
        stored = self._state.read(path)
        if stored is None:
            return None
        header, data = stored[: stretch.header], stored[stretch.header :]
        return (header, data) if digest_of_bytes(header, data) == stretch.digest else None

    def _read_again(self, stretch: Stretch, way_out: str) -> tuple[bytes, bytes]:
        """Read the bytes of a stretch from its file, under whatever name it has now."""
        beside = _files_beside(self._list(), stretch.base)
        for file in sorted(beside.values(), key=lambda file: file.inode != stretch.inode):
            if file.size < stretch.stop or is_packed(file.name):
                continue
            try:
                with (self.folder / file.name).open("rb") as stream:
                    header = stream.read(stretch.header)
                    stream.seek(stretch.start)
                    data = stream.read(stretch.stop - stretch.start)
            except OSError:
                continue
            if digest_of_bytes(header, data) == stretch.digest:
                return header, data
        raise DataError(
            f"the bytes {stretch.start:,} to {stretch.stop:,} of `{self.folder / stretch.name}`, lines from"
            f" {stretch.lines + 1:,} on, are gone or were changed, and their events are not matched yet",
            hint=way_out,
            code="file_read",
        )


def growing_form(name: str, form: str | None) -> str | None:
    """Return the form of a file that grows, by its name, else ``form``; ``None`` for one that is not read so.

    >>> growing_form("a.csv", None), growing_form("conn.log", "zeek"), growing_form("a.csv.gz", None)
    ('csv', 'tsv', None)
    """
    form_of_name, packed = split_format(name)
    found_form = form_of_name or NAMES.get(form or "")
    return found_form if packed is None and not is_packed(name) and found_form in FORMS else None


def _files_beside(listing: Mapping[str, FileState], base: str) -> dict[str, FileState]:
    """Return the files in the folder of a name."""
    folder = PurePosixPath(base).parent
    by_folder = defaultdict[PurePosixPath, dict[str, FileState]](dict)
    for name, file in listing.items():
        by_folder[PurePosixPath(name).parent][name] = file
    return by_folder[folder]

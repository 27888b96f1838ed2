"""Choose whole files of a folder for a micro-batch, and see that they do not change while they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from acep.errors import DataError
from acep.events.files.formats import reason_of
from acep.following.folder_files import FolderFile, check_same, find_new, identify
from acep.following.inbox import Inbox
from acep.following.journal import Journal
from acep.following.selection import Selection
from acep.growing.stretches import FilePart

__all__ = ["WholeFiles"]


class WholeFiles:
    """The files of a folder in which each appears whole."""

    def __init__(self, inbox: Inbox, journal: Journal) -> None:
        self._inbox, self._journal = inbox, journal

    def select(self, *, end: bool) -> Selection:  # noqa: ARG002 - whole files are taken as they are, at the end too
        """Return all new files. Raises :class:`DataError` for a file that was changed after it was taken."""
        listing = self._inbox.list_files()
        self._journal.forget(listing.names)
        return Selection(tuple(self._find_new(listing.files)))

    def settling_parts(self, selection: Selection) -> list[FilePart]:
        """Return what may settle the types of the columns."""
        return self._parts(selection)

    def limit(self, selection: Selection) -> Selection:
        """Return the files of one micro-batch."""
        return replace(selection, files=selection.files[: self._inbox.max_files])

    def identify(self, selection: Selection, way_out: str, refuse: Callable[[FilePart, DataError], None]) -> Selection:
        """Return files that are about to be taken with what identifies them. Raises :class:`DataError` for one that is
        gone or has changed since it was listed."""
        identities = []
        for file in selection.files:
            check_same(self._inbox.folder, replace(file, digest=""), way_out)
            try:
                identities.append(identify(self._inbox.folder, file))
            except OSError as error:
                path = self._inbox.folder / file.name
                complaint = DataError(f"`{path}` cannot be read: {reason_of(error)}", code="file_read")
                if not isinstance(error, FileNotFoundError):
                    refuse(FilePart(path, file.name), complaint)
                raise complaint from None
        return replace(selection, files=tuple(identities))

    def parts(self, selection: Selection, way_out: str) -> list[FilePart]:
        """Return what is read for a micro-batch. Raises :class:`DataError` for a file that is gone or has changed."""
        self.check(selection, way_out)
        return self._parts(selection)

    def check(self, selection: Selection, way_out: str) -> None:
        """Raise :class:`DataError` for a file that is gone or has changed."""
        for file in selection.files:
            check_same(self._inbox.folder, file, way_out)

    def is_last(self, selection: Selection) -> bool:
        """Return whether nothing is left to take after a selection."""
        return not self._find_new(self._inbox.list_files().files, selection.files)

    def finish(self) -> None:
        """Do nothing: whole files stay where they are."""

    def _parts(self, selection: Selection) -> list[FilePart]:
        return [FilePart(self._inbox.folder / file.name, file.name) for file in selection.files]

    def _find_new(self, listing: list[FolderFile], chosen_files: tuple[FolderFile, ...] = ()) -> list[FolderFile]:
        """Return the files of a listing that were not taken, neither before nor with ``chosen_files``."""
        taken_files = {name: file for name, (file, _) in self._journal.taken.items()} | {
            file.name: file for file in chosen_files
        }
        new, same = find_new(self._inbox.folder, listing, taken_files)
        self._journal.update(same)
        return new

"""Define what a micro-batch takes: whole files of a folder, or stretches of files that grow."""

from __future__ import annotations

from dataclasses import dataclass

from acep.following.folder_files import FolderFile
from acep.growing.stretches import Position, Stretch

__all__ = ["Selection"]


@dataclass(frozen=True)
class Selection:
    """The input of a micro-batch: whole ``files``; or ``stretches`` of files that grow, with the ``positions`` of all
    of these afterwards, and words for lines that could not be read any more (``gaps``). ``has_more``: there is more to
    take at once."""

    files: tuple[FolderFile, ...] = ()
    stretches: tuple[Stretch, ...] = ()
    positions: tuple[Position, ...] = ()
    gaps: tuple[str, ...] = ()
    has_more: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to take, or to record."""
        return not (self.files or self.stretches or self.gaps)

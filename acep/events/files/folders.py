"""Walk folders and globs: every file once, whatever symbolic links there are, and no pipes."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from acep.errors import DataError
from acep.events.files.formats import reason_of

__all__ = ["NOWHERE", "NO_FILE", "FolderWalk", "check_hard_links", "files_of_glob", "walk_folder"]

UNFINISHED = ".tmp"
NO_FILE = "no file, but a pipe or a device"
NOWHERE = "a link that leads nowhere"


@dataclass
class FolderWalk:
    """The content of a folder and below, by paths below ``root``: the states of its ``files``; and what is no
    file, or leads to one that is there under another name (``refused``, with the reasons)."""

    root: Path
    files: dict[str, os.stat_result] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    _names: dict[Path, str] = field(default_factory=dict)  # the names of files and folders by the places they lead to

    def walk(self, folder: Path, prefix: str = "", above: tuple[Path, ...] = ()) -> None:
        """Record what is in a folder and below. No link is in the path of ``folder``; ``above`` are the folders that it
        is in."""
        above = (*above, folder)
        with os.scandir(folder) as entries:
            for entry in entries:
                name, place = f"{prefix}{entry.name}", folder / entry.name
                state = None if _is_hidden(entry.name) else self._state(name, entry)
                if state is not None and entry.is_symlink():
                    place = place.resolve()
                    if (reason := self._leads_back(place, above)) is not None:
                        self.refused[name] = reason
                        continue
                if state is None:
                    continue
                if stat.S_ISDIR(state.st_mode):
                    self._visit(place, name)
                    self.walk(place, f"{name}/", above)
                elif stat.S_ISREG(state.st_mode):
                    self._visit(place, name)
                    self.files[name] = state
                else:
                    self.refused[name] = NO_FILE

    def _state(self, name: str, entry: os.DirEntry[str]) -> os.stat_result | None:
        """Describe what a name leads to; ``None``: nothing."""
        try:
            return entry.stat()
        except FileNotFoundError:
            if os.path.lexists(entry.path):  # it was not moved away since it was listed
                self.refused[name] = NOWHERE
            return None
        except OSError as wrong:
            if not entry.is_symlink():
                raise
            self.refused[name] = f"a link that cannot be followed ({reason_of(wrong)})"
            return None

    def _leads_back(self, target: Path, above: Sequence[Path]) -> str | None:
        """Return the words for a link to something that is taken under another name, and ``None`` for other links."""
        if target in above or self.root.is_relative_to(target):
            return "a link to a folder that it is in"
        if target.is_relative_to(self.root) and not any(map(_is_hidden, target.relative_to(self.root).parts)):
            return f"a link to `{target.relative_to(self.root)}`, which is in the folder"
        return None

    def _visit(self, place: Path, name: str) -> None:
        """Record a file or a folder. Raises :class:`DataError` if it was there before, under another name."""
        first_name = self._names.setdefault(place, name)
        if first_name != name:
            raise DataError(
                f"`{min(first_name, name)}` and `{max(first_name, name)}` in `{self.root}` are the same, by a link, and"
                " events would come twice",
                hint="remove one of them",
                code="file_read",
            )


def check_hard_links(states: Iterable[tuple[str, os.stat_result]]) -> None:
    """Raise :class:`DataError` if two names are of one file on the disk, as hard links are. A file without a byte has
    no events that could come twice."""
    names: dict[tuple[int, int], str] = {}
    for name, state in states:
        if not state.st_ino or not state.st_size:
            continue
        first_name = names.setdefault((state.st_dev, state.st_ino), name)
        if first_name != name:
            raise DataError(
                f"`{min(first_name, name)}` and `{max(first_name, name)}` are one file, by a hard link, and its events"
                " would come twice",
                hint="remove one of them",
                code="file_read",
            )


def walk_folder(folder: Path) -> FolderWalk:
    """Return what is in a folder and below.

    Files and folders whose names begin with ``.`` or ``_`` or end in ``.tmp`` are left out. A symbolic link is
    followed, unless it leads to what is in the folder anyway, or to a folder that it is in.

    Raises :class:`OSError` for a folder that cannot be read, and :class:`DataError` if two links lead to one place.
    """
    walk = FolderWalk(folder.resolve())
    walk.walk(walk.root)
    return walk


def _is_hidden(name: str) -> bool:
    return name[0] in "._" or name.endswith(UNFINISHED)


def files_of_glob(text: str) -> list[Path]:
    """Return the paths that a glob matches, each file once, in the order of their names; ``**`` stands for any folders,
    without those that symbolic links lead to.

    As in a shell, ``*`` matches no name that begins with a point.
    """
    is_deep = "**" in Path(text).parts
    paths = _match_pattern(Path(text)) if is_deep else map(Path, glob.glob(text))  # noqa: PTH207 - it may name any folder
    firsts: dict[Path, Path] = {}
    for path in sorted(paths, key=lambda path: (path.is_symlink(), path)):
        firsts.setdefault(path.resolve(), path)
    return sorted(firsts.values())


def _match_pattern(pattern: Path) -> Iterator[Path]:
    """Yield the paths that a pattern with ``**`` matches."""
    n_plain = next(i for i, part in enumerate(pattern.parts) if glob.has_magic(part))
    start, wanted = Path(*pattern.parts[:n_plain]), pattern.parts[n_plain:]
    for place, folders, files in os.walk(start):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inner = Path(place).relative_to(start)
        for name in [*folders, *files]:
            if not name.startswith(".") and _fits((inner / name).parts, wanted):
                yield start / inner / name


def _fits(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether the parts of a path fit the parts of a pattern, of which ``**`` stands for any number."""
    fitting = {0}  # how many parts of the pattern may have been used up
    for part in parts:
        used = set[int]()
        for n_used in _skip_stars(fitting, wanted):
            if n_used < len(wanted) and wanted[n_used] == "**":
                used.add(n_used)
            elif n_used < len(wanted) and fnmatch.fnmatchcase(part, wanted[n_used]):
                used.add(n_used + 1)
        fitting = used
    return len(wanted) in _skip_stars(fitting, wanted)


def _skip_stars(fitting: set[int], wanted: Sequence[str]) -> set[int]:
    """Return the numbers with those that are reached where ``**`` stands for nothing."""
    reached = set(fitting)
    for n_used in range(len(wanted)):
        if n_used in reached and wanted[n_used] == "**":
            reached.add(n_used + 1)
    return reached

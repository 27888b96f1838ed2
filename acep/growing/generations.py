"""Find out which files hold what was written to a file that grows: itself, and those that were rotated away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from acep.growing.file_identity import digest_of
from acep.growing.rotated_names import generation_of, is_packed, rotated_from
from acep.growing.stretches import SKIPPED, Position, continues, skipped_position

__all__ = ["FileState", "Generations", "find_generations", "has_copy", "is_in_place"]

MISSING = 20
"""The files that are gone and are still known if they come back, for each name that is followed."""


@dataclass(frozen=True)
class FileState:
    """A file as a folder lists it."""

    name: str
    inode: int
    size: int
    mtime_ns: int


@dataclass
class Generations:
    """The files of one name: ``queue`` in the order in which they are read, ``idle`` those that are not read, what can
    not be read any more (``gaps``), and the rotated files that are not read as the file of the name begins with all of
    their bytes (``copies``)."""

    queue: list[Position] = field(default_factory=list)
    idle: list[Position] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    copies: list[FileState] = field(default_factory=list)


def is_in_place(folder: Path, position: Position, files: Mapping[str, FileState]) -> bool:
    """Return whether the file that is followed has its name, and still begins with what was taken of it."""
    file = files.get(position.base)
    return file is not None and file.inode == position.inode and continues(folder / file.name, position, file.inode)


def find_generations(
    folder: Path, base: str, files: Mapping[str, FileState], positions: Sequence[Position]
) -> Generations:
    """Return the files of the name ``base``. ``files`` are all in its folder, by name; ``positions`` those of this
    name, older ones first."""
    current = files.get(base)
    located, missing = _locate(folder, base, files, positions)
    inodes = {position.inode for position in located} | ({current.inode} if current is not None else set())
    unseen = _sort_by_age(
        file
        for file in files.values()
        if file.inode not in inodes and rotated_from(file.name, [base]) and not is_packed(file.name)
    )
    generations = Generations(
        queue=[position for position in located if position.is_old and position.stop != SKIPPED],
        idle=[position for position in located if position.stop == SKIPPED],
    )
    missing = _note_missing(folder, missing, generations)
    newer, still = _follow_live(folder, base, files, positions, located, unseen, generations)
    queued = {position.inode for position in generations.queue}
    filled = [
        files[position.name]
        for position in located
        if position.stop == SKIPPED and position.lines <= 1 and files[position.name].size > position.header
    ]  # which had no rows when they were skipped: their writers have not left them yet
    newer = _sort_by_age(file for file in [*newer, *filled] if file.inode not in queued)
    if current is not None:  # it may be copied at this moment, to be truncated then
        generations.copies = [file for file in newer if has_copy(folder, file, current)]
        newer = [file for file in newer if file not in generations.copies]
    if still is None and current is not None:
        returned = next((p for p in missing if p.has_rows and continues(folder / base, p)), None)
        still = (
            Position(base, base, current.inode)
            if returned is None
            else replace(returned, name=base, inode=current.inode, is_old=False, is_whole=False)
        )
        missing = [position for position in missing if position is not returned]
    generations.queue += [Position(base, file.name, file.inode, is_old=True) for file in newer]
    if still is not None and all(position.inode != still.inode for position in generations.queue):
        generations.queue.append(still)
    queued = {position.inode for position in generations.queue}
    skipped = [file for file in unseen if file.inode not in queued]
    idle = [position for position in generations.idle if position.inode not in queued or position.stop != SKIPPED]
    idle += [skipped_position(folder / file.name, base, file.name, file.inode) for file in skipped]
    generations.idle = [*missing[-MISSING:], *idle]
    return generations


def _locate(
    folder: Path, base: str, files: Mapping[str, FileState], positions: Sequence[Position]
) -> tuple[list[Position], list[Position]]:
    """Return the positions whose files are there, with their names now, and the others."""
    by_inode = {file.inode: file for file in sorted(files.values(), key=lambda file: file.name == base)}
    located, missing = list[Position](), list[Position]()
    for position in positions:
        file = by_inode.get(position.inode)
        if file is None or not continues(folder / file.name, position, file.inode):
            missing.append(position)
        else:
            located.append(replace(position, name=file.name))
    return located, missing


def _note_missing(folder: Path, missing: Sequence[Position], generations: Generations) -> list[Position]:
    """Return the files that were rotated and are gone; what of them was perhaps not read is a gap."""
    kept_in_mind = []
    for position in missing:
        if position.stop == SKIPPED or not position.is_old:
            continue
        if not position.is_whole:
            why = "was rotated, and is gone before its end was read"
            generations.gaps.append(_gap_text(folder, position, why))
        kept_in_mind.append(replace(position, is_whole=True))
    return kept_in_mind


def _follow_live(
    folder: Path,
    base: str,
    files: Mapping[str, FileState],
    positions: Sequence[Position],
    located: Sequence[Position],
    unseen: list[FileState],
    generations: Generations,
) -> tuple[list[FileState], Position | None]:
    """Say what became of the file that was followed: add it to the queue if it was rotated away. Return the files that
    were rotated since then and never read, and the position in the file of the name, if it is still the same one."""
    current = files.get(base)
    before = next((position for position in positions if not position.is_old), None)
    live = next((position for position in located if not position.is_old), None)
    if before is None:
        return (unseen if positions else []), None
    if live is not None and (live.name == base or (current is None and not unseen)):
        # Where only a header was taken, nothing in the file itself shows that it was truncated.
        return [] if live.has_rows else unseen, live
    if live is not None and not live.has_rows:  # it may have been truncated before, as its beginning cannot show
        return _sort_by_age([*unseen, files[live.name]]), None
    if live is not None:
        generations.queue.append(replace(live, is_old=True))
        return unseen, None
    copy = _find_copy(folder, base, files, before, located)
    if copy is not None and copy.name == base:
        return [], replace(before, inode=copy.inode, name=base)
    if copy is not None:
        generations.queue.append(replace(before, name=copy.name, inode=copy.inode, is_old=True))
        return [file for file in unseen if file.inode != copy.inode], None
    if before.has_rows or not unseen:
        is_truncated = current is not None and current.inode == before.inode
        why = "was truncated, or written anew" if is_truncated else "is gone, and is under no other name beside it"
        generations.gaps.append(_gap_text(folder, before, why))
    generations.idle.append(replace(before, is_old=True, is_whole=True))
    return unseen, None


def _find_copy(
    folder: Path, base: str, files: Mapping[str, FileState], position: Position, located: Sequence[Position]
) -> FileState | None:
    """Return the only other file of a name that begins with what was taken of the one that was followed: a copy that
    was made before it was truncated. ``None``: there is none, or several."""
    if not position.has_rows:
        return None
    read_inodes = {other.inode for other in located if other.stop != SKIPPED}
    copies = [
        file
        for file in files.values()
        if file.inode not in read_inodes
        and (file.name == base or (rotated_from(file.name, [base]) and not is_packed(file.name)))
        and continues(folder / file.name, position)
    ]
    current = next((file for file in copies if file.name == base), None)
    return current if current is not None else copies[0] if len(copies) == 1 else None


def has_copy(folder: Path, copy: FileState, file: FileState) -> bool:
    """Return whether a file begins with all bytes of another, as it does while the other is made as its copy."""
    if file.size < copy.size:
        return False
    try:
        return digest_of(folder / file.name, copy.size) == digest_of(folder / copy.name, copy.size)
    except OSError:
        return False


def _sort_by_age(files: Iterable[FileState]) -> list[FileState]:
    return sorted(files, key=lambda file: (file.mtime_ns, generation_of(file.name), file.name))


def _gap_text(folder: Path, position: Position, why: str) -> str:
    lines = "1 line" if position.lines == 1 else f"{position.lines:,} lines"
    return (
        f"`{folder / position.name}` {why}: {lines}, {position.stop:,} bytes, were taken of it, and"
        " lines that were written to it after that, if there were any, are not in the results"
    )

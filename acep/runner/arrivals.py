"""List the files of a growing folder in order, and detect files that have changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from acep.errors import DataError
from acep.events.files.formats import reason_of, split_format

__all__ = ["Arrival", "arrivals", "check_same", "fresh"]

UNFINISHED = ".tmp"
WHOLE = "write a file elsewhere, or under a name that begins with `.` or ends in `.tmp`, then rename it"


@dataclass(frozen=True)
class Arrival:
    """A file of the folder: its path below the folder, its size in bytes, and its time of modification in
    nanoseconds."""

    name: str
    size: int
    mtime_ns: int


def arrivals(folder: Path, form: str | None) -> tuple[list[Arrival], list[str]]:
    """List the files of events in a folder and below, in the order of time of modification, then of name; and the names
    of files that are left out because their format is not known (unless ``form`` is given).

    Empty files are left out too, and so are files whose name, or the name of a folder on their path, begins with ``.``
    or ``_``, or ends in ``.tmp``.

    Raises :class:`DataError` if the folder cannot be read.
    """
    try:
        found = list(_below(folder, ""))
    except OSError as wrong:
        raise DataError(f"the folder `{folder}` cannot be read: {reason_of(wrong)}", code="file_read") from None
    known = [one for one in found if form is not None or split_format(one.name)[0] is not None]
    others = sorted({one.name for one in found} - {one.name for one in known})
    return sorted(known, key=lambda one: (one.mtime_ns, one.name)), others


def _below(folder: Path, prefix: str) -> Iterator[Arrival]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name[0] in "._" or entry.name.endswith(UNFINISHED):
                continue
            name = f"{prefix}{entry.name}"
            if entry.is_dir():
                yield from _below(folder / entry.name, f"{name}/")
                continue
            try:
                stat = entry.stat()
            except FileNotFoundError:  # moved away since it was listed
                continue
            if stat.st_size:
                yield Arrival(name, stat.st_size, stat.st_mtime_ns)


def fresh(there: list[Arrival], taken: Mapping[str, Arrival]) -> list[Arrival]:
    """Return the files that were not taken yet, in their order.

    Raises :class:`DataError` for a file that was changed after it was taken, because its new events would be lost.
    """
    new = []
    for one in there:
        old = taken.get(one.name)
        if old is None:
            new.append(one)
        elif old != one:
            raise DataError(
                f"`{one.name}` was changed after its events had been taken",
                hint=f"give new events a file of their own, and remove this one to go on; {WHOLE}",
                code="file_read",
            )
    return new


def check_same(folder: Path, planned: Arrival, way_out: str) -> None:
    """Raise :class:`DataError` if a planned file is gone or has changed; ``way_out`` is the hint."""
    try:
        stat = (folder / planned.name).stat()
    except OSError as wrong:
        why = "is gone" if isinstance(wrong, FileNotFoundError) else f"cannot be read: {reason_of(wrong)}"
        raise DataError(
            f"`{folder / planned.name}` {why}, and its events are not matched yet", hint=way_out, code="file_read"
        ) from None
    if (stat.st_size, stat.st_mtime_ns) != (planned.size, planned.mtime_ns):
        raise DataError(
            f"`{folder / planned.name}` was changed while its events were taken",
            hint=f"{WHOLE}; {way_out}",
            code="file_read",
        )

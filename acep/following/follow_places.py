"""Check the folders, files and bounds that a follower is given."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acep.bucket_state.folders import LocalFolder, state_folder
from acep.errors import DataError
from acep.events.files.formats import format_of, split_format
from acep.events.files.options import Options
from acep.following.bad_files import BadFolder
from acep.following.growing_files import GrowingSource, growing_form
from acep.following.inbox import Inbox
from acep.storage.sizes import size_in_bytes

__all__ = ["MAX_BYTES", "BadFileOptions", "EventSource", "check_numbers", "source_of", "state_place"]

MAX_BYTES = 64 << 20
LEAST_BYTES = 1 << 10


@dataclass(frozen=True)
class BadFileOptions:
    """The choice of users for a file that cannot be read: ``choice`` is "stop" or "aside"."""

    choice: Any
    folder: Any


@dataclass(frozen=True)
class EventSource:
    """Where events come from: the files of a ``folder``, whole ones unless they are ``growing``. Those that cannot be
    read go to ``bad_folder`` (``None``: they stop the stream)."""

    folder: Path
    growing: GrowingSource | None = None
    bad_folder: BadFolder | None = None

    def inbox_of(self, reading: Options, max_files: int, *, end_marker: bool) -> Inbox:
        """Return what reads the files."""
        refuse = None if self.bad_folder is None else self.bad_folder.refuse
        is_growing = self.growing is not None
        return Inbox(self.folder, reading, max_files, end_marker=end_marker, is_growing=is_growing, refuse=refuse)


def source_of(
    folder: Any, form: str | None, *, state: Any, into: Any, is_growing: Any, max_bytes: Any, bad: BadFileOptions
) -> EventSource:
    """Return where events come from: ``folder`` is a folder, or the path of a file that grows. The folders ``state``
    and ``into`` are not among what is read.

    Raises :class:`DataError`.
    """
    for role, path in (("folder", folder), ("state", state), ("into", into)):
        if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
            raise DataError(f"{role}= takes the path of a folder, not {path.__class__.__name__}", code="option_invalid")
    if not isinstance(is_growing, bool):
        raise DataError(f"growing= is True or False, not {is_growing!r}", code="option_invalid")
    if "://" in os.fspath(state):
        raise DataError(f"state= takes a folder on a disk, not `{state}`", code="option_invalid")
    source = Path(folder).absolute()
    is_file = not source.is_dir() and (source.exists() or (is_growing and source.parent.is_dir()))
    if not is_file and not source.is_dir():
        hint = "make it, and move files of events into it; growing=True waits for a file of this name"
        raise DataError(f"there is no folder `{folder}`", hint=hint, code="file_read")
    n_bytes = _bytes_of(max_bytes, is_used=is_file or is_growing)
    if is_file:
        _check_form(source, form)
        growing = GrowingSource(source.parent.resolve(), source.name, n_bytes)
        return EventSource(growing.folder, growing, bad_folder_of(growing.folder, bad, is_growing=True))
    source = source.resolve()
    for role, path in (("state", state), ("into", into)):
        inside = Path(path).resolve()
        if inside.is_relative_to(source) and all(part[0] not in "._" for part in inside.relative_to(source).parts):
            raise DataError(
                f"{role}= is a folder whose files would be taken for events: `{path}`",
                hint=f"name one outside of `{folder}`, or one whose name begins with `_`",
                code="option_invalid",
            )
    growing_files = GrowingSource(source, None, n_bytes) if is_growing else None
    return EventSource(source, growing_files, bad_folder_of(source, bad, is_growing=is_growing))


def bad_folder_of(source: Path, bad: BadFileOptions, *, is_growing: bool) -> BadFolder | None:
    """Return the folder of bad files of a folder ``source``; ``None``: a bad file stops the stream.

    Raises :class:`DataError`."""
    choice, folder = bad.choice, bad.folder
    if choice not in ("stop", "aside"):
        raise DataError(f'bad_files= is "stop" or "aside", not {choice!r}', code="option_invalid")
    if choice == "stop":
        if folder is not None:
            raise DataError(
                "bad_folder= is where bad files are moved to", hint='give it with bad_files="aside"',
                code="option_invalid",
            )  # fmt: skip
        return None
    if is_growing:
        raise DataError(
            'bad_files="aside" is not for files that grow, as a file that is written to cannot be moved',
            hint="a bad line stops the stream, and skip_bad_lines=True leaves it out",
            code="option_invalid",
        )
    if folder is not None and (not isinstance(folder, str | os.PathLike) or not isinstance(os.fspath(folder), str)):
        raise DataError(
            f"bad_folder= takes the path of a folder, not {folder.__class__.__name__}", code="option_invalid"
        )
    place = source.with_name(f"{source.name}.bad") if folder is None else Path(folder).resolve()
    return BadFolder(place, source)


def state_place(state: str | os.PathLike[str]) -> LocalFolder:
    """Return the folder of the state. Raises :class:`DataError`."""
    return LocalFolder(Path(state_folder(state)))


def check_numbers(max_files: Any, poll: Any) -> None:
    """Raise :class:`DataError` for numbers that are out of bounds."""
    if isinstance(max_files, bool) or not isinstance(max_files, int) or max_files < 1:
        raise DataError(f"max_files={max_files!r} is not a positive number of files", code="option_invalid")
    if isinstance(poll, bool) or not isinstance(poll, int | float) or not 0 < poll < float("inf"):
        raise DataError(f"poll={poll!r} is not a positive number of seconds", code="option_invalid")


def _bytes_of(max_bytes: Any, *, is_used: bool) -> int:
    if not is_used:
        if max_bytes != MAX_BYTES:
            raise DataError(
                "max_bytes= is about files that grow", hint="give it with growing=True", code="option_invalid"
            )
        return MAX_BYTES
    n_bytes = size_in_bytes(max_bytes, "max_bytes")
    if n_bytes < LEAST_BYTES:
        raise DataError(f"max_bytes={max_bytes!r} is less than {LEAST_BYTES:,} bytes", code="option_invalid")
    return n_bytes


def _check_form(path: Path, form: str | None) -> None:
    """Raise :class:`DataError` for a file that cannot be read as it grows."""
    if growing_form(path.name, form) is not None:
        return
    form_of_name, packed = split_format(path)
    if form_of_name is None and packed is None and form is None:
        format_of(path)  # raises an error with a hint
    raise DataError(
        f"`{path}` cannot be read while it grows: such a file is CSV or JSON Lines, uncompressed",
        hint="move whole files into a folder, and follow that",
        code="file_read",
    )

"""Find the files that paths, globs, folders and standard input mean, in the order in which they are read."""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from acep.errors import DataError, DataWarning, suggest, warn_caller
from acep.events.files.formats import COMPRESSED, format_of, open_bytes, reason_of, split_format

__all__ = ["NO_FILE", "STDIN", "EventFile", "regular_files", "sources_of", "warn_of_others", "warn_of_refused"]

STDIN = "-"
NO_FILE = "no file, but a pipe or a device"
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class EventFile:
    """A file that can be read more than once: its ``path``, the user's name for it, its format and compression."""

    path: Path
    name: str
    form: str
    packed: str | None = None

    def open(self) -> pa.NativeFile:
        """Open its decompressed bytes. Raises :class:`OSError`."""
        return open_bytes(self.path, self.packed)


def sources_of(paths: Paths, form: str | None, folder: Path) -> list[EventFile]:
    """Return the files that the paths mean. Pipes and standard input (``"-"``) are copied to ``folder`` first, because
    a stream may have to be read twice. ``form`` is the format of files whose names do not have a known suffix.

    Raises :class:`DataError` for files that are missing, empty, or of no known format.
    """
    given = paths if isinstance(paths, list | tuple) else [paths]
    if not given:
        raise DataError("there is no file of events", hint="name one", code="file_read")
    texts = []
    for path in given:
        text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
        if not isinstance(text, str):
            raise DataError(f"a file is named by its path, not by {path.__class__.__name__}", code="option_invalid")
        texts.append(text)
    if texts.count(STDIN) > 1:
        raise DataError("standard input can be read once", hint="give `-` once", code="file_read")
    found: list[EventFile] = []
    for text in texts:
        found += _meant(text, form, folder, len(found))
    seen = set[Path]()
    for one in found:
        if (there := one.path.resolve()) in seen:
            raise DataError(f"`{one.name}` is named twice", hint="its events would come twice", code="file_read")
        seen.add(there)
    return found


def _meant(text: str, form: str | None, folder: Path, number: int) -> list[EventFile]:
    if text == STDIN:
        if form is None:
            raise DataError(
                "the format of standard input must be said", hint='format="csv", "jsonl" or "parquet"', code="file_read"
            )
        return [_spooled(None, "standard input", form, folder, number)]
    try:
        paths, where, others = _named(text, form)
        if others:
            warn_of_others(others, where or text)
        if where is None:
            return [_file(paths[0], form, folder, number)]
        pipes = {path for path in paths if not path.is_file() and not path.is_dir() and path.exists()}
        if pipes:
            warn_of_refused({str(path): NO_FILE for path in pipes}, where)
        return _all([path for path in paths if path not in pipes], where, form, folder, number)
    except DataError:
        raise
    except (OSError, ValueError) as wrong:
        raise DataError(f"`{text}` cannot be read: {reason_of(wrong)}", code="file_read") from None


def _named(text: str, form: str | None) -> tuple[list[Path], str | None, list[Path]]:
    """Return the paths that a text means, the words for a glob or a folder (``None``: it names one file), and the files
    of a folder that are left out because of their names."""
    path = Path(text)
    if not path.exists() and glob.has_magic(text):
        found = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - the text may name any folder
        return [Path(p) for p in found], f"`{text}`", []
    if path.is_dir():
        below = [p for p in sorted(path.rglob("*")) if not p.is_dir() and not _hidden(p, path)]
        others = [p.relative_to(path) for p in below if not _known(p, form)]
        return [p for p in below if _known(p, form)], f"the folder `{text}`", others
    return [path], None, []


def warn_of_others(others: Sequence[str | Path], where: str) -> None:
    """Warn of the files in a folder that are not read because of their names."""
    names = ", ".join(f"`{p}`" for p in others[:3]) + (", ..." if len(others) > 3 else "")
    number = "a file that is" if len(others) == 1 else f"{len(others)} files that are"
    warn_caller(f"{where} has {number} not read: {names}; format= says how to read files of other names", DataWarning)


def warn_of_refused(reasons: Mapping[str, str], where: str) -> None:
    """Warn of names in a folder that are left out, and why, because they are no files of their own."""
    names = "; ".join(f"`{name}` is {why}" for name, why in sorted(reasons.items())[:3])
    warn_caller(f"not all in {where} is read: {names}{'; ...' if len(reasons) > 3 else ''}", DataWarning)


def regular_files(paths: Paths) -> list[Path] | None:
    """Return the files that the paths mean, if all of them can be read again; ``None`` for pipes and standard input."""
    given: list[Any] = [*paths] if isinstance(paths, list | tuple) else [paths]
    texts = [str(os.fspath(one)) for one in given]
    try:
        found = [path for text in texts for path in _named(text, None)[0] if not path.is_dir()]
        again = STDIN not in texts and all(path.is_file() for path in found)
    except (OSError, ValueError):
        return None
    return found if again else None


def _all(paths: list[Path], where: str, form: str | None, folder: Path, number: int) -> list[EventFile]:
    files = [p for p in paths if not p.is_dir()]
    if not files:
        hint = None if form is not None else "names of files of events end in .csv, .jsonl, .parquet"
        raise DataError(f"there is no file of events in {where}", hint=hint, code="file_read")
    # A file without a byte among others has no events: logs are rotated so.
    files = [p for p in files if not (p.is_file() and p.stat().st_size == 0)] or files[:1]
    return [_file(p, form, folder, number + i) for i, p in enumerate(files)]


def _hidden(path: Path, folder: Path) -> bool:
    return path.suffix == ".tmp" or any(part[0] in "._" for part in path.relative_to(folder).parts)


def _known(path: Path, form: str | None) -> bool:
    return form is not None or split_format(path)[0] is not None


def _file(path: Path, form: str | None, folder: Path, number: int) -> EventFile:
    told, packed = split_format(path)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise _missing(path) from None
    if form is None and told is None:
        format_of(path)  # raises an error with a hint
    form = told or form
    assert form is not None
    if form == "parquet" and packed is not None:
        format_of(path)
        raise DataError(
            f"`{path}` is a compressed Parquet file", hint="Parquet compresses its columns itself", code="file_read"
        )
    if stat.S_ISREG(mode):
        if path.stat().st_size == 0:
            raise DataError(f"`{path}` is empty", code="file_read")
        return EventFile(path, str(path), form, packed)
    return _spooled(path, str(path), form, folder, number, packed)


def _missing(path: Path) -> DataError:
    try:
        near = suggest(path.name, [p.name for p in path.parent.iterdir()])
    except OSError:
        near = None
    return DataError(
        f"there is no file `{path}`", hint=near if near and near.startswith("did") else None, code="file_read"
    )


def _spooled(
    path: Path | None, name: str, form: str, folder: Path, number: int, packed: str | None = None
) -> EventFile:
    """Copy the bytes of a pipe or of standard input to a file."""
    there = folder / f"{number}.{form}"
    try:
        with there.open("wb") as copy:
            if path is None:
                _copy(getattr(sys.stdin, "buffer", sys.stdin), copy)
            else:
                with path.open("rb") as pipe:
                    _copy(pipe, copy)
        with there.open("rb") as copy_in:
            head = copy_in.read(4)
    except (OSError, ValueError, AttributeError, TypeError) as wrong:
        raise DataError(f"{name} cannot be read: {reason_of(wrong)}", code="file_read") from None
    if not head:
        raise DataError(f"{name if path is None else f'`{name}`'} is empty", code="file_read")
    if packed is None and form != "parquet":
        packed = _packed(head)
    return EventFile(there, name, form, packed)


def _copy(source: Any, target: IO[bytes]) -> None:
    """Copy bytes as they come: a read that waits for many would not notice a signal."""
    read = getattr(source, "read1", source.read)
    while chunk := read(1 << 20):
        target.write(chunk)


def _packed(head: bytes) -> str | None:
    """Return the compression of a pipe by its first bytes, or ``None``."""
    if head[:2] == b"\x1f\x8b":
        return COMPRESSED[".gz"]
    return COMPRESSED[".zst"] if head == b"\x28\xb5\x2f\xfd" else None

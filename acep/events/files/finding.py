"""Find the files that paths, globs, folders and standard input mean, in the order in which they are read."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from acep.errors import DataError, DataWarning, suggest, warn_caller
from acep.events.files.folders import NO_FILE, NOWHERE, check_hard_links, files_of_glob, walk_folder
from acep.events.files.formats import format_of, open_bytes, reason_of, split_format
from acep.events.files.options import Options
from acep.events.files.spooling import spool

__all__ = ["STDIN", "EventFile", "check_output", "regular_files", "sources_of", "warn_of_others", "warn_of_refused"]

STDIN = "-"
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


def sources_of(paths: Paths, options: Options, folder: Path) -> list[EventFile]:
    """Return the files that the paths mean. Pipes and standard input (``"-"``) are copied to ``folder`` first, because
    a stream may have to be read twice.

    Files without a byte are left out. Raises :class:`DataError` for files that are missing, of no known format, or
    the same under two names, and for a device or a pipe that seems to have no end.
    """
    named_paths = paths if isinstance(paths, list | tuple) else [paths]
    if not named_paths:
        raise DataError("there is no file of events", hint="name one", code="file_read")
    texts = []
    for path in named_paths:
        text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
        if not isinstance(text, str):
            raise DataError(f"a file is named by its path, not by {path.__class__.__name__}", code="option_invalid")
        texts.append(text)
    if texts.count(STDIN) > 1:
        raise DataError("standard input can be read once", hint="give `-` once", code="file_read")
    files: list[EventFile] = []
    for text in texts:
        files += _files_of_text(text, options, folder, len(files))
    seen_targets = set[Path]()
    for file in files:
        if (target := file.path.resolve()) in seen_targets:
            raise DataError(f"`{file.name}` is named twice", hint="its events would come twice", code="file_read")
        seen_targets.add(target)
    states = [file.path.stat() for file in files]
    check_hard_links((file.name, state) for file, state in zip(files, states, strict=True))
    # A file without a byte has no events: logs are rotated so.
    return [file for file, state in zip(files, states, strict=True) if state.st_size]


def _files_of_text(text: str, options: Options, folder: Path, number: int) -> list[EventFile]:
    form = options.format
    if text == STDIN:
        if form is None:
            raise DataError(
                "the format of standard input must be said",
                hint='format="csv", "tsv", "jsonl" or "parquet"',
                code="file_read",
            )
        return [_spool_file(None, "standard input", form, options, folder, number)]
    try:
        paths, where, unread, refused = _resolve_text(text, form)
        if unread:
            warn_of_others(unread, where or text)
        if refused:
            warn_of_refused(refused, where or text)
        return (
            [_file(paths[0], options, folder, number)]
            if where is None
            else _files_of_paths(paths, where, options, folder, number)
        )
    except DataError:
        raise
    except (OSError, ValueError) as wrong:
        raise DataError(f"`{text}` cannot be read: {reason_of(wrong)}", code="file_read") from None


def _resolve_text(text: str, form: str | None) -> tuple[list[Path], str | None, list[str], dict[str, str]]:
    """Return the paths that a text means, the words for a glob or a folder (``None``: it names one file), the files of
    a folder that are left out because of their names, and what is left out because it is no file of its own, with the
    reasons: a pipe, for instance, would wait for whoever writes to it."""
    path = Path(text)
    if not path.exists() and glob.has_magic(text):
        paths = files_of_glob(text)
        left_out = {str(p): NO_FILE for p in paths if p.exists() and not p.is_dir() and not p.is_file()}
        left_out |= {str(p): NOWHERE for p in paths if p.is_symlink() and not p.exists()}
        return [p for p in paths if str(p) not in left_out], f"`{text}`", [], left_out
    if path.is_dir():
        walk = walk_folder(path)
        names = sorted(walk.files, key=Path)
        unread = [name for name in names if not _has_format(name, form)]
        return [path / name for name in names if _has_format(name, form)], f"the folder `{text}`", unread, walk.refused
    return [path], None, [], {}


def warn_of_others(unread: Sequence[str], where: str) -> None:
    """Warn of the files in a folder that are not read because of their names."""
    names = ", ".join(f"`{p}`" for p in unread[:3]) + (", ..." if len(unread) > 3 else "")
    number = "a file that is" if len(unread) == 1 else f"{len(unread)} files that are"
    warn_caller(f"{where} has {number} not read: {names}; format= says how to read files of other names", DataWarning)


def warn_of_refused(reasons: Mapping[str, str], where: str) -> None:
    """Warn of names in a folder that are left out, and why, because they are no files of their own: of pipes first, of
    which nothing is read."""
    ordered = sorted(reasons, key=lambda name: (reasons[name] != NO_FILE, name))
    names = "; ".join(f"`{name}` is {reasons[name]}" for name in ordered[:3])
    warn_caller(f"not all in {where} is read: {names}{'; ...' if len(reasons) > 3 else ''}", DataWarning)


def regular_files(paths: Paths) -> list[Path] | None:
    """Return the files that the paths mean, if all of them can be read again; ``None`` for pipes and standard input."""
    named_paths: list[Any] = [*paths] if isinstance(paths, list | tuple) else [paths]
    texts = [str(os.fspath(path)) for path in named_paths]
    try:
        files = [path for text in texts for path in _resolve_text(text, None)[0] if not path.is_dir()]
        can_reread = STDIN not in texts and all(path.is_file() for path in files)
    except (OSError, ValueError):
        return None
    return files if can_reread else None


def check_output(output: str | os.PathLike[str], paths: Sequence[str], form: str | None = None) -> None:
    """Raise :class:`DataError` if a file that is to be written is one of those that the paths mean, under any name."""
    try:
        target = Path(output).stat()
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(target.st_mode):
        return
    for text in paths:
        for path in _resolve_text(text, form)[0] if text != STDIN else ():
            if path.is_file() and os.path.samestat(target, path.stat()):
                raise DataError(f"`{os.fspath(output)}` is read as events, and would be overwritten",
                                hint="give the output another name", code="file_write")  # fmt: skip


def _files_of_paths(paths: list[Path], where: str, options: Options, folder: Path, number: int) -> list[EventFile]:
    files = [p for p in paths if not p.is_dir()]
    if not files:
        hint = None if options.format is not None else "names of files of events end in .csv, .tsv, .jsonl, .parquet"
        raise DataError(f"there is no file of events in {where}", hint=hint, code="file_read")
    return [_file(p, options, folder, number + i) for i, p in enumerate(files)]


def _has_format(name: str, form: str | None) -> bool:
    return form is not None or split_format(name)[0] is not None


def _file(path: Path, options: Options, folder: Path, number: int) -> EventFile:
    form_of_name, packed = split_format(path)
    form = options.format
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise _missing_error(path) from None
    if form is None and form_of_name is None:
        format_of(path)  # raises an error with a hint
    form = form_of_name or form
    assert form is not None
    if form == "parquet" and packed is not None:
        format_of(path)
        raise DataError(
            f"`{path}` is a compressed Parquet file", hint="Parquet compresses its columns itself", code="file_read"
        )
    if stat.S_ISREG(mode):
        return EventFile(_utf8_path(path, folder, number), str(path), form, packed)
    return _spool_file(path, str(path), form, options, folder, number, packed)


def _utf8_path(path: Path, folder: Path, number: int) -> Path:
    """Return the path; of one whose name is not UTF-8, which Arrow does not open, a link to it in ``folder``."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        link = folder / f"{number}.link"
        link.symlink_to(path.absolute())
        return link
    return path


def _missing_error(path: Path) -> DataError:
    try:
        suggestion = suggest(path.name, [p.name for p in path.parent.iterdir()])
    except OSError:
        suggestion = None
    return DataError(
        f"there is no file `{path}`",
        hint=suggestion if suggestion and suggestion.startswith("did") else None,
        code="file_read",
    )


def _spool_file(
    path: Path | None, name: str, form: str, options: Options, folder: Path, number: int, packed: str | None = None
) -> EventFile:
    """Copy the bytes of a pipe or of standard input to a file."""
    copy_path = folder / f"{number}.{form}"
    return EventFile(copy_path, name, form, spool(path, copy_path, form, packed, options))

"""Keep small whole files in a folder of a local disk, of HDFS or of an object store; every file is written once."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from acep.errors import DataError

__all__ = ["Folder", "LocalFolder", "RemoteFolder", "folder_of", "state_folder"]

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_MOVES = ("hdfs",)  # a file is seen there while it is written, so it is moved to its name
_NO_LINKS = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.EINVAL}
_NO_SYNC = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}


class Folder(Protocol):
    """Small files by paths below one folder. Every method raises :class:`DataError` if the folder cannot be used."""

    shown: str

    def names(self, path: str) -> list[str]:
        """List the names of files and folders in a folder below; none if there is no such folder."""
        ...

    def read(self, path: str) -> bytes | None:
        """Read a whole file, or return ``None`` if there is none."""
        ...

    def write(self, path: str, data: bytes, *, replace: bool = False, parents: int = 0) -> None:
        """Write a file as a whole, durable when this returns; so are then its folder and ``parents`` folders above.

        If there is a file already, it stays unless ``replace`` is set (an object store always replaces it).
        """
        ...

    def remove(self, path: str) -> None:
        """Remove a folder below and the files in it, also if somebody else does so at the same time."""
        ...

    def remove_file(self, path: str) -> None:
        """Remove a file if it is there."""
        ...


def temporary_name() -> str:
    """Return a new name that no version has."""
    return f"tmp-{uuid4().hex}"


@contextmanager
def _usable(shown: str) -> Iterator[None]:
    """Turn the errors of a disk or a store into one line."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
        raise DataError(
            f"the state folder `{shown}` cannot be used: {reason.splitlines()[0]}",
            hint="state= names a folder that can be read and written, on Spark by all workers, with space left",
        ) from error


class LocalFolder:
    """A folder on a disk, or on what is mounted like one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.shown = str(root)

    def names(self, path: str) -> list[str]:
        """List the names in a folder below."""
        with _usable(self.shown):
            try:
                return [each.name for each in (self.root / path).iterdir()]
            except FileNotFoundError:
                return []

    def read(self, path: str) -> bytes | None:
        """Read a whole file."""
        with _usable(self.shown):
            try:
                return (self.root / path).read_bytes()
            except FileNotFoundError:
                return None

    def write(self, path: str, data: bytes, *, replace: bool = False, parents: int = 0) -> None:
        """Write a file as a whole, and sync it, its folder and ``parents`` folders above.

        The folders above come first: a file that others can see stands in folders that are durable.
        """
        final = self.root / path
        folder = final.parent
        temporary = folder / temporary_name()
        with _usable(self.shown):
            folder.mkdir(parents=True, exist_ok=True)
            for above in folder.parents[:parents]:
                _sync(above)
            try:
                with temporary.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                if replace:
                    temporary.replace(final)
                else:
                    _link(temporary, final)
            finally:
                temporary.unlink(missing_ok=True)
            _sync(folder)

    def remove(self, path: str) -> None:
        """Remove a folder below and its files, but for one that is written now: the next call removes that."""
        with _usable(self.shown):
            folder = self.root / path
            for name in self.names(path):
                if (file := folder / name).is_symlink() or not file.is_dir():
                    file.unlink(missing_ok=True)
            try:
                folder.rmdir()
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
                    raise

    def remove_file(self, path: str) -> None:
        """Remove a file if it is there."""
        with _usable(self.shown):
            (self.root / path).unlink(missing_ok=True)


def _link(temporary: Path, final: Path) -> None:
    """Give a file its name unless that is taken (without hard links the last of two who do so at once takes it)."""
    try:
        final.hardlink_to(temporary)
    except FileExistsError:
        pass
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if not final.exists():
            temporary.replace(final)


def _sync(folder: Path) -> None:
    """Make the names in a folder durable, where its disk can do so."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # a folder above the user's own: its entry is older than the stream
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


class RemoteFolder:
    """A folder of a file system of Arrow. With ``moves`` a file is written under another name and moved to its own."""

    def __init__(self, filesystem: Any, root: str, shown: str, *, moves: bool = False) -> None:
        self.filesystem = filesystem
        self.root = root.rstrip("/")
        self.shown = shown
        self.moves = moves

    def names(self, path: str) -> list[str]:
        """List the names in a folder below."""
        with _usable(self.shown):
            found = self.filesystem.get_file_info(fs.FileSelector(f"{self.root}/{path}", allow_not_found=True))
            return [each.base_name for each in found]

    def read(self, path: str) -> bytes | None:
        """Read a whole file."""
        with _usable(self.shown):
            try:
                with self.filesystem.open_input_stream(f"{self.root}/{path}", compression=None) as stream:
                    data = stream.read()
            except FileNotFoundError:
                return None
            assert isinstance(data, bytes)
            return data

    def write(self, path: str, data: bytes, *, replace: bool = False, parents: int = 0) -> None:
        """Write a file as a whole: one PUT, or a file under another name that is moved. ``parents`` has no meaning."""
        del parents
        final = f"{self.root}/{path}"
        with _usable(self.shown):
            if not self.moves:
                self._put(final, data)
                return
            folder = final.rpartition("/")[0]
            temporary = f"{folder}/{temporary_name()}"
            self.filesystem.create_dir(folder, recursive=True)
            try:
                self._put(temporary, data)
                if replace:
                    self._remove_file(final)
                self.filesystem.move(temporary, final)
            except (OSError, pa.ArrowException):
                taken = self._there(final)
                self._remove_file(temporary)
                if not taken:
                    raise

    def remove(self, path: str) -> None:
        """Remove a folder below and its files."""
        with _usable(self.shown):
            try:
                self.filesystem.delete_dir(f"{self.root}/{path}")
            except FileNotFoundError:
                return
            except (OSError, pa.ArrowException):
                if self.names(path):
                    raise

    def remove_file(self, path: str) -> None:
        """Remove a file if it is there."""
        with _usable(self.shown):
            self._remove_file(f"{self.root}/{path}")

    def _put(self, path: str, data: bytes) -> None:
        # Not closed if `write` fails: on an object store closing would complete an object that lacks its end.
        stream = self.filesystem.open_output_stream(path, compression=None)
        stream.write(data)
        stream.close()

    def _there(self, path: str) -> bool:
        return bool(self.filesystem.get_file_info(path).type == fs.FileType.File)

    def _remove_file(self, path: str) -> None:
        try:
            self.filesystem.delete_file(path)
        except (OSError, pa.ArrowException):
            if self._there(path):
                raise


def folder_of(folder: str) -> Folder:
    """Return the folder that an absolute path or a URI of Arrow's file systems names.

    Raises :class:`DataError` if it names none.
    """
    if not (scheme := _URI.match(folder)):
        if not folder.startswith("/") or "\0" in folder:
            raise DataError(f"`{folder}` is no folder for state", hint="give an absolute path, or a URI such as s3://")
        return LocalFolder(Path(folder))
    shown = re.sub(r"//[^/@]*@", "//", folder).partition("?")[0]  # without a key or a password
    if scheme[1] in ("s3a", "s3n", "wasb", "wasbs"):
        raise DataError(
            f"the state folder `{shown}` has a scheme that Arrow does not know",
            hint="write s3:// for s3a://, abfs:// for wasb://; the store's own environment variables name the account",
        )
    with _usable(shown):
        filesystem, path = _filesystem(folder)
    if isinstance(filesystem, fs.LocalFileSystem):
        return LocalFolder(Path(path))
    return RemoteFolder(filesystem, path, shown, moves=filesystem.type_name in _MOVES)


@lru_cache(maxsize=16)  # a store may be asked for its region
def _filesystem(uri: str) -> tuple[Any, str]:
    if uri.startswith("s3:"):  # without this a small file takes three requests
        with suppress(pa.ArrowInvalid):  # Arrow 20 does not know it
            return tuple(fs.FileSystem.from_uri(f"{uri}{'&' if '?' in uri else '?'}allow_delayed_open=true"))
    return tuple(fs.FileSystem.from_uri(uri))


def state_folder(given: str | os.PathLike[str]) -> str:
    """Return the absolute path or the URI of a folder for state, after a file was written there and removed.

    A folder on a disk is made if there is none.

    Raises :class:`DataError` if ``given`` is no folder that can be written.
    """
    if not isinstance(given, (str, os.PathLike)) or not (text := os.fspath(given)):
        raise DataError(
            f"state= takes a folder, not {given!r}", hint='give a path, or a URI such as "s3://bucket/state"'
        )
    if not isinstance(text, str):
        raise DataError("state= takes a folder as text, not as bytes")
    if not _URI.match(text):
        text = str(Path(text).expanduser().absolute())
    folder, probe = folder_of(text), temporary_name()
    folder.write(probe, b"")
    folder.remove_file(probe)
    return text

"""Storage of small files in a folder of a local disk, HDFS or an object store. A file is written as a whole."""

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

__all__ = [
    "Folder",
    "LocalFolder",
    "RemoteFolder",
    "absolute_place",
    "folder_of",
    "give_name",
    "place_below",
    "state_folder",
    "sync_folder",
]

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_MOVES = ("hdfs",)  # a file is visible there while it is written, so it is written under another name and moved
_NO_LINKS = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.EINVAL}
_NO_SYNC = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}


class Folder(Protocol):
    """A folder of small files, addressed by path. All methods raise :class:`DataError` if the folder cannot be used."""

    shown: str

    def names(self, path: str) -> list[str]:
        """List the names of files and folders in a subfolder; none if there is no such folder."""
        ...

    def read(self, path: str) -> bytes | None:
        """Read a whole file, or return ``None`` if there is none."""
        ...

    def write(self, path: str, data: bytes, *, replace: bool = False, parents: int = 0) -> None:
        """Write a whole file durably, and make its folder and ``parents`` folders above durable.

        An existing file stays unless ``replace`` is set (an object store always replaces it).
        """
        ...

    def remove(self, path: str) -> None:
        """Remove a subfolder and its files, even if another process does so at the same time."""
        ...

    def remove_file(self, path: str) -> None:
        """Remove a file if it exists."""
        ...


def temporary_name() -> str:
    """Return a new unique name that differs from the names of versions."""
    return f"tmp-{uuid4().hex}"


@contextmanager
def _usable(shown: str) -> Iterator[None]:
    """Convert errors of a disk or a store to a :class:`DataError` with a one-line message."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
        raise DataError(
            f"the state folder `{shown}` cannot be used: {reason.splitlines()[0]}",
            hint="state= names a folder that can be read and written, on Spark by all workers, with space left",
            code="file_read",
        ) from error


class LocalFolder:
    """A folder on a local disk or a mounted file system. One that is not ``durable`` need not outlive the process, and
    is not synced."""

    def __init__(self, root: Path, *, durable: bool = True) -> None:
        self.root, self.durable = root, durable
        self.shown = str(root)

    def names(self, path: str) -> list[str]:
        """List the names in a subfolder."""
        with _usable(self.shown):
            try:
                return [file.name for file in (self.root / path).iterdir()]
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
        """Write a whole file, and if it is to be durable, sync it, its folder and ``parents`` folders above.

        The folders above are synced first, so that a visible file is always in durable folders.
        """
        final = self.root / path
        folder = final.parent
        temporary = folder / temporary_name()
        with _usable(self.shown):
            folder.mkdir(parents=True, exist_ok=True)
            for above in folder.parents[: parents if self.durable else 0]:
                sync_folder(above)
            try:
                with temporary.open("xb") as file:
                    file.write(data)
                    file.flush()
                    if self.durable:
                        os.fsync(file.fileno())
                if replace:
                    temporary.replace(final)
                else:
                    give_name(temporary, final)
            finally:
                temporary.unlink(missing_ok=True)
            if self.durable:
                sync_folder(folder)

    def remove(self, path: str) -> None:
        """Remove a subfolder and its files. A file that is being written now stays until the next call."""
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
        """Remove a file if it exists."""
        with _usable(self.shown):
            (self.root / path).unlink(missing_ok=True)


def give_name(temporary: Path, final: Path) -> bool:
    """Give a file its name unless that is taken, and return whether it was free. The temporary name may stay. Without
    hard links, of two concurrent calls the last one wins."""
    try:
        final.hardlink_to(temporary)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if final.exists():
            return False
        temporary.replace(final)
    return True


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, if the disk supports this."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # a folder that belongs to another user already existed before the stream
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


class RemoteFolder:
    """A folder of an Arrow file system. With ``moves`` a file is written under a temporary name and then renamed."""

    def __init__(self, filesystem: Any, root: str, shown: str, *, moves: bool = False) -> None:
        self.filesystem = filesystem
        self.root = root.rstrip("/")
        self.shown = shown
        self.moves = moves

    def names(self, path: str) -> list[str]:
        """List the names in a subfolder."""
        with _usable(self.shown):
            infos = self.filesystem.get_file_info(fs.FileSelector(f"{self.root}/{path}", allow_not_found=True))
            return [info.base_name for info in infos]

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
        """Write a whole file by one PUT, or under a temporary name that is then renamed. ``parents`` is ignored."""
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
                exists = self._is_file(final)
                self._remove_file(temporary)
                if not exists:
                    raise

    def remove(self, path: str) -> None:
        """Remove a subfolder and its files."""
        with _usable(self.shown):
            try:
                self.filesystem.delete_dir(f"{self.root}/{path}")
            except FileNotFoundError:
                return
            except (OSError, pa.ArrowException):
                if self.names(path):
                    raise

    def remove_file(self, path: str) -> None:
        """Remove a file if it exists."""
        with _usable(self.shown):
            self._remove_file(f"{self.root}/{path}")

    def _put(self, path: str, data: bytes) -> None:
        # Not closed if `write` fails: on an object store, closing would create a truncated object.
        stream = self.filesystem.open_output_stream(path, compression=None)
        stream.write(data)
        stream.close()

    def _is_file(self, path: str) -> bool:
        return bool(self.filesystem.get_file_info(path).type == fs.FileType.File)

    def _remove_file(self, path: str) -> None:
        try:
            self.filesystem.delete_file(path)
        except (OSError, pa.ArrowException):
            if self._is_file(path):
                raise


def folder_of(folder: str) -> Folder:
    """Return the folder of an absolute path or of a URI of Arrow's file systems.

    Raise :class:`DataError` if the text is neither.
    """
    if not (scheme := _URI.match(folder)):
        if not folder.startswith("/") or "\0" in folder:
            raise DataError(
                f"`{folder}` is no folder for state",
                hint="give an absolute path, or a URI such as s3://",
                code="file_read",
            )
        return LocalFolder(Path(folder))
    shown = re.sub(r"//[^/@]*@", "//", folder).partition("?")[0]  # without a key or a password
    if scheme[1] in ("s3a", "s3n", "wasb", "wasbs"):
        raise DataError(
            f"the state folder `{shown}` has a scheme that Arrow does not know",
            hint="write s3:// for s3a://, abfs:// for wasb://; the store's own environment variables name the account",
            code="file_read",
        )
    with _usable(shown):
        filesystem, path = _filesystem(folder)
    if isinstance(filesystem, fs.LocalFileSystem):
        return LocalFolder(Path(path))
    return RemoteFolder(filesystem, path, shown, moves=filesystem.type_name in _MOVES)


@lru_cache(maxsize=16)  # opening a store may request its region
def _filesystem(uri: str) -> tuple[Any, str]:
    if uri.startswith("s3:"):  # without this a small file takes three requests
        with suppress(pa.ArrowInvalid):  # Arrow 20 does not support the option
            return tuple(fs.FileSystem.from_uri(f"{uri}{'&' if '?' in uri else '?'}allow_delayed_open=true"))
    return tuple(fs.FileSystem.from_uri(uri))


def absolute_place(text: str) -> str:
    """Return a path as an absolute one, and a URI as it is.

    >>> absolute_place("s3://bucket/state"), absolute_place("/tmp/state")
    ('s3://bucket/state', '/tmp/state')
    """
    return text if _URI.match(text) else str(Path(text).expanduser().absolute())


def place_below(place: str, name: str) -> str:
    """Return the absolute path or URI of a folder below another one.

    >>> place_below("s3://bucket/run?region=eu", "acep")
    's3://bucket/run/acep?region=eu'
    """
    if not _URI.match(place):
        return f"{place.rstrip('/')}/{name}"
    path, mark, options = place.partition("?")
    return f"{path.rstrip('/')}/{name}{mark}{options}"


def state_folder(path: str | os.PathLike[str]) -> str:
    """Return the absolute path or the URI of a state folder, after a test write and removal of a file.

    A missing folder on a disk is created.

    Raise :class:`DataError` if ``path`` is no writable folder.
    """
    if not isinstance(path, (str, os.PathLike)) or not (text := os.fspath(path)):
        raise DataError(
            f"state= takes a folder, not {path!r}",
            hint='give a path, or a URI such as "s3://bucket/state"',
            code="option_invalid",
        )
    if not isinstance(text, str):
        raise DataError("state= takes a folder as text, not as bytes", code="option_invalid")
    text = absolute_place(text)
    folder, probe = folder_of(text), temporary_name()
    folder.write(probe, b"")
    folder.remove_file(probe)
    return text

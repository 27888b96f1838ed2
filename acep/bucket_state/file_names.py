"""Name the files that keep the state of buckets, and protect their content with a checksum."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

import mmh3

__all__ = ["NUMBER", "OF_ALL", "Damage", "StateFile", "pack_state", "state_files_among", "unpack_state"]

MAGIC = b"ACEPVERS"
FORMAT = 1
HEADER = struct.Struct("<8sH16sQ")
"""Magic, version of the format, checksum of the path and the data, length of the data."""

NUMBER = r"(0|[1-9][0-9]{0,17})"
"""A number in a file name, as a regular expression with one group."""

OF_ALL = "-all"
"""The end of a file name in which the greatest time is that of all rows. Earlier ones have that of the bucket's own."""

_VERSION = re.compile(rf"{NUMBER}-{NUMBER}-(none|-?[0-9]{{1,20}})-([0-9a-f]{{32}})(-all|-fed|)")


@dataclass(frozen=True)
class StateFile:
    """The state of one bucket after one micro-batch, as recorded in the name of its file.

    ``run`` is the order of the run that wrote it, ``greatest`` the greatest time of all rows so far, in ticks, and
    ``digest`` (32 hexadecimal digits) identifies the rows that the bucket has received. ``mark`` is the end of the
    name: that of an earlier acep is another.
    """

    batch: int
    bucket: int
    run: int
    greatest: int | None
    digest: str
    mark: str = OF_ALL

    @property
    def name(self) -> str:
        """The name of the file in the folder of its micro-batch.

        >>> StateFile(7, 3, 1, -20, "0" * 32).name
        '3-1--20-00000000000000000000000000000000-all'
        """
        return f"{self.bucket}-{self.run}-{_text(self.greatest)}-{self.digest}{self.mark}"

    @property
    def rows(self) -> tuple[int | None, str]:
        """The part that is the same in every run, if the source repeats itself."""
        return self.greatest, self.digest


class Damage(Exception):  # noqa: N818
    """The content of a file is no state of a bucket; ``form`` is the version of its format if this is unsupported."""

    def __init__(self, form: int | None = None) -> None:
        super().__init__(form)
        self.form = form


def state_files_among(batch: int, names: list[str]) -> tuple[StateFile, ...]:
    """Parse the file names in the folder of a micro-batch. Files with other names are left out.

    >>> state_files_among(5, ["tmp-12", ".DS_Store", "3-1-none-" + "0" * 32])
    (StateFile(batch=5, bucket=3, run=1, greatest=None, digest='00000000000000000000000000000000', mark=''),)
    """
    state_files = []
    for name in names:
        if parts := _VERSION.fullmatch(name):
            state_file = StateFile(batch, int(parts[1]), int(parts[2]), _number(parts[3]), parts[4], parts[5])
            if state_file.name == name:
                state_files.append(state_file)
    return tuple(state_files)


def pack_state(path: str, data: bytes) -> bytes:
    """Return the content of the file of a state file at this path.

    >>> unpack_state("a/b", pack_state("a/b", b"state"))
    b'state'
    """
    return HEADER.pack(MAGIC, FORMAT, _checksum(path, data), len(data)) + data


def unpack_state(path: str, content: bytes) -> bytes:
    """Return the data of a state file from the content of its file.

    Raises :class:`Damage` if the content is damaged or has another format, or was written for another path.
    """
    if len(content) < HEADER.size:
        raise Damage
    magic, form, checksum, length = HEADER.unpack_from(content)
    if magic != MAGIC:
        raise Damage
    if form != FORMAT:
        raise Damage(form)
    data = content[HEADER.size :]
    if length != len(data) or checksum != _checksum(path, data):
        raise Damage
    return data


def _checksum(path: str, data: bytes) -> bytes:
    return mmh3.hash_bytes(mmh3.hash_bytes(data) + path.encode())


def _text(number: int | None) -> str:
    return "none" if number is None else str(number)


def _number(text: str) -> int | None:
    return None if text == "none" else int(text)

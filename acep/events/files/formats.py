"""Find the formats of files by their names, and open plain or compressed files."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pyarrow as pa

from acep.errors import DataError

__all__ = ["COMPRESSED", "NAMES", "SUFFIXES", "format_of", "open_bytes", "reason_of", "split_format"]

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
NAMES = {
    "csv": "csv", "tsv": "tsv", "zeek": "tsv", "parquet": "parquet", "jsonl": "jsonl", "ndjson": "jsonl",
    "json": "jsonl",
}  # fmt: skip
LISTED = ".csv, .tsv, .jsonl (or .ndjson), also with .gz or .zst, or .parquet"


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format of a file of events by its name: ``"csv"``, ``"tsv"``, ``"parquet"`` or ``"jsonl"``.

    Raises :class:`DataError` for any other name.

    >>> format_of("day.csv.gz"), format_of("day.ndjson")
    ('csv', 'jsonl')
    """
    form, packed = split_format(path)
    if form is None or (form == "parquet" and packed is not None):
        hint = f'its name must end in {LISTED}; or say what it is, as format="{_guess_format(path)}"'
        raise DataError(f"`{path}` is not named like a file of events", hint=hint, code="file_read")
    return form


def _guess_format(path: str | os.PathLike[str]) -> str:
    """Return the format that the first bytes of a file look like."""
    try:
        with open_bytes(Path(path), split_format(path)[1]) if Path(path).is_file() else io.BytesIO() as stream:
            head = stream.read(1 << 10)
    except (OSError, pa.ArrowException):
        return "csv"
    looks = {"zeek": head.startswith(b"#separator "), "parquet": head.startswith(b"PAR1"), "jsonl": head[:1] == b"{"}
    tabs = "tsv" if b"\t" in head and b"," not in head else "csv"
    return next((name for name, is_so in looks.items() if is_so), tabs)


def split_format(path: str | os.PathLike[str]) -> tuple[str | None, str | None]:
    """Return the format and the compression by the name, each ``None`` if unknown.

    >>> split_format("day.csv.zst"), split_format("day.txt")
    (('csv', 'zstd'), (None, None))
    """
    name = Path(path).name.lower()
    packed = COMPRESSED.get(Path(name).suffix)
    if packed is not None:
        name = name[: name.rindex(".")]
    return SUFFIXES.get(Path(name).suffix), packed


def open_bytes(path: Path, packed: str | None) -> pa.NativeFile:
    """Open the decompressed bytes of a file. Raises :class:`OSError`."""
    return pa.input_stream(str(path), compression=packed)


def reason_of(error: BaseException) -> str:
    """Return the first line of an error of the system or of Arrow."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.split(". Detail:")[0]
    return (str(error).strip().splitlines() or ["?"])[0].rstrip(".")

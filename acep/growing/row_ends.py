"""Cut what there is of a file that grows into whole rows, and what may be the beginning of one."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from acep.errors import DataError
from acep.events.files.csv.csv_dialect import ZEEK
from acep.events.files.csv.csv_files import CsvFile
from acep.events.files.finding import EventFile
from acep.events.files.options import BadLines, Options, too_long
from acep.events.files.text_bytes import is_wide

__all__ = ["RowEnds", "row_ends_of"]

HEADER = 1 << 20  # bytes in which a header ends


@dataclass(frozen=True)
class RowEnds:
    """How a file is cut: ``csv`` knows where rows of CSV end (``None``: lines of JSON), and the first ``header`` bytes
    name the columns."""

    path: Path
    options: Options
    csv: CsvFile | None
    header: int

    def read(self, descriptor: int, start: int, size: int, limit: int, lines: int) -> bytes:
        """Return the whole rows of the bytes from ``start`` on of an open file of ``size`` bytes: at most ``limit``
        bytes, unless one row has more; then at most twice its bytes. ``lines`` were taken before.

        Raises :class:`OSError`, and :class:`DataError` for a row that is longer than the options allow.
        """
        n_bytes = limit
        while True:
            data = os.pread(descriptor, min(n_bytes, size - start), start)
            end = data.rfind(b"\n") + 1 if self.csv is None else self.csv.end_of_rows(data)
            if end:
                return data[:end]
            if len(data) > self.options.max_line:
                raise too_long(str(self.path), lines + 1, self.options)
            if len(data) < n_bytes or len(data) >= size - start:
                return b""
            n_bytes *= 2


def row_ends_of(path: Path, form: str, options: Options) -> RowEnds | None:
    """Return how a file is cut; ``None`` if its header is not whole yet.

    Raises :class:`OSError`, and :class:`DataError` for a file that is no text of its form, or not in UTF-8.
    """
    with path.open("rb") as stream:
        head = stream.read(HEADER)
    if is_wide(head):
        raise DataError(
            f"`{path}` is in UTF-16 or UTF-32, and a file that grows is read as UTF-8",
            hint="write it in UTF-8",
            code="data_value",
        )
    if form == "jsonl":
        return RowEnds(path, options, None, 0)
    lines = head.split(b"\n")
    is_zeek = head.startswith(ZEEK)
    if not any(line.strip() and not (is_zeek and line.startswith(b"#")) for line in lines[:-1]):
        return None
    file_options = replace(options, casts=dict(options.casts))  # a header of Zeek adds to the casts
    csv = CsvFile(EventFile(path, str(path), form), file_options, BadLines())
    n_lines = csv.dialect.header_lines
    return RowEnds(path, options, csv, sum(len(line) + 1 for line in lines[:n_lines]))

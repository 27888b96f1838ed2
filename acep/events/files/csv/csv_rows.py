"""Cut the text of CSV files into blocks of whole rows, and find quotation marks that would swallow rows.

A cell in quotation marks may hold line ends. So a mark that somebody forgot to close, or that begins a cell by chance,
makes one cell of all rows up to the next mark, and no reader of CSV complains.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["NOT_CLOSED", "ROWS_INSIDE", "TEXT_BEHIND", "TOO_LONG", "RowCutter", "RowPiece"]

NOT_CLOSED = "a quotation mark begins a cell and is not closed"
TEXT_BEHIND = "text follows the quotation mark that closes a cell"
ROWS_INSIDE = "quotation marks make one cell of lines that look like rows"
TOO_LONG = "too long"
LINE_FEED, RETURN, QUOTE = 10, 13, 34
BLOCK = 1 << 20  # bytes that are cut at once
MANY_BYTES = 1 << 12  # of which NumPy counts faster than Python
QUOTED = re.compile(rb'"[^"]*(?:""[^"]*)*"(?!")')


@dataclass(frozen=True)
class RowPiece:
    """A part of a file: whole rows; or one line at which no row begins, and ``why``. ``line`` is the number of its
    first line, from 1."""

    line: int
    data: bytes
    why: str | None = None


@dataclass(frozen=True)
class RowCutter:
    """Cut CSV into rows.

    ``delimiter`` is the byte between cells; ``quotes``: whether cells may stand in quotation marks; ``max_line`` the
    number of bytes that a row may have. ``is_row`` says of a line inside a cell whether it looks like a row (``None``:
    lines inside cells are not looked at).
    """

    delimiter: bytes
    max_line: int
    quotes: bool = True
    is_row: Callable[[bytes], bool] | None = None

    def pieces(self, chunks: Iterable[bytes]) -> Iterator[RowPiece]:
        r"""Yield the pieces of a file whose bytes come in chunks.

        >>> for piece in RowCutter(b",", 99).pieces([b'1,"a\n2,', b'b\n3,"c"\n']):
        ...     print(piece)
        RowPiece(line=1, data=b'1,"a\n', why='text follows the quotation mark that closes a cell')
        RowPiece(line=2, data=b'2,b\n3,"c"\n', why=None)
        """
        line, pending, n_wanted, is_skipping = 1, b"", 0, False
        for chunk in chain(chunks, [None]):
            at_end = chunk is None
            pending += chunk or b""
            if is_skipping:  # the line that is too long goes on
                end = pending.find(b"\n") + 1
                pending, is_skipping = pending[end:] if end else b"", not end
            if len(pending) < n_wanted and not at_end:
                continue
            spans, resume = self._split(pending, at_end=at_end)
            for start, stop, why in spans:
                data = pending[start:stop]
                yield RowPiece(line, data, why)
                line += count_lines(data)
            pending = pending[resume:]
            if len(pending) > self.max_line:  # of one line: else the row would have been refused
                yield RowPiece(line, b"", TOO_LONG)
                line, pending, is_skipping = line + 1, b"", True
            n_wanted = 2 * len(pending)

    def end_of_rows(self, data: bytes) -> int:
        r"""Return where the last whole row of some data ends, which begins with a row and may go on.

        A line with a quotation mark that is not closed is passed if a line behind it looks like a row.

        >>> RowCutter(b",", 99).end_of_rows(b'1,"a"\n2,"b\nc')
        6
        >>> RowCutter(b",", 99, is_row=lambda line: line[:1].isdigit()).end_of_rows(b'1,"a\n2,b\n')
        9
        """
        end, size = 0, BLOCK
        while end < len(data):
            block = data[end : end + size]
            _, resume = self._split(block, at_end=False)
            if not resume and end + size < len(data):
                size *= 2
                continue
            lines = block[resume:].split(b"\n") if resume < len(block) and end + size >= len(data) else []
            end, size = end + resume, BLOCK
            if self.is_row is not None and any(map(self.is_row, lines[1:-1])):
                end += len(lines[0]) + 1
            elif not resume:
                break
        return end

    def rows(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the rows of some data that are not blank, each with the number of the lines before it."""
        n_lines = n_bytes = 0
        for start, stop, _ in self._walk(data, at_end=True):
            n_lines += count_lines(data[n_bytes:start])
            n_bytes = start
            if data[start:stop].strip(b"\r\n"):
                yield n_lines, data[start:stop]

    def n_cells(self, row: bytes) -> int:
        """Return the number of cells of a row."""
        return len(self.cells(row))

    def cells(self, row: bytes) -> list[str]:
        """Return the cells of a row, with a character for each byte."""
        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if self.quotes else csv.QUOTE_NONE
        text, delimiter = row.rstrip(b"\r\n").decode("latin-1"), self.delimiter.decode()
        try:
            return next(csv.reader(iter([text]), delimiter=delimiter, quoting=quoting), [])
        except csv.Error:  # a cell of more than 128 KB
            return text.split(delimiter)

    def _split(self, data: bytes, *, at_end: bool) -> tuple[list[tuple[int, int, str | None]], int]:
        """Return the parts of some data that begins with a row, and where the last row begins, of which more has to
        come."""
        end = self._end_if_clean(data, at_end=at_end)
        if end is not None:
            return [(0, end, None)] if end else [], end
        spans: list[tuple[int, int, str | None]] = []
        resume = 0
        for start, stop, why in self._walk(data, at_end=at_end):
            is_more = why is None and spans and spans[-1][2] is None
            if is_more:
                spans[-1] = (spans[-1][0], stop, None)
            else:
                spans.append((start, stop, why))
            resume = stop
        return spans, resume

    def _end_if_clean(self, data: bytes, *, at_end: bool) -> int | None:
        """Return where the last whole row of some data ends, or ``None`` if it has to be read row by row."""
        line_feed = b"\n" if b"\n" in data or not at_end else b"\r"
        if not self.quotes or b'"' not in data or self._encloses_cells_only(data, line_feed, at_end=at_end):
            end = len(data) if at_end else data.rfind(line_feed) + 1
            return end if end <= self.max_line else None
        letters = np.frombuffer(data, np.uint8)
        marks = np.flatnonzero(letters == QUOTE)
        if not self._is_regular(letters, marks) or (at_end and len(marks) % 2):
            return None
        line_ends = np.flatnonzero(letters == line_feed[0])
        is_inside = np.searchsorted(marks, line_ends) % 2 == 1
        if self.is_row is not None and is_inside.any():
            stops = [*line_ends.tolist(), *([len(data)] if at_end else [])]
            for i in np.flatnonzero(is_inside[: len(stops) - 1]).tolist():
                if self.is_row(data[stops[i] + 1 : stops[i + 1]]):
                    return None
        outside = line_ends[~is_inside]
        end = len(data) if at_end else int(outside[-1]) + 1 if len(outside) else 0
        return end if end <= self.max_line and len(data) - end <= self.max_line else None

    def _encloses_cells_only(self, data: bytes, line_feed: bytes, *, at_end: bool) -> bool:
        """Return whether each quotation mark begins or ends a cell or is written twice, and no line ends in a cell."""
        from acep.events.files.csv.quote_bits import encloses_cells_only  # files without quotes do not need it

        return encloses_cells_only(data, self.delimiter, line_feed, at_end=at_end)

    def _is_regular(self, letters: npt.NDArray[np.uint8], marks: npt.NDArray[np.intp]) -> bool:
        """Return whether marks stand at the beginnings and ends of cells only, or in twos inside cells."""
        opening, closing = marks[0::2], marks[1::2]
        before = np.where(opening > 0, letters[opening - 1], LINE_FEED)
        behind = letters[np.minimum(closing + 1, len(letters) - 1)]
        limits = (self.delimiter[0], LINE_FEED, RETURN, QUOTE)
        return bool(np.isin(before, limits).all() and np.isin(behind, limits).all())

    def _walk(self, data: bytes, *, at_end: bool) -> Iterator[tuple[int, int, str | None]]:
        """Yield where rows begin and end, mark by mark, and lines at which none begins; without ``at_end`` the last row
        is left out unless it is whole.

        A mark inside a cell that does not begin with one is text, as for Arrow.
        """
        line_feed = b"\n" if b"\n" in data or not at_end else b"\r"
        start = place = 0  # where the row begins, and up to where it was read
        line_stop = mark = -1
        while start < len(data):
            line_stop = find(data, line_feed, place) if line_stop < place else line_stop
            mark = (find(data, b'"', place) if self.quotes else len(data)) if mark < place else mark
            if line_stop <= mark:  # the row ends
                stop = min(line_stop + 1, len(data))
                why = TOO_LONG if stop - start > self.max_line else None
            elif mark > start and data[mark - 1] not in (self.delimiter[0], LINE_FEED, RETURN):
                place = mark + 1
                continue
            else:
                cell = QUOTED.match(data, mark)
                why, stop = self._fault_of(data, cell, line_feed), len(data)
                if cell is not None and why is None:
                    place = cell.end()
                    continue
            if why is not None:  # the row is left out with its first line only
                stop = min(find(data, line_feed, start) + 1, len(data))
                line_stop = mark = -1
            is_cut_off = stop == len(data) and data[-1] != line_feed[0]
            if not at_end and (is_cut_off or (why == NOT_CLOSED and len(data) - start <= self.max_line)):
                return
            yield start, stop, why
            start = place = stop

    def _fault_of(self, data: bytes, cell: re.Match[bytes] | None, line_feed: bytes) -> str | None:
        """Return what is wrong with a cell in quotation marks; ``None``: nothing."""
        if cell is None:
            return NOT_CLOSED
        if cell.end() < len(data) and data[cell.end()] not in (self.delimiter[0], LINE_FEED, RETURN):
            return TEXT_BEHIND
        if self.is_row is not None and line_feed in cell[0]:
            end = find(data, line_feed, cell.end())
            if any(map(self.is_row, data[cell.start() : end].split(line_feed)[1:])):
                return ROWS_INSIDE
        return None


def find(data: bytes, part: bytes, start: int) -> int:
    """Return the first place of a part from ``start`` on, or the length of the data if there is none."""
    place = data.find(part, start)
    return len(data) if place < 0 else place


def count_lines(data: bytes) -> int:
    """Return the number of line ends in some data."""
    if len(data) < MANY_BYTES:
        return data.count(b"\n") or data.count(b"\r")
    letters = np.frombuffer(data, np.uint8)
    return int(np.count_nonzero(letters == LINE_FEED) or np.count_nonzero(letters == RETURN))

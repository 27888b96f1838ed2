"""Say how Arrow's CSV reader would read each cell of a column by itself: as a number, a time, or a text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.events.buffers import nulls
from acep.events.files.casts import bad_rows
from acep.events.files.csv.csv_values import convert_texts
from acep.events.files.far_times import check_reach

__all__ = [
    "COMMA",
    "COMMAS",
    "DIGITS",
    "FINE",
    "INTEGER",
    "NUMBERS",
    "TEXTS",
    "UNZONED",
    "ZONED",
    "Rows",
    "cell_sorts",
    "distinct_texts",
    "first_match",
    "longest_length",
    "matching",
    "valid_rows",
    "zero_rows",
]

TEXTS, DIGITS, COMMAS, NUMBERS = "texts", "digits that are no plain numbers", "numbers with a comma", "numbers"
UNZONED, ZONED = "times", "times with a zone"
FEW = 1_000  # texts for which Arrow's functions are not imported
BLANKS = r"[ \t]*"
INTEGER = rf"{BLANKS}[+-]?[0-9]+{BLANKS}"
ZEROS = rf"{BLANKS}(\+[0-9]+|-?0[0-9]+){BLANKS}"
SIGNS = rf"{BLANKS}\+[0-9]+{BLANKS}"
BIG = rf"{BLANKS}[+-]?[0-9]{{19}}[0-9]*{BLANKS}"
NUMBER = rf"{BLANKS}[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?{BLANKS}"
WORD = rf"{BLANKS}[+-]?(?i:inf|infinity|nan){BLANKS}"
TRUTH = "true|True|TRUE|false|False|FALSE"
CLOCK = r"[0-9][0-9]:[0-9][0-9](:[0-9][0-9])?"
DAY = r"[0-9]{4}-[0-9][0-9]-[0-9][0-9]"
CLOCK_OF_DAY = r"[ T][0-9][0-9](:?[0-9][0-9](:?[0-9][0-9](\.[0-9]{1,9})?)?)?"
ZONE = r"(Z|[+-][0-9][0-9](:?[0-9][0-9])?)"
COMMA = rf"{BLANKS}[+-]?[0-9]+,[0-9]+{BLANKS}"
FINE = r".*\.[0-9]{7,9}(Z|[+-][0-9:]+)?"  # only nanoseconds hold it
# Each sort with what its cells look like, and the type that they must be read as.
KINDS: tuple[tuple[str, str, pa.DataType | None], ...] = (
    (NUMBERS, f"{NUMBER}|{WORD}", pa.float64()),
    ("truth values", TRUTH, None),
    (UNZONED, f"{DAY}({CLOCK_OF_DAY})?", pa.timestamp("us")),
    (ZONED, f"{DAY}{CLOCK_OF_DAY}{ZONE}", pa.timestamp("us", "UTC")),
    ("times of day", CLOCK, pa.time32("s")),
    (COMMAS, COMMA, None),
)
PLAUSIBLE = "|".join(f"({pattern})" for _, pattern, _ in KINDS)
# The bytes that may be in cells of these kinds count 0, a point 1 as it is there once at most, and others 2.
FOREIGN = bytes(
    1 if chr(byte) == "." else 0 if chr(byte) in "0123456789+-, :eETZ\tinftyaINFTYAtruefalsTRUEFALS" else 2
    for byte in range(256)
)
FIRST_BYTES = bytes(chr(byte) in "0123456789+-. \tiInNtTfF" for byte in range(256))
ZERO_BYTES = bytes(byte <= ord(" ") or chr(byte) in "0+-" for byte in range(256))
"""Those with which integers with a leading zero or a plus sign begin."""

Rows = npt.NDArray[np.int64]


def cell_sorts(texts: pa.StringArray, *, only_times: bool = False, zeros_count: bool = True) -> dict[str, Rows]:
    """Return the rows of each sort of cells; null is of no sort. ``only_times``: texts of JSON, which are never
    numbers. Without ``zeros_count`` a leading zero does not make digits of a number.

    >>> {sort: rows.tolist() for sort, rows in cell_sorts(pa.array(["1.5", "x", "007", None, "2024-02-30"])).items()}
    {'texts': [1, 4], 'numbers': [0], 'digits that are no plain numbers': [2]}
    """
    rows = _plausible(texts)
    if not len(rows):
        return {TEXTS: valid_rows(texts)}
    valid = ~nulls(texts)
    if len(rows) > FEW:
        rows = rows[~_has_foreign_bytes(texts.take(pa.array(rows)))]
    if len(rows):
        rows = rows[matching(texts.take(pa.array(rows)), PLAUSIBLE)]
    sorts: dict[str, Rows] = {}
    for sort, pattern, wanted in KINDS:
        if not len(rows):
            break
        if only_times and not (wanted is not None and pa.types.is_timestamp(wanted)):
            continue
        cells = texts.take(pa.array(rows))
        fits = matching(cells, pattern)
        if wanted is not None and fits.any():
            fits[np.flatnonzero(fits)[_unread(cells.filter(pa.array(fits)), wanted)]] = False
        if fits.any():
            sorts[sort] = rows[fits]
            valid[rows[fits]] = False
    if NUMBERS in sorts:
        numbers = texts.take(pa.array(sorts[NUMBERS]))
        odd = matching(numbers, ZEROS if zeros_count else SIGNS) | _beyond_64_bits(numbers)
        sorts |= {NUMBERS: sorts[NUMBERS][~odd], DIGITS: sorts[NUMBERS][odd]}
    sorts = {TEXTS: np.flatnonzero(valid)} | sorts
    return {sort: rows for sort, rows in sorts.items() if len(rows)}


def valid_rows(texts: pa.Array) -> Rows:
    """Return the rows that are not null."""
    return np.flatnonzero(~nulls(texts)) if texts.null_count else np.arange(len(texts))


def zero_rows(texts: pa.Array | pa.ChunkedArray, *, hexadecimal: bool = False) -> Rows:
    """Return the rows with an integer that has a leading zero or a plus sign; ``hexadecimal`` ones have a zero, too.

    >>> zero_rows(pa.array(["007", "0.5", "-07", "0", "+7", "7"])).tolist()
    [0, 2, 4]
    """
    pattern = rf"{ZEROS}|{BLANKS}0[xX].*" if hexadecimal else ZEROS
    n_before, rows = 0, [np.empty(0, np.int64)]
    for chunk in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
        candidates = _with_zero(chunk)
        if len(candidates):
            rows.append(n_before + candidates[matching(chunk.take(pa.array(candidates)), pattern)])
        n_before += len(chunk)
    return np.concatenate(rows)


def first_match(texts: pa.ChunkedArray, pattern: str, *, inverse: bool = False) -> int | None:
    """Return the first row whose text matches a pattern (``inverse``: does not); null is left out."""
    program = re.compile(pattern)
    for start in range(0, len(texts), FEW):
        for row, text in enumerate(texts.slice(start, FEW).to_pylist(), start):
            if text is not None and (program.fullmatch(text) is None) is inverse:
                return row
    return None


def distinct_texts(texts: pa.ChunkedArray) -> list[str]:
    """Return the texts that are not null; of more than a few each once."""
    return [text for text in (texts if len(texts) <= FEW else texts.unique()).to_pylist() if text is not None]


def longest_length(texts: pa.ChunkedArray) -> int:
    """Return the number of bytes of the longest text.

    >>> longest_length(pa.chunked_array([["a", None], ["abc"]]))
    3
    """
    places = [place for chunk in texts.chunks if (place := _places(chunk)) is not None]
    return max((int(lengths.max()) for _, lengths, _ in places), default=0)


def matching(texts: pa.Array, pattern: str) -> npt.NDArray[np.bool_]:
    """Return which texts match a pattern as a whole."""
    if len(texts) <= FEW:
        program = re.compile(pattern)
        return np.array([text is not None and program.fullmatch(text) is not None for text in texts.to_pylist()], bool)
    import pyarrow.compute as pc

    matches = pc.fill_null(pc.match_substring_regex(texts, rf"^(?:{pattern})\z"), False)
    return np.array(matches.to_numpy(zero_copy_only=False))


def _places(texts: pa.Array) -> tuple[Any, Any, Any] | None:
    """Return where texts begin, how long they are, and the bytes of all; ``None`` if there are none."""
    _, places, data = texts.buffers()
    if not len(texts) or data is None or not data.size:
        return None
    offsets = np.frombuffer(places, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return offsets[:-1], np.diff(offsets), np.frombuffer(data, np.uint8)


def _begin_with(texts: pa.Array, first_bytes: bytes) -> tuple[Rows, Any, Any]:
    """Return the rows of texts that begin with some bytes (1 in the table), where these begin, and how long they
    are."""
    places = _places(texts)
    if places is None:
        return np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32)
    starts, lengths, letters = places
    first = letters.take(starts, mode="clip")
    rows = np.flatnonzero(np.frombuffer(first.tobytes().translate(first_bytes), bool) & (lengths > 0))
    return rows, starts[rows], lengths[rows]


def _plausible(texts: pa.Array) -> Rows:
    """Return the rows that may be more than texts, by their first byte."""
    return _begin_with(texts, FIRST_BYTES)[0]


def _has_foreign_bytes(texts: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which texts, none of which is empty, have bytes that only texts have, or two points."""
    places = _places(texts)
    assert places is not None
    starts, lengths, letters = places
    data = letters[: starts[-1] + lengths[-1]].tobytes().translate(FOREIGN)
    return np.add.reduceat(np.frombuffer(data, np.uint8), starts) > 1


def _with_zero(texts: pa.Array) -> Rows:
    """Return the rows that may have a leading zero or a plus sign, by their first bytes."""
    rows, starts, lengths = _begin_with(texts, ZERO_BYTES)
    if not len(rows):
        return rows
    letters = np.frombuffer(texts.buffers()[2], np.uint8)
    first, second, third = (letters.take(starts + i, mode="clip") for i in range(3))
    is_signed = first == ord("-")
    zero, behind = np.where(is_signed, second, first), np.where(is_signed, third, second)
    has_zero = (zero == ord("0")) & (behind != ord(".")) & (lengths > 1 + is_signed)
    is_candidate = (lengths > 1) & (has_zero | (first == ord("+")) | (first <= ord(" ")))
    return np.asarray(rows[is_candidate], np.int64)


def _beyond_64_bits(numbers: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which numbers are integers that 64 bits do not hold."""
    big = matching(numbers, BIG)
    for row in np.flatnonzero(big).tolist():
        digits = numbers[row].as_py().strip(" \t")
        big[row] = len(digits) > 20 or not -(2**63) <= int(digits) < 2**63
    return big


def _unread(cells: pa.Array, wanted: pa.DataType) -> list[int]:
    """Return the rows of cells that Arrow does not read as values of a type."""
    if pa.types.is_floating(wanted):
        return bad_rows(pa.chunked_array([cells]), _reads_as(wanted))
    if pa.types.is_time(wanted):
        clocks = cells.dictionary_encode()
        no_clocks = bad_rows(pa.chunked_array([clocks.dictionary]), lambda texts: convert_texts(texts, wanted))
        return np.flatnonzero(np.isin(clocks.indices.to_numpy(), no_clocks)).tolist()
    days = pa.array([text[:10] for text in cells.to_pylist()]).dictionary_encode()
    no_days = bad_rows(pa.chunked_array([days.dictionary]), _reads_as(pa.date32()))
    unread = np.isin(days.indices.to_numpy(), no_days)
    fine = matching(cells, FINE)
    for unit, is_of_unit in (("us", ~fine), ("ns", fine)):
        rows = np.flatnonzero(is_of_unit & ~unread)
        if len(rows):
            times = pa.chunked_array([cells.take(pa.array(rows))])
            unread[rows[bad_rows(times, _reads_as(pa.timestamp(unit, wanted.tz)))]] = True
    return np.flatnonzero(unread).tolist()


def _reads_as(wanted: pa.DataType) -> Callable[[pa.ChunkedArray], Any]:
    """Return a function that raises for texts that are no values of a type; blanks around numbers do not count."""

    def read(texts: pa.ChunkedArray) -> pa.ChunkedArray:
        import pyarrow.compute as pc

        trimmed = pc.utf8_trim(texts, " \t") if pa.types.is_floating(wanted) else texts
        return check_reach(trimmed, trimmed.cast(wanted))

    return read

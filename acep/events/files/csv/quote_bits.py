"""Find out by bits, 64 bytes at a time, whether quotation marks only enclose cells that end in their line."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["encloses_cells_only"]

QUOTE = b'"'
LINE_ENDS = (b"\n", b"\r")
PART = 1 << 16  # bytes that a processor keeps close by; a multiple of 64
BIT, LAST = np.uint64(1), np.uint64(63)

Bits = npt.NDArray[np.uint64]


def encloses_cells_only(data: bytes, delimiter: bytes, line_end: bytes, *, at_end: bool) -> bool:
    r"""Return whether each quotation mark of some data, which begins with a row, begins or ends a cell or is written
    twice, and no line ends inside a cell. ``at_end``: a cell may not be left open.

    >>> [encloses_cells_only(data, b",", b"\n", at_end=True) for data in (b'"a","b"\n"c"', b'"a"b\n', b'"a\nb"', b'"a')]
    [True, False, False, False]
    """
    letters = np.frombuffer(data, np.uint8)
    marks, line_ends = _places_of(QUOTE, letters), _places_of(line_end, letters)
    inside = _parities(marks)  # set from a mark that opens a cell up to the byte before the one that closes it
    if (inside & line_ends).any() or (at_end and inside[-1] >> LAST):
        return False
    limits = marks | line_ends | _places_of(delimiter, letters)
    for other_end in LINE_ENDS:
        if other_end != line_end and other_end in data:
            limits |= _places_of(other_end, letters)
    bytes_before, behind = limits << BIT, limits >> BIT
    bytes_before[1:] |= limits[:-1] >> LAST
    behind[:-1] |= limits[1:] << LAST
    bytes_before[0] |= BIT
    behind[(len(data) - 1) // 64] |= BIT << np.uint64((len(data) - 1) % 64)
    return not (marks & ((inside & ~bytes_before) | (~inside & ~behind))).any()


def _places_of(byte: bytes, letters: npt.NDArray[np.uint8]) -> Bits:
    """Return a bit for each letter: whether it is a byte. At least one bit follows, which is 0."""
    bits = np.zeros(len(letters) // 64 + 1, np.uint64)
    octets = bits.view(np.uint8)
    for start in range(0, len(letters), PART):
        packed = np.packbits(letters[start : start + PART] == byte[0], bitorder="little")
        octets[start // 8 : start // 8 + len(packed)] = packed
    return bits


def _parities(marks: Bits) -> Bits:
    """Return for each place whether the number of marks up to it is odd."""
    bits = marks
    for width in (1, 2, 4, 8, 16, 32):
        bits = bits ^ (bits << np.uint64(width))
    is_odd = np.zeros(len(bits), np.uint64)
    is_odd[1:] = np.bitwise_xor.accumulate(bits >> LAST)[:-1]
    return bits ^ (np.uint64(0) - is_odd)

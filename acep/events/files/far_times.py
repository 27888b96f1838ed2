"""Refuse times in texts that nanoseconds do not reach, such as the year 9999: Arrow before 23 takes them for others."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["in_reach"]

WRAPS = int(pa.__version__.partition(".")[0]) < 23


def in_reach(texts: pa.Array | pa.ChunkedArray, times: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return ``times``, which Arrow has read from ``texts``.

    Raises :class:`pyarrow.ArrowInvalid` if some are in another year than the text says, as newer versions do.

    >>> in_reach(pa.array(["2024-01-31"]), pa.array(["2024-01-31"]).cast(pa.timestamp("ns")))[0].as_py().year
    2024
    """
    if not WRAPS or not pa.types.is_timestamp(times.type) or times.type.unit != "ns" or not len(times):
        return times
    import pyarrow.compute as pc

    heads = pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(texts), 0, 4)
    has_year = pc.and_(times.is_valid(), pc.fill_null(pc.match_substring_regex(heads, r"^\d{4}$"), False))
    years = pc.cast(pc.if_else(has_year, heads, "0"), pa.int64())
    # A zone moves a time by a day at most, so by a year at most.
    is_other = pc.greater(pc.abs(pc.subtract(pc.year(times.cast(pa.timestamp("ns"))), years)), 1)
    if pc.any(pc.and_(has_year, is_other)).as_py():
        raise pa.ArrowInvalid("times beyond the years 1677 to 2262 are not in nanoseconds")
    return times

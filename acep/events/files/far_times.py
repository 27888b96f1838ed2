"""Refuse texts that Arrow takes for times: of the year 0, and before Arrow 23 of years beyond those of nanoseconds."""

from __future__ import annotations

import pyarrow as pa

from acep.events.buffers import join_chunks
from acep.events.columns import UNIT_NS

__all__ = ["check_reach"]

WRAPS = int(pa.__version__.partition(".")[0]) < 23
DAY_NS = 86_400 * 10**9
YEAR_1 = -719_162  # days from 1970 to its beginning


def check_reach(texts: pa.Array | pa.ChunkedArray, times: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return ``times``, which Arrow has read from ``texts``.

    Raises :class:`pyarrow.ArrowInvalid` if a text is of the year 0, which no calendar has, or if some are in another
    year than the text says, as newer versions do.

    >>> check_reach(pa.array(["2024-01-31"]), pa.array(["2024-01-31"]).cast(pa.timestamp("ns")))[0].as_py().year
    2024
    """
    if pa.types.is_date(times.type) or (pa.types.is_timestamp(times.type) and times.type.unit != "ns"):
        _refuse_year_0(texts, times)
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


def _refuse_year_0(texts: pa.Array | pa.ChunkedArray, times: pa.Array | pa.ChunkedArray) -> None:
    """Raise :class:`pyarrow.ArrowInvalid` if a text is of the year 0. A zone moves a time by a day at most, so only
    times before the second day of the year 1 are looked at as texts."""
    if not len(times):
        return
    ticks, is_null = join_chunks(times if isinstance(times, pa.ChunkedArray) else pa.chunked_array([times]))
    ticks_a_day = DAY_NS // UNIT_NS["d" if pa.types.is_date32(times.type) else getattr(times.type, "unit", "ms")]
    is_early = ticks < (YEAR_1 + 1) * ticks_a_day
    rows = (is_early if is_null is None else is_early & ~is_null).nonzero()[0]
    if len(rows) and any(text.lstrip().startswith("0000") for text in texts.take(pa.array(rows)).unique().to_pylist()):
        raise pa.ArrowInvalid("there is no year 0")

"""Read Parquet files in batches of rows, one row group at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from acep.errors import DataError
from acep.events.files.finding import EventFile
from acep.events.files.formats import reason_of
from acep.events.files.options import Options

__all__ = ["ParquetFile"]

ROWS = 1 << 16
BUFFER = 1 << 20


class ParquetFile:
    """One Parquet file. ``schema`` has the columns that are read.

    Raises :class:`DataError` for a file that is truncated or of another format.
    """

    def __init__(self, source: EventFile, options: Options) -> None:
        import pyarrow.parquet as pq

        self.source = source
        try:
            with pq.ParquetFile(source.path) as opened:
                whole, self.rows = opened.schema_arrow, opened.metadata.num_rows
        except PermissionError as wrong:
            raise DataError(f"`{source.name}` cannot be read: {reason_of(wrong)}", code="file_read") from None
        except (pa.ArrowException, OSError, UnicodeDecodeError) as wrong:
            raise self._error(wrong) from None
        self.names: list[str] = whole.names
        self.schema = pa.schema([whole.field(name) for name in options.wanted(self.names, source.name)])

    def values(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield batches of rows with ``columns``, or with all columns of ``schema``."""
        import pyarrow.parquet as pq

        names = self.schema.names if columns is None else list(columns)
        try:
            with pq.ParquetFile(self.source.path, buffer_size=BUFFER) as opened:
                for batch in opened.iter_batches(ROWS, columns=names, use_threads=False):
                    yield pa.Table.from_batches([batch]).select(names)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as wrong:
            raise self._error(wrong) from None

    def _error(self, wrong: BaseException) -> DataError:
        return DataError(
            f"`{self.source.name}` is not a whole Parquet file: {reason_of(wrong)}",
            hint="it may have been cut off, or hold another format",
            code="file_read",
        )

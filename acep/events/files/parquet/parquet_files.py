"""Read Parquet files in batches of rows, one row group at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from acep.errors import DataError
from acep.events.fields import column_at
from acep.events.files.finding import EventFile
from acep.events.files.formats import reason_of
from acep.events.files.options import Options
from acep.events.files.parquet.int96 import int96_columns, unit_of_int96
from acep.events.files.parquet.parquet_bounds import check_size, rows_at_once
from acep.events.files.text_bytes import check_expansion
from acep.events.nested import path_to

__all__ = ["ParquetFile"]

ROWS = 1 << 16
BUFFER = 1 << 20


class ParquetFile:
    """One Parquet file. ``schema`` has the columns that are read: those that are used, also fields and parts of lists.
    ``width`` is the number of bytes that a row may have.

    Raises :class:`DataError` for a file that is truncated or of another format, for times that no unit holds, and for
    one that is larger than the options allow.
    """

    def __init__(self, source: EventFile, options: Options) -> None:
        import pyarrow.parquet as pq

        self.source, self._options = source, options
        try:
            with pq.ParquetFile(source.path) as opened:
                schema = opened.schema_arrow
                self.names: list[str] = schema.names
                names = self._names_read(schema, options)
                self._roots = list(dict.fromkeys(path.root for name in names if (path := path_to(schema, name))))
                check_size(opened, source, self._roots, options)
                int96 = [name for name in int96_columns(opened.schema) if name in self._roots]
            self._rows, self.width = rows_at_once(source, self._roots, options, ROWS)
            self._how: dict[str, Any] = {"buffer_size": BUFFER}
            if int96:
                self._how["coerce_int96_timestamp_unit"] = unit_of_int96(source.path, source.name, int96, ROWS)
                with pq.ParquetFile(source.path, **self._how) as opened:
                    schema = opened.schema_arrow
        except PermissionError as wrong:
            raise DataError(f"`{source.name}` cannot be read: {reason_of(wrong)}", code="file_read") from None
        except MemoryError:
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as wrong:
            raise self._error(wrong) from None
        self.schema = pa.schema([(name, path.type) for name in names if (path := path_to(schema, name))])

    def values(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield batches of rows with ``columns``, or with all columns of ``schema``."""
        import pyarrow.parquet as pq

        names = self.schema.names if columns is None else list(columns)
        columns_of_file = set(self.names)
        roots = names if columns_of_file.issuperset(names) else self._roots
        n_bytes = 0
        try:
            with pq.ParquetFile(self.source.path, **self._how) as opened:
                for batch in opened.iter_batches(self._rows, columns=roots, use_threads=self._options.in_threads):
                    table = pa.Table.from_batches([batch])
                    n_bytes += table.nbytes
                    check_expansion(self.source, self._options, n_bytes, "read")
                    yield pa.Table.from_arrays([column_at(table, name) for name in names], names=names)
        except MemoryError:
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as wrong:
            raise self._error(wrong) from None

    def place_of(self, row: int) -> str:
        """Return the words for the place of a row."""
        return f"`{self.source.name}`, row {row} (rows count from 0)"

    def _names_read(self, schema: pa.Schema, options: Options) -> list[str]:
        """Return the names of what is read. If something that is used is missing, all columns are among them, so that
        the error can be explained."""
        names = list(dict.fromkeys(self.names if options.columns is None else options.columns))
        paths = {name: path for name in names if (path := path_to(schema, name)) is not None}
        may_lack = (*options.casts, *(["type"] if options.type == "type" else []))
        if any(name not in paths and name not in may_lack for name in names):
            paths |= {
                name: path for name in self.names if name not in paths and (path := path_to(schema, name)) is not None
            }
        roots = [path.root for path in paths.values()]
        numbers = Counter(self.names)
        if twice := [root for root in roots if numbers[root] > 1]:
            raise DataError(
                f"two columns of `{self.source.name}` are called `{twice[0]}`",
                hint="rename one of them",
                code="data_column",
            )
        return list(paths)

    def _error(self, wrong: BaseException) -> DataError:
        return DataError(
            f"`{self.source.name}` is not a whole Parquet file: {reason_of(wrong)}",
            hint="it may have been cut off, or hold another format",
            code="file_read",
        )

"""Write the results of a follower atomically: one file for each micro-batch that has some."""

from __future__ import annotations

import io
import os
import re
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from acep.errors import DataError, SnapshotError
from acep.events.files.formats import reason_of
from acep.matches.flat import Layout
from acep.matches.writing import write_table

__all__ = ["FORMATS", "Outbox"]

FORMATS = ("jsonl", "parquet", "csv")
_DRAFT = re.compile(r"\.\d{9}\.(jsonl|parquet|csv)\.[0-9a-f]{32}\.tmp")
_FILE = re.compile(r"(\d{9,18})\.(jsonl|parquet|csv)")


class Outbox:
    """The folder of the results, as files named by the number of their micro-batch."""

    def __init__(self, folder: Path, form: str) -> None:
        """Create the folder if necessary, and remove unfinished files of a killed follower.

        Raises :class:`DataError` if the format is unknown, or the folder cannot be used.
        """
        if form not in FORMATS:
            raise DataError(
                f"there is no format {form!r} of results", hint=f"one of {', '.join(FORMATS)}", code="option_invalid"
            )
        self.folder, self.form = folder, form
        self.flat: Layout | None = None  # results have plain columns only, for matches of this layout
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for one in folder.iterdir():
                if _DRAFT.fullmatch(one.name):
                    one.unlink(missing_ok=True)
        except OSError as wrong:
            raise self._unusable(wrong) from None

    def refuse_from(self, batch: int, state: str) -> None:
        """Raise :class:`SnapshotError` if there are results of this micro-batch or of later ones."""
        found = [int(name[1]) for one in self.folder.iterdir() if (name := _FILE.fullmatch(one.name))]
        if found and max(found) >= batch:
            raise SnapshotError(
                f"the state in `{state}` goes on with micro-batch {batch}, but `{self.folder}` has results up to"
                f" micro-batch {max(found)}",
                hint="give the folder that belongs to the state, or an empty one; if the state was put back to an"
                f" earlier copy, remove the results of micro-batch {batch} and later",
            )

    def write(self, batch: int, rows: pa.Table) -> None:
        """Write the results of a micro-batch durably, and replace those of an earlier attempt."""
        if not rows.num_rows:
            return
        final = self.folder / f"{batch:09}.{self.form}"
        draft = self.folder / f".{final.name}.{uuid4().hex}.tmp"
        try:
            with draft.open("xb") as stream:
                if self.form == "parquet":
                    write_table(rows, stream, self.form, flat=self.flat)
                else:
                    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
                    write_table(_in_microseconds(rows), text, self.form, flat=self.flat)
                    text.detach()
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(final)
            descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as wrong:
            raise self._unusable(wrong) from None
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def _unusable(self, wrong: OSError) -> DataError:
        return DataError(
            f"results cannot be written to `{self.folder}`: {reason_of(wrong)}",
            hint="name a folder that can be written, with space left",
            code="file_write",
        )


def _in_microseconds(rows: pa.Table) -> pa.Table:
    """Convert times to microseconds for text formats. Raises :class:`DataError` if one has a finer fraction."""
    try:
        return rows.cast(pa.schema([pa.field(f.name, _coarser(f.type)) for f in rows.schema]))
    except pa.ArrowInvalid:
        raise DataError(
            "a time in the results falls between two microseconds, which only Parquet holds",
            hint='write Parquet: into_format="parquet"',
            code="data_value",
        ) from None


def _coarser(held: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(held) and held.unit == "ns":
        return pa.timestamp("us", held.tz)
    if pa.types.is_struct(held):
        return pa.struct([pa.field(f.name, _coarser(f.type)) for f in held])
    return held

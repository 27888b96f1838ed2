"""Write the results of a follower atomically: one file for each micro-batch that has some."""

from __future__ import annotations

import io
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import pyarrow as pa

from acep.alerting.alerts import write_alerts
from acep.bucket_state.folders import give_name, sync_folder
from acep.errors import DataError, SnapshotError
from acep.events.files.formats import reason_of
from acep.matches.flat import Layout
from acep.output.formulas import check_quoting
from acep.output.writing import write_rows, write_table

__all__ = ["FORMATS", "Outbox"]

FORMATS = ("jsonl", "parquet", "csv")
_DRAFT = re.compile(r"\.\d{9}\.(jsonl|parquet|csv)\.[0-9a-f]{32}\.tmp")
_FILE = re.compile(r"(\d{9,18})\.(jsonl|parquet|csv)")


class Outbox:
    """The folder of the results, as files named by the number of their micro-batch.

    It is of one state. ``last`` is the last micro-batch of that state with a file of results (-1: none has one), so a
    file with a greater number is of another state.
    """

    def __init__(self, folder: Path, form: str, *, quote_formulas: bool = False, durable: bool = True) -> None:
        """Create the folder if necessary. ``quote_formulas``: no text in CSV begins as a formula does. ``durable``:
        files are synced, so that they outlive a crash of the machine.

        Raises :class:`DataError` if the format is unknown, or the folder cannot be used.
        """
        if form not in FORMATS:
            raise DataError(
                f"there is no format {form!r} of results", hint=f"one of {', '.join(FORMATS)}", code="option_invalid"
            )
        check_quoting(quote_formulas, form)
        self.folder, self.form, self.quote_formulas, self.durable = folder, form, quote_formulas, durable
        self.flat: Layout | None = None  # results have plain columns only, for matches of this layout
        self.has_alerts = False  # results are those of rules
        self.has_clause_rows = False  # results are rows of a clause, whose columns may have any name
        self.last = -1
        self.state = ""  # its folder, for messages
        try:
            folder.mkdir(parents=True, exist_ok=True)
            list(folder.iterdir())
        except OSError as error:
            raise self._unusable_error(error) from None

    def begin(self, state: str, last: int, pending: int | None) -> None:
        """Go on with the results of a state after those of micro-batch ``last``, and remove what a killed follower has
        not finished. The micro-batch ``pending`` may have results already.

        Raises :class:`SnapshotError` if there are results that are not of this state.
        """
        self.state, self.last = state, last
        self.check_own(pending)
        try:
            for path in self.folder.iterdir():
                if _DRAFT.fullmatch(path.name):
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise self._unusable_error(error) from None

    def check_own(self, pending: int | None = None) -> None:
        """Raise :class:`SnapshotError` if there are results after the last ones of this state, except for those of the
        micro-batch ``pending``."""
        try:
            numbers = {int(name[1]) for path in self.folder.iterdir() if (name := _FILE.fullmatch(path.name))}
        except OSError as error:
            raise self._unusable_error(error) from None
        greatest = max((number for number in numbers - {pending} if number > self.last), default=None)
        if greatest is not None:
            before = f"its last ones are of micro-batch {self.last}" if self.last >= 0 else "it has none yet"
            raise SnapshotError(
                f"`{self.folder}` has results up to micro-batch {greatest} that are not of the state in `{self.state}`:"
                f" {before}",
                hint="give each state a folder of results of its own; if the state was put back to an earlier copy,"
                f" remove the results after micro-batch {self.last}",
            )

    def write(self, batch: int, rows: pa.Table, *, is_retry: bool = False, exact: bool = True) -> None:
        """Write the results of a micro-batch. ``is_retry``: an earlier attempt may have written them already,
        with the same rows (unless they are not ``exact``, as what is shed may depend on the time it took).

        Raises :class:`SnapshotError` if another follower writes to the folder, and :class:`DataError` if it cannot be
        written.
        """
        if not rows.num_rows:
            return
        self.check_own(batch if is_retry else None)
        final = self.folder / f"{batch:09}.{self.form}"
        draft = self.folder / f".{final.name}.{uuid4().hex}.tmp"
        try:
            with draft.open("xb") as stream:
                if self.form == "parquet":
                    self._write_rows(rows, stream)
                else:
                    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
                    self._write_rows(rows, text)
                    text.detach()
                stream.flush()
                if self.durable:
                    os.fsync(stream.fileno())
            if is_retry and not exact:
                draft.replace(final)
            elif not give_name(draft, final) and not (is_retry and _has_same_rows(draft, final, self.form)):
                raise self._other_writer_error(final)
            if self.durable:
                sync_folder(self.folder)
        except FileNotFoundError as error:
            if not self.folder.is_dir():
                raise self._unusable_error(error) from None
            raise self._other_writer_error(final) from None  # which has removed what it took for left by a killed one
        except OSError as error:
            raise self._unusable_error(error) from None
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
        self.last = batch

    def _write_rows(self, rows: pa.Table, stream: IO[Any]) -> None:
        if self.has_alerts:
            write_alerts(rows, stream, self.form, quote_formulas=self.quote_formulas)
        elif self.has_clause_rows:
            write_rows(rows, stream, self.form, quote_formulas=self.quote_formulas)
        else:
            write_table(rows, stream, self.form, flat=self.flat, quote_formulas=self.quote_formulas)

    def _other_writer_error(self, path: Path) -> SnapshotError:
        return SnapshotError(
            f"another follower has written to `{path}`, which this micro-batch of the state in `{self.state}` writes",
            hint="let one follower run for each state, and give each state a folder of results of its own",
            code="state_used",
        )

    def _unusable_error(self, error: OSError) -> DataError:
        return DataError(
            f"results cannot be written to `{self.folder}`: {reason_of(error)}",
            hint="name a folder that can be written, with space left",
            code="file_write",
        )


def _has_same_rows(draft: Path, final: Path, form: str) -> bool:
    """Return whether two files of results have the same rows. Other versions of Arrow write Parquet differently."""
    if draft.read_bytes() == final.read_bytes():
        return True
    if form != "parquet":
        return False
    import pyarrow.parquet as pq

    try:
        return bool(pq.read_table(draft).equals(pq.read_table(final)))
    except pa.ArrowException:
        return False

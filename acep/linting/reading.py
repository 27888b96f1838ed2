"""Read files of events to look at them: with all columns, where these are not too many values."""

from __future__ import annotations

import os
from dataclasses import replace

import pyarrow as pa

from acep.errors import AcepError
from acep.events.fields import fields_of
from acep.events.files.finding import Paths
from acep.events.files.options import BadLines, Options
from acep.events.files.stream import open_events

__all__ = ["MAX_VALUES", "read_whole"]

MAX_VALUES = 10_000_000  # values, of fields too; of more only the columns are read that the query uses


def read_whole(paths: Paths, options: Options) -> tuple[pa.Table, bool, BadLines]:
    """Return the events of some files, whether these are all of their columns, and the lines that were skipped.
    ``options`` name the columns that a query reads. Ids may come twice.

    Raises :class:`DataError` for files that cannot be read.
    """
    used = replace(options, id=None)
    path_list = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not any(os.fspath(path) == "-" for path in path_list):  # standard input can be read once only
        try:
            with open_events(paths, replace(used, columns=None)) as events:
                if events.rows * len(fields_of(events.schema)) <= MAX_VALUES:
                    return events.read_all(), True, events.bad
        except (AcepError, pa.ArrowException):
            pass  # for a column, perhaps, that the query does not read
    with open_events(paths, used) as events:
        return events.read_all(), False, events.bad

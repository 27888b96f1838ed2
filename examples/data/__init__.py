"""Say where the streams are: whole ones in a folder of the user's, else those in this folder (README.md)."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["FOLDER", "MORE", "stream", "whole_folder"]

FOLDER = Path(__file__).resolve().parent
MORE: list[Path] = []
"""Folders in which streams are looked for last: those of tests have stand-ins."""


def whole_folder() -> Path:
    """Give the folder of the whole streams: ``ACEP_DATA``, or ``../shared/data`` beside the repository."""
    return Path(os.environ.get("ACEP_DATA") or FOLDER.parents[2] / "shared" / "data")


def stream(name: str) -> Path | None:
    """Find the file of a stream: the whole one, else the one that is shipped; ``None`` where there is neither.

    >>> stream("cluster_jobs").is_file(), stream("no_such_stream")
    (True, None)
    """
    folders = (whole_folder(), FOLDER, *MORE)
    return next((file for folder in folders if (file := folder / f"{name}.parquet").is_file()), None)

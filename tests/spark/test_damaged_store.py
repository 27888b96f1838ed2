"""Spark's own state, damaged or lost: the stream stops, and goes on from an earlier micro-batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import acep
from acep.spark.chunks import ORDER, ROW
from tests.spark.by_hand import as_rows, rows_that_differ
from tests.spark.streams import Folder, events_table, quiet_match
from tests.thinned import thinned

pytestmark = pytest.mark.long

QUERY = acep.regex("ab", within="20 seconds", by="k")
SIZE, CHUNK = 240, 80


def flipped(file: Path) -> None:
    """Flip the bits of a byte in the middle."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(bytes(data))


def cut(file: Path) -> None:
    """Cut a file in half."""
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def from_number(folder: Path, first: int) -> None:
    """Remove the files of a folder that are named by this number and later ones."""
    for file in folder.iterdir():
        number = file.name.strip(".").split(".")[0]  # "7", or ".7.crc"
        if number.isdigit() and int(number) >= first:
            file.unlink()


@pytest.mark.parametrize("damage", thinned([flipped, cut, Path.unlink], 3, pytest.mark.whole))
def test_it_is_refused_and_the_way_back_loses_nothing(spark: Any, damage: Callable[[Path], None]) -> None:
    table = events_table(SIZE)
    stream = Folder(spark, table, CHUNK, end=False)
    checkpoint = stream.path / "out-checkpoint"

    def run() -> list[dict[str, Any]]:
        # What another run has in memory is not read again from the files.
        spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
        return stream.run(quiet_match(stream.frame(), QUERY, watermark="3 seconds", buckets=2, state="spark"))[0]

    run()
    last = max(int(file.stem) for file in (checkpoint / "state").rglob("*.delta"))
    for file in [*(checkpoint / "state").rglob(f"{last}.delta")]:
        damage(file)
        file.with_name(f".{file.name}.crc").unlink()
    stream.end()
    with pytest.raises(Exception, match="CANNOT_LOAD_STATE_STORE"):
        run()
    batch = last - 1  # which wrote this version
    from_number(checkpoint / "commits", batch)
    from_number(checkpoint / "offsets", batch + 1)
    from_number(stream.path / "out" / "_spark_metadata", batch)
    assert rows_that_differ(run(), as_rows(acep.match(table, QUERY, seq=ORDER, id=ROW))) == ""

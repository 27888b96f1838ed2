"""Write the classes that Spark loads into an archive, from which the JVMs of later tests take them.

A JVM reads, checks and links thousands of classes until its first stream has run, which takes much of the time of a
test that starts a session of its own. ``python -m tests.spark.class_archive`` starts a JVM that does what tests do, and
that writes the classes it has loaded as it ends. A JVM with another Java, or with other jars, finds that the archive is
not its own, and loads its classes as usual. Where no archive can be made, there is an empty file.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["ARCHIVE", "archive_options"]

ARCHIVE = Path(__file__).parents[2] / "build" / "spark.jsa"


def archive_options(archive: Path = ARCHIVE) -> list[str]:
    """Return the options of a JVM that takes classes from an archive; none if there is none, or if its path has a
    space, at which the scripts of Spark would split it."""
    if not archive.exists() or not archive.stat().st_size or " " in str(archive):
        return []
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def run_streams() -> None:
    """Run what most tests on Spark run: a batch, a stream by each route, and one through for_each_batch."""
    import acep
    import acep.spark
    from tests.spark.streams import Folder, as_dicts, events_table, quiet_match

    spark = acep.spark.get_session()
    query = acep.parse("PATTERN SEQ(a+ p[], b q) WHERE skip_till_next_match(p[], q) { [k] } WITHIN 30 seconds")
    table = events_table(60)
    as_dicts(quiet_match(spark.createDataFrame(table), query))
    for state in ("spark", "checkpoint"):
        folder = Folder(spark, table, 30)
        folder.run(quiet_match(folder.frame(), query, watermark="5 seconds", state=state))
    folder = Folder(spark, table, 30)
    writer = folder.frame().writeStream.foreachBatch(lambda rows, _: rows.count()).trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder.path / "checkpoint")).start().awaitTermination()
    spark.stop()


def write_archive(archive: Path = ARCHIVE) -> None:
    """Write the archive in a process whose output stays open until its JVM has ended."""
    partial = archive.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    options = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable -XX:ArchiveClassesAtExit={partial}"
    command = [sys.executable, "-m", __spec__.name, "streams"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "SPARK_SUBMIT_OPTS": options}, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    if not partial.exists():
        partial.touch()
    partial.replace(archive)


if __name__ == "__main__":
    if sys.argv[1:] == ["streams"]:
        run_streams()
    else:
        write_archive()

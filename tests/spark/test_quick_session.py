"""The session that tests share is quicker than one of a user, and answers the same."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.spark.class_archive import archive_options
from tests.spark.quick_session import java_options, quick_settings


def test_lists_of_java_end_and_classes_are_the_same_each_time(spark: Any) -> None:
    names = spark._jvm.java.util.ArrayList()
    assert list(names) == []
    for name in "abc":
        names.add(name)
    assert list(names) == ["a", "b", "c"]
    assert list(names) == ["a", "b", "c"]
    assert spark._jvm.java.lang.Math is spark._jvm.java.lang.Math
    assert spark._jvm.java.lang.Math.abs(-2) == 2
    assert spark._jvm.java.lang.Math.abs(-3) == 3


def test_the_shared_session_has_the_quick_settings(spark: Any) -> None:
    assert {name: spark.conf.get(name) for name in quick_settings()} == quick_settings()
    manager = quick_settings()["spark.sql.streaming.checkpointFileManagerClass"]
    assert spark._jvm.java.lang.Class.forName(manager).getName() == manager


def test_without_an_archive_there_are_no_options_for_one(tmp_path: Path) -> None:
    archive = tmp_path / "spark.jsa"
    assert archive_options(archive) == []
    archive.touch()
    assert archive_options(archive) == []
    archive.write_text("classes")
    assert f"-XX:SharedArchiveFile={archive}" in archive_options(archive)


def test_an_archive_of_another_java_is_passed_over_in_silence(tmp_path: Path) -> None:
    if (java := shutil.which("java")) is None:
        pytest.skip("no Java on the path")
    archive = tmp_path / "spark.jsa"
    archive.write_bytes(bytes(10_000))
    command = [java, *java_options().split(), *archive_options(archive), "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "warning" not in done.stdout + done.stderr

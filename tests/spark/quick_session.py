"""Make the session of Spark that tests share quicker, without a change of its answers (docs/internals/tests.md)."""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.spark.class_archive import archive_options

__all__ = ["java_options", "quick_settings", "quicken_gateway"]

FILE_MANAGER = "FileSystemBasedCheckpointFileManager"


def java_options() -> str:
    """Return the options of a JVM that runs for seconds only: most of its time goes into loading and compiling code.
    The last one begins programs in one step, of which Hadoop begins some for each file."""
    simply_compiled = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return " ".join([*simply_compiled, *archive_options(), "-Djdk.lang.Process.launchMechanism=VFORK"])


@cache
def quick_settings() -> dict[str, str]:
    """Return the settings of the session that tests share.

    Spark's usual manager of checkpoint files runs the program ``readlink`` for each file, as Hadoop has no native
    library here. The other manager renames files without asking. Tests that start a session of their own, those
    of killed drivers and clusters among them, have the usual one. And Spark writes each plan in fewer words for a page
    that nobody opens.
    """
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    jar = next((Path(spec.origin).parent / "jars").glob("spark-sql_*.jar"))
    with zipfile.ZipFile(jar) as file:
        name = next(name for name in file.namelist() if name.endswith(f"/{FILE_MANAGER}.class"))
    manager = name.removesuffix(".class").replace("/", ".")
    return {"spark.sql.streaming.checkpointFileManagerClass": manager, "spark.sql.ui.explainMode": "simple"}


def quicken_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Py4J ask the JVM once for each class and package, and end the iteration over a list of Java's without an
    exception, for each of which PySpark asks dozens of questions."""
    from py4j import java_collections, java_gateway  # type: ignore[import-untyped]

    classes = (java_gateway.JavaClass, java_gateway.JavaPackage, java_gateway.JavaMember)
    for owner in (java_gateway.JVMView, java_gateway.JavaPackage, java_gateway.JavaClass):
        monkeypatch.setattr(owner, "__getattr__", remember_answers(owner.__getattr__, classes))
    next_of_java = java_collections.JavaIterator.next

    def next_item(iterator: Any) -> Any:
        if not iterator.hasNext():
            raise StopIteration
        return next_of_java(iterator)

    monkeypatch.setattr(java_collections.JavaIterator, "next", next_item)
    monkeypatch.setattr(java_collections.JavaIterator, "__next__", next_item)


def remember_answers(ask: Callable[[Any, str], Any], classes: tuple[type, ...]) -> Callable[[Any, str], Any]:
    """Return a function for ``__getattr__`` whose answers, as far as they are of some classes, become attributes."""

    def get_attribute(owner: Any, name: str) -> Any:
        answer = ask(owner, name)
        if isinstance(answer, classes) and not name.startswith("_"):
            vars(owner)[name] = answer
        return answer

    return get_attribute

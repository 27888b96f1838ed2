"""Workers without the driver's Python environment: said in one line, before the job starts or from its failure."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import acep
from acep.errors import EngineError
from acep.native.compiled import REFERENCE, why_not
from acep.spark import error_in
from acep.spark.failures import needs_python
from acep.spark.interpreter import check_answer
from tests.spark.by_hand import numbered, the_job

pytestmark = pytest.mark.long

# A session of the user's own, in an environment that is not activated: the workers run the `python3` of the path.
DRIVER = """
import shutil, sys, tempfile, warnings
from pathlib import Path
from pyspark.sql import SparkSession
import acep, acep.spark
from acep.spark import interpreter
from acep.spark.java import ensure_java

site, version = Path(sys.argv[1]), sys.argv[2]
home = ensure_java()
if home is not None:
    import os
    os.environ["JAVA_HOME"] = home
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).config(
    "spark.sql.shuffle.partitions", 1).config("spark.driver.memory", "512m").getOrCreate()
warnings.simplefilter("ignore")
query = acep.regex("ab", within=3, by="k")
events = session.sql("select id ts, case when id % 2 = 0 then 'a' else 'b' end type, id % 3 k from range(12)")

def tell(name, call):
    try:
        print(name, "gave", call(), flush=True)
    except acep.AcepError as error:
        print(name, "raised", error.render(), sep="|", flush=True)
    except Exception as failure:
        error = acep.spark.error_in(failure)
        print(name, "failed", len(str(failure).splitlines()) > 10, error and error.render(), sep="|", flush=True)

def batch():
    return acep.spark.match(events, query, seq="ts", id="ts").count()

def stream():
    folder = tempfile.mkdtemp()
    events.write.parquet(folder + "/in")
    rows = session.readStream.schema(events.schema).parquet(folder + "/in")
    found = acep.spark.match(rows, query, seq="ts", id="ts", watermark=1, buckets=1)
    writer = found.writeStream.format("noop").option("checkpointLocation", folder + "/checkpoint")
    try:
        writer.trigger(availableNow=True).start().awaitTermination()
    finally:
        shutil.rmtree(folder)

def unasked(call):  # as on a cluster
    interpreter._ANSWERS[session] = {}
    try:
        call()
    finally:
        del interpreter._ANSWERS[session]

tell("batch", batch)
tell("batch-unasked", lambda: unasked(batch))
tell("stream-unasked", lambda: unasked(stream))
(site / "acep").mkdir()
(site / "acep" / "__init__.py").write_text(f'__version__ = "{version}"')
tell("other", batch)
shutil.rmtree(site / "acep")
session.stop()
"""


@pytest.mark.spark
@pytest.mark.whole
def test_an_environment_that_is_not_activated(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    (site,) = (tmp_path / "bare").glob("lib/python*/site-packages")
    (tmp_path / "python3").symlink_to(tmp_path / "bare" / "bin" / "python3")
    hidden = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment["PATH"] = f"{tmp_path / 'bare' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(site), "0.0.1"],
        capture_output=True, text=True, env=environment, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    python = str(tmp_path / "bare" / "bin" / "python3")
    hint = f"hint: {needs_python('').hint}"
    lines = done.stdout.splitlines()
    said = dict(zip(lines[::2], lines[1::2], strict=True))
    lacks = f"Spark's workers run {python}, which has no `acep`"
    failed = "failed|True|the Python of Spark's workers has no `acep"
    other = f"Spark's workers run {python}, which has acep 0.0.1, and this is acep {acep.__version__}"
    assert said == {
        f"batch|raised|{lacks} [engine_workers]": hint,
        f"batch-unasked|{failed}` [engine_workers]": hint,
        f"stream-unasked|{failed}` [engine_workers]": hint,
        f"other|raised|{other} [engine_workers]": hint,
    }
    assert f"PYSPARK_PYTHON={sys.executable}" in hint
    assert "spark.archives" in hint


# How Spark ends its forty lines of traceback, and a part of our line.
FAILURES = (
    ("ModuleNotFoundError: No module named 'acep'", "has no `acep`"),
    ("ModuleNotFoundError: No module named 'acep.streaming.totals'", "has no `acep.streaming.totals`"),
    ("AttributeError: Can't get attribute 'P' on <module 'acep.streaming.job' from '/x/job.py'>", "another version"),
    ("ImportError: cannot import name 'TOLD' from 'acep.streaming.totals' (/x/totals.py)", "another version"),
    (
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark",
        "run Python 3.12, and this is Python 3.11",
    ),
    ('java.io.IOException: Cannot run program "/no/py": error=2, No such file or directory', "cannot run `/no/py`"),
    ('java.io.IOException: Cannot run program "py": Exec failed, error: 2 (No such file)', "cannot run `py`"),
)


@pytest.mark.parametrize(("end", "line"), FAILURES)
def test_failures_for_want_of_an_environment(end: str, line: str) -> None:
    error = error_in(
        RuntimeError(f'Traceback (most recent call last):\n  File "worker.py", line 1, in main\n{end}\n\tat x')
    )
    assert isinstance(error, EngineError)
    assert line in error.message
    assert "\n" not in error.message
    assert "PYSPARK_PYTHON" in (error.hint or "")


@pytest.mark.parametrize("end", ["No module named 'acepted'", "No module named 'yaml'", "KeyError: 'acep'"])
def test_other_failures_are_not_ours(end: str) -> None:
    assert error_in(RuntimeError(f"Traceback\n{end}")) is None


def test_a_job_of_another_version_is_refused_by_the_worker() -> None:
    job = the_job(numbered(pa.table({"ts": [1], "type": ["a"]})), acep.regex("ab", within=5))
    assert pickle.loads(pickle.dumps(job)) == job  # noqa: S301 - as Spark does
    with pytest.raises(EngineError, match=f"workers have acep {acep.__version__}, and the driver has acep 0.0.1"):
        pickle.loads(pickle.dumps(replace(job, version="0.0.1")))  # noqa: S301


def test_a_job_of_another_build_is_refused_by_the_worker() -> None:
    job = the_job(numbered(pa.table({"ts": [1], "type": ["a"]})), acep.regex("ab", within=5))
    assert pickle.loads(pickle.dumps(replace(job, core=None))).core is None  # noqa: S301 - a driver without a core
    if job.core is None:
        return
    with pytest.raises(EngineError, match=r"another build of acep .* \[engine_workers\]"):
        pickle.loads(pickle.dumps(replace(job, core="other")))  # noqa: S301


def test_a_worker_without_the_native_core() -> None:
    answer = {"python": "/usr/bin/python3", "version": acep.__version__, "missing": "", "core": "it is not installed"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_answer(answer, "reference")
        check_answer(answer | {"core": ""}, "native")
    if why_not() is not None:
        return
    with pytest.warns(UserWarning, match=f"{REFERENCE}, on Spark's workers"):
        check_answer(answer, "auto")
    with pytest.raises(EngineError, match="on Spark's workers it is not installed"):
        check_answer(answer, "native")
    with pytest.raises(EngineError, match="has no `numpy`"):
        check_answer(answer | {"version": "", "missing": "numpy"}, "auto")

"""Check once for each session that Spark's Python workers have this version of acep, and explain it if they do not.

On a local master the check takes less than a second, and the worker that it starts is used again. On a cluster there is
no check, because it would wait for executors; there :func:`acep.spark.failures.error_in` reads the failure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from acep import __version__, logs
from acep.errors import EngineError, warn_caller
from acep.native.compiled import REFERENCE, why_not
from acep.spark.failures import error_in, needs_python
from acep.spark.job_descriptions import describe_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_answer", "check_workers"]


# The answer of the workers of a session; empty where they were not checked.
_ANSWERS: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()


def check_workers(session: SparkSession, engine: str) -> None:
    """Warn if the workers of a local ``session`` have no native core and would use the reference runtime.

    Raises :class:`EngineError` if they have no acep, another version of it, or not the ``engine``.
    """
    answer = _ANSWERS.get(session)
    if answer is None:
        local = str(session.conf.get("spark.master", "")).startswith("local")
        answer = _ask_worker(session) if local else {}
    if answer:
        check_answer(answer, engine)
        logs.info(__name__, "Spark's workers run %s with acep %s", answer["python"], answer["version"])
    _ANSWERS[session] = answer  # only if accepted: the user may install what is missing


def check_answer(answer: Mapping[str, str], engine: str) -> None:
    """Check an answer: the ``python`` that runs the workers, the ``version`` of its acep ("" for none), the module that
    is ``missing`` there, and why it has no native ``core`` ("" if it has one). Warn or raise as :func:`check_workers`.

    >>> check_answer({"python": "/usr/bin/python3", "version": "", "missing": "acep", "core": ""}, "auto")
    Traceback (most recent call last):
    acep.errors.EngineError: Spark's workers run /usr/bin/python3, which has no `acep`...
    """
    python, version, core = answer["python"], answer["version"], answer["core"]
    if version and version != __version__:
        raise needs_python(f"Spark's workers run {python}, which has acep {version}, and this is acep {__version__}")
    if missing := answer["missing"]:
        raise needs_python(f"Spark's workers run {python}, which has no `{missing}`")
    if not core or why_not() is not None:
        return
    if engine == "native":
        raise EngineError(
            f"on Spark's workers {core}", hint='engine="reference" runs every query', code="engine_workers"
        )
    if engine == "auto":
        warn_caller(f"{REFERENCE}, on Spark's workers ({python}): {core}")


def _ask_worker(session: SparkSession) -> dict[str, str]:
    """Return the answer of a worker; an empty one if the check fails for an unknown reason."""
    from pyspark.sql import functions as sf

    ask = sf.udf(_question(), "string", useArrow=False)
    try:
        with describe_jobs(session, "ask a worker for its Python and its acep"):
            row = session.range(1, numPartitions=1).select(ask()).first()
    except Exception as failure:  # noqa: BLE001 - of whatever kind; the job itself will tell what is not known here
        if (error := error_in(failure)) is not None:
            raise error from None
        return {}
    answer: dict[str, str] = json.loads(row[0]) if row is not None else {}
    return answer


def _question() -> Callable[[], Any]:
    # PySpark pickles a nested function by its code; one of a module would be pickled by name and need the import.
    def question() -> str:
        import json
        import sys

        answer = {"python": sys.executable, "version": "", "missing": "", "core": ""}
        try:
            from acep import __version__ as version

            answer["version"] = version
            import acep.spark.workers.spark_state_worker  # noqa: F401 - whether it can be
            from acep.native.compiled import why_not

            answer["core"] = why_not() or ""
        except ImportError as missing:
            answer["missing"] = missing.name or str(missing)
        return json.dumps(answer)

    return question

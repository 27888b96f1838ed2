"""Ask Spark's Python workers, once for a session, whether they have this acep, and say in one line where they have not.

On a local master that takes less than a second, as the worker that answers goes on to do the work. On a cluster
nothing is asked, since that would wait for executors; there :func:`acep.spark.failures.error_in` reads the failure.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from acep import __version__
from acep.errors import EngineError
from acep.native.compiled import REFERENCE, why_not
from acep.spark.failures import error_in, needs_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_answer", "check_workers"]

# What the workers of a session have answered; nothing where they were not asked.
_ANSWERS: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()


def check_workers(session: SparkSession, engine: str) -> None:
    """Warn where the workers of a local ``session`` would run the reference ``engine`` for want of a native core.

    Raises :class:`EngineError` where they have no acep, another version of it, or not the engine.
    """
    answer = _ANSWERS.get(session)
    if answer is None:
        local = str(session.conf.get("spark.master", "")).startswith("local")
        answer = _asked(session) if local else {}
    if answer:
        check_answer(answer, engine)
    _ANSWERS[session] = answer  # not where it was refused: what is missing may be installed meanwhile


def check_answer(answer: Mapping[str, str], engine: str) -> None:
    """The same of an answer: the ``python`` that runs the workers, the ``version`` of its acep ("" for none), what is
    ``missing`` there, and why it has no ``core`` ("" if it has one).

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
        raise EngineError(f"on Spark's workers {core}", hint='engine="reference" runs every query')
    if engine == "auto":
        warnings.warn(f"{REFERENCE}, on Spark's workers ({python}): {core}", stacklevel=4)


def _asked(session: SparkSession) -> dict[str, str]:
    """The answer of a worker; empty where the question fails for a reason that is not known."""
    from pyspark.sql import functions as sf

    ask = sf.udf(_question(), "string", useArrow=False)
    try:
        row = session.range(1, numPartitions=1).select(ask()).first()
    except Exception as failure:  # noqa: BLE001 - of whatever kind; the job itself will tell what is not known here
        if (error := error_in(failure)) is not None:
            raise error from None
        return {}
    answer: dict[str, str] = json.loads(row[0]) if row is not None else {}
    return answer


def _question() -> Callable[[], Any]:
    # A function within a function goes to the workers as its code; one of a module would go as a name, to be imported.
    def question() -> str:
        import json
        import sys

        answer = {"python": sys.executable, "version": "", "missing": "", "core": ""}
        try:
            from acep import __version__ as version

            answer["version"] = version
            import acep.spark.workers  # noqa: F401 - whether it can be
            from acep.native.compiled import why_not

            answer["core"] = why_not() or ""
        except ImportError as missing:
            answer["missing"] = missing.name or str(missing)
        return json.dumps(answer)

    return question

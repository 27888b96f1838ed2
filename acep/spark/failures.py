"""Find the errors that acep raised on Spark's workers, which Spark reports as text inside its own exceptions."""

from __future__ import annotations

import re
import sys

from acep import __version__, errors
from acep.errors import CODES, AcepError, Code, DataError, EngineError, SnapshotError

__all__ = ["error_in", "needs_python"]

_RAISED = re.compile(r"^acep\.errors\.(\w+Error): (.*(?:\n(?!\s|$|File |Traceback |=== |SQLSTATE).*)*)", re.MULTILINE)
# Failures of a worker whose Python environment differs from the driver's.
_MISSING = re.compile(r"ModuleNotFoundError: No module named '(acep[\w.]*)'")
_OTHER = re.compile(r"(?:Can't get attribute '\w+' on <module 'acep|cannot import name '\w+' from 'acep)")
_PYTHONS = re.compile(
    r"\[PYTHON_VERSION_MISMATCH\] Python in worker has different version: ([\d.]+) than that in driver: ([\d.]+)"
)
_NONE = re.compile(r'Cannot run program "([^"]+)"[^\n]*: (?:error=2|Exec failed)')
# What Spark says if a step of acep kept its state in Spark's own store, or does so only now.
_OTHER_STORE = re.compile(
    r"\[STREAMING_STATEFUL_OPERATOR_(?:NOT_MATCH_IN_STATE_METADATA|MISSING_STATE_DIRECTORY)\][^\0]*"
    r"OperatorName: applyInPandasWithState"
)
_CODED = re.compile(r" \[(\w+)\](?=$| \(line \d+, column \d+\)$)")
_USER = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE|$)", re.MULTILINE)


def error_in(failure: BaseException) -> AcepError | None:
    r"""Return the error of acep that made a Spark job or a streaming query fail; ``None`` for any other cause.

    ``failure`` is what Spark raised, such as a ``StreamingQueryException``.

    >>> error_in(RuntimeError("Traceback ...\nacep.errors.DataError: no time\nhint: fill it in\n\tat org.apache"))
    DataError('no time')
    """
    if not isinstance(failure, BaseException):
        raise DataError(f"error_in takes what Spark raised, not {type(failure).__name__}", code="option_invalid")
    seen: BaseException | None = failure
    while seen is not None:
        if isinstance(seen, AcepError):
            return seen
        text = str(seen)
        if match := _RAISED.search(text):
            return _rebuild_error(match[1], match[2])
        if match := _USER.search(text):
            return DataError(match[1])
        if problem := _environment(text):
            return needs_python(problem)
        if _OTHER_STORE.search(text):
            return SnapshotError(
                "the checkpoint was made with its state elsewhere: in Spark's own store, or in files",
                hint='go on with state="spark" if acep before 0.2 made it without state=, else with the state= that it'
                " was made with; or begin a new checkpoint",
                code="state_version",
            )
        seen = seen.__cause__ or seen.__context__
    return None


def _environment(text: str) -> str | None:
    """Return the problem with the workers' Python environment; ``None`` if none is found."""
    if match := _MISSING.search(text):
        return f"the Python of Spark's workers has no `{match[1]}`"
    if _OTHER.search(text):
        return f"Spark's workers have another version of acep than this, which is {__version__}"
    if match := _PYTHONS.search(text):
        return f"Spark's workers run Python {match[1]}, and this is Python {match[2]}"
    if match := _NONE.search(text):
        return f"Spark cannot run `{match[1]}`, which should be the Python of its workers"
    return None


def needs_python(problem: str) -> EngineError:
    """Create the error for Spark's workers that lack the environment they need."""
    return EngineError(
        problem,
        hint=f"set PYSPARK_PYTHON={sys.executable} before Spark starts; on a cluster name a Python that has acep"
        " (PYSPARK_PYTHON, or spark.pyspark.python for spark-submit), or send the environment along (spark.archives)",
        code="engine_workers",
    )


def _rebuild_error(name: str, rendered: str) -> AcepError:
    """Rebuild an error from the name of its class and the text of :meth:`AcepError.render`."""
    kind = getattr(errors, name, AcepError)
    lines = rendered.strip().splitlines()
    hint = None
    if len(lines) > 1 and lines[-1].startswith("hint: "):
        hint = lines.pop().removeprefix("hint: ")
    code: Code | None = None
    if lines and (match := _CODED.search(lines[0])) and match[1] in CODES:
        code = CODES[CODES.index(match[1])]
        lines[0] = lines[0].replace(match[0], "", 1)
    error = kind("\n".join(lines), hint=hint, code=code)
    assert isinstance(error, AcepError)
    return error

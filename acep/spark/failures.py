"""Errors of the workers, as they come back from Spark: inside the text of an exception of another kind."""

from __future__ import annotations

import re

from acep import errors
from acep.errors import AcepError, DataError

__all__ = ["error_in"]

_RAISED = re.compile(r"^acep\.errors\.(\w+Error): (.*(?:\n(?!\s|$|File |Traceback |=== |SQLSTATE).*)*)", re.MULTILINE)
_USER = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE|$)", re.MULTILINE)


def error_in(failure: BaseException) -> AcepError | None:
    r"""The error of acep that made a Spark job or a streaming query fail, or ``None`` if it was something else.

    ``failure`` is what Spark raised, such as a ``StreamingQueryException``.

    >>> error_in(RuntimeError("Traceback ...\nacep.errors.DataError: no time\nhint: fill it in\n\tat org.apache"))
    DataError('no time')
    """
    seen: BaseException | None = failure
    while seen is not None:
        if isinstance(seen, AcepError):
            return seen
        text = str(seen)
        if found := _RAISED.search(text):
            return _rebuilt(found[1], found[2])
        if found := _USER.search(text):
            return DataError(found[1])
        seen = seen.__cause__ or seen.__context__
    return None


def _rebuilt(name: str, rendered: str) -> AcepError:
    """An error from its class and from what :meth:`AcepError.render` said."""
    kind = getattr(errors, name, AcepError)
    lines = rendered.strip().splitlines()
    hint = None
    if len(lines) > 1 and lines[-1].startswith("hint: "):
        hint = lines.pop().removeprefix("hint: ")
    error = kind("\n".join(lines), hint=hint)
    assert isinstance(error, AcepError)
    return error

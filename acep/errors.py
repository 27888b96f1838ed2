"""Define errors with a message, a place in the query's text and a hint, and render them in a few lines."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from traceback import clear_frames
from typing import ClassVar, Literal, TypeAlias, get_args

__all__ = [
    "CODES",
    "AcepError",
    "Code",
    "DataError",
    "DataWarning",
    "EngineError",
    "PolicyError",
    "QueryError",
    "SnapshotError",
    "check_installed",
    "memory_error",
    "memory_errors",
    "naming_query",
    "printable",
    "slip",
    "suggest",
    "warn_caller",
]

WIDEST = 160
"""The most characters of a query's line that are shown."""

LONGEST = 400
"""The most characters of a message that are shown."""

UNSHOWN = "\ufffd"

Code: TypeAlias = Literal[
    "query_syntax",
    "query_name",
    "query_type",
    "query_size",
    "query_change",
    "query_invalid",
    "option_invalid",
    "file_read",
    "file_write",
    "data_column",
    "data_type",
    "data_null",
    "data_value",
    "data_order",
    "data_invalid",
    "state_damaged",
    "state_version",
    "state_used",
    "state_other",
    "engine_missing",
    "engine_memory",
    "engine_workers",
    "engine_unable",
    "policy_contract",
]
"""The kind of an error, by a name that stays the same from version to version (docs/reference/errors.md)."""

CODES: tuple[Code, ...] = get_args(Code)
"""All codes, in the order of the reference."""

MEMORY_HINT = (
    'output="count", "points" or "bundles" makes no matches, limit= makes a few, blocks of matches come some at a time;'
    " a shorter window or a Budget keeps fewer partial matches"
)


class AcepError(Exception):
    """An error that the user can correct: a message of one line, its code, and for a query the place in its text.

    >>> print(QueryError("unknown column `pirce`", text="a.pirce > 1", start=2, end=7,
    ...                  hint="did you mean `price`?", code="query_name").render())
    unknown column `pirce` [query_name] (line 1, column 3)
      a.pirce > 1
        ^^^^^
    hint: did you mean `price`?
    """

    usual: ClassVar[Code] = "data_invalid"
    """The code of an error that is created without one."""

    def __init__(
        self,
        message: str,
        *,
        text: str | None = None,
        start: int | None = None,
        end: int | None = None,
        hint: str | None = None,
        code: Code | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.start = start
        self.end = end
        self.hint = hint
        self.code: Code = code or self.usual

    @property
    def line(self) -> int | None:
        """Return the line of the mistake in the query's text, from 1, or ``None``."""
        if self.text is None or self.start is None:
            return None
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int | None:
        """Return the column of the mistake in its line, from 1, or ``None``."""
        if self.text is None or self.start is None:
            return None
        return self.start - (self.text.rfind("\n", 0, self.start) + 1) + 1

    def located(self, text: str) -> AcepError:
        """Return the same error, with the query's text added if it was unknown."""
        if self.text is None:
            self.text = text
        return self

    def render(self, *, coded: bool = True) -> str:
        """Return the error as text: message and code, the line of the query with carets below it, and the hint.

        With ``coded=False`` the code is left out."""
        lines = [_one_line(self.message) + (f" [{self.code}]" if coded else "")]
        if self.text is not None and self.start is not None:
            lines[0] += f" (line {self.line}, column {self.column})"
            lines += self._mark_mistake(self.text, self.start)
        if self.hint:
            lines.append(f"hint: {_one_line(self.hint)}")
        return "\n".join(lines)

    def _mark_mistake(self, text: str, start: int) -> list[str]:
        """Return the line of the mistake (of a long line the part around it), and carets below."""
        first = text.rfind("\n", 0, start) + 1
        last = text.find("\n", start)
        source = text[first:] if last < 0 else text[first:last]
        offset = start - first
        before = after = ""
        if len(source) > WIDEST:
            begin = max(0, min(offset - WIDEST // 3, len(source) - WIDEST))
            before, after = "..." * (begin > 0), "..." * (begin + WIDEST < len(source))
            source, offset = source[begin : begin + WIDEST], offset - begin
        width = max(1, min((self.end or start + 1) - start, len(source) - offset))
        indent = "".join("\t" if c == "\t" else " " for c in before + source[:offset])
        line = "".join(c if c.isprintable() or c == "\t" else UNSHOWN for c in source.rstrip("\r"))
        return ["  " + before + line + after, "  " + indent + "^" * width]

    def __str__(self) -> str:
        return self.render()


def _one_line(text: str) -> str:
    """Shorten a message, and make it printable, because names and values of the input may be anything."""
    if len(text) > LONGEST:
        text = text[: LONGEST * 3 // 4] + " ... " + text[-LONGEST // 4 :]
    return printable(text)


def printable(text: str) -> str:
    r"""Return a text with escapes in place of what a terminal or a log would act upon: controls, ends of lines, and
    characters that turn the direction of writing.

    >>> printable("a\x9b31mb\u202e\n")
    'a\\x9b31mb\\u202e\\n'
    """
    if text.isprintable():  # the usual case, which needs little memory (for errors about memory)
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


@contextmanager
def naming_query(name: str) -> Iterator[None]:
    """Name the query in errors, where there are several: ``name`` is empty for a single one.

    >>> with naming_query("swing"):
    ...     raise QueryError("unknown column `pirce`", code="query_name")
    Traceback (most recent call last):
    acep.errors.QueryError: query `swing`: unknown column `pirce` [query_name]
    """
    try:
        yield
    except AcepError as error:
        if name:
            error.message = f"query `{name}`: {error.message}"
            error.args = (error.message,)
        raise


class QueryError(AcepError, ValueError):
    """An error for an invalid query."""

    usual = "query_invalid"


class DataError(AcepError, ValueError):
    """An error for invalid events: a missing column, a wrong type, a null time, a batch out of order."""


class SnapshotError(AcepError, ValueError):
    """An error for a state that cannot be restored: damaged, foreign, of another version or another query."""

    usual = "state_other"


class EngineError(AcepError, RuntimeError):
    """An error for an engine that is not available or cannot run a query."""

    usual = "engine_unable"


class PolicyError(AcepError, ValueError):
    """An error for a policy that does not keep its contract."""

    usual = "policy_contract"


class DataWarning(UserWarning):
    """A warning that a query may find less than expected: a type never occurs, or a key is always null."""


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the place of the line that called acep, from any depth inside acep."""
    inside = ("acep", "contextlib")  # functions of acep may stand in a context of their own
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in inside:
        frame, level = frame.f_back, level + 1
    warnings.warn(_one_line(message), category, stacklevel=level)


def check_installed(package: str, purpose: str, extra: str) -> None:
    """Raise :class:`EngineError` unless a package is there, which ``pip install 'acep[extra]'`` installs.

    >>> check_installed("json", "events", "json")
    """
    if importlib.util.find_spec(package) is None:
        raise EngineError(
            f"{package} is not installed, and {purpose} needs it",
            hint=f"pip install 'acep[{extra}]'",
            code="engine_missing",
        )


def suggest(name: str, candidates: Iterable[str], *, limit: int = 12) -> str | None:
    """Return a hint with the nearest known names, else at most ``limit`` of all names; ``None`` if there are none.

    >>> suggest("pirce", ["price", "volume"])
    'did you mean `price`?'
    """
    names = list(candidates)
    if close := slip(name, names):
        return close
    if names:
        listed = ", ".join(f"`{n}`" for n in sorted(names)[:limit])
        return f"known: {listed}" + (", ..." if len(names) > limit else "")
    return None


def slip(name: str, candidates: Iterable[str]) -> str | None:
    """Return a hint with the known names that ``name`` may be a misspelling of, or ``None``.

    >>> slip("Fail", ["FAIL", "KILL"]), slip("Fail", ["x"])
    ('did you mean `FAIL`?', None)
    >>> slip("AMONT", ["Amount", "Seq"])
    'did you mean `Amount`?'
    """
    import difflib  # needed for error messages only

    names = list(candidates)
    close = [candidate for candidate in names if candidate.casefold() == name.casefold()][:2]
    close = close or difflib.get_close_matches(name, names, n=2, cutoff=0.6)
    if not close:
        by_folded_name = {candidate.casefold(): candidate for candidate in names}
        folded = difflib.get_close_matches(name.casefold(), by_folded_name, n=2, cutoff=0.6)
        close = [by_folded_name[candidate] for candidate in folded]
    return "did you mean " + " or ".join(f"`{c}`" for c in close) + "?" if close else None


@contextmanager
def memory_errors() -> Iterator[None]:
    """Raise :class:`EngineError` in place of a :class:`MemoryError`, also of NumPy and of Arrow.

    >>> with memory_errors():
    ...     raise MemoryError("std::bad_alloc")
    Traceback (most recent call last):
    acep.errors.EngineError: memory is too small for the matches and partial matches of this query...
    """
    try:
        yield
    except MemoryError as error:
        clear_frames(error.__traceback__)  # so that there is some again
        raise memory_error() from None


def memory_error() -> EngineError:
    """Return the error that says so.

    >>> str(memory_error()).splitlines()[0]
    'memory is too small for the matches and partial matches of this query [engine_memory]'
    """
    return EngineError(
        "memory is too small for the matches and partial matches of this query", hint=MEMORY_HINT, code="engine_memory"
    )

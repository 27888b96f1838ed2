"""Try many small cases in one test, which names each case that fails: as tests of their own they would take longer."""

from __future__ import annotations

import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import pytest

__all__ = ["by_file", "try_each"]


class CaseOfFile(Protocol):
    """A case of a corpus: its file, and its own name."""

    @property
    def file(self) -> str: ...

    @property
    def id(self) -> str: ...


Case = TypeVar("Case")


def try_each(cases: Mapping[str, Case], check: Callable[[Case], None]) -> None:
    """Check all cases, whichever of them fail; then raise the errors of those that failed, by their names.

    A case that skips leaves the others as they are; the test is skipped after them.

    >>> def check(number: int) -> None:
    ...     assert number < 3, f"{number} is too large"
    >>> try_each({"one": 1, "two": 2}, check)
    >>> try_each({"one": 1, "five": 5, "two": 2, "six": 6}, check)
    Traceback (most recent call last):
    ...
    ExceptionGroup: 2 of 4 cases failed: five, six (2 sub-exceptions)
    """
    errors, reasons = dict[str, Exception](), list[str]()
    for name, case in cases.items():
        try:
            check(case)
        except pytest.skip.Exception as skipped:
            reasons.append(f"{name}: {skipped}")
        except pytest.fail.Exception as failure:  # it is no Exception
            errors[name] = AssertionError(str(failure)).with_traceback(failure.__traceback__)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other cases are tried too
            errors[name] = error
        if name in errors:
            errors[name].add_note(f"in the case {name}")
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {len(cases)} cases failed: {', '.join(errors)}", [*errors.values()])
    if reasons:
        pytest.skip(f"{len(reasons)} of {len(cases)} cases, such as {reasons[0]}")


def by_file(cases: Iterable[CaseOfFile]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a test of a ``case`` one that tries all cases of a file of the corpus, for each file."""
    files = defaultdict[str, dict[str, CaseOfFile]](dict)
    for case in cases:
        files[case.file][case.id] = case

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def test_of_file(*, file: str, **fixtures: Any) -> None:
            try_each(files[file], lambda case: test(case=case, **fixtures))

        test_of_file.__signature__ = inspect.Signature(_with_file(test))  # type: ignore[attr-defined]
        return pytest.mark.parametrize("file", files)(test_of_file)

    return decorate


def _with_file(test: Callable[..., None]) -> Sequence[inspect.Parameter]:
    """Return the parameters of a test with a file in place of the case."""
    parameters = inspect.signature(test).parameters.values()
    names = ["file" if parameter.name == "case" else parameter.name for parameter in parameters]
    return [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]

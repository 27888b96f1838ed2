"""What a random test says when it fails: its input, shrunk, as text for the corpus, and what is wrong with it.

``fail_if_different`` and ``fail_if_wrong`` are for tests whose input is a ``Case``: what they print can be pasted into
a file of the corpus as it stands. Those whose input is something else (automata, versions of a query, micro-batches)
use ``fail_if_different_on_rows`` and ``fail_if_wrong_on_rows``, which drop rows and print the ``title``, the text of
everything else. What is called must depend on its argument alone: a test that draws while it runs begins with
``Random(case.seed)`` each time.

Of all other random tests tests/drawn_values.py says what they had drawn when they failed.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn, TypeVar

import pyarrow as pa
import pytest

from tests.corpus_text import corpus_text, table_of_rows, to_comment
from tests.random_cases import Case, shrink

__all__ = [
    "case_text",
    "difference",
    "fail_if_different",
    "fail_if_different_on_rows",
    "fail_if_wrong",
    "fail_if_wrong_on_rows",
    "table_of_rows",
]

Row = Mapping[str, Any]
T = TypeVar("T")
NAMES = ("found", "wanted")
SECONDS = 60.0
RUNS = 3_000
"""After so many seconds or runs a case is printed as small as it has become."""
TESTS = str(Path(__file__).parent)


def fail_if_different(
    case: Case,
    answer_of: Callable[[Case], Any],
    wanted_of: Callable[[Case], Any],
    names: tuple[str, str] = NAMES,
) -> None:
    """Fail with the shrunk case and both its answers if two functions of a case answer differently.

    Answers are compared by ``==``; ``names`` says whose they are.
    """
    fail_if_wrong(case, lambda smaller: difference(answer_of(smaller), wanted_of(smaller), names))


def fail_if_wrong(case: Case, complaint_of: Callable[[Case], str | None]) -> None:
    """Fail with the shrunk case and its complaint if a function says of a case what is wrong with it ("": nothing).

    The function may assert, too: then what it asserts is the complaint. An exception is raised as it is, with the
    shrunk case as a note. A smaller case must fail in the same way, as ``Failure`` says.
    """
    if failure := _failure_of(complaint_of, case):
        small = shrink(case, _fails_alike(complaint_of, failure))
        _fail(Case.paste, case, small, complaint_of, failure)


def fail_if_different_on_rows(
    rows: Sequence[Row],
    title: str,
    answer_of: Callable[[list[Row]], Any],
    wanted_of: Callable[[list[Row]], Any],
    names: tuple[str, str] = NAMES,
    text_of: Callable[[list[Any]], str] = table_of_rows,
) -> None:
    """Fail with the rows that are needed and both answers if two functions of rows answer differently."""
    fail_if_wrong_on_rows(rows, title, lambda fewer: difference(answer_of(fewer), wanted_of(fewer), names), text_of)


def fail_if_wrong_on_rows(
    rows: Sequence[T],
    title: str,
    complaint_of: Callable[[list[T]], str | None],
    text_of: Callable[[list[Any]], str] = table_of_rows,
) -> None:
    """Fail with the rows that are needed and the complaint if a function says what is wrong with rows ("": nothing).

    With ``text_of``, which prints them, the rows may be steps of any kind. Else it is as ``fail_if_wrong``.
    """
    if failure := _failure_of(complaint_of, [*rows]):
        fewer = _fewer_rows([*rows], _fails_alike(complaint_of, failure))
        _fail(lambda some_rows: f"{title}\n{text_of(some_rows)}", [*rows], fewer, complaint_of, failure)


def case_text(name: str, text: str, schema: pa.Schema | None = None, **options: Any) -> Callable[[list[Any]], str]:
    """Return the ``text_of`` of rows that a query reads: both as a case of the corpus.

    The title is then a comment, "# seed 1", that says what else is drawn.
    """
    return lambda rows: corpus_text(name, text, pa.Table.from_pylist(rows, schema), options=options)


def difference(answer: Any, wanted: Any, names: tuple[str, str] = NAMES) -> str:
    r"""Say how two answers differ, item by item if they are collections; "" if they are equal.

    >>> print(difference(["ab", "ac", "ac"], ["ac", "bc"], ("native", "oracle")))
    native only: 'ab'
    native only: 'ac'
    oracle only: 'bc'
    >>> print(difference([1, 2], [2, 1]))
    found: [1, 2]
    wanted: [2, 1]
    >>> difference({"a": 1, "b": 1}, {"a": 1, "b": 2})
    "found only: ('b', 1)\nwanted only: ('b', 2)"
    """
    if answer == wanted:
        return ""
    lines = []
    if isinstance(answer, list | set | dict) and type(answer) is type(wanted):
        items, wanted_items = _items(answer), _items(wanted)
        lines += [f"{names[0]} only: {item!r}" for item in _without(items, wanted_items)]
        lines += [f"{names[1]} only: {item!r}" for item in _without(wanted_items, items)]
    return "\n".join(lines or [f"{names[0]}: {answer!r}", f"{names[1]}: {wanted!r}"])


@dataclass(frozen=True)
class Failure:
    """How something fails: what is said of it, and the kinds of complaint, of which a smaller input must have one.

    Kinds are the heads of the lines of a complaint without values, or the place where an exception was raised.
    """

    text: str
    kinds: frozenset[Any]
    error: Exception | None = None
    """An exception that is no assertion."""


def _failure_of(complaint_of: Callable[[T], str | None], argument: T) -> Failure | None:
    try:
        complaint = complaint_of(argument)
    except (AssertionError, pytest.fail.Exception) as error:
        frames = traceback.extract_tb(error.__traceback__)
        frame = [frame for frame in frames if frame.filename.startswith(TESTS)][-1]
        said = str(error) or f"not so: {frame.line}"
        text = f"{Path(frame.filename).name}, line {frame.lineno}: {said}"
        return Failure(text, frozenset({(type(error), frame.filename, frame.lineno)}))
    except Exception as error:  # noqa: BLE001
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return Failure(repr(error), frozenset({(type(error), frame.filename, frame.lineno)}), error)
    if not complaint:
        return None
    return Failure(complaint, frozenset(map(_kind_of, complaint.splitlines())))


def _kind_of(line: str) -> str:
    """Return what stands in a line before a colon, without values: numbers, and what is in quotes or brackets.

    >>> _kind_of("native only: {'a': 1}"), _kind_of("given [(1, 'a')], not {}: late")
    ('native only', 'given not')
    """
    line, values = re.sub(r"'[^']*'|\"[^\"]*\"", "", line), 1
    while values:
        line, values = re.subn(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}", "", line)
    return " ".join(re.findall(r"[a-zA-Z_+]+", line.partition(":")[0]))


def _fails_alike(complaint_of: Callable[[T], str | None], failure: Failure) -> Callable[[T], bool]:
    """Return whether something fails in the same way; after some time, or some runs, nothing does: shrinking ends."""
    end, runs = monotonic() + SECONDS, iter(range(RUNS))

    def fails(smaller: T) -> bool:
        if monotonic() > end or next(runs, None) is None:
            return False
        smaller_failure = _failure_of(complaint_of, smaller)
        return smaller_failure is not None and not failure.kinds.isdisjoint(smaller_failure.kinds)

    return fails


def _fail(
    text_of: Callable[[T], str], argument: T, small: T, complaint_of: Callable[[T], str | None], failure: Failure
) -> NoReturn:
    """Fail with the text of what is small, and what is wrong with it; the complaint is a comment of the corpus."""
    small_failure = _failure_of(complaint_of, small)
    if small_failure is None:  # it depends on something else than its argument
        text = f"{text_of(argument)}\n{to_comment('When it was run again, it did not fail.')}"
        small_failure = failure
    else:
        text = text_of(small)
    if small_failure.error is not None:
        small_failure.error.add_note(text)
        raise small_failure.error
    pytest.fail(f"{text}\n{to_comment(small_failure.text)}", pytrace=False)


def _fewer_rows(rows: list[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """Return rows with which it still fails, none of which can be dropped: halves of them first, then fewer."""
    size = len(rows)
    while size:
        start = 0
        while start < len(rows):
            fewer = rows[:start] + rows[start + size :]
            if fails(fewer):
                rows = fewer
            else:
                start += size
        size //= 2
    return rows


def _items(answer: list[Any] | set[Any] | dict[Any, Any]) -> list[Any]:
    return sorted(answer, key=repr) if isinstance(answer, set) else list(getattr(answer, "items", answer.__iter__)())


def _without(items: list[Any], taken: list[Any]) -> list[Any]:
    """Return the items that are left when each of others is taken away once; they need no hash."""
    left = list(items)
    for item in taken:
        if item in left:
            left.remove(item)
    return left

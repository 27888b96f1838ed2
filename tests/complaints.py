"""What a random test says when it fails: its input, shrunk, as text for the corpus, and what is wrong with it.

``fail_if_different`` and ``fail_if_wrong`` are for tests whose input is a ``Case``. Those whose input is something else
(automata, versions of a query, micro-batches) use ``fail_if_different_on_rows`` and ``fail_if_wrong_on_rows``, which
drop rows and print the ``title``, the text of everything else. What is called must depend on its argument alone: a test
that draws while it runs begins with ``Random(case.seed)`` each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, TypeVar

import pytest

from tests.random_cases import Case, shrink

__all__ = [
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
"""After this time a case is printed as small as it has become."""


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


def fail_if_wrong(case: Case, complaint_of: Callable[[Case], str]) -> None:
    """Fail with the shrunk case and its complaint if a function says of a case what is wrong with it ("": nothing)."""
    try:
        complaint = complaint_of(case)
    except Exception as error:
        error.add_note(case.paste())
        raise
    if complaint:
        small = shrink(case, _fails_for_a_while(complaint_of))
        pytest.fail(f"{small.paste()}\n\n{complaint_of(small)}", pytrace=False)


def table_of_rows(rows: Iterable[Row]) -> str:
    """Return rows as ``events`` of the corpus: a line of names, then a line a row, ``-`` for null.

    >>> print(table_of_rows([{"ts": 1, "type": "A"}, {"ts": 2, "type": None, "op": -1}]))
    ts type op
    1 A -
    2 - -1
    """
    rows = list(rows)
    names = [*dict.fromkeys(name for row in rows for name in row)]
    cells = [["-" if row.get(name) is None else str(row[name]) for name in names] for row in rows]
    return "\n".join(" ".join(line) for line in [names, *cells])


def fail_if_different_on_rows(
    rows: Sequence[Row],
    title: str,
    answer_of: Callable[[list[Row]], Any],
    wanted_of: Callable[[list[Row]], Any],
    names: tuple[str, str] = NAMES,
) -> None:
    """Fail with the rows that are needed and both answers if two functions of rows answer differently."""
    fail_if_wrong_on_rows(rows, title, lambda fewer: difference(answer_of(fewer), wanted_of(fewer), names))


def fail_if_wrong_on_rows(
    rows: Sequence[T],
    title: str,
    complaint_of: Callable[[list[T]], str],
    text_of: Callable[[list[Any]], str] = table_of_rows,
) -> None:
    """Fail with the rows that are needed and the complaint if a function says what is wrong with rows ("": nothing).

    With ``text_of``, which prints them, the rows may be steps of any kind.
    """
    try:
        complaint = complaint_of([*rows])
    except Exception as error:
        error.add_note(f"{title}\n{text_of([*rows])}")
        raise
    if complaint:
        fewer = _fewer_rows([*rows], _fails_for_a_while(complaint_of))
        pytest.fail(f"{title}\n{text_of(fewer)}\n\n{complaint_of(fewer)}", pytrace=False)


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


def _fails_for_a_while(complaint_of: Callable[[T], str]) -> Callable[[T], bool]:
    """Return whether something is complained of; from some time on nothing is, so that shrinking ends.

    An exception is another failure than the one that is shrunk.
    """
    end = monotonic() + SECONDS

    def fails(smaller: T) -> bool:
        if monotonic() > end:
            return False
        try:
            return bool(complaint_of(smaller))
        except Exception:  # noqa: BLE001
            return False

    return fails


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

"""Hold the findings of a lint, and show each with its place in the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

from acep.display import MOST_TEXT, preformat
from acep.errors import QueryError
from acep.pattern.expressions import Span

__all__ = ["SEVERITIES", "DataFinding", "Findings", "Hit"]

SEVERITIES = ("error", "warning", "note")
"""``error``: no match is possible, or the query cannot run; ``warning``: it is likely not what was meant, or costly;
``note``: worth knowing."""


@dataclass(frozen=True)
class Hit:
    """The result of a rule: a severity, a message, a hint, and the place in the query's text if there is one."""

    severity: str
    message: str
    hint: str
    span: Span | None = None


@dataclass(frozen=True)
class DataFinding:
    """A finding: the ``code`` of its rule, its ``severity`` (one of :data:`SEVERITIES`), a message, a hint, and its
    place in ``text``, the query.

    >>> place = Span(4, 5)
    >>> print(DataFinding("type_never", "error", "no event is of type `B`", "did you mean `b`?", place, "SEQ(B b)"))
    error: no event is of type `B` [type_never] (line 1, column 5)
      SEQ(B b)
          ^
    hint: did you mean `b`?
    """

    code: str
    severity: str
    message: str
    hint: str
    span: Span | None = None
    text: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain data, the place as offsets ``start`` and ``end``."""
        offsets = None if self.span is None else [self.span.start, self.span.end]
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "hint": self.hint,
            "place": offsets,
        }

    def __str__(self) -> str:
        start, end = (None, None) if self.span is None else (self.span.start, self.span.end)
        error = QueryError(
            f"{self.severity}: {self.message} [{self.code}]", text=self.text, start=start, end=end, hint=self.hint
        )
        return error.render(coded=False)


class Findings(Sequence[DataFinding]):
    """The findings of :func:`acep.lint`, the most severe first: a read-only list; ``events`` were looked at."""

    def __init__(self, found: Sequence[DataFinding], events: int) -> None:
        self._findings = sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))
        self.events = events

    def __len__(self) -> int:
        return len(self._findings)

    @overload
    def __getitem__(self, index: int) -> DataFinding: ...
    @overload
    def __getitem__(self, index: slice) -> Findings: ...
    def __getitem__(self, index: int | slice) -> DataFinding | Findings:
        return Findings(self._findings[index], self.events) if isinstance(index, slice) else self._findings[index]

    @property
    def codes(self) -> list[str]:
        """Return the codes of the findings."""
        return [finding.code for finding in self]

    def __str__(self) -> str:
        if not self._findings:
            return f"{self.events:,} events: nothing looks wrong"
        number = f"{len(self)} finding{'' if len(self) == 1 else 's'}"
        return "\n\n".join([*map(str, self), f"{self.events:,} events: {number}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return preformat(str(self), MOST_TEXT)

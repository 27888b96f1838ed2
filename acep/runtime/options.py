"""Types of the keywords of :func:`acep.match` other than ``output``, for editors and type checkers."""

from __future__ import annotations

from typing import Any, TypedDict

from acep.budget import Budget

__all__ = ["MatchOptions"]


class MatchOptions(TypedDict, total=False):
    """The keywords of :func:`acep.match`."""

    budget: Budget | None
    ts: str
    type: str | None
    seq: str | None
    id: str | None
    unit: str | None
    counts: bool
    engine: str
    policy: Any
    seed: int
    history: Any
    limit: int | None

"""The keywords that :func:`acep.match` takes beside ``output``, with their types, for editors and type checkers."""

from __future__ import annotations

from typing import Any, TypedDict

from acep.budget import Budget

__all__ = ["MatchOptions"]


class MatchOptions(TypedDict, total=False):
    """See :func:`acep.match`."""

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

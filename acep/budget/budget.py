"""Define the budget of a query: the errors that a match may have, and the time, work and memory for matching."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Real

from acep.errors import QueryError
from acep.pattern.check import check_surplus, checked_errors, checked_surplus, checked_weights
from acep.pattern.tree import Query
from acep.pattern.walk import variables
from acep.storage.sizes import size_in_bytes

__all__ = ["Budget", "tolerant"]

Number = int | float | Fraction | Decimal

# Bounds beyond these have the same effect, and would cause rounding errors.
LOWEST, HIGHEST = 1e-9, 1e9
AS = {
    "cpu": "a share of a core, such as 0.5",
    "latency": "seconds, such as 0.02",
    "work": "touches an event, such as 10",
    "speed": "times as fast as the clock of the events, such as 10",
    "estimate": "less than 1, such as 0.03; 0 for none",
    "min_recall": "more than 0 and at most 1, such as 0.8",
    "recover": "recover=True, or a share less than 1, such as recover=0.25",
}
LEAST_MEMORY = 2**20
RECOVER = 1 / 4


@dataclass(frozen=True)
class Budget:
    """The limits on a query. ``None`` sets no bound; without any bound nothing is shed.

    ``errors`` is the greatest total weight of missing letters. ``weights`` maps variables to the weights of their
    letters, and of the events that break a negation. ``surplus`` is what an event costs that is surplus under
    contiguity (infinite: there may be none). Values given here replace those that ``acep.parse`` or ``acep.regex`` was
    given; ``None`` keeps them.

    ``work`` is the average number of transition evaluations ("touches") per event: evaluated pairs of a partial
    match and an arc, shedding decisions included. Those of 64 events are there before the first one, unused ones
    are carried over, and the same stream, cut into the same pushes, always has the same result. ``cpu`` is the
    share of a core, relative to the clock of the events; ``speed`` is the factor by which a recorded stream is
    replayed faster than that clock. ``latency`` is the time for a batch in seconds. ``memory`` is in bytes, a
    number or ``"64 MB"``; several queries over one stream share it (docs/explanation/best_effort.md says what it
    counts). ``estimate`` is the share of this budget for estimating the recall (0: no estimate). ``recover``
    restores all matches of match bundles of which one was found, for that share of the budget (``True``: a
    quarter); matches are then given when their bundle has ended.

    Bounds below 1e-9 or above 1e9 are set to these limits.
    Raises :class:`QueryError` for an invalid number, for ``recover`` with a bound on memory or with no other bound, and
    for ``speed`` without ``cpu``.

    >>> Budget(cpu=0.25, memory="64 MB").memory
    67108864
    >>> Budget(errors=1).limited, Budget(work=10).limited
    (False, True)
    """

    errors: Number | None = None
    weights: Mapping[str, Number | None] | None = None
    surplus: Number | None = None
    cpu: float | None = None
    memory: int | str | None = None
    latency: float | None = None
    work: float | None = None
    speed: float = 1.0
    estimate: float = 1 / 32
    recover: bool | float = False
    min_recall: float | None = None

    def __post_init__(self) -> None:
        for name in ("cpu", "latency", "work", "speed"):
            value = getattr(self, name)
            if value is not None or name == "speed":
                object.__setattr__(self, name, _positive(name, value))
        if self.speed != 1 and self.cpu is None:
            raise speed_error()
        object.__setattr__(self, "estimate", _share("estimate", self.estimate))
        object.__setattr__(self, "recover", self._recovering())
        if self.min_recall is not None:
            object.__setattr__(self, "min_recall", self._least_recall(self.min_recall))
        if self.memory is not None:
            size = size_in_bytes(self.memory)
            if size < LEAST_MEMORY:
                raise QueryError(
                    f"memory={self.memory!r} is less than a query needs", hint="at least 1 MB", code="option_invalid"
                )
            object.__setattr__(self, "memory", size)

    def _least_recall(self, recall: float) -> float:
        number = _number("min_recall", recall)
        if not 0 < number <= 1:
            raise QueryError(
                f"min_recall={_value_text(recall)} is no share of the match points",
                hint=AS["min_recall"],
                code="option_invalid",
            )
        if not self.is_paced:
            raise QueryError(
                "min_recall= is what a bound of time may not cost, and there is none",
                hint="set latency= or cpu=",
                code="option_invalid",
            )
        return number

    def _recovering(self) -> float:
        if isinstance(self.recover, bool):
            share = RECOVER if self.recover else 0.0
        else:
            share = _share("recover", self.recover)
        if share > 0 and self.memory is not None:
            raise QueryError(
                "recover= keeps windows of the stream, to which no bound on memory applies", code="option_invalid"
            )
        if share > 0 and self.work is None and self.cpu is None and self.latency is None:
            raise QueryError(
                "recover= takes a share of an allowance, and there is none",
                hint="set work=, cpu= or latency=",
                code="option_invalid",
            )
        return share

    @property
    def limited(self) -> bool:
        """Whether a bound is set, so that partial matches may have to be shed."""
        return any(bound is not None for bound in (self.cpu, self.memory, self.latency, self.work))

    @property
    def is_paced(self) -> bool:
        """Whether a bound is one of time, for which the seconds of a run are measured."""
        return self.cpu is not None or self.latency is not None


def speed_error() -> QueryError:
    """Return the error for a speed where no bound depends on the clock of the events."""
    return QueryError(
        "speed= says how fast the clock of the events runs, and only cpu= goes by it",
        hint="give cpu= too, or leave speed= out",
        code="option_invalid",
    )


def _positive(name: str, value: object) -> float:
    number = _number(name, value)
    if not math.isfinite(number) or number <= 0:
        raise QueryError(f"{name}={_value_text(value)} is not a positive number", hint=AS[name], code="option_invalid")
    return min(max(number, LOWEST), HIGHEST)


def _share(name: str, value: object) -> float:
    share = _positive(name, value) if _number(name, value) != 0 else 0.0
    if share >= 1:
        raise QueryError(f"{name}={_value_text(value)} is no share", hint=AS[name], code="option_invalid")
    return share


def _number(name: str, value: object) -> float:
    """Return a number as a float, infinite if it is too large; NumPy's numbers are accepted too."""
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise QueryError(f"{name}={_value_text(value)} is not a number", hint=AS[name], code="option_invalid")
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except ValueError:  # a signaling NaN
        return math.nan


def _value_text(value: object) -> str:
    return repr(value) if not isinstance(value, int) else str(value) if abs(value) < 10**30 else "a huge number"


def tolerant(query: Query, budget: Budget | None) -> Query:
    """Return the query with the error budget and the weights of ``budget``, and what a surplus event costs.

    Raises :class:`QueryError` for a negative budget, a weight that is not positive, an unknown variable, or an error
    budget for a hand-written automaton.

    >>> import acep
    >>> tolerant(acep.regex("ab", within=5), Budget(errors=1)).errors
    Fraction(1, 1)
    """
    if budget is None:
        return query
    if not isinstance(budget, Budget):
        raise QueryError(f"budget= takes an acep.Budget, not {type(budget).__name__}", code="option_invalid")
    if query.graph is not None and (budget.errors or budget.weights or budget.surplus):
        raise QueryError(
            "no event of a hand-written automaton may be missing",
            hint="say in an arc what may be missing",
            code="option_invalid",
        )
    if budget.errors is not None:
        query = replace(query, errors=checked_errors(budget.errors))
    if budget.weights is not None:
        query = replace(query, weights=checked_weights(budget.weights, variables(query.pattern)))
    if budget.surplus is not None:
        query = replace(query, surplus=checked_surplus(budget.surplus))
        check_surplus(query)
    return query

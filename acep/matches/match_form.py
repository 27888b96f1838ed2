"""Give the keys, times and values of matches of a query as they are in its input."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from acep.events.decimals import decimal_of
from acep.events.tables import attribute_tick, decimal_like, key_to_input, time_of
from acep.events.times import from_ticks
from acep.matches.zoned_times import zoned_names
from acep.plan.compile import Plan
from acep.plan.schema import Kind, Schema, TimeOf

if TYPE_CHECKING:
    import pyarrow as pa

    from acep.matches.flat import Layout
    from acep.pattern.tree import Query

__all__ = ["MatchForm"]


@dataclass(frozen=True)
class MatchForm:
    """The form of the matches of one query over events of a ``schema``.

    ``keys`` and ``returns`` name the partition attributes and the values of RETURN. ``return_kinds``, ``return_scales``
    and ``return_times`` are the plan's; they serve to give times, durations and decimals among the values of RETURN
    back as such. ``revised``: some matches may be taken back later, or take back others; they have no bundles.
    ``ops``: tables of them say so, by the columns ``op`` and ``id``. ``layout`` says which variables there are
    (``None``: those that are bound), and ``query`` is the query, if it is known.
    """

    schema: Schema
    _: KW_ONLY
    keys: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()
    return_kinds: tuple[Kind, ...] = ()
    return_scales: tuple[int | None, ...] = ()
    return_times: tuple[TimeOf | None, ...] = ()
    revised: bool = False
    ops: bool = False
    layout: Layout | None = None
    query: Query | None = None

    @classmethod
    def of_plan(cls, plan: Plan, schema: Schema, **properties: Any) -> MatchForm:
        """Return the form of the matches of a plan over events of a schema; ``properties`` are other fields."""
        return cls(
            plan.schema if plan.sources else schema,
            keys=plan.keys,
            **{
                "returns": plan.return_names,
                "return_kinds": plan.return_kinds,
                "return_scales": plan.return_scales,
                "return_times": plan.return_times,
            }
            | properties,
        )

    def without_query(self) -> MatchForm:
        """Return the same form without the query, which may have functions of the user."""
        return replace(self, query=None)

    @cached_property
    def _has_converted_keys(self) -> bool:
        schema = self.schema
        return any(
            schema.kind(key) is Kind.TIMESTAMP or schema.scale(key) is not None or schema.counts_ticks(key)
            for key in self.keys
        )

    @cached_property
    def _time_numbers(self) -> frozenset[int]:
        """The column numbers of times and durations among the values of RETURN."""
        computed = (
            i
            for i, origin in enumerate(self.return_times)
            if origin is not None and (origin.duration or not origin.is_whole)
        )
        return frozenset({*computed, *(i for i, kind in enumerate(self.return_kinds) if kind is Kind.TIMESTAMP)})

    @cached_property
    def _has_converted_values(self) -> bool:
        return bool(self._time_numbers) or any(scale is not None for scale in self.return_scales)

    def zoned_names(self) -> frozenset[str]:
        """Return the names of the times that have a zone (:func:`acep.matches.zoned_times.zoned_names`)."""
        types = map(self.time_type, range(len(self.returns)))
        return zoned_names(self.schema, self.keys, dict(zip(self.returns, types, strict=True)))

    def key_to_input(self, key: tuple[Any, ...]) -> dict[str, Any]:
        """Return a key by the names of its attributes."""
        if self._has_converted_keys:
            return key_to_input(key, self.keys, self.schema)
        return dict(zip(self.keys, key, strict=True))

    def values_to_input(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the values of RETURN of a match."""
        if not self._has_converted_values:
            return values
        return tuple(self.value_to_input(i, value) for i, value in enumerate(values))

    def value_to_input(self, number: int, value: Any) -> Any:
        """Return a value of RETURN, by its column number: times as they are in the input, durations as such, decimals
        as decimals."""
        if number in self._time_numbers:
            value_type = self.time_type(number)
            return value if value_type is None else from_ticks([value], attribute_tick(self.schema), value_type)[0]
        scale = self.return_scales[number] if self.return_scales else None
        return value if scale is None else decimal_of(value, scale, self.decimal_type(number))

    def decimal_type(self, number: int) -> pa.DataType:
        """Return the Arrow type of a decimal value of RETURN, by its column number."""
        origin = self.return_times[number] if self.return_times else None
        return decimal_like(origin, self.return_scales[number] or 0, self.schema)

    def time_type(self, number: int) -> pa.DataType | None:
        """Return the Arrow type of a time or duration among the values of RETURN, by its column number; ``None``: it is
        neither, or an integer."""
        if number not in self._time_numbers:
            return None
        return time_of(self.return_times[number] if self.return_times else None, self.schema)

"""Decode the results of the native core: its words become columns of matches, or of counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column
from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns
from acep.native.codes import Codes
from acep.native.id_dictionary import IdDictionary
from acep.plan.compile import Plan
from acep.plan.schema import Kind

if TYPE_CHECKING:
    from acep.matches.partials.partial_columns import PartialColumns

__all__ = ["Decoder"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Decoder:
    """Decodes the results of one plan. ``codes`` and ``id_texts`` are the texts and text ids of its stream."""

    plan: Plan
    return_kinds: tuple[Kind, ...]
    codes: Codes
    id_texts: IdDictionary

    def decode_matches(self, arrays: dict[str, Any]) -> FoundColumns:
        """Return matches that the core gave."""
        return FoundColumns(
            **{name: arrays[name] for name in ("start", "end", "bundle", "error", "offsets", "vars")},
            scale=self.plan.automaton.costs.scale,
            keys=self._keys(arrays["keys"]),
            ids=self.id_texts.texts_of(arrays["ids"]) if self.id_texts else arrays["ids"],
            variables=self.plan.variables,
            values=self._values(arrays["values"], arrays["valid"], len(arrays["start"])),
            shape=None if arrays["shape"] is None else tuple(arrays["shape"].tolist()),
            in_order=arrays["ordered"] and not self.id_texts,
            apart=self.plan.query.graph is not None,
        )

    def decode_partials(self, listed: dict[str, Any]) -> PartialColumns:
        """Return partial matches that the core listed."""
        names = ("start", "end", "bundle", "error", "offsets", "vars")
        records = FoundColumns(
            **{name: listed[name] for name in names},
            scale=self.plan.automaton.costs.scale,
            keys=self._keys(listed["keys"]),
            ids=self.id_texts.texts_of(listed["ids"]) if self.id_texts else listed["ids"],
            variables=self.plan.variables,
        )
        from acep.matches.partials.partial_columns import PartialColumns  # few matchers are asked for them

        return PartialColumns(records, listed["states"], listed["sequences"], listed["utility"], listed["total"])

    def decode_counted(self, arrays: dict[str, Any], matches: Any) -> Counted:
        """Return match points or bundles that the core gave, with the number of ``matches`` of each."""
        columns = {name: arrays[name] for name in ("first", "last", "bundle", "error")}
        return Counted(self._keys(arrays["keys"]), **columns, scale=self.plan.automaton.costs.scale, matches=matches)

    def _keys(self, words: Ints) -> tuple[Column, ...]:
        schema = self.plan.schema
        kinds = [schema.kind(k) or (Kind.STRING if k == schema.type else Kind.INT) for k in self.plan.keys]
        table = words.reshape(-1, len(kinds)) if kinds else words
        return tuple(self.codes.column(table[:, i], kind) for i, kind in enumerate(kinds))

    def _values(self, words: Ints, valid: npt.NDArray[np.uint8], n_matches: int) -> tuple[Column, ...]:
        kinds = self.return_kinds
        if not kinds:
            return ()
        states, first = self.plan.arcs.states, int(self.plan.query.graph is not None)
        if first and not len(words):  # there are no registers, and one final state
            final = next(state.number for state in states if state.accepts)
            words, valid = np.full(n_matches, final), np.ones(n_matches, np.uint8)
        table, validity = words.reshape(-1, len(kinds)), valid.reshape(-1, len(kinds))
        columns = [self.codes.column(table[:, i], kind, validity[:, i]) for i, kind in enumerate(kinds[first:], first)]
        if first:
            columns.insert(0, Column(Kind.STRING, table[:, 0], None, [state.var for state in states]))
        return tuple(columns)

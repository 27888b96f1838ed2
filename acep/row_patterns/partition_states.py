"""Hold what a stream knows of each partition: its key, where its next match may start, and the matches so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column
from acep.row_patterns.sorted_rows import sort_rows

__all__ = ["NEVER", "PartitionStates"]

Ints = npt.NDArray[np.int64]
NEVER = 2**63 - 1
"""The deadline of a partition that no time decides."""
COLUMNS = {
    "starts": 0, "numbers": 0, "covered": 0, "deadlines": NEVER, "waits": -1, "sizes": 0, "cells": -1, "hashes": 0,
}  # fmt: skip
"""The columns of the partitions, with their values at the beginning."""
STORED = ("starts", "numbers", "covered", "deadlines")
"""The columns of a state; ``cells`` and ``hashes`` are there only under a budget, and the others are found again."""
KEYED = ("cells", "hashes")


class PartitionStates:
    """Partitions by code, a small number; the code of one that is dropped is given again.

    By code: ``starts``, the rows that are kept before the next start; ``numbers``, the matches so far; ``covered``, the
    kept rows before the end of these; ``deadlines``, the last time at which the next start is open; ``waits``, the
    state at which its match waits for rows (-1: unknown); ``sizes``, the rows that are kept. Under a budget also
    ``cells`` and ``hashes``, the cell and the hash of its key (the cell is -1 until they are there)."""

    def __init__(self) -> None:
        self.code_of_key: dict[tuple[Any, ...], int] = {}
        self.keys: list[tuple[Any, ...]] = []  # by code
        self.free_codes: list[int] = []
        self.starts, self.numbers, self.covered, self.deadlines, self.waits = (np.zeros(0, np.int64) for _ in range(5))
        self.sizes, self.cells, self.hashes = (np.zeros(0, np.int64) for _ in range(3))

    def __len__(self) -> int:
        return len(self.code_of_key)

    def copy(self) -> PartitionStates:
        """Return partitions that change alone."""
        other = PartitionStates()
        other.code_of_key, other.keys = dict(self.code_of_key), list(self.keys)
        other.free_codes = list(self.free_codes)
        for name in COLUMNS:
            setattr(other, name, getattr(self, name).copy())
        return other

    def add(self, names: Sequence[str], columns: Mapping[str, Column], row_count: int) -> Ints:
        """Return (n,) the code of the partition of each row, by the columns ``names``; new ones get a code.

        >>> from acep.plan.schema import Kind
        >>> column = Column(Kind.FLOAT, np.array([2.0, -0.0, 0.0, 2.0]))
        >>> PartitionStates().add(["x"], {"x": column}, 4).tolist()
        [1, 0, 0, 1]
        """
        if row_count == 1:
            key = tuple(columns[name].to_list()[0] for name in names)
            code = np.array([self._code(key)], np.int64)
            self._grow()
            return code
        groups = sort_rows(row_count, names, (), columns)
        firsts = groups.order[groups.partitions[:-1]]
        values = [columns[name].take(firsts).to_list() for name in names]
        keys = list(zip(*values, strict=True)) if names else [()] * len(firsts)
        codes = np.zeros(row_count, np.int64)
        codes[groups.order] = np.repeat(
            np.array([self._code(key) for key in keys], np.int64), np.diff(groups.partitions)
        )
        self._grow()
        return codes

    def find_searched(self, fresh_codes: Ints, clock: int | None) -> npt.NDArray[np.bool_]:
        """Return by code whether a partition is to be searched: it has fresh rows, or its deadline is over at ``clock``
        (``None``: all are)."""
        touched = np.ones(len(self.starts), bool) if clock is None else self.deadlines < clock
        touched[fresh_codes] = True
        return touched

    def settle(self, codes: Ints, settled: Mapping[str, Ints], is_over: npt.NDArray[np.bool_]) -> None:
        """Take in what is so of partitions now, by the names of :data:`COLUMNS`; those that are over are dropped."""
        for name, values in settled.items():
            getattr(self, name)[codes] = values
        self.drop(codes[is_over])

    def drop(self, codes: Ints) -> None:
        """Forget partitions."""
        for name, value in COLUMNS.items():
            getattr(self, name)[codes] = value
        self.free_codes += codes.tolist()
        for code in codes.tolist():
            del self.code_of_key[self.keys[code]]

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data."""
        keys = [[*key] for key in self.code_of_key]
        codes = np.array(list(self.code_of_key.values()), np.int64)
        names = (*STORED, *KEYED) if (self.cells[codes] >= 0).any() else STORED
        columns = {name: getattr(self, name)[codes].tolist() for name in names}
        return {"keys": keys, "codes": codes.tolist(), **columns}

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> PartitionStates:
        """Return the partitions of :meth:`dump`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError`
        for other data."""
        states = cls()
        codes = np.array(data["codes"], np.int64)
        keys = [tuple(key) for key in data["keys"]]
        size = 1 + int(codes.max(initial=-1))
        if len(set(codes.tolist())) != len(codes) or codes.min(initial=0) < 0 or size > 2 * len(keys) + 2**20:
            raise ValueError("codes")
        states.code_of_key = dict(zip(keys, codes.tolist(), strict=True))
        states.keys = [()] * size
        for key, code in states.code_of_key.items():
            states.keys[code] = key
        states.free_codes = sorted(set(range(size)) - set(codes.tolist()), reverse=True)
        states._grow()
        for name in (*STORED, *KEYED):
            if name in STORED or name in data:
                getattr(states, name)[codes] = np.array(data[name], np.int64)
        if min(states.starts.min(initial=0), states.numbers.min(initial=0), states.covered.min(initial=0)) < 0:
            raise ValueError("starts")
        return states

    def _code(self, key: tuple[Any, ...]) -> int:
        code = self.code_of_key.get(key)
        if code is None:
            code = self.free_codes.pop() if self.free_codes else len(self.keys)
            self.keys[code : code + 1] = [key]
            self.code_of_key[key] = code
        return code

    def _grow(self) -> None:
        more = max(len(self.keys), 2 * len(self.starts)) - len(self.starts)
        if len(self.keys) <= len(self.starts):
            return
        for name, value in COLUMNS.items():
            setattr(self, name, np.concatenate([getattr(self, name), np.full(more, value)]))

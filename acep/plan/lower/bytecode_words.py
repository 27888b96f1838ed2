"""Define the instruction set of block programs, and assemble their values into words with shared slots.

``acep/native/src/expression/opcodes.hpp`` has the same list of operations and describes their words.
"""

from __future__ import annotations

import heapq
import struct
from enum import IntEnum, auto
from typing import Final

__all__ = ["MOST_SLOTS", "MOST_WORDS", "READS", "CannotLower", "Op", "Words", "bits_of"]

MOST_SLOTS: Final = 1024
MOST_WORDS: Final = 1 << 20


class CannotLower(Exception):  # noqa: N818  (what it says is no fault of anyone's: the expression runs in Python)
    """Raised for an expression that block programs cannot compute, wholly or in part. ``reason`` explains why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Op(IntEnum):
    """Operations by number: ``_I`` on integers or codes, ``_F`` on floats, ``_M`` on one of each, ``_S`` on texts."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[int]) -> int:  # noqa: ARG004
        return count

    RETURN = auto()
    LEAF, CONST, NONE = auto(), auto(), auto()
    TRUTH, NUMBER, IS_NULL, UNKNOWN = auto(), auto(), auto(), auto()
    NOT, AND, OR = auto(), auto(), auto()
    EQ_I, NE_I, LT_I, LE_I = auto(), auto(), auto(), auto()
    EQ_F, NE_F, LT_F, LE_F = auto(), auto(), auto(), auto()
    EQ_M, NE_M, LT_M, LE_M, GT_M, GE_M = auto(), auto(), auto(), auto(), auto(), auto()
    LT_S, LE_S = auto(), auto()
    IN_I, IN_F = auto(), auto()
    ADD_I, SUB_I, MUL_I, DIV_I, MOD_I = auto(), auto(), auto(), auto(), auto()
    NEG_I, ABS_I, SIGN_I, ROUND_I, FLOAT = auto(), auto(), auto(), auto(), auto()
    ADD_F, SUB_F, MUL_F, DIV_F, MOD_F = auto(), auto(), auto(), auto(), auto()
    NEG_F, ABS_F, SIGN_F, ROUND_F = auto(), auto(), auto(), auto()
    FLOOR, CEIL, SQRT, EXP, LN, LOG10 = auto(), auto(), auto(), auto(), auto(), auto()
    POWER, PART = auto(), auto()
    MIN_I, MAX_I, MIN_F, MAX_F = auto(), auto(), auto(), auto()
    MIN_S, MAX_S, COALESCE, SELECT = auto(), auto(), auto(), auto()
    ORDER_I, ORDER_M, QUOTIENT, FLOOR_I, CEIL_I = auto(), auto(), auto(), auto(), auto()


_NONE_READ = (Op.RETURN, Op.LEAF, Op.CONST, Op.NONE)
_ONE_READ = (
    *(Op.TRUTH, Op.NUMBER, Op.IS_NULL, Op.UNKNOWN, Op.NOT, Op.IN_I, Op.IN_F, Op.NEG_I, Op.ABS_I, Op.SIGN_I, Op.FLOAT),
    *(Op.NEG_F, Op.ABS_F, Op.SIGN_F, Op.FLOOR, Op.CEIL, Op.SQRT, Op.EXP, Op.LN, Op.LOG10, Op.PART),
    *(Op.FLOOR_I, Op.CEIL_I),
)
READS: Final[dict[Op, int]] = {
    op: 0 if op in _NONE_READ else 1 if op in _ONE_READ else 3 if op is Op.SELECT else 2 for op in Op
}
"""Number of slots that an operation reads."""


def bits_of(value: float) -> int:
    """Return the bits of a double as a signed 64-bit word."""
    return int.from_bytes(struct.pack("<d", value), "little", signed=True)


class Words:
    """A builder of programs. Each value is computed once; equal values share a number."""

    def __init__(self) -> None:
        self._operations: list[tuple[Op, tuple[int, ...], tuple[int, ...]]] = []
        self._numbers: dict[tuple[Op, tuple[int, ...], tuple[int, ...]], int] = {}

    def give(self, op: Op, *reads: int, immediates: tuple[int, ...] = ()) -> int:
        """Return the number of an operation's result, given the numbers of its operands and its constants."""
        assert len(reads) == READS[op]
        operation = (op, reads, immediates)
        if operation not in self._numbers:
            self._numbers[operation] = len(self._operations)
            self._operations.append(operation)
        return self._numbers[operation]

    def number_of(self, truth: int) -> int:
        """Return the number of a truth value as 1 or 0. For the truth value of an input this is the input itself."""
        op, reads, _ = self._operations[truth]
        if op is Op.TRUTH and self._operations[reads[0]][0] is Op.LEAF:
            return reads[0]
        return self.give(Op.NUMBER, truth)

    def program(self, result: int) -> tuple[tuple[int, ...], int]:
        """Return the words that compute ``result``, without unneeded values, and the number of slots."""
        order = self._in_order_of_need(result)
        last = {read: number for number in order for read in self._operations[number][1]}
        code: list[int] = []
        slot: dict[int, int] = {}
        free: list[int] = []
        slots = 0
        for number in order:
            op, reads, immediates = self._operations[number]
            # Operand slots are freed after this, so a result never overwrites its own operand.
            if free:
                slot[number] = heapq.heappop(free)
            else:
                slot[number], slots = slots, slots + 1
            code += [op, slot[number], *(slot[r] for r in reads), *immediates]
            for read in set(reads):
                if last[read] == number:
                    heapq.heappush(free, slot[read])
        code += [Op.RETURN, slot[result]]
        if slots > MOST_SLOTS or len(code) > MOST_WORDS:
            raise CannotLower("the expression is too large")
        return tuple(int(word) for word in code), slots

    def _in_order_of_need(self, result: int) -> list[int]:
        """Return the values that ``result`` needs in depth-first order, each after its operands."""
        order: dict[int, None] = {}
        stack = [result]
        while stack:
            number = stack[-1]
            missing = [read for read in reversed(self._operations[number][1]) if read not in order]
            if missing:
                stack += missing
            else:
                order.setdefault(stack.pop())
        return list(order)

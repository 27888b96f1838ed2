"""Bound the error of a sketch by its size: the width and depth for which it exceeds a bound seldom enough."""

from __future__ import annotations

import numpy as np

__all__ = ["DEEPEST", "WIDEST", "check_size", "size_for_error"]

WIDEST = 2**32
DEEPEST = 64


def size_for_error(epsilon: float, delta: float, load: int = 0, false_bit: float | None = None) -> tuple[int, int]:
    """Return the (width, depth) of a sketch for these error bounds (docs/explanation/sketches.md). A count exceeds the
    truth by more than ``epsilon`` times the total with probability ``delta`` at most. If ``load`` vectors reached a
    bundle, another vector has its bit with probability ``false_bit`` at most (default: ``delta``).

    >>> size_for_error(epsilon=0.01, delta=0.01)
    (272, 5)
    >>> size_for_error(epsilon=0.01, delta=0.01, load=500)
    (986, 5)
    """
    false_bit = delta if false_bit is None else false_bit
    if not (0 < epsilon < 1 and 0 < delta < 1 and 0 < false_bit < 1 and load >= 0):
        raise ValueError("epsilon, delta and the chance of a false bit are between 0 and 1, a load is not negative")
    depth = int(np.ceil(np.log(1 / delta)))
    width = int(np.ceil(np.e / epsilon))
    if load:
        # (1 - (1 - 1/w)^load)^depth <= false_bit, solved for w.
        width = max(width, int(np.ceil(-1 / np.expm1(np.log1p(-(false_bit ** (1 / depth))) / load))))
    return check_size(width, depth, 0)[:2]


def check_size(width: int, depth: int, seed: int) -> tuple[int, int, int]:
    """Check the size and the seed of a sketch; raise ``ValueError`` if they are out of range."""
    if not (1 <= width <= WIDEST and 1 <= depth <= DEEPEST and 0 <= seed < 2**32):
        raise ValueError(
            f"a sketch of {depth} rows, {width} wide, with seed {seed}: {DEEPEST} rows, 2**32 wide at most"
        )
    return width, depth, seed

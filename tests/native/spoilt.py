"""Tables and states of the native core that make no sense, and what counts as refusing them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from acep.native import _native
from acep.native.session import NativeSession
from tests.case_counts import CaseCounts

__all__ = ["ODD", "REFUSED", "refused_or_run", "spoil_tables", "spoilt"]

ODD = (
    *(-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 5, 7, 15, 16, 17, 63, 64, 65, 255),
    *(2**16 - 1, 2**31, 2**32 - 2, 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1),
)
"""Numbers at the ends of their ranges, and small ones."""

REFUSED = (ValueError, RuntimeError, IndexError, TypeError, OverflowError)
"""What a refusal is: one of these, never MemoryError."""


def spoilt(state: bytes, rng: Random) -> bytes:
    """A state with some words or bytes changed, or cut short.

    >>> spoilt(bytes(16), Random(1)) != bytes(16)
    True
    """
    words = bytearray(state)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = 8 * rng.randrange(len(words) // 8)
        kind = rng.random()
        if kind < 0.6:
            words[at : at + 8] = rng.choice(ODD).to_bytes(8, "little", signed=True)
        elif kind < 0.9:
            words[at + rng.randrange(8)] = rng.randrange(256)
        else:
            del words[at:]
            break
    return bytes(words)


def spoil_tables(session: NativeSession, rng: Random, tables: str = "") -> None:
    """Give a session a new core whose tables have some words changed, those whose names begin with ``tables``."""
    ((engine, arrays),) = session._engine_tables
    arrays = dict(arrays)
    for _ in range(rng.choice((1, 1, 2, 5))):
        name = rng.choice(sorted(name for name in arrays if name.startswith(tables)))
        array: Any = arrays[name].copy()
        if len(array) and rng.random() < 0.85:
            at = rng.randrange(len(array))
            near = int(array[at]) + rng.choice((-1, 1))
            array[at] = rng.choice((*ODD, near, near, near, *(int(v) for v in array[:3])))
        elif rng.random() < 0.5:
            array = array[: rng.randrange(len(array) + 1)]
        else:
            array = np.append(array, np.int64(rng.choice(ODD)))
        arrays[name] = array
    session._session = _native.Session(session._codes.texts, *session._core_arguments)
    session._session.add(engine, arrays)


def refused_or_run(cases: CaseCounts, whole: int, attempt: Callable[[Random], object]) -> None:
    """Check that attempts are refused or run to their end, and that among a ``whole`` number of them both occurs."""
    seen = Counter[str]()
    for seed in range(cases(whole)):
        try:
            attempt(Random(seed))
        except REFUSED:
            seen["refused"] += 1
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
        else:
            seen["run"] += 1
    cases.expect(seen, "refused", "run")

"""Wrap a policy, and check each call: no exception, no global random numbers, arguments left as they were, a state of
plain data, and a shedding table that the native core can follow."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from acep.checks.shedding_tables import mistakes
from acep.errors import AcepError, PolicyError
from acep.learning.policy import Epoch, Policy
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable
from acep.storage.plain_data import from_bytes, to_bytes, to_json

__all__ = ["Refused", "Watched", "digest"]


class Refused(BaseException):
    """Raised when a policy cannot serve a query."""


@dataclass
class Watched:
    """A policy that raises :class:`PolicyError` if it breaks the contract of :class:`acep.learning.policy.Policy`."""

    policy: Policy
    situation: str
    name: str = field(init=False)
    context: PolicyContext = field(init=False)
    epochs: int = 0
    digests: list[str] = field(default_factory=list)  # digests of all shedding tables
    sizes: list[int] = field(default_factory=list)  # bytes of the state after each epoch
    seconds: list[float] = field(default_factory=list)  # processor time of learning in each epoch
    states: list[tuple[Epoch, Any]] | None = field(default_factory=list)  # epochs, and the state after each

    def __post_init__(self) -> None:
        self.name = self.policy.name
        if not isinstance(self.name, str):
            raise self.violation("`name` is no text", "policies are told apart by their names")

    def violation(self, what: str, hint: str) -> PolicyError:
        """Return the error for a broken contract."""
        named = getattr(self.policy, "name", None)
        who = named if isinstance(named, str) else type(self.policy).__name__
        return PolicyError(f"the policy `{who}` {what} (in {self.situation}, after {self.epochs} epochs)", hint=hint)

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        """Begin the policy. Raises :class:`Refused` if it cannot serve the setting."""
        self.context = context
        digest_before = digest(context)
        try:
            shedding_table = self._call("begin", lambda: self.policy.begin(context, seed))
        except AcepError as error:
            if isinstance(error, PolicyError):
                raise
            raise Refused(error.message) from error
        if digest(context) != digest_before:
            raise self.violation("changes the setting in `begin`", "make a copy of what is to be changed")
        return self._check_table(shedding_table, "begin")

    def learn(self, epoch: Epoch) -> SheddingTable:
        """Return the policy's shedding table, and check that it does not modify the epoch's arrays."""
        digest_before = digest(epoch)
        started = time.process_time()
        shedding_table = self._call("learn", lambda: self.policy.learn(epoch))
        self.seconds.append(time.process_time() - started)
        if digest(epoch) != digest_before:
            raise self.violation(
                "changes the epoch's arrays in `learn`", "others look at them too: make a copy of what is to be changed"
            )
        self.epochs += 1
        state = self.state()
        if self.states is not None:
            self.states.append((epoch, to_json(state)))
        return self._check_table(shedding_table, "learn")

    def state(self) -> Mapping[str, Any]:
        """Return the policy's state, and check that it is plain data."""
        state = self._call("state", self.policy.state)
        hint = "numbers, texts, lists, dicts with texts as keys, and NumPy arrays of numbers"
        if not isinstance(state, Mapping):
            raise self.violation(f"gives a {type(state).__name__} as its state, not a mapping", hint)
        try:
            state_bytes = to_bytes(dict(state))
        except (TypeError, ValueError, RecursionError) as error:
            raise self.violation(f"has a state that is no plain data: {error}", hint) from None
        self.sizes.append(len(state_bytes))
        restored: Mapping[str, Any] = from_bytes(state_bytes)
        return restored

    def restore(self, state: Mapping[str, Any]) -> SheddingTable:
        """Restore a state, and return the shedding table of that time."""
        return self._check_table(self._call("restore", lambda: self.policy.restore(state)), "restore")

    def _check_table(self, answer: Any, method: str) -> SheddingTable:
        for what in mistakes(answer, self.context):
            raise self.violation(
                f"gives a shedding table in `{method}` that cannot be followed: {what}",
                "see acep.learning.shedding_table.SheddingTable; SheddingTable.flat(context) is a beginning",
            )
        self.digests.append(digest(answer))
        checked: SheddingTable = answer
        return checked

    def _call(self, method: str, call: Callable[[], Any]) -> Any:
        python, numpy = random.getstate(), np.random.get_state()
        try:
            answer = call()
        except AcepError as error:
            if method == "begin":
                raise
            raise self.violation(
                f"refuses in `{method}`: {error.message}", "what cannot be served is said in `begin`"
            ) from error
        except Exception as error:
            raise self.violation(
                f"raises {type(error).__name__} in `{method}`: {error}",
                "an epoch may be empty, and without trajectories",
            ) from error
        if random.getstate() != python or digest(np.random.get_state()) != digest(numpy):
            raise self.violation(
                f"draws from a global random generator in `{method}`",
                "the same stream must have the same answer: draw from a generator made from `seed`",
            )
        return answer


def digest(value: Any) -> str:
    """Return a digest that is equal for equal plain data, arrays and dataclasses of them."""
    digester = hashlib.blake2b(digest_size=16)
    _add(value, digester.update)
    return digester.hexdigest()


def _add(value: Any, add: Callable[[bytes], None]) -> None:
    if isinstance(value, np.ndarray):
        add(f"{value.dtype}{value.shape}".encode())
        add(np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            add(f.name.encode())
            _add(getattr(value, f.name), add)
    elif isinstance(value, Mapping):
        for key, element in value.items():
            add(repr(key).encode())
            _add(element, add)
    elif isinstance(value, list | tuple):
        add(f"{len(value)}".encode())
        for element in value:
            _add(element, add)
    else:
        add(repr(value).encode())

"""Select the load shedding policy for an insufficient budget: a built-in one by name, or one that a user brings."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

from acep.errors import QueryError, suggest
from acep.learning.policies.baselines import RULES, Rule
from acep.learning.policy import Policy

__all__ = ["POLICIES", "Maker", "policy_of"]

Maker = Callable[[], Policy]


def _history_policy() -> Policy:
    from acep.learning.policies.history_policy import HistoryPolicy

    return HistoryPolicy()


def _counting_policy(name: str) -> Policy:
    from acep.learning.policies.counting import CountingPolicy
    from acep.learning.policies.schemes import SCHEMES

    return CountingPolicy(name, SCHEMES[name])


def _oracle_policy() -> Policy:
    from acep.learning.policies.oracle_policy import OraclePolicy

    return OraclePolicy()


def _bandit_policy() -> Policy:
    from acep.learning.policies.bandit_policy import BanditPolicy

    return BanditPolicy()


POLICIES: dict[str, Maker] = {
    "history": _history_policy,
    **{name: partial(Rule, name) for name in RULES},
    **{name: partial(_counting_policy, name) for name in ("input", "state", "hybrid")},
    "experts": _bandit_policy,
    "trained-on-test": _oracle_policy,
}
"""The functions that make a new policy, by its name."""


def policy_of(policy: Any) -> Maker:
    """Return the function that makes the policy of each query: a name in :data:`POLICIES`, or an object to be copied.

    Raises :class:`QueryError` for anything else.

    >>> policy_of("newest")().name
    'newest'
    """
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise QueryError(
                f"there is no policy {policy!r}", hint=suggest(policy, tuple(POLICIES)), code="option_invalid"
            )
        return POLICIES[policy]
    missing = [name for name in ("begin", "learn", "state", "restore") if not callable(getattr(policy, name, None))]
    named = getattr(policy, "name", None)
    missing = missing if isinstance(named, str) and named else ["name", *missing]
    if missing or isinstance(policy, type):
        what = f"{policy.__name__} itself" if isinstance(policy, type) else type(policy).__name__
        raise QueryError(
            f"policy= takes a name or an object with the methods of a policy, not {what}",
            hint=f"it has no {', '.join(missing)}" if missing and not isinstance(policy, type) else "an object of it",
            code="option_invalid",
        )
    try:
        copy.deepcopy(policy)
    except Exception as error:  # noqa: BLE001  # a user's policy may raise anything
        raise QueryError(
            f"the policy `{named}` cannot be copied: {error}",
            hint="each query has one of its own, by copy.deepcopy",
            code="option_invalid",
        ) from None
    return partial(copy.deepcopy, policy)

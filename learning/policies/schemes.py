"""The load shedding policies from the literature by name."""

from __future__ import annotations

from collections.abc import Mapping

from acep.learning.policies.counting import Scheme
from acep.learning.policies.hybrid_policy import HYBRID
from acep.learning.policies.input_policy import INPUT
from acep.learning.policies.state_policy import state_scheme

__all__ = ["SCHEMES"]

SCHEMES: Mapping[str, Scheme] = {
    "input": INPUT,
    "state": state_scheme(),
    "state by differences": state_scheme(won="value"),
    "hybrid": HYBRID,
}
"""The schemes by name; ``state by differences`` is ``state`` with temporal-difference learning."""

"""Check a policy that a user brings (docs/howto/policies.md)."""

from acep.checks.policy import Checked, check_policy

__all__ = ["Checked", "check_policy"]

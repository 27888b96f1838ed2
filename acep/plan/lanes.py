"""Decide in how many lanes plans can run, which are parts of their partitions that threads can run at once; and whether
threads can run slices of a table instead."""

from __future__ import annotations

from collections.abc import Sequence

from acep.pattern.tree import Output
from acep.plan.choice import decides_at_once
from acep.plan.compile import Plan

__all__ = ["MOST_LANES", "most_lanes", "why_no_slices", "why_one_lane"]

MOST_LANES = 256
"""The most lanes: each looks at the key of every event, so more would gain nothing."""


def why_one_lane(plan: Plan) -> str | None:
    """Return why a plan runs in one lane; ``None``: each of its partitions can run in another one.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> why_one_lane(assumed_plan(acep.parse("PATTERN SEQ(A a, B b) WITHIN 9")))
    'there is no partition attribute, and no equality ties all variables'
    >>> why_one_lane(assumed_plan(acep.regex("ab", within=5, by="user")))
    """
    plan = plan.finer or plan
    if not plan.keys:
        return "there is no partition attribute, and no equality ties all variables"
    if plan.strict and plan.query.output is not Output.ALL:
        return "under strict contiguity matches are chosen among those of all partitions"
    return None


def most_lanes(plans: Sequence[Plan], threads: int) -> tuple[int, str]:
    """Return in how many lanes plans can run that share a stream, up to ``threads``, and why not in more.

    Plans that run in one lane are dealt out to the lanes.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> alone, keyed = (assumed_plan(acep.regex("ab", within=5, by=by)) for by in ((), "user"))
    >>> most_lanes([alone, alone], 4)[0], most_lanes([alone, keyed], 4)
    (2, (4, ''))
    """
    reasons = [why_one_lane(plan) for plan in plans]
    if any(why is not None and (plan.finer or plan).keys for why, plan in zip(reasons, plans, strict=True)):
        return 1, next(why for why, plan in zip(reasons, plans, strict=True) if why and (plan.finer or plan).keys)
    if None in reasons:
        return min(threads, MOST_LANES), "" if threads <= MOST_LANES else f"there are no more than {MOST_LANES} lanes"
    lanes = min(threads, len(plans))
    return lanes, "" if lanes == threads else next(why for why in reasons if why)


def why_no_slices(plan: Plan) -> str | None:
    """Return why threads cannot run slices of a table for a plan without partitions; ``None``: they can.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> why_no_slices(assumed_plan(acep.parse("PATTERN SEQ(A a, B b) WITHIN 9 events")))
    'there is no partition attribute, and no window of time bounds matches'
    >>> why_no_slices(assumed_plan(acep.parse("PATTERN SEQ(A a, B b) WITHIN 9")))
    """
    if plan.window.span is None or plan.window.counted:
        return "there is no partition attribute, and no window of time bounds matches"
    if not decides_at_once(plan):
        return "there is no partition attribute, and matches wait for others or for the end of their window"
    return None

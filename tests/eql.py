"""An account of Elastic's EQL for small streams: for each key one partial sequence in each state.

It is derived from what Elastic publishes: the documentation of sequences ("How sequence queries handle matches", "until
keyword", "Missing events"), the source of its state machine (the package ``execution.sequence`` of the plugin ``eql``),
and the results that its own tests expect (``PUBLISHED`` in ``eql_cases.py``). It shares no code with acep. It rests on
these rules:

* An event is shown to the steps from the last one to the first. One that fits step n moves the sequence that waits
  behind step n - 1, if there is one, and takes the place of the one that waits behind step n. One that fits the first
  step begins a sequence.
* A sequence that is moved by an event more than ``maxspan`` after its first one is gone.
* ``until`` takes all sequences of its key away, after the steps have seen the event.
* A missing event is looked for in the sequences that are complete, strictly between the events beside it. At the
  beginning and at the end it must keep the whole sequence, with it, longer than ``maxspan``; where both ends have one,
  it is enough that one of them is missing.

Elastic takes its events page by page (``fetch_size``), and from the end on (``result_position``). Neither is here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Event = dict[str, Any]
Bound = tuple[tuple[str, int], ...]  # name of the step and place of the event, in the order of the steps
Condition = Callable[[Event], bool]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Step:
    """An item in brackets: which events fit, by which fields they are joined, and whether none may come."""

    name: str
    fits: Condition
    by: tuple[str, ...] = ("k",)
    missing: bool = False


def kind(*types: str) -> Condition:
    """Be of one of these types."""
    return lambda event: event["type"] in types


def runs(step: Step, count: int) -> list[Step]:
    """Return a step so often."""
    return [step] * count


def key_of(event: Event, step: Step) -> Key | None:
    """Return what joins an event to the others; ``None`` if a part of it is null, as it then joins nothing."""
    values = tuple(event[name] for name in step.by)
    return None if None in values else values


def matches(
    steps: Sequence[Step], events: Sequence[Event], *, maxspan: float = math.inf, until: Step | None = None
) -> list[Bound]:
    """Return the sequences over events in order of time, in the order in which they are complete."""
    wanted = [step for step in steps if not step.missing]
    waiting: dict[Key, dict[int, Bound]] = {}  # by key and number of the step behind which a sequence waits
    complete: list[tuple[Key, Bound]] = []
    for place, event in enumerate(events):
        for number, step in reversed(list(enumerate(wanted))):
            key = key_of(event, step)
            if key is None or not step.fits(event):
                continue
            sequences = waiting.setdefault(key, {})
            before: Bound | None = () if number == 0 else sequences.pop(number - 1, None)
            if before is None or (before and event["ts"] - events[before[0][1]]["ts"] > maxspan):
                continue
            bound = (*before, (step.name, place))
            if number == len(wanted) - 1:
                complete.append((key, bound))
            else:
                sequences[number] = bound
        if until is not None and until.fits(event):
            waiting.pop(key_of(event, until) or (), None)
    return [bound for key, bound in complete if lacks_missing(steps, events, key, bound, maxspan)]


def lacks_missing(steps: Sequence[Step], events: Sequence[Event], key: Key, bound: Bound, maxspan: float) -> bool:
    """Whether the events that may not come are missing around and between those of a complete sequence."""
    times = [events[place]["ts"] for _, place in bound]
    last_leading, first_trailing = -math.inf, math.inf
    for position, step in enumerate(steps):
        if not step.missing:
            continue
        found = [event["ts"] for event in events if step.fits(event) and key_of(event, step) == key]
        behind = sum(not other.missing for other in steps[:position])  # how many events stand before it
        if behind == 0:
            last_leading = max([last_leading, *(ts for ts in found if ts < times[0])])
        elif behind == len(times):
            first_trailing = min([first_trailing, *(ts for ts in found if ts > times[-1])])
        elif any(times[behind - 1] < ts < times[behind] for ts in found):
            return False
    first = last_leading if steps[0].missing else times[0]
    last = first_trailing if steps[-1].missing else times[-1]
    return last - first > maxspan if steps[0].missing or steps[-1].missing else True

"""Run a plan over one table and give its matches block by block, in bounded memory."""

from __future__ import annotations

from itertools import chain

from acep.events.batch import Batch
from acep.matches.batches import ROWS, Blocks
from acep.native.compiled import chosen
from acep.native.session import NativeSession
from acep.plan.choice import decides_at_once
from acep.plan.compile import Plan
from acep.runtime.stream import Stream, together

__all__ = ["blocks_of"]


def blocks_of(plan: Plan, engine: str, batch: Batch) -> Blocks:
    """Yield the matches of a plan over one batch of events in blocks, each with the counts of work done so far."""
    if plan.finer is None and chosen(plan, engine).base == "merged":  # behind match windows events would come late
        session = NativeSession([plan], ["merged"])
        for matches in session.blocks(batch, ROWS):
            yield matches, session.counts(0)
        session.finish()
        yield [], session.counts(0)
        return
    stream = Stream([plan], engine)
    if not decides_at_once(plan):
        yield together([stream.push(batch)[0], stream.finish()[0]]), stream.counts
        return
    for block in chain(stream.blocks(batch, ROWS), stream.finish_blocks(ROWS)):
        yield block[0], stream.counts
    yield [], stream.counts

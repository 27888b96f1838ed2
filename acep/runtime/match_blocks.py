"""Run a plan over one table and give its matches block by block, in bounded memory."""

from __future__ import annotations

from itertools import chain

from acep.events.batch import Batch
from acep.matches.batches import ROWS, Blocks
from acep.native.compiled import choose_engine
from acep.native.session import NativeSession
from acep.plan.choice import decides_at_once
from acep.plan.compile import Plan
from acep.runtime.stream import Stream, merge_matches

__all__ = ["blocks_of"]


def blocks_of(plan: Plan, engine: str, batch: Batch) -> Blocks:
    """Yield the matches of a plan over one batch of events in blocks, each with the counts of work done so far."""
    # Behind match windows events would come late.
    if plan.finer is None and choose_engine(plan, engine).base == "merged":
        session = NativeSession([plan], ["merged"])
        for matches in session.blocks(batch, ROWS):
            yield matches, session.counts(0)
        session.finish()
        yield [], session.counts(0)
        return
    stream = Stream([plan], engine)
    if not decides_at_once(plan):
        yield merge_matches([stream.push(batch)[0], stream.finish()[0]]), stream.counts
        return
    for block in chain(stream.blocks(batch, ROWS), stream.finish_blocks(ROWS)):
        yield block[0], stream.counts
    yield [], stream.counts

"""Run ``acep tune``: replay a sample of the events, and recommend budgets, a policy and cheaper forms of the query."""

from __future__ import annotations

import argparse
import json

from acep.cli.inputs import column_names, files_text, load_events, load_query, write_text
from acep.cli.progress import progress
from acep.cli.spelling import as_typed
from acep.cli.terminal import show
from acep.errors import QueryError


def run(args: argparse.Namespace) -> None:
    """Tune, print the recommendations, and write them as JSON if requested."""
    query = load_query(args)
    size = None if args.sample is None else _size(args.sample)
    from acep.tuning.tune import EFFORT, tune

    with progress(args, f"reading {files_text(args.events)}"):
        table = load_events(args.events, query, args, every=True)
    with progress(args, "replaying a sample"):
        tuning = tune(
            table,
            query,
            sample=size,
            target_recall=args.target_recall,
            of=args.of,
            cpu=args.cpu,
            effort=EFFORT if args.effort is None else args.effort,
            policy=args.policy,
            seed=args.seed,
            engine=args.engine,
            **column_names(args),
        )
    if args.json is not None:
        write_text(args.json, json.dumps(tuning.to_dict(), indent=2, ensure_ascii=False, default=str) + "\n")
    show("\n".join(map(as_typed, str(tuning).splitlines())))


def _size(text: str) -> float:
    """Return a number of events, or a share."""
    if text.isdecimal() and text.isascii() and int(text) > 0:
        return int(text)
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise QueryError(
            f"--sample {text} is no size of a sample",
            hint="--sample 50000, or a share: --sample 0.1",
            code="option_invalid",
        )
    return share

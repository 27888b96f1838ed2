"""Run ``acep state``: show the state of a stream, and take a stopped query back to an earlier micro-batch."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acep.cli.progress import progress
from acep.cli.terminal import say, show
from acep.errors import DataError, QueryError, SnapshotError

if TYPE_CHECKING:
    from acep.bucket_state.checkpoints import CheckpointLog
    from acep.bucket_state.folders import Folder
    from acep.bucket_state.going_back import Removal
    from acep.bucket_state.state_listing import CallState


@dataclass(frozen=True)
class _StateView:
    """The facts that are shown of a folder: its ``kind`` (checkpoint, follow or state), the ``log`` of a checkpoint,
    the last micro-batches that a follower has ``planned`` and ``done``, and the calls whose state is in ``state``."""

    kind: str
    folder: Folder
    state: Folder
    log: CheckpointLog | None
    planned: int | None
    done: int | None
    calls: tuple[CallState, ...]


def run(args: argparse.Namespace) -> None:
    """Print what is in the folder, or go back."""
    changes = [name for name in ("go_back", "buckets", "replace") if getattr(args, name) is not None]
    if len(changes) > 1:
        raise QueryError(
            f"{' and '.join('--' + name.replace('_', '-') for name in changes)} are steps of their own",
            hint="take one after the other",
            code="option_invalid",
        )
    if args.call is not None and not {"buckets", "replace"} & {*changes}:
        raise QueryError(
            "--call says whose state goes on in another form",
            hint="say in which: --buckets N, or --replace QUERY",
            code="option_invalid",
        )
    if changes and changes != ["go_back"]:
        from acep.cli.state_changes import change_buckets, replace_query

        (change_buckets if changes == ["buckets"] else replace_query)(args)
        return
    if args.go_back is None:
        if args.yes or args.dry_run:
            raise QueryError(
                "--yes and --dry-run are about changes",
                hint="say where to go back to: --go-back N",
                code="option_invalid",
            )
        with progress(args, f"reading {args.folder}"):
            view = _view_of(args)
        show(_to_json(_listing(view)) if args.json else "\n".join(_lines(view)))
        return
    _go_back(args)


# The listing ------------------------------------------------------------------------------------


def _view_of(args: argparse.Namespace) -> _StateView:
    from acep.bucket_state.checkpoints import is_checkpoint, read_checkpoint
    from acep.bucket_state.folders import absolute_place, folder_of, place_below
    from acep.bucket_state.state_listing import list_calls, names_queries

    place = absolute_place(args.folder)
    folder, log, planned, done = folder_of(place), None, None, None
    if is_checkpoint(folder):
        kind, log, state = "checkpoint", read_checkpoint(folder), _state_folder(args)
    elif {"settings", "versions"} <= set(folder.names("")):
        kind, state = "follow", folder_of(place_below(place, "versions"))
        planned, done = (
            max((int(name) for name in folder.names(path) if name.isdecimal()), default=None)
            for path in ("plans", "done")
        )
    elif names_queries(folder):
        kind, state = "state", folder
    else:
        raise DataError(
            f"`{folder.shown}` is no checkpoint and no folder of state",
            hint="name the checkpointLocation of a query, its state= folder, or the state of acep follow",
            code="file_read",
        )
    if args.state is not None and kind != "checkpoint":
        raise QueryError(
            f"`{folder.shown}` is no checkpoint, and --state names the state of one",
            hint="leave --state out, or name the checkpoint",
            code="option_invalid",
        )
    calls = list_calls(state, None if log is None else log.query, reads_all=args.check)
    return _StateView(kind, folder, state, log, planned, done, calls)


def _state_folder(args: argparse.Namespace) -> Folder:
    """Return the folder of the state of a checkpoint."""
    from acep.bucket_state.checkpoints import state_of_checkpoint
    from acep.bucket_state.folders import absolute_place

    return state_of_checkpoint(absolute_place(args.folder), args.state)


def _listing(view: _StateView) -> dict[str, Any]:
    """Return what is there as data."""
    from acep.bucket_state.going_back import restart_batches

    listing: dict[str, Any] = {"kind": view.kind, "folder": view.folder.shown, "state": view.state.shown}
    if view.log is not None:
        listing |= {
            "query": view.log.query,
            "last_offset": view.log.last,
            "last_commit": view.log.commits[-1] if view.log.commits else None,
            "back_to": list(restart_batches(view.log, view.calls)),
        }
    if view.kind == "follow":
        listing |= {"last_plan": view.planned, "last_done": view.done}
    return listing | {"calls": [_call_record(call) for call in view.calls]}


def _call_record(call: CallState) -> dict[str, Any]:
    description = call.description
    record: dict[str, Any] = {
        "query": call.query,
        "call": call.call,
        "buckets": call.buckets,
        "versions": list(call.versions),
        "bytes": call.size,
        "reached": call.greatest,
        "moment": _moment(call),
        "missing": list(call.missing),
        "damaged": list(call.damaged),
    }
    if description is None:
        return record | {"queries": None, "columns": None, "options": None, "version": None}
    return record | {
        "queries": dict(description.queries),
        "columns": dict(description.columns),
        "options": dict(description.options),
        "version": description.version,
    }


def _lines(view: _StateView) -> list[str]:
    """Return what is there as lines for people."""
    from acep.bucket_state.going_back import restart_batches
    from acep.bucket_state.state_listing import ranges_text

    lines = []
    if view.log is not None:
        commit = view.log.commits[-1] if view.log.commits else None
        lines.append(f"checkpoint of the query {view.log.query}")
        lines.append(f"last offset {_or_none(view.log.last)}, last commit {_or_none(commit)}")
        lines.append(f"can go back to micro-batch: {ranges_text(restart_batches(view.log, view.calls))}")
        lines.append(f"state in `{view.state.shown}`" + ("" if view.calls else ": none of this query"))
    elif view.kind == "follow":
        lines.append(f"state of acep follow: last planned {_or_none(view.planned)}, last done {_or_none(view.done)}")
    queries = None if view.log is None else view.log.query
    for call in view.calls:
        if call.query != queries and view.kind == "state":
            lines.append(f"query {call.query}")
            queries = call.query
        lines += _call_lines(call)
    return lines


def _call_lines(call: CallState) -> list[str]:
    from acep.bucket_state.state_listing import ranges_text

    newest = "no event yet" if call.greatest is None else _moment(call) or f"tick {call.greatest}"
    buckets = f"{call.buckets} bucket{'s' * (call.buckets != 1)}"
    lines = [
        f"call {call.call}",
        f"  versions: {ranges_text(call.versions)}, of {buckets}; the newest has {call.size:,} bytes",
        f"  newest time: {newest}",
    ]
    if call.description is None:
        lines.append("  queries: not recorded by the acep that began this state")
    else:
        for name, text in call.description.queries.items():
            lines.append(f"  query{f' {name}' if len(call.description.queries) > 1 else ''}: {' '.join(text.split())}")
    lines += [f"  missing: {text}" for text in call.missing]
    return lines + [f"  damaged: {path}" for path in call.damaged]


def _moment(call: CallState) -> str | None:
    """Return the time that a call has reached as a moment, ``None`` if its times are no moments, or not known to be."""
    from acep.streaming.progress import moment_text
    from acep.streaming.times import watermark_of

    description = call.description
    if description is None or not description.instants or call.greatest is None or call.greatest < 0:
        return None
    return moment_text(watermark_of(call.greatest, 0, description.tick_ms)) or None


def _or_none(number: int | None) -> str:
    return "none" if number is None else str(number)


def _to_json(record: Any) -> str:
    return json.dumps(record, indent=2, ensure_ascii=False)


# Going back -------------------------------------------------------------------------------------


def _go_back(args: argparse.Namespace) -> None:
    from acep.bucket_state.checkpoints import is_checkpoint
    from acep.bucket_state.folders import absolute_place, folder_of
    from acep.bucket_state.going_back import go_back, plan_removal

    checkpoint, state = folder_of(absolute_place(args.folder)), _state_folder(args)
    if not is_checkpoint(checkpoint):
        raise SnapshotError(
            f"`{checkpoint.shown}` is no checkpoint of Spark",
            hint="name the checkpointLocation of the query; for the state of acep follow see docs/howto/follow.md",
            code="state_other",
        )
    removal = plan_removal(checkpoint, state, args.go_back)
    if not args.dry_run:
        if not args.yes:
            _ask(removal, checkpoint, state)
        removal = go_back(checkpoint, state, args.go_back)
    if args.json:
        show(_to_json(_removal_record(removal, is_done=not args.dry_run)))
    else:
        lines = _removal_lines(removal, checkpoint, state, "would remove" if args.dry_run else "removed")
        show("\n".join(lines))


def _ask(removal: Removal, checkpoint: Folder, state: Folder) -> None:
    """Ask whether the query is stopped. Raises :class:`QueryError` if the answer is not yes, or nobody can answer."""
    if not sys.stdin.isatty():
        raise QueryError(
            "going back removes files, and the query must be stopped",
            hint="--dry-run says what would be removed, --yes removes it",
            code="option_invalid",
        )
    say("\n".join(_removal_lines(removal, checkpoint, state, "will remove")))
    say("Is the query stopped, and may these be removed? [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise QueryError("nothing was removed", code="option_invalid")


def _removal_lines(removal: Removal, checkpoint: Folder, state: Folder, verb: str) -> list[str]:
    lines = [f"{verb} `{state.shown}/{path}`" for path in removal.versions]
    lines += [f"{verb} `{checkpoint.shown}/{path}`" for path in (*removal.commits, *removal.offsets)]
    lines = lines or ["nothing has to be removed"]
    first, last = removal.batch, removal.last
    batches = f"micro-batches {first} to {last}" if last > first else f"micro-batch {first}"
    lines.append(f"the query begins with micro-batch {first}; take back what {batches} wrote to the sink")
    lines.append(f"of a file sink remove {first} and later from `_spark_metadata`")
    return lines


def _removal_record(removal: Removal, *, is_done: bool) -> dict[str, Any]:
    return {
        "batch": removal.batch,
        "removed": is_done,
        "versions": list(removal.versions),
        "commits": list(removal.commits),
        "offsets": list(removal.offsets),
        "sink": {"first": removal.batch, "last": removal.last},
    }

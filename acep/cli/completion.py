"""Run ``acep completion``: print a script that lets a shell complete commands, options and names of files."""

from __future__ import annotations

import argparse
import sys

from acep.errors import check_installed

__all__ = ["run"]

FILES = ("QUERY", "EVENTS", "FILE", "FOLDER")


def run(args: argparse.Namespace) -> None:
    """Print the script for the shell."""
    check_installed("shtab", "completion", "completion")
    import shtab

    for parser in (args.parser, *_commands(args.parser)):
        for action in parser._actions:
            if action.metavar in FILES:
                action.complete = shtab.FILE
    sys.stdout.write(shtab.complete(args.parser, args.shell) + "\n")


def _commands(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return the parsers of all commands."""
    subparsers = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return [command for action in subparsers for command in action.choices.values()]

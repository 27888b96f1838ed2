"""Run ``acep sigma``: print the rules that the Sigma files of a folder become, or save them as files."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path

from acep.alerting.rule import AlertRule
from acep.alerting.rule_folder import read_rules
from acep.alerting.sigma_files import SIGMA_SUFFIXES
from acep.cli.inputs import LEFT_OUT
from acep.cli.terminal import say, show
from acep.errors import DataError
from acep.events.files.formats import reason_of

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Print or save the rules of the folder. Return 4 if one of its files holds something else."""
    rules, _ = read_rules(args.folder)
    sigma_rules = [rule for rule in rules.rules if rule.file.endswith(SIGMA_SUFFIXES)]
    problems = [problem for problem in rules.problems if problem.file.endswith(SIGMA_SUFFIXES)]
    for problem in problems:
        say(f"acep: {problem}")
    if not sigma_rules:
        hint = "see the messages above" if problems else "a Sigma rule is in a file that ends in .yml or .yaml"
        raise DataError(f"no file in `{args.folder}` is a Sigma rule that can be read", hint=hint, code="file_read")
    if args.save is None:
        show("\n".join(rule.text for rule in sigma_rules).rstrip("\n"))
    else:
        _save(sigma_rules, Path(args.save))
    return LEFT_OUT if problems else 0


def _save(rules: Sequence[AlertRule], folder: Path) -> None:
    """Write each rule into a file of its own. Raises :class:`DataError` if one is there already."""
    paths = dict[Path, AlertRule]()
    for rule in rules:
        stem = re.sub(r"[^a-z0-9]+", "_", rule.name.lower()).strip("_")[:60] or "rule"
        path, number = folder / f"{stem}.rule", 1
        while path in paths:
            number += 1
            path = folder / f"{stem}_{number}.rule"
        paths[path] = rule
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            if os.path.lexists(path):
                raise DataError(f"`{path}` is there already", hint="save into a new folder", code="file_write")
        for path, rule in paths.items():
            with path.open("x", encoding="utf-8") as stream:
                stream.write(rule.text)
            say(f"acep: wrote {path}")
    except OSError as error:
        raise DataError(f"`{folder}` cannot be written: {reason_of(error)}", code="file_write") from None

"""Read the rules of a folder: each file of it whose name ends in ``.rule``, and the rules in files of Sigma."""

from __future__ import annotations

import os
from pathlib import Path

from acep.alerting.rule import RuleProblem, read_rule
from acep.alerting.rules import Rules, rules_of
from acep.alerting.sigma_files import SETTINGS_FILE, SIGMA_SUFFIXES, read_sigma_rules
from acep.errors import DataError, DataWarning, QueryError, warn_caller
from acep.events.files.folders import FolderWalk, walk_folder
from acep.events.files.formats import reason_of

__all__ = ["SUFFIX", "read_rules", "rules"]

SUFFIX = ".rule"
MOST_BYTES = 1 << 18  # of a file; a rule has a few hundred
MOST_RULES = 10_000
_BACKUPS = ("~", ".bak", ".orig", ".swp", ".rej")


def rules(folder: str | os.PathLike[str], *, strict: bool = False) -> Rules:
    r"""Return the rules in a folder and in the folders below it: all files whose names end in ``.rule``.

    A rule is a header in TOML between two lines ``---``, and a query below (docs/howto/rules.md). Names that begin with
    ``.`` or ``_``, and those of backups of editors, are left out. A file that is no rule is left out with a
    :class:`acep.DataWarning` that names the file, the rule and the line; the result has it in ``problems``. With
    ``strict`` it is an error. Rules that have one name are left out, all of them.

    Raises :class:`DataError` for a folder that cannot be read, or has no rule, and :class:`QueryError` with ``strict``.

    >>> import acep, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> text = '---\nname = "paid"\nseverity = "low"\n---\nPATTERN SEQ(a x, b y) WITHIN 5'
    >>> _ = (folder / "paid.rule").write_text(text)
    >>> loaded = acep.rules(folder)
    >>> found = acep.match({"ts": [1, 2], "type": ["a", "b"]}, loaded)
    >>> loaded.alerts(found).select(["rule", "severity", "start", "end"]).to_pylist()
    [{'rule': 'paid', 'severity': 'low', 'start': 1, 'end': 2}]
    """
    loaded, warnings = read_rules(folder)
    if loaded.problems and strict:
        raise loaded.problems[0].error
    for warning in [*warnings, *(problem.summary for problem in loaded.problems)]:
        warn_caller(warning, DataWarning)
    if not loaded:
        raise DataError(
            f"no file in `{os.fspath(folder)}` is a rule that can be read", hint="see the warnings", code="file_read"
        )
    return loaded


def read_rules(folder: str | os.PathLike[str]) -> tuple[Rules, list[str]]:
    """Return the rules in a folder, with the problems of the others, and warnings of files that were left out.

    Raises :class:`DataError` if the folder cannot be read, or has no rule and no problem.
    """
    root = Path(folder)
    walk = _walk(root)
    paths = sorted(name for name in walk.files if name.endswith((SUFFIX, *SIGMA_SUFFIXES)))
    if len(paths) > MOST_RULES:
        raise _too_large(root, len(paths))
    refused = [
        RuleProblem.from_error(DataError(reason, code="file_read"), str(root / name))
        for name, reason in sorted(walk.refused.items())
        if name.endswith((SUFFIX, *SIGMA_SUFFIXES))
    ]
    texts = {name: _read_text(root / name) for name in paths}
    readings = [
        read_rule(text, str(root / name)) if isinstance(text, str) else text
        for name, text in texts.items()
        if not isinstance(text, str) or name.endswith(SUFFIX)
    ]
    sigma_texts = {
        str(root / name): text
        for name, text in texts.items()
        if isinstance(text, str) and name.endswith(SIGMA_SUFFIXES)
    }
    settings = _read_text(root / SETTINGS_FILE) if SETTINGS_FILE in walk.files else None
    readings += read_sigma_rules(sigma_texts, settings)
    if len(readings) > MOST_RULES:
        raise _too_large(root, len(readings))
    return rules_of([*readings, *refused], str(root)), _unread_warnings(root, walk)


def _too_large(root: Path, count: int) -> DataError:
    return DataError(
        f"`{root}` has {count:,} rules, and {MOST_RULES:,} may run together",
        hint="divide them into several folders",
        code="query_size",
    )


def _walk(root: Path) -> FolderWalk:
    try:
        if not root.is_dir():
            raise DataError(f"there is no folder `{root}` of rules", code="file_read")
        return walk_folder(root)
    except DataError as error:  # of two links to one place
        error.message = error.message.replace("events would come twice", "rules would come twice")
        error.args = (error.message,)
        raise
    except (OSError, ValueError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise DataError(f"the rules in `{root}` cannot be read: {reason}", code="file_read") from None


def _read_text(path: Path) -> str | RuleProblem:
    """Return the text of a file, with lines as in Unix, or the problem with it."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise QueryError(f"it has more than {MOST_BYTES:,} bytes, which a rule may have at most", code="query_size")
        text = data.decode("utf-8-sig")
        if "\0" in text:
            raise QueryError("it is no text", code="file_read")
    except OSError as error:
        problem = DataError(f"it cannot be read: {reason_of(error)}", code="file_read")
        return RuleProblem.from_error(problem, str(path))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return RuleProblem.from_error(DataError(f"line {line} is not UTF-8", code="file_read"), str(path))
    except QueryError as error:
        return RuleProblem.from_error(error, str(path))
    return text.replace("\r\n", "\n")


def _unread_warnings(root: Path, walk: FolderWalk) -> list[str]:
    """Return a warning of the files that do not end as rules do, with the first one of each ending."""
    firsts = dict[str, str]()
    for name in sorted(walk.files):
        is_read = name.endswith((SUFFIX, *SIGMA_SUFFIXES)) or name == SETTINGS_FILE
        if not is_read and not name.endswith(_BACKUPS) and not Path(name).name.startswith("#"):
            firsts.setdefault(Path(name).suffix, name)
    if not firsts:
        return []
    names = ", ".join(f"`{name}`" for name in [*firsts.values()][:5])
    return [f"files in `{root}` that do not end in {SUFFIX} are no rules, and were left out, as {names}"]

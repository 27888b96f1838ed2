"""The age of results: a digest of the sources that are measured, and a note on each page that is older than those."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

__all__ = ["digest_sources", "note_age", "read_origin"]

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("acep/native/src", "learning", "sketches")
SUFFIXES = {".cpp", ".hpp", ".cmake", ".txt", ".py"}
DIGITS = 12

MACHINE = re.compile(
    r"^Machine: .*\bdate (?P<date>\d{4}-\d\d-\d\d)(?:.*\bsources (?P<sources>[0-9a-f]+))?", re.MULTILINE
)
OLDER = """\
**Older than the sources.** Measured on {date}. The core, the policies or the sketches have changed since, so
that figures may differ."""
UNRECORDED = """\
**Perhaps older than the sources.** Measured on {date}, and it was not recorded from which sources. Where the
core, the policies or the sketches have changed since, figures may differ."""
NOTES = tuple(note.partition(" Measured")[0] for note in (OLDER, UNRECORDED))


def digest_sources(root: Path = ROOT) -> str:
    """Return a short digest of the sources of the core, the policies and the sketches.

    :func:`acep.checkout.digest` is of the core alone.
    """
    files = sorted(file for folder in FOLDERS for file in (root / folder).rglob("*") if file.suffix in SUFFIXES)
    lines = (f"{file.relative_to(root).as_posix()} {sha256(file.read_bytes()).hexdigest()}\n" for file in files)
    return sha256("".join(lines).encode()).hexdigest()[:DIGITS]


def note_age(page: str, sources: str) -> str:
    r"""Return a page with a note under its title if it was not, or not surely, measured from sources of this digest,
    and without a note otherwise. A page without a machine and a date has no measured figures, and gets none.

    >>> page = "# Rates\n\nMachine: cores 2, date 2026-11-21, sources 12ab.\n"
    >>> note_age(page, "12ab") == page
    True
    >>> print(note_age(page, "34cd"))
    # Rates
    <BLANKLINE>
    **Older than the sources.** Measured on 2026-11-21. The core, the policies or the sketches have changed since, so
    that figures may differ.
    <BLANKLINE>
    Machine: cores 2, date 2026-11-21, sources 12ab.
    """
    title, _, body = page.partition("\n\n")
    if body.startswith(NOTES):
        body = body.partition("\n\n")[2]
    machine = MACHINE.search(body)
    if machine is None or machine["sources"] == sources:
        return f"{title}\n\n{body}"
    note = (OLDER if machine["sources"] else UNRECORDED).format(date=machine["date"])
    return f"{title}\n\n{note}\n\n{body}"


def read_origin(page: Path) -> dict[str, str | None]:
    """Return the date and the sources of a page, for a new one that keeps rows of it: it is as old as these."""
    machine = MACHINE.search(page.read_text(encoding="utf-8")) if page.is_file() else None
    return machine.groupdict() if machine else {"sources": None}

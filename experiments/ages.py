"""The age of results: a digest of the code that each page measures, and a note on a page that is older than that."""

from __future__ import annotations

import re
from pathlib import Path

from experiments.measured_code import digest_code, digest_files, read_sources

__all__ = ["SOURCES", "digest_at_start", "note_age", "read_origin"]

AS_BEGUN = read_sources()
"""The sources as this process began: it measures these, even if they change before it writes."""
SOURCES = digest_files(AS_BEGUN)

MACHINE = re.compile(
    r"^Machine: .*\bdate (?P<date>\d{4}-\d\d-\d\d)(?:.*\bsources (?P<sources>[0-9a-f]+))?", re.MULTILINE
)
OLDER = """\
**Older than the sources.** Measured on {date}. Code that it measures has changed since, so that figures may
differ."""
UNRECORDED = """\
**Perhaps older than the sources.** Measured on {date}, and it was not recorded from which sources. Where
code that it measures has changed since, figures may differ."""
NOTES = tuple(note.partition(" Measured")[0] for note in (OLDER, UNRECORDED))


def digest_at_start(page: str) -> str:
    """Return the digest of the code that a page measures, as it was when this process began."""
    return digest_code(page, AS_BEGUN)


def note_age(page: str, sources: str) -> str:
    r"""Return a page with a note under its title if it was not, or not surely, measured from code of this digest
    (:func:`experiments.measured_code.digest_code`), and without a note otherwise. A page without a machine and a date
    has no measured figures, and gets none.

    >>> page = "# Rates\n\nMachine: cores 2, date 2026-11-21, sources 12ab.\n"
    >>> note_age(page, "12ab") == page
    True
    >>> print(note_age(page, "34cd"))
    # Rates
    <BLANKLINE>
    **Older than the sources.** Measured on 2026-11-21. Code that it measures has changed since, so that figures may
    differ.
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

"""Say what a stream has done after a micro-batch in pairs of a label and a text, and what is known of its recall."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acep.display import clip_text, rate_text
from acep.matches.report import Report
from acep.serving.bucket_figures import MOST_QUERIES
from acep.streaming.progress import Progress, length_text

__all__ = ["facts_of", "recall_of", "shed_lines"]

UNKNOWN = (0.0, 1.0)
LONGEST = 400  # characters of a text


def facts_of(now: Progress, before: Progress | None = None) -> list[tuple[str, str]]:
    """Return the figures after a micro-batch, as ``--watch`` has them, with those that are not 0. ``before``: the
    micro-batch before.

    >>> first = Progress(0, 1000, 1, 5, held=3, state=40, watermark="", reference=0, rows=1000, seconds=0.5, live=7)
    >>> dict(facts_of(first))["matches"], dict(facts_of(first))["speed"]
    ('5 (+5)', '2,000 events/s while it works')
    """
    n_new = now.matches - (before.matches if before is not None else 0 if now.batch == 0 else now.matches)
    rate = rate_text(now.rows, now.seconds) if now.rows else ""
    facts = [
        ("micro-batch", f"{now.batch:,}"),
        ("events", f"{now.events:,}" + (f", {now.held:,} held" if now.held else "")),
        ("speed", f"{rate} events/s while it works" if rate else ""),
        ("lag", "" if now.lag is None else length_text(now.lag)),
        ("age of the watermark", "" if now.age is None else length_text(max(0.0, round(now.age, 3)))),
        ("watermark", now.watermark),
        ("matches", f"{now.matches:,}" + (f" (+{n_new:,})" if n_new > 0 else "")),
        ("late", f"{now.late:,}" + (f" (+{now.late_now:,})" if now.late_now else "") if now.late else ""),
        ("too far ahead", f"{now.ahead:,}" if now.ahead else ""),
        ("came twice", f"{now.report.duplicates:,}" if now.report.duplicates else ""),
        ("state", f"{now.state / 1e6:,.2f} MB"),
        ("time", str(now.spent)),
        ("version", f"{now.version}" if now.version else ""),
        ("state kept", now.route),
    ]
    return [(label, clip_text(text, LONGEST)) for label, text in facts if text]


def shed_lines(now: Progress, before: Progress | None = None) -> list[str]:
    """Return what was shed, as ``--watch`` says it, and the share of the allowance that was spent.

    >>> shed_lines(Progress(0, 9, 0, 0, held=0, state=0, watermark="", reference=0, rows=9, seconds=1))
    ['nothing was shed: there is no budget']
    """
    if not now.allowance:
        if now.shed:
            return [f"{now.shed:,} shed"]
        return ["nothing was shed: there is no budget"]
    n_new = now.shed - before.shed if before is not None else 0
    line = f"{now.shed:,} shed" + (f" (+{n_new:,})" if n_new > 0 else "")
    return [f"{line}, {now.work / now.allowance:.0%} of the allowance was spent".replace("%", " %")]


def recall_of(reports: Mapping[str, Report]) -> list[dict[str, Any]]:
    """Return what is known of the recall of each query: the estimates of match points and of bundles as ``likely``,
    ``low`` and ``high``, or ``why`` there is none; and the ``lines`` of its report.

    >>> recall_of({"": Report(events=5)})[0]["why"]
    'exact: nothing was shed'
    """
    return [
        {
            "name": clip_text(name),
            "points": _estimate(report.recall, report.interval),
            "bundles": _estimate(report.bundle_recall, report.bundle_interval),
            "exact": report.exact,
            "why": _reason(report),
            "lines": [clip_text(line, LONGEST) for line in str(report).splitlines()],
        }
        for name, report in list(reports.items())[:MOST_QUERIES]
    ]


def _estimate(likely: float | None, interval: tuple[float, float]) -> dict[str, float | None] | None:
    return None if interval == UNKNOWN else {"likely": likely, "low": interval[0], "high": interval[1]}


def _reason(report: Report) -> str:
    if report.exact:
        return "exact: nothing was shed"
    if report.interval != UNKNOWN:
        return "estimated from the shadow sample, with 90 % confidence" if report.shed else report.missing()
    return f"not estimated: {clip_text(report.unknown, LONGEST) or 'nothing says how many matches are missing'}"

"""Give examples of each command, for its help text (``acep match --help``)."""

from __future__ import annotations

__all__ = ["EXAMPLES", "examples_text"]

EXAMPLES: dict[str, tuple[str, ...]] = {
    "match": (
        "acep match 're:ab' events.csv --within '5 min' --count",
        "acep match query.acep logs --ts time --flat --output found.csv",
        "acep match query.acep events.csv --errors 1 --work 20",
        "acep match --rules rules events.csv",
    ),
    "follow": ("acep follow query.acep inbox --state state --output found --once",),
    "replay": (
        "acep replay query.acep events.csv --speed 10 --watch",
        "acep replay query.acep events.csv --spark --chunk 10000 --checkpoint run",
    ),
    "explain": (
        "acep explain query.acep --events events.csv",
        "acep explain 're:a(b|c)d' --within 5 --svg automaton.svg",
    ),
    "lint": ("acep lint query.acep events.csv --strict", "acep lint statement.sql ticks=events.csv"),
    "why": (
        "acep why query.acep events.csv --key ann",
        "acep why query.acep events.csv --rows 0,2",
        "acep why query.acep events.csv --many",
    ),
    "tune": ("acep tune query.acep events.csv",),
    "learn": ("acep learn query.acep events.csv --output history.acep",),
    "sql": (
        "acep sql statement.sql ticks=events.csv",
        "acep sql 'SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES ts AS at PATTERN (a))' t=events.csv --limit 5",
    ),
    "sigma": ("acep sigma sigma", "acep sigma sigma --save translated"),
    "state": ("acep state checkpoint", "acep state checkpoint --go-back 1 --dry-run"),
    "completion": ("acep completion bash > acep.bash",),
    "history": ("acep history history.acep --limit 5",),
}
"""Command lines that run, by command, on a query, a file of events, folders of such files, and a checkpoint."""


def examples_text(command: str) -> str:
    """Return the end of the help text of a command.

    >>> print(examples_text("tune"))
    examples:
      acep tune query.acep events.csv
    """
    return "\n  ".join(("examples:", *EXAMPLES[command]))

"""Translate Python arguments in messages to options of the command line: ``work=5`` to ``--work 5``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

__all__ = ["as_typed"]

OPTIONS = (
    "ts|type|seq|id|unit|cast|format|errors|weights|surplus|within|by|strategy|engine|work|cpu|speed|latency|memory|recover|"
    "history|policy|seed|limit|chunk|watermark|latest|checkpoint|state|poll|speculation|op|versions|max-files|output-format|"
    "sample|effort|duplicates|rows|delimiter|quote|decimal|max-skipped|max-line|max-expansion|max-columns|max-bytes|"
    "bad-files|bad-folder"
)
# Arguments that are not simply an option of the same name with the same value.
SPELLINGS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\b(\w+)= or --\1\b"), r"--\1"),
    (re.compile(r"(?<![\w.])counts=False\b"), "--no-counts"),
    (re.compile(r"(?<![\w.])skip_bad_lines=True\b"), "--skip-bad-lines"),
    (re.compile(r"(?<![\w.])multiline_cells=True\b"), "--multiline-cells"),
    (re.compile(r"(?<![\w.])end_marker=True\b"), "--end-marker"),
    (re.compile(r"(?<![\w.])quote=None\b"), "--quote none"),
    (re.compile(r"""(?<![\w.])nulls=\["([^"]*)"\]"""), lambda match: f"--null {shlex.quote(match[1])}"),
    (re.compile(r"(?<![\w.])nulls="), "--null"),
    (re.compile(r"(?<![\w.])max_(files|bytes|skipped|line|expansion|columns)="), r"max-\1="),
    (re.compile(r"(?<![\w.])growing=True\b"), "--growing"),
    (re.compile(r"(?<![\w.])bad_(files|folder)="), r"bad-\1="),
    (re.compile(r"(?<![\w.])recover=True\b"), "--recover"),
    (re.compile(r"(?<![\w.])rows=\[(\d+), (\d+)\]"), r"--rows \1,\2"),
    (re.compile(r"(?<![\w.])quote_formulas=True\b"), "--quote-formulas"),
    (re.compile(r"""(?<![\w.])output=["'](count|points|bundles|exists)["']"""), r"--\1"),
    (re.compile(rf"\bleave ({OPTIONS}) out\b"), r"leave --\1 out"),
    (re.compile(r"(?<![\w.])into_format="), "output-format="),
    (re.compile(r"(?<![\w.])into="), "--output"),
    (re.compile(r" out of the Budget\b"), " out"),
    (re.compile(r"""(?<![\w.])parameters=\{["'](\w+)["']: ([^{}]*)\}"""), r"--set \1=\2"),
    (re.compile(r"\bacep\.(learn|match)\b"), r"`acep \1`"),
)
MAPPING = re.compile(r"(?<![\w.])(cast|weights)=\{([^{}]*)\}")
PAIR = re.compile(r"""["'](.*?)["']: *(?:"([^"]*)"|'([^']*)'|(?:math\.)?([^"',]+))""")
ARGUMENT = re.compile(
    rf"""(?<![\w.-])(?<!--cast )(?<!--cast ')(?<!--weights )(?P<name>{OPTIONS})"""
    r"""=(?:"(?P<text>[^"]*)"|'(?P<quoted>[^']*)'|(?P<bare>[^\s,;:)"']+))?"""
)
QUOTED = re.compile(r"(`[^`]*`)")  # names and texts of the user


def as_typed(text: str) -> str:
    r"""Write arguments as they are typed on the command line; text in backquotes is unchanged.

    >>> as_typed("recover= takes a share of an allowance; set work=, cpu= or latency=")
    '--recover takes a share of an allowance; set --work, --cpu or --latency'
    >>> as_typed('output="bundles", counts=False, watermark="10 minutes", weights={"a": 2, "b": 0.5}')
    "--bundles, --no-counts, --watermark '10 minutes', --weights a=2,b=0.5"
    >>> as_typed('cast={"type": "string"}')
    '--cast type=string'
    >>> as_typed('cast={"ts": "timestamp(s)"}')
    "--cast 'ts=timestamp(s)'"
    >>> as_typed("cast={\"contains(x, 'u')\": \"bool\"}")
    '--cast "contains(x, \'u\')=bool"'
    >>> as_typed('duplicates="drop" leaves out; such as rows=[0, 3]')
    '--duplicates drop leaves out; such as --rows 0,3'
    >>> as_typed('type="event.type[1]"')
    "--type 'event.type[1]'"
    """
    parts = QUOTED.split(text)
    parts[::2] = [_as_option_text(part) for part in parts[::2]]
    return "".join(parts)


def _as_option_text(text: str) -> str:
    for pattern, typed in SPELLINGS:
        text = pattern.sub(typed, text)
    text = MAPPING.sub(_pairs, text)
    return ARGUMENT.sub(_option, text)


def _pairs(match: re.Match[str]) -> str:
    pairs = ",".join(f"{name}={''.join(value)}" for name, *value in PAIR.findall(match[2]))
    if "'" in pairs and not set(pairs) & set('"$`\\!'):
        return f'--{match[1]} "{pairs}"'
    return f"--{match[1]} {shlex.quote(pairs) if set(pairs) & set('([') else pairs}"


def _option(match: re.Match[str]) -> str:
    value = next((group for group in match.group("text", "quoted", "bare") if group is not None), "")
    quoted = f'"{value}"' if "'" in value else f"'{value}'" if set(value) & set(' "[(') else value
    return f"--{match['name']} {quoted}".rstrip()

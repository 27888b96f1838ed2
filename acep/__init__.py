"""Complex event processing: find patterns in event streams approximately, in one process or on Spark.

>>> import acep
>>> query = acep.regex("a(b|c)db", within=5, errors=1)
>>> found = acep.match({"ts": [1, 2, 4, 5], "type": ["a", "x", "d", "b"]}, query)
>>> [(m.bindings, m.error) for m in found]
[({'a': (0,), 'b': (3,), 'd': (2,)}, 1)]
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

from acep.display import make_pages_with, show_with, write_with

if TYPE_CHECKING:
    from acep.alerting.rule import AlertRule, RuleProblem
    from acep.alerting.rule_folder import rules
    from acep.alerting.rules import Rules
    from acep.budget import Budget
    from acep.errors import AcepError, DataError, DataWarning, EngineError, PolicyError, QueryError, SnapshotError
    from acep.events.files.reading import read_events
    from acep.explain.closest_partial import Furthest
    from acep.explain.why import why
    from acep.following.follow import follow
    from acep.following.follow_result import Followed
    from acep.following.replay import Replayed, replay
    from acep.linting.clause_lint import lint_clause
    from acep.linting.lint import lint
    from acep.linting.report import DataFinding, Findings
    from acep.matches.answers import Bundle, Bundles, Count, Point, Points
    from acep.matches.matches import Match, Matches, Report
    from acep.matches.partials.partial_matches import PartialMatch, PartialMatches
    from acep.matching.api import Matcher, match
    from acep.pages.result_page import ResultPage
    from acep.pattern.automata import Automaton, arc
    from acep.pattern.text.letters import regex
    from acep.pattern.text.sase import parse
    from acep.pattern.tree import Query
    from acep.pattern.user_functions import Function, function
    from acep.row_patterns.explanation import explain_clause
    from acep.row_patterns.match_rows import match_recognize
    from acep.serving.live_page import LivePage
    from acep.serving.metrics import Metrics
    from acep.statements.statements import sql
    from acep.training.learn import learn
    from acep.tuning.result import Tuning
    from acep.tuning.tune import tune

__all__ = [
    "AcepError",
    "AlertRule",
    "Automaton",
    "Budget",
    "Bundle",
    "Bundles",
    "Count",
    "DataError",
    "DataFinding",
    "DataWarning",
    "EngineError",
    "Findings",
    "Followed",
    "Function",
    "Furthest",
    "LivePage",
    "Match",
    "Matcher",
    "Matches",
    "Metrics",
    "PartialMatch",
    "PartialMatches",
    "Point",
    "Points",
    "PolicyError",
    "Query",
    "QueryError",
    "Replayed",
    "Report",
    "ResultPage",
    "RuleProblem",
    "Rules",
    "SnapshotError",
    "Tuning",
    "__version__",
    "arc",
    "explain_clause",
    "follow",
    "function",
    "learn",
    "lint",
    "lint_clause",
    "match",
    "match_recognize",
    "parse",
    "read_events",
    "regex",
    "replay",
    "rules",
    "sql",
    "tune",
    "why",
]

# Names are looked up when they are first used, so that `import acep` stays cheap.
_NAMES = {
    "acep.alerting.rule": "AlertRule RuleProblem",
    "acep.alerting.rule_folder": "rules",
    "acep.alerting.rules": "Rules",
    "acep.budget": "Budget",
    "acep.errors": "AcepError DataError DataWarning EngineError PolicyError QueryError SnapshotError",
    "acep.events.files.reading": "read_events",
    "acep.explain.closest_partial": "Furthest",
    "acep.explain.why": "why",
    "acep.linting.clause_lint": "lint_clause",
    "acep.linting.lint": "lint",
    "acep.linting.report": "DataFinding Findings",
    "acep.matches.answers": "Bundle Bundles Count Point Points",
    "acep.matches.matches": "Match Matches Report",
    "acep.matches.partials.partial_matches": "PartialMatch PartialMatches",
    "acep.pages.result_page": "ResultPage",
    "acep.pattern.automata": "Automaton arc",
    "acep.pattern.user_functions": "Function function",
    "acep.pattern.text.letters": "regex",
    "acep.pattern.text.sase": "parse",
    "acep.pattern.tree": "Query",
    "acep.row_patterns.explanation": "explain_clause",
    "acep.row_patterns.match_rows": "match_recognize",
    "acep.statements.statements": "sql",
    "acep.following.follow_result": "Followed",
    "acep.following.follow": "follow",
    "acep.following.replay": "Replayed replay",
    "acep.matching.api": "Matcher match",
    "acep.training.learn": "learn",
    "acep.serving.live_page": "LivePage",
    "acep.serving.metrics": "Metrics",
    "acep.tuning.result": "Tuning",
    "acep.tuning.tune": "tune",
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split()}


# A notebook shows queries with their automata, which rooms after theirs draw.
def _query_page(query: Any) -> str:
    page: str = importlib.import_module("acep.explain.pages").query_page(query)
    return page


# The text of a query is written by a module that reads its tree.
def _query_text(query: Any) -> str:
    text: str = importlib.import_module("acep.pattern.printing").canonical(query)
    return text


# The page of a result has the drawing of its query, and near misses, which rooms after that of matches make.
def _result_page(*arguments: Any, **options: Any) -> Any:
    return importlib.import_module(_WHERE["ResultPage"]).result_page(*arguments, **options)


make_pages_with({"Matches": _result_page})
show_with({"Query": _query_page, "Automaton": _query_page})
write_with({"Query": _query_text})

# In the repository acep.learning and acep.sketches are beside this folder; in an install they are inside it.
if PathFinder.find_spec("acep.learning", __path__) is None:
    importlib.import_module("acep.checkout").watch()


# Rooms and modules that load neither NumPy nor Arrow, which end a process with too small an address space.
_LIGHT = ("acep.budget", "acep.errors", "acep.pattern", "acep.linting.report")


def _check_space(module: str) -> None:
    if "pyarrow" not in sys.modules and not module.startswith(_LIGHT):
        importlib.import_module("acep.address_space").refuse_small_address_space("acep")


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        _check_space(_WHERE[name])
        value = getattr(importlib.import_module(_WHERE[name]), name)
    elif name in ("plots", "spark"):
        _check_space(name)
        value = importlib.import_module(f"acep.{name}")
    else:
        raise AttributeError(f"module 'acep' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "plots", "spark"])

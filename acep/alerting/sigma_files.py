"""Read the Sigma files of a folder as rules, if pySigma is installed (docs/howto/sigma.md)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING

from acep.alerting.rule import AlertRule, RuleProblem, read_rule
from acep.errors import AcepError, check_installed

if TYPE_CHECKING:
    from acep.sigma_rules.rule_texts import SigmaRuleText

__all__ = ["SETTINGS_FILE", "SIGMA_SUFFIXES", "hint_at_settings", "read_sigma_rules"]

SIGMA_SUFFIXES = (".yml", ".yaml")
SETTINGS_FILE = "sigma.toml"


def read_sigma_rules(texts: Mapping[str, str], settings: str | RuleProblem | None) -> list[AlertRule | RuleProblem]:
    """Return the rules in the texts of Sigma files, by their paths, or the problems with them. ``settings`` is the text
    of ``sigma.toml``, if there is one, or the problem with that file."""
    if not texts:
        return []
    try:
        if isinstance(settings, RuleProblem):
            raise settings.error
        check_installed("sigma", "a rule of Sigma", "sigma")
        from acep.sigma_rules.rule_texts import sigma_rule_texts

        return [_rule_of(of_document) for of_document in sigma_rule_texts(texts, settings)]
    except AcepError as error:
        return [RuleProblem.from_error(copy.copy(error), path) for path in texts]


def hint_at_settings(error: AcepError, rule: AlertRule) -> None:
    """Add to the hint of an error where a rule of Sigma says which column it is, or how a column gets another type."""
    if not rule.file.endswith(SIGMA_SUFFIXES):
        return
    hint = None
    if error.message.startswith("unknown column"):
        hint = f"{SETTINGS_FILE} says which column a field is, and which events a log source has"
    elif error.message.startswith(("a string cannot be compared with", "lower needs text")):
        hint = "a cast reads the column as another type, as in --cast EventID=int"
    if hint is not None:
        error.hint = hint if error.hint is None else f"{error.hint}; {hint}"


def _rule_of(of_document: SigmaRuleText) -> AlertRule | RuleProblem:
    if of_document.error is not None or of_document.text is None:
        # A copy, as the text of a file that stays the same is not read again, and the error with it.
        error = copy.copy(of_document.error or AcepError("it is no rule"))
        return RuleProblem.from_error(error, of_document.file, of_document.title)
    return read_rule(of_document.text, of_document.file)

"""Write the Sigma rules of a folder as the texts of rules of acep: a header in TOML, and a query."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sigma.correlations import SigmaCorrelationRule, SigmaExtendedCorrelationCondition
from sigma.exceptions import SigmaError
from sigma.rule import SigmaRule

from acep.errors import AcepError, QueryError, printable
from acep.pattern.spelling import expression_text
from acep.sigma_rules.correlations import QueryText, correlation_query, event_query
from acep.sigma_rules.documents import UNFORESEEN, Document, read_documents
from acep.sigma_rules.refusals import checked_text, excerpt, refusal
from acep.sigma_rules.settings import SigmaSettings, read_settings
from acep.sigma_rules.values import field_attribute

__all__ = ["SigmaRuleText", "sigma_rule_texts"]

Rule = SigmaRule | SigmaCorrelationRule


@dataclass(frozen=True)
class SigmaRuleText:
    """The ``text`` of the rule that a document of a Sigma file became, or the ``error`` why it is none."""

    file: str
    title: str | None
    text: str | None
    error: AcepError | None = None


def sigma_rule_texts(files: Mapping[str, str], settings_text: str | None = None) -> list[SigmaRuleText]:
    r"""Return the rules in the texts of Sigma files, by their paths, which may refer to each other. ``settings_text``
    is the text of ``sigma.toml``.

    A rule that a correlation refers to gives no alerts of its own, unless the correlation says ``generate``.

    Raises :class:`QueryError` for a mistake in the settings.

    >>> text = "title: Root\nlogsource: {product: linux}\ndetection: {s: {User: root}, condition: s}\nlevel: low"
    >>> print(sigma_rule_texts({"root.yml": text})[0].text)
    ---
    name = "Root"
    severity = "low"
    ---
    PATTERN ANY event
    WHERE event.product = 'linux'
        AND lower(event.User) = 'root'
    <BLANKLINE>
    """
    return [*_texts(tuple(files.items()), settings_text)]


@lru_cache(maxsize=4)  # a folder that is looked at again and again seldom changes
def _texts(files: tuple[tuple[str, str], ...], settings_text: str | None) -> tuple[SigmaRuleText, ...]:
    settings = read_settings(settings_text)
    documents = [document for file, text in files for document in read_documents(text, file)]
    by_name = dict[str, list[Document]]()
    for document in documents:
        for name in dict.fromkeys(document.names):
            by_name.setdefault(name, []).append(document)
    silent = {id(rule) for rule in _rules_without_alerts(documents, by_name)}
    return tuple(_rule_text(document, by_name, settings) for document in documents if id(document.rule) not in silent)


def _rules_without_alerts(documents: Sequence[Document], by_name: Mapping[str, list[Document]]) -> Iterator[Rule]:
    """Yield the rules to which a correlation refers that does not ask for their alerts."""
    for document in documents:
        references = [*document.silent_names]
        if isinstance(document.rule, SigmaCorrelationRule) and not document.rule.generate:
            references = _references(document.rule)
        for reference in references:
            yield from (other.rule for other in by_name.get(str(reference), ()) if other.rule is not None)


def _references(correlation: SigmaCorrelationRule) -> list[str]:
    if correlation.rules is not None:
        return [reference.reference for reference in correlation.rules]
    condition = correlation.condition
    return condition.get_referenced_rules() if isinstance(condition, SigmaExtendedCorrelationCondition) else []


def _rule_text(document: Document, by_name: Mapping[str, list[Document]], settings: SigmaSettings) -> SigmaRuleText:
    try:
        if document.error is not None or document.rule is None:
            raise document.error or refusal("there is no rule")
        return SigmaRuleText(document.file, document.title, _text(document, document.rule, by_name, settings))
    except AcepError as error:
        return SigmaRuleText(document.file, document.title, None, error)
    except SigmaError as error:
        problem = QueryError(f"pySigma refuses it: {printable(str(error))[:300]}", code="query_invalid")
        return SigmaRuleText(document.file, document.title, None, problem)
    except RecursionError:
        problem = QueryError("it has too many parts inside each other", code="query_size")
        return SigmaRuleText(document.file, document.title, None, problem)
    except UNFORESEEN as error:  # pySigma looks at some parts of a rule only when it is used
        problem = QueryError(f"pySigma cannot read it: {printable(str(error))[:200]}", code="query_invalid")
        return SigmaRuleText(document.file, document.title, None, problem)


def _text(document: Document, rule: Rule, by_name: Mapping[str, list[Document]], settings: SigmaSettings) -> str:
    if isinstance(rule, SigmaRule):
        query = event_query(rule, settings)
    else:
        rules = {reference: _find_rule(reference, by_name) for reference in _references(rule)}
        for alias in rule.aliases.aliases.values():
            for reference in alias.mapping:
                reference.rule = _find_rule(reference.reference, by_name)
        query = correlation_query(rule, rules, settings)
    return f"{_header(document, rule, query, settings)}\n{query.text}\n"


def _find_rule(reference: str, by_name: Mapping[str, list[Document]]) -> SigmaRule:
    """Return the rule to which a correlation refers. Raises :class:`QueryError` if there is not exactly one."""
    documents = by_name.get(str(reference), [])
    if len(documents) != 1:
        number = f"{len(documents)} rules have" if documents else "no rule of the folder has"
        raise refusal(f"it refers to `{excerpt(reference)}`, and {number} this name or id")
    rule = documents[0].rule
    if rule is None:
        raise refusal(f"it refers to `{excerpt(reference)}`, which cannot be read")
    if isinstance(rule, SigmaCorrelationRule):
        raise refusal(
            f"it refers to the correlation `{excerpt(reference)}`: chains of correlations have no counterpart",
            "write a query of acep with FROM",
        )
    return rule


# The header --------------------------------------------------------------------------------------


def _header(document: Document, rule: Rule, query: QueryText, settings: SigmaSettings) -> str:
    lines = ["---", f"name = {_toml(rule.title)}"]
    if rule.level is not None:
        level = str(rule.level)
        lines.append(f"severity = {_toml('info' if level == 'informational' else level)}")
    lines += [f"tags = [{', '.join(map(_toml, document.tags))}]"] if document.tags else []
    description = checked_text(rule.description or "", "the description")
    lines += [f"description = {_toml(description)}"] if description else []
    attributes = [
        expression_text(field_attribute(field, variable, settings))
        for variable in query.variables
        for field in rule.fields
        if isinstance(field, str)
    ]
    fields = [*dict.fromkeys([*query.group_fields, *attributes])]
    lines += [f"fields = [{', '.join(map(_toml, fields))}]"] if fields else []
    return "\n".join([*lines, "---"])


def _toml(text: str) -> str:
    r"""Return a text as TOML has it.

    >>> print(_toml('a"\n\x7f'))
    "a\"\n\u007f"
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

"""Read the documents of a Sigma file: YAML as plain data, and each rule of it by pySigma."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import re2
import yaml
from sigma.collection import SigmaCollection
from sigma.correlations import SigmaCorrelationRule
from sigma.exceptions import SigmaError
from sigma.policy import SigmaPolicy
from sigma.policy.regex_engine import RE2RegexEngine, RegexPattern
from sigma.rule import SigmaRule

from acep.errors import AcepError, QueryError, printable
from acep.sigma_rules.refusals import checked_text, excerpt, refusal

__all__ = ["UNFORESEEN", "Document", "read_documents"]

MOST_DOCUMENTS = 2_000
KEYS = ("title", "name", "description", "fields", "level", "logsource", "detection", "correlation")
"""The keys of a document that pySigma gets. All others, such as dates and references, decide nothing."""
CORRELATION_KEYS = ("type", "rules", "group-by", "timespan", "condition", "aliases", "generate")
UNFORESEEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Files may hold any YAML, and neither PyYAML nor pySigma promises which errors that raises."""


class SilentRegexEngine(RE2RegexEngine):
    """Regular expressions of pySigma, in linear time. RE2 would write each mistake in one to standard error."""

    def compile(self, pattern: str, flags: int = 0) -> RegexPattern:
        """Return a pattern. Raises the ``error`` of RE2 for a mistake in it."""
        letters = "".join(letter for flag, letter in _REGEX_FLAGS if flags & flag)
        options = re2.Options()
        options.log_errors = False
        compiled: RegexPattern = re2.compile(f"(?{letters}){pattern}" if letters else pattern, options)
        return compiled


_REGEX_FLAGS = ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"))


@dataclass(frozen=True)
class Document:
    """One document of a file: a rule or a correlation of pySigma, or the error that it is none. ``title`` is what it
    is called, where that is known; ``names`` are its id and name, by which others refer to it. ``silent_names`` are the
    names of the rules that a correlation with an error keeps from alerts of their own."""

    file: str
    title: str | None
    names: tuple[str, ...]
    rule: SigmaRule | SigmaCorrelationRule | None
    error: AcepError | None = None
    tags: tuple[str, ...] = ()
    silent_names: tuple[str, ...] = ()


def read_documents(text: str, file: str) -> list[Document]:
    r"""Return the documents of a file.

    >>> text = "title: a\nlogsource: {product: x}\ndetection: {s: {f: 1}, condition: s}\n---\ntitle: b"
    >>> [(document.title, document.error is None) for document in read_documents(text, "x.yml")]
    [('a', True), ('b', False)]
    """
    try:
        return [_read(values, problem, file) for values, problem in _documents(text)]
    except AcepError as error:
        return [Document(file, None, (), None, error)]


def _documents(text: str) -> list[tuple[Any, QueryError | None]]:
    """Return the documents that are not empty, as plain data, each with the mistake that plain data does not show.

    Raises :class:`QueryError` for what is no YAML.
    """
    documents = list[tuple[Any, QueryError | None]]()
    try:
        loader = yaml.CSafeLoader(text)
        while loader.check_node():
            node = loader.get_node()
            if node is None:
                continue
            problem = _repeated_key(node, text)  # before values are made, which puts merged keys into the nodes
            values = loader.construct_document(node)
            if values is not None:
                documents.append((values, problem))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = printable(getattr(error, "problem", None) or str(error))[:200]
        place = {} if mark is None else {"text": text, "start": min(mark.index, len(text))}
        raise QueryError(f"it is no YAML: {reason}", code="query_syntax", **place) from None
    except UNFORESEEN as error:
        raise QueryError(f"it is no YAML: {printable(str(error))[:200]}", code="query_syntax") from None
    if not documents:
        raise QueryError(
            "there is no Sigma rule", hint="a rule has title, logsource and detection", code="query_syntax"
        )
    if len(documents) > MOST_DOCUMENTS:
        raise QueryError(f"it has more than {MOST_DOCUMENTS:,} documents", code="query_size")
    return documents


def _repeated_key(document: yaml.Node, text: str) -> QueryError | None:
    """Return the mistake of a mapping that has a key twice, as YAML forbids. Plain data would have the last value."""
    nodes, seen = [document], set[int]()
    while nodes:
        node = nodes.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            nodes += node.value
        elif isinstance(node, yaml.MappingNode):
            keys = set[tuple[str, str]]()
            for key, value in node.value:
                nodes += [key, value]
                if not isinstance(key, yaml.ScalarNode):
                    continue
                if (key.tag, key.value) in keys:
                    start, end = (min(mark.index, len(text)) for mark in (key.start_mark, key.end_mark))
                    return QueryError(
                        f"the key `{excerpt(key.value)}` is there twice",
                        hint="only one of its values would count; write a list",
                        code="query_syntax",
                        text=text,
                        start=start,
                        end=end,
                    )
                keys.add((key.tag, key.value))
    return None


def _read(values: Any, problem: QueryError | None, file: str) -> Document:
    title: str | None = None
    names: tuple[str, ...] = ()
    try:
        if isinstance(values, dict):  # a rule that only others refer to may have no title, but a name
            title = next((values[key] for key in ("title", "name") if isinstance(values.get(key), str)), None)
        if not isinstance(values, dict) or not {"detection", "correlation", "filter", "action"} & values.keys():
            raise QueryError("it is no Sigma rule: it has neither detection nor correlation", code="query_syntax")
        names = tuple(str(values[key]) for key in ("id", "name") if isinstance(values.get(key), str))
        if problem is not None:
            raise problem
        rule = _rule(values if "title" in values else {"title": title, **values})
        return Document(file, title, names, rule, tags=_tags(values.get("tags")))
    except AcepError as error:
        return Document(file, title, names, None, error, silent_names=_silent_names(values))


def _silent_names(values: Any) -> tuple[str, ...]:
    """Return the names of the rules of a correlation that does not ask for their alerts."""
    correlation = values.get("correlation") if isinstance(values, dict) else None
    if not isinstance(correlation, dict) or correlation.get("generate") is True:
        return ()
    rules = correlation.get("rules")
    return tuple(str(name) for name in (rules if isinstance(rules, list) else [rules]) if isinstance(name, str))


def _tags(tags: object) -> tuple[str, ...]:
    if tags is None:
        return ()
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise refusal("`tags` is no list of texts")
    return tuple(dict.fromkeys(checked_text(tag, "a tag") for tag in tags if tag.strip()))


def _rule(values: Mapping[str, Any]) -> SigmaRule | SigmaCorrelationRule:
    if "filter" in values:
        raise refusal("a filter of Sigma changes other rules", "write its condition into the rules")
    if "action" in values:
        raise refusal("`action` is of old collections", "write each rule out")
    correlation = values.get("correlation")
    if isinstance(correlation, dict):
        for key in correlation:
            if key not in CORRELATION_KEYS:
                hint = {"group_by": "write group-by", "field": "write it into the condition"}.get(key)
                raise refusal(f"a correlation has no `{excerpt(key)}` here", hint)
    try:
        rules = SigmaCollection.from_dicts(
            [{key: values[key] for key in KEYS if key in values}],
            resolve_references=False,
            policy=SigmaPolicy(SilentRegexEngine()),
        ).rules
    except SigmaError as error:
        raise QueryError(f"pySigma refuses it: {printable(str(error))[:300]}", code="query_invalid") from None
    except UNFORESEEN as error:
        raise QueryError(f"pySigma cannot read it: {printable(str(error))[:200]}", code="query_invalid") from None
    if len(rules) != 1:
        raise refusal("pySigma reads no rule of it")
    return rules[0]

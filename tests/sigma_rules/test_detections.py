"""Detections of Sigma against a slow reading of their items, event by event."""

from __future__ import annotations

import base64
import ipaddress
import random
import re
from typing import Any

import pytest

import acep
from acep.alerting.rule import AlertRule, RuleProblem
from acep.alerting.sigma_files import read_sigma_rules
from acep.pattern.spelling import condition_text
from tests.case_counts import CaseCounts

TEXTS = (
    "", "a", "A", "ab", "aB", "abc", "a*c", "a?c", "a_c", "a%c", "a\\c", "xabcx", "it's", 'say "a"', "-a /a", "\u2013a",
    "line\nab", "QWI=", "xQWIx", "127.0.0.1", "10.1.2.3", "10.1.2.03", "2001:db8::1", "K", "ß", "é", None,
)  # fmt: skip
NUMBERS = (None, -1, 0, 1, 2, 3)


def pattern_of(text: str) -> list[str | None]:
    """The signs of a value: `None` for any text, the empty text for any sign."""
    signs: list[str | None] = []
    place = 0
    while place < len(text):
        if text[place] == "\\" and text[place + 1 : place + 2] in ("*", "?", "\\") and place + 1 < len(text):
            signs.append(text[place + 1])
            place += 1
        else:
            signs.append({"*": None, "?": ""}.get(text[place], text[place]))
        place += 1
    return signs


def fits(text: str | None, signs: list[str | None], cased: bool) -> bool:
    if text is None:
        return False
    plain = "".join(".*" if sign is None else re.escape(sign) if sign else "." for sign in signs)
    plain, text = (plain, text) if cased else (plain.lower(), text.lower())
    return re.fullmatch(plain, text, re.DOTALL) is not None


def reads(value: Any, asked: Any, modifiers: list[str]) -> bool:
    """Whether the value of a field is what an item asks for."""
    if "exists" in modifiers:
        return (value is not None) == asked
    if asked is None:
        return value is None
    if "re" in modifiers:
        return value is not None and re.search(asked, value, re.IGNORECASE if "i" in modifiers else 0) is not None
    if "cidr" in modifiers:
        try:
            return value is not None and ipaddress.ip_address(value) in ipaddress.ip_network(asked)
        except ValueError:
            return False
    for name, compares in (("lt", int.__lt__), ("lte", int.__le__), ("gt", int.__gt__), ("gte", int.__ge__)):
        if name in modifiers:
            return value is not None and compares(value, asked)
    if isinstance(asked, int):
        return value is not None and value == asked
    if "base64" in modifiers:
        asked = base64.b64encode(asked.encode()).decode()
    variants = [pattern_of(asked)]
    if "windash" in modifiers:
        variants = [pattern_of(dash + asked[1:]) for dash in "-/\u2013\u2014\u2015"] if asked[0] in "-/" else variants
    begin = [None] if {"contains", "endswith"} & {*modifiers} else []
    end = [None] if {"contains", "startswith"} & {*modifiers} else []
    return any(fits(value, [*begin, *signs, *end], "cased" in modifiers) for signs in variants)


ITEMS: list[tuple[str, list[str], list[Any]]] = [
    ("t", [], ["a", "AB", "a*", "?b", "a\\*c", "a\\?c", "a_c", "a%c", "a\\c", "a\\\\c", "it's", 'say "a"', "", None]),
    ("t", ["contains"], ["b", "'", '"a"', "_", "%", "\\", "\n"]),
    ("t", ["startswith"], ["A", "a*c", "xa"]),
    ("t", ["endswith"], ["C", "b", "?c"]),
    ("t", ["cased"], ["aB", "A", "é", "ß"]),
    ("t", ["contains", "cased"], ["B"]),
    ("t", ["re"], ["^a.?c$", "b+", "[ab]{2}", "'", "a|b"]),
    ("t", ["re", "i"], ["^AB$"]),
    ("t", ["cidr"], ["10.0.0.0/8", "2001:db8::/32", "127.0.0.1/32"]),
    ("t", ["base64"], ["Ab"]),
    ("t", ["base64", "contains"], ["Ab"]),
    ("t", ["windash"], ["-a", "/a"]),
    ("t", ["windash", "contains"], ["-a"]),
    ("t", ["exists"], [True, False]),
    ("n", [], [1, 2, None]),
    ("n", ["lt"], [1]), ("n", ["lte"], [1]), ("n", ["gt"], [1]), ("n", ["gte"], [1, 2]),
    ("n", ["exists"], [True, False]),
]  # fmt: skip


def quoted(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    return "null" if value is None else str(value).lower()


def read(text: str) -> AlertRule:
    rule = read_sigma_rules({"x.yml": text}, '[[logsource]]\nproduct = "any"\n')[0]
    assert isinstance(rule, AlertRule), str(rule)
    return rule


def rule_text(detection: str) -> str:
    return f"title: found\nlogsource: {{product: any}}\ndetection:\n{detection}"


def matched_rows(rule: AlertRule, rows: list[tuple[str | None, int | None]]) -> set[int]:
    table = {
        "ts": [*range(len(rows))],
        "type": ["e"] * len(rows),
        "t": [text for text, _ in rows],
        "n": [number for _, number in rows],
    }
    return {place for match in acep.match(table, rule.query) for places in match.bindings.values() for place in places}


ROWS = [(text, NUMBERS[place % len(NUMBERS)]) for place, text in enumerate(TEXTS)]


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize(("field", "modifiers", "asked"), ITEMS, ids=lambda part: "|".join(map(str, part)))
def test_an_item_alone(field: str, modifiers: list[str], asked: list[Any], negated: bool) -> None:
    key = "|".join([field, *modifiers])
    for value in asked:
        rule = read(rule_text(f"  s: {{{quoted(key)}: {quoted(value)}}}\n  condition: {'not ' if negated else ''}s"))
        expected = {
            place
            for place, (text, number) in enumerate(ROWS)
            if reads(text if field == "t" else number, value, modifiers) != negated
        }
        assert matched_rows(rule, ROWS) == expected, condition_text(rule.query.where[0])


def draw_detection(rng: random.Random) -> tuple[str, Any]:
    """A detection with its reading: items that all hold, of which each has values of which one, or all, hold."""
    lines, readings = [], []
    for _place in range(rng.randint(1, 2)):
        field, modifiers, asked = rng.choice([item for item in ITEMS if "exists" not in item[1]])
        values = rng.sample(asked, min(len(asked), rng.randint(1, 3)))
        links_all = len(values) > 1 and None not in values and rng.random() < 0.3
        key = "|".join([field, *modifiers, *(["all"] if links_all else [])])
        if any(key in line for line in lines):
            continue
        lines.append(f"{quoted(key)}: [{', '.join(map(quoted, values))}]")
        join = all if links_all else any
        readings.append(
            lambda row, f=field, m=modifiers, v=values, j=join: j(
                reads(row[0] if f == "t" else row[1], a, m) for a in v
            )
        )
    return f"{{{', '.join(lines)}}}", lambda row: all(holds(row) for holds in readings)


CONDITIONS = {
    "d0": lambda d: d[0],
    "not d0": lambda d: not d[0],
    "d0 and not d1": lambda d: d[0] and not d[1],
    "d0 or d1 and d2": lambda d: d[0] or (d[1] and d[2]),
    "not (d0 or d1)": lambda d: not (d[0] or d[1]),
    "not (d0 and not d1) or d2": lambda d: not (d[0] and not d[1]) or d[2],
    "1 of d*": any,
    "all of them": all,
    "not 1 of d*": lambda d: not any(d),
}


def test_random_detections(cases: CaseCounts) -> None:
    n_matched = 0
    for seed in range(cases(600)):
        rng = random.Random(seed)
        detections = [draw_detection(rng) for _ in range(3)]
        condition = rng.choice([*CONDITIONS])
        lines = "\n".join(f"  d{number}: {text}" for number, (text, _) in enumerate(detections))
        rows = [(rng.choice(TEXTS), rng.choice(NUMBERS)) for _ in range(30)]
        rule = read(rule_text(f"{lines}\n  condition: {condition}"))
        expected = {
            place for place, row in enumerate(rows) if CONDITIONS[condition]([holds(row) for _, holds in detections])
        }
        assert matched_rows(rule, rows) == expected, rule.text
        n_matched += len(expected)
    cases.expect({"matches": n_matched}, "matches")


@pytest.mark.parametrize("value", TEXTS[1:-1])
def test_no_value_breaks_out_of_its_quotes(value: str) -> None:
    """A value is one constant of the query, whatever signs it has. Names and the header break out no more."""
    hostile = f"{value}' OR e.n = 1 -- \" ` */ :p"
    plain = re.sub(r"([*?\\])", r"\\\1", hostile)
    text = (
        f"title: {quoted('a ' + ''.join(sign for sign in hostile if sign.isprintable()))}\n"
        f"description: {quoted(hostile)}\nlogsource: {{product: any}}\n"
        f"detection:\n  s: {{'t|cased': {quoted(plain)}, {quoted('f' + value.replace(chr(10), ''))}: 1}}\n"
        "  condition: s\n"
    )
    reading = read_sigma_rules({"x.yml": text}, '[[logsource]]\nproduct = "any"\n')[0]
    if isinstance(reading, RuleProblem):
        assert "is the name of no column" in str(reading)
        return
    assert reading.description == hostile
    assert len(reading.query.where) == 2
    rows = {"ts": [1, 2], "type": ["e", "e"], "n": [1, 1], "t": ["x", hostile], "f" + value.replace("\n", ""): [1, 1]}
    matches = acep.match(rows, reading.query)
    assert [[*match.bindings.values()] for match in matches] == [[(1,)]]

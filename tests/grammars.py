"""The tables of the grammars, as Lark derives them: ``python -m tests.grammars`` writes them beside the grammars."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any

from lark import Lark
from lark.grammar import NonTerminal, Rule
from lark.lexer import PatternStr
from lark.parsers.lalr_analysis import Shift

import acep.pattern.text
from acep.pattern.text.lalr_parser import END

FOLDER = Path(acep.pattern.text.__path__[0])
NAMES = sorted(path.stem for path in FOLDER.glob("*.lark"))


def lark_of(name: str) -> Lark:
    """Lark's own parser of a grammar."""
    text = (FOLDER / f"{name}.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=False)


def tables_of(lark: Lark) -> dict[str, Any]:
    """What :class:`acep.pattern.text.lalr_parser.Parser` reads by; states and rules are numbered as they are met."""
    lexer = lark.parser.lexer.root_lexer
    for literal in (t for t in lexer.terminals if isinstance(t.pattern, PatternStr)):
        for other in lexer.terminals:
            # Lark would try the literal after the other, which no table here says.
            assert other is literal or not lexer.re.fullmatch(other.pattern.to_regexp(), literal.pattern.value)
    table = lark.parser.parser._parse_table
    (start,), (end,) = table.start_states.values(), table.end_states.values()
    numbers, rules = {start: 0}, dict[Rule, int]()
    left, states = deque([start]), list[dict[str, int]]()
    while left:
        steps = dict[str, int]()
        for symbol, (action, to) in sorted(table.states[left.popleft()].items()):
            if action is not Shift:
                steps[symbol] = ~rules.setdefault(to, len(rules))
                continue
            if to not in numbers:
                numbers[to] = len(numbers)
                left.append(to)
            steps[symbol] = numbers[to]
        states.append(steps)
    states[numbers[end]][END] = numbers[end]
    return {
        "terminals": [[t.name, t.pattern.to_regexp()] for t in lexer.terminals],
        "ignored": sorted(lexer.ignore_types),
        "rules": [_rule(rule) for rule in rules],
        "states": states,
    }


def _rule(rule: Rule) -> list[Any]:
    """The symbol that a rule makes, how many parts it has, its tree's name, its children, whether one replaces it."""
    assert not rule.options.keep_all_tokens
    assert not rule.options.template_source
    kept = [
        (at, isinstance(symbol, NonTerminal) and symbol.name.startswith("_"))
        for at, symbol in enumerate(rule.expansion)
        if isinstance(symbol, NonTerminal) or not symbol.filter_out
    ]
    all_kept = len(kept) == len(rule.expansion) and not any(spread for _, spread in kept)
    single = bool(rule.options.expand1 and not rule.alias)
    name = str(rule.alias or rule.origin.name)
    return [str(rule.origin.name), len(rule.expansion), name, None if all_kept else [list(k) for k in kept], single]


def written(tables: dict[str, Any]) -> str:
    """Tables as they stand in a file: a line for each rule, state and terminal."""

    def listed(rows: list[Any]) -> str:
        return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows) + "\n]"

    return "{\n" + ",\n".join(f'"{key}": {listed(rows)}' for key, rows in tables.items()) + "\n}\n"


def main() -> None:
    """Write the tables of every grammar."""
    for name in NAMES:
        (FOLDER / f"{name}.json").write_text(written(tables_of(lark_of(name))), encoding="utf-8")


if __name__ == "__main__":
    main()

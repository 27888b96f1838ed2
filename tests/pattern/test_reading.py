"""Reading by the stored tables gives what Lark gives by the grammars: tables, trees, tokens and mistakes."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark, UnexpectedCharacters, UnexpectedToken
from lark import Token as LarkToken

from acep.pattern.text.lalr_parser import END, ReadingError, Token, Tree, parser
from tests.corpus import load_all
from tests.grammars import FOLDER, NAMES, lark_of, tables_of, written

lark = cache(lark_of)
TEXTS = {name: sorted({case.text for case in load_all() if case.letters == (name == "letters")}) for name in NAMES}
PIECES = {
    name: sorted({piece for text in texts for piece in re.findall(r"\w+|\s+|[^\w\s]", text)})
    for name, texts in TEXTS.items()
}


def ours(node: Tree | Token) -> Any:
    """A tree as plain data, with the place of every node."""
    if isinstance(node, Token):
        return node.type, str(node), node.start_pos, node.end_pos
    return node.data, node.span, [ours(child) for child in node.children]


def theirs(node: Any) -> Any:
    """The same of a tree of Lark's."""
    if isinstance(node, LarkToken):
        return node.type, str(node), node.start_pos, node.end_pos
    span = None if node.meta.empty else (node.meta.start_pos, node.meta.end_pos)
    return str(node.data), span, [theirs(child) for child in node.children]


def read(name: str, text: str) -> Any:
    """The tree, or what and where the mistake is and what was expected."""
    try:
        return ours(parser(name).parse(text))
    except ReadingError as error:
        return error.position, error.token and ours(error.token), error.accepted


def read_by_lark(lark: Lark, text: str) -> Any:
    try:
        return theirs(lark.parse(text))
    except UnexpectedToken as error:
        if error.token.type == END:
            return len(text.rstrip()), None, error.accepts
        return error.token.start_pos, theirs(error.token), error.accepts
    except UnexpectedCharacters as error:
        state: Any = error.interactive_parser
        return error.pos_in_stream, None, state.accepts()


@pytest.mark.parametrize("name", NAMES)
def test_the_tables_are_those_of_the_grammar(name: str) -> None:
    stored = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert stored == written(tables_of(lark(name))), "run: python -m tests.grammars"


@pytest.mark.parametrize("name", NAMES)
def test_every_text_of_the_corpus(name: str) -> None:
    assert len(TEXTS[name]) > 20
    for text in TEXTS[name]:
        assert read(name, text) == read_by_lark(lark(name), text), text


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_texts_with_mistakes(name: str, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS[name]))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 6)))
        text = text[:start] + data.draw(st.sampled_from(PIECES[name]) | st.text(max_size=2)) + text[end:]
    assert read(name, text) == read_by_lark(lark(name), text)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_pieces(name: str, data: st.DataObject) -> None:
    pieces = data.draw(st.lists(st.sampled_from(PIECES[name]), max_size=30))
    text = data.draw(st.sampled_from(("", " "))).join(pieces)
    assert read(name, text) == read_by_lark(lark(name), text)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_the_tokens_of_a_text_that_breaks_off(name: str, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS[name]))
    text = text[: data.draw(st.integers(0, len(text)))]
    try:
        expected = [theirs(token) for token in lark(name).parse_interactive(text).iter_parse()]
    except (UnexpectedToken, UnexpectedCharacters):
        with pytest.raises(ReadingError):
            parser(name).tokens(text)
    else:
        assert [ours(token) for token in parser(name).tokens(text)] == expected

"""Questions about the source files of the repository: each file is parsed once for all of them.

A test that reads all files parses more than a hundred thousand lines. A function that is decorated by
:func:`read_once` takes a parsed file; the test calls it with a path. The first call for a file answers all such
functions, and what they return is kept, not the tree, which takes much memory. Mark a test that calls one by
``whole_source``: all of them run in one process then.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

__all__ = ["ROOT", "ParsedFile", "is_type_checking", "read_once", "whole_source"]

ROOT = Path(__file__).resolve().parents[1]
Answer = TypeVar("Answer")

whole_source = pytest.mark.xdist_group("sources")


class ParsedFile(NamedTuple):
    """A source file: its tree, and all nodes of it in the order of ``ast.walk``."""

    path: Path
    text: str
    tree: ast.Module
    nodes: list[ast.AST]


_READERS: list[tuple[Callable[[ParsedFile], Any], tuple[str, ...]]] = []


def read_once(*folders: str) -> Callable[[Callable[[ParsedFile], Answer]], Callable[[Path], Answer]]:
    """Make a function of a parsed file one of the path of a file in one of these folders of the repository."""

    def decorate(reader: Callable[[ParsedFile], Answer]) -> Callable[[Path], Answer]:
        _READERS.append((reader, folders))

        @wraps(reader)
        def read(path: Path) -> Answer:
            answers = _answers(path)
            if reader not in answers:  # it was defined after the file was read
                with _no_garbage():
                    answers[reader] = reader(_parse(path))
            answer: Answer = answers[reader]
            return answer

        return read

    return decorate


@cache
def _answers(path: Path) -> dict[Callable[[ParsedFile], Any], Any]:
    folder = path.relative_to(ROOT).parts[0]
    with _no_garbage():
        parsed = _parse(path)
        return {reader: reader(parsed) for reader, folders in _READERS if folder in folders}


def _parse(path: Path) -> ParsedFile:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    return ParsedFile(path, text, tree, [*ast.walk(tree)])


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Search for no garbage: among the nodes of a tree there is none, and the search takes longer than the parser."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


def is_type_checking(node: ast.AST) -> bool:
    """Return whether a node is ``TYPE_CHECKING`` or ``typing.TYPE_CHECKING``.

    >>> is_type_checking(ast.parse("typing.TYPE_CHECKING", mode="eval").body)
    True
    """
    match node:
        case ast.Name("TYPE_CHECKING") | ast.Attribute(ast.Name("typing"), "TYPE_CHECKING"):
            return True
    return False

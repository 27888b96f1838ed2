"""Names and paths in comments, docstrings and stubs, and whether they lead somewhere.

Modules are looked up in the source, not imported: that takes less time, and needs no optional package.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.source_trees import ROOT

__all__ = ["is_dotted_name", "lost_names", "lost_paths"]

DOTTED = re.compile(r"(?<![\w./-])(?:acep|learning|sketches)(?:\.[A-Za-z_]\w*){2,}")
FILE = re.compile(r"(?<![\w./*{}<>-])\w[\w./-]*\.(?:py|pyi|cpp|hpp)\b(?![\w*.]|-\w)")
SHIPPED = {("acep", "learning"): ("learning",), ("acep", "sketches"): ("sketches",)}
"""Packages that stand beside acep in a checkout, by the name under which they are installed."""


def lost_names(text: str) -> Iterator[tuple[int, str]]:
    """The dotted names of a text that lead nowhere, with their lines."""
    for match in DOTTED.finditer(text):
        if not is_dotted_name(match[0]):
            yield text.count("\n", 0, match.start()) + 1, match[0]


def lost_paths(text: str, paths: Mapping[str, Sequence[str]]) -> Iterator[tuple[int, str]]:
    """The paths of source files in a text that are not the end of a path that is there, with their lines. ``paths``:
    those that are there, by the names of their files."""
    for match in FILE.finditer(text):
        path = match[0].removeprefix("./")
        if not any(f"/{known}".endswith(f"/{path}") for known in paths.get(path.rpartition("/")[2], ())):
            yield text.count("\n", 0, match.start()) + 1, path


@cache
def is_dotted_name(name: str) -> bool:
    """Whether a name such as ``acep.errors.DataError.code`` leads to a module, or to something that one defines."""
    parts = tuple(name.split("."))
    for length in range(len(parts), 0, -1):
        if (path := _file_of(parts[:length])) is not None:
            return _leads_on(path, parts[length:])
    return False


def _file_of(module: tuple[str, ...]) -> Path | None:
    """The file of a module, ``None`` if it has none in this repository."""
    base = ROOT.joinpath(*SHIPPED.get(module[:2], module[:2]), *module[2:])
    files = (base.with_name(f"{base.name}.py"), base.with_name(f"{base.name}.pyi"), base / "__init__.py")
    return next((file for file in files if file.is_file()), None)


@cache
def _definitions(path: Path) -> dict[str, ast.stmt]:
    """The names that a module defines or imports at its top, with what they are."""
    return _bound_by(ast.parse(path.read_text(encoding="utf-8")).body)


def _bound_by(body: Sequence[ast.stmt]) -> dict[str, ast.stmt]:
    bound: dict[str, ast.stmt] = {}
    for statement in body:
        match statement:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                bound[statement.name] = statement
            case ast.Import() | ast.ImportFrom():
                bound |= {alias.asname or alias.name.partition(".")[0]: statement for alias in statement.names}
            case ast.If() | ast.Try():
                bound |= _bound_by([*statement.body, *statement.orelse])
            case ast.Assign() | ast.AnnAssign():
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                names = (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))
                bound |= dict.fromkeys(names, statement)
    return bound


def _leads_on(path: Path, names: tuple[str, ...]) -> bool:
    if not names:
        return True
    definitions = _definitions(path)
    match definitions.get(names[0]):
        case None:
            return "__getattr__" in definitions and names[0] in path.read_text(encoding="utf-8")
        case ast.ClassDef() as defined:
            return len(names) == 1 or _has_member(path, defined, names[1])
        case ast.ImportFrom(module=module, level=0) as statement if module and module.startswith("acep"):
            original = next(alias.name for alias in statement.names if (alias.asname or alias.name) == names[0])
            return is_dotted_name(".".join((module, original, *names[1:])))
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return len(names) == 1
    return True  # what a value has, or a package from elsewhere, is not looked up


def _has_member(path: Path, defined: ast.ClassDef, name: str) -> bool:
    """Whether a class or a base of it has a member; the bases from elsewhere have whatever is asked for."""
    if name in _bound_by(defined.body):
        return True
    attributes = (node for node in ast.walk(defined) if isinstance(node, ast.Attribute))
    if any(isinstance(node.ctx, ast.Store) and node.attr == name for node in attributes):
        return True
    for base in defined.bases:
        text = ast.unparse(base).partition("[")[0]
        match _definitions(path).get(text):
            case ast.ClassDef() as base_class:
                if _has_member(path, base_class, name):
                    return True
            case ast.ImportFrom(module=module, level=0) if module and module.startswith("acep"):
                if is_dotted_name(f"{module}.{text}.{name}"):
                    return True
            case _:
                if text not in ("object", "Protocol", "Generic", "Enum", "IntEnum", "NamedTuple"):
                    return True
    return False

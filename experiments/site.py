"""Prepare pages and docstrings for the documentation site: a hook of MkDocs, and an extension of Griffe.

A link to a file of the repository that the site does not have becomes its text. ``README.md`` of the repository is the
front page of the site, and ``CONTRIBUTING.md`` and ``CHANGELOG.md`` are pages of it too. ``docs/results/index.md`` is
made from the headings of the pages in docs/results.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe

__all__ = [
    "PlainDocstrings",
    "as_markdown",
    "drop_links_outside",
    "from_root",
    "link_root_pages",
    "list_results",
    "name_languages_only",
    "on_files",
    "on_page_markdown",
]

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
INDEX = "results/index.md"
ROOT_PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""The pages beside docs/, with their names on the site."""
ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`~?([\w.]+)`")
FENCE = re.compile(r"^(\s*```\w+) no-run$", re.MULTILINE)
DOCTEST = re.compile(r"(?:^ *>>> .*\n?(?:^ *\S.*\n?)*)", re.MULTILINE)


def drop_links_outside(text: str, page: Path, docs: Path) -> str:
    """Return the text of a page in which links to files outside of the folder ``docs`` are their words alone.

    >>> drop_links_outside("[a](../README.md), [b](x.md#y)", Path("/r/docs/p.md"), Path("/r/docs"))
    'a, [b](x.md#y)'
    """

    def replace_link(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        return link[0] if target.is_relative_to(docs) and target.suffix != "" else link[1]

    return LINK.sub(replace_link, text)


def list_results(results: Path) -> str:
    """Return the page that lists the pages of a folder by their headings."""
    lines = []
    for page in sorted(results.glob("*.md")):
        heading = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"* [{heading}]({page.name})")
    return "# Results\n\nMeasured, and written by programs.\n\n" + "\n".join(lines) + "\n"


def link_root_pages(text: str) -> str:
    """Return the text of a page with links to the pages beside docs/ as the site has them.

    >>> link_root_pages("[how to](../../CONTRIBUTING.md#style), [a](../acep/README.md)")
    '[how to](../contributing.md#style), [a](../acep/README.md)'
    """
    for name, name_on_site in ROOT_PAGES.items():
        text = re.sub(rf"\]\(\.\./((?:\.\./)*){re.escape(name)}", rf"](\1{name_on_site}", text)
    return text


def from_root(text: str) -> str:
    """Return the text of a page beside docs/ with links and pictures as a page in docs/ has them.

    >>> from_root('<img src="docs/logo.svg"> [a](docs/howto/a.md), [b](notebooks/README.md), [c](CHANGELOG.md)')
    '<img src="logo.svg"> [a](howto/a.md), [b](../notebooks/README.md), [c](../CHANGELOG.md)'
    """
    text = re.sub(r"\]\((?!https?:|mailto:|#)", "](../", text)
    return text.replace("](../docs/", "](").replace('src="docs/', 'src="')


def on_files(files: Any, config: Any) -> Any:
    """Add the list of the results, and the pages beside docs/."""
    from mkdocs.structure.files import File

    docs = Path(config.docs_dir)
    files.append(File.generated(config, INDEX, content=list_results(docs / "results")))
    for name, name_on_site in ROOT_PAGES.items():
        text = from_root((docs.parent / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, name_on_site, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Cut links that lead out of the site, and what only tests read in the first lines of blocks of code."""
    del files
    docs = Path(config.docs_dir).resolve()
    text = link_root_pages(name_languages_only(markdown))
    return drop_links_outside(text, docs / page.file.src_uri, docs)


def name_languages_only(text: str) -> str:
    r"""Return the text of a page whose blocks of code name their language alone, as the site can read it.

    >>> name_languages_only("```console no-run\n$ make\n```")
    '```console\n$ make\n```'
    """
    return FENCE.sub(r"\1", text)


def as_markdown(docstring: str) -> str:
    r"""Return a docstring as Markdown: doctests as blocks of code, names in backticks.

    >>> as_markdown("See :func:`acep.match`.\n\n>>> 1 + 1\n2").split("\n")
    ['See `acep.match`.', '', '```python', '>>> 1 + 1', '2', '```']
    """
    text = DOCTEST.sub(lambda doctest: f"```python\n{doctest[0].rstrip()}\n```\n", docstring)
    return ROLE.sub(r"`\1`", text).rstrip()


class PlainDocstrings(griffe.Extension):
    """Turn each docstring into Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Convert the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

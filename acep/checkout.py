"""Run from a checkout: find ``acep.learning``, ``acep.sketches`` and an installed native core that fits its sources.

The two packages are beside ``acep/`` in the repository and are installed inside it. If the working directory is the
root of the repository, Python finds this ``acep/`` before any install; so do Spark's workers. Then a finder after all
others finds these two packages, and nothing else of the repository. It also makes the native core of an install
available; :mod:`acep.native.compiled` uses that only if it was built from the sources in the checkout.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

__all__ = ["digest", "is_lent", "watch"]

PACKAGE = Path(__file__).parent
ROOT = PACKAGE.parent
BESIDE = {"acep.learning": ROOT / "learning", "acep.sketches": ROOT / "sketches"}
CORE = "acep.native._native"
SOURCES = PACKAGE / "native" / "src"


class _Beside:
    """A finder on :data:`sys.meta_path` for the names that are in other places in a checkout than in an install."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find one of these names; return ``None`` for all others, and if it is missing."""
        del path, target
        if name in BESIDE:
            init = BESIDE[name] / "__init__.py"
            return spec_from_file_location(name, init) if init.is_file() else None
        if name == CORE:
            return next((spec_from_file_location(name, file) for file in _installed_cores()), None)
        return None


def watch() -> None:
    """Add the finder after all others, once."""
    if _Beside not in sys.meta_path:
        sys.meta_path.append(_Beside)


def _installed_cores() -> Iterator[Path]:
    for entry in sys.path:
        for suffix in EXTENSION_SUFFIXES:
            file = Path(entry, "acep", "native", f"_native{suffix}")
            if file.is_file():
                yield file


def is_lent(core: ModuleType) -> bool:
    """Return whether a native core belongs to an install other than the running package.

    >>> import acep.native
    >>> is_lent(acep.native)
    False
    """
    folders = [str(Path(folder)) for folder in sys.modules["acep.native"].__path__]
    return str(Path(str(core.__file__)).parent) not in folders


def digest() -> str | None:
    """Return the digest of a native core built from the sources of this checkout; ``None`` if there are no sources.

    ``acep/native/src/digest.cmake`` writes the same digest into a native core.
    """
    from hashlib import sha256

    files = sorted(
        file.relative_to(SOURCES).as_posix()
        for file in SOURCES.rglob("*")
        if file.suffix in (".cpp", ".hpp", ".cmake") or file.name == "CMakeLists.txt"
    )
    lines = "".join(f"{file} {sha256((SOURCES / file).read_bytes()).hexdigest()}\n" for file in files)
    return sha256(lines.encode()).hexdigest() if files else None

"""Build another commit of acep, and the Python that imports it, in a folder of its own below ``build/commits``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

__all__ = ["BUILT", "build_commit", "resolve_commit"]

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "commits"
DIGITS = 12
"""Of the name of a commit, how many digits a folder is called by."""


def resolve_commit(commit: str) -> str:
    """Return the full name of a commit. Raises :class:`RuntimeError` if the repository does not have it."""
    completed = subprocess.run(  # noqa: S603 - git, asked for a name
        ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode:
        raise RuntimeError(f"there is no commit {commit!r} in {ROOT.name}: git fetch --unshallow gets all of them")
    return completed.stdout.strip()


def build_commit(commit: str, folder: Path = BUILT, *, options: Sequence[str] = ()) -> Path:
    """Return a Python that imports acep as it is in a commit; its core is compiled at the first call, in minutes.

    It is the Python of this process, in a virtual environment that has all packages of this one but acep. ``options``:
    more of pip's. Raises :class:`RuntimeError` if there is no such commit, or if it cannot be built.
    """
    name = resolve_commit(commit)
    home = folder / f"{name[:DIGITS]}-{sys.implementation.cache_tag}"
    python, installed = home / "environment" / "bin" / "python", home / ".installed"
    if installed.is_file():
        return python
    shutil.rmtree(home, ignore_errors=True)
    sources = home / "sources"
    sources.parent.mkdir(parents=True)
    _run("git", "clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(sources))
    _run("git", "-C", str(sources), "checkout", "--quiet", "--detach", name)
    _run(sys.executable, "-m", "venv", "--without-pip", str(home / "environment"))
    packages = Path(_run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").strip())
    # Packages in such a file come after those of the environment itself, and the finder of an editable acep is not run.
    usual = dict.fromkeys(sysconfig.get_path(kind) for kind in ("platlib", "purelib"))
    (packages / "usual.pth").write_text("\n".join(usual) + "\n", encoding="utf-8")
    cached = ["-C", "cmake.define.CMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    _run(*install, "-C", f"build-dir={home / 'objects'}", *cached, *options, "--target", str(packages), str(sources))
    installed.touch()
    return python


def _run(*command: str) -> str:
    tools = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    environment = {"ACEP_REQUIRE_NATIVE": "1", **os.environ, "PATH": tools}
    completed = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)  # noqa: S603
    if completed.returncode:
        reason = (completed.stderr.strip() or completed.stdout.strip() or "it did not say why").splitlines()
        raise RuntimeError(f"{' '.join(command[:4])} failed:\n" + "\n".join(reason[-20:]))
    return completed.stdout

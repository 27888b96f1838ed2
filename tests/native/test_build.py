"""The compiled core is the one that the sources make, and an install without it says so."""

from __future__ import annotations

import os
import subprocess
import sys

import acep
from acep.native import compiled


def reason(missing: str) -> str:
    """Why acep has no core in a fresh interpreter, after code that changes what can be imported."""
    ask = "from acep.native import compiled; assert compiled.native() is None; print(compiled.why_not())"
    script = f"import sys, types\n{missing}\n{ask}"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_the_core_is_there_and_of_this_version() -> None:
    core = compiled.native()
    assert compiled.why_not() is None
    assert core is not None
    assert core.version == acep.__version__


def test_the_core_is_built_with_the_sanitizers_asked_for() -> None:
    from acep.native import _native

    assert _native.sanitizers == os.environ.get("ACEP_SANITIZE", "")


def test_every_bound_function_takes_types_of_python() -> None:
    from acep.native import _native

    # A caster that is not included shows as a C++ type; in a build of whole folders a neighbour may include it.
    members = [
        f for item in vars(_native).values() for f in (vars(item).values() if isinstance(item, type) else [item])
    ]
    signatures = [doc for member in members if isinstance(doc := getattr(member, "__doc__", None), str)]
    assert len(signatures) > 50
    assert [signature for signature in signatures if "std::" in signature] == []


def test_a_missing_core_gives_the_reason() -> None:
    assert reason("sys.modules['acep.native._native'] = None").startswith("the native core is not installed")


def test_a_core_of_another_version_is_not_used() -> None:
    said = reason(
        "core = sys.modules['acep.native._native'] = types.ModuleType('acep.native._native')\ncore.version = '0.0.1'"
    )
    assert "built for acep 0.0.1" in said
    assert acep.__version__ in said

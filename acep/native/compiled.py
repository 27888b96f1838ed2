"""The native core, where this install has it: made without a C++ compiler it has none, and the reference runs."""

from __future__ import annotations

from types import ModuleType
from typing import cast

from acep import __version__, checkout
from acep.errors import EngineError, warn_caller
from acep.matches.found_columns import Sort
from acep.plan.choice import Choice, choose
from acep.plan.compile import Plan

__all__ = ["REFERENCE", "chosen", "native", "native_sort", "warn_if_missing", "why_not"]

REFERENCE = "the reference engine runs the queries, slowly"
"""What a warning begins with where there is no native core."""


def _load() -> tuple[ModuleType | None, str | None]:
    try:
        # In this form a core that is missing can be told from one that is broken.
        import acep.native._native as _native
    except ModuleNotFoundError:
        return None, f"the native core is not installed; {_again('install acep again where there is a C++ compiler')}"
    except ImportError as error:
        return None, f"the native core cannot be loaded: {error}"
    if _native.version != __version__:
        built = f"the native core was built for acep {_native.version}, this is {__version__}"
        return None, f"{built}; {_again('install acep again')}"
    if checkout.is_lent(_native) and getattr(_native, "sources", None) != checkout.digest():
        other = "the native core of the acep that is installed was built from other sources than those that run"
        return None, f"{other}; {_again('install acep again')}"
    return _native, None


def _again(advice: str) -> str:
    """Say how acep gets its core: ``advice``, or, in a checkout, what builds one from its sources."""
    if not (checkout.ROOT / "pyproject.toml").is_file():
        return advice
    return f"`make native` or `pip install .` in {checkout.ROOT} builds one"


_MODULE, _REASON = _load()
_SAID: set[str] = set()  # of the reasons, those that a warning has told


def native() -> ModuleType | None:
    """The module `acep.native._native`, or None where it is missing or of another version of acep."""
    return _MODULE


def native_sort() -> Sort | None:
    """Return the native core's way to put matches in order, or None where there is no native core."""
    return None if _MODULE is None else cast("Sort", _MODULE.output_order)


def why_not() -> str | None:
    """Why there is no native core, in one line; None where there is."""
    return _REASON


def warn_if_missing(engine: str) -> None:
    """Warn, once in a process, where ``engine="auto"`` is the reference engine for want of a native core."""
    if engine != "auto" or _REASON is None or _REASON in _SAID:
        return
    _SAID.add(_REASON)
    warn_caller(f"{REFERENCE}: {_REASON}")


def chosen(plan: Plan, engine: str = "auto", output: str = "matches") -> Choice:
    """What runs a plan here. ``engine``: ``"auto"``, ``"native"`` or ``"reference"``.

    Raises :class:`EngineError` where the native core is asked for, and is not there or cannot run the plan.
    """
    if engine == "reference":
        return Choice("reference", "it was asked for")
    if _REASON is not None:
        if engine == "native":
            raise EngineError(_REASON, hint='engine="reference" runs every query')
        return Choice("reference", _REASON)
    choice = choose(plan, output)
    if engine == "native" and choice.engine == "reference":
        raise EngineError(f"the native core cannot run this query: {choice.why}", hint='leave it to engine="auto"')
    return choice

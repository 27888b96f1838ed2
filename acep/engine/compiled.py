"""The native core, where this install has it: made without a C++ compiler it has none, and the reference runs."""

from __future__ import annotations

from types import ModuleType

from acep import __version__
from acep.errors import EngineError
from acep.plan.choice import Choice, choose
from acep.plan.compile import Plan

__all__ = ["chosen", "native", "why_not"]


def _load() -> tuple[ModuleType | None, str | None]:
    try:
        # In this form a core that is missing can be told from one that is broken.
        import acep.engine._native as _native
    except ModuleNotFoundError:
        return None, "the native core is not installed; install acep again where there is a C++ compiler"
    except ImportError as error:
        return None, f"the native core cannot be loaded: {error}"
    if _native.version != __version__:
        built = f"the native core was built for acep {_native.version}, this is {__version__}"
        return None, f"{built}; install acep again"
    return _native, None


_MODULE, _REASON = _load()


def native() -> ModuleType | None:
    """The module `acep.engine._native`, or None where it is missing or of another version of acep."""
    return _MODULE


def why_not() -> str | None:
    """Why there is no native core, in one line; None where there is."""
    return _REASON


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

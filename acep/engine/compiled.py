"""The native core, where this install has it: made without a C++ compiler it has none, and the reference runs."""

from __future__ import annotations

from types import ModuleType

from acep import __version__

__all__ = ["native", "why_not"]


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

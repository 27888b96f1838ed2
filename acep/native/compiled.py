"""Load the native core (C++), and choose the engine of a plan; without a core the reference runtime runs it."""

from __future__ import annotations

from types import ModuleType
from typing import cast

from acep import __version__, checkout, logs
from acep.arrivals.ordered_rows import OrderedRows
from acep.errors import EngineError, warn_caller
from acep.matches.found_columns import Sort
from acep.plan.choice import EngineChoice, choose
from acep.plan.compile import Plan
from acep.plan.lower.stream_tables import StreamTables

__all__ = [
    "REFERENCE",
    "choose_engine",
    "native",
    "native_rows",
    "native_sort",
    "sources",
    "warn_if_missing",
    "why_not",
]


REFERENCE = "the reference engine runs the queries, slowly"
"""The first words of the warning about a missing native core."""


def _load() -> tuple[ModuleType | None, str | None]:
    try:
        # This form of import tells a missing core from a broken one.
        import acep.native._native as _native
    except ModuleNotFoundError:
        return (
            None,
            f"the native core is not installed; {_advice_text('install acep again where there is a C++ compiler')}",
        )
    except ImportError as error:
        return None, f"the native core cannot be loaded: {error}"
    if _native.version != __version__:
        mismatch = f"the native core was built for acep {_native.version}, this is {__version__}"
        return None, f"{mismatch}; {_advice_text('install acep again')}"
    if checkout.is_lent(_native) and getattr(_native, "sources", None) != checkout.digest():
        mismatch = "the native core of the acep that is installed was built from other sources than those that run"
        return None, f"{mismatch}; {_advice_text('install acep again')}"
    return _native, None


def _advice_text(advice: str) -> str:
    """Say how to get a native core: ``advice``, or, in a checkout, the commands that build one from its sources."""
    if not (checkout.ROOT / "pyproject.toml").is_file():
        return advice
    return f"`make native` or `pip install .` in {checkout.ROOT} builds one"


_MODULE, _REASON = _load()
_WARNED_REASONS: set[str] = set()  # reasons already warned about


def native() -> ModuleType | None:
    """Return the module `acep.native._native`, or None if it is missing or was built for another acep."""
    return _MODULE


def sources() -> str | None:
    """Return the digest of the sources that the native core was built from, or None if there is no native core."""
    return None if _MODULE is None else cast("str | None", getattr(_MODULE, "sources", None))


def native_sort() -> Sort | None:
    """Return the native core's way to put matches in order, or None where there is no native core."""
    return None if _MODULE is None else cast("Sort", _MODULE.output_order)


def native_rows() -> type[OrderedRows]:
    """Return the class of the native core that does what :class:`OrderedRows` does, or that one without a core."""
    return OrderedRows if _MODULE is None else cast("type[OrderedRows]", _MODULE.OrderedRows)


def why_not() -> str | None:
    """Return in one line why there is no native core, or None if there is one."""
    return _REASON


def warn_if_missing(engine: str) -> None:
    """Warn once per process if ``engine="auto"`` means the reference runtime because there is no native core."""
    if engine != "auto" or _REASON is None or _REASON in _WARNED_REASONS:
        return
    _WARNED_REASONS.add(_REASON)
    warn_caller(f"{REFERENCE}: {_REASON}")


def choose_engine(
    plan: Plan, engine: str = "auto", output: str = "matches", before: StreamTables | None = None
) -> EngineChoice:
    """Return the engine that runs a plan. ``engine``: ``"auto"``, ``"native"`` or ``"reference"``. ``before``: the
    tables of the plans before it in a stream.

    Raises :class:`EngineError` for ``"native"`` if there is no native core or it cannot run the plan.
    """
    if engine == "reference":
        return EngineChoice("reference", "it was asked for")
    if _REASON is not None:
        if engine == "native":
            raise EngineError(_REASON, hint='engine="reference" runs every query', code="engine_missing")
        return EngineChoice("reference", _REASON)
    choice = choose(plan, output, before)
    logs.debug(__name__, "the %s engine runs the query: %s", choice.engine, choice.why)
    if engine == "native" and choice.engine == "reference":
        raise EngineError(f"the native core cannot run this query: {choice.why}", hint='leave it to engine="auto"')
    return choice

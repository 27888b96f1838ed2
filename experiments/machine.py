"""The machine that a benchmark runs on: its description, one core of it, and the memory of a process."""

from __future__ import annotations

import datetime as dt
import os
import platform
import resource
from importlib import metadata
from pathlib import Path
from typing import Any

from experiments.ages import SOURCES

__all__ = ["describe_machine", "find_started", "limit_memory", "memory", "peak_memory", "pin", "reset_peak"]

LIBRARIES = ("acep", "numpy", "pyarrow")
THIS_PROCESS = Path("/proc/self")


def describe_machine() -> dict[str, Any]:
    """Return the processor, cores, memory, system, versions, the date and a digest of all sources, as they are written
    beside results. On a page the digest is that of what it measures (:func:`experiments.results.write_page`)."""
    return {
        "processor": _field(Path("/proc/cpuinfo"), "model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in LIBRARIES},
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "sources": SOURCES,
    }


def pin() -> int:
    """Keep this process, and all that it starts, on one core: the last one that it may use. Return the number of that
    core."""
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def limit_memory(max_bytes: int) -> None:
    """Limit this process, from now on, to ``max_bytes`` bytes mapped; beyond them it gets a :class:`MemoryError`."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(
        resource.RLIMIT_AS, (max_bytes if hard == resource.RLIM_INFINITY else min(max_bytes, hard), hard)
    )


def reset_peak() -> int | None:
    """Forget the greatest memory of this process so far; return its present memory, in bytes (``None``: the system
    cannot)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return memory()


def memory(process: Path = THIS_PROCESS) -> int | None:
    """Return the resident memory of a process, a folder of ``/proc``, in bytes (``None``: the system does not say)."""
    return _kilobytes("VmRSS", process)


def peak_memory() -> int | None:
    """Return the most memory that this process has had since it began, or since :func:`reset_peak`; in bytes."""
    return _kilobytes("VmHWM")


def find_started(part: bytes) -> list[Path]:
    """Return the processes, as folders of ``/proc``, that this one has started, itself or by others, and whose command
    has this part."""
    parents, commands = dict[int, int](), dict[int, bytes]()
    for process in THIS_PROCESS.parent.glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            commands[int(process.name)] = (process / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        parents[int(process.name)] = int(fields[1])

    def is_descendant(number: int) -> bool:
        return (above := parents.get(number)) is not None and (above == os.getpid() or is_descendant(above))

    return [
        THIS_PROCESS.parent / str(n) for n, command in sorted(commands.items()) if part in command and is_descendant(n)
    ]


def _kilobytes(name: str, process: Path = THIS_PROCESS) -> int | None:
    text = _field(process / "status", name)
    return int(text.split()[0]) * 1024 if text else None


def _field(file: Path, name: str) -> str | None:
    try:
        text = file.read_text()
    except OSError:
        return None
    values = (line.partition(":")[2].strip() for line in text.splitlines() if line.partition(":")[0].strip() == name)
    return next(values, None)

"""The Java peers: their jars, the compiler, and one measurement in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Outcome", "compile_program", "run_java"]

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).parent / "java"
BUILT = ROOT / "build" / "peers"
# Where each peer's jars are in the site-packages of its environment.
JARS = {"flink": "pyflink/lib", "siddhi": "__PySiddhiProxy/target/lib"}
OPEN = ("java.base/java.util", "java.base/java.lang", "java.base/java.time")  # Flink's serializers look inside


@dataclass(frozen=True)
class Outcome:
    """The result of a peer on its prefix: ``rows``, ``matches``, wall and processor seconds of the best of ``runs``; or
    an ``error``."""

    rows: int = 0
    matches: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    runs: int = 0
    spread: float = 0.0
    error: str | None = None


def compile_program(peer: str, environment: Path) -> str:
    """Compile the program of a peer (``flink``, ``siddhi``), and return its class path.

    Raises :class:`RuntimeError` where there is no Java compiler, no jars, or the program does not compile.
    """
    folders = list(environment.glob(f"lib/python3.*/site-packages/{JARS[peer]}"))
    if not folders:
        raise RuntimeError(f"no jars of {peer} in {environment}: make bench-peers installs them")
    jars = f"{folders[0]}{os.sep}*"
    classes = BUILT / peer
    sources = sorted(path for name in ("common", peer) for path in (SOURCES / name).glob("*.java"))
    newest = max(path.stat().st_mtime for path in sources)
    stamp = classes / ".compiled"
    if not stamp.is_file() or stamp.stat().st_mtime < newest:
        classes.mkdir(parents=True, exist_ok=True)
        command = [_tool("javac"), "-nowarn", "-d", str(classes), "-cp", jars, *map(str, sources)]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the compiler found
        if completed.returncode:
            raise RuntimeError(completed.stderr)
        stamp.touch()
    return f"{classes}{os.pathsep}{jars}"


def run_java(classpath: str, program: str, arguments: list[str], seconds: float) -> Outcome:
    """Run a program that prints its outcome as JSON; given up after so many seconds."""
    opened = [f"--add-opens={module}=ALL-UNNAMED" for module in OPEN]
    command = [_tool("java"), "-Xmx6g", *opened, "-cp", classpath, program, *arguments]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        return Outcome(error=f"did not finish in {seconds:.0f} s")
    for line in reversed(completed.stdout.splitlines()):
        if line.startswith("{"):
            return Outcome(**json.loads(line))
    causes = [
        line for line in (completed.stderr + completed.stdout).splitlines() if "Exception" in line or "Error" in line
    ]
    return Outcome(error=causes[-1] if causes else "no result")


def _tool(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    home_tool = Path(home) / "bin" / name if home else None
    path = str(home_tool) if home_tool is not None and home_tool.is_file() else shutil.which(name)
    if path is None:
        raise RuntimeError(f"the peers need a JDK, and there is no {name}")
    return path

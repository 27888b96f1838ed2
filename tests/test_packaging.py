"""What a wheel holds: acep with learning and sketches inside it, grammars, types and licence, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import pytest

import acep

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)],
        check=True,
    )
    (file,) = folder.glob("*.whl")
    assert file.name == f"acep-{acep.__version__}-py3-none-any.whl"
    with ZipFile(file) as archive:
        yield archive


def shipped(folder: str, installed: str) -> set[str]:
    """The files of a folder of the repository, as a wheel should name them."""
    files = (path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {f"{installed}/{path.relative_to(ROOT / folder).as_posix()}" for path in files}


def test_the_wheel_holds_acep_and_nothing_else(wheel: ZipFile) -> None:
    held = {name for name in wheel.namelist() if not name.split("/")[0].endswith(".dist-info")}
    assert held == shipped("acep", "acep") | shipped("learning", "acep/learning") | shipped("sketches", "acep/sketches")


def test_grammars_and_the_mark_of_types_are_shipped(wheel: ZipFile) -> None:
    held = wheel.namelist()
    assert "acep/py.typed" in held
    assert {"acep/learning/__init__.py", "acep/sketches/__init__.py"} <= set(held)
    assert any(name.startswith("acep/pattern/") and name.endswith(".lark") for name in held)


def test_the_metadata_tell_version_licence_and_needs(wheel: ZipFile) -> None:
    info = f"acep-{acep.__version__}.dist-info"
    told = HeaderParser().parsestr(wheel.read(f"{info}/METADATA").decode())
    assert (told["Version"], told["License-Expression"]) == (acep.__version__, "Apache-2.0")
    assert wheel.read(f"{info}/licenses/LICENSE").decode() == (ROOT / "LICENSE").read_text(encoding="utf-8")
    needed = {need.split(">")[0] for need in told.get_all("Requires-Dist", []) if "extra ==" not in need}
    assert needed == {"lark", "numpy", "pyarrow"}
    commands = ConfigParser()
    commands.read_string(wheel.read(f"{info}/entry_points.txt").decode())
    assert dict(commands["console_scripts"]) == {"acep": "acep.cli:main"}

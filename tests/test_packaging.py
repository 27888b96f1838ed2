"""What is shipped: in the wheel acep with learning and sketches inside it, grammars, types, licence and the compiled
native core; its sources in the source distribution. Without a compiler the wheel has no core, and works.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from configparser import ConfigParser
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import pytest

import acep

pytestmark = pytest.mark.xdist_group("packaging")  # a wheel takes long to build: once will do

ROOT = Path(__file__).resolve().parents[1]
CORE = f"acep/engine/_native{sysconfig.get_config_var('EXT_SUFFIX')}"
SOURCES = "acep/engine/native"
NO_COMPILER = {"CC": "/nonexistent", "CXX": "/nonexistent", "ACEP_REQUIRE_NATIVE": "0"}


def built(folder: Path, *options: str, **environment: str) -> Path:
    """The wheel of the working tree, built by the tools that are installed."""
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), *options]
    subprocess.run([*pip, str(ROOT)], check=True, env=os.environ | environment)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZipFile]:
    # What it holds does not depend on how well it is compiled, and this is much the faster build.
    file = built(tmp_path_factory.mktemp("wheel"), "-C", "cmake.build-type=Debug", ACEP_REQUIRE_NATIVE="1")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert file.name == f"acep-{acep.__version__}-{python}-{python}-{platform}.whl"
    with ZipFile(file) as archive:
        yield archive


@pytest.fixture(scope="module")
def pure_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = built(tmp_path_factory.mktemp("pure"), **NO_COMPILER)
    assert file.name == f"acep-{acep.__version__}-py3-none-any.whl"
    return file


def held(archive: ZipFile) -> set[str]:
    """The files of a wheel, without those that describe it."""
    return {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}


def shipped(folder: str, installed: str) -> set[str]:
    """The files of a folder of the repository, as a wheel should name them."""
    files = (path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {f"{installed}/{path.relative_to(ROOT / folder).as_posix()}" for path in files}


def all_shipped() -> set[str]:
    """The files that every wheel should hold."""
    ours = shipped("acep", "acep") | shipped("learning", "acep/learning") | shipped("sketches", "acep/sketches")
    return {name for name in ours if not name.startswith(f"{SOURCES}/")}


def test_the_wheel_holds_acep_and_nothing_else(wheel: ZipFile) -> None:
    assert held(wheel) == all_shipped() | {CORE}


def test_grammars_and_types_are_shipped(wheel: ZipFile) -> None:
    names = held(wheel)
    assert {"acep/py.typed", "acep/engine/_native.pyi"} <= names
    assert {"acep/learning/__init__.py", "acep/sketches/__init__.py"} <= names
    grammars = {path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "acep/pattern").glob("*.lark")}
    assert grammars
    assert {f"{grammar}.{suffix}" for grammar in grammars for suffix in ("lark", "json")} <= names


def test_without_a_compiler_the_wheel_is_pure_python_and_works(pure_wheel: Path, tmp_path: Path) -> None:
    with ZipFile(pure_wheel) as archive:
        assert held(archive) == all_shipped()
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path), str(pure_wheel)]
    subprocess.run(install, check=True)
    script = """
import acep
from acep.engine import compiled
found = acep.match({"ts": [1, 2, 3], "type": ["a", "x", "b"]}, acep.regex("ab", within=5))
print(acep.__file__, [match.bindings for match in found], compiled.why_not(), sep="\\n")
"""
    # -S: no site, and so no editable install that would come first.
    path = os.pathsep.join((str(tmp_path), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
    )
    where, found, why = done.stdout.splitlines()
    assert Path(where).is_relative_to(tmp_path)
    assert found == "[{'a': (0,), 'b': (2,)}]"
    assert why.startswith("the native core is not installed")


def test_a_core_that_is_required_is_not_left_out(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        built(tmp_path, **NO_COMPILER | {"ACEP_REQUIRE_NATIVE": "1"})


def test_the_source_distribution_holds_the_sources_of_the_core(tmp_path: Path) -> None:
    build = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    with tarfile.open(tmp_path / f"acep-{acep.__version__}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / SOURCES).iterdir()}
    assert {f"{SOURCES}/CMakeLists.txt", f"{SOURCES}/module.cpp"} <= sources <= names


def test_the_metadata_tell_version_licence_and_needs(wheel: ZipFile) -> None:
    info = f"acep-{acep.__version__}.dist-info"
    told = HeaderParser().parsestr(wheel.read(f"{info}/METADATA").decode())
    assert (told["Version"], told["License-Expression"]) == (acep.__version__, "Apache-2.0")
    assert wheel.read(f"{info}/licenses/LICENSE").decode() == (ROOT / "LICENSE").read_text(encoding="utf-8")
    needed = {need.split(">")[0] for need in told.get_all("Requires-Dist", []) if "extra ==" not in need}
    assert needed == {"bitarray", "mmh3", "numpy", "pyarrow"}
    commands = ConfigParser()
    commands.read_string(wheel.read(f"{info}/entry_points.txt").decode())
    assert dict(commands["console_scripts"]) == {"acep": "acep.cli:main"}

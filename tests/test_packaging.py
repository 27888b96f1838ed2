"""What is shipped: in the wheel acep with learning and sketches inside it, grammars, types, licence and the compiled
native core; its sources in the source distribution. Without a compiler the wheel has no core, and works. From the root
of the repository acep runs whatever is installed.
"""

from __future__ import annotations

import os
import re
import shutil
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
from acep import checkout
from acep.native.compiled import REFERENCE

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("packaging")]  # a wheel takes long: one will do

ROOT = Path(__file__).resolve().parents[1]
CORE = f"acep/native/_native{sysconfig.get_config_var('EXT_SUFFIX')}"
SOURCES = "acep/native/src"
NO_COMPILER = {"CC": "/nonexistent", "CXX": "/nonexistent", "ACEP_REQUIRE_NATIVE": "0"}


def built(folder: Path, *options: str, source: Path = ROOT, **environment: str) -> Path:
    """The wheel of the working tree or of a source archive, built by the tools that are installed."""
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), *options]
    subprocess.run([*pip, str(source)], check=True, env=os.environ | environment)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZipFile]:
    # The objects of this environment, where they are there; else the build that is much the faster one, as what a wheel
    # holds does not depend on how well it is compiled.
    objects = ROOT / "build" / {".venv": "native", ".venv-lowest": "lowest"}.get(Path(sys.prefix).name, "none")
    if (objects / "build.ninja").exists():
        options = ("-C", f"build-dir={objects}", "-C", "cmake.define.ACEP_WERROR=ON")
    else:
        options = ("-C", "cmake.build-type=Debug")
    file = built(tmp_path_factory.mktemp("wheel"), *options, ACEP_REQUIRE_NATIVE="1")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert file.name == f"acep-{acep.__version__}-{python}-{python}-{platform}.whl"
    with ZipFile(file) as archive:
        yield archive


@pytest.fixture(scope="module")
def source_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    build = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(folder)], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    return folder / f"acep-{acep.__version__}.tar.gz"


@pytest.fixture(scope="module")
def pure_wheel(source_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the source archive where there is no compiler. With one, `make test-wheel` builds it from there."""
    file = built(tmp_path_factory.mktemp("pure"), source=source_archive, **NO_COMPILER)
    assert file.name == f"acep-{acep.__version__}-py3-none-any.whl"
    return file


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of what is installed besides acep."""
    folder = tmp_path_factory.mktemp("others")
    ours = ("acep", "_editable", "__pycache__", "sitecustomize")
    for site in (Path(entry) for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")):
        for entry in site.iterdir():
            if not entry.name.startswith(ours) and entry.suffix != ".pth" and not (folder / entry.name).exists():
                (folder / entry.name).symlink_to(entry)
    return folder


def held(archive: ZipFile) -> set[str]:
    """The files of a wheel, without those that describe it."""
    return {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}


def shipped(folder: str, installed: str) -> set[str]:
    """The files of a folder of the repository, as a wheel should name them."""
    made = {"__pycache__", f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"}
    files = (path for path in (ROOT / folder).rglob("*") if path.is_file() and not made & {*path.parts})
    return {f"{installed}/{path.relative_to(ROOT / folder).as_posix()}" for path in files}


def all_shipped() -> set[str]:
    """The files that every wheel should hold."""
    ours = shipped("acep", "acep") | shipped("learning", "acep/learning") | shipped("sketches", "acep/sketches")
    return {name for name in ours if not name.startswith(f"{SOURCES}/")}


def test_the_wheel_holds_acep_and_nothing_else(wheel: ZipFile) -> None:
    assert held(wheel) == all_shipped() | {CORE}


def test_grammars_and_types_are_shipped(wheel: ZipFile) -> None:
    names = held(wheel)
    assert {"acep/py.typed", "acep/native/_native.pyi"} <= names
    assert {"acep/learning/__init__.py", "acep/sketches/__init__.py"} <= names
    grammars = {
        path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "acep/pattern/text").glob("*.lark")
    }
    assert grammars
    assert {f"{grammar}.{suffix}" for grammar in grammars for suffix in ("lark", "json")} <= names


def test_without_a_compiler_the_wheel_is_pure_python_and_works(pure_wheel: Path, others: Path, tmp_path: Path) -> None:
    with ZipFile(pure_wheel) as archive:
        assert held(archive) == all_shipped()
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path), str(pure_wheel)]
    subprocess.run(install, check=True)
    script = """
import acep
from acep.native import compiled
found = acep.match({"ts": [1, 2, 3], "type": ["a", "x", "b"]}, acep.regex("ab", within=5))
print(acep.__file__, [match.bindings for match in found], compiled.why_not(), sep="\\n")
"""
    # -S: no site, and so no editable install that would come first.
    path = os.pathsep.join((str(tmp_path), str(others)))
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


def test_a_core_that_is_required_is_not_left_out(source_archive: Path, tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        built(tmp_path, source=source_archive, **NO_COMPILER | {"ACEP_REQUIRE_NATIVE": "1"})


def test_the_source_distribution_holds_the_sources_of_the_core(source_archive: Path) -> None:
    with tarfile.open(source_archive) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / SOURCES).rglob("*") if path.is_file()}
    assert {f"{SOURCES}/CMakeLists.txt", f"{SOURCES}/python/module.cpp"} <= sources <= names
    # And what the tests need.
    folders = ("docs", "examples", "experiments", "learning", "notebooks", "sketches", "tests")
    needed = {name for folder in folders for name in shipped(folder, folder)} | {
        "Makefile",
        "README.md",
        "pyproject.toml",
    }
    needed = {name for name in needed if not name.startswith("docs/results/raw/")}  # which git ignores
    assert {name for name in needed if "/." not in name} - names == set()


def test_the_metadata_tell_version_licence_and_needs(wheel: ZipFile) -> None:
    info = f"acep-{acep.__version__}.dist-info"
    told = HeaderParser().parsestr(wheel.read(f"{info}/METADATA").decode())
    assert (told["Version"], told["License-Expression"]) == (acep.__version__, "Apache-2.0")
    assert wheel.read(f"{info}/licenses/LICENSE").decode() == (ROOT / "LICENSE").read_text(encoding="utf-8")
    needed = {need.split(">")[0] for need in told.get_all("Requires-Dist", []) if "extra ==" not in need}
    assert needed == {"bitarray", "mmh3", "numpy", "pyarrow", "sqlglot"}
    commands = ConfigParser()
    commands.read_string(wheel.read(f"{info}/entry_points.txt").decode())
    assert dict(commands["console_scripts"]) == {"acep": "acep.cli:main"}


def test_the_classifiers_name_the_versions_of_python_that_were_tried(wheel: ZipFile) -> None:
    told = HeaderParser().parsestr(wheel.read(f"acep-{acep.__version__}.dist-info/METADATA").decode())
    named = [one.removeprefix("Programming Language :: Python :: ") for one in told.get_all("Classifier", [])]
    page = (ROOT / "docs" / "howto" / "installing.md").read_text(encoding="utf-8")
    assert [one for one in named if one.startswith("3.")] == re.findall(
        r"^\| Linux on x86-64, Python (3\.\d+) \|", page, re.MULTILINE
    )
    assert {"Typing :: Typed", "Operating System :: POSIX :: Linux"} <= set(told.get_all("Classifier", []))


# From the root of the repository ------------------------------------------------------------------

TRY = """
import sys, warnings
import acep.learning.policy, acep.sketches.count_min
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    found = acep.match({"ts": [1, 2, 3], "type": ["a", "x", "b"]}, acep.regex("ab", within=5))
print(acep.__file__, acep.learning.__file__, acep.sketches.__file__, sep="\\n")
print([match.bindings for match in found], getattr(sys.modules.get("acep.native._native"), "__file__", None), sep="\\n")
print("\\n".join(str(one.message) for one in told) or "no warning")
ours = ("acep", "learning", "sketches")
files = [one.__file__ for name, one in sys.modules.items() if name.partition(".")[0] in ours]
assert len(files) == len(set(files)) > 50, "a module is loaded twice"
for name in ("tests", "examples", "learning.nothing", "native._nothing"):
    try:
        __import__("acep." + name)
    except ModuleNotFoundError as error:
        assert error.name == "acep." + name
    else:
        raise AssertionError(name)
"""


def environment(folder: Path, others: Path) -> Path:
    """A new environment without acep; its packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "others.pth").write_text(f"{others}\n")
    return site


def installed(wheel: ZipFile, site: Path) -> Path:
    """The packages of an environment after an install of a wheel, not editable."""
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), str(wheel.filename)]
    subprocess.run(install, check=True)
    return site


def from_the_root(site: Path, script: str = TRY, root: Path = ROOT) -> list[str]:
    """Run a script by an environment's Python in the root of the repository, and return its output."""
    python = site.parents[2] / "bin" / "python"
    bare = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    done = subprocess.run(
        [python, "-c", script], capture_output=True, text=True, check=False, cwd=root, env=bare, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


HERE = [str(ROOT / name / "__init__.py") for name in ("acep", "learning", "sketches")]
FOUND = "[{'a': (0,), 'b': (2,)}]"


def test_from_the_root_with_nothing_installed(others: Path, tmp_path: Path) -> None:
    *said, warning = from_the_root(environment(tmp_path, others))
    assert said == [*HERE, FOUND, "None"]
    assert warning.startswith(f"{REFERENCE}: the native core is not installed; `make native` or `pip install .` in ")


def test_from_the_root_with_an_install_of_the_same_sources(wheel: ZipFile, others: Path, tmp_path: Path) -> None:
    site = installed(wheel, environment(tmp_path, others))
    assert from_the_root(site) == [*HERE, FOUND, str(site / CORE), "no warning"]


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("acep/__init__.py", f'"{acep.__version__}"', '"9.9.9"', f"built for acep {acep.__version__}, this is 9.9.9"),
        (f"{SOURCES}/python/module.cpp", "nanobind", "nanobind ", "was built from other sources than those that run"),
    ],
    ids=["another version", "other sources"],
)
def test_a_core_that_does_not_fit_is_not_used(
    wheel: ZipFile, others: Path, tmp_path: Path, file: str, old: str, new: str, said: str
) -> None:
    root = tmp_path / "checkout"
    for folder in ("acep", "learning", "sketches"):
        shutil.copytree(ROOT / folder, root / folder)
    shutil.copy(ROOT / "pyproject.toml", root)
    text = (root / file).read_text(encoding="utf-8")
    assert old in text
    (root / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    *_, found, _, warning = from_the_root(installed(wheel, environment(tmp_path / "venv", others)), root=root)
    assert found == FOUND
    assert warning.startswith(f"{REFERENCE}: the native core ")
    assert f"{said}; `make native` or `pip install .` in {root} builds one" in warning


def test_the_core_knows_its_sources() -> None:
    from acep.native import _native

    assert _native.sources == checkout.digest()


@pytest.mark.spark
@pytest.mark.whole
def test_from_the_root_on_spark(wheel: ZipFile, others: Path, tmp_path: Path) -> None:
    """Workers have the root of the repository as their working directory, and so on their path."""
    script = """
import acep, acep.spark
session = acep.spark.get_session()
events = session.createDataFrame([(1, 1, "a", 7), (2, 2, "b", 7)], "ts long, n long, type string, k long")
found = acep.spark.match(events, acep.regex("ab", within=5, by="k"), seq="n", id="n")
print([row.bindings["a"] for row in found.collect()])
"""
    (found,) = from_the_root(installed(wheel, environment(tmp_path, others)), script)
    assert found == "[[1]]"

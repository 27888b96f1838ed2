"""The pages about deploying: commands that are not run there exist, and files are as their tools read them."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from acep.cli import main
from experiments import device
from tests.test_docs import ROOT, blocks, commands

DEVICE = ROOT / "docs" / "howto" / "deploying_on_a_device.md"
SPARK = ROOT / "docs" / "howto" / "deploying_on_spark.md"


def unit() -> ConfigParser:
    """The service of the page, as systemd reads it."""
    (text,) = [block.text for block in blocks(DEVICE) if block.language == "ini"]
    service = ConfigParser(interpolation=None)
    service.optionxform = str  # type: ignore[assignment,method-assign]
    service.read_string(text)
    return service


def not_run(page: Path) -> list[list[str]]:
    """The words of the commands that the page shows and test_docs.py does not run."""
    found = [block for block in blocks(page) if block.language == "console" and not block.runs]
    return [shlex.split(command) for block in found for command, _ in commands(block.text)]


def test_the_service_starts_a_command_that_there_is(tmp_path: Path) -> None:
    program, *args = shlex.split(unit()["Service"]["ExecStart"])
    assert program == "/opt/acep/bin/acep"
    (tmp_path / "rise.acep").write_text("PATTERN SEQ(Reading a, Reading b) WHERE [sensor] WITHIN 60")
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "1.csv").write_text("ts,type,sensor\n1,Reading,7\n2,Reading,7\n")
    here = [arg.replace("/etc/acep", str(tmp_path)).replace("/var/lib/acep", str(tmp_path)) for arg in args]
    assert main([*here, "--end"]) == 0
    assert any((tmp_path / "found").iterdir())


def test_the_service_takes_an_interruption_for_success() -> None:
    assert (unit()["Service"]["KillSignal"], unit()["Service"]["SuccessExitStatus"]) == ("SIGINT", "130")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd")
def test_systemd_reads_the_service(tmp_path: Path) -> None:
    (text,) = [block.text for block in blocks(DEVICE) if block.language == "ini"]
    file = tmp_path / "acep.service"
    file.write_text(text.replace("/opt/acep/bin/acep", sys.executable).replace("User=acep\n", ""))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)], capture_output=True, text=True, check=False
    )
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "acep.service" in line]
    assert not ours, done.stderr


def test_programs_and_targets_of_both_pages_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    lines = not_run(DEVICE) + not_run(SPARK)
    assert len(lines) > 12
    for words in lines:
        match words:
            case ["make", target, *_]:
                assert target in targets
            case ["python", "-m", module, *_]:
                assert module == "experiments.device"
            case [program, *args] if program.endswith("bin/acep"):
                assert main(args) == 0
            case ["spark-submit", *args]:
                assert {"--archives", "environment.tar.gz#environment"} <= set(args)


def test_a_packed_environment_has_the_wheel_that_is_built() -> None:
    import acep

    names = [word for words in not_run(SPARK) for word in words if ".whl" in word]
    assert names == [f"dist/acep-{acep.__version__}-cp311-cp311-linux_x86_64.whl[spark]"]


def test_the_commands_for_a_device_without_an_index_are_tried() -> None:
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ntest-wheel:")[2].partition("\ndefine ")[0]
    tried = [{*line.split()} for line in recipe.splitlines()]
    shown = [{*words} for words in not_run(DEVICE) if {"download", "--no-index"} & {*words}]
    assert len(shown) == 2
    for words in shown:
        options = {word for word in words if word.startswith("--") or word in ("download", "install", ":all:")}
        assert any(options <= line for line in tried)


@pytest.mark.long
def test_what_a_device_needs() -> None:
    # In a process of its own, as it measures the memory of this one.
    command = [sys.executable, "-m", "experiments.device", "--events", "1000"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert all(f"| {package} |" in shown for package in (*device.NEEDED, "together"))
    page = (ROOT / "docs" / "results" / "device.md").read_text(encoding="utf-8")
    assert device.QUERY in page
    (memory,) = re.findall(r"\| one event \|.* ([\d,]+) MB \|", page)
    (here,) = re.findall(r"\| one event \|.* ([\d,]+) MB \|", shown)
    assert int(here.replace(",", "")) < 1.5 * int(memory.replace(",", "")), "a page of another time"

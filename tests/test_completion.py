"""``acep completion``: scripts for shells, of which bash is tried."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from acep.cli import main


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def completed(script: str, folder: Path, *words: str) -> set[str]:
    """The completions that bash offers for the last of some words."""
    last = len(words)
    code = f"""{script}
        COMP_WORDS=(acep {" ".join(f"'{word}'" for word in words)}); COMP_CWORD={last}; COMP_LINE="acep $*"
        spec=($(complete -p acep)); function=${{spec[-2]}}
        $function acep '{words[-1]}' '{words[-2] if last > 1 else "acep"}'
        printf '%s\\n' "${{COMPREPLY[@]}}\""""
    done = subprocess.run(["bash", "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {line.strip() for line in done.stdout.splitlines() if line.strip()}


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_options_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "events.csv").touch()
    text = script("bash", capsys)
    assert completed(text, tmp_path, "ma") == {"match"}
    assert {"match", "follow", "why", "completion"} <= completed(text, tmp_path, "")
    assert completed(text, tmp_path, "match", "--out") == {"--output"}
    assert completed(text, tmp_path, "follow", "--out") == {"--output", "--output-format"}
    assert completed(text, tmp_path, "match", "--log-level", "wa") == {"warning"}
    assert completed(text, tmp_path, "match", "ev") == {"events.csv"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_has_all_commands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    for word in ("match", "follow", "replay", "tune", "history", "no-progress", "log-level"):
        assert word in text


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_scripts(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    (tmp_path / "script").write_text(script(shell, capsys))
    assert subprocess.run([shell, "-n", str(tmp_path / "script")], check=False).returncode == 0


def test_without_shtab(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "acep: shtab is not installed, and completion needs it [engine_missing]",
        "hint: pip install 'acep[completion]'",
    ]

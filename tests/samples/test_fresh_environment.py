"""The README in a fresh environment: its set-up commands and examples, in the order of the file."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.samples.pages import BLOCK, ROOT, Files, check_block

_LIMIT = 540
"""Seconds for one set-up command: the largest extra is 900 MB."""


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("bash") is None, reason="needs Linux and bash"
)
def test_the_readme_runs_in_a_fresh_environment(tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    for name in ("ir_scatter", "cli", "samples"):  # ROOT need not be a git repository: an archive has none
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in {"NO_COLOR", "FORCE_COLOR", "PYTHONPATH", "VIRTUAL_ENV"}
    } | {
        "PATH": f"{folder / '.venv' / 'bin'}{os.pathsep}/usr/local/bin{os.pathsep}/usr/bin{os.pathsep}/bin",
        "COLUMNS": "80",
        "LC_ALL": "C.UTF-8",
        "XDG_CACHE_HOME": str(folder / ".cache"),
        "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip")),
    }
    text, files = (ROOT / "README.md").read_text(encoding="utf-8"), Files(folder)
    wrong = list[str]()
    for block in BLOCK.finditer(text):
        if block[2] == "sh" and "pytest" not in block[3]:  # that line is for those who work on ir_scatter
            done = subprocess.run(
                ["bash", "-c", block[3]],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_LIMIT,
            )
            if done.returncode and re.search(
                r"Could not find a version|No matching distribution|ConnectionError", done.stderr
            ):
                pytest.skip(f"no package index: {done.stderr.strip().splitlines()[-1]}")
            assert done.returncode == 0, f"$ {block[3]}{done.stdout}{done.stderr}"
        elif block[1]:
            files.add(block[1], block[2], block[3])
        elif block[2] == "console":
            wrong += check_block(block[3], folder, environment)
    assert not wrong, "\n\n".join(wrong)

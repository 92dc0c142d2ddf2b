"""The samples are what their script writes."""

import hashlib
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from samples.make_samples import MADE_WITH

ROOT = Path(__file__).parents[2]
SUFFIXES = {".xml", ".bin", ".onnx"}


def _hashes(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _written(folder: Path) -> dict[str, str]:
    command = [sys.executable, "-m", "samples.make_samples", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "PYTHONHASHSEED": "random"})
    return _hashes(folder)


@pytest.mark.openvino
def test_the_script_writes_the_same_bytes_every_time(tmp_path: Path) -> None:
    first = _written(tmp_path / "first")
    assert first == _written(tmp_path / "second")
    committed = _hashes(ROOT / "samples")
    assert first.keys() == committed.keys()
    if not metadata.version("openvino").startswith(MADE_WITH):
        pytest.skip(f"the samples were made with openvino {MADE_WITH}")
    assert first == committed


def test_samples_are_small() -> None:
    sizes = {path: path.stat().st_size for path in (ROOT / "samples").rglob("*") if path.suffix in SUFFIXES}
    assert sizes
    assert max(sizes.values()) < 20_000

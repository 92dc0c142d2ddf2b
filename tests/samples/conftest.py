import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what a user sees of the repository, where commands may write."""
    target = tmp_path / "ir_scatter"
    ignored = shutil.ignore_patterns("__pycache__", ".venv")
    shutil.copytree(ROOT / "samples", target / "samples", ignore=ignored)
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, target / name)
    return target

"""The notebook of the samples is what its script says, and what a Jupyter kernel makes of it."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from samples.notebook.session import CELLS, FOLDER, NAME, text

ROOT = Path(__file__).parents[2]
NEEDED = ("ipykernel", "nbclient")


def committed() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / NAME).read_text(encoding="utf-8"))
    return found


def test_the_notebook_has_the_cells_of_the_script_and_what_they_print() -> None:
    notebook = committed()
    assert tuple(cell["source"] for cell in notebook["cells"]) == CELLS
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(output["output_type"] != "error" for cell in code for output in cell["outputs"])
    assert all(cell["outputs"] for cell in code)
    tables = [output for cell in code for output in cell["outputs"] if "text/html" in output.get("data", {})]
    assert len(tables) >= 4
    assert all(len(output["data"]["text/plain"]) <= 200 for output in tables)
    assert (FOLDER / NAME).stat().st_size < 20_000


@pytest.mark.openvino
@pytest.mark.long
def test_a_jupyter_kernel_prints_what_the_notebook_shows() -> None:
    """UPDATE_README=1 writes what it prints now, as `python -m samples.notebook.session` does."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}: pip install {' '.join(NEEDED)}")
    code = "from samples.notebook.session import run, text; print(text(run()), end='')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    if os.environ.get("UPDATE_README"):
        (FOLDER / NAME).write_text(done.stdout, encoding="utf-8")
    assert json.loads(done.stdout)["cells"] == committed()["cells"]
    assert done.stdout == text(committed())

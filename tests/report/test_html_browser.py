"""Pages in a browser: nothing is cut on any screen, colours can be told, and a keyboard is enough."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter.compare.request import ComparedModels
from ir_scatter.core.files import Source
from ir_scatter.lint import Options, Report, check_file
from ir_scatter.report import doctor_html, findings_html
from ir_scatter.report.comparison_html import render
from tests.report.comparisons import CPU, EVERYTHING, GPU, MANY, TWO, compared, of_node, of_output
from tests.report.test_doctor import EVERY

PACKAGES = ("axe-core@4.10.3", "puppeteer-core@24.10.0")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "chromium-headless-shell")
RANDOM = np.random.default_rng(0)
LARGE = RANDOM.normal(size=(3, 64, 128)).astype(np.float32)
LONG = "model.layers.11.self_attn/aten::index_put_/ScatterNDUpdate_12"
RICH = replace(
    EVERYTHING,
    operators={"loud": "ScatterUpdate-3", LONG: "ScatterNDUpdate-15"},
    comparisons=(
        *EVERYTHING.comparisons,
        of_node(
            LONG, LARGE + RANDOM.normal(size=LARGE.shape).astype(np.float32), LARGE, GPU, inputs=(LARGE,)
        ),
        of_node("line", np.eye(1, 1000, 7, np.float32)[0], np.zeros(1000, np.float32)),
        of_output("scores", LARGE, -LARGE),
    ),
)
RUNNERS = (CPU, GPU, "openvino:fold", "openvino:NPU", "onnxruntime", "onnx-reference")
WIDE = compared(*(of_node(LONG, LARGE[0], LARGE[number % 2], name) for number, name in enumerate(RUNNERS)))
TOLD = {
    "command": f"ir-scatter compare {'samples/some/model.xml ' * 5}",
    "date": "today",
    "host": "a machine",
}
FOUND = {
    "rich": ComparedModels((RICH,)),
    "wide": ComparedModels((WIDE,)),
    "two": ComparedModels((TWO,)),
    "many": replace(MANY, found=(*MANY.found, RICH)),
}
PAGES = [*FOUND, "findings", "doctor"]


def page_of(name: str) -> str:
    if name in FOUND:
        return render(FOUND[name], **TOLD)
    if name == "doctor":
        return doctor_html.render(EVERY, verbose=True)
    samples = sorted((Path(__file__).parents[2] / "samples" / "broken").glob("*.[xo][mn]*"))
    options = Options(with_neighbourhoods=True)
    return findings_html.render(Report(tuple(check_file(Source(str(one)), options) for one in samples)))


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """What a browser makes of each page."""
    browser = os.environ.get("CHROME") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(
            f"there is no browser: none of {', '.join(BROWSERS)} is on the PATH, and CHROME is not set"
        )
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not installed")
    folder = tmp_path_factory.mktemp("browser")
    install = [
        npm,
        "install",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--prefix",
        str(folder),
        *PACKAGES,
    ]
    done = subprocess.run(install, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode:
        pytest.skip(f"npm cannot install {' and '.join(PACKAGES)}: {done.stderr.strip().splitlines()[-1]}")
    script = folder / "browser.js"
    shutil.copy(Path(__file__).with_name("browser.js"), script)
    paths = []
    for name in PAGES:
        path = folder / f"{name}.html"
        path.write_text(page_of(name), encoding="utf-8")
        paths.append(str(path))
    done = subprocess.run(
        [node, script, browser, *paths], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    told: Mapping[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_and_everybody_can_read_it(seen: Mapping[str, Any], name: str) -> None:
    for view, found in seen[f"{name}.html"]["views"].items():
        serious = [one for one in found["violations"] if one.startswith(("serious", "critical"))]
        assert serious == [], view
        assert found["overflow"] <= 0, view
        assert found["broken"] == [], view
        if view.endswith(" 400"):
            assert found["cut"] == [], view


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["rich", "many"])
def test_a_keyboard_is_enough(seen: Mapping[str, Any], name: str) -> None:
    told = seen[f"{name}.html"]["keyboard"]
    assert "Skip to the results" in told["focus"][0]
    assert 'id="only"' in told["focus"][1]
    assert told["before"] > 0
    assert told["after"] == 0
    assert told["loud"] > 0
    assert told["target"] == {"tag": "ARTICLE", "isSeen": True}


@pytest.mark.long
@pytest.mark.timeout(600)
def test_paper_shows_what_is_folded_on_a_screen(seen: Mapping[str, Any]) -> None:
    told = seen["rich.html"]
    assert told["printed"] == told["all"] > 0

"""`ir-scatter compare --report`."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import SAMPLES, Cli
from tests.report.comparisons import parse_page


def test_a_missing_package_is_told_before_any_work(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, elsewhere: Path
) -> None:
    known = importlib.util.find_spec

    def find_spec(name: str, *more: Any) -> Any:
        return None if name == "jinja2" else known(name, *more)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    monkeypatch.setattr("ir_scatter.compare.request.run_job", lambda *_: pytest.fail("it ran"))
    done = cli("compare", "no such model.xml", "--report", "report.html")
    assert done.code == 2
    assert (
        "an HTML report needs jinja2, which is not installed: pip install 'ir-scatter[report]'"
        in " ".join(done.err.split())
    )
    assert not (elsewhere / "report.html").exists()


@pytest.mark.openvino
def test_a_report_of_a_sample(cli: Cli, elsewhere: Path) -> None:
    sample = str(SAMPLES / "kv_cache" / "decoder.xml")
    done = cli("compare", sample, "--on", "CPU", "--on", "numpy", "--report", "report.html")
    assert "2 equal" in done.out
    assert done.code == 0
    text = (elsewhere / "report.html").read_text(encoding="utf-8")
    page = parse_page(text)
    assert "No difference" in page.findtext(".//title")
    assert "key_cache/scatter" in text
    (device,) = page.xpath("//tr[th[contains(., 'openvino:CPU')]]/td[@class='device']/bdi")
    assert device.text

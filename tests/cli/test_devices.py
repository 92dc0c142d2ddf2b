import json

import pytest

from ir_scatter import runners
from ir_scatter.runners.base import Status
from tests.cli.conftest import Cli
from tests.compare.planted import FakeRunner


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    here = FakeRunner("here")
    gone = FakeRunner("gone", ending=Status.UNAVAILABLE, message="no driver\x1b[31m")
    monkeypatch.setattr(runners, "survey", lambda: [here.availability(), gone.availability()])


def test_text(cli: Cli, two: None) -> None:
    done = cli("devices")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert [line.split()[:2] for line in lines[1:4]] == [["numpy", "yes"], ["here", "yes"], ["gone", "no"]]
    assert "gone: no driver\\x1b[31m; pip install it" in lines


def test_json(cli: Cli, two: None) -> None:
    found = json.loads(cli("devices", "--format", "json").out)
    assert found["schema"] == 1
    assert [one["runner"] for one in found["runners"]] == ["numpy", "here", "gone"]
    assert found["runners"][2]["available"] is False
    assert found["runners"][2]["remedy"] == "pip install it"
    assert set(found["runners"][0]) == {
        "runner", "available", "reason", "remedy", "full_name", "capabilities", "default_precision",
        "remarks", "versions",
    }  # fmt: skip


@pytest.mark.openvino
def test_what_is_really_here(cli: Cli) -> None:
    pytest.importorskip("openvino")
    found = {one["runner"]: one for one in json.loads(cli("devices", "--format", "json").out)["runners"]}
    assert {
        "numpy",
        "openvino:CPU",
        "openvino:GPU",
        "openvino:NPU",
        "openvino:fold",
        "onnxruntime",
    } <= found.keys()
    cpu = found["openvino:CPU"]
    assert cpu["available"] is True
    assert cpu["full_name"]
    assert "FP32" in cpu["capabilities"]
    assert cpu["default_precision"] in {"f32", "bf16", "f16"}
    for one in found.values():
        assert one["available"] or one["reason"]
        assert one["available"] or one["remedy"]

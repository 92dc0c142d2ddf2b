import json
from dataclasses import replace
from pathlib import Path

import pytest

from ir_scatter import runners
from ir_scatter.report.registry import render
from ir_scatter.runners.base import Availability, Status
from tests.cli.conftest import Cli
from tests.compare.planted import FakeRunner

HERE = Availability("here", True, capabilities=("FP7",), remarks=("a long remark",), driver="build 7")


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    gone = FakeRunner("gone", ending=Status.UNAVAILABLE, message="no driver\x1b[31m")
    monkeypatch.setattr(runners, "survey", lambda: [HERE, gone.availability()])


def test_text(cli: Cli, two: None) -> None:
    done = cli("devices")
    assert (done.code, done.err) == (0, "")
    lines = [line.split() for line in done.out.splitlines()]
    assert [line[:1] for line in lines[:3]] == [["available"], ["numpy"], ["here"]]
    assert lines[4:6] == [["not", "available", "needs"], ["gone", "pip", "install", "it"]]
    assert "no driver" not in done.out
    assert "a long remark" not in done.out
    assert "devices -v" in done.out
    more = cli("devices", "-v").out
    assert more.startswith(done.out.partition("\n\nir-scatter")[0])
    assert "\ngone\n  not available: no driver\\x1b[31m\n  pip install it\n" in more
    assert "\nhere\n  build 7\n  FP7\n  a long remark\n" in more


def test_text_fits_a_terminal(two: None) -> None:
    remedy = "an Intel GPU and a driver for it, which is not easily had everywhere, and a lot of patience"
    name = "A very fine device with a name that is much longer than that of most others"
    told = [HERE, replace(HERE, full_name=name), replace(HERE, is_available=False, remedy=remedy)]
    for verbose in (False, True):
        shown = render("devices", "text", told, width=80, verbose=verbose)
        assert max(map(len, shown.splitlines())) <= 80
        assert name in render("devices", "text", told, verbose=verbose)


def test_json(cli: Cli, two: None) -> None:
    found = json.loads(cli("devices", "--format", "json").out)
    assert found["schema"] == 1
    assert [one["runner"] for one in found["runners"]] == ["numpy", "here", "gone"]
    assert found["runners"][2]["available"] is False
    assert found["runners"][2]["remedy"] == "pip install it"
    assert set(found["runners"][0]) == {
        "runner", "available", "reason", "remedy", "full_name", "capabilities", "default_precision",
        "remarks", "versions", "driver",
    }  # fmt: skip


def test_releases_are_listed_with_their_sizes(cli: Cli, two: None, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "ir-scatter" / "releases" / "a-python" / "openvino@2099.1.0"
    folder.mkdir(parents=True)
    assert "2099" not in cli("devices").out
    (folder / "record.json").write_text('{"bytes": 226900000}')
    assert "\nrelease            size    for\nopenvino@2099.1.0  227 MB  a-python\n" in cli("devices").out
    found = json.loads(cli("devices", "--format", "json").out)["releases"]
    assert [{**found[0], "folder": Path(found[0]["folder"])}] == [
        {"release": "openvino@2099.1.0", "python": "a-python", "folder": folder, "bytes": 226900000}
    ]
    done = cli("devices", "--remove", "openvino@2099.1")
    assert (done.code, done.out) == (0, "openvino@2099.1.0 is removed: 227 MB\n")
    assert not folder.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--install", "openvino"], "'openvino' is not a release, expected one like openvino@2025.4"),
        (
            ["--remove", "openvino@2099.1"],
            "openvino@2099.1 is not installed, expected nothing: no release is installed",
        ),
        (
            ["--install", "openvino@2025.4", "--format", "json"],
            "--install and --remove go with no other options",
        ),
        (["--install", "openvino@2025.4", "--remove", "x"], "'x' is not a release"),
    ],
)
def test_wrong_releases_change_nothing(cli: Cli, two: None, words: list[str], message: str) -> None:
    done = cli("devices", *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


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
    assert cpu["driver"].startswith("plugin 20")
    assert "FP32" in cpu["capabilities"]
    assert cpu["default_precision"] in {"f32", "bf16", "f16"}
    for one in found.values():
        assert one["available"] or one["reason"]
        assert one["available"] or one["remedy"]

"""`convert --for`: nodes still at risk, `--strict` and `--at-any-cost`, of an IR and of ONNX."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from ir_scatter.cases.from_probe import case_of
from ir_scatter.defects import by_code
from ir_scatter.defects.base import Probe
from ir_scatter.formats import FORMATS
from ir_scatter.formats.base import IR
from tests.cli.conftest import Cli

DEVICE = "CPU@2026.4.1"


@pytest.fixture(autouse=True)
def nothing_was_probed_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ir_scatter.portability import portability_to

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    portability_to.cache_clear()


def written_ir(probe: Probe) -> Path:
    for suffix, data in FORMATS[IR].nodes([case_of(probe).node()]).items():
        Path(f"model{suffix}").write_bytes(data)
    return Path("model.xml")


def probe_of(code: str, name: str) -> Probe:
    return next(probe for probe in by_code()[code].probes if probe.name == name)


def of_i64(format: str) -> Path:
    """Write a node of i64, which CPU computes as i32: no form avoids that."""
    if format == "IR":
        return written_ir(Probe("i64", "ScatterElementsUpdate-12", (4,), (2,), (2,), 0, "i64"))
    text = """<ir_version: 10, opset_import: ["" : 18]> main (int64[4] data, int64[2] at, int64[2] new)
        => (int64[4] out) { out = ScatterElements (data, at, new) }"""
    onnx.save(parser.parse_model(text), "model.onnx")
    return Path("model.onnx")


def of_infinite_constants(format: str) -> Path:
    """Write a sum with an infinite constant of bf16, which is right in f32: a cast of all data."""
    if format == "IR":
        return written_ir(probe_of("DEV113", "sum"))
    text = """<ir_version: 10, opset_import: ["" : 18]> main (int64[1] at, bfloat16[1] new)
        => (bfloat16[2] out) { out = ScatterElements <reduction = "add"> (data, at, new) }"""
    model = parser.parse_model(text)
    floats = np.array([np.inf, 2], np.float32)
    data = numpy_helper.from_array(floats.view(np.uint32).__rshift__(16).astype(np.uint16), "data")
    data.data_type = onnx.TensorProto.BFLOAT16
    model.graph.initializer.append(data)
    onnx.save(model, "model.onnx")
    return Path("model.onnx")


def safe(format: str) -> Path:
    """Write a node that CPU refuses, and that another operator replaces."""
    if format == "IR":
        return written_ir(Probe("0-d", "ScatterUpdate-3", (4, 3), 2, (3,), 0))
    text = """<ir_version: 10, opset_import: ["" : 18]> main (float[2, 3] data, float[1, 3] new)
        => (float[2, 3] out) { at = Constant <value = int64[1, 3] {1, 1, 1}> ()
        out = ScatterElements (data, at, new) }"""
    onnx.save(parser.parse_model(text), "model.onnx")
    return Path("model.onnx")


def new_of(path: Path) -> Path:
    return path.with_stem("new")


both_formats = pytest.mark.parametrize("format", ["IR", "ONNX"])


@both_formats
@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 1), (("--strict", "--dry-run"), 1)])
def test_strict_fails_while_a_node_is_at_risk(
    format: str, options: Sequence[str], code: int, cli: Cli
) -> None:
    path = of_i64(format)
    result = cli("convert", path, "--for", DEVICE, "-o", new_of(path), *options)
    assert (result.code, result.err) == (code, "")
    *_, headline, node, _advice, _summary = result.out.splitlines()
    assert headline == "1 node still at risk:"
    assert "DEV120 on openvino:CPU, if " in node
    assert new_of(path).exists() is ("--dry-run" not in options)  # a risk is no reason to write nothing


@both_formats
def test_strict_passes_without_a_risk(format: str, cli: Cli) -> None:
    path = safe(format)
    result = cli("convert", path, "--for", DEVICE, "-o", new_of(path), "--strict")
    assert (result.code, result.err) == (0, "")
    assert "at risk" not in result.out


@both_formats
@pytest.mark.parametrize("option", ["--strict", "--at-any-cost"])
def test_both_need_a_device(format: str, option: str, cli: Cli) -> None:
    path = of_i64(format)
    result = cli("convert", path, "-o", new_of(path), option)
    assert (result.code, result.out) == (2, "")
    assert f"{option} goes with --for DEVICE" in result.err
    assert not new_of(path).exists()


@both_formats
def test_the_price_is_said_and_paid(format: str, cli: Cli) -> None:
    path = of_infinite_constants(format)
    cheap = cli("convert", path, "--for", DEVICE, "-o", new_of(path), "--strict")
    assert cheap.code == 1
    lines = cheap.out.splitlines()
    assert "1 node still at risk:" in lines
    advice = lines[lines.index("1 node still at risk:") + 2]
    assert advice.strip().startswith("--at-any-cost avoids it, at ")
    assert "bytes more in each run; or " in advice
    paid = cli(
        "convert", path, "--for", DEVICE, "-o", new_of(path), "--strict", "--at-any-cost", "--overwrite"
    )
    assert paid.code == 0
    assert "at risk" not in paid.out
    (price,) = [line for line in paid.out.splitlines() if "cast-to-f32: " in line]
    assert price.endswith(" bytes more in each run")


@both_formats
def test_json_lists_each_risk(format: str, cli: Cli) -> None:
    path = of_i64(format)
    result = cli("convert", path, "--for", DEVICE, "-o", new_of(path), "--format", "json", "--strict")
    assert result.code == 1
    (risk,) = json.loads(result.out)["risks"]
    assert [*risk] == ["node", "scope", "defect", "runner", "when", "advice"]
    assert (risk["defect"], risk["runner"]) == ("DEV120", "openvino:CPU")
    assert risk["when"]
    assert risk["advice"]
    assert {risk["node"], risk["scope"]} == {"node" if format == "IR" else "out"}


def of_tuples(format: str, type: str = "float") -> Path:
    """Write tuples of indices that are known when it runs: GPU does not count negative ones from the end."""
    if format == "IR":
        return written_ir(Probe("tuples", "ScatterNDUpdate-15", (2, 3), [[1, 2]], (1,), None))
    text = f"""<ir_version: 10, opset_import: ["" : 18]> main ({type}[2, 3] data, int64[1, 2] indices, {type}[1]
        updates) => ({type}[2, 3] out) {{ out = ScatterND (data, indices, updates) }}"""
    onnx.save(parser.parse_model(text), "model.onnx")
    return Path("model.onnx")


@both_formats
def test_a_contract_takes_away_what_cannot_happen(format: str, cli: Cli) -> None:
    path, words = of_tuples(format), ("--for", "GPU@cpu@2026.4.1", "--dry-run", "--format", "json")
    (input,) = [name for name in names_of_inputs(path) if "indices" in name]
    without, given = cli("convert", path, *words), cli("convert", path, *words, "--given", f"{input} in 0..1")
    assert without.code == given.code == 0
    assert len(json.loads(without.out)["converted"]) == 1
    assert json.loads(given.out)["converted"] == json.loads(given.out)["risks"] == []


def names_of_inputs(path: Path) -> list[str]:
    from ir_scatter import read

    return [name for names in read(path).inputs for name in names]


@both_formats
@pytest.mark.parametrize("device", [DEVICE, "GPU@cpu@2026.4.1"])
def test_an_open_order_and_illegal_indices_are_no_reason(format: str, device: str, cli: Cli) -> None:
    """Indices may be equal (DEV111) or out of range (DEV140, DEV143): both forms of a node would suffer."""
    if format == "IR":
        path = written_ir(Probe("open", "ScatterElementsUpdate-12", (4, 8), [[0] * 8], (1, 8), 0))
    else:
        text = """<ir_version: 10, opset_import: ["" : 18]> main (float[4, 8] data, int64[2, 8] at, float[2, 8] new)
            => (float[4, 8] out) { out = ScatterElements (data, at, new) }"""
        onnx.save(parser.parse_model(text), path := Path("model.onnx"))
    result = cli("convert", path, "--for", device, "--dry-run", "--format", "json", "--strict")
    assert result.code == 0
    document = json.loads(result.out)
    assert document["converted"] == document["refused"] == document["risks"] == []

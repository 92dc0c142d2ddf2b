"""Models that exporters and other projects wrote: what we compute for them, and what runtimes do."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.element_types import dtype
from ir_scatter.core.errors import BrokenModel, Error
from ir_scatter.evaluate.model import Program, prepare
from ir_scatter.inputs.model import make_feeds
from tests.unit.runtimes import Outcome, run_all

MODELS = Path(__file__).parents[3] / "shared" / "models"
ROCM, BURN = "github/ROCm__AMDMIGraphX/test/onnx", "github/tracel-ai__burn-onnx/crates/onnx-ir/tests/fixtures"
PILLARS = "github/openvinotoolkit__openvino_contrib/modules/3d/pointPillars/pretrained"
PLAIDML = "github/plaidml__openvino/ngraph/test/models/onnx"
SEEDS = (0, 1)

BROKEN = {
    "github/NervanaSystems__ngraph/test/models/onnx/scatter_nd.from_txt.onnx": "SCT402",
    f"{PLAIDML}/scatter_nd_const_i32_indices.from_txt.onnx": "SCT402",
    f"{PLAIDML}/scatter_nd_param_i64_indices.from_txt.onnx": "SCT402",
    f"{ROCM}/scatter_add_test.onnx": "SCT104",
    f"{ROCM}/scatter_mul_test.onnx": "SCT104",
    f"{ROCM}/scatter_none_test.onnx": "SCT104",
    f"{ROCM}/scatternd_add_test.onnx": "SCT104",
    f"{ROCM}/scatternd_mul_test.onnx": "SCT104",
    f"{ROCM}/scatter_elements_invalid_reduction_test.onnx": "SCT105",
    f"{ROCM}/scatternd_invalid_reduction_test.onnx": "SCT105",
}
"""Models whose operators break their rules: they are refused, whatever runtimes make of them."""

UNKNOWN = {
    f"{PILLARS}/pointpillars_ov_nn.xml": "Convolution",
    f"{PILLARS}/pointpillars_ov_pillar_layer.xml": "VoxelizationOp",
    f"{PILLARS}/pointpillars_ov_postproc.xml": "PostProcessingOp",
    f"{BURN}/opset_compliance/opset_11.onnx": "ArgMax",
    f"{BURN}/opset_compliance/opset_13.onnx": "ArgMax",
    f"{BURN}/opset_compliance/opset_16.onnx": "GridSample",
    f"{BURN}/opset_compliance/opset_18.onnx": "BitwiseAnd",
    "torch/tiny_lm_kv_static_cache/legacy_op13.onnx": "MatMul",
    "torch/tiny_lm_kv_static_cache/dynamo_op20.onnx": "MatMul",
    "torch/tiny_lm_kv_static_cache/torch2ov.xml": "MatMul",
    "torch/pointpillars_scatter/dynamo_op18.onnx": "MatMul",
    "torch/pointpillars_scatter/torch2ov.xml": "MatMul",
    "hf_pyg/pyg_gcn/dynamo_op18.onnx": "Gemm",
    "hf_pyg/pyg_gcn/torch2ov.xml": "MatMul",
    "hf_pyg/hf_t5_shift/dynamo_op18.onnx": "MatMul",
    "hf_pyg/hf_sam_prompt/dynamo_op18.onnx": "MatMul",
    "hf_pyg/hf_sam_prompt/torch2ov.xml": "MatMul",
    "keras/slogdet/model.xml": "TopK",
    "keras/slogdet_fx/model.xml": "TopK",
    "large/kv_30blocks.xml": "MatMul",
    "large/kv_30blocks.onnx": "MatMul",
}
"""Models with an operator that NumPy does not compute, one of them by name."""

UNREADABLE = {"ir_v7_templates/myriad_layers_scatter_elements_update_0.xml": "version is '7'"}

DIFFERENCES: dict[tuple[str, str], str] = {}
"""Where a runtime gives something else, by runtime and model, and who is right. There is none: all
indices are legal, and no model has i64 numbers above 2**31 or several updates of one element whose
order a runtime leaves open."""

pytestmark = [
    pytest.mark.models,
    pytest.mark.skipif(not MODELS.is_dir(), reason="needs the folder of real models beside the checkout"),
]


def _paths() -> list[str]:
    if not MODELS.is_dir():
        return []
    return [entry["path"] for entry in json.loads((MODELS / "manifest.json").read_text())]


COMPUTED = [path for path in _paths() if path not in {*BROKEN, *UNKNOWN, *UNREADABLE}]


@cache
def _program(path: str) -> Program:
    return prepare(MODELS / path)


@cache
def _feeds(path: str, seed: int) -> dict[str, npt.NDArray[Any]]:
    return make_feeds(_program(path), seed)


def _run_all(runtime: str, paths: Sequence[str], folder: Path) -> dict[str, Outcome]:
    jobs = {
        f"{path} {seed}": (MODELS / path, list(_feeds(path, seed).values()))
        for path in paths
        for seed in SEEDS
    }
    return run_all(runtime, jobs, folder)


@pytest.fixture(scope="module")
def onnxruntime(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    pytest.importorskip("onnxruntime")
    paths = [path for path in COMPUTED if path.endswith(".onnx")]
    return _run_all("onnxruntime", paths, tmp_path_factory.mktemp("jobs"))


@pytest.fixture(scope="module")
def openvino(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    pytest.importorskip("openvino")
    return _run_all("openvino", COMPUTED, tmp_path_factory.mktemp("jobs"))


def _differs(ours: dict[str, npt.NDArray[Any]], theirs: Sequence[npt.NDArray[Any]]) -> str:
    for (name, array), expected in zip(ours.items(), theirs, strict=True):
        if array.dtype != expected.dtype or array.shape != expected.shape:
            return f"{name} is {array.dtype} {array.shape}, theirs {expected.dtype} {expected.shape}"
        if not np.array_equal(array, expected, equal_nan=array.dtype.kind == "f"):
            return f"{name} is {array}, theirs {expected}"
    return ""


def _compare(runtime: str, path: str, outcomes: dict[str, Outcome]) -> None:
    for seed in SEEDS:
        outcome = outcomes[f"{path} {seed}"]
        assert outcome.error == ""
        difference = _differs(_program(path).run(_feeds(path, seed)), outcome.outputs)
        assert bool(difference) is ((runtime, path) in DIFFERENCES), difference


@pytest.mark.onnxruntime
@pytest.mark.parametrize("path", [path for path in COMPUTED if path.endswith(".onnx")])
def test_as_onnxruntime(path: str, onnxruntime: dict[str, Outcome]) -> None:
    _compare("onnxruntime", path, onnxruntime)


@pytest.mark.openvino
@pytest.mark.parametrize("path", COMPUTED)
def test_as_openvino(path: str, openvino: dict[str, Outcome]) -> None:
    _compare("openvino", path, openvino)


@pytest.mark.parametrize("path", [p for p in COMPUTED if (MODELS / p).with_name("io.npz").exists()])
def test_as_the_framework_that_exported_it(path: str) -> None:
    folder = (MODELS / path).parent
    names = json.loads((folder / "io_names.json").read_text())["inputs_in_order"]
    with np.load(folder / "io.npz") as archive:
        inputs = [archive[name] for name in archive.files if name.startswith("in_")]
        expected = [archive[name] for name in archive.files if name.startswith("out_")]
    declared = {input.names[0]: input for input in _program(path).inputs}
    named = names if declared.keys() == set(names) else list(declared)
    feeds = {name: array.astype(_dtype(declared[name])) for name, array in zip(named, inputs, strict=True)}
    assert _differs(_program(path).run(feeds), expected) == ""


def _dtype(input: GraphInput) -> Any:
    """Return the type of an input: Model Optimizer has made i32 of i64."""
    assert input.element_type is not None
    return dtype(input.element_type)


@pytest.mark.parametrize("path", [p for p in COMPUTED if (MODELS / p).with_name("test_data_set_0").is_dir()])
def test_as_the_files_beside_it(path: str) -> None:
    folder = (MODELS / path).with_name("test_data_set_0")
    inputs = [_tensor(file) for file in sorted(folder.glob("input_*.pb"))]
    expected = [_tensor(file) for file in sorted(folder.glob("output_*.pb"))]
    names = [input.names[0] for input in _program(path).inputs]
    assert _differs(_program(path).run(dict(zip(names, inputs, strict=True))), expected) == ""


def _tensor(path: Path) -> npt.NDArray[Any]:
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


@pytest.mark.parametrize("path", BROKEN)
def test_broken_models_are_refused(path: str) -> None:
    with pytest.raises(BrokenModel) as raised:
        prepare(MODELS / path)
    assert raised.value.diagnostics[0].code == BROKEN[path]


@pytest.mark.parametrize(("path", "reason"), {**UNKNOWN, **UNREADABLE}.items())
def test_other_models_say_why_they_are_not_computed(path: str, reason: str) -> None:
    with pytest.raises(Error, match=reason):
        prepare(MODELS / path)


def test_enough_models_are_computed() -> None:
    assert len(COMPUTED) >= 60

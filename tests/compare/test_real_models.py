"""Real models on all runners: no rounding is called a mismatch, and each mismatch is explained.

NumPy computes each on two drawn inputs, as a runtime does, but for those listed with a reason.

The nightly profile runs them on the emulated GPU as well, which takes most of the time.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ir_scatter import runners
from ir_scatter.compare.headline import headline
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.result import CompareSettings
from ir_scatter.compare.run import compare
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.runners.base import Runner, Status
from ir_scatter.runners.defaults import NUMPY
from tests.scale import NIGHTLY

REAL_MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"
MODELS = sorted(
    path.relative_to(REAL_MODELS).as_posix()
    for path in REAL_MODELS.rglob("*")
    if path.suffix in {".onnx", ".xml"}
)

CPU, GPU, ONNXRUNTIME = "openvino:CPU", "openvino:GPU@cpu", "onnxruntime"
NAMES = [CPU, ONNXRUNTIME, *([GPU] if NIGHTLY else [])]

REDUCTION = "the frontend honours `reduction` before opset 16, which has none"
NEGATIVE = "the GPU plugin's ScatterNDUpdate-3 counts negative indices from the wrong end"
LOCKSTEP = "Transpose of [a, b, c] to [a, c, b] runs a kernel that needs work-items in lockstep"
SOFTMAX = "softmax_node: the frontend reads Softmax-11 with axis 1 as one along axis 1, without flattening"

EXPLAINED: dict[str, dict[str, str]] = {
    "ROCm__AMDMIGraphX/test/onnx/scatter_add_test.onnx": {CPU: REDUCTION, GPU: REDUCTION},
    "ROCm__AMDMIGraphX/test/onnx/scatter_mul_test.onnx": {CPU: REDUCTION, GPU: REDUCTION},
    "ROCm__AMDMIGraphX/test/onnx/scatternd_dyn_test.onnx": {GPU: NEGATIVE},
    "ROCm__AMDMIGraphX/test/onnx/scatternd_test.onnx": {GPU: NEGATIVE},
    "pytorch__glow/tests/models/onnxModels/scatterND.from_txt.onnx": {GPU: NEGATIVE},
    "opset_compliance/opset_11.onnx": {CPU: SOFTMAX},
    "hf_pyg/hf_t5_shift/dynamo_op18.onnx": {GPU: LOCKSTEP},
    "torch/tiny_lm_kv_static_cache/dynamo_op20.onnx": {GPU: NEGATIVE},
}
"""Runners that are wrong on a model, by the end of its path, and why."""

UNREADABLE = {
    "pointpillars_ov_nn.xml": "cannot be read",
    "myriad_layers_scatter_elements_update_0.xml": "the IR's version is '7'",
}
"""Models without weights, or of a version that OpenVINO no longer reads, and what is said of them."""

CUSTOM, MODEL, OPSET = "a custom operator", "the model is illegal", "an operator that its opset does not have"
NOT_COMPUTED = {
    "pointPillars/pretrained/pointpillars_ov_pillar_layer.xml": CUSTOM,
    "pointPillars/pretrained/pointpillars_ov_postproc.xml": CUSTOM,
    "opset_compliance/opset_13.onnx": MODEL,  # Mod of floating-point numbers without fmod
    "opset_compliance/opset_18.onnx": MODEL,  # GroupNormalization of 2 groups with 4 scales
    "ngraph/test/models/onnx/scatter_nd.from_txt.onnx": OPSET,
    "plaidml__openvino/ngraph/test/models/onnx/scatter_nd_const_i32_indices.from_txt.onnx": OPSET,
    "plaidml__openvino/ngraph/test/models/onnx/scatter_nd_param_i64_indices.from_txt.onnx": OPSET,
    **{
        f"ROCm__AMDMIGraphX/test/onnx/{name}_test.onnx": MODEL  # `reduction` before opset 16, or a misspelt one
        for name in (
            "scatter_add", "scatter_mul", "scatter_none", "scatter_elements_invalid_reduction",
            "scatternd_add", "scatternd_mul", "scatternd_invalid_reduction",
        )
    },
}  # fmt: skip
"""Models that NumPy does not compute, or not as a whole, by the end of their paths, and why."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.models,
    pytest.mark.openvino,
    pytest.mark.onnxruntime,
    pytest.mark.skipif(
        not REAL_MODELS.is_dir(), reason="needs the folder of real models beside the checkout"
    ),
]


@pytest.fixture(scope="module")
def devices() -> Iterator[list[Runner]]:
    found = [runners.find(name) for name in NAMES]
    yield found
    for runner in found:
        runner.close()


@pytest.mark.parametrize("name", MODELS)
def test_each_mismatch_is_explained(name: str, devices: list[Runner]) -> None:
    path = REAL_MODELS / name
    settings = CompareSettings(timeout=60, cases=2)
    unreadable = next((message for end, message in UNREADABLE.items() if name.endswith(end)), "")
    if unreadable:
        with pytest.raises(UnreadableModel, match=re.escape(unreadable)):
            compare(path, devices, settings)
        return
    found = compare(path, devices, settings)
    wrong = {each.subject for each in found.comparisons if each.measure.verdict.is_difference}
    explained = next((reasons for end, reasons in EXPLAINED.items() if name.endswith(end)), {})
    assert wrong == explained.keys() & {*NAMES}, headline(found).sentence
    unknown = [each.tensor for each in found.comparisons if each.measure.verdict is Verdict.UNKNOWN]
    assert not unknown, headline(found).sentence
    numpy = next(outcome for outcome in found.outcomes if outcome.runner == NUMPY)
    is_computed = numpy.status is Status.OK and not numpy.not_computed
    assert is_computed is not name.endswith(tuple(NOT_COMPUTED)), numpy.message
    if is_computed:  # then some runtime says the same of its outputs, or of its scatter node
        judged = {each.subject for each in found.comparisons if not each.measure.verdict.is_difference}
        assert judged & {CPU, ONNXRUNTIME}, headline(found).sentence
    if CPU in wrong and name.endswith("opset_11.onnx"):
        assert {first.nodes for first in found.first_differences} == {("softmax_node",)}

"""Dimensions of two inputs that have one name: runtimes accept different sizes, so that no proof rests on it."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from ir_scatter import convert
from ir_scatter.analysis.conditions import Condition, ProofState, judge
from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import scatter_nodes
from ir_scatter.contract import make_contract
from ir_scatter.core.files import Source
from ir_scatter.lint import Options, check_file, make_report
from ir_scatter.reading import read
from ir_scatter.report.phrases import proofs
from ir_scatter.validate import validate

_HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
_MODELS = {
    "range": """g (float[N] x, float[N] d, float[N] u) => (float[N] y) {
        zero = Constant<value = int64 {0}>()
        one = Constant<value = int64 {1}>()
        shape = Shape(x)
        n = Squeeze(shape)
        i = Range(zero, n, one)
        [write] y = ScatterElements<axis=0>(d, i, u)
    }""",
    "positions": """g (bool[N,M] mask, float[N,M] d, float[K] u) => (float[N,M] y) {
        places = NonZero(mask)
        i = Transpose<perm = [1, 0]>(places)
        [write] y = ScatterND(d, i, u)
    }""",
    "remainder": """g (float[N] x, int64[K] p, float[N] d, float[K] u) => (float[N] y) {
        shape = Shape(x)
        n = Squeeze(shape)
        i = Mod<fmod = 0>(p, n)
        [write] y = ScatterElements<axis=0>(d, i, u)
    }""",
    "greatest": """g (float[B,N] x, float[B,N] d, float[B,1] u) => (float[B,N] y) {
        i = ArgMax<axis = 1>(x)
        [write] y = ScatterElements<axis=1>(d, i, u)
    }""",
}


def _written(tmp_path: Path, text: str, name: str = "model.onnx") -> str:
    path = tmp_path / name
    onnx.save(parser.parse_model(_HEAD + text), path)
    return str(path)


@pytest.fixture(params=[*_MODELS])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return _written(tmp_path, _MODELS[request.param])


def test_contract_lists_the_condition(path: str) -> None:
    contract = make_contract(path)
    (node,) = contract.nodes
    assert node.range.status == "conditional"
    sizes = [text for text in contract.sizes if "d.shape" in text]
    assert sizes, contract


@pytest.mark.parametrize("name", [name for name in _MODELS if name != "remainder"])  # n may be 0 there
def test_validate_counts_it_as_conditional_and_devices_take_the_name_at_its_word(
    tmp_path: Path, name: str
) -> None:
    path = _written(tmp_path, _MODELS[name])
    result = check_file(Source(path), Options(targets=("openvino:CPU", "openvino:GPU")))
    assert {"DEV140", "DEV143"} & {each.code for each in result.diagnostics} == set()
    assert (
        proofs(make_report([result])) == "indices in range: 1 conditional "
        "(1 if dimensions of one name have one size, as warnings about devices assume)"
    )


def test_guard_is_written(path: str) -> None:
    conversion = convert(path, guard="clamp", verify=0)
    assert [each.node.name for each in conversion.converted] == ["write"]


def test_given_equal_sizes_prove_it(tmp_path: Path) -> None:
    path = _written(tmp_path, _MODELS["range"])
    (node,) = make_contract(path, ["x.shape[0] == d.shape[0]"]).nodes
    assert node.range.status == "proven"


def test_a_given_that_leaves_sizes_open_is_reported(tmp_path: Path) -> None:
    path = _written(tmp_path, _MODELS["range"])
    (finding,) = validate(read(path), given=["N <= 16"])
    assert finding.code == "SCT310"
    assert "expected x.shape[0] <= d.shape[0]" in finding.message


_FULL = """g (float[N,M] d, int64[1,1] r, float[N,M] u) => (float[N,M] y) {{
    shape = Shape({source})
    i = Expand(r, shape)
    [write] y = ScatterElements<axis=0>(d, i, u)
}}"""


@pytest.mark.parametrize(("source", "state"), [("u", ProofState.UNKNOWN), ("d", ProofState.PROVEN)])
def test_indices_have_the_size_of_data_only_if_it_flows(
    tmp_path: Path, source: str, state: ProofState
) -> None:
    model = read(_written(tmp_path, _FULL.format(source=source)))
    (scatter,) = scatter_nodes(model, Facts(model=model))
    assert judge(Condition.FULL, scatter).verdict is state


def test_a_condition_on_sizes_is_exact(tmp_path: Path) -> None:
    """Data may be larger than the input whose size limits indices; smaller data breaks an index."""
    contract = make_contract(_written(tmp_path, _MODELS["range"]))
    feeds = {"x": np.zeros(3, np.float32), "d": np.zeros(5, np.float32), "u": np.zeros(3, np.float32)}
    contract.check(feeds)
    with pytest.raises(ValueError, match=r"expected x.shape\[0\] <= d.shape\[0\]"):
        contract.check({**feeds, "d": np.zeros(2, np.float32)})

"""`ir-scatter contract`: what is proven of indices, conditions that are given, and the checks that it writes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from ir_scatter.evaluate import archive
from tests.cli.conftest import Cli

_CACHE = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[1, 16, 4] cache, int64 position, float[1, 1, 4] row) => (float[1, 16, 4] present) {
  axes = Constant <value = int64[3] {0, 1, 2}> ()
  shape = Constant <value = int64[3] {1, 1, 4}> ()
  at = Unsqueeze (position, axes)
  wide = Expand (at, shape)
  [write] present = ScatterElements <axis = 1> (cache, wide, row)
}
"""
_MASK = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[4, 5] x, bool[4, 5] mask, float[N] rows) => (float[4, 5] y) {
  places = NonZero (mask)
  tuples = Transpose <perm = [1, 0]> (places)
  [fill] y = ScatterND (x, tuples, rows)
}
"""
_BEYOND = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[4] x, float[3, 5] scores, float[3] rows) => (float[4] y) {
  best = ArgMax <axis = 1, keepdims = 0> (scores)
  ten = Constant <value = int64 {10}> ()
  far = Add (best, ten)
  [write] y = ScatterElements <axis = 0> (x, far, rows)
}
"""
_CUSTOM = """
<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
g (float[4] x, int64[3] keys, float[3] rows) => (float[4] y) {
  places = own.Hash (keys)
  [write] y = ScatterElements <axis = 0> (x, places, rows)
}
"""


@pytest.fixture
def write(elsewhere: Path) -> Any:
    def save(text: str, name: str = "model.onnx") -> str:
        onnx.save(onnx.parser.parse_model(text), elsewhere / name)
        return name

    return save


def _claims(cli: Cli, *arguments: str) -> dict[str, Any]:
    result = cli("contract", *arguments, "--format", "json")
    (model,) = json.loads(result.out)["models"]
    assert set(model) == {"path", "given", "summary", "nodes", "inputs", "sizes"}
    assert set(model["summary"]) == {"proven", "conditional", "refuted", "unknown"}
    (node,) = model["nodes"]
    assert set(node) == {"name", "scope", "operator", "line", "range", "distinct"}
    assert set(node["range"]) == {"status", "because", "conditions", "witness"}
    assert set(node["distinct"]) == {"status", "because", "conditions"}
    return {**node, "code": result.code, "inputs": model["inputs"]}


@pytest.mark.parametrize(
    ("text", "given", "range", "distinct", "code"),
    [
        (_CACHE, [], "conditional", "proven", 0),
        (_CACHE, ["position in 0..15"], "proven", "proven", 0),
        (_CACHE, ["position in 0..31"], "refuted", "proven", 1),
        (_MASK, [], "proven", "proven", 0),
        (_BEYOND, [], "refuted", "unknown", 1),
        (_CUSTOM, [], "unknown", "unknown", 0),
        (_CUSTOM, ["--strict"], "unknown", "unknown", 1),
    ],
)
def test_verdicts_and_exit_codes(
    text: str, given: list[str], range: str, distinct: str, code: int, cli: Cli, write: Any
) -> None:
    words = [word for each in given for word in (["--given", each] if each != "--strict" else [each])]
    node = _claims(cli, write(text), *words)
    assert (node["range"]["status"], node["distinct"]["status"], node["code"]) == (range, distinct, code)


def test_conditions_are_read_back(cli: Cli, write: Any) -> None:
    """What the contract prints proves the range, if it is given."""
    model = write(_CACHE)
    (entry,) = _claims(cli, model)["inputs"]
    assert entry == {"name": "position", "conditions": ["position in -16..15"]}
    words = [word for text in entry["conditions"] for word in ("--given", text)]
    assert _claims(cli, model, *words)["range"]["status"] == "proven"
    Path("known.txt").write_text("# of the server\nposition in 0..15\n\n")
    assert _claims(cli, model, "--given", "@known.txt")["range"]["status"] == "proven"


def test_a_witness_breaks_the_index(cli: Cli, write: Any) -> None:
    model = write(_CACHE)
    node = _claims(cli, model, "--given", "position in 0..31")
    inputs = node["range"]["witness"]["inputs"]
    types = {"cache": np.float32, "position": np.int64, "row": np.float32}
    feeds = {name: np.array(values, types[name]) for name, values in inputs.items()}
    with open("inputs.npz", "wb") as file:
        archive.write_arrays(file, feeds)
    result = cli("run", model, "--inputs", "inputs.npz")
    assert result.code == 1
    assert "31" in result.err


@pytest.mark.parametrize("command", ["contract", "validate", "convert", "compare", "run"])
@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["positoin in 0..3"], "did you mean position?"),
        (["position in 5..3"], "is empty"),
        (["position in 0..3", "position in 5..9"], "cannot hold"),
        (["position in"], "is not understood"),
        (["cache.shape[7] <= 3"], "3 dimensions"),
        (["@nothing.txt"], "cannot be read"),
    ],
)
def test_bad_texts_get_a_sentence(
    command: str, texts: list[str], reason: str, cli: Cli, write: Any, elsewhere: Path
) -> None:
    words = [word for text in texts for word in ("--given", text)]
    more = {"convert": ["--to", "ScatterND", "-o", "new.onnx"], "compare": ["--on", "numpy"]}
    result = cli(command, write(_CACHE), *more.get(command, []), *words)
    assert result.code == 2
    assert reason in " ".join(result.err.split())
    assert "Traceback" not in result.err
    assert not (elsewhere / "new.onnx").exists()


def test_a_check_in_python(cli: Cli, write: Any) -> None:
    result = cli("contract", write(_CACHE), "--format", "python", "-o", "check.py")
    assert result.code == 0
    module: dict[str, Any] = {}
    exec(Path("check.py").read_text(), module)
    module["check"]({"position": 15})
    with pytest.raises(ValueError, match=r"position.* is 16.*write"):
        module["check"]({"position": np.int64(16)})


def test_a_check_in_onnx(cli: Cli, write: Any) -> None:
    from onnx.reference import ReferenceEvaluator

    assert cli("contract", write(_CACHE), "--format", "onnx", "-o", "check.onnx").code == 0
    onnx.checker.check_model("check.onnx")
    check = ReferenceEvaluator("check.onnx")
    for position, is_legal in ((0, True), (-16, True), (15, True), (16, False), (-17, False)):
        outcomes = check.run(None, {"position": np.array(position)})
        assert all(bool(outcome) for outcome in outcomes) is is_legal


def test_a_given_range_is_an_error_of_validate(cli: Cli, write: Any) -> None:
    model = write(_CACHE)
    result = cli("validate", model, "--given", "position in 0..31", "--format", "concise")
    assert result.code == 1
    assert "error SCT310 " in result.out
    assert cli("validate", model, "--given", "position in 0..15", "--format", "concise").code == 0
    assert cli("contract", "nothing.onnx").code == 3

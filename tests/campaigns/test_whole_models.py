"""Claims about whole legal models, checked on runtimes: every class of broken claim is explained here.

The nightly profile takes 5,000 models for each runtime, 500 for the emulated GPU plugin; `whole_model_claims` as a program takes any range.
"""

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests import scale
from tests.campaigns.whole_model_claims import Campaign, Summary
from tests.campaigns.whole_models import Form, draw_model, scatter_array
from tests.scale import generator

_CASES = {"onnxruntime": 50, "CPU": 50, "GPU@cpu": 5}
EXPLAINED = {
    "not foretold refused: Zero count of iteration": "the CPU plugin takes no Loop that never begins",
    "not foretold refused: ExecutionCondition is false": "as above",
    "not foretold wrong: no trips": "of a Loop whose condition is false the CPU plugin gives nothing, or what "
    "is in memory",
    "not foretold crashed: no trips": "the GPU plugin ends on a Loop without trips; the CPU plugin if it stacks outputs",
    "not foretold refused: If *: Non-existent connection": "OpenVINO reads no branch that holds nothing but a Loop "
    "whose condition is a constant false",
    "compare differs though right: no trips": "stacked outputs of a Loop that never begins are what is in memory",
    "not foretold refused: Invalid model. Node input": "onnxruntime loses a value where it inlines an If whose "
    "condition is constant",
    "not foretold refused: Add: Argument shapes": "OpenVINO makes a constant of one element a row, which Add without "
    "broadcasting does not take",
    "not foretold refused: Scan": "OpenVINO reads no Scan that names values around it, and onnxruntime runs none "
    "whose outputs have no known shape",
    "not foretold refused: Node * of type Loop ParameterMismatch": "the CPU plugin takes no carried value whose shape "
    "changes where a Loop never begins",
    "not foretold refused: Node *.# of type Loop ParameterMismatch": "as above",
    "not foretold refused: ScatterNDUpdate node with name '*' do not have matched": "OpenVINO makes an Expand of one "
    "number to no dimensions a row, which are no updates of one tuple",
    "not foretold refused: Reshape: Shape inference input shapes": "stacked outputs of a Loop that never begins",
    "not foretold refused: Unexpected: CPU plug-in doesn't support Loop operation with dynamic rank": "the CPU plugin "
    "takes no carried value of unknown rank",
    "not foretold refused: The shape specified in the Variable has to extend": "OpenVINO takes no state whose "
    "variable has another shape than its first value",
    "not foretold refused: Tensor data with element type f#": "seen once, of a Loop of f16 "
    "whose inputs are all constants",
    "not foretold wrong: invariant data, empty": "the CPU plugin leaves out a sliced input of a TensorIterator that "
    "nothing reads, and runs the body once; a scatter node of no updates is left out before",
    "not foretold wrong: data state, invariant data, empty": "as above",
    "compare differs though right: invariant data, loop: node": "the mean of integers is wrong (DEV105) at a node "
    "on which no output depends",
    "not foretold refused: Node * contains dead weak ptr": "OpenVINO takes no state whose readers are dropped",
}
"""Beginnings of the names of classes, and what of a runtime accounts for them that is no scatter operator's."""
EXPLAINED_ON = {
    "GPU@cpu": {
        "not foretold wrong at first: trips fed": "a Loop whose trip count is an input takes that of the inference "
        "before: none in the first one of a compiled model",
        "not foretold refused: # ProgramBuilder build failed! # Count is called for dynamic shape": "an Add without "
        "broadcasting whose input has an open shape is not compiled",
        "not foretold refused: # Unexpected layout of input memory for result": "of an input with an open shape, a Slice "
        "without elements is no output",
        "not foretold refused: # ProgramBuilder build failed! # Output shape is not provided": "an input without "
        "elements cannot be reshaped",
        "not foretold refused: # Unexpected layout of input memory for parameter": "an input without elements is "
        "not accepted beside a dynamic shape, or of more than five dimensions; once a row that entered an If was "
        "not (model 20000), which was not reduced",
        "not foretold refused: Error has occured for: stridedslice": "a StridedSlice of an input whose begin is "
        "masked, and beyond the input, is not compiled",
        "not foretold refused: # ProgramBuilder build failed! # No layout format available for stridedslice": "no "
        "StridedSlice makes seven dimensions",
        "not foretold crashed: state without elements": "a state without elements ends the process, whatever "
        "computes with it",
        "not foretold wrong: no scatter node is computed": "a chain of Slice and Concat gives another shape",
        "certain but right DEV307": "the output is what is in memory, which may be data by accident",
    }
}
"""The same of one runner alone."""


OPEN = {
    "no inputs are drawn": "sizes of unrelated inputs that have become the same are changed together",
    "converted is wrong": "memory that new nodes share with a loop or a state; in model 20672 of CPU with a constant, "
    "which a GatherND reads beside the scatter node of a body",
    "converted is refused": "constants without elements in what is converted",
    "converted is crashed": "empty data of a static shape",
    "compare equal though wrong, NumPy cannot compute it": "a node alone does not show a loop's shared memory",
}
"""Beginnings of the names of classes that are faults of ours: who fixes one drops its entry."""


@pytest.mark.long
@pytest.mark.openvino
@pytest.mark.onnxruntime
@pytest.mark.parametrize("name", _CASES)
def test_claims(name: str, figures: "Counter[str]") -> None:
    summary = Summary()
    campaign = Campaign(name, summary)
    assert campaign.runner is not None
    if not campaign.runner.availability().is_available:
        pytest.skip(f"{name} does not run here")
    try:
        campaign.run(scale.cases(_CASES[name]))
    finally:
        campaign.close()
    figures.update(summary.figures)
    accounted = (*EXPLAINED, *EXPLAINED_ON.get(name, ()), *OPEN)
    unexplained = {
        broken: summary.examples[broken] for broken in summary.classes if not broken.startswith(accounted)
    }
    assert unexplained == {}


@pytest.mark.parametrize("is_onnx", [True, False])
def test_models_are_the_same_for_the_same_seed(is_onnx: bool, tmp_path: Path) -> None:
    texts = []
    for number in range(20):
        drawn = []
        for name in ("first", "second"):
            whole = draw_model(generator("same", number), tmp_path, is_onnx=is_onnx, name=name)
            drawn.append((whole.path.read_bytes(), [array.tolist() for array in whole.expected], whole.words))
            if is_onnx:
                onnx.checker.check_model(str(whole.path))
        assert drawn[0] == drawn[1]
        texts.append(drawn[0][0])
    assert len(set(texts)) == len(texts)


WORDS = {
    "fill", "empty", "negative", "dead", "random", "Shape in branches", "invariant data", "condition constant",
    "condition fed", "trips constant 0", "trips fed 2", "data scattered", "data roll", "data sin", "data state",
    "axis fed", "data gather8", "data padded", "data unbroadcast", "data one number", "indices clipped", "indices arg",
    "indices range", "indices shape", "indices gathered", "indices shifted", "read shape", "read empty",
    "read dead", "view identity", "view strided", "view split", "view squeeze", "function", "if", "loop", "scan",
    "TensorScatter", "Scatter", "boolean", "u8", "i8", "f16", "f64",
}  # fmt: skip


def test_everything_is_drawn(tmp_path: Path) -> None:
    counted = Counter[str]()
    for number in range(1_200):
        whole = draw_model(generator("words", number), tmp_path, is_onnx=number % 2 == 1)
        counted.update(set(whole.words))
        ranks = {array.ndim for array in whole.expected}
        counted.update(f"rank {rank}" for rank in ranks)
    missing = {*WORDS, "rank 5", "rank 6", "rank 7", "rank 8"} - counted.keys()
    assert missing == set()


@pytest.mark.parametrize(
    ("kind", "reduction", "indices", "updates", "expected"),
    [
        ("elements", "none", [[2, 0]], [[9, 8]], [[8, 1, 9], [3, 4, 5]]),
        ("elements", "sum", [[1, 1]], [[9, 8]], [[0, 18, 2], [3, 4, 5]]),
        ("slices", "none", [2], [[7], [6]], [[0, 1, 7], [3, 4, 6]]),
        ("tuples", "prod", [[1, 2], [1, 2]], [2, 3], [[0, 1, 2], [3, 4, 30]]),
        ("tuples", "none", [[-1]], [[7, 8, 9]], [[0, 1, 2], [7, 8, 9]]),
    ],
)
def test_oracle(kind: str, reduction: str, indices: object, updates: object, expected: object) -> None:
    form = Form("", kind, "i64", "i64", (2, 3), reduction, axis=1)
    data = np.arange(6).reshape(2, 3)
    made = scatter_array(form, data, np.array(indices), np.array(updates))
    np.testing.assert_array_equal(made, expected)

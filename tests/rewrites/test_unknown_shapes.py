"""Nodes of which little is known: each is rewritten and proven, or refused with a reason."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from ir_scatter.convert import convert
from ir_scatter.convert.conversion import Conversion
from ir_scatter.reading import read

OPSETS = {"Scatter": [9, 10, 11], "ScatterElements": [11, 13, 16, 18], "ScatterND": [11, 13, 16, 18],
          "TensorScatter": [24]}  # fmt: skip
Dims = Sequence[int | str | None] | None


def model(
    type: str,
    opset: int,
    data: Dims,
    indices: Dims,
    updates: Dims,
    constant: Sequence[int] | None = None,
    **attributes: Any,
) -> bytes:
    """Write a model of one node; `constant` is the shape of indices that it holds."""
    inputs = [
        helper.make_tensor_value_info("data", TensorProto.FLOAT, data),
        helper.make_tensor_value_info("indices", TensorProto.INT64, indices),
        helper.make_tensor_value_info("updates", TensorProto.FLOAT, updates),
    ]
    held = []
    if constant is not None:
        del inputs[1]
        array = np.random.default_rng(0).integers(-2, 3, constant)
        held = [numpy_helper.from_array(np.asarray(array, np.int64), "indices")]
    names = ["data", "indices", "updates"] if type != "TensorScatter" else ["data", "updates", "indices"]
    node = helper.make_node(type, names, ["result"], "node", **attributes)
    result = helper.make_tensor_value_info("result", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "graph", inputs, [result], held)
    imports = [helper.make_opsetid("", opset)]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())


def converted(data: bytes, to: str | None, assume: Sequence[str] = ()) -> Conversion:
    return convert(read("model.onnx", data), to, verify=2, assume=assume)


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_anything_is_rewritten_or_refused(first: int) -> None:
    done = refused = 0
    for seed in range(first, first + 50):
        data = some_model(random.Random(seed))
        for to in (None, "ScatterElements", "ScatterND"):
            for assume in ((), ("unique-indices", "non-negative-indices")):
                found = converted(data, to, assume=assume)
                done += len(found.converted)
                refused += len(found.refused)
                assert all(one.message for one in found.refused)
                assert len(found.verified) == len(found.converted)
    assert done > 10
    assert refused > 10


def some_model(choice: random.Random) -> bytes:
    """Write a node with shapes that fit or do not, known or not."""
    type = choice.choice(sorted(OPSETS))
    opset = choice.choice(OPSETS[type])
    attributes: dict[str, Any] = {}
    if type != "ScatterND" and choice.random() < 0.5:
        attributes["axis"] = choice.randint(-3, 2)
    if 16 <= opset < 24 and choice.random() < 0.5:
        attributes["reduction"] = choice.choice(["add", "mul", "none"])
    constant = None
    if choice.random() < 0.4:
        constant = [choice.randint(0, 3) for _ in range(choice.randint(0, 3))]
    shapes = some_shapes(choice, type)
    return model(type, opset, *shapes, constant, **attributes)


def some_shapes(choice: random.Random, type: str) -> tuple[Dims, Dims, Dims]:
    """Draw three shapes; one time in two they are those of a legal node, with parts unknown."""
    if choice.random() < 0.5:
        return some_shape(choice), some_shape(choice), some_shape(choice)
    rank = choice.randint(1, 3) + (type == "TensorScatter")
    data = [choice.randint(1, 4) for _ in range(rank)]
    indices = [choice.randint(1, size) for size in data]
    updates = indices
    if type == "ScatterND":
        indices, updates = [2, 1], [2, *data[1:]]
    elif type == "TensorScatter":
        indices, updates = data[:1], [*data[:-2], 1, data[-1]]
    return hidden(choice, data), hidden(choice, indices), hidden(choice, updates)


def some_shape(choice: random.Random) -> Dims:
    if choice.random() < 0.25:
        return None
    return [choice.choice([0, 1, 2, 3, 4, None, "N"]) for _ in range(choice.randint(0, 4))]


def hidden(choice: random.Random, shape: Sequence[int]) -> Dims:
    """Leave out what is not to be known."""
    if choice.random() < 0.3:
        return None
    return [dim if choice.random() < 0.6 else None for dim in shape]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (model("ScatterElements", 18, None, [], None),
         "indices is [] of rank 0, expected rank 1 at least, like data"),
        (model("ScatterElements", 18, None, None, []),
         "updates is [] of rank 0, expected rank 1 at least, like data"),
        (model("ScatterElements", 18, [5, 3], None, [4]),
         "updates is [4] of rank 1, expected rank 2 like data"),
        (model("ScatterElements", 18, None, [2, 3], None, axis=2),
         "indices is [2, 3] of rank 2, so that axis 2 is none of data"),
        (model("TensorScatter", 24, None, [2], [3]),
         "update is [3] of rank 1, expected rank 2 at least, like past_cache"),
        (model("TensorScatter", 24, None, [2], [2, 3], axis=-2),
         "update is [2, 3] of rank 2, so that axis -2 is none of past_cache"),
    ],
)  # fmt: skip
def test_ranks_that_no_data_fits(written: bytes, message: str) -> None:
    to = "ScatterND" if b"TensorScatter" not in written else "ScatterElements"
    (refused,) = converted(written, to).refused
    assert (refused.code, refused.message) == ("CVT101", message)


@pytest.mark.parametrize(("length", "mode"), [(0, "linear"), (0, "circular"), (None, "circular")])
def test_caches_that_may_be_empty(length: int | None, mode: str) -> None:
    data = model("TensorScatter", 24, [2, length, 0], [2], None, mode=mode)
    (verified,) = converted(data, "ScatterElements").verified
    assert verified.cases == 2

"""Legal models that OpenVINO refuses, or computes otherwise than the documents say."""

from pathlib import Path

import numpy as np
from openvino import opset3

from samples.ir_files import constant, parameter, save_ir
from samples.onnx_files import FLOAT, ints, node, save_onnx


def write_plugins(folder: Path) -> None:
    """Write three IR models and one ONNX model."""
    data, updates = parameter("data", [4, 5]), parameter("updates", [5])
    index, axis = parameter("index", [], np.int64), constant("axis", 0)
    scalar = opset3.scatter_update(data, index, updates, axis, name="scatter")
    save_ir(folder / "scalar_index.xml", [scalar], [data, index, updates])

    data, updates = parameter("data", [3, 2, 1]), parameter("updates", [2, 2, 1])
    indices, axis = parameter("indices", [2], np.int64), constant("axis", 0)
    column = opset3.scatter_update(data, indices, updates, axis, name="scatter")
    save_ir(folder / "one_behind_the_axis.xml", [column], [data, indices, updates])

    data, updates = parameter("data", [6], np.int64), parameter("updates", [2], np.int64)
    indices, axis = constant("indices", [1, 4]), constant("axis", 0)
    large = opset3.scatter_update(data, indices, updates, axis, name="scatter")
    save_ir(folder / "large_numbers.xml", [large], [data, updates])

    # A cache of three sequences: [sequence, position, channel]; the last position of two of them is written.
    shape = [3, 5, 2]
    save_onnx(
        folder / "last_position.onnx",
        [node("ScatterND", "written", "cache", "places", "new", reduction="none")],
        {"cache": (FLOAT, shape), "new": (FLOAT, [2, 2])},
        {"written": (FLOAT, shape)},
        {"places": ints([1, -1], [2, -1])},
        opset=18,
    )

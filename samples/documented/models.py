"""The examples of ScatterUpdate-3 and of Scatter at opset 10, as their documents print them."""

from pathlib import Path
from typing import Any

import numpy as np
from openvino import opset3

from samples.ir_files import constant, parameter, save_ir
from samples.onnx_files import FLOAT, ints, node, save_onnx


def write_documented(folder: Path) -> None:
    """Write two IR and two ONNX models."""
    data, updates = parameter("data", [1000, 256, 10, 15]), parameter("updates", [1000, 125, 20, 10, 15])
    indices, axis = parameter("indices", [125, 20], np.int64), constant("axis", [1])
    first = opset3.scatter_update(data, indices, updates, axis, name="scatter")
    save_ir(folder / "scatter_update_1.xml", [first], [data, indices, updates])

    data, updates = parameter("data", [3, 5]), parameter("updates", [3, 2])
    indices, axis = constant("indices", [0, 2]), constant("axis", [1])
    second = opset3.scatter_update(data, indices, updates, axis, name="scatter")
    save_ir(folder / "scatter_update_2.xml", [second], [data, updates])

    _write_scatter(folder / "scatter_1.onnx", [3, 3], [[1, 0, 2], [0, 2, 1]])
    _write_scatter(folder / "scatter_2.onnx", [1, 5], [[1, 3]], axis=1)


def _write_scatter(path: Path, data_shape: list[int], indices: list[list[int]], **attributes: Any) -> None:
    constants = {"indices": ints(*indices)}
    save_onnx(
        path,
        [node("Scatter", "scatter", "data", "indices", "updates", **attributes)],
        {"data": (FLOAT, data_shape), "updates": (FLOAT, constants["indices"].shape)},
        {"scatter": (FLOAT, data_shape)},
        constants,
        opset=10,
    )

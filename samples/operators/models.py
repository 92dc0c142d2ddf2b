"""A few legal uses of each operator, small enough for every runtime."""

from pathlib import Path
from typing import Any

import numpy as np
from openvino import opset3, opset4, opset12, opset15

from samples.ir_files import constant, parameter, save_ir
from samples.onnx_files import FLOAT, INT64, Tensors, node, save_onnx

_DATA = [4, 6]


def write_operators(folder: Path) -> None:
    """Write IR and ONNX models, one node each."""
    _write_slices(folder)
    _write_elements(folder)
    _write_tuples(folder)
    _write_onnx(folder)


def _write_slices(folder: Path) -> None:
    for name, indices, updates, axis in (
        ("axis_0", [2], [2, 6], 0),
        ("last_axis", [3], [4, 3], -1),
        ("scalar_index", [], [6], 0),
        ("matrix_of_indices", [2, 2], [4, 2, 2], 1),
    ):
        data, new = parameter("data", _DATA), parameter("updates", updates)
        where = parameter("indices", indices, np.int64)
        made = opset3.scatter_update(data, where, new, constant("axis", axis), name="scatter")
        save_ir(folder / f"scatter_update_3_{name}.xml", [made], [data, where, new])


def _write_elements(folder: Path) -> None:
    for name, reduction, type, index in (
        ("none", "none", np.float32, None),
        ("sum", "sum", np.float32, None),
        ("mean", "mean", np.float32, None),
        ("bytes", "none", np.uint8, None),
        ("from_the_end", "none", np.float32, [[-1, 0], [0, -2]]),
    ):
        data, new = parameter("data", _DATA, type), parameter("updates", [2, 2], type)
        where = parameter("indices", [2, 2], np.int64) if index is None else constant("indices", index)
        made = opset12.scatter_elements_update(
            data, where, new, constant("axis", 1), reduction=reduction, name="scatter"
        )
        inputs = [data, where, new] if index is None else [data, new]
        save_ir(folder / f"scatter_elements_update_12_{name}.xml", [made], inputs)
    data, new = parameter("data", _DATA), parameter("updates", [2, 2])
    where = parameter("indices", [2, 2], np.int64)
    made = opset3.scatter_elements_update(data, where, new, constant("axis", 0), name="scatter")
    save_ir(folder / "scatter_elements_update_3_none.xml", [made], [data, where, new])


def _write_tuples(folder: Path) -> None:
    for name, indices, updates in (
        ("rows", [2, 1], [2, 6]),
        ("elements", [3, 2], [3]),
        ("whole", [1, 0], [1, 4, 6]),
    ):
        data, new = parameter("data", _DATA), parameter("updates", updates)
        where = parameter("indices", indices, np.int64)
        made = opset4.scatter_nd_update(data, where, new, name="scatter")
        save_ir(folder / f"scatter_nd_update_3_{name}.xml", [made], [data, where, new])
    for name, reduction, index in (
        ("none", "none", [[0], [2]]),
        ("sum", "sum", [[0], [0]]),
        ("from_the_end", "none", [[-1], [0]]),
    ):
        data, new = parameter("data", _DATA), parameter("updates", [2, 6])
        made = opset15.scatter_nd_update(data, constant("indices", index), new, reduction, name="scatter")
        save_ir(folder / f"scatter_nd_update_15_{name}.xml", [made], [data, new])


def _write_onnx(folder: Path) -> None:
    elements: Tensors = {"indices": (INT64, [2, 2]), "updates": (FLOAT, [2, 2])}
    rows: Tensors = {"indices": (INT64, [2, 1]), "updates": (FLOAT, [2, 6])}
    _save(folder / "scatter_9.onnx", "Scatter", elements, 9, axis=1)
    _save(folder / "scatter_elements_13.onnx", "ScatterElements", elements, 13, axis=1)
    _save(folder / "scatter_elements_18_add.onnx", "ScatterElements", elements, 18, axis=1, reduction="add")
    _save(folder / "scatter_nd_13.onnx", "ScatterND", rows, 13)
    _save(folder / "scatter_nd_18_max.onnx", "ScatterND", rows, 18, reduction="max")
    save_onnx(
        folder / "tensor_scatter_24.onnx",
        [node("TensorScatter", "scatter", "cache", "update", "starts", mode="circular")],
        {"cache": (FLOAT, [2, 6, 3]), "update": (FLOAT, [2, 2, 3]), "starts": (INT64, [2])},
        {"scatter": (FLOAT, [2, 6, 3])},
        {},
        opset=24,
    )


def _save(path: Path, type: str, inputs: Tensors, opset: int, **attributes: Any) -> None:
    made = node(type, "scatter", "data", *inputs, **attributes)
    save_onnx(path, [made], {"data": (FLOAT, _DATA), **inputs}, {"scatter": (FLOAT, _DATA)}, {}, opset)

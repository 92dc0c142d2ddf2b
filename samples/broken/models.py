"""One broken model for each family of operators."""

from pathlib import Path

import numpy as np
from openvino import opset3, opset4, opset12, opset15

from samples.ir_files import constant, disconnect, edit, parameter, reshape, revalue, save_ir
from samples.onnx_files import FLOAT, INT32, INT64, ints, node, save_onnx


def write_broken(folder: Path) -> None:
    """Write three IR and three ONNX models."""
    write_scatter_update(folder / "scatter_update.xml")
    write_scatter_elements_update(folder / "scatter_elements_update.xml")
    write_scatter_nd_update(folder / "scatter_nd_update.xml")
    write_scatter_elements(folder / "scatter_elements.onnx")
    write_scatter_nd(folder / "scatter_nd.onnx")
    write_tensor_scatter(folder / "tensor_scatter.onnx")


def write_scatter_update(path: Path) -> None:
    """Write six nodes: a negative index, one past the end, one named twice, and three more."""
    data, rows = parameter("data", [4, 5]), parameter("rows", [3, 5])
    axis = constant("axis", 0)
    nodes = [
        opset3.scatter_update(data, constant(f"{name}_indices", indices), rows, axis, name=name)
        for name, indices in {
            "negative": [3, -1, 0],
            "past_end": [0, 4, 7],
            "twice": [3, 1, 3],
            "old_opset": [0, 1, 2],
        }.items()
    ]
    short = parameter("short", [2, 5])
    nodes.append(opset3.scatter_update(data, constant("two", [0, 2]), short, axis, name="too_many_rows"))
    columns, last_axis = parameter("columns", [4, 2]), constant("last_axis", 1)
    nodes.append(
        opset3.scatter_update(data, constant("two_columns", [0, 3]), columns, last_axis, name="no_axis_2")
    )
    save_ir(path, nodes[::-1], [data, rows, short, columns])
    reshape(path, "short", "too_many_rows", 2, [3, 5])
    revalue(path, "last_axis", 2)
    edit(path, "old_opset", 'version="opset3"', 'version="opset2"')


def write_scatter_elements_update(path: Path) -> None:
    """Write six nodes whose attributes, shapes or types are not those of their version."""
    data, updates = parameter("data", [4, 5]), parameter("updates", [2, 5])
    flags, new_flags = parameter("flags", [4, 5], np.bool_), parameter("new_flags", [2, 5], np.bool_)
    indices, axis = parameter("indices", [2, 5], np.int64), constant("axis", 0)
    long, more = parameter("long", [2, 3], np.int64), parameter("more", [2, 3])
    scatter = opset12.scatter_elements_update
    nodes = [
        scatter(data, indices, updates, axis, "sum", name="onnx_word"),
        scatter(data, indices, updates, axis, "sum", False, name="no_boolean"),
        opset3.scatter_elements_update(data, indices, updates, axis, name="dropped"),
        scatter(flags, indices, new_flags, axis, "sum", name="mean_of_flags"),
        scatter(data, long, more, axis, name="too_wide"),
        scatter(data, indices, updates, constant("axes", [0]), name="two_axes"),
    ]
    save_ir(path, nodes[::-1], [data, updates, flags, new_flags, indices, long, more])
    edit(path, "onnx_word", 'reduction="sum"', 'reduction="add"')
    edit(path, "no_boolean", 'use_init_val="false"', 'use_init_val="no"')
    edit(path, "dropped", 'version="opset3">', 'version="opset3">\n\t\t\t<data reduction="sum" />')
    edit(path, "mean_of_flags", 'reduction="sum"', 'reduction="mean"')
    reshape(path, "long", "too_wide", 1, [2, 7])
    reshape(path, "more", "too_wide", 2, [2, 7])
    reshape(path, "axes", "two_axes", 3, [2])
    revalue(path, "axes", 0, 1)


def write_scatter_nd_update(path: Path) -> None:
    """Write five nodes with illegal coordinates, and one without its updates."""
    data, rows = parameter("data", [4, 5]), parameter("rows", [2, 5])
    small, tuples = parameter("small", [2, 1], np.int32), parameter("tuples", [2, 2], np.int64)
    cells, scatter = parameter("cells", [2]), opset15.scatter_nd_update
    negative, far = constant("negative_rows", [[1], [-1]]), constant("far_cells", [[0, 5], [-5, 1]])
    nodes = [
        opset4.scatter_nd_update(data, negative, rows, name="negative"),
        scatter(data, far, cells, name="past_end"),
        scatter(data, small, rows, name="small_type"),
        scatter(data, tuples, cells, name="three_coordinates"),
        scatter(data, constant("one_row", [[3], [2]]), rows, name="no_updates"),
    ]
    save_ir(path, nodes[::-1], [data, rows, small, tuples, cells])
    edit(path, "small", 'element_type="i32"', 'element_type="i8"')
    edit(path, "small", "I32", "I8")
    edit(path, "small_type", "I32", "I8")
    reshape(path, "tuples", "three_coordinates", 1, [2, 3])
    disconnect(path, "no_updates", 2)


def write_scatter_elements(path: Path) -> None:
    """Write words, shapes, axes and indices that ScatterElements-16 does not have."""
    data = (FLOAT, [4, 5])
    save_onnx(
        path,
        [
            node("ScatterElements", "openvino_word", "data", "two_rows", "rows", reduction="sum"),
            node("ScatterElements", "too_new_word", "data", "two_rows", "rows", reduction="max"),
            node("ScatterElements", "other_shape", "data", "two_rows", "data"),
            node("ScatterElements", "no_axis_2", "data", "two_rows", "rows", axis=2),
            node("ScatterElements", "past_end", "data", "far", "column"),
            node("ScatterElements", "twice", "data", "same", "column"),
        ],
        {"data": data, "two_rows": (INT64, [2, 5]), "rows": (FLOAT, [2, 5]), "column": (FLOAT, [3, 1])},
        dict.fromkeys(
            ["openvino_word", "too_new_word", "other_shape", "no_axis_2", "past_end", "twice"], data
        ),
        {"far": ints([0], [4], [-5]), "same": ints([1], [-3], [1])},
        opset=16,
    )


def write_scatter_nd(path: Path) -> None:
    """Write coordinates, shapes, types and a word that ScatterND-18 does not have."""
    data = (FLOAT, [4, 5])
    save_onnx(
        path,
        [
            node("ScatterND", "three_coordinates", "data", "triples", "cells"),
            node("ScatterND", "other_shape", "data", "pairs", "rows"),
            node("ScatterND", "other_type", "data", "small", "cells"),
            node("ScatterND", "past_end", "data", "far", "cells"),
            node("ScatterND", "mean", "data", "pairs", "cells", reduction="mean"),
        ],
        {"data": data, "triples": (INT64, [2, 3]), "pairs": (INT64, [2, 2]), "small": (INT32, [2, 2])}
        | {"rows": (FLOAT, [2, 5]), "cells": (FLOAT, [2])},
        dict.fromkeys(["three_coordinates", "other_shape", "other_type", "past_end", "mean"], data),
        {"far": ints([3, 5], [0, 0])},
        opset=18,
    )


def write_tensor_scatter(path: Path) -> None:
    """Write an axis, a mode and positions that TensorScatter-24 does not have."""
    cache, token = (FLOAT, [2, 3, 7, 5]), (FLOAT, [2, 3, 1, 5])
    save_onnx(
        path,
        [
            node("TensorScatter", "batch_axis", "cache", "token", "start", axis=0),
            node("TensorScatter", "ring", "cache", "token", "start", mode="ring"),
            node("TensorScatter", "three_starts", "cache", "token", "starts"),
            node("TensorScatter", "negative", "cache", "token", "before"),
            node("TensorScatter", "too_long", "cache", "long", "start"),
        ],
        {"cache": cache, "token": token, "long": (FLOAT, [2, 3, 11, 5]), "start": (INT64, [2])}
        | {"starts": (INT64, [3])},
        dict.fromkeys(["batch_axis", "ring", "three_starts", "negative", "too_long"], cache),
        {"before": ints(0, -1)},
        opset=24,
    )

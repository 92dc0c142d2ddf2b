"""Bodies and a function, each with one defect inside."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
from onnx import helper
from openvino import opset1, opset3, opset5, opset8, opset15

from samples.ir_files import constant, parameter, result, save_ir
from samples.onnx_files import FLOAT, INT64, ints, node, save_onnx

_BOOL = onnx.TensorProto.BOOL


def write_nested(folder: Path) -> None:
    """Write If and Loop in both formats, and an ONNX function that is called twice."""
    write_branch(folder / "branch.xml")
    write_loop(folder / "loop.xml")
    write_onnx_branch(folder / "branch.onnx")
    write_onnx_loop(folder / "loop.onnx")
    write_function(folder / "function.onnx")


def write_branch(path: Path) -> None:
    """Write an If whose then body writes to row 4 of 4."""
    data, rows, flag = parameter("data", [4, 5]), parameter("rows", [2, 5]), parameter("flag", [], np.bool_)
    then, then_inputs = _branch_body([3, 4])
    other, other_inputs = _branch_body([3, 2])
    branch = opset8.if_op(flag)
    branch.set_friendly_name("branch")
    branch.set_then_body(then)
    branch.set_else_body(other)
    for outer, for_then, for_else in zip((data, rows), then_inputs, other_inputs, strict=True):
        branch.set_input(outer.output(0), for_then, for_else)
    output = branch.set_output(then.get_results()[0], other.get_results()[0])
    save_ir(path, [output], [data, rows, flag])


def _branch_body(indices: list[int]) -> tuple[Any, list[Any]]:
    inputs = [parameter("body_data", [4, 5]), parameter("body_rows", [2, 5])]
    rows, axis = constant("indices", indices), constant("axis", 0)
    scatter = opset3.scatter_update(inputs[0], rows, inputs[1], axis, name="scatter")
    return openvino.Model([result(scatter)], inputs, "body"), inputs


def write_loop(path: Path) -> None:
    """Write a Loop that fills a cache row by row, and clears row 7 of 7 each time."""
    step, old, new = parameter("step", [1], np.int64), parameter("old", [7, 5]), parameter("new", [1, 5])
    tuples = opset1.unsqueeze(step, constant("last", 1))
    tuples.set_friendly_name("tuples")
    write = opset15.scatter_nd_update(old, tuples, new, name="write")
    clear = opset15.scatter_nd_update(write, constant("end", [[7]]), new, name="clear")
    again = result(constant("again", True, np.bool_), "again_result")
    kept = result(clear, "kept")
    body = openvino.Model([kept, again], [step, old, new], "body")
    cache, row = parameter("cache", [7, 5]), parameter("row", [1, 5])
    loop = opset5.loop(constant("trips", 3), constant("start", True, np.bool_))
    loop.set_friendly_name("loop")
    loop.set_function(body)
    loop.set_special_body_ports([0, 1])
    loop.set_merged_input(old, cache.output(0), kept.output(0))
    loop.set_invariant_input(new, row.output(0))
    save_ir(path, [loop.get_iter_value(kept.output(0), -1)], [cache, row])


def _graph(name: str, nodes: list[onnx.NodeProto], inputs: list[Any], outputs: list[Any]) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, inputs, outputs)


def _info(name: str, element_type: int, shape: list[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, shape)


def write_onnx_branch(path: Path) -> None:
    """Write an If whose then branch gives coordinates as int32; the branches use outer values."""
    then = node("ScatterND", "scatter_then", "data", "small_rows", "updates")
    other = node("ScatterND", "scatter_else", "data", "rows", "updates")
    save_onnx(
        path,
        [
            node(
                "If",
                "branch",
                "flag",
                then_branch=_graph("then", [then], [], [_info("scatter_then", FLOAT, [4, 5])]),
                else_branch=_graph("else", [other], [], [_info("scatter_else", FLOAT, [4, 5])]),
            )
        ],
        {"flag": (_BOOL, []), "data": (FLOAT, [4, 5]), "updates": (FLOAT, [2, 5])},
        {"branch": (FLOAT, [4, 5])},
        {"rows": ints([3], [1]), "small_rows": np.array([[3], [1]], np.int32)},
        opset=18,
    )


def write_onnx_loop(path: Path) -> None:
    """Write a Loop that adds with a word that ScatterElements does not have."""
    body = _graph(
        "body",
        [
            node("Identity", "again_out", "again"),
            node("ScatterElements", "new", "old", "indices", "updates", axis=1, reduction="sum"),
        ],
        [_info("step", INT64, []), _info("again", _BOOL, []), _info("old", FLOAT, [3, 5])],
        [_info("again_out", _BOOL, []), _info("new", FLOAT, [3, 5])],
    )
    save_onnx(
        path,
        [helper.make_node("Loop", ["trips", "start", "data"], ["loop"], "loop", body=body)],
        {"data": (FLOAT, [3, 5]), "updates": (FLOAT, [3, 2])},
        {"loop": (FLOAT, [3, 5])},
        {"trips": np.array(3), "start": np.array(True), "indices": ints([1, 3], [0, 2], [4, 1])},
        opset=18,
    )


def write_function(path: Path) -> None:
    """Write a function that is called for two tables; its index 5 exists in the second only."""
    store = helper.make_function(
        "samples",
        "Store",
        ["table", "row"],
        ["stored"],
        [
            helper.make_node("Constant", [], ["place"], "place", value_ints=[5]),
            helper.make_node("Unsqueeze", ["place", "zero"], ["tuples"], "tuples"),
            node("ScatterND", "stored", "table", "tuples", "row"),
        ],
        [helper.make_opsetid("", 18)],
    )
    store.node.insert(0, helper.make_node("Constant", [], ["zero"], "zero", value_ints=[0]))
    calls = [
        helper.make_node("Store", [table, "row"], [f"{table}_out"], f"store_{table}", domain="samples")
        for table in ("small", "large")
    ]
    save_onnx(
        path,
        calls,
        {"small": (FLOAT, [4, 3]), "large": (FLOAT, [7, 3]), "row": (FLOAT, [1, 3])},
        {"small_out": (FLOAT, [4, 3]), "large_out": (FLOAT, [7, 3])},
        {},
        opset=18,
        functions=[store],
    )

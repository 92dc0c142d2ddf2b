"""A general operator is added by a row and a kernel: here to a copy of the package, and nothing else."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import ir_scatter
from ir_scatter import UnknownOperator, evaluate_model, read, validate
from tests.rules.ir_text import IrText

ROW = """
    GeneralOp("DepthToSpace", "layout.depth_to_space", "mode block_size/mode blocksize"),
"""
KERNEL = '''

def depth_to_space(case: Case) -> Array:
    """Move channels, blocks first, into the two dimensions behind them."""
    size = case.attributes.integer("blocksize" if case.is_onnx else "block_size")
    batch, channels, rows, columns = case.array(0).shape
    blocks = case.array(0).reshape(batch, size, size, channels // size**2, rows, columns)
    return blocks.transpose(0, 3, 4, 1, 5, 2).reshape(batch, -1, rows * size, columns * size)
'''
PROGRAM = """
import json, sys
import numpy as np
import ir_scatter

def found(path):
    return [one.code for one in ir_scatter.validate(ir_scatter.read(path))]

legal, illegal = sys.argv[1:]
data, updates = np.zeros((1, 1, 2, 5), np.float32), np.ones((1, 1, 2, 2), np.float32)
(output,) = ir_scatter.evaluate_model(legal, {"data": data, "updates": updates}).values()
print(json.dumps([ir_scatter.__file__, found(legal), found(illegal), output.tolist()]))
"""


def write_ir(folder: Path, indices: list[int]) -> str:
    ir = IrText()
    depth = ir.const("depth", "i64", indices, [1, 4, 1, 1])
    attributes = {"mode": "blocks_first", "block_size": "2"}
    space = ir.add("space", "DepthToSpace", "opset1", [depth], [("i64", (1, 1, 2, 2))], attributes)
    data = ir.parameter("data", shape=(1, 1, 2, 5))
    updates = ir.parameter("updates", shape=(1, 1, 2, 2))
    inputs = [data, space, updates, ir.const("axis", "i64", 3)]
    scatter = ir.add("scatter", "ScatterElementsUpdate", "opset12", inputs, [("f32", (1, 1, 2, 5))])
    ir.add("result", "Result", "opset1", [scatter], [])
    return ir.write(folder, f"with_{indices[2]}")


def write_onnx(folder: Path, indices: list[int]) -> str:
    nodes = [
        helper.make_node("DepthToSpace", ["depth"], ["space"], blocksize=2),
        helper.make_node("ScatterElements", ["data", "space", "updates"], ["output"], axis=3),
    ]
    shapes = {"data": [1, 1, 2, 5], "updates": [1, 1, 2, 2], "output": [1, 1, 2, 5]}
    data, updates, output = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()
    )
    depth = helper.make_tensor("depth", TensorProto.INT64, [1, 4, 1, 1], indices)
    graph = helper.make_graph(nodes, "g", [data, updates], [output], [depth])
    path = folder / f"with_{indices[2]}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return str(path)


@pytest.mark.parametrize("write", [write_ir, write_onnx])
def test_a_row_and_a_kernel_are_enough(write: Callable[[Path, list[int]], str], tmp_path: Path) -> None:
    legal, illegal = write(tmp_path, [0, 3, 4, 1]), write(tmp_path, [0, 3, 5, 1])
    assert validate(read(illegal)) == []
    with pytest.raises(UnknownOperator, match="DepthToSpace"):
        evaluate_model(legal, {})

    package = tmp_path / "ir_scatter"
    shutil.copytree(Path(ir_scatter.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    table, kernels = package / "ops" / "general.py", package / "ops" / "general_kernels" / "layout.py"
    table.write_text(table.read_text().replace("\nROWS = (", "\nROWS = (" + ROW.rstrip(), 1))
    kernels.write_text(kernels.read_text() + KERNEL)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, legal, illegal],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    place, of_legal, of_illegal, output = json.loads(done.stdout)
    assert Path(place).is_relative_to(package)
    assert (of_legal, of_illegal) == ([], ["SCT302"])
    assert np.array_equal(output, [[[[1, 0, 0, 1, 0], [0, 1, 0, 0, 1]]]])

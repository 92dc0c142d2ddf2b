"""Small models with scatter nodes to convert, and what is asked about the results."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import parser

from ir_scatter.evaluate import evaluate_model
from ir_scatter.inputs.model import make_feeds
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.reading import read
from ir_scatter.validate import validate
from tests.rules.ir_text import IrText

DATA = (4, 5, 3)


def slices(
    name: str = "model",
    indices: Sequence[int] = (2,),
    *,
    axis: int | None = 1,
    values: Any = None,
    node: str = "scatter",
    folder: Path | None = None,
) -> Path:
    """Write an IR with one ScatterUpdate and return its path; without an axis or `values` those are inputs."""
    ir = IrText()
    data = ir.parameter("data", shape=DATA)
    at = ir.parameter("at", "i64", indices) if values is None else ir.const("at", "i64", values, indices)
    place = 1 if axis is None else axis % len(DATA)
    rows = ir.parameter("rows", shape=(*DATA[:place], *indices, *DATA[place + 1 :]))
    where = ir.parameter("axis", "i64") if axis is None else ir.const("axis", "i64", axis, ())
    inputs = [data, at, rows, where]
    result = ir.add(node, "ScatterUpdate", "opset3", inputs, [("f32", DATA)], ports=' names="out"')
    ir.add("result", "Result", "opset1", [result], [])
    return _written(ir, name, folder)


def elements(version: str = "opset12", name: str = "model", **attributes: str) -> Path:
    """Write an IR with one ScatterElementsUpdate and return its path."""
    ir = IrText()
    inputs = [ir.parameter("data", shape=(4, 5)), ir.parameter("at", "i64", (2, 5))]
    inputs += [ir.parameter("rows", shape=(2, 5)), ir.const("axis", "i64", 0, ())]
    result = ir.add("scatter", "ScatterElementsUpdate", version, inputs, [("f32", (4, 5))], attributes)
    ir.add("result", "Result", "opset1", [result], [])
    return _written(ir, name, None)


def tuples(version: str = "opset15", name: str = "model", **attributes: str) -> Path:
    """Write an IR with one ScatterNDUpdate and return its path."""
    ir = IrText()
    data = ir.parameter("data", shape=(4, 5))
    inputs = [data, ir.parameter("at", "i64", (2, 1)), ir.parameter("rows", shape=(2, 5))]
    result = ir.add("scatter", "ScatterNDUpdate", version, inputs, [("f32", (4, 5))], attributes)
    ir.add("result", "Result", "opset1", [result], [])
    return _written(ir, name, None)


def chain(name: str, nodes: Sequence[str]) -> Path:
    """Write an IR with a chain of ScatterUpdates and return its path."""
    ir = IrText()
    value, at = ir.parameter("data", shape=DATA), ir.parameter("at", "i64", (2,))
    rows, axis = ir.parameter("rows", shape=(4, 2, 3)), ir.const("axis", "i64", 1, ())
    for node in nodes:
        value = ir.add(node, "ScatterUpdate", "opset3", [value, at, rows, axis], [("f32", DATA)])
    ir.add("result", "Result", "opset1", [value], [])
    return _written(ir, name, None)


def _written(ir: IrText, name: str, folder: Path | None) -> Path:
    path = Path(ir.write(folder or Path.cwd(), name))
    return path if folder else path.relative_to(Path.cwd())


def onnx_model(text: str, name: str = "model", names: Sequence[str] = ()) -> Path:
    """Write an ONNX model of this text, its nodes under these names, and return its path."""
    model = parser.parse_model(text)
    for node, label in zip(model.graph.node, names, strict=False):
        node.name = label
        node.doc_string = f"what {label} is for"
    path = Path(f"{name}.onnx")
    path.write_bytes(model.SerializeToString())
    return path


def deprecated(opset: int, name: str = "model") -> Path:
    """Write an ONNX model with two Scatter nodes and return its path."""
    return onnx_model(
        f"""
        <ir_version: {4 if opset < 11 else 8}, opset_import: ["" : {opset}]>
        g (float[4,5] data, int64[2,5] at, float[2,5] rows) => (float[4,5] out) {{
          a = Scatter (data, at, rows)
          out = Scatter <axis = -2> (a, at, rows)
        }}
        """,
        name,
        ["first", "second"],
    )


def operators(path: Path) -> list[str]:
    """Return what the scatter nodes of a model are, in the order of the file."""
    from ir_scatter.ops.lookup import find

    model = read(path)
    rows = (
        find(node.domain, node.type, node.opset) for node in model.definitions(scatter_types(model.domain))
    )
    return [str(row.spec.key) for row in rows if row and row.spec]


def opsets(path: Path) -> list[int]:
    """Return the opset of an ONNX model, and of each of its functions."""
    model = onnx.load(str(path), load_external_data=False)
    return [
        entry.version
        for owner in (model, *model.functions)
        for entry in owner.opset_import
        if not entry.domain
    ]


def findings(path: Path) -> list[str]:
    """Return the codes that `validate` finds."""
    return [found.code for found in validate(read(path))]


def demand_equal(before: Path, after: Path, **given: Any) -> None:
    """Demand that NumPy computes the same for two models on generated inputs, but for those given."""
    for seed in range(3):
        feeds = {**make_feeds(before, seed), **{name: np.array(value) for name, value in given.items()}}
        old, new = evaluate_model(before, feeds), evaluate_model(after, feeds)
        assert list(old) == list(new)
        for name, array in old.items():
            np.testing.assert_array_equal(new[name], array)


def files(folder: Path | None = None) -> dict[str, bytes]:
    """Return every file below a folder, hidden ones too."""
    return dict(_files(folder or Path.cwd()))


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()


def external(path: Path, arrays: dict[str, tuple[str, npt.NDArray[Any]]]) -> Path:
    """Give a model initializers in other files, by name with their locations, and return its path."""
    model = onnx.load(str(path))
    for name, (location, array) in arrays.items():
        tensor = model.graph.initializer.add(name=name, data_type=onnx.TensorProto.FLOAT, dims=array.shape)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        file = path.parent / location
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(array.astype(np.float32).tobytes())
    path.write_bytes(model.SerializeToString())
    return path
